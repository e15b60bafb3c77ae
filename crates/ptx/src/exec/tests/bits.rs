//! Integers beyond basic arithmetic: carries, permutations, dot products, and comparisons with
//! numeric results.

use super::arithmetic::{D, F, H, ONES32, R, check, compute};
use super::{Bench, TestResult, kernel};

#[test]
fn carries_link_words() -> TestResult {
    assert_eq!(wide_sum("add", [ONES32, ONES32], [1, 0])?, [0, 0, 1]);
    assert_eq!(wide_sum("add", [ONES32, 5], [0, 0])?, [u32::MAX, 5, 0]);
    assert_eq!(
        wide_sum("sub", [0, 0], [1, 0])?,
        [u32::MAX, u32::MAX, u32::MAX]
    );
    assert_eq!(wide_sum("sub", [0, 1], [1, 0])?, [u32::MAX, 0, 0]);
    Ok(())
}

/// Returns a sum or difference of two words, and its carry.
fn wide_sum(op: &str, a: [u64; 2], b: [u64; 2]) -> TestResult<Vec<u32>> {
    let bench = Bench::new(
        &kernel(&format!(
            "ld.global.v2.u32 {{%r4, %r5}}, [%p];
                ld.global.v2.u32 {{%r6, %r7}}, [%p+8];
                {op}.cc.u32 %r8, %r4, %r6;
                {op}c.cc.u32 %r9, %r5, %r7;
                {op}c.u32 %r10, 0, 0;
                st.global.v2.u32 [%p+16], {{%r8, %r9}};
                st.global.u32 [%p+24], %r10;"
        )),
        128,
    );
    bench
        .memory
        .write(0, &[a[0] as u32, a[1] as u32, b[0] as u32, b[1] as u32]);
    bench.launch(1, 1)?;
    Ok(bench.memory.read::<u32>(16, 3))
}

#[test]
fn products_carry() {
    check(&[
        (
            "mad.lo.cc.u32 $d, $a, $b, $c; addc.u32 $d, 0, 0;",
            R,
            &[ONES32, ONES32, ONES32],
            1,
        ),
        (
            "mad.hi.cc.u32 $d, $a, $b, $c; addc.u32 $d, 0, 0;",
            R,
            &[ONES32, ONES32, 1],
            0,
        ),
        (
            "mad.hi.cc.u32 $d, $a, $b, $c; addc.u32 $d, 0, 0;",
            R,
            &[ONES32, ONES32, 2],
            1,
        ),
        (
            "add.cc.u32 $d, $a, $a; madc.lo.u32 $d, $a, $b, $c;",
            R,
            &[ONES32, 2, 7],
            6,
        ),
        (
            "add.cc.u32 $d, $a, $a; madc.hi.s32 $d, $a, $b, $c;",
            R,
            &[ONES32, 2, 7],
            7,
        ),
        (
            "add.cc.u64 $d, $a, $b; addc.u64 $d, $a, $b;",
            D,
            &[u64::MAX, 1],
            1,
        ),
        (
            "sub.cc.s64 $d, $a, $b; subc.s64 $d, $a, $b;",
            D,
            &[0, 1],
            u64::MAX - 1,
        ),
        (
            "add.cc.u32 $d, $a, $a; addc.sat.s32 $d, $b, 0;",
            R,
            &[ONES32, 0x7fff_ffff],
            0x7fff_ffff,
        ),
        (
            "sub.cc.u32 $d, $b, $a; subc.sat.s32 $d, $c, 0;",
            R,
            &[1, 0, 0x8000_0000],
            0x8000_0000,
        ),
        (
            "add.cc.u32 $d, $a, $a; madc.hi.sat.s32 $d, $b, $b, $c;",
            R,
            &[ONES32, 0x4000_0000, 0x7000_0000],
            0x7fff_ffff,
        ),
        (
            "mad.lo.cc.u64 $d, $a, $b, $c; madc.hi.u64 $d, $a, $b, $c;",
            D,
            &[u64::MAX, u64::MAX, u64::MAX],
            u64::MAX - 1,
        ),
    ]);
}

#[test]
fn fields_and_set_bits() {
    check(&[
        ("szext.wrap.s32 $d, $a, $b;", R, &[0xff, 36], ONES32),
        ("szext.clamp.s32 $d, $a, $b;", R, &[0xff, 36], 0xff),
        ("szext.wrap.u32 $d, $a, $b;", R, &[0xabc, 4], 0xc),
        ("szext.clamp.u32 $d, $a, $b;", R, &[0xabc, 0], 0),
        ("fns.b32 $d, $a, $b, $c;", R, &[0xb4, 3, 2], 5),
        ("fns.b32 $d, $a, $b, $c;", R, &[0xb4, 7, 0xffff_fffe], 5),
        ("fns.b32 $d, $a, $b, $c;", R, &[0xb4, 0, 9], ONES32),
        ("bmsk.clamp.b32 $d, $a, $b;", R, &[4, 40], 0xffff_fff0),
        ("bmsk.clamp.b32 $d, $a, $b;", R, &[40, 4], 0),
        ("bmsk.wrap.b32 $d, $a, $b;", R, &[36, 36], 0xf0),
        ("bfind.shiftamt.u32 $d, $a;", R, &[1], 31),
        ("bfind.shiftamt.s32 $d, $a;", R, &[ONES32], ONES32),
        ("cnot.b32 $d, $a;", R, &[0], 1),
        ("clz.b64 $d, $a;", ('r', 'd'), &[1], 63),
    ]);
}

