//! Arithmetic of f16 and bf16, scalar and packed.

use crate::form::{Form, Operand};
use crate::reference::real::{BF16, F16, Format, Mode, Operation, Round, arithmetic};

use super::float::extremes;

pub(super) fn forms() -> Vec<Form> {
    [F16, BF16]
        .into_iter()
        .flat_map(|format| {
            [false, true]
                .into_iter()
                .flat_map(move |pair| format_forms(format, pair))
        })
        .collect()
}

/// Applies a function to one number or to both packed numbers.
fn each(format: Format, pair: bool, sources: [u64; 4], f: impl Fn(&[u64]) -> u64) -> u64 {
    let mask = format.sign() | (format.sign() - 1);
    let lane = |shift: u32| f(&sources.map(|bits| bits >> shift & mask));
    if pair {
        lane(0) | lane(format.width) << format.width
    } else {
        lane(0)
    }
}

fn format_forms(format: Format, pair: bool) -> Vec<Form> {
    let (letter, is_brain) = if format == BF16 {
        ("bf16", true)
    } else {
        ("f16", false)
    };
    let scalar = if pair {
        format!("{letter}x2")
    } else {
        letter.to_owned()
    };
    let o = if pair {
        Operand::Pair(format)
    } else {
        Operand::Float(format)
    };
    let mut forms = sums(format, pair, &scalar, o);
    forms.extend(fused(format, pair, &scalar, o));
    let canonical = move |bits: u64| {
        if format.is_nan(bits) {
            format.nan(&[])
        } else {
            bits
        }
    };
    for flush in if is_brain {
        &[false][..]
    } else {
        &[false, true]
    } {
        let ftz = if *flush { ".ftz" } else { "" };
        let flush = *flush;
        let flushed = move |bits: u64| if flush { format.flush(bits) } else { bits };
        let needs = if is_brain { 80 } else { 75 };
        forms.push(
            Form::new(format!("abs{ftz}.{scalar}"), o, [o], move |sources| {
                each(format, pair, sources, |operands| {
                    flushed(canonical(operands[0] & !format.sign()))
                })
            })
            .needs(needs),
        );
        forms.push(
            Form::new(format!("neg{ftz}.{scalar}"), o, [o], move |sources| {
                each(format, pair, sources, |operands| {
                    if format.is_nan(operands[0]) {
                        canonical(operands[0])
                    } else {
                        flushed(operands[0] ^ format.sign())
                    }
                })
            })
            .needs(needs),
        );
    }
    forms.extend(extremes(&scalar, format, o, 80));
    forms
}

fn sums(format: Format, pair: bool, scalar: &str, o: Operand) -> Vec<Form> {
    let opcodes = [
        ("add", Operation::Add),
        ("sub", Operation::Subtract),
        ("mul", Operation::Multiply),
    ];
    let flags: &[(&str, bool, bool)] = if format == BF16 {
        &[(".rn", false, false), ("", false, false)]
    } else {
        &[
            ("", false, false),
            (".rn", false, false),
            (".ftz", true, false),
            (".sat", false, true),
            (".ftz.sat", true, true),
            (".rn.ftz.sat", true, true),
        ]
    };
    let mut forms = Vec::new();
    for (opcode, operation) in opcodes {
        for (text, flush, saturate) in flags {
            let mode = Mode {
                flush: *flush,
                saturate: *saturate,
                ..Mode::new(Round::Nearest)
            };
            let form = Form::new(
                format!("{opcode}{text}.{scalar}"),
                o,
                [o, o],
                move |sources| {
                    each(format, pair, sources, |operands| {
                        arithmetic(format, operation, mode, &operands[..2])
                    })
                },
            );
            forms.push(form.needs(if format == BF16 { 90 } else { 75 }));
        }
    }
    forms
}

fn fused(format: Format, pair: bool, scalar: &str, o: Operand) -> Vec<Form> {
    let flags: &[(&str, bool, bool, bool)] = if format == BF16 {
        &[("", false, false, false), (".relu", false, false, true)]
    } else {
        &[
            ("", false, false, false),
            (".ftz", true, false, false),
            (".sat", false, true, false),
            (".ftz.sat", true, true, false),
            (".relu", false, false, true),
            (".ftz.relu", true, false, true),
        ]
    };
    flags
        .iter()
        .map(|(text, flush, saturate, relu): &(&str, bool, bool, bool)| {
            let mode = Mode {
                flush: *flush,
                saturate: *saturate,
                relu: *relu,
                round: Round::Nearest,
            };
            let form = Form::new(
                format!("fma.rn{text}.{scalar}"),
                o,
                [o, o, o],
                move |sources| {
                    each(format, pair, sources, |operands| {
                        arithmetic(format, Operation::MultiplyAdd, mode, &operands[..3])
                    })
                },
            );
            form.needs(if format == BF16 || *relu { 80 } else { 75 })
        })
        .chain(forgetful(format, pair, scalar, o))
        .collect()
}

/// The out-of-bounds NaN of tensor copies, in both formats and with either sign.
const BEYOND: u64 = 0x7ff7;

/// `.oob`: the result is zero if a factor is the out-of-bounds NaN, which every other factor is
/// here.
fn forgetful(format: Format, pair: bool, scalar: &str, o: Operand) -> Vec<Form> {
    let mut forms = Vec::new();
    for ((text, relu), factor) in [(".oob", false), (".oob.relu", true)]
        .into_iter()
        .flat_map(|name| [(name, 0), (name, 1)])
    {
        let mode = Mode {
            relu,
            ..Mode::new(Round::Nearest)
        };
        let f = move |sources| {
            each(format, pair, sources, |operands| {
                let mut operands = [operands[0], operands[1], operands[2]];
                operands[factor] |= BEYOND;
                let is_beyond = operands[..2].iter().any(|bits| bits & 0x7fff == BEYOND);
                if is_beyond {
                    0
                } else {
                    arithmetic(format, Operation::MultiplyAdd, mode, &operands)
                }
            })
        };
        let (bits, made, mask) = if pair {
            (32, "%rx", "0x7ff77ff7")
        } else {
            (16, "%hx", "0x7ff7")
        };
        let operands = if factor == 0 {
            format!("{made}, $b, $c")
        } else {
            format!("$a, {made}, $c")
        };
        let source = ["$a", "$b"][factor];
        let code =
            format!("or.b{bits} {made}, {source}, {mask}; fma.rn{text}.{scalar} $d, {operands};");
        let name = format!(
            "fma.rn{text}.{scalar} {}",
            ["of the first factor", "of the second factor"][factor]
        );
        forms.push(Form::new(name, o, [o, o, o], f).code(code).needs(90));
    }
    forms
}
