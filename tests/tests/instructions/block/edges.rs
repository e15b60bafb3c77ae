//! Matrix products with elements at the limits of their types. For floating-point types each sum
//! has one nonzero product, so that neither the order of the sum nor its rounding affects the
//! result.

use super::matrix::{Element, Product, spellings};
use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes, register_vector};
use crate::form::Sources;
use crate::reference::real::{E4M3, F16, F32, F64, Format};

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (architecture, spelling) in spellings() {
        let product = Product::parse(&spelling);
        for variant in 0..VARIANTS {
            let problem = Problem::new(
                [product.rows, 8, product.inner],
                [product.left, product.right, product.result],
                variant,
                &spelling,
            );
            forms.push(by_registers(&product, &problem, variant).needs(architecture));
        }
    }
    forms.extend(by_memory());
    forms
}

/// The number of selections of elements.
const VARIANTS: usize = 3;

/// The edge values of a format: zeros, ones, infinities, NaNs with several payloads, and the
/// smallest and largest numbers of both signs; those of B are few enough to be multiplied with each
/// of A's.
fn edges(format: Format) -> ([u64; 16], [u64; 8]) {
    if format == E4M3 {
        // For formats without infinities.
        let a = [
            0, 0x80, 0x38, 0xb8, 0x7e, 0xfe, 0x7f, 0xff, 0x01, 0x84, 0x08, 0x88, 0x30, 0x40, 0x02,
            0x78,
        ];
        return (a, [0x38, 0xb8, 0x00, 0x7e, 0x7f, 0x02, 0x40, 0x80]);
    }
    let sign = format.sign();
    let infinity = format.infinity();
    let unit = 1 << (format.precision - 1);
    let one = (infinity / 2) & !(unit - 1);
    // The products read the upper 19 bits of 32.
    let step = if format == F32 { 1 << 13 } else { 1 };
    let quiet = infinity | (unit / 2);
    let largest = infinity - step;
    let subnormal = step;
    let normal = unit;
    let a = [
        0,
        sign,
        one,
        sign | one,
        infinity,
        sign | infinity,
        quiet,
        infinity + step,
        sign | quiet | step,
        subnormal,
        sign | (unit / 2),
        normal,
        largest,
        sign | largest,
        one - unit,
        sign | normal,
    ];
    (
        a,
        [
            one,
            sign | one,
            0,
            infinity,
            quiet | step,
            largest,
            one + unit,
            sign,
        ],
    )
}

/// Returns the extreme values of an integer type.
fn extremes(bits: u32, signed: bool) -> Vec<u64> {
    let most = u64::MAX >> (64 - bits);
    match (bits, signed) {
        (1, _) => vec![0, 1],
        (_, true) => vec![most / 2 + 1, most / 2, most, 0, 1, most / 2 + 2, most / 3],
        _ => vec![most, 0, 1, most / 2 + 1, most / 2, most / 3],
    }
}

/// Matrices in row-major order as bits, and the product by definition.
struct Problem {
    columns: usize,
    inner: usize,
    elements: [Element; 3],
    matrices: [Vec<u64>; 3],
    spelling: String,
}

impl Problem {
    fn new(
        [rows, columns, inner]: [usize; 3],
        elements: [Element; 3],
        variant: usize,
        spelling: &str,
    ) -> Self {
        let [a, b] = match elements {
            [Element::Real(left), Element::Real(right), _] => {
                // The only index with a nonzero product.
                let only = [0, inner - 1, inner / 2][variant];
                let left = edges(left).0;
                let right = edges(right).1;
                // Eight rows have the other half of the edge values in another variant.
                let first = if rows == 8 { 8 * (variant % 2) } else { 0 };
                [
                    fill(rows, inner, |row: usize, position| {
                        if position == only {
                            left[(first + row) % 16]
                        } else {
                            0
                        }
                    }),
                    fill(inner, columns, |position, column: usize| {
                        if position == only {
                            right[column % 8]
                        } else {
                            0
                        }
                    }),
                ]
            }
            _ => integers([rows, columns, inner], elements, variant),
        };
        let c = fill(rows, columns, |row, column| {
            addend(elements[2], row * 3 + column, variant)
        });
        Self {
            columns,
            inner,
            elements,
            matrices: [a, b, c],
            spelling: spelling.to_owned(),
        }
    }

    fn number(&self, matrix: usize, at: usize) -> f64 {
        self.elements[matrix].number(self.matrices[matrix][at], 0)
    }

