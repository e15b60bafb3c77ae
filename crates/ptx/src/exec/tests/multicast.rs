//! Accesses to multicast memory.

use super::super::ReportKind;
use super::{Bench, TestResult, kernel};

/// Accesses to the kernel's memory, whose address is `%p`.
const ACCESSES: &[&str] = &[
    "multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%p+16];",
    "multimem.ld_reduce.weak.min.v2.f16x2 {%r2, %r3}, [%p+16];",
    "multimem.st.release.sys.global.u32 [%p+16], 1;",
    "multimem.red.relaxed.gpu.global.add.u64 [%p+16], 1;",
    "multimem.cp.async.bulk.global.shared::cta.bulk_group [%p+16], [tile], 16;",
    "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p+16], [tile], 16;",
];

/// Returns the fault of an instruction.
fn fault(instruction: &str) -> Result<Option<ReportKind>, Box<dyn std::error::Error>> {
    let text = kernel(&format!(
        ".shared .align 16 .b8 tile[16]; st.shared.v4.u32 [tile], {{1, 1, 1, 1}}; {instruction}"
    ));
    let bench = Bench::for_version("9.2", "sm_90", &text, 64);
    let fault = bench.launch(1, 32).err();
    assert_eq!(bench.memory.read::<u32>(16, 4), [0; 4], "{instruction}");
    Ok(fault.map(|fault| {
        assert_eq!(fault.thread, [0, 0, 0], "{instruction}");
        fault.kind
    }))
}

/// Memory that belongs to no multicast object faults, and is not changed.
#[test]
fn multicast_access_faults() -> TestResult {
    let expected =
        ReportKind::IllegalInstruction("multimem requires an address of a multicast object");
    for instruction in ACCESSES {
        assert_eq!(fault(instruction)?, Some(expected), "{instruction}");
    }
    Ok(())
}

/// Alignment and bounds are checked first.
#[test]
fn multicast_address_is_checked() -> TestResult {
    for instruction in ACCESSES {
        let misaligned = instruction.replace("%p+16", "%p+18");
        assert_eq!(
            fault(&misaligned)?,
            Some(ReportKind::MisalignedAddress),
            "{misaligned}"
        );
        let outside = instruction.replace("%p+16", "%p+128");
        assert_eq!(
            fault(&outside)?,
            Some(ReportKind::IllegalAddress),
            "{outside}"
        );
    }
    Ok(())
}

/// A guard that is false suppresses the access.
#[test]
fn guarded_multicast_access_is_skipped() -> TestResult {
    for instruction in ACCESSES {
        let guarded = format!("setp.ne.u32 %p1, %t, %t; @%p1 {instruction}");
        assert_eq!(fault(&guarded)?, None, "{guarded}");
    }
    Ok(())
}
