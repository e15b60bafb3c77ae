//! `wmma`: matrix products from and to memory, in every shape, type and layout. Each warp has 1 KiB
//! for A and 1 KiB for B in shared memory, and the same in global memory for the addend, which the
//! result overwrites.

use super::matrix::{Element, half, raw};
use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes, register_vector};
use crate::form::Sources;
use crate::reference::real::{F32, F64};

pub(super) fn forms() -> Vec<BlockForm> {
    let shapes = "{m16n16k16,m8n32k16,m32n8k16}";
    let patterns = [
        (
            75,
            format!("{{row,col}}.{{row,col}}.{shapes}.{{f16,f32}}.{{f16,f32}} f16"),
        ),
        (
            80,
            format!("{{row,col}}.{{row,col}}.{shapes}.f32.bf16.bf16.f32 bf16"),
        ),
        (
            80,
            "{row,col}.{row,col}.m16n16k8.f32.tf32.tf32.f32 tf32".to_owned(),
        ),
        (
            80,
            "{row,col}.{row,col}.m8n8k4.f64.f64.f64.f64 f64".to_owned(),
        ),
        (
            75,
            format!("{{row,col}}.{{row,col}}.{shapes}.s32.s8.s8.s32{{,.satfinite}} s8"),
        ),
        (
            75,
            format!("{{row,col}}.{{row,col}}.{shapes}.s32.u8.u8.s32{{,.satfinite}} u8"),
        ),
        (
            75,
            "row.col.m8n8k32.s32.s4.s4.s32{,.satfinite} s4".to_owned(),
        ),
        (
            75,
            "row.col.m8n8k32.s32.u4.u4.s32{,.satfinite} u4".to_owned(),
        ),
        (75, "xor.popc.row.col.m8n8k128.s32.b1.b1.s32 b1".to_owned()),
        (80, "and.popc.row.col.m8n8k128.s32.b1.b1.s32 b1".to_owned()),
    ];
    let mut forms = Vec::new();
    for (architecture, pattern) in patterns {
        for spelling in expand(&pattern) {
            let (rest, kind) = spelling
                .split_once(' ')
                .expect("a pattern ends with the elements of A and B");
            // The addend has the layout of A, and the result that of B, so that both are tested in
            // both layouts.
            forms.push(Tiles::parse(rest, kind).form().needs(architecture));
        }
    }
    forms.extend(loads());
    forms
}

/// `wmma.load` whose registers are the result. PTX does not define which lane holds which element;
/// the definition is what an H200 does.
fn loads() -> Vec<BlockForm> {
    let shapes = [[16, 16, 16], [8, 32, 16], [32, 8, 16]];
    let mut forms = Vec::new();
    for [m, n, k] in shapes {
        for (kind, architecture) in [("f16", 75), ("bf16", 80), ("s8", 75)] {
            forms.push(
                Load {
                    side: 'a',
                    kind,
                    rows: m,
                    columns: k,
                    shape: [m, n, k],
                }
                .form()
                .needs(architecture),
            );
            forms.push(
                Load {
                    side: 'b',
                    kind,
                    rows: k,
                    columns: n,
                    shape: [m, n, k],
                }
                .form()
                .needs(architecture),
            );
        }
        for kind in ["f16", "f32"] {
            forms.push(
                Load {
                    side: 'c',
                    kind,
                    rows: m,
                    columns: n,
                    shape: [m, n, k],
                }
                .form(),
            );
        }
    }
    let tf32 = |side, rows, columns| {
        Load {
            side,
            kind: "tf32",
            rows,
            columns,
            shape: [16, 16, 8],
        }
        .form()
        .needs(80)
    };
    forms.extend([tf32('a', 16, 8), tf32('b', 8, 16)]);
    forms
}

/// A load of a row-major matrix.
#[derive(Clone)]
struct Load {
    side: char,
    kind: &'static str,
    rows: usize,
    columns: usize,
    shape: [usize; 3],
}