    /// Returns the bits of an element of the result.
    fn result(&self, row: usize, column: usize, result: Element) -> u64 {
        let addend = self.number(2, row * self.columns + column);
        let pairs = (0..self.inner).map(|index| {
            (
                self.number(0, row * self.inner + index),
                self.number(1, index * self.columns + column),
            )
        });
        if matches!(result, Element::Integer { .. }) {
            // Exact: all of them are less than 2 to the 53rd.
            let sum = addend
                + pairs
                    .map(|(a, b): (f64, f64)| match self.spelling.contains(".xor") {
                        true => f64::from(u8::from(a != b)),
                        false => a * b,
                    })
                    .sum::<f64>();
            let sum = if self.spelling.contains("satfinite") {
                sum.clamp(f64::from(i32::MIN), f64::from(i32::MAX))
            } else {
                sum
            };
            return u64::from(sum as i64 as u32);
        }
        // On an H100, products of 8-bit numbers with an f16 result are computed as f16 products,
        // and the addend is added in f16.
        let in_halves = result == Element::Real(F16) && self.elements[0].bits() == 8;
        let sum = if in_halves {
            let product = pairs.fold(0.0, |sum, (a, b)| a.mul_add(b, sum));
            if product.abs() > MAX_HALF {
                product * f64::INFINITY + addend
            } else {
                product + addend
            }
        } else {
            pairs.fold(addend, |sum, (a, b)| a.mul_add(b, sum))
        };
        match result {
            Element::Real(F64) if sum.is_nan() => CANONICAL,
            Element::Real(F64) => sum.to_bits(),
            Element::Real(F32) if sum.is_nan() => F32.nan(&[]),
            Element::Real(F32) => u64::from((sum as f32).to_bits()),
            _ => narrow(sum),
        }
    }
}

/// The NaN that kernels write for any NaN of `f64`.
const CANONICAL: u64 = 0x7fff_ffff_ffff_ffff;

/// The largest f16 number.
const MAX_HALF: f64 = 65_504.0;

