//! Small kernels, each for a part of the model.

use curium_kernel::prelude::*;
use curium_kernel::{
    Philox, dot4_i8, dot4_u8, pack_bf16, pack_f16, permute_bytes, unpack_bf16, unpack_f16,
};

/// Reverses each part of 256 elements.
#[kernel]
pub fn reverse(block: Block<256>, mut tile: Shared<[u32; 256]>, x: &[u32], mut y: PerThread<u32>) {
    let start = block.index() * 256;
    tile.fill(&block, |_, i| x.get(start + i).copied().unwrap_or(0));
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                *y = tile[255 - t.index_in_block()];
            }
        });
    });
}

/// Reverses each part of as many elements as dynamic shared memory has.
#[kernel]
pub fn reverse_dynamic(
    block: Block<64>,
    mut tile: DynamicShared<u32>,
    x: &[u32],
    mut y: PerBlockRow<u32>,
) {
    let Some(mut y) = y.row(&block) else { return };
    let len = tile.len();
    let start = block.index() * len;
    tile.fill(&block, |_, i| x[start + i]);
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |_, y| {
            for (i, y) in y {
                *y = tile[len - 1 - i];
            }
        });
    });
}

/// The number of the thread in a block of three dimensions, and its coordinates.
#[kernel]
pub fn coordinates(block: Block<4, 2, 8>, mut index: PerThread<u32>, mut packed: PerThread<u32>) {
    block.threads_with((&mut index, &mut packed), |t, (index, packed)| {
        if let Some(index) = index.first() {
            *index = t.index_in_block() as u32;
        }
        if let Some(packed) = packed.first() {
            *packed = (t.z() * 256 + t.y() * 16 + t.x()) as u32;
        }
    });
}

/// The indices that each thread visits in a grid-stride loop.
#[kernel]
pub fn visitors(t: Thread, mut y: PerThread<u32>) {
    let index = t.index() as u32;
    for (_, y) in y.iter_mut(&t) {
        *y = index;
    }
}

/// Atomic operations of all kinds. Each result is independent of the order of threads.
#[kernel]
pub fn atomics(t: Thread, unsigned: &[Atomic<u32>], signed: &[Atomic<i64>], float: &[Atomic<f64>]) {
    let index = t.index() as u32;
    unsigned[0].fetch_add(&t, index, Relaxed);
    unsigned[1].fetch_max(&t, index, AcqRel);
    unsigned[2].fetch_min(&t, index, SeqCst);
    unsigned[3].fetch_or(&t, 1 << (index % 32), Release);
    unsigned[4].fetch_and(&t, !(1 << (index % 8)), Acquire);
    unsigned[5].fetch_xor(&t, index, Relaxed);
    signed[0].fetch_add(&t, -i64::from(index), Relaxed);
    signed[1].fetch_min(&t, -i64::from(index), Relaxed);
    float[0].fetch_add(&t, 0.5, Relaxed);
    // A counter by compare-and-exchange.
    let mut current = unsigned[6].load(&t, Relaxed);
    while let Err(previous) = unsigned[6].compare_exchange(&t, current, current + 2, AcqRel) {
        current = previous;
    }
    if unsigned[7].swap(&t, 1, Relaxed) == 0 {
        unsigned[8].store(&t, 7, Relaxed);
    }
}

/// Operations of warps: each output has a row for each.
#[kernel]
pub fn warp_operations(block: Block<64>, mut y: PerBlockRow<u32>) {
    let index = block.threads(|t| t.index_in_block() as u32);
    let results = block.warps_with(&index, |warp, index| {
        let first = warp.broadcast(index, 0);
        let sum = warp.sum(index);
        let max = warp.reduce(index, u32::max);
        let even = warp.lanes_with(index, |_, index| index % 2 == 0);
        let ballot = warp.ballot(&even);
        let flipped = warp.shuffle_xor(index, 5);
        let below = warp.shuffle_up(index, 3);
        let above = warp.shuffle_down(index, 3);
        let source = warp.lanes(|lane| 31 - lane.index());
        let reversed = warp.shuffle(index, &source);
        let prefix = warp.inclusive_scan(index, |a, b| a + b);
        let any = u32::from(warp.any(&even)) + 2 * u32::from(warp.all(&even));
        warp.lanes_with(
            (&flipped, &below, &above, &reversed, &prefix),
            |_, (flipped, below, above, reversed, prefix)| {
                [
                    first, sum, max, ballot, *flipped, *below, *above, *reversed, *prefix, any,
                ]
            },
        )
    });
    let results = results.into_registers();
    let Some(mut y) = y.row(&block) else { return };
    for operation in 0..10 {
        block.threads_with((&mut y, &results), |_, (y, results)| {
            for (i, y) in y {
                if i / 64 == operation {
                    *y = results[operation];
                }
            }
        });
    }
}

