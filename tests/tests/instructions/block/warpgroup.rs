//! `wgmma`: matrix products by four warps, from registers and from shared memory in every layout.

use super::held::{Held, Registers, Sizes};
use super::sparse::Metadata;
use super::tensor_core::{Dot, Kind, Maker, Random};
use super::{BlockForm, register_vector};

const THREADS: usize = 128;
/// The offset of B in shared memory, after A.
const B: usize = 8192;
/// The size of shared memory in bytes.
const IMAGE: usize = 40960;

/// The types of the result, A and B.
const REALS: [[&str; 3]; 12] = [
    ["f16", "f16", "f16"],
    ["f32", "f16", "f16"],
    ["f32", "bf16", "bf16"],
    ["f32", "tf32", "tf32"],
    ["f16", "e4m3", "e4m3"],
    ["f16", "e4m3", "e5m2"],
    ["f16", "e5m2", "e4m3"],
    ["f16", "e5m2", "e5m2"],
    ["f32", "e4m3", "e4m3"],
    ["f32", "e4m3", "e5m2"],
    ["f32", "e5m2", "e4m3"],
    ["f32", "e5m2", "e5m2"],
];
const INTEGERS: [[&str; 3]; 5] = [
    ["s32", "s8", "s8"],
    ["s32", "s8", "u8"],
    ["s32", "u8", "s8"],
    ["s32", "u8", "u8"],
    ["s32", "b1", "b1"],
];

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (at, kinds) in REALS.into_iter().chain(INTEGERS).enumerate() {
        // The largest sizes alternate; bit products, which are slow, have only small ones.
        let largest = if kinds[1] == "b1" {
            16
        } else {
            [256, 16, 128][at % 3]
        };
        for (columns, is_sparse) in [
            (8, false),
            (24, false),
            (64, false),
            (largest, false),
            (8, true),
            (64, true),
        ] {
            if is_sparse && kinds[1] == "b1" {
                continue;
            }
            for is_shared in [false, true] {
                forms.push(Case {
                    columns,
                    is_sparse,
                    is_shared,
                    ..Case::new(kinds, forms.len())
                });
            }
        }
    }
    // Every layout of A and B.
    for kinds in [REALS[1], REALS[3], INTEGERS[1]] {
        for (is_sparse, a, b) in (0..32).map(|index| (index >= 16, index % 4, index / 4 % 4)) {
            let turned: &[[bool; 2]] = if Kind::from_name(kinds[1]).bits() == 16 {
                &[[false, false], [false, true], [true, false], [true, true]]
            } else {
                &[[false; 2]]
            };
            for &is_turned in turned {
                let modes = [
                    Mode::from_number(a, false),
                    Mode::from_number(b, a % 2 == 1),
                ];
                forms.push(Case {
                    columns: 32,
                    is_sparse,
                    modes,
                    is_turned,
                    ..Case::new(kinds, forms.len())
                });
            }
        }
    }
    // Rows that start within the pattern, and patterns with another base.
    for (width, base, ahead) in [
        (1, 0, 32),
        (1, 0, 64),
        (1, 0, 96),
        (2, 0, 32),
        (1, 3, 0),
        (1, 6, 32),
        (2, 1, 0),
        (3, 1, 0),
    ] {
        let mode = Mode {
            base,
            ahead,
            ..Mode::from_number(width, false)
        };
        forms.push(Case {
            modes: [mode; 2],
            columns: 32,
            ..Case::new(REALS[1], forms.len())
        });
    }
    for kinds in &INTEGERS[..4] {
        for is_sparse in [false, true] {
            forms.push(Case {
                saturates: true,
                is_sparse,
                ..Case::new(*kinds, forms.len())
            });
        }
    }
    forms.into_iter().map(Case::form).collect()
}

