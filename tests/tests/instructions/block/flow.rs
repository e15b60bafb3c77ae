//! Branches by a label and by a list of labels, exits of threads, and stack memory allocated by a
//! function.

use super::{BlockForm, Output};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = branches();
    forms.extend(indexed());
    forms.extend(ends());
    forms.extend(stacks());
    forms
}

/// `bra` forward and backward, by all threads and by some.
fn branches() -> Vec<BlockForm> {
    let odd = "and.b32 %r8, %thread, 1;\n    setp.eq.u32 %p1, %r8, 1;\n    mov.b32 %r9, 0;\n    ";
    let leave = "st.global.b32 [%out], %r9;";
    let forward = |branch: &str| {
        format!(
            "{odd}{branch} OVER;\n    add.u32 %r9, %r9, 1;\nOVER:\n    add.u32 %r9, %r9, 2;\n    {leave}"
        )
    };
    let form = |branch: &str, [even, odd]: [u64; 2]| {
        BlockForm::new(
            format!("{branch} forwards"),
            forward(branch),
            move |_, thread| [if thread % 2 == 0 { even } else { odd }, 0, 0, 0],
        )
    };
    // Iterates as often as the thread's number.
    let turns = |branch: &str, count: &str| {
        format!(
            "mov.b32 %r9, 0;
    add.u32 %r10, {count}, 1;
AGAIN:
    add.u32 %r9, %r9, %r10;
    sub.u32 %r10, %r10, 1;
    setp.ne.u32 %p1, %r10, 0;
    {branch} AGAIN;
    {leave}"
        )
    };
    // A loop with two entries, neither of which dominates the other.
    let tangled = format!(
        "{odd}mov.b32 %r10, 0;
    @%p1 bra SECOND;
FIRST:
    add.u32 %r9, %r9, 1;
SECOND:
    add.u32 %r9, %r9, 16;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p2, %r10, 3;
    @%p2 bra FIRST;
    {leave}"
    );
    let nested = format!(
        "{odd}{{
        .reg .b32 %r9;
        mov.b32 %r9, 40;
        @%p1 bra INNER;
        add.u32 %r9, %r9, 1;
INNER:
        st.global.b32 [%out+8], %r9;
    }}
    {leave}"
    );
    vec![
        form("bra", [2, 2]),
        form("bra.uni", [2, 2]),
        form("@%p1 bra", [3, 2]),
        form("@!%p1 bra", [2, 3]),
        BlockForm::new(
            "@%p1 bra backwards",
            turns("@%p1 bra", "%thread"),
            |_: &[Sources], thread: usize| [(1..=thread as u64 + 1).sum(), 0, 0, 0],
        ),
        BlockForm::new(
            "@%p1 bra.uni backwards",
            turns("@%p1 bra.uni", "31"),
            |_, _| [528, 0, 0, 0],
        ),
        BlockForm::new("@%p1 bra into a loop", tangled, |_, thread| {
            [if thread % 2 == 1 { 50 } else { 51 }, 0, 0, 0]
        }),
        BlockForm::new("@%p1 bra in a scope", nested, |_, thread| {
            [0, 41 - (thread % 2) as u64, 0, 0]
        }),
    ]
}

