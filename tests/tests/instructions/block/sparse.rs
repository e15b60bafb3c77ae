//! Sparse `mma`, with two of every four elements stored, and the first-generation `mma` by pairs of
//! quads.

use super::held::{Held, Registers, Sizes};
use super::pattern::expand;
use super::tensor_core::{Dot, Kind, Maker, Random};
use super::{BlockForm, register_vector};

const THREADS: usize = 64;

/// Shapes and types by minimum compute capability, with the number of thread selectors.
const SPARSE: [(u32, u32, &str); 13] = [
    (
        80,
        4,
        "m16n8k16.row.col.{f16.f16.f16.f16,f32.f16.f16.f32,f32.bf16.bf16.f32}",
    ),
    (
        80,
        2,
        "m16n8k32.row.col.{f16.f16.f16.f16,f32.f16.f16.f32,f32.bf16.bf16.f32}",
    ),
    (80, 4, "m16n8k8.row.col.f32.tf32.tf32.f32"),
    (80, 2, "m16n8k16.row.col.f32.tf32.tf32.f32"),
    (89, 1, "m16n8k64.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32"),
    (
        80,
        2,
        "m16n8k32.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
    ),
    (
        80,
        1,
        "m16n8k64.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
    ),
    (
        80,
        2,
        "m16n8k64.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
    ),
    (
        80,
        1,
        "m16n8k128.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
    ),
    // Every element is present, and the sums have any value.
    (
        80,
        0,
        "m16n8k{8,16}.row.col.{f16.f16.f16.f16,f32.f16.f16.f32,f32.bf16.bf16.f32}",
    ),
    (80, 0, "m16n8k{4,8}.row.col.f32.tf32.tf32.f32"),
    (
        89,
        0,
        "m16n8k{16,32}.row.col.{f16.{e4m3,e5m2}.{e4m3,e5m2}.f16,f32.{e4m3,e5m2}.{e4m3,e5m2}.f32}",
    ),
    (
        75,
        0,
        "m8n8k4.{row,col}.{row,col}.{f16.f16.f16.f16,f32.f16.f16.f16,f32.f16.f16.f32}",
    ),
];

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (architecture, selectors, pattern) in SPARSE {
        for rest in expand(pattern) {
            for selector in 0..selectors.max(1) {
                let heads: &[&str] = if selectors == 0 {
                    &["mma"]
                } else {
                    &["mma.sp", "mma.sp::ordered_metadata"]
                };
                for head in heads {
                    let spelling = format!("{head}.sync.aligned.{rest}");
                    forms.push(Case::parse(&spelling, selector).form().needs(architecture));
                }
            }
        }
    }
    forms
}

/// The metadata of a sparse matrix: the indices of its nonzero elements.
pub(super) struct Metadata {
    bits: u32,
    /// The bits of each group of each row.
    groups: Vec<Vec<u32>>,
}

impl Metadata {
    pub(super) fn new(bits: u32, inner: usize, rows: usize, random: &mut Random) -> Self {
        let width = match bits {
            32 => 2,
            4 => 8,
            _ => 4,
        };
        let mut group = || {
            // Two distinct indices of four, the lower first; a single-precision element uses a pair
            // of indices.
            let all: &[u32] = if bits == 32 {
                &[0b0100, 0b1110]
            } else {
                &[0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]
            };
            all[random.below(all.len())]
        };
        let groups = (0..rows)
            .map(|_| (0..inner / width).map(|_| group()).collect())
            .collect();
        Self { bits, groups }
    }

    /// Returns the column of a stored element.
    pub(super) fn position(&self, row: usize, at: usize) -> usize {
        let row = &self.groups[row];
        match self.bits {
            32 => 2 * at + index_in_group(row, at, 0) / 2,
            4 => 8 * (at / 4) + 2 * index_in_group(row, at / 4, at / 2 % 2) + at % 2,
            _ => 4 * (at / 2) + index_in_group(row, at / 2, at % 2),
        }
    }

