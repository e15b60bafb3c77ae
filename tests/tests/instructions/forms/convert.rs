//! `cvt` between all pairs of integers and floating-point numbers, in every direction.

use crate::form::Form;
use crate::form::Operand::{self, B8, B16, B32, B64};
use crate::reference::integer::Integer;
use crate::reference::real::{BF16, Class, F16, F32, F64, Format, Mode, Round};
use crate::reference::wide::{Rest, Wide};

use super::float::ROUNDINGS;

const INTEGERS: [(Integer, Operand); 8] = [
    (
        Integer {
            bits: 8,
            signed: false,
        },
        B8,
    ),
    (
        Integer {
            bits: 8,
            signed: true,
        },
        B8,
    ),
    (
        Integer {
            bits: 16,
            signed: false,
        },
        B16,
    ),
    (
        Integer {
            bits: 16,
            signed: true,
        },
        B16,
    ),
    (
        Integer {
            bits: 32,
            signed: false,
        },
        B32,
    ),
    (
        Integer {
            bits: 32,
            signed: true,
        },
        B32,
    ),
    (
        Integer {
            bits: 64,
            signed: false,
        },
        B64,
    ),
    (
        Integer {
            bits: 64,
            signed: true,
        },
        B64,
    ),
];

const FLOATS: [(&str, Format); 4] = [("f16", F16), ("bf16", BF16), ("f32", F32), ("f64", F64)];

const INTEGRAL: [(&str, Round); 4] = [
    ("rni", Round::Nearest),
    ("rzi", Round::Zero),
    ("rmi", Round::Down),
    ("rpi", Round::Up),
];

pub(super) fn forms() -> Vec<Form> {
    let mut forms = integers();
    forms.extend(from_integers());
    forms.extend(to_integers());
    forms.extend(floats());
    forms.extend(integral_floats());
    forms
}

/// Returns the minimum compute capability for conversions between a type and bf16.
fn needs(name: &str) -> u32 {
    if name.contains("bf16") { 90 } else { 75 }
}

/// Returns the register content for a narrower result.
fn extended(t: Integer, bits: u64) -> u64 {
    if t.bits == 8 {
        Integer {
            bits: 16,
            signed: false,
        }
        .wrap(t.value(bits))
    } else {
        bits
    }
}

/// Returns the register kind of a result.
fn register(o: Operand) -> Operand {
    if o == B8 { B16 } else { o }
}

fn integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for (to, d) in INTEGERS {
        for (from, a) in INTEGERS {
            let name = format!("{}.{}", to.name(), from.name());
            forms.push(Form::new(
                format!("cvt.{name}"),
                register(d),
                [a],
                move |[a, ..]| extended(to, to.wrap(from.value(a))),
            ));
            // Without possible overflow there is no `.sat`.
            if from.least() < to.least() || from.most() > to.most() {
                forms.push(Form::new(
                    format!("cvt.sat.{name}"),
                    register(d),
                    [a],
                    move |[a, ..]| extended(to, to.clamp(from.value(a))),
                ));
            }
        }
    }
    forms
}

fn from_integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for (to, format) in FLOATS {
        for (from, a) in INTEGERS {
            for (direction, round) in ROUNDINGS {
                for saturate in [false, true] {
                    let lacks = format == BF16 && (saturate || from.bits == 8);
                    if lacks || saturate && round != Round::Nearest {
                        continue;
                    }
                    let sat = if saturate { ".sat" } else { "" };
                    let name = format!("cvt.{direction}{sat}.{to}.{}", from.name());
                    forms.push(
                        Form::new(
                            name,
                            Operand::Float(format),
                            [a],
                            move |[a, ..]: [u64; 4]| {
                                let bits = format.round(&Wide::integer(from.value(a)), round);
                                if saturate {
                                    format.saturate(bits)
                                } else {
                                    bits
                                }
                            },
                        )
                        .needs(needs(to)),
                    );
                }
            }
        }
    }
    forms
}

/// Returns the integer that a number rounds to.
fn integral(format: Format, bits: u64, round: Round) -> Option<i128> {
    let number = format.wide(bits)?;
    let (kept, rest) = number.split(0);
    let above = match round {
        Round::Nearest => rest == Rest::More || rest == Rest::Half && kept & 1 == 1,
        Round::Up => !number.negative && rest != Rest::Nothing,
        Round::Down => number.negative && rest != Rest::Nothing,
        _ => false,
    };
    // A number with more bits than a 64-bit integer is beyond all of them.
    let top = number.top().unwrap_or(0);
    let magnitude = if top > 100 {
        1 << 100
    } else {
        kept as i128 + i128::from(above)
    };
    Some(if number.negative {
        -magnitude
    } else {
        magnitude
    })
}

fn to_integer(to: Integer, format: Format, bits: u64, round: Round) -> u64 {
    if let Some(value) = integral(format, bits, round) {
        return to.clamp(value);
    }
    if !format.is_nan(bits) {
        return to.wrap(if format.is_negative(bits) {
            to.least()
        } else {
            to.most()
        });
    }
    // As measured: NaN gives zero, or the highest bit if f64 or a 64-bit type is involved.
    if format == F64 || to.bits == 64 {
        1 << (to.bits - 1)
    } else {
        0
    }
}