impl Load {
    /// Returns the number of registers of a lane, and of those that hold different elements.
    fn registers(&self) -> [usize; 2] {
        let distinct = self.rows * self.columns / 32 / self.each();
        [
            if self.kind == "f16" && self.side != 'c' {
                8
            } else {
                distinct
            },
            distinct,
        ]
    }

    /// Returns the number of elements in a register.
    fn each(&self) -> usize {
        32 / Element::from_name(self.kind).bits() as usize
    }

    fn form(self) -> BlockForm {
        let [m, n, k] = self.shape;
        let [registers, _] = self.registers();
        let names: Vec<String> = (4..4 + registers)
            .map(|number| format!("%r{number}"))
            .collect();
        let name = format!(
            "wmma.load.{}.sync.aligned.row.m{m}n{n}k{k}.shared.{}",
            self.side, self.kind
        );
        let mut code = String::from(
            "shr.u32 %r29, %thread, 5;
    mov.u32 %r30, block;
    mad.lo.u32 %r30, %r29, 1024, %r30;
    and.b32 %r29, %thread, 31;
    mad.lo.u32 %r29, %r29, 32, %r30;
    st.shared.v2.b64 [%r29], {%l0, %l1};
    st.shared.v2.b64 [%r29+16], {%l2, %l3};
    bar.sync 0;
    ",
        );
        for register in 4..12 {
            code += &format!("mov.b32 %r{register}, 0; ");
        }
        code += &format!("{name} {{{}}}, [%r30];\n    ", names.join(", "));
        for register in 0..8 {
            code += &format!(
                "st.global.b32 [%out+{}], %r{};\n    ",
                4 * register,
                4 + register
            );
        }
        BlockForm::new(format!("{name} registers"), code, move |all, thread| {
            self.left_by(all, thread)
        })
    }

    fn left_by(&self, all: &[Sources], thread: usize) -> Output {
        let memory: Vec<u8> = all[thread / 32 * 32..][..32]
            .iter()
            .flatten()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let [registers, distinct] = self.registers();
        let each = self.each();
        let size = 4 / each;
        let mut bytes = [0; 32];
        for (register, at) in
            (0..registers).flat_map(|register| (0..each).map(move |index| (register, index)))
        {
            let (row, column) = self.position(thread % 32, register % distinct, at);
            let from = (row * self.columns + column) * size;
            bytes[4 * register + at * size..][..size].copy_from_slice(&memory[from..][..size]);
        }
        output_from_bytes(|index| bytes[index])
    }

    /// Returns the row and the column of an element in a register: four lanes share a row of A, a
    /// column of B, or eight elements of a row of C. The product of 8 by 32 is computed as the
    /// transposed one of 32 by 8.
    fn position(&self, lane: usize, register: usize, at: usize) -> (usize, usize) {
        let each = self.each();
        let is_turned = self.shape[1] == 32;
        if self.side == 'c' {
            let rows = if is_turned { self.columns } else { self.rows };
            let slot = register * each + at;
            let block = slot / (rows / 4);
            let slot = slot % (rows / 4);
            let row = slot / 2 * 8 + lane / 4;
            let column = block * 8 + lane % 4 * 2 + slot % 2;
            return if is_turned {
                (column, row)
            } else {
                (row, column)
            };
        }
        let (across, along) = if self.side == 'a' {
            (self.rows, self.columns)
        } else {
            (self.columns, self.rows)
        };
        let parts = along / (4 * each);
        let in_pairs = across > 8 && (self.side == 'b') == is_turned;
        let (block, part) = if in_pairs {
            (
                register / (2 * parts) * 2 + register % 2,
                register % (2 * parts) / 2,
            )
        } else {
            (register / parts, register % parts)
        };
        let across = block * 8 + lane / 4;
        let along = (part * 4 + lane % 4) * each + at;
        if self.side == 'a' {
            (across, along)
        } else {
            (along, across)
        }
    }
}

