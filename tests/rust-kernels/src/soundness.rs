//! Programs that try to break the rules of `curium_kernel::soundness`, and must not.

use core::num::NonZeroU32;

use curium_kernel::prelude::*;

/// The number of results of [`operations`].
pub const OPERATIONS: usize = 53;

/// Returns the bits of a number. Those of NaN are not specified.
fn bits_of_f32(x: f32) -> u64 {
    let bits = if x.is_nan() { f32::NAN } else { x }.to_bits();
    u64::from(bits)
}

fn bits_of_f64(x: f64) -> u64 {
    if x.is_nan() { f64::NAN } else { x }.to_bits()
}

/// Returns the results of many operations of `core`. Host and device compute the same.
#[must_use]
pub fn operations(a: u64, b: u64) -> [u64; OPERATIONS] {
    let (ai, bi) = (a.cast_signed(), b.cast_signed());
    let (af, bf) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let (ad, bd) = (f64::from_bits(a), f64::from_bits(b));
    let wide = u128::from(a) << 64 | u128::from(b);
    let divisor = if bi == 0 { 1 } else { bi };
    let mut sorted: [u16; 16] = core::array::from_fn(|i| ((a >> i) ^ (b >> (3 * i))) as u16);
    sorted.sort_unstable();
    let mut moved = sorted;
    moved.rotate_left((a % 16) as usize);
    moved.copy_within(3..11, 5);
    moved.copy_within(4..12, 1);
    let hash = |words: &[u16]| {
        words.iter().fold(0, |hash: u64, word| {
            hash.wrapping_mul(31).wrapping_add(u64::from(*word))
        })
    };
    let digits = [b'0' + (a % 10) as u8, b'0' + (b % 10) as u8, b'7'];
    [
        (wide / u128::from(b | 1)) as u64,
        (wide % u128::from(b | 1)) as u64,
        wide.cast_signed().wrapping_div(i128::from(bi | 1)) as u64,
        (wide.wrapping_mul(wide) >> 64) as u64,
        (wide >> (a & 127)) as u64,
        ((wide.cast_signed() >> (b & 127)).cast_unsigned() >> 64) as u64,
        u64::from(a.leading_zeros()) << 32 | u64::from((b as u16).trailing_zeros()),
        u64::from((a as u8).leading_zeros()) << 32 | u64::from((b as u32).count_ones()),
        a.rotate_left(b as u32) ^ u64::from((a as u8).rotate_right(b as u32 & 31)),
        a.reverse_bits() ^ b.swap_bytes(),
        ai.wrapping_rem(divisor).cast_unsigned(),
        ai.wrapping_rem_euclid(divisor).cast_unsigned(),
        a.saturating_mul(b),
        ai.saturating_add(bi).cast_unsigned(),
        (a as i8).saturating_sub(b as i8) as u64,
        ai.checked_mul(bi).map_or(77, i64::cast_unsigned),
        (a as i32).checked_neg().map_or(7, |x| x as u64),
        a.abs_diff(b),
        a.isqrt(),
        u64::from((a | 1).ilog10()) << 8 | u64::from((b | 1).ilog2()),
        a.wrapping_pow(b as u32 & 15),
        u64::from(af as u8),
        (af as i8) as u64,
        af as u64,
        (af as i64).cast_unsigned(),
        u64::from(ad as u32),
        (ad as i32) as u64,
        ad as u64,
        (ad as i16) as u64,
        bits_of_f32(a as f32),
        bits_of_f32(ai as f32),
        bits_of_f64(a as f64),
        bits_of_f32(ad as f32),
        bits_of_f64(f64::from(af)),
        bits_of_f32(af % bf),
        bits_of_f64(ad % bd),
        bits_of_f32(af * bf + af),
        bits_of_f64(ad * bd - bd),
        bits_of_f32(af / bf),
        bits_of_f64(ad / bd),
        // The sign of a zero is not specified.
        bits_of_f32(af.max(bf) + 0.0),
        bits_of_f64(ad.min(bd) + 0.0),
        (af.total_cmp(&bf) as i8) as u64,
        af.partial_cmp(&bf).map_or(9, |order| (order as i8) as u64),
        bits_of_f32(af.abs()) ^ bits_of_f32((-bf).copysign(af)),
        bits_of_f32(af.clamp(-1.0, 1.0)),
        u64::from(af.is_subnormal()) | u64::from(ad.is_normal()) << 1,
        hash(&sorted),
        hash(&moved),
        sorted.binary_search(&(b as u16)).unwrap_or_else(|i| i) as u64,
        moved
            .chunks(3)
            .zip(moved.windows(2))
            .map(|(chunk, window)| u64::from(chunk[0]) ^ u64::from(window[1]))
            .sum(),
        char::from_u32(a as u32 & 0x1f_ffff).map_or(1, |c| {
            c.len_utf8() as u64
                | u64::from(c.is_alphanumeric()) << 8
                | u64::from(u32::from(c.to_ascii_uppercase())) << 16
        }),
        core::str::from_utf8(&digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1),
    ]
}

