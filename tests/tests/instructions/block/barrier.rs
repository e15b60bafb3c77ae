//! Block barriers, fences, and hints without an observable effect.

use super::pattern::expand;
use super::{BlockForm, THREADS};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = meetings();
    forms.extend(arrivals());
    forms.extend(reductions());
    forms.extend(fences());
    forms.extend(hints());
    forms
}

/// Returns the thread with this lane in the other warp.
fn other(thread: usize) -> usize {
    (thread + 32) % THREADS
}

/// Stores a word for the other warp in shared memory before the barrier.
const PASS: &str = "st.shared.b64 [%shared], %l0;
    xor.b32 %r20, %thread, 32;
    mov.u32 %r21, block;
    mad.lo.u32 %r21, %r20, 64, %r21;
    mov.u32 %r10, 5;
    mov.u32 %r11, 64;
    ";
const TAKE: &str = "
    ld.shared.b64 %l8, [%r21];
    st.global.b64 [%out], %l8;";

fn meetings() -> Vec<BlockForm> {
    let opcodes = expand("{{bar,bar.cta}.sync,{barrier,barrier.cta}.sync{,.aligned}}");
    let operands = ["0", "15", "%r10", "1, 64", "%r10, %r11", "2, %r11"];
    let all = opcodes
        .iter()
        .flat_map(|opcode| operands.map(|operands| format!("{opcode} {operands}")));
    all.map(|spelling: String| {
        let code = format!("{PASS}{spelling};{TAKE}");
        BlockForm::new(spelling, code, |all, thread| {
            [all[other(thread)][0], 0, 0, 0]
        })
    })
    .collect()
}

/// Returns forms in which the first warp arrives and continues, and the second waits and reads the
/// first one's data.
fn arrivals() -> Vec<BlockForm> {
    let opcodes = expand("{bar,bar.cta,barrier,barrier.cta,barrier.aligned,barrier.cta.aligned}");
    let operands = ["1, 64", "%r10, 64", "%r10, %r11"];
    let spellings = opcodes
        .iter()
        .flat_map(|opcode| operands.map(|operands| format!("{opcode} {operands}")));
    spellings
        .map(|spelling: String| {
            let (opcode, operands) = spelling
                .split_once(' ')
                .expect("an instruction has operands");
            let aligned = if opcode.contains("aligned") {
                ".aligned"
            } else {
                ""
            };
            let opcode = opcode.replace(".aligned", "");
            let arrive = format!("{opcode}.arrive{aligned} {operands}");
            let code = format!(
                "{PASS}setp.lt.u32 %p1, %thread, 32;
    @%p1 bra ARRIVE;
    {opcode}.sync{aligned} {operands};{TAKE}
    bra OUT;
ARRIVE:
    {arrive};
OUT:"
            );
            BlockForm::new(arrive, code, |all, thread| {
                [
                    if thread < 32 {
                        0
                    } else {
                        all[other(thread)][0]
                    },
                    0,
                    0,
                    0,
                ]
            })
        })
        .collect()
}

/// Reductions over the whole block.
fn reductions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for opcode in expand("{bar,bar.cta,barrier,barrier.cta}.red.{popc,and,or}{,.aligned}") {
        // `bar` is implicitly aligned.
        if opcode.starts_with("bar.") && opcode.ends_with(".aligned") {
            continue;
        }
        for (operands, not, vote) in [
            ("0", "", "%r0"),
            ("2, 64", "!", "%r0"),
            ("%r10, %r11", "", "1"),
            ("0", "", "0"),
            ("3, 64", "!", "0"),
        ] {
            let is_count = opcode.contains(".popc");
            let is_and = opcode.contains(".and");
            let (class, result) = if is_count {
                ("u32", "%r8")
            } else {
                ("pred", "%p2")
            };
            let select = if is_count {
                ""
            } else {
                "selp.b32 %r8, 1, 0, %p2;"
            };
            let spelling = format!("{opcode}.{class} {result}, {operands}, {not}%p1");
            let code = format!(
                "{PASS}and.b32 %r9, {vote}, 1;
    setp.ne.u32 %p1, %r9, 0;
    {spelling};
    {select}{TAKE}
    st.global.b32 [%out+8], %r8;"
            );
            let holds = move |source: &Sources| match vote {
                "%r0" => (source[0] & 1 == 1) == not.is_empty(),
                vote => (vote == "1") == not.is_empty(),
            };
            forms.push(BlockForm::new(
                format!("{spelling} of {vote}"),
                code,
                move |all, thread| {
                    let votes = all.iter().filter(|source| holds(source)).count();
                    let answer = match (is_count, is_and) {
                        (true, _) => votes as u64,
                        (_, true) => u64::from(votes == all.len()),
                        _ => u64::from(votes > 0),
                    };
                    [all[other(thread)][0], answer, 0, 0]
                },
            ));
        }
    }
    forms
}

