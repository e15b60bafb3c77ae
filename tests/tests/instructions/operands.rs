//! The operands of every form: all combinations of its edge values, followed by seeded random ones.

use crate::form::{Form, Operand, Sources};
use crate::reference::real::{F32, F64, Format};

/// The number of threads, each with operands of its own.
pub(crate) const COUNT: usize = 1024;
/// The number of threads that have only edge values.
const EDGES: usize = 640;

/// The splitmix64 generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Returns a random number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Returns a hash of a text.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Returns the operands of a form.
pub(crate) fn operands(form: &Form) -> Vec<Sources> {
    let mut random = Random(hash(form.name.bytes()));
    let edges: Vec<Vec<u64>> = form.sources.iter().map(|operand| edges(*operand)).collect();
    let crossed: usize = edges.iter().map(Vec::len).product();
    let mut tuples = Vec::with_capacity(COUNT);
    for index in 0..crossed.min(EDGES) {
        // All combinations if there is room, otherwise some of them.
        let mut digits = if crossed <= EDGES {
            index
        } else {
            random.below(crossed)
        };
        let mut sources = [0; 4];
        for (source, edges) in sources.iter_mut().zip(&edges) {
            *source = edges[digits % edges.len()];
            digits /= edges.len();
        }
        tuples.push(sources);
    }
    while tuples.len() < COUNT {
        let mut sources = [0; 4];
        for (source, (operand, edges)) in sources.iter_mut().zip(form.sources.iter().zip(&edges)) {
            let is_edge = random.below(8) == 0;
            *source = if is_edge {
                edges[random.below(edges.len())]
            } else {
                value(*operand, &mut random)
            };
        }
        tuples.push(sources);
    }
    tuples
}

/// Returns words for the threads of a block, a quarter of which are edge values, seeded with a
/// name.
pub(crate) fn words(name: &str, threads: usize) -> Vec<Sources> {
    let mut random = Random(hash(name.bytes()));
    let edges = [
        integer_edges(64),
        integer_edges(32),
        float_edges(F32),
        float_edges(F64),
    ]
    .concat();
    let mut word = || match random.below(4) {
        0 => edges[random.below(edges.len())],
        _ => random.next(),
    };
    (0..threads)
        .map(|_| std::array::from_fn(|_| word()))
        .collect()
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn edges(operand: Operand) -> Vec<u64> {
    match operand {
        Operand::Truth => vec![0, 1],
        Operand::Count => vec![
            0,
            1,
            2,
            7,
            8,
            15,
            16,
            17,
            24,
            30,
            31,
            32,
            33,
            47,
            48,
            63,
            64,
            65,
            127,
            128,
            255,
            256,
            257,
            288,
            0xffff,
            0x8000_0000,
            0xffff_fff8,
            0xffff_ffff,
        ],
        Operand::Float(format) => float_edges(format),
        Operand::Pair(format) => pairs(&float_edges(format), format.width),
        Operand::Halves => pairs(&integer_edges(16), 16),
        Operand::Bytes => pairs(&pairs(&integer_edges(8), 8), 16),
        _ => integer_edges(operand.bits()),
    }
}

/// Pairs each edge value with one from the other end of the list, packed in a register.
fn pairs(edges: &[u64], width: u32) -> Vec<u64> {
    edges
        .iter()
        .zip(edges.iter().rev())
        .map(|(low, high)| low | high << width)
        .collect()
}

fn integer_edges(bits: u32) -> Vec<u64> {
    let top = 1_u64 << (bits - 1);
    let small = [0_u64, 1, 2, 3, 5, 7, 10, 0x55];
    let near = small.iter().flat_map(|value| {
        [
            *value,
            value.wrapping_neg(),
            value.wrapping_add(top),
            value.wrapping_sub(top),
        ]
    });
    let halves = [
        1 << (bits / 2),
        (1 << (bits / 2)) - 1,
        1 << (bits / 2 - 1),
        1 << (3 * bits / 4),
    ];
    let patterns = [
        0x5555_5555_5555_5555,
        0xAAAA_AAAA_AAAA_AAAA,
        0x0123_4567_89AB_CDEF,
    ];
    let mut edges: Vec<u64> = near
        .chain(halves)
        .chain(patterns)
        .map(|value| value & mask(bits))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn float_edges(format: Format) -> Vec<u64> {
    let sign = format.sign();
    let unit = 1_u64 << (format.precision - 1);
    let normal = unit;
    let infinity = format.infinity();
    let one = (infinity >> 1) & !(unit - 1);
    let mut edges = vec![
        0,
        1,
        2,
        normal / 2,
        normal - 1,
        normal,
        normal + 1,
        2 * normal,
    ];
    edges.extend([
        one - unit,
        one - 1,
        one,
        one + 1,
        one + unit / 2,
        one + unit,
        one + unit + unit / 2,
    ]);
    // Powers of two around the sizes of integers, if the format has them.
    for exponent in [3, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64] {
        let power = one + exponent * unit;
        if power + 1 < infinity {
            edges.extend([power - 1, power, power + 1]);
        }
    }
    edges.extend([
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + unit / 2,
        infinity + unit / 2 + 5,
        sign - 1,
    ]);
    edges.retain(|bits| *bits < sign);
    edges.sort_unstable();
    edges.dedup();
    edges.iter().flat_map(|bits| [*bits, bits | sign]).collect()
}

fn value(operand: Operand, random: &mut Random) -> u64 {
    match operand {
        Operand::Truth => random.next() & 1,
        Operand::Count => random.next() % 72,
        Operand::Float(format) => float(format, random),
        Operand::Pair(format) => float(format, random) | float(format, random) << format.width,
        Operand::Halves => integer(16, random) | integer(16, random) << 16,
        Operand::Bytes => (0..4).map(|byte| integer(8, random) << (8 * byte)).sum(),
        _ => integer(operand.bits(), random),
    }
}

/// Returns a random integer of any magnitude and sign.
fn integer(bits: u32, random: &mut Random) -> u64 {
    let value = random.next() >> random.below(64) & mask(bits);
    if random.next() & 1 == 0 {
        value
    } else {
        value.wrapping_neg() & mask(bits)
    }
}

/// Returns a random number of any magnitude, or with probability one half a number near 1, so that
/// sums do not degenerate.
fn float(format: Format, random: &mut Random) -> u64 {
    let bits = random.next() & mask(format.width);
    if random.next() & 1 == 0 {
        return bits;
    }
    let unit = 1_u64 << (format.precision - 1);
    let one = (format.infinity() >> 1) & !(unit - 1);
    let reach = (format.infinity() / unit / 2).min(12);
    let exponent = one - reach * unit + (random.next() % (2 * reach)) * unit;
    bits & (format.sign() | (unit - 1)) | exponent
}
