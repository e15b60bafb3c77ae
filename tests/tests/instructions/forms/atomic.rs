//! Atomics in global and in shared memory: the first source is in memory, and the result is the
//! value in memory afterwards.

use crate::form::Operand::{self, B16, B32, B64};
use crate::form::{BRAIN, BRAINS, DOUBLE, Form, HALF, HALVES, SINGLE, Sources};
use crate::reference::integer::{INTEGERS, Integer};
use crate::reference::real::{BF16, F16, F32, F64, Format, Mode, Operation, Round, arithmetic};

pub(super) fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for t in INTEGERS.into_iter().filter(|t| t.bits > 16) {
        forms.extend(integers(t));
    }
    for bits in [32, 64] {
        forms.extend(words(bits));
    }
    forms.extend(floats());
    forms.extend(old_values());
    forms
}

/// Returns a form in global memory and one in shared memory.
fn both(
    text: &str,
    o: Operand,
    sources: usize,
    architecture: u32,
    f: impl Fn(Sources) -> u64 + Clone + 'static,
) -> [Form; 2] {
    ["global", "shared"].map(|space| {
        let name = text.replace("SPACE", space);
        let (class, bits) = match o.register() {
            16 => ('h', 16),
            32 => ('r', 32),
            _ => ('l', 64),
        };
        let operands = if sources == 3 { "$b, $c" } else { "$b" };
        let operation = |address: &str| {
            let red = name.starts_with("red");
            let result = if red { String::new() } else { format!("%{class}x, ") };
            format!("st.{space}.b{bits} {address}, $a; {name} {result}{address}, {operands}; ld.{space}.b{bits} $d, {address};")
        };
        let code = if space == "global" {
            operation("[%out]")
        } else {
            format!(
                "{{ .shared .align 8 .b8 places[1024]; mov.u32 %rx, %tid.x; mov.u32 %ry, places; mad.lo.u32 %rz, %rx, 8, %ry;
    {} }}",
                operation("[%rz]")
            )
        };
        let form = match sources {
            3 => Form::new(name.clone(), o, [o, o, o], f.clone()),
            _ => Form::new(name.clone(), o, [o, o], f.clone()),
        };
        form.code(code).needs(architecture)
    })
}

fn integers(t: Integer) -> Vec<Form> {
    type Function = fn(i128, i128) -> i128;
    let mut operations: Vec<(&str, Function)> = vec![("min", Ord::min), ("max", Ord::max)];
    if !(t.signed && t.bits == 64) {
        operations.push(("add", |a, b| a + b));
    }
    let mut forms = Vec::new();
    for (operation, f) in operations {
        for opcode in ["atom", "red"] {
            let text = format!("{opcode}.SPACE.{operation}.{}", t.name());
            forms.extend(both(
                &text,
                super::integer::operand(t.bits),
                2,
                75,
                move |[a, b, ..]: Sources| t.wrap(f(t.value(a), t.value(b))),
            ));
        }
    }
    forms
}

fn words(bits: u32) -> Vec<Form> {
    type Function = fn(u64, u64) -> u64;
    let o = super::integer::operand(bits);
    let operations: [(&str, Function); 4] = [
        ("and", |a, b| a & b),
        ("or", |a, b| a | b),
        ("xor", |a, b| a ^ b),
        ("exch", |_, b| b),
    ];
    let mut forms = Vec::new();
    for (operation, f) in operations {
        forms.extend(both(
            &format!("atom.SPACE.{operation}.b{bits}"),
            o,
            2,
            75,
            move |[a, b, ..]| f(a, b),
        ));
    }
    forms.extend(both(
        &format!("atom.SPACE.cas.b{bits}"),
        o,
        3,
        75,
        |[a, b, c, _]| if a == b { c } else { a },
    ));
    if bits == 32 {
        forms.extend(both(
            "atom.SPACE.inc.u32",
            B32,
            2,
            75,
            |[a, b, ..]: Sources| if a >= b { 0 } else { a + 1 },
        ));
        forms.extend(both(
            "atom.SPACE.dec.u32",
            B32,
            2,
            75,
            |[a, b, ..]: Sources| if a == 0 || a > b { b } else { a - 1 },
        ));
        forms.extend(both("atom.SPACE.cas.b16", B16, 3, 75, |[a, b, c, _]| {
            if a == b { c } else { a }
        }));
    }
    forms
}

/// Returns the sum of one or of two packed numbers.
fn sum(format: Format, pair: bool, flush: bool) -> impl Fn(Sources) -> u64 + Clone + 'static {
    let mode = Mode {
        flush,
        ..Mode::new(Round::Nearest)
    };
    let mask = format.sign() | (format.sign() - 1);
    let sum = move |a: u64, b: u64| arithmetic(format, Operation::Add, mode, &[a & mask, b & mask]);
    move |[a, b, ..]| {
        let low = sum(a, b);
        if pair {
            low | sum(a >> format.width, b >> format.width) << format.width
        } else {
            low
        }
    }
}

fn floats() -> Vec<Form> {
    let mut forms = Vec::new();
    // Global memory flushes subnormal f32 numbers; shared memory does not.
    let [global, _] = both("atom.SPACE.add.f32", SINGLE, 2, 75, sum(F32, false, true));
    let [_, shared] = both("atom.SPACE.add.f32", SINGLE, 2, 75, sum(F32, false, false));
    let [reduced, _] = both("red.SPACE.add.f32", SINGLE, 2, 75, sum(F32, false, true));
    forms.extend([global, shared, reduced]);
    forms.extend(both(
        "atom.SPACE.add.f64",
        DOUBLE,
        2,
        75,
        sum(F64, false, false),
    ));
    forms.extend(both(
        "atom.SPACE.add.noftz.f16",
        HALF,
        2,
        75,
        sum(F16, false, false),
    ));
    forms.extend(both(
        "atom.SPACE.add.noftz.f16x2",
        HALVES,
        2,
        75,
        sum(F16, true, false),
    ));
    forms.extend(both(
        "atom.SPACE.add.noftz.bf16",
        BRAIN,
        2,
        90,
        sum(BF16, false, false),
    ));
    forms.extend(both(
        "atom.SPACE.add.noftz.bf16x2",
        BRAINS,
        2,
        90,
        sum(BF16, true, false),
    ));
    forms
}

/// Returns forms for the value that an atomic returns, which is the previous one.
fn old_values() -> Vec<Form> {
    let types = [
        ("add.u32", B32),
        ("exch.b64", B64),
        ("max.s64", B64),
        ("add.f64", B64),
        ("and.b32", B32),
    ];
    types
        .into_iter()
        .map(|(operation, o): (&str, Operand)| {
            let code = format!(
                "st.global.b{} [%out], $a; atom.global.{operation} $d, [%out], $b;",
                o.bits()
            );
            Form::new(
                format!("atom.global.{operation} returns"),
                o,
                [o, o],
                |[a, ..]| a,
            )
            .code(code)
        })
        .collect()
}