/// `brx.idx` with an index common to all threads and with one that differs, with duplicate labels
/// and with a backward branch.
fn indexed() -> Vec<BlockForm> {
    let list = "WAYS: .branchtargets ZERO, ONE, TWO, ONE, LAST;\n    ";
    let ways = "ZERO:
    add.u32 %r9, %r9, 1;
ONE:
    add.u32 %r9, %r9, 16;
    bra LAST;
TWO:
    add.u32 %r9, %r9, 256;
LAST:
    st.global.b32 [%out], %r9;";
    let code = |set: &str, branch: &str| {
        format!("mov.b32 %r9, 0;\n    {set}\n    {list}{branch} %r8, WAYS;\n    {ways}")
    };
    const LEFT: [u64; 5] = [17, 16, 256, 16, 0];
    let mut forms: Vec<BlockForm> = LEFT
        .iter()
        .enumerate()
        .flat_map(|(number, left)| {
            ["brx.idx", "brx.idx.uni"].map(|branch| {
                let set = format!("mov.b32 %r8, {number};");
                BlockForm::new(
                    format!("{branch} to {number}"),
                    code(&set, branch),
                    |_, _| [*left, 0, 0, 0],
                )
            })
        })
        .collect();
    let each = "rem.u32 %r8, %thread, 5;";
    forms.push(BlockForm::new(
        "brx.idx of each thread",
        code(each, "brx.idx"),
        |_, thread| [LEFT[thread % 5], 0, 0, 0],
    ));
    // The other threads fall through to the first label.
    let some =
        "rem.u32 %r8, %thread, 5;\n    and.b32 %r10, %thread, 1;\n    setp.eq.u32 %p1, %r10, 1;";
    forms.push(BlockForm::new(
        "@%p1 brx.idx",
        code(some, "@%p1 brx.idx"),
        |_, thread| {
            [
                if thread % 2 == 1 {
                    LEFT[thread % 5]
                } else {
                    LEFT[0]
                },
                0,
                0,
                0,
            ]
        },
    ));
    let single = "mov.b32 %r9, 3;\n    mov.b32 %r8, 0;\n    WAY: .branchtargets ON;\n    brx.idx %r8, WAY;\n    mov.b32 %r9, 4;\nON:\n    st.global.b32 [%out], %r9;";
    forms.push(BlockForm::new(
        "brx.idx to the only label",
        single,
        |_, _| [3, 0, 0, 0],
    ));
    // A small state machine: each thread loops until its number is zero.
    let around = "mov.b32 %r9, 0;
    mov.b32 %r10, %thread;
    WAYS: .branchtargets DONE, STEP;
STEP:
    add.u32 %r9, %r9, %r10;
    sub.u32 %r10, %r10, 1;
    setp.gt.s32 %p1, %r10, 0;
    selp.b32 %r8, 1, 0, %p1;
    brx.idx %r8, WAYS;
DONE:
    st.global.b32 [%out], %r9;";
    forms.push(BlockForm::new("brx.idx backwards", around, |_, thread| {
        [(0..=thread as u64).sum(), 0, 0, 0]
    }));
    forms
}

/// Threads that exit before others, which do not wait for them at the block barrier.
fn ends() -> Vec<BlockForm> {
    let odd = "and.b32 %r8, %thread, 1;\n    setp.eq.u32 %p1, %r8, 1;\n    st.global.b64 [%out], 7;\n    ";
    let ending = "\n    bar.sync 0;\n    st.global.b64 [%out], 9;";
    let mut forms: Vec<BlockForm> = [
        ("@%p1 exit", [9, 7]),
        ("@!%p1 exit", [7, 9]),
        ("@%p1 ret", [9, 7]),
        ("@!%p1 ret", [7, 9]),
    ]
    .map(|(end, [even, odd_left])| {
        BlockForm::new(
            end,
            format!("{odd}{end};{ending}"),
            move |_: &[Sources], thread: usize| [[even, odd_left][thread % 2], 0, 0, 0],
        )
    })
    .into();
    for end in ["exit", "ret", "ret.uni"] {
        let code = format!(
            "{odd}bra LATER;\nEND:\n    {end};\nLATER:\n    st.global.b64 [%out], 8;\n    @%p1 bra END;{ending}"
        );
        forms.push(BlockForm::new(
            format!("{end} behind a branch"),
            code,
            |_, thread| [9 - (thread % 2) as u64, 0, 0, 0],
        ));
    }
    // A whole warp exits.
    let code = format!(
        "st.global.b64 [%out], 7;\n    setp.lt.u32 %p1, %thread, 32;\n    @%p1 exit;{ending}"
    );
    forms.push(BlockForm::new("@%p1 exit of a warp", code, |_, thread| {
        [if thread < 32 { 7 } else { 9 }, 0, 0, 0]
    }));
    forms
}

