//! Sums, products, quotients, minima and maxima of integers.

use crate::form::Form;
use crate::form::Operand::{self, B16, B32, B64, Bytes, Halves};
use crate::reference::integer::{INTEGERS, Integer, S32, U32};

pub(super) fn operand(bits: u32) -> Operand {
    match bits {
        16 => B16,
        32 => B32,
        _ => B64,
    }
}

pub(super) fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> = INTEGERS.iter().flat_map(|scalar| plain(*scalar)).collect();
    forms.extend(INTEGERS.iter().flat_map(|scalar| products(*scalar)));
    forms.extend(saturating());
    forms.extend([U32, S32].into_iter().flat_map(products24));
    forms.extend(halves());
    forms.extend(dot_products());
    forms
}

/// Returns the forms of every type.
fn plain(t: Integer) -> Vec<Form> {
    let name = t.name();
    let o = operand(t.bits);
    let binary = |opcode: &str, f: fn(Integer, i128, i128) -> i128| {
        Form::new(format!("{opcode}.{name}"), o, [o, o], move |[a, b, ..]| {
            t.wrap(f(t, t.value(a), t.value(b)))
        })
    };
    let mut forms = vec![
        binary("add", |_, a, b| a + b),
        binary("sub", |_, a, b| a - b),
        binary("min", |_, a, b| a.min(b)),
        binary("max", |_, a, b| a.max(b)),
        Form::new(format!("div.{name}"), o, [o, o], move |[a, b, ..]| {
            t.quotient(a, b)
        }),
        Form::new(format!("rem.{name}"), o, [o, o], move |[a, b, ..]| {
            t.remainder(a, b)
        }),
        Form::new(format!("sad.{name}"), o, [o, o, o], move |[a, b, c, _]| {
            t.wrap((t.value(a) - t.value(b)).abs() + t.value(c))
        }),
    ];
    if t.signed {
        forms.push(Form::new(format!("abs.{name}"), o, [o], move |[a, ..]| {
            t.wrap(t.value(a).abs())
        }));
        forms.push(Form::new(format!("neg.{name}"), o, [o], move |[a, ..]| {
            t.wrap(-t.value(a))
        }));
    }
    forms
}

fn products(t: Integer) -> Vec<Form> {
    let name = t.name();
    let o = operand(t.bits);
    let low = move |a: u64, b: u64| t.value(a).wrapping_mul(t.value(b));
    let mut forms = vec![
        Form::new(format!("mul.lo.{name}"), o, [o, o], move |[a, b, ..]| {
            t.wrap(low(a, b))
        }),
        Form::new(format!("mul.hi.{name}"), o, [o, o], move |[a, b, ..]| {
            t.wrap(t.high_product(a, b))
        }),
        Form::new(
            format!("mad.lo.{name}"),
            o,
            [o, o, o],
            move |[a, b, c, _]| t.wrap(low(a, b).wrapping_add(t.value(c))),
        ),
        Form::new(
            format!("mad.hi.{name}"),
            o,
            [o, o, o],
            move |[a, b, c, _]| t.wrap(t.high_product(a, b) + t.value(c)),
        ),
    ];
    if t.bits < 64 {
        let w = t.wide();
        let wide = operand(2 * t.bits);
        forms.push(Form::new(
            format!("mul.wide.{name}"),
            wide,
            [o, o],
            move |[a, b, ..]| w.wrap(low(a, b)),
        ));
        forms.push(Form::new(
            format!("mad.wide.{name}"),
            wide,
            [o, o, wide],
            move |[a, b, c, _]| w.wrap(low(a, b) + w.value(c)),
        ));
    }
    forms
}

fn saturating() -> [Form; 3] {
    [
        Form::new("add.sat.s32", B32, [B32, B32], move |[a, b, ..]| {
            S32.clamp(S32.value(a) + S32.value(b))
        }),
        Form::new("sub.sat.s32", B32, [B32, B32], move |[a, b, ..]| {
            S32.clamp(S32.value(a) - S32.value(b))
        }),
        Form::new(
            "mad.hi.sat.s32",
            B32,
            [B32, B32, B32],
            move |[a, b, c, _]| S32.clamp(S32.high_product(a, b) + S32.value(c)),
        ),
    ]
}