/// Votes of a block.
#[kernel]
pub fn votes(block: Block<96>, first: u32, end: u32, mut y: PerBlock<[u32; 3]>) {
    let is_between = block.threads(|t| (first..end).contains(&(t.index_in_block() as u32)));
    let any = u32::from(block.any(&is_between));
    let all = u32::from(block.all(&is_between));
    let count = block.count(&is_between) as u32;
    y.set(&block, [any, all, count]);
}

/// Reductions of a block of 96 threads, which is no power of two of warps.
#[kernel]
pub fn reductions(
    block: Block<96>,
    mut wide: Scratch<u64>,
    mut float: Scratch<f64>,
    x: &[u64],
    mut sums: PerBlock<u64>,
    mut largest: PerBlock<f64>,
    mut before: PerThread<u64>,
) {
    let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0));
    sums.set(&block, block.sum(&own, &mut wide));
    let own_float = block.threads_with(&own, |_, x| *x as f64);
    largest.set(&block, block.reduce(&own_float, &mut float, f64::max));
    let (exclusive, _) = block.exclusive_scan(&own, 0, &mut wide, |a, b| a + b);
    block.threads_with((&mut before, &exclusive), |_, (before, exclusive)| {
        if let Some(before) = before.first() {
            *before = *exclusive;
        }
    });
}

/// A branch of the block on a sum of floats, with barriers inside. A sum that differs between
/// threads would split the block.
#[kernel]
pub fn branch_on_sum(
    block: Block<128>,
    mut scratch: Scratch<f32>,
    mut tile: Shared<[f32; 128]>,
    x: &[f32],
    mut y: PerThread<f32>,
) {
    let own = block.threads(|t| x[t.index_in_grid()] * x[t.index_in_block()]);
    let mut sum = block.sum(&own, &mut scratch);
    let mut steps = 0;
    while sum > 1.0 && steps < 8 {
        tile.fill(&block, |t, _| sum * x[t.index_in_block()]);
        let next = tile.synced(&block, |tile| {
            block.threads(|t| tile[127 - t.index_in_block()])
        });
        sum = block.sum(&next, &mut scratch) / 128.0;
        steps += 1;
    }
    block.threads_with(&mut y, |_, y| {
        if let Some(y) = y.first() {
            *y = sum;
        }
    });
}

/// Barriers behind a function pointer and a trait object. The compiler must not duplicate them into
/// the branches of threads.
trait Step {
    fn run(&self, block: &Block<64>, tile: &mut Shared<[u32; 64]>);
}

type Function = fn(&Block<64>, &mut Shared<[u32; 64]>);

struct Rotate(usize);

impl Step for Rotate {
    fn run(&self, block: &Block<64>, tile: &mut Shared<[u32; 64]>) {
        let moved = tile.synced(block, |tile| {
            block.threads(|t| tile[(t.index_in_block() + self.0) % 64])
        });
        block.threads_with((tile, &moved), |_, (tile, moved)| {
            if let Some(element) = tile.first() {
                *element = *moved;
            }
        });
    }
}

struct Double;

impl Step for Double {
    fn run(&self, block: &Block<64>, tile: &mut Shared<[u32; 64]>) {
        double(block, tile);
    }
}

fn double(block: &Block<64>, tile: &mut Shared<[u32; 64]>) {
    tile.synced(block, |_| ());
    block.threads_with(tile, |_, tile| {
        for (_, element) in tile {
            *element *= 2;
        }
    });
}

/// Steps that are chosen at run time.
#[kernel]
pub fn indirect_barriers(
    block: Block<64>,
    mut tile: Shared<[u32; 64]>,
    program: &[u32],
    mut y: PerThread<u32>,
) {
    tile.fill(&block, |_, i| i as u32);
    let functions: [Function; 2] = [double, |block, tile| Rotate(3).run(block, tile)];
    for step in program {
        let parity = block.threads(|t| t.index_in_block() % 2);
        let steps: [&dyn Step; 2] = [&Rotate(1), &Double];
        match step {
            0 | 1 => steps[*step as usize].run(&block, &mut tile),
            _ => functions[*step as usize % 2](&block, &mut tile),
        }
        block.threads_with((&mut tile, &parity), |_, (tile, parity)| {
            if *parity == 1 {
                for (_, element) in tile {
                    *element += 1;
                }
            }
        });
    }
    block.threads_with((&mut y, &mut tile), |_, (y, tile)| {
        if let (Some(y), Some(element)) = (y.first(), tile.first()) {
            *y = *element;
        }
    });
}

