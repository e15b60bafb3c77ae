//! Clusters that cancel others and take over their work.

use super::super::Schedule;
use super::{BASE, Bench, TestResult};

/// Each block increments a counter at its own index and at each index that it takes over. The word
/// at `[%p+1024]` counts blocks.
const TAKER: &str = "
    .shared .align 16 .b128 answer;
    .shared .align 8 .b64 done;
    .reg .b128 %answer;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ctaid.y;
    mov.u32 %r4, 0;
    atom.global.add.u32 %r5, [%p+1024], 1;
    mbarrier.init.shared.b64 [done], 1;
VISIT:
    mov.u32 %r5, %nctaid.x;
    mad.lo.u32 %r5, %r3, %r5, %r2;
    mad.wide.u32 %d2, %r5, 4, %p;
    atom.global.add.u32 %r6, [%d2], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [done], 16;
    mov.u32 %r7, answer;
    mov.u32 %r8, done;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r7], [%r8];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [done], %r4;
    @!%p1 bra WAIT;
    xor.b32 %r4, %r4, 1;
    ld.shared.b128 %answer, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %answer;
    @!%p1 ret;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r3, %r9, _}, %answer;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %answer;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r6, %answer;
    setp.ne.u32 %p1, %r2, %r10;
    @%p1 trap;
    setp.ne.u32 %p1, %r3, %r6;
    @%p1 trap;
    bra VISIT;";

#[test]
fn every_block_index_is_visited_once_by_any_cluster() -> TestResult {
    for (workers, schedule) in [
        (1, Schedule::InOrder),
        (4, Schedule::InOrder),
        (1, Schedule::Shuffled(7)),
    ] {
        let mut bench = Bench::body(TAKER, 4096);
        (bench.workers, bench.schedule) = (workers, schedule);
        let statistics = bench.launch_with([5, 7, 1], [1, 1, 1], &BASE.to_le_bytes())?;
        assert_eq!(bench.memory.read::<u32>(0, 35), [1; 35]);
        let began = bench.memory.read::<u32>(1024, 1)[0];
        assert!(began < 35, "{began} blocks began");
        assert_eq!(statistics.blocks, u64::from(began));
    }
    Ok(())
}

#[test]
fn multicast_response_reaches_each_block() -> TestResult {
    // Rank 0 requests both. Each block adds its rank in the canceled cluster.
    let mut bench = Bench::body(
        "
    .shared .align 16 .b128 answer;
    .shared .align 8 .b64 done;
    .reg .b128 %answer;
    mov.u32 %r2, %cluster_ctarank;
    mbarrier.init.shared.b64 [done], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [done], 16;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u64 %d3, answer;
    cvta.shared.u64 %d3, %d3;
    mov.u64 %d4, done;
    cvta.shared.u64 %d4, %d4;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%d3], [%d4];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [done], 0;
    @!%p2 bra WAIT;
    ld.shared.b128 %answer, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %answer;
    @!%p1 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %answer;
    add.u32 %r3, %r3, %r2;
    mad.wide.u32 %d2, %r3, 4, %p;
    atom.global.add.u32 %r4, [%d2], 1;
END:
    mov.u32 %r5, %ctaid.x;
    mad.wide.u32 %d2, %r5, 4, %p;
    atom.global.add.u32 %r4, [%d2], 1;
    barrier.cluster.arrive;
    barrier.cluster.wait;",
        4096,
    );
    bench.cluster = [2, 1, 1];
    bench.launch_with([8, 1, 1], [1, 1, 1], &BASE.to_le_bytes())?;
    assert_eq!(bench.memory.read::<u32>(0, 8), [1; 8]);
    Ok(())
}

#[test]
fn misaligned_response_is_a_fault() {
    let bench = Bench::body(
        "
    .shared .align 16 .b8 room[64];
    mov.u32 %r2, room;
    add.u32 %r3, %r2, 8;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r3], [%r2];",
        4096,
    );
    bench
        .launch(2, 1)
        .expect_err("8 bytes after a multiple of 16");
}