/// A product of matrices in memory.
#[derive(Clone)]
struct Tiles {
    spelling: String,
    kind: String,
    shape: String,
    rows: usize,
    columns: usize,
    inner: usize,
    /// `true` for A and the addend, and for B and the result, in column-major order.
    by_columns: [bool; 2],
    element: Element,
    addend: (String, Element),
    result: (String, Element),
}

impl Tiles {
    fn parse(rest: &str, kind: &str) -> Self {
        let words: Vec<&str> = rest
            .split('.')
            .filter(|word| !["xor", "and", "popc", "satfinite"].contains(word))
            .collect();
        let numbers: Vec<usize> = words[2]
            .split(|it: char| it.is_alphabetic())
            .filter_map(|number| number.parse().ok())
            .collect();
        let element = |name: &str| (name.to_owned(), Element::from_name(name));
        let (operation, types) =
            rest.split_at(rest.find("popc.").map_or(0, |index| index + "popc.".len()));
        Self {
            spelling: format!("wmma.mma.{operation}sync.aligned.{types}"),
            kind: kind.to_owned(),
            shape: words[2].to_owned(),
            rows: numbers[0],
            columns: numbers[1],
            inner: numbers[2],
            by_columns: [words[0] == "col", words[1] == "col"],
            element: Element::from_name(kind),
            addend: element(words[words.len() - 1]),
            result: element(words[3]),
        }
    }

    /// Returns the number of registers of A, of B, and of the addend or the result.
    fn registers(&self) -> [usize; 3] {
        let of =
            |elements: usize, element: Element| (elements * element.bits() as usize / 1024).max(1);
        let both = |elements: usize| match self.kind.as_str() {
            // Each element is stored in two lanes.
            "f16" => 8,
            "f64" => 1,
            _ => of(elements, self.element),
        };
        let results = if self.kind == "f64" {
            2
        } else {
            self.rows * self.columns / 32
        };
        [
            both(self.rows * self.inner),
            both(self.inner * self.columns),
            results,
        ]
    }

    fn form(self) -> BlockForm {
        let [left, right, results] = self.registers();
        let count = |element: Element| {
            if element.bits() == 16 {
                results / 2
            } else {
                results
            }
        };
        let class = if self.kind == "f64" { 'l' } else { 'r' };
        let [first, second] = self
            .by_columns
            .map(|by_columns: bool| if by_columns { "col" } else { "row" });
        let name = self.spelling.clone();
        let shape = &self.shape;
        let kind = &self.kind;
        let addend = register_vector(class, 20, count(self.addend.1));
        let mut code = self.put();
        code += &format!(
            "bar.sync 0;
    wmma.load.a.sync.aligned.{first}.{shape}.shared.{kind} {a}, [%r30];
    wmma.load.b.sync.aligned.{second}.{shape}.shared.{kind} {b}, [%r30+1024];
    wmma.load.c.sync.aligned.{first}.{shape}.global.{} {addend}, [%l30];
    {name} {d}, {a}, {b}, {addend};
    wmma.store.d.sync.aligned.{second}.{shape}.global.{} [%l30], {d};
    bar.sync 0;
    ",
            self.addend.0,
            self.result.0,
            a = register_vector(class, 4, left),
            b = register_vector(class, 12, right),
            d = register_vector(class, 20, count(self.result.1)),
        );
        for word in 0..4 {
            code += &format!(
                "ld.global.b64 %l0, [%l31+{0}]; st.global.b64 [%out+{0}], %l0;\n    ",
                8 * word
            );
        }
        BlockForm::new(name, code, move |all, thread| self.left_by(all, thread))
    }