/// The results of the operations for each pair of numbers.
#[kernel]
pub fn operations_of_core(t: Thread, a: &[u64], b: &[u64], mut y: PerThread<[u64; OPERATIONS]>) {
    if let Some(y) = y.get(&t) {
        *y = operations(a[t.index()], b[t.index()]);
    }
}

/// The remainders of floating-point numbers.
#[kernel]
pub fn remainders(
    t: Thread,
    x: &[f32],
    divisors: &[f32],
    mut single: PerThread<f32>,
    mut double: PerThread<f64>,
) {
    let i = t.index();
    if let (Some(single), Some(double)) = (single.get(&t), double.get(&t)) {
        *single = x[i] % divisors[i];
        *double = f64::from(x[i]) % f64::from(divisors[i]);
    }
}

/// Code of the block decides by a remainder, whose operand one thread knows as a constant.
#[kernel]
pub fn branch_on_a_remainder(
    block: Block<64>,
    mut tile: Shared<[u32; 64]>,
    x: &[f32],
    mut y: PerThread<u32>,
) {
    let number = x[0];
    let is_hit = block.threads(|t| u32::from(t.index_in_block() == 0 && number == 1.0e10));
    tile.fill(&block, |_, i| i as u32);
    if number % 3.0 == 1.0 {
        tile.synced(&block, |_| ());
        tile.fill(&block, |_, i| 2 * i as u32);
    }
    tile.synced(&block, |tile| {
        block.threads_with((&mut y, &is_hit), |t, (y, is_hit)| {
            if let Some(y) = y.first() {
                *y = tile[63 - t.index_in_block()] + is_hit;
            }
        });
    });
}

/// Adds to a value of a thread when it is dropped.
struct Added<'a> {
    value: &'a mut u32,
    rounds: u32,
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        if self.rounds.is_multiple_of(3) {
            return;
        }
        for i in 0..self.rounds {
            *self.value = self.value.wrapping_add(i);
        }
    }
}

/// Destructors of values of threads run in code of the block, between barriers.
#[kernel]
pub fn drops_in_code_of_the_block(
    block: Block<64>,
    mut tile: Shared<[u32; 64]>,
    mut y: PerThread<u32>,
) {
    tile.fill(&block, |_, i| i as u32);
    let mut own = block.threads(|_| 1_u32);
    let added = block.threads_with(&mut own, |t, value| Added {
        value,
        rounds: t.index_in_block() as u32,
    });
    tile.synced(&block, |_| ());
    drop(added);
    tile.synced(&block, |tile| {
        block.threads_with((&mut y, &own), |t, (y, own)| {
            if let Some(y) = y.first() {
                *y = *own + tile[63 - t.index_in_block()];
            }
        });
    });
}

/// Memory without elements: the number of elements that the block sees.
#[kernel]
pub fn empty_memory(
    block: Block<32, 2>,
    mut array: Shared<[u32; 0]>,
    mut no_rows: Shared<Tile<u32, 0, 4>>,
    mut no_columns: Shared<Tile<u32, 4, 0, 3>>,
    mut counters: Counters<0>,
    mut row: PerBlockRow<u32>,
    x: Matrix<u32>,
    slice: &[u32],
    mut y: PerBlock<u32>,
) {
    array.fill(&block, |_, _| 1);
    no_rows.fill(&block, |_, _| 1);
    no_columns.fill(&block, |_, _| 1);
    counters.fill(&block, |_, _| 1);
    array.pairs(&block, |pairs| pairs.step(1, |_, _, _| ()));
    let memory = (&mut array, &mut no_rows, &mut no_columns, &mut counters);
    let shared = memory.synced(&block, |(array, _, no_columns, counters)| {
        array.len() + no_columns[3].len() + counters.len()
    });
    let own = row
        .row(&block)
        .map_or(100, |mut row| row.synced(&block, <[u32]>::len));
    let input = x.row(0).map_or(1000, <[u32]>::len) + slice.len();
    y.set(&block, (shared + own + input) as u32);
}

/// References of empty slices are not null: 1 if the slice is there, also behind a pointer that is
/// null for `None`.
#[kernel]
pub fn empty_slices(t: Thread, x: &[u32], mut y: PerThread<u32>) {
    if let Some(y) = y.get(&t) {
        *y = u32::from(is_some(Some(x)));
    }
}

#[inline(never)]
fn is_some(x: Option<&[u32]>) -> bool {
    x.is_some()
}

