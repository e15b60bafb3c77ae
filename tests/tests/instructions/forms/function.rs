//! Approximate functions, with the error bounds of the PTX documentation or, where it gives none,
//! the measured ones.

use crate::form::{Bound, DOUBLE, Form, SINGLE, Sources};
use crate::reference::real::{BF16, F16, F32, F64};

pub(super) fn forms() -> Vec<Form> {
    let mut forms = singles();
    forms.extend(quotients());
    forms.extend(doubles());
    forms.extend(halves());
    forms
}

type Function = fn(f64) -> f64;

fn singles() -> Vec<Form> {
    let functions: [(&str, Bound, Function); 7] = [
        ("rcp.approx", Bound::ulps(1.0), |x| 1.0 / x),
        ("sqrt.approx", Bound::ulps(2.0), f64::sqrt),
        ("rsqrt.approx", Bound::ulps(2.0), inverse_root),
        ("ex2.approx", Bound::ulps(2.0), f64::exp2),
        (
            "lg2.approx",
            Bound {
                ulps: 2.0,
                absolute: 2.4e-7,
            },
            f64::log2,
        ),
        ("sin.approx", Bound::absolute(6.8e-7), f64::sin),
        ("cos.approx", Bound::absolute(6.8e-7), f64::cos),
    ];
    let mut forms = Vec::new();
    for (name, bound, function) in functions {
        for ftz in ["", ".ftz"] {
            let name = format!("{name}{ftz}.f32");
            // Sines are specified between -pi and pi.
            let is_wave = name.starts_with("sin") || name.starts_with("cos");
            forms.push(if is_wave {
                wave(&name, bound, function)
            } else {
                Form::near(name, F32, false, bound, function)
            });
        }
    }
    forms.push(Form::near(
        "tanh.approx.f32",
        F32,
        false,
        Bound::ulps(4096.0),
        f64::tanh,
    ));
    forms
}

/// Returns a function of a number below 2: the highest exponent bit is cleared.
fn wave(name: &str, bound: Bound, function: Function) -> Form {
    const NEAR_ZERO: u64 = 0xbfff_ffff;
    Form::near_value(name, F32, [SINGLE], bound, move |[a, ..]: Sources| {
        vec![function(F32.value(a & NEAR_ZERO))]
    })
    .code(format!("and.b32 %rx, $a, {NEAR_ZERO:#x}; {name} $d, %rx;"))
}

/// Quotients by numbers from 2^-63 to 2, for which every form is specified.
fn quotients() -> Vec<Form> {
    const CUT: u64 = 0xbfff_ffff;
    const RAISE: u64 = 0x2000_0000;
    let form = |name: String| {
        let flushes = name.contains("ftz");
        let code =
            format!("and.b32 %rx, $b, {CUT:#x}; or.b32 %rx, %rx, {RAISE:#x}; {name} $d, $a, %rx;");
        Form::near_value(
            name,
            F32,
            [SINGLE, SINGLE],
            Bound::ulps(2.0),
            move |[a, b, ..]: Sources| {
                let a = if flushes { F32.flush(a) } else { a };
                vec![F32.value(a) / F32.value(b & CUT | RAISE)]
            },
        )
        .code(code)
    };
    let kinds = ["approx", "approx.ftz", "full", "full.ftz"];
    kinds
        .into_iter()
        .map(|kind| form(format!("div.{kind}.f32")))
        .collect()
}

/// Returns the approximate functions of f64, with about 20 bits.
fn doubles() -> [Form; 3] {
    let bound = Bound::ulps(33.0_f64.exp2());
    // As measured, the lower half of the operand is ignored.
    let coarse = |name: &str, function: Function| {
        Form::near_value(name, F64, [DOUBLE], bound, move |[a, ..]: Sources| {
            vec![function(upper_word(f64::from_bits(F64.flush(a))))]
        })
    };
    [
        coarse("rcp.approx.ftz.f64", |x| 1.0 / x),
        coarse("rsqrt.approx.ftz.f64", inverse_root),
        Form::near("rsqrt.approx.f64", F64, false, bound, inverse_root),
    ]
}

/// Clears the lower word of a number.
fn upper_word(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & !0xffff_ffff)
}

fn halves() -> Vec<Form> {
    let tanh = Bound {
        ulps: 1.0,
        absolute: (-10.9_f64).exp2(),
    };
    let brain_tanh = Bound {
        ulps: 1.0,
        absolute: (-8.0_f64).exp2(),
    };
    let mut forms = Vec::new();
    for (pair, suffix) in [(false, ""), (true, "x2")] {
        forms.push(Form::near(
            format!("ex2.approx.f16{suffix}"),
            F16,
            pair,
            Bound::ulps(2.0),
            f64::exp2,
        ));
        forms.push(Form::near(
            format!("tanh.approx.f16{suffix}"),
            F16,
            pair,
            tanh,
            f64::tanh,
        ));
        let name = format!("ex2.approx.ftz.bf16{suffix}");
        forms.push(Form::near(name, BF16, pair, Bound::ulps(2.0), f64::exp2).needs(90));
        forms.push(
            Form::near(
                format!("tanh.approx.bf16{suffix}"),
                BF16,
                pair,
                brain_tanh,
                f64::tanh,
            )
            .needs(90),
        );
    }
    forms
}

fn inverse_root(value: f64) -> f64 {
    1.0 / value.sqrt()
}
