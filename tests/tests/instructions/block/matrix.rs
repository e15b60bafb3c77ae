//! Matrix products held by a warp, and matrix loads and stores. The elements are small enough for
//! every sum to be exact, so that rounding does not affect the results.

use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes, register_vector};
use crate::form::Sources;
use crate::reference::real::{BF16, E4M3, E5M2, F16, F32, F64, Format};

/// Shapes, types and modifiers, by minimum compute capability.
const PATTERNS: [(u32, &str); 14] = [
    (75, "m16n8k8.row.col.{f16.f16.f16.f16,f32.f16.f16.f32}"),
    (80, "m16n8k16.row.col.{f16.f16.f16.f16,f32.f16.f16.f32}"),
    (80, "m16n8k{8,16}.row.col.f32.bf16.bf16.f32"),
    (80, "m16n8k{4,8}.row.col.f32.tf32.tf32.f32"),
    (80, "m8n8k4.row.col.f64.f64.f64.f64"),
    (90, "m16n8k{4,8,16}.row.col.f64.f64.f64.f64"),
    (
        89,
        "m16n8k{16,32}.row.col.{f16.{e4m3,e5m2}.{e4m3,e5m2}.f16,f32.{e4m3,e5m2}.{e4m3,e5m2}.f32}",
    ),
    (75, "m8n8k16.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32"),
    (
        80,
        "m16n8k{16,32}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
    ),
    (75, "m8n8k32.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32"),
    (
        80,
        "m16n8k{32,64}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
    ),
    (75, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc"),
    (80, "m8n8k128.row.col.s32.b1.b1.s32.and.popc"),
    (80, "m16n8k{128,256}.row.col.s32.b1.b1.s32.{xor,and}.popc"),
];

/// Returns the spellings of all products, each with its minimum compute capability.
pub(super) fn spellings() -> impl Iterator<Item = (u32, String)> {
    PATTERNS
        .into_iter()
        .flat_map(|(architecture, pattern)| {
            expand(pattern)
                .into_iter()
                .map(move |suffixes| (architecture, suffixes))
        })
        .map(|(architecture, rest)| (architecture, format!("mma.sync.aligned.{rest}")))
}

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    forms.extend(
        spellings()
            .map(|(architecture, spelling)| Product::parse(&spelling).form().needs(architecture)),
    );
    forms.extend(small_matrices());
    forms
}

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Real(Format),
    Integer { bits: u32, signed: bool },
}

impl Element {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "f16" => Self::Real(F16),
            "bf16" => Self::Real(BF16),
            "tf32" | "f32" => Self::Real(F32),
            "f64" => Self::Real(F64),
            "e4m3" => Self::Real(E4M3),
            "e5m2" => Self::Real(E5M2),
            _ => Self::Integer {
                bits: name[1..].parse().expect("the type has a width"),
                signed: name.starts_with('s'),
            },
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Real(format) => format.width,
            Self::Integer { bits, .. } => bits,
        }
    }

    /// The number of elements in a register.
    pub(super) fn each(self) -> usize {
        (32 / self.bits()).max(1) as usize
    }

    /// Returns the mask of a register, and the bits set in it: numbers of magnitude 1 to 1.75.
    pub(super) fn bounds(self) -> Option<(u64, u64)> {
        let Self::Real(format) = self else {
            return None;
        };
        let (mask, set) = match format.width {
            8 if format.precision == 4 => (0x86, 0x38),
            8 => (0x83, 0x3c),
            16 if format.precision == 11 => (0x8300, 0x3c00),
            16 => (0x8060, 0x3f80),
            32 => (0x8060_0000, 0x3f80_0000),
            _ => (0x800c_0000_0000_0000, 0x3ff0_0000_0000_0000),
        };
        let spread = |bits: u64| {
            (0..self.each()).fold(0, |all, at| all | bits << (at as u32 * format.width))
        };
        Some((spread(mask), spread(set)))
    }

    /// Returns the number represented by an element of a register.
    pub(super) fn number(self, register: u64, at: usize) -> f64 {
        let bits = register >> (at as u32 * self.bits()) & u64::MAX >> (64 - self.bits());
        match self {
            // The largest exponent represents numbers too, except for one NaN.
            Self::Real(E4M3) if (0x78..0x7f).contains(&(bits & 0x7f)) => {
                let magnitude = f64::from((bits as u32 & 7 | 8) << 5);
                if bits & 0x80 == 0 {
                    magnitude
                } else {
                    -magnitude
                }
            }
            Self::Real(format) => format.value(bits),
            Self::Integer {
                bits: width,
                signed: true,
            } => ((bits << (64 - width)).cast_signed() >> (64 - width)) as f64,
            Self::Integer { .. } => bits as f64,
        }
    }
}

