//! Atomics of many blocks.

use super::super::Schedule;
use super::{Bench, TestResult, kernel};

#[test]
fn atomic_sums_are_exact() -> TestResult {
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
        let statistics = bench.launch(100, 96)?;
        assert_eq!(statistics.blocks, 100);
        assert_eq!(bench.memory.read::<u32>(0, 1), [9600]);
        assert_eq!(bench.memory.read::<u64>(8, 1), [28_800]);
        assert_eq!(bench.memory.read::<u32>(16, 1), [9599]);
        assert_eq!(f64::from_bits(bench.memory.read::<u64>(24, 1)[0]), 9600.0);
        assert_eq!(f32::from_bits(bench.memory.read::<u32>(32, 1)[0]), 9600.0);
        assert_eq!(
            bench.memory.read::<u32>(36, 2),
            [0, (0..9600).fold(0, |a, b| a | b)]
        );
    }
    Ok(())
}

#[test]
fn atomics_return_the_old_value() -> TestResult {
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
        bench.launch(1, 1)?;
        let old_and_new = (
            bench.memory.read::<u32>(0, 1)[0],
            bench.memory.read::<u32>(8, 1)[0],
        );
        assert_eq!(old_and_new, (before, after), "{operation} {operands}");
    }
    Ok(())
}

#[test]
fn shared_memory_atomics() {
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

#[test]
fn narrow_and_packed_atomics() -> TestResult {
    let bench = Bench::body(
        "
    mov.b16 %h1, 0x3c00;
    mov.b32 %r2, 0x3f804000;
    atom.global.add.noftz.f16 %h2, [%p], %h1;
    red.global.add.noftz.bf16x2 [%p+4], %r2;
    mov.b16 %h4, 7;
    mov.b16 %h5, 0;
    atom.global.cas.b16 %h3, [%p+8], %h5, %h4;",
        128,
    );
    bench.launch(1, 32)?;
    // 32 in f16; 32 and 64 in bf16.
    assert_eq!(
        bench.memory.read::<u16>(0, 5),
        [0x5000, 0, 0x4280, 0x4200, 7]
    );
    Ok(())
}

#[test]
fn atomics_128_bit() -> TestResult {
    let bench = Bench::body(
        "
    .reg .b128 %q<4>;
    mov.b128 %q1, {1, 2};
    mov.b128 %q2, {3, 4};
    atom.global.exch.b128 %q3, [%p], %q1;
    mov.b128 {%d2, %d3}, %q3;
    atom.global.cas.b128 %q3, [%p], %q2, %q1;
    mov.b128 {%d4, %d5}, %q3;
    atom.global.cas.b128 %q3, [%p], %q1, %q2;
    ld.global.b128 %q0, [%p];
    st.global.b128 [%p+16], %q0;
    st.global.v2.b64 [%p+32], {%d2, %d3};
    st.global.v2.b64 [%p+48], {%d4, %d5};",
        128,
    );
    bench.memory.write(0, &[7_u64, 8]);
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u64>(0, 8), [3, 4, 3, 4, 7, 8, 1, 2]);
    Ok(())
}

#[test]
fn vector_reductions() -> TestResult {
    let bench = Bench::body(
        "
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f40000000;
    red.global.add.v2.f32 [%p], {%f1, %f2};
    atom.global.v4.f32.add {%f3, %f4, %f5, %f6}, [%p+16], {%f1, %f2, %f1, %f2};",
        128,
    );
    bench.launch(1, 4)?;
    let expected = [4.0_f32, 8.0, 0.0, 0.0, 4.0, 8.0, 4.0, 8.0];
    assert_eq!(bench.memory.read::<u32>(0, 8), expected.map(f32::to_bits));
    Ok(())
}

