//! Arithmetic of f32 and f64 in all rounding modes, and operations that do not round.

use crate::form::Operand::{self, B32};
use crate::form::{DOUBLE, Form, SINGLE, Sources};
use crate::reference::real::{
    BF16, Extreme, F32, F64, Format, Mode, Operation, Round, arithmetic, extreme,
};

/// The rounding modes by their suffix.
pub(super) const ROUNDINGS: [(&str, Round); 4] = [
    ("rn", Round::Nearest),
    ("rz", Round::Zero),
    ("rm", Round::Down),
    ("rp", Round::Up),
];

pub(super) fn forms() -> Vec<Form> {
    let mut forms = rounded(F32);
    forms.extend(rounded(F64));
    forms.extend(unrounded());
    forms.extend(signs(F32, SINGLE));
    forms.extend(signs(F64, DOUBLE));
    forms.extend(extremes("f32", F32, SINGLE, 75));
    forms.extend(doubles());
    forms.extend(properties(F32, SINGLE));
    forms.extend(properties(F64, DOUBLE));
    forms
}

fn name(format: Format) -> &'static str {
    if format == F32 { "f32" } else { "f64" }
}

fn operand(format: Format) -> Operand {
    Operand::Float(format)
}

/// Returns an arithmetic form.
pub(super) fn arithmetic_form(
    name: String,
    format: Format,
    operation: Operation,
    mode: Mode,
) -> Form {
    let o = operand(format);
    let is_reciprocal = name.starts_with("rcp");
    match operation {
        Operation::MultiplyAdd => Form::new(name, o, [o, o, o], move |[a, b, c, _]| {
            arithmetic(format, operation, mode, &[a, b, c])
        }),
        Operation::Root => Form::new(name, o, [o], move |[a, ..]| {
            arithmetic(format, operation, mode, &[a])
        }),
        Operation::Divide if is_reciprocal => {
            let one = format.infinity() >> 1 & !((1 << (format.precision - 1)) - 1);
            Form::new(name, o, [o], move |[a, ..]| {
                arithmetic(format, operation, mode, &[one, a])
            })
        }
        _ => Form::new(name, o, [o, o], move |[a, b, ..]| {
            arithmetic(format, operation, mode, &[a, b])
        }),
    }
}

fn rounded(format: Format) -> Vec<Form> {
    let opcodes = [
        ("add", Operation::Add, true),
        ("sub", Operation::Subtract, true),
        ("mul", Operation::Multiply, true),
        ("fma", Operation::MultiplyAdd, true),
        ("mad", Operation::MultiplyAdd, true),
        ("div", Operation::Divide, false),
        ("rcp", Operation::Divide, false),
        ("sqrt", Operation::Root, false),
    ];
    let mut forms = Vec::new();
    for (opcode, operation, saturates) in opcodes {
        for (direction, round) in ROUNDINGS {
            for flush in [false, true] {
                for saturate in [false, true] {
                    if format == F64 && (flush || saturate) || saturate && !saturates {
                        continue;
                    }
                    let flags = format!(
                        "{}{}",
                        if flush { ".ftz" } else { "" },
                        if saturate { ".sat" } else { "" }
                    );
                    let name = format!("{opcode}.{direction}{flags}.{}", name(format));
                    let mode = Mode {
                        flush,
                        saturate,
                        ..Mode::new(round)
                    };
                    forms.push(arithmetic_form(name, format, operation, mode));
                }
            }
        }
    }
    forms
}

/// Forms without a rounding modifier, which round to nearest even.
fn unrounded() -> Vec<Form> {
    let mode = Mode::new(Round::Nearest);
    let opcodes = [
        ("add", Operation::Add),
        ("sub", Operation::Subtract),
        ("mul", Operation::Multiply),
    ];
    let formats = [F32, F64];
    opcodes
        .into_iter()
        .flat_map(|(opcode, operation)| {
            formats.map(|format| {
                arithmetic_form(
                    format!("{opcode}.{}", name(format)),
                    format,
                    operation,
                    mode,
                )
            })
        })
        .collect()
}

