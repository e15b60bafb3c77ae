//! Bulk reductions: of contiguous bytes, and of tensor tiles.

use super::part::{Part, ROOM, TYPES, Wanted};
use super::store::written;
use super::{BlockForm, LEAVE_TENSOR, coordinates, form, left, prepared, tensor_outputs};
use crate::block::matrix::half;
use crate::operands::{Random, hash};
use crate::reference::real::{BF16, F16};

pub(in crate::block) fn forms() -> Vec<BlockForm> {
    let mut forms = byte_reductions();
    forms.extend(within_shared_memory());
    forms.extend(tensor_reductions());
    forms
}

/// The operations with the types they support in global memory, in the shared memory of a cluster,
/// and for tensor elements.
const OPERATIONS: [(&str, &str, &str, &str); 8] = [
    (
        "add",
        "u32 s32 u64 f32 f64 noftz.f16 noftz.bf16",
        "u32 s32 u64",
        "u32 s32 u64 f16 f32 f64 bf16",
    ),
    (
        "min",
        "u32 s32 u64 s64 f16 bf16",
        "u32 s32",
        "u32 s32 u64 s64 f16 bf16",
    ),
    (
        "max",
        "u32 s32 u64 s64 f16 bf16",
        "u32 s32",
        "u32 s32 u64 s64 f16 bf16",
    ),
    ("inc", "u32", "u32", "u32"),
    ("dec", "u32", "u32", "u32"),
    ("and", "b32 b64", "b32", "u32 s32 u64"),
    ("or", "b32 b64", "b32", "u32 s32 u64"),
    ("xor", "b32 b64", "b32", "u32 s32 u64"),
];

/// The names of the tensor element types, in the order of [`TYPES`].
const NAMES: [&str; 10] = [
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16",
];