/// A product `d = a × b + c`.
#[derive(Clone)]
pub(super) struct Product {
    pub(super) spelling: String,
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) result: Element,
    pub(super) left: Element,
    pub(super) right: Element,
}

impl Product {
    pub(super) fn parse(spelling: &str) -> Self {
        let words: Vec<&str> = spelling.split('.').collect();
        let (rows, rest) = words[3][1..].split_once('n').expect("a shape has columns");
        let inner = rest.split_once('k').expect("a shape has an inner extent").1;
        let types: Vec<&&str> = words[6..]
            .iter()
            .filter(|word| !["satfinite", "xor", "and", "popc"].contains(word))
            .collect();
        let number = |text: &str| text.parse().expect("a shape has numbers");
        Self {
            spelling: spelling.to_owned(),
            rows: number(rows),
            inner: number(inner),
            result: Element::from_name(types[0]),
            left: Element::from_name(types[1]),
            right: Element::from_name(types[2]),
        }
    }

    /// The number of registers of A, B and C.
    pub(super) fn registers(&self) -> [usize; 3] {
        let parts = self.inner / (4 * self.left.each());
        let results = if self.result.each() == 2 {
            self.rows / 8
        } else {
            self.rows / 4
        };
        [parts * (self.rows / 8), parts, results]
    }

    fn form(self) -> BlockForm {
        let [left, right, results] = self.registers();
        let elements = [
            (left, self.left),
            (right, self.right),
            (results, self.result),
        ];
        let is_double = self.left.bits() == 64;
        let mut code = String::new();
        let mut number = 0;
        let mut lists = Vec::new();
        for (count, element) in elements {
            let mut list = Vec::new();
            for _ in 0..count {
                let register = if is_double {
                    format!("%l{}", 4 + number)
                } else {
                    format!("%r{}", 4 + number)
                };
                code += &fill(number, &register, element, is_double);
                list.push(register);
                number += 1;
            }
            lists.push(format!("{{{}}}", list.join(", ")));
        }
        let class = if is_double { 'l' } else { 'r' };
        let first = if is_double { 20 } else { 4 + number };
        let to: Vec<String> = (0..results)
            .map(|index| format!("%{class}{}", first + index))
            .collect();
        code += &format!(
            "{} {{{}}}, {};\n",
            self.spelling,
            to.join(", "),
            lists.join(", ")
        );
        let size = if is_double { 8 } else { 4 };
        for (at, register) in to.iter().enumerate() {
            code += &format!(
                "    st.global.b{} [%out+{}], {register};\n",
                8 * size,
                at * size
            );
        }
        BlockForm::new(self.spelling.clone(), code, move |all, thread| {
            self.left_by(all, thread)
        })
    }

    /// Returns the bits of a lane's registers: first A, then B, then C.
    fn register(&self, lane: &Sources, matrix: usize, at: usize) -> u64 {
        let [left, right, _] = self.registers();
        let number = at + [0, left, left + right][matrix];
        let element = [self.left, self.right, self.result][matrix];
        let bits = raw(lane, number);
        let bits = if self.left.bits() == 64 {
            bits
        } else {
            bits & 0xffff_ffff
        };
        element
            .bounds()
            .map_or(bits, |(mask, set)| bits & mask | set)
    }

    /// Returns registers for all four operands with arbitrary contents.
    pub(super) fn operands(&self) -> String {
        let [left, right, results] = self.registers();
        let class = if self.left.bits() == 64 { 'l' } else { 'r' };
        format!(
            "{}, {}, {}, {}",
            register_vector(class, 8, results),
            register_vector(class, 8, left),
            register_vector(class, 8, right),
            register_vector(class, 8, results)
        )
    }

    /// Returns the lane, the register and the slot of an element of A.
    pub(super) fn a_location(&self, row: usize, position: usize) -> (usize, usize, usize) {
        let each = self.left.each();
        let part = position / (4 * each);
        let within = position % (4 * each);
        (
            row % 8 * 4 + within / each,
            part * (self.rows / 8) + row / 8,
            within % each,
        )
    }

