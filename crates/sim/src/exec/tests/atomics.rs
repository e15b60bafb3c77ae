//! Atomics, from many blocks at once.

use super::super::Schedule;
use super::{Bench, kernel};

#[test]
fn sums_from_many_blocks_and_workers_are_exact() {
    for schedule in [Schedule::InOrder, Schedule::Shuffled(11)] {
        let mut bench = Bench::body(
            "
    atom.global.add.u32 %r2, [%p], 1;
    red.global.add.u64 [%p+8], 3;
    red.relaxed.gpu.global.max.s32 [%p+16], %i;
    mov.f64 %e1, 0d3FF0000000000000;
    atom.global.add.f64 %e2, [%p+24], %e1;
    mov.f32 %f1, 0f3F800000;
    atom.add.f32 %f2, [%p+32], %f1;
    atom.global.inc.u32 %r3, [%p+36], 99;
    atom.global.or.b32 %r4, [%p+40], %i;",
            4096,
        );
        bench.workers = 2;
        bench.schedule = schedule;
        let statistics = bench.launch(100, 96).expect("no fault");
        assert_eq!(statistics.blocks, 100);
        assert_eq!(bench.memory.read::<u32>(0, 1), [9600]);
        assert_eq!(bench.memory.read::<u64>(8, 1), [28_800]);
        assert_eq!(bench.memory.read::<u32>(16, 1), [9599]);
        assert_eq!(f64::from_bits(bench.memory.read::<u64>(24, 1)[0]), 9600.0);
        assert_eq!(f32::from_bits(bench.memory.read::<u32>(32, 1)[0]), 9600.0);
        assert_eq!(bench.memory.read::<u32>(36, 2), [0, (0..9600).fold(0, |a, b| a | b)]);
    }
}

#[test]
fn each_operation_returns_the_old_value_and_stores_the_new() {
    let cases = [
        ("add.u32", 7u32, "5", 12u32),
        ("min.s32", 7, "-5", (-5i32) as u32),
        ("min.u32", 7, "-5", 7),
        ("max.u32", 7, "-5", (-5i32) as u32),
        ("and.b32", 7, "12", 4),
        ("xor.b32", 7, "12", 11),
        ("exch.b32", 7, "12", 12),
        ("inc.u32", 7, "7", 0),
        ("inc.u32", 7, "8", 8),
        ("dec.u32", 7, "9", 6),
        ("dec.u32", 0, "9", 9),
        ("dec.u32", 10, "9", 9),
        ("cas.b32", 7, "7, 40", 40),
        ("cas.b32", 7, "8, 40", 7),
    ];
    for (operation, before, operands, after) in cases {
        let bench = Bench::body(
            &format!(
                "
    atom.global.{operation} %r2, [%p+8], {operands};
    st.global.u32 [%p], %r2;"
            ),
            4096,
        );
        bench.memory.write(8, &[before]);
        bench.launch(1, 1).expect("no fault");
        let left = (bench.memory.read::<u32>(0, 1)[0], bench.memory.read::<u32>(8, 1)[0]);
        assert_eq!(left, (before, after), "{operation} {operands}");
    }
}

#[test]
fn shared_and_generic_atomics_reach_shared_memory() {
    let bench = Bench::new(
        &kernel(
            "
    .shared .align 8 .b64 sum;
    mov.u64 %d2, sum;
    cvta.shared.u64 %d3, %d2;
    atom.shared.add.u64 %d4, [sum], 1;
    atom.add.u64 %d4, [%d3], 1;
    bar.sync 0;
    ld.shared.u64 %d5, [%d2];
    st.global.u64 [%at], %d5;",
        ),
        4096,
    );
    assert_eq!(bench.results::<u64>(64), vec![128; 64]);
}
