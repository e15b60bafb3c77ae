//! Barrier objects and asynchronous copies: each form with the wait that PTX requires after it.

use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = copies();
    forms.extend(waits());
    forms.extend(barrier_objects());
    forms.extend(bulk());
    forms.extend(later_stores());
    forms.extend(later_reductions());
    forms
}

/// The first thread initializes a barrier object for all threads at `%r20`, visible to all of them.
const BARRIER: &str = ".shared .align 8 .b64 object;
    mov.u32 %r20, object;
    mov.u32 %r21, 1;
    setp.eq.u32 %p1, %thread, 0;
    @%p1 mbarrier.init.shared.b64 [%r20], 64;
    bar.sync 0;
    ";
/// Waits for the first phase of the barrier object.
const WAIT: &str = "
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p2, [%r20], 0;
    @!%p2 bra WAIT;
    ";

/// `cp.async` of every size and form: from the thread's words in global memory to its location in
/// shared memory, zero-filled after the source size.
fn copies() -> Vec<BlockForm> {
    let mut patterns = Vec::new();
    for spelling in
        expand("cp.async.ca.shared{,::cta}.global{,.L2::64B,.L2::128B,.L2::256B,.L2::cache_hint}")
    {
        patterns.extend([4, 8, 16].map(|size| (spelling.clone(), size)));
    }
    let wide =
        expand("cp.async.cg.shared{,::cta}.global{,.L2::64B,.L2::128B,.L2::256B,.L2::cache_hint}");
    patterns.extend(wide.into_iter().map(|spelling| (spelling, 16)));
    let mut forms = Vec::new();
    for (spelling, size) in patterns {
        let hint = if spelling.contains("cache_hint") {
            ", %l31"
        } else {
            ""
        };
        let mut ways = vec![("", String::new(), size)];
        ways.extend([0, 1, 4, size].map(|read| ("", format!(", {read}"), read)));
        ways.push(("mov.u32 %r22, 3;", ", %r22".to_owned(), 3));
        ways.push(("setp.eq.u32 %p3, 0, 0;", ", %p3".to_owned(), 0));
        ways.push(("setp.ne.u32 %p3, 0, 0;", ", %p3".to_owned(), size));
        ways.push(("setp.ne.u32 %p3, 0, 0;", ", !%p3".to_owned(), 0));
        ways.push(("setp.eq.u32 %p3, 0, 0;", ", !%p3".to_owned(), size));
        for (set, operand, read) in ways {
            let name = format!("{spelling} {size}{operand} of {read}");
            let code = format!(
                "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;
    st.shared.b64 [%shared], -1;
    st.shared.b64 [%shared+8], -1;
    {set}
    {spelling} [%shared], [%in], {size}{operand}{hint};
    cp.async.wait_all;
    ld.shared.b64 %l8, [%shared];
    ld.shared.b64 %l9, [%shared+8];
    st.global.v2.b64 [%out], {{%l8, %l9}};"
            );
            let form = BlockForm::new(name, code, move |all, thread| {
                let source: Vec<u8> = all[thread]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                output_from_bytes(|index| match index {
                    _ if index < read => source[index],
                    _ if index < size || index >= 16 => 0,
                    _ => 0xff,
                })
            });
            forms.push(form.needs(80));
        }
    }
    forms
}

/// Asynchronous stores that are complete at the end of the kernel.
fn later_stores() -> Vec<BlockForm> {
    let spellings = expand(
        "st.async{.weak.global,.global,{.release.{gpu,sys},.mmio.release.sys}{,.global}}.{b16,u32,s32,b64,u64,s64}",
    );
    spellings
        .into_iter()
        .map(|spelling: String| {
            let bits = spelling
                .rsplit(char::is_alphabetic)
                .next()
                .and_then(|bits| bits.parse().ok())
                .unwrap_or(64);
            let class = match bits {
                16 => "h",
                32 => "r",
                _ => "l",
            };
            let code = format!("{spelling} [%out], %{class}0;");
            BlockForm::new(spelling, code, move |all, thread| {
                [all[thread][0] & u64::MAX >> (64 - bits), 0, 0, 0]
            })
            .needs(100)
        })
        .collect()
}

