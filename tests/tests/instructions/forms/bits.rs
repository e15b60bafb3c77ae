//! Logic, shifts, bit fields, counting, finding and permuting.

use crate::form::Form;
use crate::form::Operand::{B32, Count, Truth};
use crate::reference::integer::{INTEGERS, Integer, S32, U32};

use super::integer::operand;

/// The `lop3` tables under test: each input alone, common combinations, and some others.
const TABLES: [u8; 20] = [
    0x00, 0xff, 0xf0, 0xcc, 0xaa, 0x80, 0xfe, 0x96, 0xe8, 0xca, 0x6a, 0x7f, 0x01, 0x3c, 0xd8, 0x1b,
    0x69, 0xb2, 0x47, 0xea,
];

pub(super) fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> = [16, 32, 64].into_iter().flat_map(logic).collect();
    forms.extend(predicate_logic());
    forms.extend([16, 32, 64].into_iter().flat_map(shifts));
    forms.extend([32, 64].into_iter().flat_map(counts));
    forms.extend(
        INTEGERS
            .iter()
            .filter(|t| t.bits > 16)
            .flat_map(|t| fields(*t)),
    );
    forms.extend(tables());
    forms.extend(permutations());
    forms.extend(funnels());
    forms.extend(masks());
    forms
}

fn logic(bits: u32) -> Vec<Form> {
    let o = operand(bits);
    let t = Integer {
        bits,
        signed: false,
    };
    let binary = |opcode: &str, f: fn(u64, u64) -> u64| {
        Form::new(format!("{opcode}.b{bits}"), o, [o, o], move |[a, b, ..]| {
            f(a, b) & t.mask()
        })
    };
    vec![
        binary("and", |a, b| a & b),
        binary("or", |a, b| a | b),
        binary("xor", |a, b| a ^ b),
        Form::new(format!("not.b{bits}"), o, [o], move |[a, ..]| !a & t.mask()),
        Form::new(format!("cnot.b{bits}"), o, [o], move |[a, ..]| {
            u64::from(a == 0)
        }),
    ]
}

fn predicate_logic() -> Vec<Form> {
    let tests = "setp.ne.u32 %p, $a, 0; setp.ne.u32 %q, $b, 0;";
    let form = |opcode: &str, f: fn(u64, u64) -> u64| {
        Form::new(
            format!("{opcode}.pred"),
            B32,
            [Truth, Truth],
            move |[a, b, ..]| f(a, b),
        )
        .code(format!(
            "{tests} {opcode}.pred %s, %p, %q; selp.u32 $d, 1, 0, %s;"
        ))
    };
    let not = Form::new("not.pred", B32, [Truth, Truth], |[a, ..]| a ^ 1)
        .code(format!("{tests} not.pred %s, %p; selp.u32 $d, 1, 0, %s;"));
    vec![
        form("and", |a, b| a & b),
        form("or", |a, b| a | b),
        form("xor", |a, b| a ^ b),
        not,
    ]
}

fn shifts(bits: u32) -> Vec<Form> {
    let o = operand(bits);
    let shift = move |opcode: &str, letter: char, left: bool| {
        let t = Integer {
            bits,
            signed: letter == 's',
        };
        Form::new(
            format!("{opcode}.{letter}{bits}"),
            o,
            [o, Count],
            move |[a, b, ..]| {
                let count = b.min(u64::from(bits));
                t.wrap(if left {
                    t.value(a) << count
                } else {
                    t.value(a) >> count
                })
            },
        )
    };
    vec![
        shift("shl", 'b', true),
        shift("shr", 'b', false),
        shift("shr", 'u', false),
        shift("shr", 's', false),
    ]
}

fn counts(bits: u32) -> Vec<Form> {
    let o = operand(bits);
    let zeros = move |a: u64| u64::from(a.leading_zeros()) - u64::from(64 - bits);
    let mut forms = vec![
        Form::new(format!("popc.b{bits}"), B32, [o], |[a, ..]| {
            u64::from(a.count_ones())
        }),
        Form::new(format!("clz.b{bits}"), B32, [o], move |[a, ..]| zeros(a)),
        Form::new(format!("brev.b{bits}"), o, [o], move |[a, ..]| {
            a.reverse_bits() >> (64 - bits)
        }),
    ];
    for signed in [false, true] {
        let t = Integer { bits, signed };
        // For a negative number, the highest clear bit.
        let searched = move |a: u64| if t.value(a) < 0 { !a & t.mask() } else { a };
        let last = u64::from(bits) - 1;
        let find = move |a: u64| (searched(a) != 0).then(|| last - zeros(searched(a)));
        let name = t.name();
        forms.push(Form::new(
            format!("bfind.{name}"),
            B32,
            [o],
            move |[a, ..]| find(a).unwrap_or(0xffff_ffff),
        ));
        forms.push(Form::new(
            format!("bfind.shiftamt.{name}"),
            B32,
            [o],
            move |[a, ..]| find(a).map_or(0xffff_ffff, |index| last - index),
        ));
    }
    forms
}

fn fields(t: Integer) -> Vec<Form> {
    let o = operand(t.bits);
    // The 32-bit forms use the low byte of position and length.
    let field = move |count: u64| if t.bits == 32 { count & 0xff } else { count };
    let mut forms = vec![Form::new(
        format!("bfe.{}", t.name()),
        o,
        [o, Count, Count],
        move |[a, b, c, _]| t.extract(a, field(b), field(c)),
    )];
    if !t.signed {
        forms.push(Form::new(
            format!("bfi.b{}", t.bits),
            o,
            [o, o, Count, Count],
            move |[a, b, c, d]| t.insert(a, b, field(c), field(d)),
        ));
    }
    forms
}