/// `alloca`, `stacksave` and `stackrestore`: allocations do not overlap, are aligned, and live
/// until they are released.
fn stacks() -> Vec<BlockForm> {
    let answer = "selp.b64 %l8, 1, 0, %p1; st.global.b64 [%out], %l8;";
    let apart = "mov.b64 %l10, 16;
    alloca.u64 %l8, %l10;
    alloca.u64 %l9, 16;
    st.local.b64 [%l8], %l0;
    st.local.b64 [%l8+8], %l1;
    st.local.b64 [%l9], %l2;
    cvta.local.u64 %l11, %l9;
    st.b64 [%l11+8], %l3;
    st.local.b64 [%local], 3;
    st.local.b64 [%local+56], 3;
    ld.local.b64 %l12, [%l8]; ld.local.b64 %l13, [%l8+8]; ld.local.b64 %l14, [%l9]; ld.local.b64 %l15, [%l9+8];
    st.global.v2.b64 [%out], {%l12, %l13}; st.global.v2.b64 [%out+16], {%l14, %l15};";
    let mut forms = vec![BlockForm::new(
        "alloca.u64 twice",
        apart,
        |all: &[Sources], thread: usize| -> Output { all[thread] },
    )];
    for align in [1, 8, 16, 64, 128] {
        let code = format!(
            "alloca.u64 %l8, 1, {align};
    alloca.u64 %l9, 3, {align};
    or.b64 %l10, %l8, %l9;
    and.b64 %l10, %l10, {};
    setp.eq.u64 %p1, %l10, 0;
    setp.ne.and.u64 %p1, %l8, %l9, %p1;
    {answer}",
            align - 1
        );
        forms.push(BlockForm::new(
            format!("alloca.u64 aligned to {align}"),
            code,
            always_one,
        ));
    }
    // Each thread allocates a size of its own, and fills it; a function called then has variables
    // of its own. The total is far less than the default stack of one kilobyte per thread.
    let each = "and.b32 %r8, %thread, 7;
    add.u32 %r8, %r8, 1;
    mul.wide.u32 %l9, %r8, 8;
    alloca.u64 %l8, %l9;
    mov.b64 %l10, %l8;
    mov.b32 %r9, 0;
FILL:
    cvt.u64.u32 %l11, %r9;
    st.local.b64 [%l10], %l11;
    add.u64 %l10, %l10, 8;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, %r8;
    @%p1 bra FILL;
    call FNscratch;
    mov.b64 %l12, 0;
SUM:
    sub.u64 %l10, %l10, 8;
    ld.local.b64 %l11, [%l10];
    add.u64 %l12, %l12, %l11;
    setp.gt.u64 %p1, %l10, %l8;
    @%p1 bra SUM;
    st.global.b64 [%out], %l12;";
    let scratch = ".func FNscratch()
{
    .reg .b32 %n;
    .reg .b64 %p, %q, %e;
    .reg .pred %t;
    .local .align 8 .b8 own[128];
    mov.b64 %p, own;
    add.u64 %e, %p, 128;
CLEAR:
    st.local.b64 [%p], -1;
    add.u64 %p, %p, 8;
    setp.lt.u64 %t, %p, %e;
    @%t bra CLEAR;
    alloca.u64 %q, 64;
    st.local.b64 [%q], -1;
    st.local.b64 [%q+56], -1;
    ret;
}
";
    forms.push(
        BlockForm::new("alloca.u64 of each thread", each, |_, thread| {
            [(0..=thread as u64 % 8).sum(), 0, 0, 0]
        })
        .declaring(scratch),
    );
    // Released stack memory is reused: the address is the same every time.
    let again = format!(
        "stacksave.u64 %l8;
    alloca.u64 %l9, 32;
    stackrestore.u64 %l8;
    stacksave.u64 %l10;
    alloca.u64 %l11, 32;
    setp.eq.u64 %p1, %l8, %l10;
    setp.eq.and.u64 %p1, %l9, %l11, %p1;
    {answer}"
    );
    forms.push(BlockForm::new(
        "stacksave.u64 stackrestore.u64",
        again,
        always_one,
    ));
    let turns = "mov.b32 %r8, 0;
    mov.b64 %l12, 0;
AGAIN:
    stacksave.u64 %l8;
    alloca.u64 %l9, 256;
    cvt.u64.u32 %l10, %r8;
    st.local.b64 [%l9+248], %l10;
    ld.local.b64 %l11, [%l9+248];
    add.u64 %l12, %l12, %l11;
    stackrestore.u64 %l8;
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p1, %r8, 1000;
    @%p1 bra AGAIN;
    st.global.b64 [%out], %l12;";
    forms.push(BlockForm::new(
        "stackrestore.u64 a thousand times",
        turns,
        |_, _| [499_500, 0, 0, 0],
    ));
    forms
}

/// Returns 1 for every thread.
fn always_one(_: &[Sources], _: usize) -> Output {
    [1, 0, 0, 0]
}
