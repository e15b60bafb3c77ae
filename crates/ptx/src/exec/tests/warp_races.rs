//! Races between the threads of one warp, for shared and device memory.

use super::super::{Checking, Report, ReportKind};
use super::Bench;

type Result = std::result::Result<(), Box<Report>>;

/// Runs a body on one warp. `%s` is the address of shared memory in `MEM` accesses to shared
/// memory, and that of device memory otherwise.
fn run(space: &str, body: &str) -> Result {
    let body = body.replace("MEM", space);
    let base = if space == "shared" {
        "mov.u64 %d9, box;"
    } else {
        "mov.u64 %d9, %p;"
    };
    let body = format!(
        ".shared .align 16 .b8 box[512];
        {base}
        mad.wide.u32 %d8, %t, 4, %d9; mad.wide.u32 %d7, %t, 16, %d9; cvt.u64.u32 %d6, %t; add.u64 %d6, %d6, %d9;
        {body}"
    );
    Bench::body(&body, 4096)
        .with_checks(Checking::nothing().with_races(true), 0..0)
        .launch(1, 32)
        .map(|_| ())
}

/// The address of the warp's common word is `%d9`; those of the thread's own word, vector and byte
/// are `%d8`, `%d7` and `%d6`.
const RACES: [(&str, &str); 12] = [
    (
        "a sum without atomics",
        "ld.MEM.u32 %r2, [%d9]; add.u32 %r2, %r2, %t; st.MEM.u32 [%d9], %r2;",
    ),
    ("different values at once", "st.MEM.u32 [%d9], %t;"),
    (
        "different values at once, by a part of the warp",
        "setp.gt.u32 %p1, %t, 20; @%p1 st.MEM.u32 [%d9], %t;",
    ),
    (
        "different values at once at scattered addresses",
        "and.b32 %r2, %t, 5; mad.wide.u32 %d1, %r2, 4, %d9; st.MEM.u32 [%d1], %t;",
    ),
    (
        "both halves write to the same row",
        "and.b32 %r2, %t, 15; mad.wide.u32 %d1, %r2, 4, %d9; st.MEM.u32 [%d1], %t;",
    ),
    ("overlapping vectors", "st.MEM.v2.u32 [%d9], {%t, %t};"),
    (
        "bytes of a common word",
        "and.b32 %r2, %t, 3; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %d9; st.MEM.u8 [%d1], %t;",
    ),
    (
        "a neighbor's element",
        "st.MEM.u32 [%d8], %t; xor.b32 %r2, %t, 1; mad.wide.u32 %d1, %r2, 4, %d9; ld.MEM.u32 %r3, [%d1];",
    ),
    (
        "a read before a neighbor's write",
        "xor.b32 %r2, %t, 1; mad.wide.u32 %d1, %r2, 4, %d9; ld.MEM.u32 %r3, [%d1]; st.MEM.u32 [%d8], %t;",
    ),
    (
        "one thread writes what all read",
        "setp.eq.u32 %p1, %t, 7; @%p1 st.MEM.u32 [%d9], 5; ld.MEM.u32 %r3, [%d9];",
    ),
    (
        "a second sum after a synchronization",
        "ld.MEM.u32 %r2, [%d9]; bar.warp.sync -1; ld.MEM.u32 %r2, [%d9]; st.MEM.u32 [%d9], 4;",
    ),
    (
        "a read after one by another thread, and a write by the former",
        "setp.eq.u32 %p1, %t, 0; ld.MEM.u32 %r2, [%d8]; @%p1 ld.MEM.u32 %r2, [%d8+16];
        setp.eq.u32 %p2, %t, 4; @%p2 st.MEM.u32 [%d8], 4;",
    ),
];

#[test]
fn races_within_a_warp() {
    for space in ["shared", "global"] {
        for (name, body) in RACES {
            let report = run(space, body).expect_err(name);
            let ReportKind::Race {
                block,
                thread,
                same_value,
                ..
            } = report.kind
            else {
                panic!("{name}: {report}")
            };
            assert_eq!(
                (block, same_value),
                ([0; 3], false),
                "{space}, {name}: {report}"
            );
            assert_ne!(
                thread.map(u32::from),
                report.thread,
                "{space}, {name}: {report}"
            );
        }
    }
}

