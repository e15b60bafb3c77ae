//! Calls: direct, with a prototype and with a list of targets; with parameters of every type,
//! structures by value, recursion, and functions that do not return.

mod function;

use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = scalars();
    forms.extend(structures());
    forms.extend(lists());
    forms.extend(function::forms());
    forms
}

/// Returns a function that adds a number to its parameter.
fn adding(name: &str, number: u64) -> String {
    format!(
        ".func (.param .b64 result) FN{name}(.param .b64 x)
{{
    .reg .b64 %x;
    ld.param.b64 %x, [x];
    add.u64 %x, %x, {number};
    st.param.b64 [result], %x;
    ret;
}}
"
    )
}

/// Calls a function of one word with `%l0`; the result is in `%l8`. `CALL` is replaced by the call
/// without its target list or prototype.
fn call(callee: &str, signature: &str) -> String {
    format!(
        "{{
        .param .b64 argument, result;
        st.param.b64 [argument], %l0;
        call (result), {callee}, (argument){signature};
        ld.param.b64 %l8, [result];
    }}
    "
    )
}

const LEAVE: &str = "st.global.b64 [%out], %l8;";

fn plus(number: u64) -> impl Fn(&[Sources], usize) -> Output {
    move |all, thread| [all[thread][0].wrapping_add(number), 0, 0, 0]
}

/// One parameter and one result of each type, which a function reads, inverts and returns; narrow
/// types in wider registers.
fn scalars() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for kind in expand("{b8,u8,s8,b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}") {
        let bits: u32 = kind[1..].parse().expect("the type has a width");
        let class = if bits == 64 { "b64" } else { "b32" };
        // Parameters of fewer than 32 bits support only these types.
        let declared = if bits < 32 {
            format!("b{bits}")
        } else {
            kind.clone()
        };
        let register = if kind.starts_with('f') {
            kind.clone()
        } else {
            class.to_owned()
        };
        let function = format!(
            ".func (.param .{declared} result) FNturn(.param .{declared} x)
{{
    .reg .{register} %x;
    .reg .{class} %y;
    ld.param.{kind} %x, [x];
    mov.{class} %y, %x;
    not.{class} %y, %y;
    mov.{class} %x, %y;
    st.param.{declared} [result], %x;
    ret;
}}
"
        );
        let (from, to) = if bits == 64 {
            ("%l0", "%l8")
        } else {
            ("%r0", "%r8")
        };
        let widen = match (bits, kind.starts_with('s')) {
            (64, _) => "",
            (_, true) => "cvt.s64.s32 %l8, %r8;",
            _ => "cvt.u64.u32 %l8, %r8;",
        };
        let code = format!(
            "{{
        .param .{declared} argument, result;
        st.param.b{bits} [argument], {from};
        call.uni (result), FNturn, (argument);
        ld.param.{} {to}, [result];
    }}
    {widen}
    {LEAVE}",
            if kind.starts_with('f') {
                format!("b{bits}")
            } else {
                kind.clone()
            }
        );
        let is_signed = kind.starts_with('s');
        let form = BlockForm::new(
            format!("call of a function of .{kind}"),
            code,
            move |all, thread| {
                let high = 64 - bits;
                let turned = !all[thread][0] << high;
                [
                    if is_signed {
                        (turned.cast_signed() >> high).cast_unsigned()
                    } else {
                        turned >> high
                    },
                    0,
                    0,
                    0,
                ]
            },
        );
        forms.push(form.declaring(function));
    }
    forms
}

/// Structures by value: a function returns one with reversed bytes, and increments a byte of its
/// own copy before, which the caller does not observe.
fn structures() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (align, size) in [
        (1, 1),
        (1, 3),
        (2, 6),
        (4, 4),
        (4, 12),
        (8, 8),
        (8, 24),
        (16, 16),
        (16, 32),
    ] {
        let turn: String = (0..size)
            .map(|index| {
                format!(
                    "    ld.param.b8 %x, [x+{index}];\n    st.param.b8 [result+{}], %x;\n",
                    size - 1 - index
                )
            })
            .collect();
        let function = format!(
            ".func (.param .align {align} .b8 result[{size}]) FNturn(.param .align {align} .b8 x[{size}])
{{
    .reg .b16 %x;
{turn}    ret;
}}
"
        );
        // The bytes are loaded in units of the alignment, and stored one by one.
        let width = align.min(8);
        let register = ["%h8", "%h8", "%r8", "%l8"][usize::ilog2(width) as usize];
        let put: String = (0..size / width)
            .map(|index| {
                let index = index * width;
                format!(
                    "shr.u64 %l9, %l{}, {}; cvt.u{3}.u64 {register}, %l9; st.param.b{} [argument+{index}], {register};\n        ",
                    index / 8,
                    index % 8 * 8,
                    8 * width,
                    (8 * width).max(16)
                )
            })
            .collect();
        let take: String = (0..size)
            .map(|index| {
                format!(
                    "ld.param.b8 %h9, [result+{index}]; st.global.b8 [%out+{index}], %h9;\n        "
                )
            })
            .collect();
        let code = format!(
            "{{
        .param .align {align} .b8 argument[{size}];
        .param .align {align} .b8 result[{size}];
        {put}call (result), FNturn, (argument);
        {take}
    }}"
        );
        let form = BlockForm::new(
            format!("call with {size} bytes aligned to {align}"),
            code,
            move |all, thread| {
                let bytes: Vec<u8> = all[thread]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                output_from_bytes(|index| {
                    if index < size {
                        bytes[size - 1 - index]
                    } else {
                        0
                    }
                })
            },
        );
        forms.push(form.declaring(function));
    }
    forms.push(by_address());
    forms
}