/// Returns random values of a type as bytes: halves of small numbers for floating-point types,
/// whose sums are exact.
fn values(kind: &str, bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut value = || {
        let bits = random.next();
        let small = (bits % 65) as f64 / 2.0 - 16.0;
        match kind {
            "f16" => half(small).to_le_bytes()[..2].to_vec(),
            "bf16" => ((small as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
            "f32" => (small as f32).to_le_bytes().to_vec(),
            "f64" => small.to_le_bytes().to_vec(),
            // Some are small, so that they reach their bounds.
            _ if bits >> 60 == 0 => (bits % 4).to_le_bytes()[..width(kind)].to_vec(),
            _ => bits.to_le_bytes()[..width(kind)].to_vec(),
        }
    };
    (0..bytes / width(kind)).flat_map(|_| value()).collect()
}

/// Returns the size of a type in bytes.
fn width(kind: &str) -> usize {
    kind.trim_start_matches(char::is_alphabetic)
        .parse::<usize>()
        .expect("the type name ends with its number of bits")
        / 8
}

/// Converts between the bits of a floating-point type and the number they represent; both are exact
/// here.
fn number(kind: &str, bits: u64) -> f64 {
    match kind {
        "f16" => F16.value(bits),
        "bf16" => BF16.value(bits),
        "f32" => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

fn bits(kind: &str, number: f64) -> u64 {
    match kind {
        "f16" => half(number),
        "bf16" => u64::from((number as f32).to_bits() >> 16),
        "f32" => (number as f32).to_bits().into(),
        _ => number.to_bits(),
    }
}

fn is_less(kind: &str, old: u64, new: u64) -> bool {
    let signed = |bits: u64| (bits << (64 - 8 * width(kind))).cast_signed();
    match kind.as_bytes()[0] {
        b's' => signed(old) < signed(new),
        b'u' => old < new,
        _ => number(kind, old) < number(kind, new),
    }
}

/// Returns the result of an operation on a value in memory and another.
fn reduced(operation: &str, kind: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    let old = little_endian(old);
    let new = little_endian(new);
    let (least, most) = if is_less(kind, old, new) {
        (old, new)
    } else {
        (new, old)
    };
    let result = match operation {
        "add" if kind.contains('f') => bits(kind, number(kind, old) + number(kind, new)),
        "add" => old.wrapping_add(new),
        "min" => least,
        "max" => most,
        "inc" if old >= new => 0,
        "inc" => old + 1,
        "dec" if old == 0 || old > new => new,
        "dec" => old - 1,
        "and" => old & new,
        "or" => old | new,
        _ => old ^ new,
    };
    result.to_le_bytes()[..width(kind)].to_vec()
}

/// Returns the number that bytes represent.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0_u64, |word, byte| word << 8 | u64::from(*byte))
}

/// Fills shared memory with the bytes at an offset of the tensor.
fn fill_from(offset: usize) -> String {
    format!(
        "mul.wide.u32 %l22, %thread, 32; add.u64 %l22, %l22, %l21;
    ld.global.v2.b64 {{%l8, %l9}}, [%l22+{offset}]; ld.global.v2.b64 {{%l10, %l11}}, [%l22+{}];
    st.shared.v2.b64 [%r22], {{%l8, %l9}}; st.shared.v2.b64 [%r22+16], {{%l10, %l11}};",
        offset + 16
    )
}

/// Returns a row of bytes for tests that need no tile.
fn line() -> Part {
    Part::boxed(
        Wanted {
            kind: 0,
            rank: 1,
            swizzle: 0,
            interleave: 0,
            writes: true,
        },
        1,
    )
}

/// Reductions to global memory.
fn byte_reductions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (operation, types, ..) in OPERATIONS {
        for (spelled, hint) in types
            .split(' ')
            .flat_map(|kind| [(kind, ""), (kind, ".L2::cache_hint")])
        {
            let kind = spelled.trim_start_matches("noftz.");
            let spelling = format!(
                "cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{operation}.{spelled}"
            );
            let policy = if hint.is_empty() { "" } else { ", %l31" };
            let bytes = 16 + hash(spelling.bytes()) as usize % 128 * 16 % ROOM;
            let code = format!(
                "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;{}
    @%p1 {spelling} [%l21], [%r20], {bytes}{policy};{LEAVE_TENSOR}",
                prepared(&fill_from(ROOM))
            );
            let content = values(kind, 2 * ROOM, hash(spelling.bytes()));
            forms.push(form(spelling, code, &line(), content, move |_, content| {
                let (old, new) = content.split_at(ROOM);
                let pairs = old.chunks(width(kind)).zip(new.chunks(width(kind)));
                let reduced = pairs
                    .take(bytes / width(kind))
                    .flat_map(|(old, new)| reduced(operation, kind, old, new));
                tensor_outputs(
                    &reduced
                        .chain(old[bytes..].iter().copied())
                        .collect::<Vec<_>>(),
                )
            }));
        }
    }
    forms
}

/// Reductions within shared memory: the first half to the second, and back.
fn within_shared_memory() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (operation, _, types, _) in OPERATIONS {
        for kind in types.split(' ') {
            let spelling = format!(
                "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{kind}"
            );
            let half = ROOM / 2;
            let code = format!(
                "{}@%p1 mbarrier.arrive.expect_tx.shared.b64 %l24, [%r21], {half}; add.u32 %r23, %r20, {half};
    @%p1 {spelling} [%r23], [%r20], {half}, [%r21];{}",
                prepared(&fill_from(0)),
                super::LEAVE
            );
            let content = values(kind, ROOM, hash(spelling.bytes()));
            let form = form(spelling, code, &line(), content, move |_, content| {
                let (new, old) = content.split_at(half);
                let pairs = old.chunks(width(kind)).zip(new.chunks(width(kind)));
                let reduced = pairs.flat_map(|(old, new)| reduced(operation, kind, old, new));
                left(&new.iter().copied().chain(reduced).collect::<Vec<_>>())
            });
            // Between blocks of a cluster, so the kernel is launched with one.
            forms.push(form.in_clusters([1; 3], [1; 3]));
        }
    }
    forms
}

/// Reductions to tensor tiles, for each type that an operation supports.
fn tensor_reductions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (operation, .., types) in OPERATIONS {
        for (index, kind) in types.split(' ').enumerate() {
            for (number, rank) in [1, 2, 3].into_iter().enumerate() {
                let mode = ["", ".tile"][(index + number) % 2];
                let hint = ["", ".L2::cache_hint"][(index + number) / 2 % 2];
                let spelling = format!(
                    "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}{mode}.bulk_group{hint}"
                );
                let name = format!("{spelling} of {kind}");
                let number = NAMES
                    .iter()
                    .position(|name| *name == kind)
                    .expect("unknown tensor type");
                let wanted = Wanted {
                    kind: number,
                    rank,
                    swizzle: (index + rank) % 4,
                    interleave: 0,
                    writes: true,
                };
                let part = Part::boxed(wanted, hash(name.bytes()));
                assert_eq!(TYPES[number].1, width(kind));
                let room = part.content().len().max(ROOM);
                let (set, at) = coordinates(&part.at);
                let policy = if hint.is_empty() { "" } else { ", %l31" };
                let code = format!(
                    "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;{}{set}
    @%p1 {spelling} [%l20, {{{at}}}], [%r20]{policy};{LEAVE_TENSOR}",
                    prepared(&fill_from(room))
                );
                let content = values(kind, room + ROOM, hash(name.bytes()));
                forms.push(form(
                    name,
                    code,
                    &part.clone(),
                    content,
                    move |_, content| {
                        let (old, new) = content.split_at(room);
                        tensor_outputs(&written(&part, old, new, |old, new| {
                            reduced(operation, kind, old, new)
                        }))
                    },
                ));
            }
        }
    }
    forms
}
