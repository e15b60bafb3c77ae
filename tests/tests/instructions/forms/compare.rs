//! `setp`, `set`, `selp` and `slct`.

use std::cmp::Ordering;

use crate::form::Operand::{self, B16, B32, B64, Truth};
use crate::form::{BRAIN, BRAINS, Form, HALF, HALVES, SINGLE, Sources};
use crate::reference::integer::{INTEGERS, Integer};
use crate::reference::real::{BF16, F16, F32, F64, Format};

use super::integer::operand;

/// The condition on an ordering; `None` is unordered.
type Holds = fn(Option<Ordering>) -> bool;

const OF_ALL: [(&str, Holds); 6] = [
    ("eq", |order| order == Some(Ordering::Equal)),
    ("ne", |order| order.is_some_and(Ordering::is_ne)),
    ("lt", |order| order.is_some_and(Ordering::is_lt)),
    ("le", |order| order.is_some_and(Ordering::is_le)),
    ("gt", |order| order.is_some_and(Ordering::is_gt)),
    ("ge", |order| order.is_some_and(Ordering::is_ge)),
];

const OF_UNSIGNED: [(&str, Holds); 4] = [
    ("lo", OF_ALL[2].1),
    ("ls", OF_ALL[3].1),
    ("hi", OF_ALL[4].1),
    ("hs", OF_ALL[5].1),
];

const OF_FLOATS: [(&str, Holds); 8] = [
    ("equ", |order| order.is_none_or(Ordering::is_eq)),
    ("neu", |order| order.is_none_or(Ordering::is_ne)),
    ("ltu", |order| order.is_none_or(Ordering::is_lt)),
    ("leu", |order| order.is_none_or(Ordering::is_le)),
    ("gtu", |order| order.is_none_or(Ordering::is_gt)),
    ("geu", |order| order.is_none_or(Ordering::is_ge)),
    ("num", |order| order.is_some()),
    ("nan", |order| order.is_none()),
];

/// The type of the compared operands.
#[derive(Clone, Copy)]
enum Compared {
    Integer(Integer),
    Bits(u32),
    Float(Format, bool),
}

impl Compared {
    fn name(self) -> String {
        match self {
            Self::Integer(t) => t.name(),
            Self::Bits(bits) => format!("b{bits}"),
            Self::Float(F16, _) => "f16".into(),
            Self::Float(BF16, _) => "bf16".into(),
            Self::Float(format, _) => format!("f{}", format.width),
        }
    }

    fn flag(self) -> &'static str {
        if matches!(self, Self::Float(_, true)) {
            ".ftz"
        } else {
            ""
        }
    }

    fn operand(self) -> Operand {
        match self {
            Self::Integer(Integer { bits, .. }) | Self::Bits(bits) => operand(bits),
            Self::Float(format, _) => Operand::Float(format),
        }
    }

    fn order(self, a: u64, b: u64) -> Option<Ordering> {
        match self {
            Self::Integer(t) => Some(t.value(a).cmp(&t.value(b))),
            Self::Bits(_) => Some(a.cmp(&b)),
            Self::Float(format, flush) => {
                let value = |bits| format.value(if flush { format.flush(bits) } else { bits });
                value(a).partial_cmp(&value(b))
            }
        }
    }

    fn comparisons(self) -> Vec<(&'static str, Holds)> {
        match self {
            Self::Bits(_) => OF_ALL[..2].to_vec(),
            Self::Integer(Integer { signed: false, .. }) => {
                OF_ALL.into_iter().chain(OF_UNSIGNED).collect()
            }
            Self::Integer(_) => OF_ALL.to_vec(),
            Self::Float(..) => OF_ALL.into_iter().chain(OF_FLOATS).collect(),
        }
    }

    /// Returns the minimum compute capability for comparing this type.
    fn architecture(self) -> u32 {
        if let Self::Float(BF16, _) = self {
            90
        } else {
            75
        }
    }
}

fn compared() -> Vec<Compared> {
    let floats = [
        (F16, false),
        (F16, true),
        (BF16, false),
        (F32, false),
        (F32, true),
        (F64, false),
    ];
    let integers = INTEGERS.into_iter().map(Compared::Integer);
    let bits = [16, 32, 64].into_iter().map(Compared::Bits);
    integers
        .chain(bits)
        .chain(
            floats
                .into_iter()
                .map(|(format, flush)| Compared::Float(format, flush)),
        )
        .collect()
}

pub(super) fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> = compared().into_iter().flat_map(predicates).collect();
    forms.extend(combined());
    forms.extend(compared().into_iter().flat_map(numbers));
    forms.extend(halves());
    forms.extend(selections());
    forms
}

fn predicates(compared: Compared) -> Vec<Form> {
    let name = compared.name();
    let o = compared.operand();
    compared
        .comparisons()
        .into_iter()
        .map(|(comparison, holds): (&str, Holds)| {
            let name = format!("setp.{comparison}{}.{name}", compared.flag());
            let code = format!("{name} %p, $a, $b; selp.u32 $d, 1, 0, %p;");
            Form::new(name, B32, [o, o], move |[a, b, ..]: Sources| {
                u64::from(holds(compared.order(a, b)))
            })
            .code(code)
            .needs(compared.architecture())
        })
        .collect()
}