/// Asynchronous reductions on memory that is zero before.
fn later_reductions() -> Vec<BlockForm> {
    let operations = "{{inc,dec}.u32,{min,max}.{u32,s32},add.{u32,s32,u64,s64},{and,or,xor}.b32}";
    let spellings = expand(&format!(
        "red.async{{{{.relaxed,.release}}{{.gpu,.sys}},.mmio.release.sys}}{{,.global}}.{operations}"
    ));
    spellings
        .into_iter()
        .map(|spelling: String| {
            let is_wide = spelling.ends_with("64");
            let code = format!("{spelling} [%out], %{}0;", if is_wide { "l" } else { "r" });
            let operation = spelling.clone();
            BlockForm::new(spelling, code, move |all, thread| {
                let value = if is_wide {
                    all[thread][0]
                } else {
                    all[thread][0] & 0xffff_ffff
                };
                let has = |name: &str| operation.contains(name);
                let pending = match () {
                    () if has(".inc.") => u64::from(value != 0),
                    () if has(".min.s32") => u64::from((value as i32).min(0).cast_unsigned()),
                    () if has(".max.s32") => u64::from((value as i32).max(0).cast_unsigned()),
                    () if has(".min.") || has(".and.") => 0,
                    () => value,
                };
                [pending, 0, 0, 0]
            })
            .needs(100)
        })
        .collect()
}

/// Returns the ways to wait for asynchronous copies.
fn waits() -> Vec<BlockForm> {
    let ways = [
        ("cp.async.wait_all", "cp.async.wait_all;"),
        ("cp.async.wait_group 0", "cp.async.commit_group;\n    cp.async.wait_group 0;"),
        (
            "cp.async.wait_group 1",
            "cp.async.commit_group;\n    cp.async.ca.shared.global [%shared+8], [%in+8], 8;\n    cp.async.commit_group;
    cp.async.wait_group 1;",
        ),
        ("cp.async.commit_group", "cp.async.commit_group;\n    cp.async.commit_group;\n    cp.async.wait_group 0;"),
    ];
    let copy = "cp.async.ca.shared.global [%shared], [%in], 8;\n    ";
    let take = "\n    ld.shared.b64 %l8, [%shared];\n    st.global.b64 [%out], %l8;";
    let mut forms: Vec<BlockForm> = ways
        .map(|(name, wait)| {
            BlockForm::new(name, format!("{copy}{wait}{take}"), |all, thread| {
                [all[thread][0], 0, 0, 0]
            })
        })
        .into();
    for spelling in expand("cp.async.mbarrier.arrive{,.noinc}{,.shared{,::cta}}.b64") {
        let address = if spelling.contains("shared") {
            "[%r20]"
        } else {
            "[%l20]"
        };
        // Without `.noinc`, the arrival is not counted as an expected one.
        let arrive = if spelling.contains("noinc") {
            ""
        } else {
            "mbarrier.arrive.shared.b64 %l21, [%r20];"
        };
        let code = format!(
            "{BARRIER}cvt.u64.u32 %l20, %r20; cvta.shared.u64 %l20, %l20;\n    {copy}{spelling} {address};\n    {arrive}{WAIT}{take}"
        );
        forms.push(BlockForm::new(spelling, code, |all, thread| {
            [all[thread][0], 0, 0, 0]
        }));
    }
    forms.into_iter().map(|form| form.needs(80)).collect()
}

/// Stores a word for the other warp, and computes the generic address of the barrier object.
const PASS: &str = "cvt.u64.u32 %l20, %r20; cvta.shared.u64 %l20, %l20;
    st.shared.b64 [%shared], %l0;
    xor.b32 %r22, %thread, 32;
    mov.u32 %r23, block;
    mad.lo.u32 %r23, %r22, 64, %r23;
    ";
const TAKE: &str = "ld.shared.b64 %l8, [%r23];\n    st.global.b64 [%out], %l8;";

/// Arrivals at the barrier object at `AT`, with the fences that they require.
const ARRIVALS: [(u32, &str, &str); 9] = [
    (
        80,
        "mbarrier.arrive{,.shared,.shared::cta}.b64 %l21, AT",
        "",
    ),
    (
        90,
        "mbarrier.arrive{,.shared,.shared::cta}.b64 %l21, AT, {1,%r21}",
        "",
    ),
    (
        90,
        "mbarrier.arrive.release.{cta,cluster}{,.shared,.shared::cta}.b64 %l21, AT{,+ 1}",
        "",
    ),
    (
        90,
        "mbarrier.arrive.relaxed.{cta,cluster}.shared::cta.b64 %l21, AT",
        "fence.acq_rel.cta;",
    ),
    (
        90,
        "mbarrier.arrive{,.release.cta,.release.cluster}.shared::cluster.b64 _, AT{,+ 1}",
        "",
    ),
    (
        80,
        "mbarrier.arrive_drop{,.shared,.shared::cta}.b64 %l21, AT",
        "",
    ),
    (
        90,
        "mbarrier.arrive_drop.release.{cta,cluster}{,.shared,.shared::cta}.b64 %l21, AT, 1",
        "",
    ),
    (
        90,
        "mbarrier.arrive.expect_tx{,.release.cta,.release.cluster}.shared::cta.b64 %l21, AT, 0",
        "",
    ),
    (
        90,
        "mbarrier.arrive_drop.expect_tx{,.release.cta}.shared::cta.b64 %l21, AT, 0",
        "",
    ),
];