    /// Stores the metadata in a register; lanes without metadata receive random bits.
    pub(super) fn put(&self, register: &mut [u32], selector: u32, random: &mut Random) {
        register.fill_with(|| random.next() as u32);
        let count = self.groups[0].len();
        let lanes = count.div_ceil(4);
        for (row, groups) in self.groups.iter().enumerate() {
            for (at, bits) in groups.iter().enumerate() {
                let first = row / 16 * 32 + row % 8 * 4 + selector as usize * lanes;
                // A lane has eight groups of a row for bytes, and otherwise four of each of two
                // rows.
                let (lane, shift) = if self.bits <= 8 {
                    (at / 8 * 2 + row / 8 % 2, at % 8)
                } else {
                    (at / 4, row / 8 % 2 * 4 + at % 4)
                };
                let word = &mut register[first + lane];
                *word = *word & !(0xf << (4 * shift)) | bits << (4 * shift);
            }
        }
    }
}

/// Returns the index in its group of the first or second stored element.
fn index_in_group(row: &[u32], group: usize, second: usize) -> usize {
    (row[group] >> (2 * second) & 3) as usize
}

/// One sparse form.
#[derive(Clone)]
struct Case {
    spelling: String,
    rows: usize,
    inner: usize,
    /// The types of the result, A, B and the addend.
    kinds: [Kind; 4],
    /// `true` for A and B in column-major order.
    by_columns: [bool; 2],
    selector: u32,
    is_sparse: bool,
}

impl Case {
    fn parse(spelling: &str, selector: u32) -> Self {
        let words: Vec<&str> = spelling
            .split('.')
            .filter(|word| !["sp", "sp::ordered_metadata", "satfinite"].contains(word))
            .collect();
        let [_, _, _, shape, first, second, result, left, right, addend] = words[..] else {
            panic!("{spelling} is not a product")
        };
        let numbers: Vec<usize> = shape
            .split(char::is_alphabetic)
            .filter_map(|number| number.parse().ok())
            .collect();
        Self {
            spelling: spelling.to_owned(),
            rows: numbers[0],
            inner: numbers[2],
            kinds: [result, left, right, addend].map(Kind::from_name),
            by_columns: [first, second].map(|word| word == "col"),
            selector,
            is_sparse: spelling.starts_with("mma.sp"),
        }
    }

    fn is_quad_product(&self) -> bool {
        self.rows == 8
    }

    /// Returns the number of stored elements in a row of A.
    fn held(&self) -> usize {
        if self.is_sparse {
            self.inner / 2
        } else {
            self.inner
        }
    }

    /// Returns the number of registers of the result, A, B and the addend.
    fn counts(&self) -> [usize; 4] {
        let lanes = if self.is_quad_product() { 8 } else { 32 };
        let count = |elements: usize, kind: Kind| elements * kind.bits() as usize / 32 / lanes;
        let [result, left, right, addend] = self.kinds;
        let ends = 8 * self.rows;
        [
            count(ends, result),
            count(self.rows * self.held(), left),
            count(8 * self.inner, right),
            count(ends, addend),
        ]
    }

    fn form(self) -> BlockForm {
        let [results, left, right, addends] = self.counts();
        let metadata = if self.is_sparse {
            format!(", %i0, {}", self.selector)
        } else {
            String::new()
        };
        let code = format!(
            "{} {}, {}, {}, {}{metadata};",
            self.spelling,
            register_vector('o', 0, results),
            register_vector('i', 1, left),
            register_vector('i', 1 + left, right),
            register_vector('i', 1 + left + right, addends)
        );
        let name = format!("{} of any {}", self.spelling, self.selector);
        let sizes = Sizes {
            threads: THREADS,
            image: 0,
            inputs: 1 + left + right + addends,
            results,
        };
        sizes.form(name, &code, move || self.held_data())
    }

    /// Returns the thread and slot of an element of A.
    fn a_location(&self, row: usize, at: usize) -> (usize, usize) {
        if self.is_quad_product() {
            return in_quads(row, at, self.by_columns[0]);
        }
        let each = 32 / self.kinds[1].bits() as usize;
        (
            row % 8 * 4 + at / each % 4,
            (at / (4 * each) * 2 + row / 8) * each + at % each,
        )
    }

