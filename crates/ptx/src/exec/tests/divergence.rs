//! Divergence and reconvergence of lanes.

use super::super::Schedule;
use super::{Bench, kernel};

#[test]
fn nested_branches_give_each_lane_its_own_path() {
    let bench = Bench::body(
        "
    and.b32 %r2, %t, 1;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 bra ODD;
    and.b32 %r3, %t, 2;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra EVEN_TWO;
    mov.u32 %r4, 100;
    bra JOIN;
EVEN_TWO:
    mov.u32 %r4, 200;
    bra JOIN;
ODD:
    setp.gt.u32 %p3, %t, 15;
    mov.u32 %r4, 300;
    @!%p3 bra JOIN;
    mov.u32 %r4, 400;
JOIN:
    activemask.b32 %r5;
    popc.b32 %r6, %r5;
    mad.lo.u32 %r4, %r6, 1000, %r4;
    add.u32 %r4, %r4, %t;
    st.global.u32 [%at4], %r4;",
        4096,
    );
    let expected: Vec<u32> = (0..40)
        .map(|tid| {
            let path = match (tid & 1, tid & 2, tid > 15) {
                (1, _, true) => 400,
                (1, _, false) => 300,
                (0, 0, _) => 100,
                _ => 200,
            };
            // All lanes of the warp have met at JOIN.
            let together = if tid < 32 { 32 } else { 8 };
            together * 1000 + path + tid
        })
        .collect();
    assert_eq!(bench.results::<u32>(40), expected);
}

#[test]
fn loops_with_a_trip_count_per_lane_and_a_break_end_together() {
    let bench = Bench::body(
        "
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
LOOP:
    setp.ge.u32 %p1, %r2, %t;
    @%p1 bra OUT;
    setp.eq.u32 %p2, %r2, 20;
    @%p2 bra OUT;
    add.u32 %r3, %r3, %r2;
    add.u32 %r2, %r2, 1;
    bra LOOP;
OUT:
    activemask.b32 %r5;
    setp.ne.u32 %p3, %r5, 0xffffffff;
    @%p3 mov.u32 %r3, 0xdead;
    st.global.u32 [%at4], %r3;",
        4096,
    );
    let expected: Vec<u32> = (0..32u32).map(|tid| (0..tid.min(20)).sum()).collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn irreducible_loops_terminate_with_the_right_counts() {
    // Even lanes enter the loop in the middle.
    let bench = Bench::body(
        "
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    and.b32 %r4, %t, 1;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra SECOND;
FIRST:
    add.u32 %r2, %r2, 1;
SECOND:
    add.u32 %r2, %r2, 10;
    add.u32 %r3, %r3, 1;
    setp.le.u32 %p2, %r3, %t;
    @%p2 bra FIRST;
    st.global.u32 [%at4], %r2;",
        4096,
    );
    let expected: Vec<u32> = (0..32u32)
        .map(|tid| (tid + 1) * 10 + tid + (tid & 1))
        .collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn lanes_of_one_warp_take_a_spin_lock_in_turn() {
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
    bench.launch(1, 64).expect("no fault");
    assert_eq!(bench.memory.read::<u32>(0, 2), [0, 64]);
}

#[test]
fn a_lane_that_waits_for_its_warps_other_lane_is_not_starved() {
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
    bench.launch(1, 32).expect("no fault");
    assert_eq!(bench.memory.read::<u32>(0, 1), [7]);
}

#[test]
fn blocks_that_wait_for_blocks_not_yet_begun_make_progress() {
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
        bench.launch(24, 1).expect("no fault");
        assert_eq!(bench.memory.read::<u32>(0, 2), [24, 24]);
    }
}

#[test]
fn indexed_branches_take_each_lane_to_its_target() {
    let bench = Bench::new(
        &kernel(
            "
    and.b32 %r2, %t, 3;
    ts: .branchtargets A, B, C, D;
    brx.idx %r2, ts;
A:
    mov.u32 %r3, 10;
    bra OUT;
B:
    mov.u32 %r3, 11;
    bra OUT;
C:
    mov.u32 %r3, 12;
    bra OUT;
D:
    mov.u32 %r3, 13;
OUT:
    st.global.u32 [%at4], %r3;",
        ),
        4096,
    );
    let expected: Vec<u32> = (0..32).map(|tid| 10 + tid % 4).collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn guarded_exits_leave_the_other_lanes_running() {
    let bench = Bench::body(
        "
    setp.lt.u32 %p1, %t, 5;
    st.global.u32 [%at4], 1;
    @%p1 exit;
    st.global.u32 [%at4], 2;",
        4096,
    );
    let expected: Vec<u32> = (0..32).map(|tid| if tid < 5 { 1 } else { 2 }).collect();
    assert_eq!(bench.results::<u32>(32), expected);
}