/// Waits for the barrier object.
const WAITS: [(u32, &str); 5] = [
    (
        80,
        "mbarrier.test_wait{,.shared,.shared::cta}.b64 %p2, AT, %l21",
    ),
    (
        80,
        "mbarrier.test_wait.parity{,.shared,.shared::cta}.b64 %p2, AT, 0",
    ),
    (
        90,
        "mbarrier.try_wait{,.acquire.cta,.acquire.cluster}{,.shared,.shared::cta}.b64 %p2, AT, %l21{,+ 1000}",
    ),
    (
        90,
        "mbarrier.try_wait.parity{,.acquire.cta}{,.shared,.shared::cta}.b64 %p2, AT, 0{,+ 1000}",
    ),
    (
        90,
        "mbarrier.test_wait.acquire.{cta,cluster}{,.shared,.shared::cta}.b64 %p2, AT, %l21",
    ),
];

/// Returns the word of the thread in the other warp.
fn other(all: &[Sources], thread: usize) -> Output {
    [all[thread ^ 32][0], 0, 0, 0]
}

/// Returns the barrier object's address in the state space that a spelling requires.
fn placed(spelling: &str) -> String {
    spelling.replace(
        "AT",
        if spelling.contains("shared") {
            "[%r20]"
        } else {
            "[%l20]"
        },
    )
}

/// Arrivals and waits of each kind: a word passes between the warps, ordered by the barrier object.
fn barrier_objects() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (architecture, pattern, fence) in ARRIVALS {
        for spelling in expand(pattern).iter().map(|spelling| with_commas(spelling)) {
            let code = format!(
                "{BARRIER}{PASS}{fence}{};{WAIT}{fence}{TAKE}",
                placed(&spelling)
            );
            forms.push(
                BlockForm::new(spelling.replace("AT", "[object]"), code, other).needs(architecture),
            );
        }
    }
    for (architecture, pattern) in WAITS {
        for spelling in expand(pattern).iter().map(|spelling| with_commas(spelling)) {
            let wait = placed(&spelling);
            let code = format!(
                "{BARRIER}{PASS}mbarrier.arrive.shared.b64 %l21, [%r20];
AGAIN:
    {wait};
    @!%p2 bra AGAIN;
    {TAKE}"
            );
            forms.push(
                BlockForm::new(spelling.replace("AT", "[object]"), code, other).needs(architecture),
            );
        }
    }
    // An arrival that must not complete the phase is counted as an additional thread.
    let code = format!(
        "{BARRIER}{PASS}mbarrier.arrive.noComplete.shared.b64 %l21, [%r20], 1;
    mbarrier.arrive.shared.b64 %l21, [%r20];{WAIT}{TAKE}"
    );
    let code = code.replace("[%r20], 64", "[%r20], 128");
    forms.push(BlockForm::new("mbarrier.arrive.noComplete.shared.b64", code, other).needs(80));
    forms.extend(counts());
    forms
}

/// Returns forms for the counts of barrier objects: pending arrivals and transaction bytes.
fn counts() -> [BlockForm; 2] {
    let pending = format!(
        "{BARRIER}mbarrier.arrive.shared.b64 %l21, [%r20];
    mbarrier.pending_count.b64 %r8, %l21;
    setp.ge.u32 %p2, %r8, 1;
    setp.le.and.u32 %p2, %r8, 64, %p2;
    selp.b64 %l8, 1, 0, %p2;
    st.global.b64 [%out], %l8;{WAIT}bar.sync 0;
    @%p1 mbarrier.inval.shared.b64 [%r20];"
    );
    let counted = format!(
        "{BARRIER}@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r20], 640;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %l21, [%r20];
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r20], 10;{WAIT}st.global.b64 [%out], 1;"
    );
    [
        BlockForm::new("mbarrier.pending_count.b64", pending, |_, _| [1, 0, 0, 0]).needs(80),
        BlockForm::new("mbarrier.complete_tx", counted, |_, _| [1, 0, 0, 0]).needs(90),
    ]
}