/// An early return between barriers, for all threads of a block at once.
#[kernel]
pub fn early_return(
    block: Block<64>,
    mut tile: Shared<[u32; 64]>,
    limit: u32,
    mut y: PerThread<u32>,
) {
    tile.fill(&block, |_, i| i as u32);
    if block.index() as u32 >= limit {
        return;
    }
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                *y = tile[63 - t.index_in_block()];
            }
        });
    });
}

/// Threads that return early within their own code.
#[kernel]
pub fn thread_returns(block: Block<64>, mut scratch: Scratch<u32>, mut y: PerBlock<u32>) {
    let value = block.threads(|t| {
        if t.index_in_block() % 3 == 0 {
            return 0;
        }
        t.index_in_block() as u32
    });
    y.set(&block, block.sum(&value, &mut scratch));
}

/// One thread owns the only element. The others must not load it, even if they do not use the
/// value.
#[kernel]
pub fn single_owner(
    block: Block<64>,
    mut tile: Shared<[f64; 1]>,
    rounds: u32,
    mut y: PerBlock<f64>,
) {
    tile.fill(&block, |_, _| 1.0);
    for _ in 0..rounds {
        block.threads_with(&mut tile, |_, tile| {
            if let Some(element) = tile.first() {
                *element *= 5.0;
            }
        });
    }
    block.threads_with(&mut tile, |_, tile| {
        if let Some(element) = tile.first()
            && *element < 1000.0
        {
            *element += 1.0;
        }
    });
    let product = tile.synced(&block, |tile| tile[0]);
    y.set(&block, product);
}

/// Numbers of Philox, one sequence for each thread.
#[kernel]
pub fn random(t: Thread, seed: u64, mut y: PerThreadChunk<u32, 6>) {
    let mut random = Philox::new(seed, t.index() as u64);
    for y in y.get(&t) {
        *y = random.next_u32();
    }
}

/// Instructions on the bytes and halves of words.
#[kernel]
pub fn instructions(t: Thread, a: &[u32], b: &[u32], mut y: PerThreadChunk<u32, 8>) {
    let (Some(&a), Some(&b)) = (a.get(t.index()), b.get(t.index())) else {
        return;
    };
    let [low, high] = unpack_f16(a);
    let [bf_low, bf_high] = unpack_bf16(a);
    let results = [
        dot4_u8(a, b, 7),
        dot4_i8(a, b, -7).cast_unsigned(),
        permute_bytes(a, b, 0x7250),
        pack_f16(low, high),
        pack_bf16(bf_low, bf_high),
        a.count_ones() + (b.leading_zeros() << 8) + (b.trailing_zeros() << 16),
        a.saturating_add(b),
        a.reverse_bits() ^ b.rotate_left(5),
    ];
    for (y, result) in y.get(&t).iter_mut().zip(results) {
        *y = result;
    }
}

/// Functions of floating-point numbers: those that are exact, and errors of the others.
#[kernel]
pub fn functions(t: Thread, x: &[f32], mut y: PerThreadChunk<f32, 14>) {
    let Some(&x) = x.get(t.index()) else { return };
    let results = [
        Float::sqrt(x),
        Float::mul_add(x, x, 0.1),
        Float::floor(x),
        Float::ceil(x),
        Float::trunc(x),
        Float::round_ties_even(x),
        Float::exp(x),
        x.fast_exp(),
        x.fast_exp2(),
        x.fast_ln(),
        x.fast_sin(),
        x.fast_cos(),
        x.fast_recip(),
        x.fast_rsqrt(),
    ];
    for (y, result) in y.get(&t).iter_mut().zip(results) {
        *y = result;
    }
}

/// A type whose name is that of an output, and a parameter whose name is one of the launcher's.
pub mod aliases {
    use curium_kernel::prelude::*;

    type Output = PerThread<u32>;
    #[allow(
        non_camel_case_types,
        reason = "the macro must not depend on the meaning of names"
    )]
    type usize = u8;

    /// Generated names do not collide with parameters.
    #[kernel]
    pub fn named_like_the_launcher(
        t: Thread,
        stream: u32,
        grid: u32,
        call: u32,
        launch: u32,
        attributes: usize,
        mut entry: Output,
    ) {
        if let Some(entry) = entry.get(&t) {
            *entry = stream + grid + call + launch + u32::from(attributes);
        }
    }
}