/// A parameter whose address is taken, indexed by a value that differs between threads.
fn by_address() -> BlockForm {
    let function =
        ".func (.param .b64 result) FNpick(.param .align 16 .b8 x[32], .param .b32 number)
{
    .reg .b32 %n;
    .reg .b64 %p, %x;
    mov.b64 %p, x;
    ld.param.b32 %n, [number];
    mad.wide.u32 %p, %n, 8, %p;
    ld.param.b64 %x, [%p];
    st.param.b64 [result], %x;
    ret;
}
";
    let code = format!(
        "and.b32 %r8, %thread, 3;
    {{
        .param .align 16 .b8 argument[32];
        .param .b32 number;
        .param .b64 result;
        st.param.v2.b64 [argument], {{%l0, %l1}};
        st.param.b64 [argument+16], %l2;
        st.param.b64 [argument+24], %l3;
        st.param.b32 [number], %r8;
        call (result), FNpick, (argument, number);
        ld.param.b64 %l8, [result];
    }}
    {LEAVE}"
    );
    let form = BlockForm::new("call with an array that is indexed", code, |all, thread| {
        [all[thread][thread % 4], 0, 0, 0]
    });
    form.declaring(function)
}

/// Parameter lists: of all widths, empty, with immediate values, and with registers in place of
/// `.param` variables.
fn lists() -> Vec<BlockForm> {
    let many = ".func (.param .align 16 .b8 result[32]) FNspread(.param .b8 a, .param .b64 b, .param .b16 c, .param .f64 d, .param .f32 e, \
                .param .align 2 .b8 f[6], .param .b32 g)
{
    .reg .b16 %h<4>;
    .reg .b32 %r<4>;
    .reg .b64 %l<4>;
    ld.param.b8 %h0, [a];
    ld.param.b16 %h1, [c];
    ld.param.b16 %h2, [f+4];
    st.param.b16 [result], %h0;
    st.param.b16 [result+2], %h1;
    st.param.b16 [result+4], %h2;
    ld.param.b64 %l0, [b];
    ld.param.b64 %l1, [d];
    ld.param.b32 %r0, [e];
    ld.param.b32 %r1, [g];
    st.param.b16 [result+6], 0;
    st.param.b64 [result+8], %l0;
    st.param.b64 [result+16], %l1;
    st.param.v2.b32 [result+24], {%r0, %r1};
    ret;
}
";
    let code = "{
        .param .b8 a;
        .param .b64 b;
        .param .b16 c;
        .param .f64 d;
        .param .f32 e;
        .param .align 2 .b8 f[6];
        .param .b32 g;
        .param .align 16 .b8 result[32];
        st.param.b8 [a], %h0;
        st.param.b64 [b], %l1;
        st.param.b16 [c], %h2;
        st.param.b64 [d], %l3;
        st.param.b32 [e], %r0;
        st.param.b16 [f+4], %h1;
        st.param.b32 [g], %r2;
        call (result), FNspread, (a, b, c, d, e, f, g);
        ld.param.b64 %l8, [result];
        ld.param.b64 %l9, [result+8];
        ld.param.v2.b64 {%l10, %l11}, [result+16];
    }
    st.global.v2.b64 [%out], {%l8, %l9};
    st.global.v2.b64 [%out+16], {%l10, %l11};";
    let spread = BlockForm::new("call with parameters of all widths", code, |all, thread| {
        let [a, b, c, d] = all[thread];
        [
            a & 0xff | (c & 0xffff) << 16 | (b & 0xffff) << 32,
            b,
            d,
            a & 0xffff_ffff | c << 32,
        ]
    });
    let bare = ".global .align 4 .b32 FNbox[64];
.func FNmark()
{
    .reg .b32 %r;
    .reg .b64 %l;
    mov.u32 %r, %tid.x;
    mov.b64 %l, FNbox;
    mad.wide.u32 %l, %r, 4, %l;
    add.u32 %r, %r, 100;
    st.global.b32 [%l], %r;
}
";
    let marked = |call: &str| {
        let code = format!(
            "mov.b64 %l9, FNbox;
    mad.wide.u32 %l9, %thread, 4, %l9;
    {call};
    ld.global.b32 %r8, [%l9];
    st.global.b32 [%out], %r8;"
        );
        let form = BlockForm::new(format!("{call} by nothing"), code, |_, thread| {
            [thread as u64 + 100, 0, 0, 0]
        });
        form.declaring(bare)
    };
    let by_register = ".func (.reg .b32 result) FNsum(.reg .b32 x, .reg .b32 y)
{
    mad.lo.u32 result, x, 3, y;
    ret;
}
";
    let sum = |arguments: &str, expected: fn(u64, u64) -> u64| {
        let code = format!("call (%r8), FNsum, ({arguments});\n    st.global.b32 [%out], %r8;");
        BlockForm::new(
            format!("call by registers ({arguments})"),
            code,
            move |all: &[Sources], thread: usize| {
                [
                    expected(all[thread][0], all[thread][1]) & 0xffff_ffff,
                    0,
                    0,
                    0,
                ]
            },
        )
        .declaring(by_register)
    };
    vec![
        spread.declaring(many),
        marked("call FNmark"),
        marked("call.uni FNmark, ()"),
        sum("%r0, %r1", |a, b| a.wrapping_mul(3).wrapping_add(b)),
        sum("%r0, 7", |a, _| a.wrapping_mul(3).wrapping_add(7)),
        sum("0xffffffff, %r1", |_, b| b.wrapping_sub(3)),
    ]
}