#[test]
fn signed_volatile_vectors() -> TestResult {
    let bench = Bench::body(
        "
    ld.volatile.global.v4.s8 {%r1, %r2, %r3, %r4}, [%p];
    st.global.v4.u32 [%p+16], {%r1, %r2, %r3, %r4};
    ld.volatile.global.v2.s16 {%r1, %r2}, [%p];
    st.global.v2.u32 [%p+32], {%r1, %r2};
    ld.volatile.global.v4.s16 {%h1, %h2, %h3, %h4}, [%p];
    cvt.s32.s16 %r1, %h1;
    cvt.s32.s16 %r2, %h2;
    cvt.s32.s16 %r3, %h3;
    cvt.s32.s16 %r4, %h4;
    st.global.v4.u32 [%p+48], {%r1, %r2, %r3, %r4};
    ld.volatile.global.v2.s8 {%h1, %h2}, [%p];
    cvt.s32.s16 %r1, %h1;
    cvt.s32.s16 %r2, %h2;
    st.global.v2.u32 [%p+40], {%r1, %r2};",
        128,
    );
    bench
        .memory
        .write(0, &[0xff_u8, 2, 0x80, 127, 0, 0xff, 5, 0]);
    bench.launch(1, 1)?;
    let [halves, extended] = [[0x02ff, 0x7f80, -256, 5], [-1, 2, -128, 127]]
        .map(|list: [i32; 4]| list.map(i32::cast_unsigned));
    assert_eq!(bench.memory.read::<u32>(16, 4), extended);
    assert_eq!(
        bench.memory.read::<u32>(32, 4),
        [halves[0], halves[1], extended[0], extended[1]]
    );
    assert_eq!(bench.memory.read::<u32>(48, 4), halves);
    Ok(())
}

#[test]
fn vectors_are_read_whole() -> TestResult {
    let cases = [
        ("v2.u8", "%h1, %h1", "%h2, %h3", "%h2, %h3"),
        (
            "v4.u8",
            "%h1, %h1, %h1, %h1",
            "%h2, %h3, %h4, %h5",
            "%h2, %h5",
        ),
        ("v2.u16", "%h1, %h1", "%h2, %h3", "%h2, %h3"),
        (
            "v4.u16",
            "%h1, %h1, %h1, %h1",
            "%h2, %h3, %h4, %h5",
            "%h3, %h4",
        ),
        ("v2.u32", "%r1, %r1", "%r2, %r3", "%r2, %r3"),
        (
            "v4.u32",
            "%r1, %r1, %r1, %r1",
            "%r2, %r3, %r4, %r5",
            "%r2, %r5",
        ),
        ("v2.u64", "%d1, %d1", "%d2, %d3", "%d2, %d3"),
        ("v2.s8", "%h1, %h1", "%h2, %h3", "%h2, %h3"),
        (
            "v4.s8",
            "%h1, %h1, %h1, %h1",
            "%h2, %h3, %h4, %h5",
            "%h2, %h5",
        ),
        ("v2.s16", "%h1, %h1", "%h2, %h3", "%h2, %h3"),
        (
            "v4.s16",
            "%h1, %h1, %h1, %h1",
            "%h2, %h3, %h4, %h5",
            "%h3, %h4",
        ),
    ];
    for (vector, stored, loaded, compared) in cases {
        let scalar = match &vector[3..] {
            "u8" => "u16",
            "s8" => "s16",
            other => other,
        };
        let mut bench = Bench::body(
            &format!(
                "
    and.b32 %r6, %r0, 1;
    setp.ne.u32 %q, %r6, 0;
    mov.u32 %r1, 0;
    mov.u32 %r7, 0;
LOOP:
    add.u32 %r1, %r1, 1;
    and.b32 %r1, %r1, 127;
    cvt.u16.u32 %h1, %r1;
    cvt.u64.u32 %d1, %r1;
    @!%q st.relaxed.gpu.global.{vector} [%p], {{{stored}}};
    @%q ld.relaxed.gpu.global.{vector} {{{loaded}}}, [%p];
    @%q setp.ne.{scalar} %p1, {compared};
    @!%q setp.ne.u32 %p1, 0, 0;
    @%p1 st.global.u32 [%p+64], 1;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 500;
    @%p1 bra LOOP;"
            ),
            4096,
        );
        bench.workers = 4;
        bench.launch(64, 32)?;
        assert_eq!(bench.memory.read::<u32>(64, 1), [0], "{vector}");
    }
    Ok(())
}