/// `abs`, `neg` and `copysign`.
fn signs(format: Format, o: Operand) -> Vec<Form> {
    let scalar = name(format);
    let canonical = move |bits: u64| {
        if format == F32 && format.is_nan(bits) {
            format.nan(&[])
        } else {
            bits
        }
    };
    let mut forms = vec![
        Form::new(format!("abs.{scalar}"), o, [o], move |[a, ..]| {
            canonical(a & !format.sign())
        }),
        Form::new(format!("neg.{scalar}"), o, [o], move |[a, ..]| {
            if format.is_nan(a) {
                canonical(a)
            } else {
                a ^ format.sign()
            }
        }),
        Form::new(
            format!("copysign.{scalar}"),
            o,
            [o, o],
            move |[a, b, ..]| a & format.sign() | b & !format.sign(),
        ),
    ];
    if format == F32 {
        let flushed = move |a: u64| canonical(format.flush(a));
        forms.push(Form::new("abs.ftz.f32", o, [o], move |[a, ..]| {
            flushed(a & !format.sign())
        }));
        forms.push(Form::new("neg.ftz.f32", o, [o], move |[a, ..]| {
            if format.is_nan(a) {
                canonical(a)
            } else {
                flushed(a ^ format.sign())
            }
        }));
    }
    forms
}

/// `min` and `max` with all their modifiers.
pub(super) fn extremes(scalar: &str, format: Format, o: Operand, architecture: u32) -> Vec<Form> {
    let has_flush = format != BF16;
    let mut forms = Vec::new();
    for largest in [false, true] {
        for bits in 0..8 {
            let form = Extreme {
                largest,
                nan: bits & 1 != 0,
                flush: bits & 2 != 0,
                signs: bits & 4 != 0,
            };
            if form.flush && !has_flush {
                continue;
            }
            let name = format!(
                "{}{}{}{}.{scalar}",
                if largest { "max" } else { "min" },
                if form.flush { ".ftz" } else { "" },
                if form.nan { ".NaN" } else { "" },
                if form.signs { ".xorsign.abs" } else { "" },
            );
            let needs = if form.signs || form.nan {
                architecture.max(86)
            } else {
                architecture
            };
            forms.push(
                Form::new(name, o, [o, o], move |[a, b, ..]: Sources| match o {
                    Operand::Pair(_) => {
                        let mask = format.sign() | (format.sign() - 1);
                        let upper = extreme(
                            format,
                            form,
                            a >> format.width & mask,
                            b >> format.width & mask,
                        );
                        extreme(format, form, a & mask, b & mask) | upper << format.width
                    }
                    _ => extreme(format, form, a, b),
                })
                .needs(needs),
            );
        }
    }
    forms
}

fn doubles() -> [Form; 2] {
    let form = |name: &str, largest: bool| {
        let form = Extreme {
            largest,
            ..Extreme::default()
        };
        Form::new(name, DOUBLE, [DOUBLE, DOUBLE], move |[a, b, ..]| {
            extreme(F64, form, a, b)
        })
    };
    [form("min.f64", false), form("max.f64", true)]
}

/// `testp`.
fn properties(format: Format, o: Operand) -> Vec<Form> {
    type Test = fn(Format, u64) -> bool;
    let tests: [(&str, Test); 6] = [
        ("finite", |format, a| a & !format.sign() < format.infinity()),
        ("infinite", |format, a| {
            a & !format.sign() == format.infinity()
        }),
        ("number", |format, a| !format.is_nan(a)),
        ("notanumber", Format::is_nan),
        // As measured, zeros are normal.
        ("normal", |format, a| {
            let magnitude = a & !format.sign();
            magnitude == 0 || magnitude < format.infinity() && a & format.infinity() != 0
        }),
        ("subnormal", |format, a| {
            a & !format.sign() != 0 && a & format.infinity() == 0
        }),
    ];
    tests
        .into_iter()
        .map(|(test, holds)| {
            let name = format!("testp.{test}.{}", name(format));
            let code = format!("{name} %p, $a; selp.u32 $d, 1, 0, %p;");
            Form::new(name, B32, [o], move |[a, ..]| u64::from(holds(format, a))).code(code)
        })
        .collect()
}
