//! Video instructions, on words, on parts of words and on packed lanes.

use crate::form::Form;
use crate::form::Operand::{B32, Bytes, Count, Halves};
use crate::reference::integer::{Integer, S32, U32};

type Function = fn(i128, i128) -> i128;

const OPERATIONS: [(&str, Function); 5] = [
    ("vadd", |a, b| a + b),
    ("vsub", |a, b| a - b),
    ("vabsdiff", |a, b| (a - b).abs()),
    ("vmin", Ord::min),
    ("vmax", Ord::max),
];

/// The types of the result and the sources.
const TYPES: [[Integer; 3]; 5] = [
    [U32, U32, U32],
    [S32, S32, S32],
    [S32, U32, S32],
    [U32, S32, U32],
    [U32, S32, S32],
];

/// The parts of a word by selector.
const PARTS: [(&str, u32, u32); 6] = [
    (".b0", 0, 8),
    (".b1", 8, 8),
    (".b2", 16, 8),
    (".b3", 24, 8),
    (".h0", 0, 16),
    (".h1", 16, 16),
];

pub(super) fn forms() -> Vec<Form> {
    let mut forms = words();
    forms.extend(parts());
    forms.extend(shifts());
    forms.extend(comparisons());
    forms.extend(products());
    forms.extend(lanes());
    forms
}

fn names([to, a, b]: [Integer; 3]) -> String {
    format!("{}.{}.{}", to.name(), a.name(), b.name())
}

/// Returns the result of the second operation on the result and the third operand.
fn second(operation: &str, t: Integer, value: i128, c: u64) -> u64 {
    let value = t.value(t.wrap(value));
    let c = t.value(c);
    t.wrap(match operation {
        ".add" => value + c,
        ".min" => value.min(c),
        _ => value.max(c),
    })
}

fn words() -> Vec<Form> {
    let mut forms = Vec::new();
    for (opcode, f) in OPERATIONS {
        for types in TYPES {
            for saturates in [false, true] {
                let [to, x, y] = types;
                let result = move |a: u64, b: u64| {
                    let value = f(x.value(a), y.value(b));
                    if saturates {
                        to.value(to.clamp(value))
                    } else {
                        value
                    }
                };
                let name = format!(
                    "{opcode}.{}{}",
                    names(types),
                    if saturates { ".sat" } else { "" }
                );
                forms.push(Form::new(&name, B32, [B32, B32], move |[a, b, ..]| {
                    to.wrap(result(a, b))
                }));
                for operation in [".add", ".min", ".max"] {
                    forms.push(Form::new(
                        format!("{name}{operation}"),
                        B32,
                        [B32, B32, B32],
                        move |[a, b, c, _]: [u64; 4]| second(operation, to, result(a, b), c),
                    ));
                }
            }
        }
    }
    forms
}

/// Parts of the sources, and results that are inserted into the third operand.
fn parts() -> Vec<Form> {
    let mut forms = Vec::new();
    for (index, (selector, shift, width)) in PARTS.into_iter().enumerate() {
        let (other, other_shift, other_width) = PARTS[(index + 4) % PARTS.len()];
        for types in [TYPES[0], TYPES[1]] {
            let [to, x, y] = types;
            let sum = move |a, b| {
                part_value(x, a, shift, width) - part_value(y, b, other_shift, other_width)
            };
            let name = format!("vsub.{} of {selector} and {other}", names(types));
            let code = format!("vsub.{} $d, $a{selector}, $b{other};", names(types));
            forms.push(
                Form::new(name, B32, [B32, B32], move |[a, b, ..]| to.wrap(sum(a, b))).code(code),
            );
            let field = Integer { bits: width, ..to };
            let name = format!("vsub.{}.sat to {selector}", names(types));
            let code = format!(
                "vsub.{}.sat $d{selector}, $a{selector}, $b{other}, $c;",
                names(types)
            );
            forms.push(
                Form::new(name, B32, [B32, B32, B32], move |[a, b, c, _]: [u64; 4]| {
                    field.clamp(sum(a, b)) << shift | c & !(field.mask() << shift)
                })
                .code(code),
            );
        }
    }
    forms
}

/// Returns the value of a part of a register.
fn part_value(t: Integer, bits: u64, shift: u32, width: u32) -> i128 {
    Integer { bits: width, ..t }.value(bits >> shift)
}

