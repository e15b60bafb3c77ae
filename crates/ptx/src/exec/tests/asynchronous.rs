//! Asynchronous copies and mbarrier objects.

use super::super::ReportKind;
use super::{Bench, TestResult};

/// Copies the thread's own word from memory to `tile`. `%r2` holds its address there.
const COPY: &str = "
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %t, 4, %r2;
    cp.async.ca.shared.global [%r2], [%at4], 4;
    cp.async.commit_group;";

#[test]
fn wait_completes_a_copy() -> TestResult {
    let bench = Bench::body(
        &format!(
            "{COPY} cp.async.wait_group 0; ld.shared.u32 %r3, [%r2]; st.global.u32 [%at4+1024], %r3;"
        ),
        4096,
    );
    let values: Vec<u32> = (0..64).map(|index| index * 3 + 1).collect();
    bench.memory.write(0, &values);
    bench.launch(1, 64)?;
    assert_eq!(bench.memory.read::<u32>(1024, 64), values);
    Ok(())
}

#[test]
fn copy_needs_a_wait() -> TestResult {
    let bench = Bench::body(
        &format!("{COPY} ld.shared.u32 %r3, [%r2]; st.global.u32 [%at4+1024], %r3;"),
        4096,
    );
    bench.memory.write(0, &[5_u32; 32]);
    bench.launch(1, 32)?;
    assert_eq!(bench.memory.read::<u32>(1024, 32), [0; 32]);
    Ok(())
}

#[test]
fn newer_groups_may_stay_pending() -> TestResult {
    let bench = Bench::body(
        "
    .shared .align 16 .b8 tile[64];
    cp.async.cg.shared.global [tile], [%p], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [tile+16], [%p+16], 8, 4;
    cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.v2.u32 {%r2, %r3}, [tile+8];
    ld.shared.v2.u32 {%r4, %r5}, [tile+16];
    cp.async.wait_all;
    ld.shared.v2.u32 {%r6, %r7}, [tile+16];
    st.global.v4.u32 [%p+32], {%r2, %r3, %r4, %r5};
    st.global.v2.u32 [%p+48], {%r6, %r7};",
        128,
    );
    bench.memory.write(0, &[1_u32, 2, 3, 4, 5, 6]);
    bench.launch(1, 1)?;
    // Only four of the last copy's bytes are read; the rest is zero.
    assert_eq!(bench.memory.read::<u32>(32, 6), [3, 4, 0, 0, 5, 0]);
    Ok(())
}

#[test]
fn copy_outside_memory() {
    let bench = Bench::body(&COPY.replace("[%at4], 4", "[%at4+8192], 4"), 4096);
    let fault = bench.launch(1, 32).expect_err("it is out of bounds");
    assert_eq!(fault.kind, ReportKind::IllegalAddress);
    let misaligned = Bench::body(&COPY.replace("[%at4], 4", "[%at4], 16"), 4096);
    assert_eq!(
        misaligned.launch(1, 32).expect_err("it is misaligned").kind,
        ReportKind::MisalignedAddress
    );
}

#[test]
fn bulk_copy_completes_a_barrier() -> TestResult {
    let bench = Bench::body(
        "
    .shared .align 128 .b8 tile[256];
    .shared .align 8 .b64 bar;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%p], 256, [bar];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %t, 4, %r2;
    ld.shared.u32 %r4, [%r3];
    add.u32 %r4, %r4, 1;
    st.shared.u32 [%r3], %r4;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%p+256], [tile], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
END:",
        1024,
    );
    let values: Vec<u32> = (0..64).collect();
    bench.memory.write(0, &values);
    bench.launch(1, 64)?;
    assert_eq!(
        bench.memory.read::<u32>(256, 64),
        (1..65).collect::<Vec<_>>()
    );
    Ok(())
}

/// An arrival after copies counts once they are complete.
#[test]
fn arrival_follows_copies() -> TestResult {
    let bench = Bench::body(
        &format!(
            "
    .shared .align 8 .b64 bar;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 32;
READY:
    bar.sync 0;
    {COPY}
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
WAIT:
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    ld.shared.u32 %r3, [%r2];
    st.global.u32 [%at4+1024], %r3;"
        ),
        4096,
    );
    bench.memory.write(0, &[9_u32; 32]);
    bench.launch(1, 32)?;
    assert_eq!(bench.memory.read::<u32>(1024, 32), [9; 32]);
    Ok(())
}

/// Bytes that are ignored may be outside of all memory. Their destination is undefined.
#[test]
fn bulk_copy_ignores_bytes_at_its_ends() -> TestResult {
    let body = "
    .shared .align 16 .b8 tile[32];
    .shared .align 8 .b64 barrier;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [barrier], 32;
    ld.global.v2.u32 {%r2, %r3}, [%p+48];
    add.u64 %d2, %p, 112;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [tile], [%d2], 32, %r2, %r3, [barrier];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra WAIT;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [tile];
    ld.shared.u32 %r8, [tile+16];
    st.global.v4.u32 [%p], {%r4, %r5, %r6, %r7};";
    let last_load = "st.global.u32 [%p+16], %r8;";
    for (left, right, stored, expected) in [
        // The allocation ends 16 bytes and 4 bytes after the start of the source.
        (0_u32, 12_u32, last_load, None),
        (4, 12, last_load, Some(ReportKind::Uninitialized)),
        (0, 15, "", None),
        (0, 15, last_load, Some(ReportKind::Uninitialized)),
        (0, 11, "", Some(ReportKind::IllegalAddress)),
        (
            0,
            16,
            "",
            Some(ReportKind::IllegalInstruction(
                "cp.async.bulk.ignore_oob ignores at most 15 bytes at each end",
            )),
        ),
    ] {
        let text = super::kernel(&format!("{body}{stored}"));
        let mut bench = Bench::for_version("9.2", "sm_90", &text, 132);
        bench.memory.cut(132);
        let bench = bench.with_uninitialized_checks(0..132);
        bench.memory.write(48, &[left, right]);
        bench.memory.write(112, &[1_u32, 2, 3, 4, 5]);
        let kind = bench.launch(1, 1).map_err(|fault| fault.kind).err();
        assert_eq!(kind, expected, "{left} {right}");
        if expected.is_none() {
            assert_eq!(bench.memory.read::<u32>(0, 4), [1, 2, 3, 4]);
        }
    }
    Ok(())
}