fn products24(t: Integer) -> Vec<Form> {
    let name = t.name();
    let narrow = Integer { bits: 24, ..t };
    let product = move |a: u64, b: u64| narrow.value(a) * narrow.value(b);
    let mut forms = vec![
        Form::new(
            format!("mul24.lo.{name}"),
            B32,
            [B32, B32],
            move |[a, b, ..]| t.wrap(product(a, b)),
        ),
        Form::new(
            format!("mul24.hi.{name}"),
            B32,
            [B32, B32],
            move |[a, b, ..]| t.wrap(product(a, b) >> 16),
        ),
        Form::new(
            format!("mad24.lo.{name}"),
            B32,
            [B32; 3],
            move |[a, b, c, _]| t.wrap(product(a, b) + t.value(c)),
        ),
        Form::new(
            format!("mad24.hi.{name}"),
            B32,
            [B32; 3],
            move |[a, b, c, _]| t.wrap((product(a, b) >> 16) + t.value(c)),
        ),
    ];
    if t.signed {
        forms.push(Form::new(
            "mad24.hi.sat.s32",
            B32,
            [B32; 3],
            move |[a, b, c, _]| t.clamp((product(a, b) >> 16) + t.value(c)),
        ));
    }
    forms
}

/// Packed 16-bit integers, and `.relu`.
fn halves() -> Vec<Form> {
    type Function = fn(i128, i128) -> i128;
    let operations: [(&str, bool, Function); 8] = [
        ("add.u16x2", false, |a, b| a + b),
        ("add.s16x2", true, |a, b| a + b),
        ("min.u16x2", false, Ord::min),
        ("max.u16x2", false, Ord::max),
        ("min.s16x2", true, Ord::min),
        ("max.s16x2", true, Ord::max),
        ("min.relu.s16x2", true, |a, b| a.min(b).max(0)),
        ("max.relu.s16x2", true, |a, b| a.max(b).max(0)),
    ];
    let pairs = operations.into_iter().map(|(name, signed, f)| {
        let t = Integer { bits: 16, signed };
        let half = move |a: u64, b: u64| t.wrap(f(t.value(a), t.value(b)));
        let form = Form::new(name, Halves, [Halves, Halves], move |[a, b, ..]| {
            half(a, b) | half(a >> 16, b >> 16) << 16
        });
        form.needs(90)
    });
    let single: [(&str, Function); 2] = [
        ("min.relu.s32", |a, b| a.min(b).max(0)),
        ("max.relu.s32", |a, b| a.max(b).max(0)),
    ];
    let single = single.into_iter().map(|(name, f)| {
        Form::new(name, B32, [B32, B32], move |[a, b, ..]| {
            S32.wrap(f(S32.value(a), S32.value(b)))
        })
        .needs(90)
    });
    pairs.chain(single).collect()
}

/// `dp4a` and `dp2a`.
fn dot_products() -> Vec<Form> {
    let mut forms = Vec::new();
    for a_signed in [false, true] {
        for b_signed in [false, true] {
            let a_letter = if a_signed { 's' } else { 'u' };
            let b_letter = if b_signed { 's' } else { 'u' };
            let types = format!("{a_letter}32.{b_letter}32");
            let sum = move |a: u64, b: u64, c: u64, count: u32, first: u32| {
                let x = Integer {
                    bits: 32 / count,
                    signed: a_signed,
                };
                let y = Integer {
                    bits: 8,
                    signed: b_signed,
                };
                let products = (0..count).map(|index| {
                    x.value(a >> (index * x.bits)) * y.value(b >> ((first + index) * 8))
                });
                U32.wrap(products.sum::<i128>() + U32.value(c))
            };
            forms.push(Form::new(
                format!("dp4a.{types}"),
                B32,
                [Bytes, Bytes, B32],
                move |[a, b, c, _]| sum(a, b, c, 4, 0),
            ));
            for (half, first) in [("lo", 0), ("hi", 2)] {
                let name = format!("dp2a.{half}.{types}");
                forms.push(Form::new(
                    name,
                    B32,
                    [Halves, Bytes, B32],
                    move |[a, b, c, _]| sum(a, b, c, 2, first),
                ));
            }
        }
    }
    forms
}
