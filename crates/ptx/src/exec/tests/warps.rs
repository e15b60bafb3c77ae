//! Barriers, and instructions that communicate among the lanes of a warp.

use super::super::ReportKind;
use super::Bench;

#[test]
fn a_barrier_orders_shared_memory_across_warps() {
    let bench = Bench::body(
        "
    .shared .align 4 .b8 tile[1024];
    mov.u32 %r2, tile;
    shl.b32 %r3, %t, 2;
    add.u32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %t;
    bar.sync 0;
    sub.u32 %r5, 255, %t;
    shl.b32 %r5, %r5, 2;
    add.u32 %r5, %r5, %r2;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%at4], %r6;",
        4096,
    );
    assert_eq!(
        bench.results::<u32>(256),
        (0..256).rev().collect::<Vec<_>>()
    );
}

#[test]
fn exited_lanes_do_not_delay_a_barrier() {
    let bench = Bench::body(
        "
    setp.ge.u32 %p1, %t, 40;
    @%p1 ret;
    bar.sync 0;
    st.global.u32 [%at4], 1;
    bar.sync 0;",
        4096,
    );
    let expected: Vec<u32> = (0..96).map(|tid| u32::from(tid < 40)).collect();
    assert_eq!(bench.results::<u32>(96), expected);
}

#[test]
fn named_barriers_with_counts_pair_producers_and_consumers() {
    // Warp 0 arrives and continues, warp 1 waits for it, and warp 2 is not involved.
    let bench = Bench::body(
        "
    .shared .align 4 .b32 box;
    setp.lt.u32 %p1, %t, 32;
    setp.ge.u32 %p2, %t, 64;
    @%p2 bra OUT;
    @%p1 bra PRODUCE;
    barrier.sync 3, 64;
    ld.shared.u32 %r2, [box];
    st.global.u32 [%at4], %r2;
    bra OUT;
PRODUCE:
    st.shared.u32 [box], 77;
    barrier.arrive 3, 64;
OUT:",
        4096,
    );
    let expected: Vec<u32> = (0..96)
        .map(|tid| if tid / 32 == 1 { 77 } else { 0 })
        .collect();
    assert_eq!(bench.results::<u32>(96), expected);
}

#[test]
fn barrier_reductions_count_and_combine_the_votes_of_the_block() {
    let bench = Bench::body(
        "
    setp.lt.u32 %p1, %t, 37;
    bar.red.popc.u32 %r2, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, !%p1;
    selp.u32 %r3, 1000, 0, %p2;
    selp.u32 %r4, 100, 0, %p3;
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    st.global.u32 [%at4], %r2;",
        4096,
    );
    assert_eq!(bench.results::<u32>(64), vec![137; 64]);
}

#[test]
fn block_that_polls_between_barriers_yields_to_the_block_that_it_waits_for() {
    let bench = Bench::body(
        "
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra SET;
LOOP:
    bar.sync 0;
    ld.volatile.global.u32 %r2, [%p];
    bar.sync 0;
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra LOOP;
    bra END;
SET:
    st.volatile.global.u32 [%p], 7;
END:",
        4096,
    );
    bench
        .launch(2, 64)
        .expect("the second block runs although the first never stops");
    assert_eq!(bench.memory.read::<u32>(0, 1), [7]);
}

#[test]
fn barrier_that_is_never_completed_is_a_deadlock_with_its_location() {
    let bench = Bench::body(
        "
    setp.lt.u32 %p1, %t, 32;
    @%p1 bar.sync 1;
    @!%p1 bar.sync 2;",
        4096,
    );
    let fault = bench
        .launch(1, 64)
        .expect_err("each warp waits for the other");
    assert_eq!(fault.kind, ReportKind::Deadlock);
    assert_eq!(fault.thread, [0, 0, 0]);
    assert!(fault.line > 0);
}

fn shuffle(mode: &str, operand: &str, clamp: &str) -> Vec<u32> {
    let bench = Bench::body(
        &format!(
            "
    shfl.sync.{mode}.b32 %r2|%p1, %t, {operand}, {clamp}, -1;
    @!%p1 add.u32 %r2, %r2, 1000;
    st.global.u32 [%at4], %r2;"
        ),
        4096,
    );
    bench.results::<u32>(32)
}