const ORDERED: [(&str, &str); 13] = [
    ("the same value at once", "st.MEM.u32 [%d9], 5;"),
    (
        "the same value at once, by a part of the warp",
        "setp.gt.u32 %p1, %t, 20; @%p1 st.MEM.u32 [%d9], 5;",
    ),
    (
        "the same value at scattered addresses",
        "and.b32 %r2, %t, 5; mad.wide.u32 %d1, %r2, 4, %d9; st.MEM.u32 [%d1], 7;",
    ),
    (
        "the same vector",
        "st.MEM.v4.u32 [%d9], {1, 2, 3, 4};",
    ),
    ("own bytes", "st.MEM.u8 [%d6], %t; ld.MEM.u8 %r2, [%d6]; st.MEM.u8 [%d6], %r2;"),
    ("own words", "ld.MEM.u32 %r2, [%d8]; st.MEM.u32 [%d8], %t; ld.MEM.u32 %r2, [%d8];"),
    (
        "own vectors",
        "st.MEM.v4.u32 [%d7], {%t, %t, %t, %t}; ld.MEM.u32 %r2, [%d7+8]; st.MEM.u32 [%d7+4], %t;",
    ),
    (
        "a sum by volatile accesses",
        "ld.volatile.MEM.u32 %r2, [%d9]; add.u32 %r2, %r2, %t; st.volatile.MEM.u32 [%d9], %r2;",
    ),
    (
        "warp-synchronous code by volatile accesses",
        "st.volatile.MEM.u32 [%d8], %t; ld.volatile.MEM.u32 %r2, [%d8]; ld.volatile.MEM.u32 %r3, [%d8+64];
        add.u32 %r2, %r2, %r3; st.volatile.MEM.u32 [%d8], %r2; ld.volatile.MEM.u32 %r3, [%d8+32];",
    ),
    ("relaxed accesses", "ld.relaxed.gpu.MEM.u32 %r2, [%d9]; st.relaxed.gpu.MEM.u32 [%d9], %t;"),
    ("atomics", "atom.MEM.add.u32 %r2, [%d9], %t; red.MEM.add.u32 [%d9], %r2;"),
    (
        "synchronizations of the warp",
        "setp.eq.u32 %p1, %t, 0; @%p1 st.MEM.u32 [%d9], 5; bar.warp.sync -1; ld.MEM.u32 %r2, [%d9]; bar.warp.sync -1;
        setp.eq.u32 %p1, %t, 1; @%p1 st.MEM.u32 [%d9], %r2; bar.sync 0; ld.MEM.u32 %r2, [%d9];
        vote.sync.ballot.b32 %r3, %p1, -1; setp.eq.u32 %p1, %t, 5; @%p1 st.MEM.u32 [%d9], %r2;",
    ),
    (
        "bytes read before a synchronization and others after it",
        "ld.MEM.u32 %r2, [%d7]; bar.warp.sync -1; ld.MEM.u8 %r2, [%d7];
        xor.b32 %r2, %t, 1; mad.wide.u32 %d1, %r2, 16, %d9; st.MEM.u8 [%d1+3], %t;",
    ),
];

#[test]
fn ordered_accesses_within_a_warp() {
    for space in ["shared", "global"] {
        for (name, body) in ORDERED {
            if let Err(report) = run(space, body) {
                panic!("{space}, {name}: {report}");
            }
        }
    }
}

/// Local memory of different threads has the same generic addresses.
#[test]
fn local_memory_does_not_race() -> Result {
    for scalar in ["u8", "u16", "u32", "u64"] {
        let source = if scalar == "u64" { "%d6" } else { "%t" };
        run(
            "global",
            &format!(
                ".local .align 8 .b8 own[64]; cvta.local.u64 %d1, own;
                st.{scalar} [%d1], {source}; setp.gt.u32 %p1, %t, 3; @%p1 st.{scalar} [%d1+8], {source};
                and.b32 %r2, %t, 3; mad.wide.u32 %d2, %r2, 8, %d1; st.{scalar} [%d2], {source};"
            ),
        )?;
    }
    Ok(())
}

/// Generic addresses are checked as those of their space.
#[test]
fn generic_accesses_race() {
    for space in ["", "shared"] {
        for scalar in ["u8", "u32"] {
            let convert = if space.is_empty() {
                ""
            } else {
                "cvta.shared.u64 %d9, %d9;"
            };
            let body = format!("{convert} st.{scalar} [%d9], %t;");
            let report = run(space, &body).expect_err("they store different values");
            assert!(matches!(report.kind, ReportKind::Race { .. }), "{report}");
        }
    }
}

/// The report names both threads, and the instruction of the later access.
#[test]
fn report_names_both_threads() {
    for space in ["shared", "global"] {
        let body = "setp.eq.u32 %p1, %t, 7; @%p1 st.MEM.u32 [%d9], 5;
            setp.eq.u32 %p1, %t, 9; @%p1 ld.MEM.u32 %r3, [%d9];";
        let report = run(space, body).expect_err("they are unordered");
        let text = report.to_string();
        assert!(
            text.contains("race with block (0, 0, 0), thread (7, 0, 0): 4-byte read"),
            "{text}"
        );
        assert!(text.contains("thread (9, 0, 0), PTX line 23"), "{text}");
    }
}