fn tables() -> Vec<Form> {
    let look_up = |table: u8, a: u64, b: u64, c: u64| -> u64 {
        (0..32)
            .map(|bit| {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
                u64::from(table >> index & 1) << bit
            })
            .sum()
    };
    let table = move |table: u8| {
        Form::new(
            format!("lop3.b32 of {table:#04x}"),
            B32,
            [B32; 3],
            move |[a, b, c, _]| look_up(table, a, b, c),
        )
        .code(format!("lop3.b32 $d, $a, $b, $c, {table:#04x};"))
    };
    let tested = move |operation: &str, f: fn(bool, bool) -> bool| {
        let code = format!(
            "setp.ne.u32 %q, $e, 0; lop3.{operation}.b32 %rx|%p, $a, $b, $c, 0x96, %q; selp.u32 $d, 1, 0, %p;"
        );
        Form::new(
            format!("lop3.{operation}.b32"),
            B32,
            [B32, B32, B32, Truth],
            move |[a, b, c, d]| u64::from(f(look_up(0x96, a, b, c) != 0, d == 1)),
        )
        .code(code)
    };
    let tested = [tested("or", |a, b| a | b), tested("and", |a, b| a & b)];
    TABLES.into_iter().map(table).chain(tested).collect()
}

fn permutations() -> Vec<Form> {
    let permute = |a: u64, b: u64, selector: u64| -> u64 {
        (0..4)
            .map(|index| {
                let select = selector >> (4 * index) & 0xf;
                let byte = (b << 32 | a) >> (8 * (select & 7)) & 0xff;
                let byte = if select & 8 == 0 {
                    byte
                } else {
                    (byte >> 7) * 0xff
                };
                byte << (8 * index)
            })
            .sum()
    };
    let modes: [(&str, [u64; 4]); 6] = [
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ];
    let modes = modes.into_iter().map(move |(mode, selectors)| {
        Form::new(
            format!("prmt.b32.{mode}"),
            B32,
            [B32; 3],
            move |[a, b, c, _]| permute(a, b, selectors[(c & 3) as usize]),
        )
    });
    let plain = Form::new("prmt.b32", B32, [B32; 3], move |[a, b, c, _]| {
        permute(a, b, c)
    });
    std::iter::once(plain).chain(modes).collect()
}

fn funnels() -> Vec<Form> {
    let mut forms = Vec::new();
    for left in [true, false] {
        for wraps in [true, false] {
            let name = format!(
                "shf.{}.{}.b32",
                if left { 'l' } else { 'r' },
                if wraps { "wrap" } else { "clamp" }
            );
            forms.push(Form::new(
                name,
                B32,
                [B32, B32, Count],
                move |[a, b, c, _]| {
                    let count = if wraps { c & 31 } else { c.min(32) };
                    let pair = b << 32 | a;
                    if left {
                        (pair << count) >> 32
                    } else {
                        pair >> count & 0xffff_ffff
                    }
                },
            ));
        }
    }
    forms
}

/// `bmsk`, `szext` and `fns`.
fn masks() -> Vec<Form> {
    let mut forms = Vec::new();
    for wraps in [true, false] {
        let mode = if wraps { "wrap" } else { "clamp" };
        forms.push(Form::new(
            format!("bmsk.{mode}.b32"),
            B32,
            [Count, Count],
            move |[a, b, ..]| {
                let (position, length) = if wraps { (a & 31, b & 31) } else { (a, b) };
                (0..32)
                    .map(|bit| u64::from(bit >= position && bit - position < length) << bit)
                    .sum()
            },
        ));
        for t in [U32, S32] {
            forms.push(Form::new(
                format!("szext.{mode}.{}", t.name()),
                B32,
                [B32, Count],
                move |[a, b, ..]| {
                    let length = if wraps { b & 31 } else { b };
                    match length {
                        0 => 0,
                        32.. => a,
                        _ => U32.wrap(
                            Integer {
                                bits: length as u32,
                                signed: t.signed,
                            }
                            .value(a),
                        ),
                    }
                },
            ));
        }
    }
    forms.push(find_nth_set());
    forms
}

fn find_nth_set() -> Form {
    Form::new(
        "fns.b32",
        B32,
        [B32, Count, Count],
        |[mask, base, offset, _]: crate::form::Sources| {
            let base = base & 31;
            let offset = S32.value(offset);
            let set = |at: i128| (0..32).contains(&at) && mask >> at & 1 == 1;
            // As measured: the distance is negated, which this case survives.
            if offset == i128::from(i32::MIN) {
                return 0;
            }
            if offset == 0 {
                return if set(i128::from(base)) {
                    base
                } else {
                    0xffff_ffff
                };
            }
            let positions = (0..32)
                .map(|step| i128::from(base) + step * offset.signum())
                .filter(|index| set(*index));
            let mut matches =
                positions.skip(usize::try_from(offset.unsigned_abs() - 1).expect("it fits"));
            matches.next().map_or(0xffff_ffff, |index| index as u64)
        },
    )
    .code("and.b32 %rx, $b, 31; fns.b32 $d, $a, %rx, $c;")
}