fn to_integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for (from, format) in FLOATS {
        for (to, d) in INTEGERS {
            for (direction, round) in INTEGRAL {
                for flags in ["", ".ftz", ".sat", ".ftz.sat"] {
                    let flush = flags.contains("ftz");
                    let saturates = flags.contains("sat");
                    let lacks = format == BF16 && (saturates || to.bits == 8);
                    if lacks || flush && format != F32 || saturates && round != Round::Zero {
                        continue;
                    }
                    let name = format!("cvt.{direction}{flags}.{}.{from}", to.name());
                    forms.push(
                        Form::new(
                            name,
                            register(d),
                            [Operand::Float(format)],
                            move |[a, ..]: [u64; 4]| {
                                let a = if flush { format.flush(a) } else { a };
                                extended(to, to_integer(to, format, a, round))
                            },
                        )
                        .needs(needs(from)),
                    );
                }
            }
        }
    }
    forms
}

/// Converts a number to another format.
fn reformat(to: Format, from: Format, bits: u64, mode: Mode) -> u64 {
    // As measured, a conversion to f16 does not flush.
    let bits = if mode.flush && from == F32 && to != F16 {
        from.flush(bits)
    } else {
        bits
    };
    let sign = if from.is_negative(bits) { to.sign() } else { 0 };
    let result = match from.class(bits) {
        Class::Nan if to == F64 => widened_nan(from, bits),
        Class::Nan => to.nan(&[]),
        Class::Infinite => sign | to.infinity(),
        Class::Finite { .. } => to.round(&from.wide(bits).expect("not finite"), mode.round),
    };
    let result = if mode.flush && to == F32 {
        to.flush(result)
    } else {
        result
    };
    match mode {
        Mode { saturate: true, .. } => to.saturate(result),
        Mode { relu: true, .. } => to.relu(result),
        _ => result,
    }
}

/// Returns the f64 for a NaN: the quieted NaN for f64, and the widened canonical NaN for other
/// formats.
fn widened_nan(from: Format, bits: u64) -> u64 {
    if from == F64 {
        bits | 1 << 51
    } else {
        0x7fff_ffff_e000_0000
    }
}

fn floats() -> Vec<Form> {
    let mut forms = Vec::new();
    for (to, d) in FLOATS {
        for (from, a) in FLOATS {
            if to == from {
                continue;
            }
            let exact = d.width > a.width;
            let directions = if exact {
                &[("", Round::Nearest)][..]
            } else {
                &ROUNDINGS
            };
            for (direction, round) in directions {
                for flags in ["", ".ftz", ".sat", ".ftz.sat", ".relu"] {
                    if !exists(to, from, direction, flags) {
                        continue;
                    }
                    let mode = Mode {
                        round: *round,
                        flush: flags.contains("ftz"),
                        saturate: flags.contains("sat"),
                        relu: flags.contains("relu"),
                    };
                    let dot = if direction.is_empty() { "" } else { "." };
                    let name = format!("cvt{dot}{direction}{flags}.{to}.{from}");
                    let form = Form::new(
                        name,
                        Operand::Float(d),
                        [Operand::Float(a)],
                        move |[s, ..]: [u64; 4]| reformat(d, a, s, mode),
                    );
                    let needs = if flags == ".relu" {
                        needs(to).max(80)
                    } else {
                        needs(to).max(needs(from))
                    };
                    forms.push(form.needs(needs));
                }
            }
        }
    }
    forms
}

/// Returns `true` if PTX defines the conversion.
fn exists(to: &str, from: &str, direction: &str, flags: &str) -> bool {
    let has = |scalar| to == scalar || from == scalar;
    let relu = flags != ".relu"
        || matches!((to, from), ("f16" | "bf16", "f32")) && matches!(direction, "rn" | "rz");
    let flush = !flags.contains("ftz") || has("f32");
    let saturate = !flags.contains("sat") || !has("bf16");
    let brains = !(has("bf16") && flags.contains("ftz"));
    relu && flush && saturate && brains
}

/// Rounding to an integer in the same format.
fn integral_floats() -> Vec<Form> {
    let mut forms = Vec::new();
    for (name, format) in FLOATS {
        for (direction, round) in INTEGRAL {
            for flags in ["", ".ftz", ".sat"] {
                if flags == ".ftz" && format != F32 || flags == ".sat" && format == BF16 {
                    continue;
                }
                let text = format!("cvt.{direction}{flags}.{name}.{name}");
                let o = Operand::Float(format);
                forms.push(
                    Form::new(text, o, [o], move |[a, ..]: [u64; 4]| {
                        let a = if flags == ".ftz" { format.flush(a) } else { a };
                        let result = whole(format, a, round);
                        if flags == ".sat" {
                            format.saturate(result)
                        } else {
                            result
                        }
                    })
                    .needs(needs(name)),
                );
            }
        }
    }
    for (flags, saturate, flush) in [
        ("", false, false),
        (".sat", true, false),
        (".ftz", false, true),
    ] {
        for (name, format) in [("f32", F32), ("f64", F64)] {
            if flush && format == F64 {
                continue;
            }
            let mode = Mode {
                saturate,
                flush,
                ..Mode::new(Round::Nearest)
            };
            let o = Operand::Float(format);
            forms.push(Form::new(
                format!("cvt{flags}.{name}.{name}"),
                o,
                [o],
                move |[a, ..]: [u64; 4]| reformat(format, format, a, mode),
            ));
        }
    }
    forms
}

fn whole(format: Format, bits: u64, round: Round) -> u64 {
    match format.class(bits) {
        Class::Nan => format.nan(&[bits]),
        Class::Infinite => bits,
        Class::Finite { exponent, .. } if exponent >= 0 => bits,
        Class::Finite { .. } => {
            let value = integral(format, bits, round).expect("not finite");
            format.round(&Wide::integer(value), round) & !format.sign() | bits & format.sign()
        }
    }
}
