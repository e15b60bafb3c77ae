//! Barriers, and instructions that communicate among the lanes of a warp.

use super::super::ReportKind;
use super::{Bench, TestResult};

/// Block that polls between barriers yields to the block that it waits for.
#[test]
fn polling_block_yields() -> TestResult {
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
    bench.launch(2, 64)?;
    assert_eq!(bench.memory.read::<u32>(0, 1), [7]);
    Ok(())
}

/// Barrier that is never completed is a deadlock with its location.
#[test]
fn incomplete_barrier() {
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
    assert!(fault.location.line > 0);
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
fn shuffles_move_values() {
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
fn warp_barriers_meet() {
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
fn extremes_ignore_nan() -> TestResult {
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
        &numbers
            .iter()
            .map(|number| number.to_bits())
            .collect::<Vec<_>>(),
    );
    bench.launch(1, 32)?;
    let results = |lane: u64| bench.memory.read::<u32>(1024 + 32 * lane, 5);
    let nan = f32::from_bits(0x7fff_ffff);
    assert_eq!(results(0), bit_patterns([-20.0, 11.0, 0.0, nan, 0.0]));
    assert_eq!(results(31), bit_patterns([-20.0, 11.0, 0.0, -4.0, 11.0]));
    Ok(())
}

/// Returns the bits of numbers.
fn bit_patterns(numbers: [f32; 5]) -> [u32; 5] {
    numbers.map(f32::to_bits)
}
