//! Divergence and reconvergence of lanes.

use super::super::Schedule;
use super::{Bench, TestResult};

#[test]
fn lanes_share_a_spin_lock() -> TestResult {
    // Word 0 is the lock, word 1 the counter. The winner must continue while the others spin.
    let bench = Bench::body(
        "
AGAIN:
    atom.global.cas.b32 %r2, [%p], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra AGAIN;
    ld.volatile.global.u32 %r3, [%p+4];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%p+4], %r3;
    membar.gl;
    atom.global.exch.b32 %r4, [%p], 0;",
        4096,
    );
    bench.launch(1, 64)?;
    assert_eq!(bench.memory.read::<u32>(0, 2), [0, 64]);
    Ok(())
}

/// A lane that waits for its warps other lane is not starved.
#[test]
fn waiting_lane_is_not_starved() -> TestResult {
    // Lane 0 spins at a lower address until lane 31 writes the flag at a higher one.
    let bench = Bench::body(
        "
    setp.eq.u32 %p1, %t, 31;
    @%p1 bra SET;
SPIN:
    ld.volatile.global.u32 %r2, [%p];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SPIN;
    bra DONE;
SET:
    st.volatile.global.u32 [%p], 7;
DONE:",
        4096,
    );
    bench.launch(1, 32)?;
    assert_eq!(bench.memory.read::<u32>(0, 1), [7]);
    Ok(())
}

/// Blocks that wait for blocks not yet begun make progress.
#[test]
fn blocks_wait_for_later_blocks() -> TestResult {
    // A grid barrier with a counter requires that all blocks are resident.
    for schedule in [Schedule::InOrder, Schedule::Shuffled(3)] {
        let mut bench = Bench::body(
            "
    atom.global.add.u32 %r2, [%p], 1;
SPIN:
    ld.volatile.global.u32 %r3, [%p];
    setp.lt.u32 %p1, %r3, 24;
    @%p1 bra SPIN;
    atom.global.add.u32 %r2, [%p+4], 1;",
            4096,
        );
        bench.workers = 2;
        bench.schedule = schedule;
        bench.launch(24, 1)?;
        assert_eq!(bench.memory.read::<u32>(0, 2), [24, 24]);
    }
    Ok(())
}