/// Returns forms that pass a word between warps with a flag, and a fence between the word and the
/// flag on both sides.
fn fences() -> Vec<BlockForm> {
    let patterns = [
        (75, "membar.{cta,gl,sys}"),
        (75, "fence{,.sc,.acq_rel}.{cta,gpu,sys}"),
        (90, "fence{,.sc,.acq_rel}.cluster"),
        (75, "{membar,fence}.proxy.alias"),
        (
            90,
            "fence.proxy.async{,.global,.shared::cta,.shared::cluster}",
        ),
        (90, "fence.mbarrier_init.release.cluster"),
    ];
    let mut forms = Vec::new();
    for (architecture, spelling) in patterns.into_iter().flat_map(|(least, pattern)| {
        expand(pattern)
            .into_iter()
            .map(move |spelling| (least, spelling))
    }) {
        // Fences without an effect on this pattern are combined with one that has it.
        let orders = !spelling.contains("proxy") && !spelling.contains("mbarrier");
        let fence = if orders {
            spelling.clone()
        } else {
            format!("{spelling}; fence.acq_rel.cta")
        };
        let code = format!(
            "{PASS}setp.lt.u32 %p1, %thread, 32;
    @%p1 bra GIVE;
WAIT:
    ld.volatile.shared.b32 %r12, [%r21+8];
    setp.ne.u32 %p2, %r12, 1;
    @%p2 bra WAIT;
    {fence};{TAKE}
    bra OUT;
GIVE:
    {fence};
    st.volatile.shared.b32 [%shared+8], 1;
OUT:"
        )
        // The flags are initially zero.
        .replacen(
            "st.shared.b64",
            "st.shared.b32 [%shared+8], 0;\n    bar.sync 0;\n    st.shared.b64",
            1,
        );
        forms.push(
            BlockForm::new(spelling, code, |all: &[Sources], thread: usize| {
                [
                    if thread < 32 {
                        0
                    } else {
                        all[other(thread)][0]
                    },
                    0,
                    0,
                    0,
                ]
            })
            .needs(architecture),
        );
    }
    forms
}

/// Returns forms that are hints, such as prefetches: a value written before is unchanged after
/// them.
fn hints() -> Vec<BlockForm> {
    let patterns = [
        (75, "prefetch{,.global}.{L1,L2} [%work]"),
        (75, "prefetch.local.{L1,L2} [%local]"),
        (80, "prefetch.global.L2::{evict_last,evict_normal} [%work]"),
        (75, "prefetchu.L1 [%work]"),
        (80, "applypriority{,.global}.L2::evict_normal [%line], 128"),
        (75, "nanosleep.u32 {0,20,%r10}"),
        (75, "pmevent {0,3,15}"),
        (75, "pmevent.mask 5"),
        (90, "griddepcontrol.{launch_dependents,wait}"),
        (90, "cp.async.bulk.prefetch.L2.global [%work], 64"),
        (
            80,
            "createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}.b64 %l8, {1.0,0.5}",
        ),
        (
            80,
            "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %l8, 0.25",
        ),
        (
            80,
            "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %l8, [%work], 64, 128",
        ),
        (80, "createpolicy.cvt.L2.b64 %l8, 0x10f0000000000000"),
    ];
    let mut forms = Vec::new();
    for (architecture, pattern) in patterns {
        for spelling in expand(pattern) {
            let code = format!(
                "mov.u32 %r10, 5;
    st.global.b64 [%work], %l0;
    st.local.b64 [%local], %l1;
    {};
    ld.global.b64 %l9, [%work];
    ld.local.b64 %l10, [%local];
    st.global.v2.b64 [%out], {{%l9, %l10}};",
                // A line of 128 bytes contains the locations of two threads.
                spelling.replace("%line", "%l11").replacen(
                    "applypriority",
                    "and.b64 %l11, %work, -128; applypriority",
                    1
                )
            );
            let form = BlockForm::new(spelling, code, |all, thread| {
                [all[thread][0], all[thread][1], 0, 0]
            });
            forms.push(form.needs(architecture));
        }
    }
    // Discarded memory is undefined until it is written.
    let code = "and.b64 %l11, %work, -128;
    discard.global.L2 [%l11], 128;
    bar.sync 0;
    st.global.b64 [%work], %l0;
    ld.global.b64 %l9, [%work];
    st.global.b64 [%out], %l9;";
    forms.push(
        BlockForm::new("discard.global.L2", code, |all, thread| {
            [all[thread][0], 0, 0, 0]
        })
        .needs(80),
    );
    forms
}