/// Restores the commas of a pattern, which writes a comma within a choice as a plus.
fn with_commas(spelling: &str) -> String {
    spelling.replace('+', ",")
}

/// Loads the 32 bytes at the thread's location in shared memory.
const READ: &str = "ld.shared.b64 %l8, [%shared]; ld.shared.b64 %l9, [%shared+8];
    ld.shared.b64 %l10, [%shared+16]; ld.shared.b64 %l11, [%shared+24];
    st.global.v2.b64 [%out], {%l8, %l9}; st.global.v2.b64 [%out+16], {%l10, %l11};";
const POLICY: &str = "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;\n    ";

fn own(all: &[Sources], thread: usize) -> Output {
    all[thread]
}

/// Returns the cache policy operand if a spelling requires one.
fn policy(spelling: &str) -> &'static str {
    if spelling.contains("cache_hint") {
        ", %l31"
    } else {
        ""
    }
}

/// Bulk copies of each thread's own 32 bytes: into, within and out of shared memory.
fn bulk() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let into =
        "cp.async.bulk.shared::{cluster,cta}.global.mbarrier::complete_tx::bytes{,.L2::cache_hint}";
    for spelling in expand(into) {
        let hint = policy(&spelling);
        let code = format!(
            "{POLICY}{BARRIER}mbarrier.arrive.expect_tx.shared.b64 %l21, [%r20], 32;
    {spelling} [%shared], [%in], 32, [%r20]{hint};{WAIT}{READ}"
        );
        forms.push(BlockForm::new(spelling, code, own).needs(90));
    }
    let within = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    let code = format!(
        "{BARRIER}mbarrier.arrive.expect_tx.shared.b64 %l21, [%r20], 32;
    st.shared.b64 [%shared+32], %l0; st.shared.b64 [%shared+40], %l1;
    st.shared.b64 [%shared+48], %l2; st.shared.b64 [%shared+56], %l3;
    fence.proxy.async.shared::cta;
    add.u32 %r22, %shared, 32;
    {within} [%shared], [%r22], 32, [%r20];{WAIT}{READ}"
    );
    // Between blocks of a cluster, so the kernel is launched with a cluster, even of one block.
    forms.push(
        BlockForm::new(within, code, own)
            .needs(90)
            .in_clusters([1; 3], [1; 3]),
    );
    forms.extend(bulk_out());
    forms.extend(stores());
    forms
}

/// Bulk copies to global memory, with each kind of wait.
fn bulk_out() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for spelling in expand("cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}") {
        for wait in [
            "cp.async.bulk.wait_group 0",
            "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0",
        ] {
            let hint = policy(&spelling);
            let code = format!(
                "{POLICY}st.shared.b64 [%shared], %l0; st.shared.b64 [%shared+8], %l1;
    st.shared.b64 [%shared+16], %l2; st.shared.b64 [%shared+24], %l3;
    fence.proxy.async.shared::cta;
    {spelling} [%out], [%shared], 32{hint};
    cp.async.bulk.commit_group;
    {wait};"
            );
            forms.push(BlockForm::new(format!("{spelling} {wait}"), code, own).needs(90));
        }
    }
    forms
}

/// Stores that complete on a barrier object.
fn stores() -> Vec<BlockForm> {
    let kinds = [
        ("b32", "%r0", 4),
        ("b64", "%l0", 8),
        ("v2.b32", "{%r0, %r1}", 8),
        ("v4.b32", "{%r0, %r1, %r2, %r3}", 16),
        ("v2.b64", "{%l0, %l1}", 16),
        ("u32", "%r0", 4),
        ("s64", "%l0", 8),
    ];
    kinds
        .into_iter()
        .map(|(kind, registers, bytes): (&str, &str, usize)| {
            let spelling = format!("st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind}");
            let code = format!(
                "{BARRIER}mbarrier.arrive.expect_tx.shared.b64 %l21, [%r20], {bytes};
    st.shared.b64 [%shared], 0; st.shared.b64 [%shared+8], 0;
    st.shared.b64 [%shared+16], 0; st.shared.b64 [%shared+24], 0;
    fence.proxy.async.shared::cta;
    {spelling} [%shared], {registers}, [%r20];{WAIT}{READ}"
            );
            let width = if kind.ends_with("32") { 4 } else { 8 };
            BlockForm::new(spelling, code, move |all: &[Sources], thread: usize| {
                output_from_bytes(|index| {
                    if index < bytes {
                        all[thread][index / width].to_le_bytes()[index % width]
                    } else {
                        0
                    }
                })
            })
            .needs(90)
            .in_clusters([1; 3], [1; 3])
        })
        .collect()
}