/// Returns a number as f16, which may overflow.
fn narrow(value: f64) -> u64 {
    if value.is_nan() {
        return F16.nan(&[]);
    }
    let mut low = 0;
    let mut high = F16.infinity();
    while low < high {
        let middle = (low + high) / 2;
        if F16.value(middle) < value.abs() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if value.is_sign_negative() {
        low | F16.sign()
    } else {
        low
    }
}

fn fill(rows: usize, columns: usize, element: impl Fn(usize, usize) -> u64) -> Vec<u64> {
    (0..rows * columns)
        .map(|index| element(index / columns, index % columns))
        .collect()
}

/// Integers: each row and each column has one extreme value, for the largest possible sums, or all
/// of them.
fn integers(
    [rows, columns, inner]: [usize; 3],
    elements: [Element; 3],
    variant: usize,
) -> [Vec<u64>; 2] {
    let all = |element| match element {
        Element::Integer { bits, signed } => extremes(bits, signed),
        Element::Real(_) => Vec::new(),
    };
    let left = all(elements[0]);
    let right = all(elements[1]);
    let mixed = if variant == 2 { 1 } else { 0 };
    [
        fill(rows, inner, |row, position| {
            left[(row + mixed * position) % left.len()]
        }),
        fill(inner, columns, |position, column| {
            right[(column + variant + mixed * 3 * position) % right.len()]
        }),
    ]
}

/// Returns the addend at an index.
fn addend(element: Element, position: usize, variant: usize) -> u64 {
    match element {
        Element::Integer { .. } => {
            let most = u64::from(i32::MAX.cast_unsigned());
            [most, most + 1, 0, 0xffff_ffff, most - 1, most + 2, 1][(position + variant) % 7]
        }
        // Without an addend, the result is the product.
        Element::Real(_) if variant == 0 => 0,
        Element::Real(format) if variant == 2 => format.sign(),
        Element::Real(format) => {
            let sign = format.sign();
            let infinity = format.infinity();
            [
                0,
                sign,
                infinity,
                0,
                sign | infinity,
                0,
                infinity | 5,
                sign | infinity | infinity >> 1,
            ][position % 8]
        }
    }
}

/// Returns a variable with these initial words.
fn variable(name: &str, words: &[u64], bits: u32) -> String {
    let words: Vec<String> = words.iter().map(u64::to_string).collect();
    format!(
        ".global .align 128 .b{bits} FN{name}[{}] = {{{}}};\n",
        words.len(),
        words.join(", ")
    )
}

/// Returns code that replaces any NaN in a 64-bit register by the canonical one.
fn canonical(register: &str) -> String {
    format!(
        "setp.nan.f64 %p6, {register}, {register}; @%p6 mov.b64 {register}, {CANONICAL:#x};\n    "
    )
}

/// `mma`: the registers of the lanes are stored in variables.
fn by_registers(product: &Product, problem: &Problem, variant: usize) -> BlockForm {
    let counts = product.registers();
    let is_double = problem.elements[0].bits() == 64;
    let (bits, class) = if is_double { (64, 'l') } else { (32, 'r') };
    let mut declared = String::new();
    let mut code = String::new();
    let mut lists = Vec::new();
    let mut first = 4;
    code += "mov.u32 %r31, %laneid;\n    ";
    for (matrix, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut registers = vec![0_u64; 32 * counts[matrix]];
        let (rows, columns) = [
            (product.rows, product.inner),
            (product.inner, 8),
            (product.rows, 8),
        ][matrix];
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let (lane, register, at) = match matrix {
                0 => product.a_location(row, column),
                1 => product.b_location(row, column),
                _ => product.home(row, column),
            };
            let element = problem.matrices[matrix][row * columns + column];
            registers[32 * register + lane] |=
                element << (at as u32 * problem.elements[matrix].bits());
        }
        declared += &variable(name, &registers, bits);
        code += &format!(
            "mov.b64 %l3, FN{name};\n    mad.wide.u32 %l3, %r31, {}, %l3;\n    ",
            bits / 8
        );
        let mut list = Vec::new();
        for register in 0..counts[matrix] {
            code += &format!(
                "ld.global.b{bits} %{class}{first}, [%l3+{}];\n    ",
                register as u32 * 4 * bits
            );
            list.push(format!("%{class}{first}"));
            first += 1;
        }
        lists.push(format!("{{{}}}", list.join(", ")));
    }
    let to: Vec<String> = (first..first + counts[2])
        .map(|number| format!("%{class}{number}"))
        .collect();
    code += &format!(
        "{} {{{}}}, {};\n    ",
        product.spelling,
        to.join(", "),
        lists.join(", ")
    );
    for (at, register) in to.iter().enumerate() {
        let make = if is_double {
            canonical(register)
        } else {
            String::new()
        };
        code += &format!(
            "{make}st.global.b{bits} [%out+{}], {register};\n    ",
            at as u32 * bits / 8
        );
    }
    let mut outputs = vec![[0_u8; 32]; 32];
    for (row, column) in (0..product.rows).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let (lane, register, at) = product.home(row, column);
        let size = product.result.bits() as usize / 8;
        let bytes = problem.result(row, column, product.result).to_le_bytes();
        outputs[lane][register * size.max(4) + at * 2..][..size].copy_from_slice(&bytes[..size]);
    }
    let name = format!("{} of edges {variant}", product.spelling);
    BlockForm::new(name, code, move |_, thread| words(&outputs[thread % 32])).declaring(declared)
}

fn words(bytes: &[u8]) -> Output {
    output_from_bytes(|index| bytes[index])
}

/// `wmma`: A in row-major and B in column-major order, from memory.
fn by_memory() -> Vec<BlockForm> {
    let shapes = "{m16n16k16,m8n32k16,m32n8k16}";
    let patterns = [
        (
            75,
            format!("{shapes}.{{f16,f32}} f16 f32,{shapes}.f16 f16 f16,{shapes}.f32 f16 f16"),
        ),
        (
            80,
            format!("{shapes}.f32 bf16 f32,m16n16k8.f32 tf32 f32,m8n8k4.f64 f64 f64"),
        ),
        (
            75,
            format!(
                "{shapes}.s32 {{s8,u8}} s32{{,.satfinite}},m8n8k32.s32 {{s4,u4}} s32{{,.satfinite}}"
            ),
        ),
        (75, "m8n8k128.s32 b1 s32.xor.popc".to_owned()),
        (80, "m8n8k128.s32 b1 s32.and.popc".to_owned()),
    ];
    let mut forms = Vec::new();
    for (architecture, pattern) in patterns {
        for spelling in expand(&format!("{{{pattern}}}")) {
            let words: Vec<&str> = spelling.split([' ', '.']).collect();
            for variant in 0..VARIANTS {
                forms.push(tiles(&words, variant).needs(architecture));
            }
        }
    }
    forms
}