/// Elements with values that no other value has, in shared memory and in buffers.
#[kernel]
pub fn niches(
    block: Block<32>,
    mut tile: Shared<[Option<NonZeroU32>; 32]>,
    x: &[Option<NonZeroU32>],
    mut y: PerThread<Option<NonZeroU32>>,
) {
    tile.fill(&block, |_, i| x[i]);
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                *y = match tile[31 - t.index_in_block()] {
                    None => NonZeroU32::new(1000),
                    Some(x) => x.checked_add(1),
                };
            }
        });
    });
}

/// A struct without alignment.
#[derive(Clone, Copy, ByValue)]
#[repr(C, packed)]
pub struct Packed {
    /// The first byte.
    pub first: u8,
    /// Bytes 1 to 4.
    pub rest: u32,
}

/// Values whose sizes are no powers of two.
#[kernel]
pub fn values_of_odd_sizes(
    t: Thread,
    bytes: [u8; 17],
    halves: [u16; 3],
    flags: [bool; 3],
    nested: [[u8; 3]; 2],
    packed: Packed,
    vector: F32x4,
    mut y: PerThread<u64>,
) {
    if let Some(y) = y.get(&t) {
        let numbers = bytes.into_iter().chain(nested.into_iter().flatten());
        let numbers = numbers.map(u64::from).chain(halves.map(u64::from));
        let numbers = numbers.chain(flags.map(u64::from));
        let packed = [u64::from(packed.first), u64::from(packed.rest)];
        let numbers = numbers.chain(packed).chain([vector.w as u64]);
        *y = numbers.fold(0, |hash: u64, x| hash.wrapping_mul(31).wrapping_add(x));
    }
}

fn rotate_and_recurse(block: &Block<64>, tile: &mut Shared<[u32; 64]>, depth: u32) {
    if depth == 0 {
        return;
    }
    let is_odd = block.threads(|t| t.index_in_block() % 2 == 1);
    let other = tile.synced(block, |tile| {
        block.threads_with(&is_odd, |t, is_odd| {
            let index = t.index_in_block();
            tile[if *is_odd { index ^ 1 } else { 63 - index }]
        })
    });
    block.threads_with((&mut *tile, &other), |_, (tile, other)| {
        if let Some(element) = tile.first() {
            *element = element.wrapping_mul(3).wrapping_add(*other);
        }
    });
    if block.count(&is_odd) == 32 {
        rotate_and_recurse(block, tile, depth - 1);
    }
    if depth.is_multiple_of(2) {
        rotate_and_recurse(block, tile, depth - 2);
    }
}

/// Barriers in recursion and behind pointers to closures; the kernel ends as another one.
#[kernel]
pub fn recursion(block: Block<64>, depth: u32, mut tile: Shared<[u32; 64]>, y: PerThread<u32>) {
    tile.fill(&block, |_, i| i as u32);
    rotate_and_recurse(&block, &mut tile, depth);
    end_of_recursion(block, tile, y);
}

/// A kernel that another one calls.
#[kernel]
pub fn end_of_recursion(block: Block<64>, mut tile: Shared<[u32; 64]>, mut y: PerThread<u32>) {
    type Step<'a> = &'a dyn Fn(&Block<64>, &mut Shared<[u32; 64]>);
    let steps: [Step<'_>; 2] = [
        &|block, tile| rotate_and_recurse(block, tile, 1),
        &|block, tile| {
            tile.synced(block, |_| ());
            rotate_and_recurse(block, tile, 2);
        },
    ];
    for i in 0..4 {
        steps[i % 2](&block, &mut tile);
    }
    block.threads_with((&mut y, &mut tile), |_, (y, tile)| {
        if let (Some(y), Some(element)) = (y.first(), tile.first()) {
            *y = *element;
        }
    });
}

/// The text of a constant looks like LLVM IR.
pub const TEXT: &str = "@curium.kernel.x \"; !dbg !1 } { \\22 \n%s%n c\"x\" ä\0 define nsz ";

/// Texts and names that the compiler of kernels must not take for IR, tables of texts and
/// functions, and values that the compiler does not know.
#[kernel]
pub fn texts(t: Thread, mut y: PerThread<u32>) {
    static TEXTS: [&str; 2] = [TEXT, "\u{7f}\"@\""];
    static FUNCTIONS: [fn(u32) -> u32; 2] = [größe, |x| x + 1];
    if let Some(y) = y.get(&t) {
        let text: u32 = TEXTS[t.index() % 2].bytes().map(u32::from).sum();
        *y = text + FUNCTIONS[t.index() % 2](core::hint::black_box(5));
    }
}

fn größe(x: u32) -> u32 {
    x * 2
}