/// The layout of a matrix in shared memory.
#[derive(Clone, Copy)]
struct Mode {
    /// The swizzle number of the descriptor: none, 128, 64 or 32 bytes.
    number: u64,
    /// The bytes of a row in the pattern.
    width: usize,
    /// The bytes skipped between parts.
    gap: usize,
    /// The 128-byte rows before the pattern.
    base: usize,
    /// The bytes skipped at the start of a row.
    ahead: usize,
}

impl Mode {
    fn from_number(number: usize, has_gap: bool) -> Self {
        let width = [16, 128, 64, 32][number];
        // 1024-byte patterns are aligned to 1024 bytes.
        let gap = if has_gap {
            [128, 1024, 512, 256][number]
        } else {
            0
        };
        Self {
            number: number as u64,
            width,
            gap,
            base: 0,
            ahead: 0,
        }
    }
}

/// A matrix in shared memory, with rows of `inner` elements of this many bytes, or with columns if
/// it is transposed.
struct Place {
    mode: Mode,
    is_turned: bool,
    leading: usize,
    stride: usize,
}

impl Place {
    /// Creates a location for a matrix of this many rows; its parts are contiguous.
    fn new(mode: Mode, is_turned: bool, rows: usize) -> Self {
        let Mode { width, gap, .. } = mode;
        let core = 8 * width + gap;
        if !is_turned {
            let groups = rows.div_ceil(8);
            return Self {
                mode,
                is_turned,
                leading: core * groups,
                stride: core,
            };
        }
        // Two-byte elements: a part has as many rows as a pattern row holds, and eight locations.
        let across = core;
        let along = core * (2 * rows).div_ceil(width);
        if width == 16 {
            Self {
                mode,
                is_turned,
                leading: along,
                stride: across,
            }
        } else {
            Self {
                mode,
                is_turned,
                leading: across,
                stride: along,
            }
        }
    }

    /// Returns the location of a byte of an element, relative to the start of the pattern.
    fn offset(&self, row: usize, byte: usize) -> usize {
        let Mode { width, ahead, .. } = self.mode;
        let plain = if self.is_turned {
            // Here a row is an index of the inner dimension, and bytes are consecutive across it.
            let (next, down) = if width == 16 {
                (self.stride, self.leading)
            } else {
                (self.leading, self.stride)
            };
            byte % width + byte / width * next + row % 8 * width + row / 8 * down
        } else {
            byte % width + byte / width * self.leading + row % 8 * width + row / 8 * self.stride
        };
        let linear = plain + ahead;
        // In each row of 128 bytes, the bits of the row number permute the bits of the piece
        // number.
        linear ^ (linear >> 3 & (width - 16))
    }

    /// Returns the upper bits of a descriptor, and the offset of its start from the start of the
    /// tile.
    fn descriptor(&self, start: usize) -> (u64, u64) {
        let Mode {
            number,
            base,
            ahead,
            ..
        } = self.mode;
        let upper = descriptor_field(self.leading) << 16
            | descriptor_field(self.stride) << 32
            | (base as u64) << 49
            | number << 62;
        (upper, descriptor_field(start + 128 * base + ahead))
    }
}

/// Returns a size as a field of a descriptor.
fn descriptor_field(bytes: usize) -> u64 {
    (bytes / 16) as u64
}