    /// Returns code that stores each lane's part of A, B and the addend in memory, and the
    /// locations of the warp in `%r30` and `%l30`; the lane's part of the result is at `%l31`.
    fn put(&self) -> String {
        let mut code = String::from(
            "shr.u32 %r29, %thread, 5;
    mov.u32 %r30, block;
    mad.lo.u32 %r30, %r29, 2048, %r30;
    ld.param.u64 %l30, [work];
    mad.wide.u32 %l30, %r29, 1024, %l30;
    and.b32 %r29, %thread, 31;
    mad.wide.u32 %l31, %r29, 32, %l30;
    mad.lo.u32 %r29, %r29, 32, %r30;
    ",
        );
        for (matrix, element) in [self.element, self.element, self.addend.1]
            .into_iter()
            .enumerate()
        {
            for word in 0..4 {
                let turn = 11 * matrix;
                code += &if turn == 0 {
                    format!("mov.b64 %l28, %l{word}; ")
                } else {
                    format!(
                        "shl.b64 %l28, %l{word}, {turn}; shr.u64 %l29, %l{word}, {}; or.b64 %l28, %l28, %l29; ",
                        64 - turn
                    )
                };
                if let Some((mask, set)) = wide_bounds(element) {
                    code +=
                        &format!("and.b64 %l28, %l28, {mask:#x}; or.b64 %l28, %l28, {set:#x}; ");
                }
                code += &if matrix == 2 {
                    format!("st.global.b64 [%l31+{}], %l28;\n    ", 8 * word)
                } else {
                    format!(
                        "st.shared.b64 [%r29+{}], %l28;\n    ",
                        1024 * matrix + 8 * word
                    )
                };
            }
        }
        code
    }

    /// Returns the words of a matrix in memory, in the layout of `put`.
    fn memory(&self, warp: &[Sources], matrix: usize) -> Vec<u64> {
        let element = [self.element, self.element, self.addend.1][matrix];
        let bound = |word: u64| wide_bounds(element).map_or(word, |(mask, set)| word & mask | set);
        warp.iter()
            .flat_map(|lane| (0..4).map(move |word| bound(raw(lane, 4 * matrix + word))))
            .collect()
    }

    fn left_by(&self, all: &[Sources], thread: usize) -> Output {
        let warp = &all[thread / 32 * 32..][..32];
        let [a, b, c] = [0, 1, 2].map(|matrix| self.memory(warp, matrix));
        let element_at = |words: &[u64], element: Element, index: usize| {
            let each = 64 / element.bits() as usize;
            element.number(words[index / each], index % each)
        };
        let index = |by_columns: bool, [rows, columns]: [usize; 2], row: usize, column: usize| {
            if by_columns {
                column * rows + row
            } else {
                row * columns + column
            }
        };
        let [first, second] = self.by_columns;
        let [m, n, k] = [self.rows, self.columns, self.inner];
        let mut result: Vec<u8> = c.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let sum = element_at(&c, self.addend.1, index(first, [m, n], row, column))
                + (0..k)
                    .map(|position: usize| {
                        let left =
                            element_at(&a, self.element, index(first, [m, k], row, position));
                        let right =
                            element_at(&b, self.element, index(second, [k, n], position, column));
                        if self.spelling.contains("xor") {
                            f64::from(u8::from(left != right))
                        } else {
                            left * right
                        }
                    })
                    .sum::<f64>();
            let (bits, size) = match self.result.1 {
                Element::Real(F64) => (sum.to_bits(), 8),
                Element::Real(F32) => (u64::from((sum as f32).to_bits()), 4),
                Element::Real(_) => (half(sum), 2),
                // The cast saturates.
                Element::Integer { .. } if self.spelling.contains("satfinite") => {
                    (u64::from((sum as i32).cast_unsigned()), 4)
                }
                Element::Integer { .. } => (u64::from((sum as i64 as i32).cast_unsigned()), 4),
            };
            let offset = size * index(second, [m, n], row, column);
            result[offset..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        let bytes = &result[thread % 32 * 32..][..32];
        output_from_bytes(|index| bytes[index])
    }
}

/// Returns the bounds of an element for all elements of a 64-bit word.
fn wide_bounds(element: Element) -> Option<(u64, u64)> {
    let both = |bits: u64| {
        if element.bits() == 64 {
            bits
        } else {
            bits | bits << 32
        }
    };
    element.bounds().map(|(mask, set)| (both(mask), both(set)))
}