    /// Returns the lane, the register and the slot of an element of B.
    pub(super) fn b_location(&self, position: usize, column: usize) -> (usize, usize, usize) {
        let each = self.right.each();
        let part = position / (4 * each);
        let within = position % (4 * each);
        (column * 4 + within / each, part, within % each)
    }

    fn a(&self, warp: &[Sources], row: usize, position: usize) -> f64 {
        let (lane, register, at) = self.a_location(row, position);
        self.left
            .number(self.register(&warp[lane], 0, register), at)
    }

    fn b(&self, warp: &[Sources], position: usize, column: usize) -> f64 {
        let (lane, register, at) = self.b_location(position, column);
        self.right
            .number(self.register(&warp[lane], 1, register), at)
    }

    /// Returns the lane, the register and the slot of an element of C or D.
    pub(super) fn home(&self, row: usize, column: usize) -> (usize, usize, usize) {
        let lane = row % 8 * 4 + column / 2;
        let within = column % 2;
        if self.result.each() == 2 {
            (lane, row / 8, within)
        } else {
            (lane, row / 8 * 2 + within, 0)
        }
    }

    fn element(&self, warp: &[Sources], row: usize, column: usize) -> f64 {
        let (lane, register, at) = self.home(row, column);
        let addend = self
            .result
            .number(self.register(&warp[lane], 2, register), at);
        let pairs =
            (0..self.inner).map(|index| (self.a(warp, row, index), self.b(warp, index, column)));
        let sum = addend
            + pairs
                .map(
                    |(a, b): (f64, f64)| match self.spelling.rsplit('.').nth(1) {
                        Some("xor") => f64::from(u8::from(a != b)),
                        _ => a * b,
                    },
                )
                .sum::<f64>();
        if !matches!(self.result, Element::Integer { .. }) {
            return sum;
        }
        if self.spelling.contains("satfinite") {
            return sum.clamp(f64::from(i32::MIN), f64::from(i32::MAX));
        }
        // Integer sums are exact here, and wrap.
        f64::from(sum as i64 as i32)
    }

    fn left_by(&self, all: &[Sources], thread: usize) -> Output {
        let warp = &all[thread / 32 * 32..][..32];
        let mut output = [0_u8; 32];
        for (row, column) in (0..self.rows).flat_map(|row| (0..8).map(move |column| (row, column)))
        {
            let (lane, register, at) = self.home(row, column);
            if lane != thread % 32 {
                continue;
            }
            let value = self.element(warp, row, column);
            let (bytes, size) = match self.result {
                Element::Real(F64) => (value.to_bits().to_le_bytes(), 8),
                Element::Real(F32) => (u64::from((value as f32).to_bits()).to_le_bytes(), 4),
                Element::Real(_) => (half(value).to_le_bytes(), 2),
                Element::Integer { .. } => {
                    (u64::from((value as i32).cast_unsigned()).to_le_bytes(), 4)
                }
            };
            let offset = register * size.max(4) + at * 2;
            output[offset..][..size].copy_from_slice(&bytes[..size]);
        }
        output_from_bytes(|index| output[index])
    }
}

/// Returns the 64 bits from which register `number` is derived.
pub(super) fn raw(lane: &Sources, number: usize) -> u64 {
    lane[number % 4].rotate_left(11 * (number / 4) as u32)
}

/// Returns code that initializes a register like `raw`, within the bounds of the element.
fn fill(number: usize, register: &str, element: Element, is_double: bool) -> String {
    let word = number % 4;
    let turn = 11 * (number / 4);
    let turned = if turn == 0 {
        format!("mov.b64 %l28, %l{word};")
    } else {
        format!(
            "shl.b64 %l28, %l{word}, {turn}; shr.u64 %l29, %l{word}, {}; or.b64 %l28, %l28, %l29;",
            64 - turn
        )
    };
    let narrow = if is_double {
        format!("mov.b64 {register}, %l28;")
    } else {
        format!("cvt.u32.u64 {register}, %l28;")
    };
    let bits = if is_double { 64 } else { 32 };
    let bound = element.bounds().map_or_else(String::new, |(mask, set)| {
        format!(" and.b{bits} {register}, {register}, {mask:#x}; or.b{bits} {register}, {register}, {set:#x};")
    });
    format!("{turned} {narrow}{bound}\n    ")
}

/// Returns a number as `f16`.
pub(super) fn half(value: f64) -> u64 {
    let bits = value.abs().to_bits();
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    if bits == 0 {
        sign
    } else {
        sign | (bits - (1008 << 52)) >> 42
    }
}