#[test]
fn shuffles_move_values_and_report_lanes_with_a_source() {
    let outside = |lane: u32| lane + 1000;
    let expect = |f: &dyn Fn(u32) -> u32| (0..32).map(f).collect::<Vec<_>>();
    assert_eq!(
        shuffle("up", "3", "0"),
        expect(&|l| if l < 3 { outside(l) } else { l - 3 })
    );
    assert_eq!(
        shuffle("down", "3", "31"),
        expect(&|l| if l > 28 { outside(l) } else { l + 3 })
    );
    assert_eq!(shuffle("bfly", "5", "31"), expect(&|l| l ^ 5));
    assert_eq!(shuffle("idx", "7", "31"), expect(&|_| 7));
    // Segments of eight lanes: the mask is in bits 8 to 12 of the clamp.
    let clamp = (0x18 << 8 | 0x1f).to_string();
    assert_eq!(
        shuffle("down", "2", &clamp),
        expect(&|l| if l % 8 > 5 { outside(l) } else { l + 2 })
    );
    assert_eq!(shuffle("idx", "3", &clamp), expect(&|l| l / 8 * 8 + 3));
}

#[test]
fn a_shuffle_waits_for_the_lanes_it_names() {
    // The halves reach the shuffle by different paths and at different times.
    let bench = Bench::body(
        "
    setp.lt.u32 %p1, %t, 16;
    mov.u32 %r2, %t;
    @%p1 bra JOIN;
    mov.u32 %r3, 0;
WORK:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 50;
    @%p2 bra WORK;
    add.u32 %r2, %r2, 500;
JOIN:
    shfl.sync.bfly.b32 %r4, %r2, 16, 31, -1;
    st.global.u32 [%at4], %r4;",
        4096,
    );
    let expected: Vec<u32> = (0..32u32)
        .map(|tid| if tid < 16 { tid + 516 } else { tid - 16 })
        .collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn warp_barriers_in_both_arms_of_a_branch_meet() {
    let bench = Bench::body(
        "
    .shared .align 4 .b32 box;
    setp.eq.u32 %p1, %t, 0;
    @%p1 bra WRITE;
    bar.warp.sync -1;
    ld.shared.u32 %r2, [box];
    st.global.u32 [%at4], %r2;
    bra OUT;
WRITE:
    st.shared.u32 [box], 9;
    bar.warp.sync -1;
OUT:",
        4096,
    );
    let expected: Vec<u32> = (0..32).map(|tid| if tid == 0 { 0 } else { 9 }).collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn votes_matches_and_reductions_use_the_whole_warp() {
    let bench = Bench::body(
        "
    setp.lt.u32 %p1, %t, 8;
    vote.sync.ballot.b32 %r2, %p1, -1;
    vote.sync.all.pred %p2, %p1, -1;
    vote.sync.any.pred %p3, %p1, -1;
    and.b32 %r3, %t, 3;
    match.any.sync.b32 %r4, %r3, -1;
    redux.sync.add.u32 %r5, %t, -1;
    redux.sync.max.s32 %r6, %t, -1;
    add.u32 %r7, %r2, %r4;
    add.u32 %r7, %r7, %r5;
    add.u32 %r7, %r7, %r6;
    @%p2 mov.u32 %r7, 0;
    @!%p3 mov.u32 %r7, 0;
    st.global.u32 [%at4], %r7;",
        4096,
    );
    let expected: Vec<u32> = (0..32u32)
        .map(|tid| 0xff + (0x1111_1111 << (tid & 3)) + 496 + 31)
        .collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn extremes_ignore_nan_unless_it_is_requested() {
    let body = super::kernel(
        "
    ld.global.f32 %f0, [%at4];
    redux.sync.min.f32 %f1, %f0, -1;
    redux.sync.max.f32 %f2, %f0, -1;
    redux.sync.min.abs.f32 %f3, %f0, -1;
    redux.sync.max.NaN.f32 %f4, %f0, -1;
    mov.f32 %f5, 0f00000000;
    setp.ge.u32 %p1, %t, 16;
    @%p1 redux.sync.max.abs.NaN.f32 %f5, %f0, 0xffff0000;
    @%p1 redux.sync.min.f32 %f4, %f0, 0xffff0000;
    shl.b32 %r2, %t, 5; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %p;
    st.global.v4.f32 [%d1+1024], {%f1, %f2, %f3, %f4};
    st.global.f32 [%d1+1040], %f5;",
    );
    let bench = Bench::for_target("sm_100a", &body, 4096);
    let mut numbers: Vec<f32> = (0..32).map(|lane| lane as f32 - 20.0).collect();
    (numbers[3], numbers[20]) = (f32::NAN, -0.0);
    bench.memory.write(
        0,
        &numbers.iter().map(|it| it.to_bits()).collect::<Vec<_>>(),
    );
    bench.launch(1, 32).expect("no fault");
    let left = |lane: u64| bench.memory.read::<u32>(1024 + 32 * lane, 5);
    let bits = |numbers: [f32; 5]| numbers.map(f32::to_bits);
    let nan = f32::from_bits(0x7fff_ffff);
    assert_eq!(left(0), bits([-20.0, 11.0, 0.0, nan, 0.0]));
    assert_eq!(left(31), bits([-20.0, 11.0, 0.0, -4.0, 11.0]));
}
