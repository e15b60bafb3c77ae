//! Recursive functions, indirect calls, aliases, and the ways a function ends.

use super::{LEAVE, adding, call, plus};
use crate::block::BlockForm;
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = recursions();
    forms.extend(pointers());
    forms.extend(names());
    forms.extend(ends());
    forms
}

/// Functions that call themselves and each other, to a depth that depends on the thread.
fn recursions() -> Vec<BlockForm> {
    let sum = ".func (.param .b64 result) FNsum(.param .b64 x)
{
    .reg .pred %p;
    .reg .b64 %x, %y, %z;
    ld.param.b64 %x, [x];
    mov.b64 %z, 0;
    setp.eq.u64 %p, %x, 0;
    @%p bra DONE;
    sub.u64 %y, %x, 1;
    {
        .param .b64 argument, again;
        st.param.b64 [argument], %y;
        call (again), FNsum, (argument);
        ld.param.b64 %z, [again];
    }
    mul.lo.u64 %z, %z, 3;
    add.u64 %z, %z, %x;
DONE:
    st.param.b64 [result], %z;
    ret;
}
";
    let half = |name: &str, other: &str, of_zero: u64| {
        format!(
            ".func (.param .b64 result) {name}(.param .b64 x)
{{
    .reg .pred %p;
    .reg .b64 %x;
    ld.param.b64 %x, [x];
    st.param.b64 [result], {of_zero};
    setp.eq.u64 %p, %x, 0;
    @%p ret;
    sub.u64 %x, %x, 1;
    {{
        .param .b64 argument, again;
        st.param.b64 [argument], %x;
        call (again), {other}, (argument);
        ld.param.b64 %x, [again];
    }}
    st.param.b64 [result], %x;
    ret;
}}
"
        )
    };
    let ahead = ".func (.param .b64 result) FNodd(.param .b64 x);\n";
    let parity = format!(
        "{ahead}{}{}",
        half("FNeven", "FNodd", 1),
        half("FNodd", "FNeven", 0)
    );
    // Few enough for the default stack of one kilobyte per thread.
    let depth = "and.b32 %r8, %thread, 7;\n    cvt.u64.u32 %l0, %r8;\n    ";
    let recursive = BlockForm::new(
        "call of a function by itself",
        format!("{depth}{}{LEAVE}", call("FNsum", "")),
        |_, thread| {
            [
                (1..=thread as u64 % 8).fold(0, |sum, x| 3 * sum + x),
                0,
                0,
                0,
            ]
        },
    );
    let mutual = BlockForm::new(
        "call of two functions by one another",
        format!("{depth}{}{LEAVE}", call("FNeven", "")),
        |_, thread| [u64::from(thread % 2 == 0), 0, 0, 0],
    );
    vec![recursive.declaring(sum), mutual.declaring(parity)]
}

/// Indirect calls, by an address common to all threads and by one that differs between threads.
fn pointers() -> Vec<BlockForm> {
    let functions = adding("one", 1) + &adding("ten", 10) + &adding("hundred", 100);
    let table = format!(
        "{functions}.global .align 8 .u64 FNtable[4] = {{FNone, FNten, FNhundred, FNten}};\n"
    );
    let signatures = [
        (
            "a prototype",
            "WAY: .callprototype (.param .b64 _) _ (.param .b64 _);\n    ",
        ),
        (
            "targets",
            "WAY: .calltargets FNone, FNten, FNhundred;\n    ",
        ),
    ];
    let mut forms = Vec::new();
    for (name, signature) in signatures {
        let by = call("%l9", ", WAY");
        let same = format!("mov.b64 %l9, FNten;\n    {signature}{by}{LEAVE}");
        let uniform = format!(
            "mov.b64 %l9, FNone;\n    {signature}{}{LEAVE}",
            by.replace("call ", "call.uni ")
        );
        let calls = [
            BlockForm::new(
                format!("call by {name} of a calls function"),
                same,
                plus(10),
            ),
            BlockForm::new(
                format!("call.uni by {name} of a calls function"),
                uniform,
                plus(1),
            ),
        ];
        let calls = calls.map(|form| {
            if name == "targets" {
                form.left_out(NO_ADDRESS)
            } else {
                form
            }
        });
        forms.extend(calls.map(|form| form.declaring(functions.clone())));
        // The compiler cannot infer that the threads form a block.
        let one_of = "mov.u32 %r8, %nctaid.x;
    setp.ne.u32 %p1, %r8, 0;
    mov.b64 %l9, FNhundred;
    mov.b64 %l10, FNten;
    selp.b64 %l9, %l10, %l9, %p1;
    ";
        for (way, by) in [
            ("call", by.clone()),
            ("call.uni", by.replace("call ", "call.uni ")),
        ] {
            let code = format!("{one_of}{signature}{by}{LEAVE}");
            forms.push(
                BlockForm::new(format!("{way} by {name} of one"), code, plus(10))
                    .declaring(functions.clone()),
            );
        }
        let each = format!(
            "and.b32 %r8, %thread, 3;
    mov.b64 %l9, FNtable;
    mad.wide.u32 %l9, %r8, 8, %l9;
    ld.global.b64 %l9, [%l9];
    {signature}{by}{LEAVE}"
        );
        forms.push(
            BlockForm::new(
                format!("call by {name} of each thread"),
                each,
                |all: &[Sources], thread: usize| {
                    [
                        all[thread][0].wrapping_add([1, 10, 100, 10][thread % 4]),
                        0,
                        0,
                        0,
                    ]
                },
            )
            .declaring(table.clone()),
        );
    }
    forms
}