/// Each operand of a dot product is extended by its own sign.
#[test]
fn dot_products_extend_operands() {
    check(&[
        (
            "dp4a.u32.u32 $d, $a, $b, $c;",
            R,
            &[ONES32, ONES32, 1],
            4 * 255 * 255 + 1,
        ),
        ("dp4a.s32.s32 $d, $a, $b, $c;", R, &[ONES32, ONES32, 1], 5),
        (
            "dp4a.s32.u32 $d, $a, $b, $c;",
            R,
            &[ONES32, ONES32, 0],
            (-1020_i32) as u32 as u64,
        ),
        (
            "dp4a.u32.s32 $d, $a, $b, $c;",
            R,
            &[0x0102_0304, 0x80ff_0102, 0],
            (-128_i32 - 2 + 3 + 8) as u32 as u64,
        ),
        (
            "dp2a.lo.s32.s32 $d, $a, $b, $c;",
            R,
            &[0xffff_0002, 0x7f7f_80ff, 10],
            10 + 128 - 2,
        ),
        (
            "dp2a.hi.u32.u32 $d, $a, $b, $c;",
            R,
            &[0x0001_ffff, 0x0203_0000, 0],
            3 * 0xffff + 2,
        ),
    ]);
}

#[test]
fn products_24_bit() {
    check(&[
        (
            "mul24.lo.u32 $d, $a, $b;",
            R,
            &[0xff00_0003, 0xff00_0005],
            15,
        ),
        (
            "mul24.hi.s32 $d, $a, $b;",
            R,
            &[0x00ff_ffff, 0x10000],
            ONES32,
        ),
        ("mad24.lo.s32 $d, $a, $b, $c;", R, &[0x00ff_ffff, 3, 10], 7),
        (
            "mad24.hi.u32 $d, $a, $b, $c;",
            R,
            &[0x80_0000, 0x20, 1],
            0x1001,
        ),
        (
            "mad24.hi.sat.s32 $d, $a, $b, $c;",
            R,
            &[0x40_0000, 0x40_0000, 0x7fff_ffff],
            0x7fff_ffff,
        ),
        (
            "sad.s32 $d, $a, $b, $c;",
            R,
            &[0x8000_0000, 0x7fff_ffff, 1],
            0,
        ),
        ("sad.u16 $d, $a, $b, $c;", H, &[1, 3, 10], 12),
        (
            "mad.hi.sat.s32 $d, $a, $b, $c;",
            R,
            &[0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff],
            0x7fff_ffff,
        ),
    ]);
}

#[test]
fn packed_halves_are_separate() {
    check(&[
        ("add.u16x2 $d, $a, $b;", R, &[0xffff_ffff, 0x0001_0001], 0),
        (
            "min.s16x2 $d, $a, $b;",
            R,
            &[0x8000_0001, 0x0001_8000],
            0x8000_8000,
        ),
        (
            "max.u16x2 $d, $a, $b;",
            R,
            &[0x8000_0001, 0x0001_8000],
            0x8000_8000,
        ),
        (
            "max.relu.s16x2 $d, $a, $b;",
            R,
            &[0x8000_0001, 0xffff_8000],
            1,
        ),
        ("min.relu.s32 $d, $a, $b;", R, &[ONES32, 5], 0),
    ]);
}

#[test]
fn set_gives_all_ones_or_one() {
    let one = u64::from(1_f32.to_bits());
    check(&[
        ("set.lt.u32.s32 $d, $a, $b;", R, &[ONES32, 0], ONES32),
        ("set.lt.u32.u32 $d, $a, $b;", R, &[ONES32, 0], 0),
        ("set.ge.f32.f32 $d, $a, $b;", F, &[one, one], one),
        ("set.lt.ftz.u32.f32 $d, $a, $b;", ('r', 'f'), &[0, 1], 0),
        (
            "set.equ.s32.f32 $d, $a, $b;",
            ('r', 'f'),
            &[0x7fc0_0000, one],
            ONES32,
        ),
        (
            "setp.eq.u32 %p1, %r0, 1; set.eq.or.u32.u32 $d, $a, $b, !%p1;",
            R,
            &[1, 2],
            ONES32,
        ),
        (
            "set.gt.f16x2.f16x2 $d, $a, $b;",
            R,
            &[0x3c00_4000, 0x4000_3c00],
            0x0000_3c00,
        ),
        (
            "set.le.bf16x2.bf16x2 $d, $a, $b;",
            R,
            &[0x3f80_4000, 0x4000_3f80],
            0x3f80_0000,
        ),
        ("slct.u32.s32 $d, $a, $b, $c;", R, &[1, 2, 0x8000_0000], 2),
        (
            "slct.ftz.f32.f32 $d, $a, $b, $c;",
            F,
            &[1, 2, 0x8000_0001],
            1,
        ),
        ("slct.f32.f32 $d, $a, $b, $c;", F, &[1, 2, 0x7fc0_0000], 2),
    ]);
}

#[test]
fn packed_comparison() {
    let select = "selp.b32 $d, 1, 0, %p1; @%p2 add.u32 $d, $d, 2;";
    let cases = [
        (0x3c00_4000, 0x4000_3c00, 1),
        (0x4000_3c00, 0x3c00_4000, 2),
        (0x7e00_7e00, 0, 0),
    ];
    for (a, b, expected) in cases {
        let text = format!("setp.gt.f16x2 %p1|%p2, $a, $b; {select}");
        assert_eq!(compute(&text, R, &[a, b]), expected, "{a:x} {b:x}");
    }
    let text = format!("setp.eq.u32 %p1, 0, 0; setp.gt.and.bf16x2 %p1|%p2, $a, $b, %p1; {select}");
    assert_eq!(compute(&text, R, &[0x4000_3f80, 0x3f80_4000]), 2);
}
