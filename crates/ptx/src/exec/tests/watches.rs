//! The accesses that a launch reports to its watcher.

use super::{BASE, Bench, TestResult};
use crate::exec::{AccessKind, Checking, ReportKind};

fn watched(body: &str) -> Bench {
    Bench::body(body, 1024).with_checks(Checking::nothing().with_races(true), 0..0)
}

#[test]
fn watcher_receives_accesses() -> TestResult {
    let bench = watched(
        "st.global.u32 [%at4], %t;
         membar.gl;
         mad.wide.u32 %d1, %t, 12, %p;
         ld.global.u32 %r2, [%d1];
         red.global.add.u32 [%p], 1;",
    );
    bench.launch(1, 32)?;
    let noted = bench.memory.recorded.into_inner();
    let scattered = (0..32).map(|lane| (BASE + 12 * lane, 4, AccessKind::Read));
    let mut expected = vec![(BASE, 128, AccessKind::Write), (0, 0, AccessKind::Atomic)];
    expected.extend(scattered);
    expected.push((BASE, 4, AccessKind::Atomic));
    assert_eq!(noted, expected);
    Ok(())
}

/// Race with another launch is reported for the lane that accesses the byte.
#[test]
fn launch_race_names_the_lane() -> TestResult {
    let mut bench = watched("st.global.u32 [%at4], %t;");
    bench.memory.contested = Some(BASE + 4 * 21 + 2);
    let report = bench.launch(1, 32).expect_err("the byte is contested");
    assert_eq!(
        (report.kind, report.thread),
        (ReportKind::StreamRace, [21, 0, 0])
    );
    let access = report.access.ok_or("no access in the report")?;
    assert_eq!(
        (access.address, access.size, access.write),
        (BASE + 4 * 21, 4, true)
    );
    Ok(())
}