const NO_ADDRESS: &str = "the compiler of CUDA 13.0 calls the function's position in its section as if it were an address, where nothing is (700)";

/// Names: an alias, a weak function, a forward declaration, and a call by some of the threads.
fn names() -> Vec<BlockForm> {
    let alias = adding("ten", 10)
        + ".func (.param .b64 result) FNother(.param .b64 x);\n.alias FNother, FNten;\n";
    let weak = format!(".weak {}", adding("ten", 10));
    let later = format!(
        ".func (.param .b64 result) FNten(.param .b64 x);\n{}",
        adding("ten", 10)
    );
    let guarded = format!(
        "mov.b64 %l8, 5;
    and.b32 %r8, %thread, 1;
    setp.eq.u32 %p1, %r8, 1;
    {}@%p1 mov.b64 %l8, %l9;
    {LEAVE}",
        call("FNten", "")
            .replace("call ", "@%p1 call ")
            .replace("%l8", "%l9")
    );
    let not = guarded.replace("@%p1", "@!%p1");
    let some = |odd: usize| {
        move |all: &[Sources], thread: usize| {
            [
                if thread % 2 == odd {
                    all[thread][0].wrapping_add(10)
                } else {
                    5
                },
                0,
                0,
                0,
            ]
        }
    };
    let code = |name: &str| call(name, "") + LEAVE;
    vec![
        BlockForm::new("call of an alias", code("FNother"), plus(10)).declaring(alias),
        BlockForm::new("call of a weak function", code("FNten"), plus(10)).declaring(weak),
        BlockForm::new(
            "call of a function that is declared before",
            code("FNten"),
            plus(10),
        )
        .declaring(later),
        BlockForm::new("@%p call", guarded, some(1)).declaring(adding("ten", 10)),
        BlockForm::new("@!%p call", not, some(0)).declaring(adding("ten", 10)),
    ]
}

/// Functions that some threads leave early, or never.
fn ends() -> Vec<BlockForm> {
    let early = ".func (.param .b64 result) FNten(.param .b64 x)
{
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %x;
    ld.param.b64 %x, [x];
    st.param.b64 [result], %x;
    mov.u32 %r, %tid.x;
    and.b32 %r, %r, 3;
    setp.eq.u32 %p, %r, 1;
    @%p ret;
    setp.eq.u32 %p, %r, 2;
    @%p bra LATER;
    add.u64 %x, %x, 10;
LATER:
    add.u64 %x, %x, 1;
    st.param.b64 [result], %x;
    ret;
}
";
    // Threads that exit keep the results they wrote before; the others continue.
    let prototype =
        "mov.b64 %l9, FNend;\n    WAY: .callprototype _ (.param .b64 _) .noreturn;\n    ";
    let gone = |_: &[Sources], _: usize| [77, 0, 0, 0];
    vec![
        BlockForm::new(
            "@%p ret in a function",
            call("FNten", "") + LEAVE,
            |all: &[Sources], thread: usize| {
                [
                    all[thread][0].wrapping_add([11, 0, 1, 11][thread % 4]),
                    0,
                    0,
                    0,
                ]
            },
        )
        .declaring(early),
        BlockForm::new(
            "exit in a function",
            call_with_output("call FNend", "") + "st.global.b64 [%out], 1;",
            gone,
        )
        .declaring(ending_function("", "")),
        BlockForm::new(
            "@%p exit in a function",
            call_with_output("call FNend", "") + "st.global.b64 [%out], %l0;",
            |all: &[Sources], thread: usize| {
                [if thread % 2 == 1 { 77 } else { all[thread][0] }, 0, 0, 0]
            },
        )
        .declaring(ending_function("", "@%p ")),
        BlockForm::new(
            "call of a function that is .noreturn",
            call_with_output("call FNend", "") + "st.global.b64 [%out], 1;",
            gone,
        )
        .declaring(ending_function(" .noreturn", "").replace("exit;\n    ret;", "exit;")),
        BlockForm::new(
            "call by a prototype that is .noreturn",
            prototype.to_owned()
                + &call_with_output("call %l9", ", WAY")
                + "st.global.b64 [%out], 1;",
            gone,
        )
        .declaring(ending_function(" .noreturn", "").replace("exit;\n    ret;", "exit;")),
    ]
}

/// Returns a call with the address of the output as its argument.
fn call_with_output(way: &str, signature: &str) -> String {
    format!(
        "{{
        .param .b64 argument;
        st.param.b64 [argument], %out;
        {way}, (argument){signature};
    }}
    "
    )
}

/// Returns the function `FNend`, whose odd threads exit.
fn ending_function(attribute: &str, first: &str) -> String {
    format!(
        ".func FNend(.param .b64 position){attribute}
{{
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %x;
    ld.param.b64 %x, [position];
    st.global.b64 [%x], 77;
    mov.u32 %r, %tid.x;
    and.b32 %r, %r, 1;
    setp.eq.u32 %p, %r, 1;
    {first}exit;
    ret;
}}
"
    )
}