fn shifts() -> Vec<Form> {
    let mut forms = Vec::new();
    for t in [U32, S32] {
        for wraps in [false, true] {
            let mode = if wraps { "wrap" } else { "clamp" };
            let count = move |b: u64| if wraps { b & 31 } else { b.min(32) };
            let spelling = format!("vshl.u32.{}.u32.{mode}", t.name());
            forms.push(Form::new(spelling, B32, [B32, Count], move |[a, b, ..]| {
                U32.wrap(t.value(a) << count(b))
            }));
            let right = format!("vshr.{0}.{0}.u32.{mode}", t.name());
            forms.push(Form::new(right, B32, [B32, Count], move |[a, b, ..]| {
                t.wrap(t.value(a) >> count(b))
            }));
        }
    }
    forms
}

fn comparisons() -> Vec<Form> {
    type Holds = fn(&i128, &i128) -> bool;
    let comparisons: [(&str, Holds); 6] = [
        ("eq", PartialEq::eq),
        ("ne", PartialEq::ne),
        ("lt", PartialOrd::lt),
        ("le", PartialOrd::le),
        ("gt", PartialOrd::gt),
        ("ge", PartialOrd::ge),
    ];
    let mut forms = Vec::new();
    for (comparison, holds) in comparisons {
        for (x, y) in [(U32, U32), (S32, S32), (U32, S32)] {
            let name = format!("vset.{}.{}.{comparison}", x.name(), y.name());
            forms.push(Form::new(
                name,
                B32,
                [B32, B32],
                move |[a, b, ..]: [u64; 4]| u64::from(holds(&x.value(a), &y.value(b))),
            ));
        }
    }
    forms
}

/// `vmad` without a shift: an intermediate wider than a word is unspecified.
fn products() -> Vec<Form> {
    let mut forms = Vec::new();
    for [to, x, y] in [TYPES[0], TYPES[1]] {
        for (scale, shift) in [("", 0), (".shr7", 7), (".shr15", 15)] {
            let name = format!("vmad.{}{scale} of halves", names([to, x, y]));
            let code = format!("vmad.{}{scale} $d, $a.h0, $b.h1, $c;", names([to, x, y]));
            forms.push(
                Form::new(name, B32, [B32, B32, B32], move |[a, b, c, _]: [u64; 4]| {
                    to.wrap((half_value(x, a) * half_value(y, b >> 16) + to.value(c)) >> shift)
                })
                .code(code),
            );
        }
    }
    forms
}

/// Returns the value of a half of a register.
fn half_value(t: Integer, bits: u64) -> i128 {
    Integer { bits: 16, ..t }.value(bits)
}

/// Two or four lanes, with and without accumulation.
fn lanes() -> Vec<Form> {
    let average: Function = |a, b| (a + b + i128::from(a + b >= 0)) >> 1;
    let operations = OPERATIONS.into_iter().chain([("vavrg", average)]);
    let mut forms = Vec::new();
    for (opcode, f) in operations {
        for count in [2, 4] {
            let o = if count == 2 { Halves } else { Bytes };
            let bits = 32 / count;
            for types in [TYPES[0], TYPES[1], TYPES[4]] {
                let [to, x, y] = types.map(|t| Integer { bits, ..t });
                for saturates in [false, true] {
                    let lane = move |a: u64, b: u64, index: u32| {
                        let value = f(x.value(a >> (index * bits)), y.value(b >> (index * bits)));
                        if saturates {
                            to.clamp(value)
                        } else {
                            to.wrap(value)
                        }
                    };
                    let name = format!(
                        "{opcode}{count}.{}{}",
                        names(types),
                        if saturates { ".sat" } else { "" }
                    );
                    forms.push(Form::new(
                        &name,
                        B32,
                        [o, o, B32],
                        move |[a, b, ..]: [u64; 4]| {
                            (0..count)
                                .map(|index| lane(a, b, index) << (index * bits))
                                .sum()
                        },
                    ));
                    if !saturates {
                        forms.push(Form::new(
                            format!("{name}.add"),
                            B32,
                            [o, o, B32],
                            move |[a, b, c, _]: [u64; 4]| {
                                let sum: i128 =
                                    (0..count).map(|index| to.value(lane(a, b, index))).sum();
                                U32.wrap(sum + U32.value(c))
                            },
                        ));
                    }
                }
            }
        }
    }
    forms
}
