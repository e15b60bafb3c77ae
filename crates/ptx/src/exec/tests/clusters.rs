//! Clusters: blocks that access each other's shared memory.

use super::super::ReportKind;
use super::{BASE, Bench, TestResult, kernel};

const PARAMS: [u8; 8] = BASE.to_le_bytes();

#[test]
fn clusters_share_memory() -> TestResult {
    // Each block stores its rank in the next block of the ring.
    let mut bench = Bench::body(
        "
    .shared .align 4 .b32 box;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    add.u32 %r4, %r2, 1;
    rem.u32 %r4, %r4, %r3;
    mov.u32 %r5, box;
    mapa.shared::cluster.u32 %r6, %r5, %r4;
    getctarank.shared::cluster.u32 %r7, %r6;
    setp.ne.u32 %p1, %r7, %r4;
    @%p1 trap;
    add.u32 %r8, %r2, 100;
    st.shared::cluster.u32 [%r6], %r8;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ld.shared.u32 %r9, [box];
    cvta.shared.u64 %d2, %d9;
    mov.u64 %d3, box;
    cvta.shared.u64 %d3, %d3;
    mapa.u64 %d4, %d3, %r4;
    ld.u32 %r10, [%d4];
    sub.u32 %r10, %r10, %r8;
    add.u32 %r9, %r9, %r10;
    st.global.u32 [%at4], %r9;
    barrier.cluster.arrive;
    barrier.cluster.wait;",
        4096,
    );
    bench.cluster = [4, 1, 1];
    bench.launch_with([8, 1, 1], [1, 1, 1], &PARAMS)?;
    assert_eq!(
        bench.memory.read::<u32>(0, 8),
        [103, 100, 101, 102, 103, 100, 101, 102]
    );
    Ok(())
}

#[test]
fn cluster_registers() -> TestResult {
    let mut bench = Bench::body(
        "
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r4, %r2, %r3, %r0;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d2, %d2, %p;
    mov.u32 %r5, %clusterid.x;
    mov.u32 %r6, %cluster_ctaid.x;
    mov.u32 %r7, %cluster_ctaid.y;
    mov.u32 %r8, %nclusterid.x;
    mov.u32 %r9, %cluster_ctarank;
    mad.lo.u32 %r10, %r5, 10, %r6;
    mad.lo.u32 %r10, %r10, 10, %r7;
    mad.lo.u32 %r10, %r10, 10, %r8;
    mad.lo.u32 %r10, %r10, 10, %r9;
    mov.pred %p1, %is_explicit_cluster;
    @!%p1 trap;
    st.global.u32 [%d2], %r10;",
        4096,
    );
    bench.cluster = [2, 2, 1];
    bench.launch_with([4, 2, 1], [1, 1, 1], &PARAMS)?;
    assert_eq!(
        bench.memory.read::<u32>(0, 8),
        [20, 1021, 10020, 11021, 122, 1123, 10122, 11123]
    );
    Ok(())
}

/// Cluster that the kernel requires needs a grid of whole clusters.
#[test]
fn required_cluster_is_whole() -> TestResult {
    let text = kernel("mov.u32 %r2, %cluster_nctarank; st.global.u32 [%at4], %r2;");
    let bench = Bench::new(
        &text.replace("(.param .u64 p)", "(.param .u64 p) .reqnctapercluster 2"),
        128,
    );
    bench.launch(4, 1)?;
    assert_eq!(bench.memory.read::<u32>(0, 4), [2; 4]);
    let fault = bench.launch(3, 1).expect_err("three blocks are no pairs");
    assert!(
        matches!(fault.kind, ReportKind::InvalidLaunch(_)),
        "{fault}"
    );
    Ok(())
}

#[test]
fn cluster_barrier_deadlock() {
    let mut bench = Bench::body(
        "
    barrier.cluster.arrive;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bar.sync 1, 64;
    barrier.cluster.wait;",
        128,
    );
    bench.cluster = [2, 1, 1];
    let text = bench
        .launch_with([2, 1, 1], [32, 1, 1], &PARAMS)
        .expect_err("it hangs");
    assert_eq!(text.kind, ReportKind::Deadlock);
}