/// Comparisons combined with a predicate or its negation, with both results.
fn combined() -> Vec<Form> {
    type Combine = fn(bool, bool) -> bool;
    let operations: [(&str, Combine); 3] = [
        ("and", |a, b| a & b),
        ("or", |a, b| a | b),
        ("xor", |a, b| a ^ b),
    ];
    let mut forms = Vec::new();
    for (operation, combine) in operations {
        for (sign, negates) in [("", false), ("!", true)] {
            for compared in [
                Compared::Integer(INTEGERS[3]),
                Compared::Float(F32, false),
                Compared::Float(F64, false),
            ] {
                let name = format!("setp.lt.{operation}.{}", compared.name());
                let code = format!(
                    "setp.ne.u32 %s, $c, 0; {name} %p|%q, $a, $b, {sign}%s;
    selp.u32 %rx, 1, 0, %p; selp.u32 %ry, 2, 0, %q; or.b32 $d, %rx, %ry;"
                );
                let o = compared.operand();
                forms.push(
                    Form::new(
                        format!("{name} with {sign}p"),
                        B32,
                        [o, o, Truth],
                        move |[a, b, c, _]: Sources| {
                            let holds = OF_ALL[2].1(compared.order(a, b));
                            let other = (c == 1) != negates;
                            u64::from(combine(holds, other))
                                | u64::from(combine(!holds, other)) << 1
                        },
                    )
                    .code(code),
                );
            }
        }
    }
    forms
}

/// `set`, with a numeric result.
fn numbers(compared: Compared) -> Vec<Form> {
    let o = compared.operand();
    // Half-precision comparisons have results of their own type; the others have 32-bit results.
    let results: &[(&str, Operand, u64)] = match compared {
        Compared::Float(F16, _) => &[
            ("f16", HALF, 0x3c00),
            ("u16", B16, 0xffff),
            ("s16", B16, 0xffff),
            ("u32", B32, 0xffff_ffff),
            ("s32", B32, 0xffff_ffff),
        ],
        Compared::Float(BF16, _) => &[
            ("bf16", BRAIN, 0x3f80),
            ("u16", B16, 0xffff),
            ("s16", B16, 0xffff),
            ("u32", B32, 0xffff_ffff),
        ],
        _ => &[
            ("u32", B32, 0xffff_ffff),
            ("s32", B32, 0xffff_ffff),
            ("f32", SINGLE, 0x3f80_0000),
        ],
    };
    let mut forms = Vec::new();
    for (result, d, truth) in results {
        for (comparison, holds) in compared.comparisons() {
            // One result of each type is tested with every comparison, the others with two.
            if *result != "u32" && !matches!(comparison, "eq" | "ltu" | "gt") {
                continue;
            }
            let name = format!(
                "set.{comparison}{}.{result}.{}",
                compared.flag(),
                compared.name()
            );
            let truth = *truth;
            forms.push(
                Form::new(name, *d, [o, o], move |[a, b, ..]: Sources| {
                    if holds(compared.order(a, b)) {
                        truth
                    } else {
                        0
                    }
                })
                .needs(compared.architecture()),
            );
        }
    }
    forms
}

/// Two packed comparisons.
fn halves() -> Vec<Form> {
    let mut forms = Vec::new();
    for (compared, scalar, o, one) in [
        (Compared::Float(F16, false), "f16x2", HALVES, 0x3c00),
        (Compared::Float(F16, true), "f16x2", HALVES, 0x3c00),
        (Compared::Float(BF16, false), "bf16x2", BRAINS, 0x3f80),
    ] {
        for (comparison, holds) in compared.comparisons() {
            let name = format!("setp.{comparison}{}.{scalar}", compared.flag());
            let code = format!(
                "{name} %p|%q, $a, $b; selp.u32 %rx, 1, 0, %p; selp.u32 %ry, 2, 0, %q; or.b32 $d, %rx, %ry;"
            );
            let both = move |a: u64, b: u64| {
                [0, 16].map(|shift| {
                    u64::from(holds(
                        compared.order(a >> shift & 0xffff, b >> shift & 0xffff),
                    ))
                })
            };
            let f = move |[a, b, ..]: Sources| both(a, b)[0] | both(a, b)[1] << 1;
            forms.push(
                Form::new(name, B32, [o, o], f)
                    .code(code)
                    .needs(compared.architecture()),
            );
            let name = format!("set.{comparison}{}.{scalar}.{scalar}", compared.flag());
            let f =
                move |[a, b, ..]: Sources| (both(a, b)[0] * one) | ((both(a, b)[1] * one) << 16);
            forms.push(Form::new(name, o, [o, o], f).needs(compared.architecture()));
        }
    }
    forms
}

fn selections() -> Vec<Form> {
    let mut forms = Vec::new();
    let types = [
        "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64",
    ]
    .map(|name| (name, width(&name[1..])));
    for (name, o) in types {
        let code = format!("setp.ne.u32 %p, $c, 0; selp.{name} $d, $a, $b, %p;");
        forms.push(
            Form::new(
                format!("selp.{name}"),
                o,
                [o, o, Truth],
                |[a, b, c, _]: Sources| if c == 1 { a } else { b },
            )
            .code(code),
        );
        forms.push(Form::new(
            format!("slct.{name}.s32"),
            o,
            [o, o, B32],
            |[a, b, c, _]: Sources| if c < 1 << 31 { a } else { b },
        ));
        for flush in [false, true] {
            let name = format!("slct{}.{name}.f32", if flush { ".ftz" } else { "" });
            forms.push(Form::new(
                name,
                o,
                [o, o, SINGLE],
                move |[a, b, c, _]: Sources| {
                    let c = F32.value(if flush { F32.flush(c) } else { c });
                    if c >= 0.0 { a } else { b }
                },
            ));
        }
    }
    forms
}

fn width(bits: &str) -> Operand {
    match bits {
        "16" => B16,
        "32" => B32,
        _ => B64,
    }
}