/// Matrices of 8 × 8 16-bit elements: each lane's location contains one row of 16 bytes, eight rows
/// per matrix.
fn small_matrices() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (count, trans) in [1, 2, 4]
        .into_iter()
        .flat_map(|count| ["", ".trans"].map(|trans| (count, trans)))
    {
        for space in ["", ".shared", ".shared::cta"] {
            let suffixes = format!("sync.aligned.m8n8.x{count}{trans}{space}.b16");
            let address = if space.is_empty() {
                "[%generic]"
            } else {
                "[%shared]"
            };
            forms.push(load_small(
                &format!("ldmatrix.{suffixes}"),
                address,
                count,
                !trans.is_empty(),
            ));
            forms.push(store_small(
                &format!("stmatrix.{suffixes}"),
                address,
                count,
                !trans.is_empty(),
            ));
        }
    }
    let transpose = "movmatrix.sync.aligned.m8n8.trans.b16";
    forms.push(BlockForm::new(
        transpose,
        format!("{transpose} %r8, %r0; st.global.b32 [%out], %r8;"),
        |all, thread| {
            let warp = &all[thread / 32 * 32..][..32];
            let lane = thread % 32;
            let half = |at: usize| {
                let (row, column) = position(lane, at, true);
                warp[row * 4 + column / 2][0] >> (16 * (column % 2)) & 0xffff
            };
            [half(0) | half(1) << 16, 0, 0, 0]
        },
    ));
    forms
}

/// Returns `count` registers starting at `%r8`.
fn eights(count: usize) -> String {
    (0..count)
        .map(|index| format!("%r{}", 8 + index))
        .collect::<Vec<_>>()
        .join(", ")
}

fn load_small(spelling: &str, address: &str, count: usize, transposes: bool) -> BlockForm {
    let stores: String = (0..count)
        .map(|index| format!("st.global.b32 [%out+{}], %r{}; ", 4 * index, 8 + index))
        .collect();
    let code = format!(
        "st.shared.v2.b64 [%shared], {{%l0, %l1}};
    bar.sync 0;
    {spelling} {{{}}}, {address};
    {stores}",
        eights(count)
    );
    BlockForm::new(spelling, code, move |all, thread| {
        let warp = &all[thread / 32 * 32..][..32];
        let lane = thread % 32;
        let half = |matrix: usize, at: usize| {
            let (row, column) = position(lane, at, transposes);
            warp[8 * matrix + row][column / 4] >> (16 * (column % 4)) & 0xffff
        };
        let register = |matrix: usize| {
            if matrix < count {
                half(matrix, 0) | half(matrix, 1) << 16
            } else {
                0
            }
        };
        [
            register(0) | register(1) << 32,
            register(2) | register(3) << 32,
            0,
            0,
        ]
    })
}

fn store_small(spelling: &str, address: &str, count: usize, transposes: bool) -> BlockForm {
    let code = format!(
        "st.shared.b64 [%shared], 0;
    st.shared.b64 [%shared+8], 0;
    mov.b64 {{%r8, %r9}}, %l0;
    mov.b64 {{%r10, %r11}}, %l1;
    bar.sync 0;
    {spelling} {address}, {{{}}};
    bar.sync 0;
    ld.shared.v2.b64 {{%l8, %l9}}, [%shared];
    st.global.v2.b64 [%out], {{%l8, %l9}};",
        eights(count)
    );
    let form = BlockForm::new(spelling, code, move |all, thread| {
        let warp = &all[thread / 32 * 32..][..32];
        let lane = thread % 32;
        let matrix = lane / 8;
        let row = lane % 8;
        let half = |column: usize| {
            // The lane and the half that hold this element.
            let (line, across) = if transposes {
                (column, row)
            } else {
                (row, column)
            };
            let from = &warp[line * 4 + across / 2];
            from[matrix / 2] >> (32 * (matrix % 2) + 16 * (across % 2)) & 0xffff
        };
        let word = |word: usize| {
            (0..4)
                .map(|index| half(4 * word + index) << (16 * index))
                .sum()
        };
        if matrix < count {
            [word(0), word(1), 0, 0]
        } else {
            [0; 4]
        }
    });
    form.needs(90)
}

/// Returns the row and column of a lane's half in an 8 × 8 matrix.
fn position(lane: usize, half: usize, transposes: bool) -> (usize, usize) {
    let row = lane / 4;
    let column = lane % 4 * 2 + half;
    if transposes {
        (column, row)
    } else {
        (row, column)
    }
}
