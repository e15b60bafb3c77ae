//! Each arithmetic instruction on edge values, with operands and results as bits.

use super::{Bench, kernel};
use crate::exec::ops::handler::with_baseline_handlers;

/// Runs one instruction on 64-bit operands, and returns the bits of its result.
///
/// `$d`, `$a`, `$b` and `$c` in the text are registers of the classes in `class`. The letter of a
/// class selects the width: `h`, `r`, `f` use the low bits, `d`, `e` all bits.
pub(in crate::exec) fn compute(instruction: &str, class: (char, char), operands: &[u64]) -> u64 {
    let (to, from) = class;
    let mut body = String::new();
    for (index, register) in [5, 6, 7].iter().enumerate().take(operands.len()) {
        let bits = width(from);
        body += &format!(
            "ld.global.b{bits} %{from}{register}, [%p+{}];\n",
            8 + 8 * index
        );
    }
    body += &instruction
        .replace("$d", &format!("%{to}4"))
        .replace("$a", &format!("%{from}5"))
        .replace("$b", &format!("%{from}6"))
        .replace("$c", &format!("%{from}7"));
    body += &format!("\nst.global.b{} [%p], %{to}4;", width(to));
    let bench = Bench::new(&kernel(&body), 128);
    bench.memory.write(8, operands);
    bench
        .launch(1, 1)
        .unwrap_or_else(|fault| panic!("{instruction}: {fault}"));
    bench.memory.read(0, 1)[0]
}

fn width(class: char) -> u32 {
    match class {
        'h' => 16,
        'r' | 'f' => 32,
        _ => 64,
    }
}

/// An instruction, the classes of its registers, its operands, and the expected result.
pub(in crate::exec) type Case<'a> = (&'a str, (char, char), &'a [u64], u64);