/// One `wgmma` form.
#[derive(Clone)]
struct Case {
    kinds: [&'static str; 3],
    columns: usize,
    is_sparse: bool,
    is_shared: bool,
    modes: [Mode; 2],
    is_turned: [bool; 2],
    /// The negation flags of A and B.
    signs: [bool; 2],
    /// The operand that selects whether the result is added to the accumulator.
    scale: &'static str,
    saturates: bool,
    selector: u32,
}

impl Case {
    /// Creates a form; variants that do not affect each other alternate with `turn`.
    fn new(kinds: [&'static str; 3], turn: usize) -> Self {
        let is_integer = matches!(Kind::from_name(kinds[1]), Kind::Integer { .. });
        Self {
            kinds,
            columns: 24,
            is_sparse: false,
            is_shared: true,
            modes: [
                Mode::from_number(turn % 4, false),
                Mode::from_number(turn / 3 % 4, false),
            ],
            is_turned: [false; 2],
            signs: if is_integer {
                [false; 2]
            } else {
                [turn % 2 == 1, turn % 3 == 1]
            },
            scale: ["%true", "%false", "!%false", "!%true", "%true", "1", "0"][turn % 7],
            saturates: false,
            selector: (turn % 2) as u32,
        }
    }

    fn inner(&self) -> usize {
        self.held() * if self.is_sparse { 2 } else { 1 }
    }

    /// Returns the number of stored elements in a row of A: 32 bytes.
    fn held(&self) -> usize {
        256 / Kind::from_name(self.kinds[1]).bits() as usize
    }

    fn selector(&self) -> u32 {
        if Kind::from_name(self.kinds[1]).bits() == 8 {
            0
        } else {
            self.selector
        }
    }

    fn results(&self) -> usize {
        self.columns / if self.kinds[0] == "f16" { 4 } else { 2 }
    }

    fn places(&self) -> [Place; 2] {
        [
            Place::new(self.modes[0], self.is_turned[0], 64),
            Place::new(self.modes[1], self.is_turned[1], self.columns),
        ]
    }

    fn spelling(&self) -> String {
        let [result, left, right] = self.kinds;
        let sparse = if self.is_sparse { ".sp" } else { "" };
        let clamps = if self.saturates { ".satfinite" } else { "" };
        let how = if left == "b1" { ".and.popc" } else { "" };
        let n = self.columns;
        let k = self.inner();
        format!(
            "wgmma.mma_async{sparse}.sync.aligned.m64n{n}k{k}{clamps}.{result}.{left}.{right}{how}"
        )
    }

    fn name(&self) -> String {
        let mode = |at: usize| {
            let Mode {
                number,
                gap,
                base,
                ahead,
                ..
            } = self.modes[at];
            format!(
                "{number}/{gap}/{base}/{ahead}{}",
                if self.is_turned[at] { "t" } else { "" }
            )
        };
        let a = if self.is_shared {
            mode(0)
        } else {
            "registers".to_owned()
        };
        let Self { signs, scale, .. } = self;
        format!(
            "{} {a} {} {signs:?} {scale} {}",
            self.spelling(),
            mode(1),
            self.selector()
        )
    }

    fn form(self) -> BlockForm {
        let [a, b] = self.places();
        let mut code = String::from("shr.u32 %at, %tile, 4;\n    ");
        for (name, (upper, start)) in [("%a", a.descriptor(0)), ("%b", b.descriptor(B))] {
            code += &format!(
                "add.u32 %value, %at, {start}; cvt.u64.u32 {name}, %value; or.b64 {name}, {name}, {upper:#x};\n    "
            );
        }
        let results = self.results();
        let operand = if self.is_shared {
            "%a".to_owned()
        } else {
            register_vector('i', 1, 4)
        };
        let sparse = if self.is_sparse {
            format!(", %i0, {}", self.selector())
        } else {
            String::new()
        };
        let is_integer = self.kinds[0] == "s32";
        let is_half = Kind::from_name(self.kinds[1]).bits() == 16;
        let mut immediates = String::new();
        if !is_integer {
            let sign = |is_negative: bool| if is_negative { -1 } else { 1 };
            immediates += &format!(", {}, {}", sign(self.signs[0]), sign(self.signs[1]));
        }
        if is_half && self.is_shared {
            immediates += &format!(", {}", u8::from(self.is_turned[0]));
        }
        if is_half {
            immediates += &format!(", {}", u8::from(self.is_turned[1]));
        }
        code += &format!(
            "wgmma.fence.sync.aligned;
    {} {}, {operand}, %b{sparse}, {}{immediates};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ",
            self.spelling(),
            register_vector('o', 0, results),
            self.scale
        );
        let sizes = Sizes {
            threads: THREADS,
            image: IMAGE,
            inputs: 5,
            results,
        };
        sizes
            .form(self.name(), &code, move || self.held_data())
            .needs_only(90)
    }

    fn held_data(&self) -> Held {
        let mut random = Random::new(&self.name());
        let [result, left, right] = self.kinds.map(Kind::from_name);
        let held = self.held();
        let inner = self.inner();
        let columns = self.columns;
        let mut some = |kind: Kind, count: usize| -> Vec<u64> {
            (0..count).map(|_| kind.any(&mut random)).collect()
        };
        let a = some(left, 64 * held);
        let b = some(right, inner * columns);
        let c = some(result, 64 * columns);
        let metadata = Metadata::new(left.bits(), inner, 64, &mut random);
        let mut image = vec![0_u8; IMAGE];
        let [place_a, place_b] = self.places();
        let mut inputs = Registers::new(5, THREADS);
        if self.is_shared {
            write(
                &mut image,
                &place_a,
                0,
                left.bits(),
                [64, held],
                |row, at| a[row * held + at],
            );
        }
        write(
            &mut image,
            &place_b,
            B,
            right.bits(),
            [columns, inner],
            |column, position| b[position * columns + column],
        );
        let each = 32 / left.bits() as usize;
        for (row, at) in (0..64).flat_map(|row| (0..held).map(move |index| (row, index))) {
            // Four threads share a row, each with the elements of every fourth register.
            let thread = row / 16 * 32 + row % 8 * 4 + at / each % 4;
            let register = at / (4 * each) * 2 + row / 8 % 2;
            inputs.put(
                thread,
                (1 + register) * each + at % each,
                left.bits(),
                a[row * held + at],
            );
        }
        if self.is_sparse {
            metadata.put(&mut inputs.0[0], self.selector(), &mut random);
        }
        let is_added = ["%true", "!%false", "1"].contains(&self.scale);
        let mut before = Registers::new(self.results(), THREADS);
        let mut after = Registers::new(self.results(), THREADS);
        for (row, column) in (0..64).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let thread = row / 16 * 32 + row % 8 * 4 + column / 2 % 4;
            let slot = column / 8 * 4 + row / 8 % 2 * 2 + column % 2;
            let addend = c[row * columns + column];
            before.put(thread, slot, result.bits(), addend);
            let pairs: Vec<(u64, u64)> = (0..held)
                .map(|index| {
                    let inner = if self.is_sparse {
                        metadata.position(row, index)
                    } else {
                        index
                    };
                    (a[row * held + index], b[inner * columns + column])
                })
                .collect();
            let dot = Dot {
                maker: Maker::Warpgroup,
                factors: [left, right],
                ends: [result; 2],
                pairs: &pairs,
                addend: if is_added { addend } else { 0 },
                saturates: self.saturates,
                is_negated: self.signs[0] != self.signs[1],
            };
            after.put(thread, slot, result.bits(), dot.result());
        }
        Held {
            image,
            inputs: inputs.0,
            before: before.0,
            after: after.0,
        }
    }
}

/// Writes a matrix to an image: elements by row (for B, by column) and by index along the inner
/// dimension.
fn write(
    image: &mut [u8],
    to: &Place,
    start: usize,
    bits: u32,
    [rows, inner]: [usize; 2],
    element: impl Fn(usize, usize) -> u64,
) {
    // The start of the pattern, which an advanced descriptor does not move.
    let start = start + 128 * to.mode.base;
    for (row, index) in (0..rows).flat_map(|row| (0..inner).map(move |index| (row, index))) {
        let value = element(row, index);
        let (line, at) = if to.is_turned {
            (index, row)
        } else {
            (row, index)
        };
        if bits == 1 {
            image[start + to.offset(line, at / 8)] |= (value as u8) << (at % 8);
            continue;
        }
        let size = bits as usize / 8;
        let bytes = value.to_le_bytes();
        image[start + to.offset(line, at * size)..][..size].copy_from_slice(&bytes[..size]);
    }
}
