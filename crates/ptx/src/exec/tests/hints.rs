//! Suffixes and instructions that are hints and affect no result.

use super::super::ReportKind;
use super::Bench;

/// Suffixes of loads from device memory, between `ld.global` and the type.
const LOADS: [&str; 24] = [
    "",
    ".ca",
    ".cg",
    ".cs",
    ".lu",
    ".cv",
    ".nc",
    ".ca.nc",
    ".weak",
    ".volatile",
    ".relaxed.cta",
    ".relaxed.gpu",
    ".relaxed.sys",
    ".acquire.cta",
    ".acquire.gpu",
    ".acquire.sys",
    ".acquire.cluster",
    ".L1::evict_normal",
    ".L1::evict_unchanged",
    ".L1::evict_first",
    ".L1::evict_last",
    ".L1::no_allocate",
    ".L2::64B",
    ".L2::256B",
];

/// Suffixes of stores.
const STORES: [&str; 16] = [
    "",
    ".wb",
    ".cg",
    ".cs",
    ".wt",
    ".weak",
    ".volatile",
    ".relaxed.cta",
    ".relaxed.gpu",
    ".relaxed.sys",
    ".release.cta",
    ".release.gpu",
    ".release.sys",
    ".release.cluster",
    ".L1::evict_first",
    ".L1::no_allocate",
];

/// Types of loads and stores, and registers of their width.
const TYPES: [(&str, &str); 8] = [
    ("b8", "%r2"),
    ("u16", "%h1"),
    ("s32", "%r2"),
    ("b64", "%d2"),
    ("f32", "%f1"),
    ("f64", "%e1"),
    ("v2.u32", "{%r2, %r3}"),
    ("v4.f32", "{%f1, %f2, %f3, %f4}"),
];

/// Copies 32 times 16 bytes with a load and a store, and asserts that as many bytes of each are copied as the type has.
fn assert_copies(load: &str, store: &str, scalar: &str, registers: &str) {
    let body = format!(
        "
    mad.wide.u32 %d4, %t, 16, %p;
    {load}.{scalar} {registers}, [%d4];
    {store}.{scalar} [%d4+512], {registers};"
    );
    let bench = Bench::body(&body, 1024);
    let source: Vec<u8> = (0..=255).cycle().skip(7).take(512).collect();
    bench.memory.write(0, &source);
    bench.memory.write(512, &[0_u8; 512]);
    bench
        .launch(1, 32)
        .unwrap_or_else(|fault| panic!("{body}: {fault}"));
    let elements = if scalar.starts_with('v') {
        usize::from(scalar.as_bytes()[1] - b'0')
    } else {
        1
    };
    let bits: usize = scalar
        .rsplit(|it: char| it.is_alphabetic())
        .next()
        .and_then(|it| it.parse().ok())
        .expect("a width");
    let copied = bench.memory.read::<u8>(512, 512);
    for (at, (source, copied)) in source.iter().zip(copied).enumerate() {
        let expected = if at % 16 < elements * bits / 8 {
            *source
        } else {
            0
        };
        assert_eq!(copied, expected, "byte {at} of {body}");
    }
}

#[test]
fn cache_and_ordering_suffixes_do_not_change_loads_and_stores() {
    for (scalar, registers) in TYPES {
        for load in LOADS {
            assert_copies(
                &format!("ld{}", placed(load)),
                "st.global",
                scalar,
                registers,
            );
        }
        for store in STORES {
            assert_copies(
                "ld.global",
                &format!("st{}", placed(store)),
                scalar,
                registers,
            );
        }
        assert_copies("ldu.global", "st.global", scalar, registers);
    }
}

/// Inserts the space after the ordering suffixes and before the cache suffixes.
fn placed(suffix: &str) -> String {
    let orders = [".weak", ".volatile", ".relaxed", ".acquire", ".release"]
        .iter()
        .any(|it| suffix.starts_with(it));
    if orders {
        format!("{suffix}.global")
    } else {
        format!(".global{suffix}")
    }
}

#[test]
fn loads_and_stores_with_a_policy_move_the_same_bytes() {
    let bench = Bench::body(
        "
    createpolicy.fractional.L2::evict_last.b64 %d5, 1.0;
    createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %d6, 0.5;
    ld.global.L2::cache_hint.u64 %d2, [%at], %d5;
    add.u64 %d2, %d2, 1;
    st.global.L2::cache_hint.u64 [%at], %d2, %d6;",
        4096,
    );
    bench.memory.write(0, &(0..32_u64).collect::<Vec<_>>());
    assert_eq!(bench.results::<u64>(32), (1..=32).collect::<Vec<_>>());
}

#[test]
fn hints_change_nothing() {
    for hint in [
        "prefetch.global.L1 [%p];",
        "prefetch.global.L2 [%p];",
        "prefetch.global.L2::evict_last [%p];",
        "prefetchu.L1 [%p];",
        "applypriority.global.L2::evict_normal [%p], 128;",
        "nanosleep.u32 20;",
        "nanosleep.u32 %r1;",
        "pmevent 3;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "griddepcontrol.launch_dependents;",
        "griddepcontrol.wait;",
    ] {
        let bench = Bench::body(
            &format!("mov.u32 %r1, 5; {hint} st.global.u32 [%at4], %t;"),
            4096,
        );
        assert_eq!(
            bench.results::<u32>(32),
            (0..32).collect::<Vec<_>>(),
            "{hint}"
        );
    }
    // Discarded memory may have any contents until it is written.
    let bench = Bench::body(
        "discard.global.L2 [%p], 128; bar.sync 0; st.global.u32 [%at4], %t;",
        4096,
    );
    assert_eq!(bench.results::<u32>(32), (0..32).collect::<Vec<_>>());
}

#[test]
fn one_thread_of_those_that_take_part_is_elected() {
    for (active, members) in [("0xffffffff", 0xffff_ffff_u32), ("0xf0", 0xf0)] {
        let body = format!(
            "
    mov.u32 %r2, 0;
    mov.u32 %r3, 99;
    shl.b32 %r4, 1, %t;
    and.b32 %r4, %r4, {active};
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra OUT;
    elect.sync %r3|%p1, {active};
    selp.u32 %r2, 1, 0, %p1;
OUT:
    mad.lo.u32 %r2, %r3, 2, %r2;
    st.global.u32 [%at4], %r2;"
        );
        let results = Bench::body(&body, 4096).results::<u32>(32);
        let taking_part: Vec<u32> = results
            .iter()
            .enumerate()
            .filter(|(lane, _)| members >> lane & 1 == 1)
            .map(|(_, value)| *value)
            .collect();
        let leader = taking_part[0] / 2;
        assert!(members >> leader & 1 == 1, "{leader} of {members:#x}");
        assert!(
            taking_part.iter().all(|value| value / 2 == leader),
            "{results:?}"
        );
        assert_eq!(
            taking_part.iter().filter(|value| **value & 1 == 1).count(),
            1,
            "{results:?}"
        );
        assert_eq!(results[leader as usize] & 1, 1, "{results:?}");
    }
}

#[test]
fn breakpoint_stops_the_launch_as_a_trap_does() {
    for stop in ["brkpt;", "trap;"] {
        let fault = Bench::body(stop, 64).launch(1, 1).expect_err("it stops");
        assert_eq!(fault.kind, ReportKind::Trap, "{stop}");
    }
}