pub(in crate::exec) fn check(cases: &[Case<'_>]) {
    for &(instruction, class, operands, expected) in cases {
        let compute = || compute(instruction, class, operands);
        for result in [compute(), with_baseline_handlers(compute)] {
            assert_eq!(
                result, expected,
                "{instruction} {operands:x?}: {result:#x} != {expected:#x}"
            );
        }
    }
}

pub(in crate::exec) const H: (char, char) = ('h', 'h');
pub(in crate::exec) const R: (char, char) = ('r', 'r');
pub(in crate::exec) const D: (char, char) = ('d', 'd');
pub(in crate::exec) const F: (char, char) = ('f', 'f');
pub(in crate::exec) const E: (char, char) = ('e', 'e');
pub(in crate::exec) const NAN32: u64 = 0x7fff_ffff;
pub(in crate::exec) const ONES32: u64 = 0xffff_ffff;

#[test]
fn integer_arithmetic() {
    check(&[
        ("add.u32 $d, $a, $b;", R, &[ONES32, 2], 1),
        ("add.sat.s32 $d, $a, $b;", R, &[0x7fff_ffff, 1], 0x7fff_ffff),
        ("sub.sat.s32 $d, $a, $b;", R, &[0x8000_0000, 1], 0x8000_0000),
        ("add.s64 $d, $a, $b;", D, &[u64::MAX, 2], 1),
        ("sub.u16 $d, $a, $b;", H, &[0, 1], 0xffff),
        ("mul.lo.s32 $d, $a, $b;", R, &[0x10000, 0x10000], 0),
        ("mul.hi.u32 $d, $a, $b;", R, &[ONES32, ONES32], 0xffff_fffe),
        ("mul.hi.s64 $d, $a, $b;", D, &[1 << 63, 2], u64::MAX),
        (
            "mul.wide.s32 $d, $a, $b;",
            ('d', 'r'),
            &[ONES32, 3],
            (-3i64) as u64,
        ),
        (
            "mul.wide.u16 $d, $a, $b;",
            ('r', 'h'),
            &[0xffff, 0xffff],
            0xfffe_0001,
        ),
        ("mad.lo.s32 $d, $a, $b, $c;", R, &[7, 6, ONES32], 41),
        ("mad.hi.u32 $d, $a, $b, $c;", R, &[1 << 31, 2, 5], 6),
        (
            "div.s32 $d, $a, $b;",
            R,
            &[0x8000_0000, ONES32],
            0x8000_0000,
        ),
        ("div.u32 $d, $a, $b;", R, &[5, 0], ONES32),
        ("rem.s64 $d, $a, $b;", D, &[5, 0], u64::MAX),
        (
            "rem.s32 $d, $a, $b;",
            R,
            &[(-7i32) as u32 as u64, 3],
            ONES32,
        ),
        ("min.s16 $d, $a, $b;", H, &[0x8000, 1], 0x8000),
        ("max.u64 $d, $a, $b;", D, &[u64::MAX, 1], u64::MAX),
        ("abs.s32 $d, $a;", R, &[0x8000_0000], 0x8000_0000),
        ("neg.s64 $d, $a;", D, &[1], u64::MAX),
    ]);
}

#[test]
fn bit_operations() {
    check(&[
        ("shl.b32 $d, $a, 31;", R, &[3], 0x8000_0000),
        ("shl.b32 $d, $a, 32;", R, &[3], 0),
        ("shr.s32 $d, $a, 40;", R, &[0x8000_0000], ONES32),
        ("shr.u64 $d, $a, 63;", D, &[1 << 63], 1),
        ("shr.s16 $d, $a, 4;", H, &[0x8000], 0xf800),
        ("shl.b16 $d, $a, 15;", H, &[3], 0x8000),
        ("not.b16 $d, $a;", H, &[0x00ff], 0xff00),
        ("xor.b64 $d, $a, $b;", D, &[u64::MAX, 5], !5),
        ("and.b32 $d, $a, 0xF0;", R, &[0xff], 0xf0),
        ("popc.b64 $d, $a;", ('r', 'd'), &[u64::MAX], 64),
        ("clz.b32 $d, $a;", R, &[0], 32),
        ("brev.b32 $d, $a;", R, &[1], 0x8000_0000),
        ("bfe.s32 $d, $a, 4, 4;", R, &[0x80], 0xffff_fff8),
        ("bfi.b32 $d, $a, $b, 8, 4;", R, &[0xf5, 0], 0x500),
        ("shf.l.wrap.b32 $d, $a, $b, 8;", R, &[0xab00_0000, 1], 0x1ab),
        ("shf.r.clamp.b32 $d, $a, $b, 40;", R, &[1, 7], 7),
        (
            "prmt.b32 $d, $a, $b, 0x0123;",
            R,
            &[0x0403_0201, 0],
            0x0102_0304,
        ),
        ("lop3.b32 $d, $a, $b, $c, 0x96;", R, &[1, 2, 4], 7),
        ("bfind.u32 $d, $a;", R, &[0], ONES32),
        ("bfind.s32 $d, $a;", R, &[0xffff_fffe], 0),
    ]);
}

#[test]
fn single_precision_modes() {
    let one = u64::from(1f32.to_bits());
    let third = u64::from((1f32 / 3.0).to_bits());
    check(&[
        ("add.f32 $d, $a, $b;", F, &[0xff80_0001, one], NAN32),
        (
            "sub.rn.f32 $d, $a, $b;",
            F,
            &[0x7f80_0000, 0x7f80_0000],
            NAN32,
        ),
        ("mul.f32 $d, $a, $b;", F, &[1, one], 1),
        (
            "mul.ftz.f32 $d, $a, $b;",
            F,
            &[0x8000_0001, one],
            0x8000_0000,
        ),
        ("add.sat.f32 $d, $a, $b;", F, &[one, one], one),
        ("add.rz.f32 $d, $a, $b;", F, &[one, 0x3300_0000], one),
        ("add.rp.f32 $d, $a, $b;", F, &[one, 1], one + 1),
        (
            "add.rm.f32 $d, $a, $b;",
            F,
            &[one, one | 1 << 31],
            0x8000_0000,
        ),
        (
            "mul.rp.f32 $d, $a, $b;",
            F,
            &[0x7f7f_ffff, 0x7f7f_ffff],
            0x7f80_0000,
        ),
        (
            "mul.rz.f32 $d, $a, $b;",
            F,
            &[0x7f7f_ffff, 0x7f7f_ffff],
            0x7f7f_ffff,
        ),
        (
            "fma.rn.f32 $d, $a, $b, $c;",
            F,
            &[0x7f7f_ffff, 0x4000_0000, 0xff7f_ffff],
            0x7f7f_ffff,
        ),
        (
            "fma.rm.f32 $d, $a, $b, $c;",
            F,
            &[one, one, 0x8000_0001],
            one - 1,
        ),
        ("div.rn.f32 $d, $a, $b;", F, &[one, 0x4040_0000], third),
        ("div.rz.f32 $d, $a, $b;", F, &[one, 0x4040_0000], third - 1),
        ("div.full.f32 $d, $a, $b;", F, &[one, 0], 0x7f80_0000),
        ("rcp.approx.ftz.f32 $d, $a;", F, &[1], 0x7f80_0000),
        ("sqrt.rn.f32 $d, $a;", F, &[0x8000_0000], 0x8000_0000),
        ("sqrt.approx.f32 $d, $a;", F, &[0xbf80_0000], NAN32),
        ("rsqrt.approx.f32 $d, $a;", F, &[0x4080_0000], 0x3f00_0000),
        ("ex2.approx.f32 $d, $a;", F, &[0x4040_0000], 0x4100_0000),
        ("ex2.approx.ftz.f32 $d, $a;", F, &[0xc308_0000], 0),
        ("lg2.approx.f32 $d, $a;", F, &[0x4100_0000], 0x4040_0000),
        ("min.f32 $d, $a, $b;", F, &[0, 0x8000_0000], 0x8000_0000),
        ("max.f32 $d, $a, $b;", F, &[0x7fc0_0000, one], one),
        ("max.NaN.f32 $d, $a, $b;", F, &[0x7fc0_0000, one], NAN32),
        ("abs.f32 $d, $a;", F, &[0xffc0_0000], NAN32),
        ("neg.f32 $d, $a;", F, &[0], 0x8000_0000),
        (
            "copysign.f32 $d, $a, $b;",
            F,
            &[0x8000_0000, one],
            one | 1 << 31,
        ),
    ]);
}

#[test]
fn double_precision_modes() {
    let one = 1f64.to_bits();
    let third = (1f64 / 3.0).to_bits();
    check(&[
        (
            "add.f64 $d, $a, $b;",
            E,
            &[0x7ff0_0000_0000_0077, one],
            0x7ff8_0000_0000_0077,
        ),
        ("add.rp.f64 $d, $a, $b;", E, &[one, 1], one + 1),
        ("add.rm.f64 $d, $a, $b;", E, &[one, 1 << 63 | 1], one - 1),
        (
            "mul.rz.f64 $d, $a, $b;",
            E,
            &[0x7fef_ffff_ffff_ffff, 0x4000 << 48],
            0x7fef_ffff_ffff_ffff,
        ),
        ("mul.rp.f64 $d, $a, $b;", E, &[1, 1], 1),
        (
            "fma.rn.f64 $d, $a, $b, $c;",
            E,
            &[one + 1, one - 1, one | 1 << 63],
            0x3c9f_ffff_ffff_fffe,
        ),
        ("div.rm.f64 $d, $a, $b;", E, &[one, 3f64.to_bits()], third),
        (
            "div.rp.f64 $d, $a, $b;",
            E,
            &[one, 3f64.to_bits()],
            third + 1,
        ),
        (
            "sqrt.rn.f64 $d, $a;",
            E,
            &[2f64.to_bits()],
            2f64.sqrt().to_bits(),
        ),
        (
            "rcp.approx.ftz.f64 $d, $a;",
            E,
            &[2f64.to_bits()],
            0.5f64.to_bits(),
        ),
        (
            "neg.f64 $d, $a;",
            E,
            &[0x7ff8_0000_0000_0001],
            0x7ff8_0000_0000_0001,
        ),
        ("min.f64 $d, $a, $b;", E, &[0, 1 << 63], 1 << 63),
    ]);
}

#[test]
fn half_precision_rounds_once() {
    check(&[
        ("add.f16 $d, $a, $b;", H, &[0x3c00, 0x1000], 0x3c00),
        (
            "fma.rn.f16 $d, $a, $b, $c;",
            H,
            &[0x3c01, 0x3c01, 0xbc00],
            0x1800,
        ),
        ("mul.bf16 $d, $a, $b;", H, &[0x3f80, 0x4000], 0x4000),
        ("max.f16 $d, $a, $b;", H, &[0x7e00, 0x3c00], 0x3c00),
        ("neg.f16 $d, $a;", H, &[0x3c00], 0xbc00),
    ]);
}

#[test]
fn conversions() {
    check(&[
        (
            "cvt.rzi.s32.f32 $d, $a;",
            ('r', 'f'),
            &[f32_bits(-2.9)],
            (-2i32) as u32 as u64,
        ),
        ("cvt.rni.s32.f32 $d, $a;", ('r', 'f'), &[f32_bits(2.5)], 2),
        ("cvt.rpi.u32.f32 $d, $a;", ('r', 'f'), &[f32_bits(2.1)], 3),
        (
            "cvt.rmi.s64.f64 $d, $a;",
            ('d', 'e'),
            &[(-2.1f64).to_bits()],
            (-3i64) as u64,
        ),
        ("cvt.rzi.u32.f32 $d, $a;", ('r', 'f'), &[NAN32], 0),
        (
            "cvt.rzi.s32.f64 $d, $a;",
            ('r', 'e'),
            &[f64::NAN.to_bits()],
            0x8000_0000,
        ),
        ("cvt.rzi.u64.f32 $d, $a;", ('d', 'f'), &[NAN32], 1 << 63),
        (
            "cvt.rzi.s32.f32 $d, $a;",
            ('r', 'f'),
            &[f32_bits(1e20)],
            0x7fff_ffff,
        ),
        (
            "cvt.rn.f32.s32 $d, $a;",
            ('f', 'r'),
            &[16_777_217],
            f32_bits(16_777_216.0),
        ),
        (
            "cvt.rp.f32.s32 $d, $a;",
            ('f', 'r'),
            &[16_777_217],
            f32_bits(16_777_218.0),
        ),
        (
            "cvt.rn.f32.f64 $d, $a;",
            ('f', 'e'),
            &[1e-300f64.to_bits()],
            0,
        ),
        (
            "cvt.rp.f32.f64 $d, $a;",
            ('f', 'e'),
            &[1e-300f64.to_bits()],
            1,
        ),
        (
            "cvt.f64.f32 $d, $a;",
            ('e', 'f'),
            &[f32_bits(0.5)],
            0.5f64.to_bits(),
        ),
        (
            "cvt.rn.f16.f32 $d, $a;",
            ('h', 'f'),
            &[f32_bits(65_520.0)],
            0x7c00,
        ),
        (
            "cvt.f32.f16 $d, $a;",
            ('f', 'h'),
            &[1],
            f32_bits(5.960_464_5e-8),
        ),
        ("cvt.rni.f32.f32 $d, $a;", F, &[f32_bits(-0.4)], 0x8000_0000),
        ("cvt.sat.f32.f32 $d, $a;", F, &[0x8000_0000], 0),
        (
            "cvt.rn.relu.f16.f32 $d, $a;",
            ('h', 'f'),
            &[f32_bits(-1.0)],
            0,
        ),
        (
            "cvt.rn.f16x2.f32 $d, $a, $b;",
            ('r', 'f'),
            &[f32_bits(1.0), f32_bits(-2.0)],
            0x3c00_c000,
        ),
        ("cvt.s32.s8 $d, $a;", R, &[0x180], 0xffff_ff80),
        ("cvt.u16.u32 $d, $a;", ('h', 'r'), &[0x12345], 0x2345),
        ("cvt.s64.s32 $d, $a;", ('d', 'r'), &[ONES32], u64::MAX),
        ("cvt.u64.u32 $d, $a;", ('d', 'r'), &[ONES32], ONES32),
        ("cvt.sat.u8.s32 $d, $a;", R, &[(-5i32) as u32 as u64], 0),
        ("cvt.sat.s8.s32 $d, $a;", R, &[200], 127),
    ]);
}

/// Returns the bits of a number as an operand.
fn f32_bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

#[test]
fn comparisons() {
    let select = "\nselp.b32 %r4, 1, 0, %p1;";
    let cases: [Case<'_>; 14] = [
        ("setp.lt.s32 %p1, $a, $b;", R, &[ONES32, 0], 1),
        ("setp.lt.u32 %p1, $a, $b;", R, &[ONES32, 0], 0),
        ("setp.lo.u32 %p1, $a, $b;", R, &[0, 1], 1),
        ("setp.ge.u64 %p1, $a, $b;", D, &[1 << 63, 1], 1),
        ("setp.eq.f32 %p1, $a, $b;", F, &[0, 0x8000_0000], 1),
        ("setp.eq.ftz.f32 %p1, $a, $b;", F, &[1, 0], 1),
        ("setp.ne.f32 %p1, $a, $b;", F, &[NAN32, 0], 0),
        ("setp.neu.f32 %p1, $a, $b;", F, &[NAN32, 0], 1),
        ("setp.ltu.f32 %p1, $a, $b;", F, &[NAN32, 0], 1),
        ("setp.num.f32 %p1, $a, $b;", F, &[NAN32, 0], 0),
        ("setp.nan.f64 %p1, $a, $b;", E, &[0x7ff8 << 48, 0], 1),
        ("setp.lt.and.u32 %p1|%p2, $a, $b, !%p3;", R, &[0, 1], 1),
        ("setp.lt.or.u32 %p2|%p1, $a, $b, %p3;", R, &[1, 0], 1),
        ("setp.lt.xor.u32 %p1, $a, $b, !%p3;", R, &[0, 1], 0),
    ];
    for (instruction, (_, from), operands, expected) in cases {
        let text = format!("{instruction}{select}");
        let result = compute(&text, ('r', from), operands);
        assert_eq!(result, expected, "{instruction} {operands:x?}");
    }
}