    /// Returns the thread and slot of an element of B.
    fn b_location(&self, position: usize, column: usize) -> (usize, usize) {
        if self.is_quad_product() {
            return in_quads(column, position, !self.by_columns[1]);
        }
        let each = 32 / self.kinds[2].bits() as usize;
        (
            column * 4 + position / each % 4,
            position / (4 * each) * each + position % each,
        )
    }

    /// Returns the thread and slot of an element of the result or the addend.
    fn accumulator_location(&self, row: usize, column: usize, kind: Kind) -> (usize, usize) {
        match (self.is_quad_product(), kind.bits()) {
            (false, _) => (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2),
            (true, 16) => (row % 4 + row / 4 * 16, column),
            (true, _) => (
                row % 2 + (column & 2) + row / 4 * 16,
                (row & 2) + (column & 4) + column % 2,
            ),
        }
    }

    fn held_data(&self) -> Held {
        let mut random = Random::new(&format!("{} {}", self.spelling, self.selector));
        let [result, left, right, end] = self.kinds;
        let [results, lefts, rights, addends] = self.counts();
        let mut inputs = Registers::new(1 + lefts + rights + addends, THREADS);
        let mut after = Registers::new(results, THREADS);
        let metadata_rows = THREADS / 32 * 16;
        let quads = if self.is_quad_product() { 4 } else { 1 };
        let metadata = Metadata::new(left.bits(), self.inner, metadata_rows, &mut random);
        if self.is_sparse {
            metadata.put(&mut inputs.0[0], self.selector, &mut random);
        }
        for (warp, quad) in
            (0..THREADS / 32).flat_map(|warp| (0..quads).map(move |quad| (warp, quad)))
        {
            let put = |to: &mut Registers,
                       first: usize,
                       kind: Kind,
                       location: (usize, usize),
                       element: u64| {
                let (lane, slot) = location;
                to.put(
                    warp * 32 + quad * 4 + lane,
                    first * (32 / kind.bits() as usize) + slot,
                    kind.bits(),
                    element,
                );
            };
            let mut some = |kind: Kind, count: usize| -> Vec<u64> {
                (0..count).map(|_| kind.any(&mut random)).collect()
            };
            let held = self.held();
            let a = some(left, self.rows * held);
            let b = some(right, 8 * self.inner);
            let c = some(end, 8 * self.rows);
            for (at, element) in a.iter().enumerate() {
                let location = self.a_location(at / held, at % held);
                put(&mut inputs, 1, left, location, *element);
            }
            for (at, element) in b.iter().enumerate() {
                let location = self.b_location(at % self.inner, at / self.inner);
                put(&mut inputs, 1 + lefts, right, location, *element);
            }
            for (at, addend) in c.iter().enumerate() {
                let row = at / 8;
                let column = at % 8;
                put(
                    &mut inputs,
                    1 + lefts + rights,
                    end,
                    self.accumulator_location(row, column, end),
                    *addend,
                );
                let pairs: Vec<(u64, u64)> = (0..held)
                    .map(|index| {
                        let inner = if self.is_sparse {
                            metadata.position(warp * 16 + row, index)
                        } else {
                            index
                        };
                        (a[row * held + index], b[column * self.inner + inner])
                    })
                    .collect();
                let dot = Dot {
                    maker: if self.is_quad_product() {
                        Maker::QuadPair
                    } else {
                        Maker::Warp
                    },
                    factors: [left, right],
                    ends: [result, end],
                    pairs: &pairs,
                    addend: *addend,
                    saturates: self.spelling.contains("satfinite"),
                    is_negated: false,
                };
                put(
                    &mut after,
                    0,
                    result,
                    self.accumulator_location(row, column, result),
                    dot.result(),
                );
            }
        }
        let before = Registers::new(results, THREADS);
        Held {
            image: Vec::new(),
            inputs: inputs.0,
            before: before.0,
            after: after.0,
        }
    }
}

/// Returns the thread and slot in two quads: four neighbors along the inner dimension per lane, or
/// across it.
fn in_quads(across: usize, along: usize, is_turned: bool) -> (usize, usize) {
    let (lane, slot) = if is_turned {
        (along, across % 4)
    } else {
        (across % 4, along)
    };
    (lane + across / 4 * 16, slot)
}