/// Creates a form from its shape, the types of the result, A, B and the addend, and the kind of
/// sum.
fn tiles(words: &[&str], variant: usize) -> BlockForm {
    let [shape, result, kind, addend, how @ ..] = words else {
        panic!("{words:?} is not a product")
    };
    let numbers: Vec<usize> = shape
        .split(char::is_alphabetic)
        .filter_map(|number| number.parse().ok())
        .collect();
    let [m, n, k] = numbers[..] else {
        panic!("{shape} is not a shape")
    };
    let how: String = how.iter().map(|word| format!(".{word}")).collect();
    let (operation, saturates) = if how.contains("popc") {
        (how.as_str(), "")
    } else {
        ("", how.as_str())
    };
    let types = if *kind == "f16" {
        format!("{result}.{addend}")
    } else {
        format!("{result}.{kind}.{kind}.{addend}")
    };
    let spelling = format!("wmma.mma{operation}.sync.aligned.row.col.{shape}.{types}{saturates}");
    let element = Element::from_name(kind);
    let problem = Problem::new(
        [m, n, k],
        [element, element, Element::from_name(addend)],
        variant,
        &spelling,
    );
    let by_columns: Vec<u64> = (0..n)
        .flat_map(|column| (0..k).map(move |row| row * n + column))
        .map(|index| problem.matrices[1][index])
        .collect();
    let declared = packed("a", &problem.matrices[0], element)
        + &packed("b", &by_columns, element)
        + &packed("c", &problem.matrices[2], Element::from_name(addend));
    let class = if *kind == "f64" { 'l' } else { 'r' };
    let registers = |elements: usize| match *kind {
        "f16" => 8,
        "f64" => 1,
        _ => (elements * element.bits() as usize / 1024).max(1),
    };
    let results = |name: &str| {
        if name == "f16" {
            4
        } else if *kind == "f64" {
            2
        } else {
            m * n / 32
        }
    };
    let code = format!(
        "shr.u32 %r31, %thread, 5;
    ld.param.u64 %l30, [work];
    mad.wide.u32 %l30, %r31, 1024, %l30;
    and.b32 %r31, %thread, 31;
    mad.wide.u32 %l31, %r31, 32, %l30;
    mov.b64 %l27, FNa; mov.b64 %l28, FNb; mov.b64 %l29, FNc;
    wmma.load.a.sync.aligned.row.{shape}.global.{kind} {a}, [%l27];
    wmma.load.b.sync.aligned.col.{shape}.global.{kind} {b}, [%l28];
    wmma.load.c.sync.aligned.row.{shape}.global.{addend} {c}, [%l29];
    {spelling} {d}, {a}, {b}, {c};
    wmma.store.d.sync.aligned.row.{shape}.global.{result} [%l30], {d};
    bar.sync 0;
    ld.global.v2.b64 {{%l4, %l5}}, [%l31];
    ld.global.v2.b64 {{%l6, %l7}}, [%l31+16];
    {}st.global.v2.b64 [%out], {{%l4, %l5}};
    st.global.v2.b64 [%out+16], {{%l6, %l7}};",
        if *kind == "f64" {
            ["%l4", "%l5", "%l6", "%l7"].map(canonical).concat()
        } else {
            String::new()
        },
        a = register_vector(class, 4, registers(m * k)),
        b = register_vector(class, 12, registers(k * n)),
        c = register_vector(class, 20, results(addend)),
        d = register_vector(class, 20, results(result)),
    );
    let result_element = Element::from_name(result);
    let size = result_element.bits() as usize / 8;
    let mut matrix = vec![0_u8; 1024];
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let bytes = problem.result(row, column, result_element).to_le_bytes();
        matrix[(row * n + column) * size..][..size].copy_from_slice(&bytes[..size]);
    }
    let name = format!("{spelling} of edges {variant}");
    BlockForm::new(name, code, move |_: &[Sources], thread| {
        self::words(&matrix[thread % 32 * 32..][..32])
    })
    .declaring(declared)
}

/// Returns a matrix in memory as packed words.
fn packed(name: &str, elements: &[u64], element: Element) -> String {
    let bits = element.bits();
    if bits == 64 {
        return variable(name, elements, 64);
    }
    let each = (32 / bits) as usize;
    variable(
        name,
        &elements
            .chunks(each)
            .map(|part: &[u64]| {
                part.iter().enumerate().fold(0, |word, (at, bits_of)| {
                    word | bits_of << (at as u32 * bits)
                })
            })
            .collect::<Vec<_>>(),
        32,
    )
}
