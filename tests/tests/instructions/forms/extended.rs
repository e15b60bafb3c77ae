//! Sums, differences and products with carry-in and carry-out.

use crate::form::Operand::Truth;
use crate::form::{Form, Sources};
use crate::reference::integer::{INTEGERS, Integer};

use super::integer::operand;

pub(super) fn forms() -> Vec<Form> {
    INTEGERS
        .iter()
        .filter(|t| t.bits > 16)
        .flat_map(|t| sums(*t).into_iter().chain(products(*t)))
        .collect()
}

/// The exact result, of which the bits above the width are the carry.
type Sum = fn(Integer, Sources) -> i128;

/// Returns a form for the result, and forms for the carry-out as a sum and as a difference read it.
fn pair(t: Integer, name: &str, code: &str, sources: usize, sum: Sum) -> [Form; 3] {
    let o = operand(t.bits);
    let letters = ["$a", "$b", "$c"];
    let scratch = if t.bits == 32 { "%rx" } else { "%lx" };
    let operands = letters[..sources].join(", ");
    // The last source is the carry-in.
    let carry = if code.contains("addc") || code.contains("madc") {
        format!("add.cc.u32 %ry, {}, -1;", ["$c", "$e"][sources - 2])
    } else if code.contains("subc") {
        format!("sub.cc.u32 %ry, 0, {};", ["$c", "$e"][sources - 2])
    } else {
        String::new()
    };
    let kinds: Vec<_> = std::iter::repeat_n(o, sources)
        .chain(std::iter::once(Truth))
        .collect();
    let form = |name: String, code: String, f: Box<dyn Fn(Sources) -> u64>| match kinds[..] {
        [a, b, c] => Form::new(name, o, [a, b, c], f).code(code),
        _ => Form::new(name, o, [kinds[0], kinds[1], kinds[2], kinds[3]], f).code(code),
    };
    let result = format!("{carry} {code}.{} $d, {operands};", t.name());
    // Hardware computes a difference as a sum with the complement, which carries unless the
    // difference borrows.
    let is_difference = code.starts_with("sub");
    let [same, opposite] = if is_difference {
        ["subc", "addc"]
    } else {
        ["addc", "subc"]
    };
    let written = format!("{carry} {code}.cc.{} {scratch}, {operands};", t.name());
    [
        form(
            name.to_owned(),
            result,
            Box::new(move |sources| t.wrap(sum(t, sources))),
        ),
        form(
            format!("{name} with .cc"),
            format!("{written} {same}.{} $d, 0, 0;", t.name()),
            Box::new(move |sources| {
                read_carry(t, same, carries(t, sum(t, sources), is_difference))
            }),
        ),
        form(
            format!("{name} with .cc, read by {opposite}"),
            format!("{written} {opposite}.{} $d, 0, 0;", t.name()),
            Box::new(move |sources| {
                read_carry(t, opposite, carries(t, sum(t, sources), is_difference))
            }),
        ),
    ]
}

/// Returns the carry of an exact result.
fn carries(t: Integer, exact: i128, is_difference: bool) -> bool {
    (exact >> t.bits & 1 != 0) != is_difference
}

/// Returns the result of an instruction that reads the carry and adds or subtracts 0.
fn read_carry(t: Integer, reader: &str, carry: bool) -> u64 {
    match (reader, carry) {
        ("addc", carry) => u64::from(carry),
        (_, true) => 0,
        _ => t.mask(),
    }
}

fn unsigned(t: Integer, bits: u64) -> i128 {
    i128::from(bits & t.mask())
}

fn sums(t: Integer) -> Vec<Form> {
    let name = |opcode: &str| format!("{opcode}.{} in a chain", t.name());
    let mut forms = Vec::new();
    forms.extend(pair(t, &name("add"), "add", 2, |t, [a, b, ..]| {
        unsigned(t, a) + unsigned(t, b)
    }));
    forms.extend(pair(t, &name("addc"), "addc", 2, |t, [a, b, c, _]| {
        unsigned(t, a) + unsigned(t, b) + i128::from(c)
    }));
    // A difference sets a borrow.
    forms.extend(pair(t, &name("sub"), "sub", 2, |t, [a, b, ..]| {
        unsigned(t, a) - unsigned(t, b)
    }));
    forms.extend(pair(t, &name("subc"), "subc", 2, |t, [a, b, c, _]| {
        unsigned(t, a) - unsigned(t, b) - i128::from(c)
    }));
    forms
}

fn products(t: Integer) -> Vec<Form> {
    let name = |opcode: &str| format!("{opcode}.{} in a chain", t.name());
    fn low_product(t: Integer, a: u64, b: u64) -> i128 {
        unsigned(t, t.wrap(t.value(a).wrapping_mul(t.value(b))))
    }
    fn high_product(t: Integer, a: u64, b: u64) -> i128 {
        unsigned(t, t.wrap(t.high_product(a, b)))
    }
    let mut forms = Vec::new();
    forms.extend(pair(t, &name("mad.lo"), "mad.lo", 3, |t, [a, b, c, _]| {
        low_product(t, a, b) + unsigned(t, c)
    }));
    forms.extend(pair(t, &name("mad.hi"), "mad.hi", 3, |t, [a, b, c, _]| {
        high_product(t, a, b) + unsigned(t, c)
    }));
    forms.extend(pair(
        t,
        &name("madc.lo"),
        "madc.lo",
        3,
        |t, [a, b, c, d]| low_product(t, a, b) + unsigned(t, c) + i128::from(d),
    ));
    forms.extend(pair(
        t,
        &name("madc.hi"),
        "madc.hi",
        3,
        |t, [a, b, c, d]| high_product(t, a, b) + unsigned(t, c) + i128::from(d),
    ));
    forms
}
