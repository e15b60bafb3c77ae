//! Half precision and bfloat16, single and packed.

use super::arithmetic::{D, H, R, check};

#[test]
fn half_modes() {
    check(&[
        ("add.rn.f16 $d, $a, $b;", H, &[0x7bff, 0x7bff], 0x7c00),
        ("add.ftz.f16 $d, $a, $b;", H, &[0x0001, 0x8001], 0),
        ("add.f16 $d, $a, $b;", H, &[0x0001, 0x0001], 2),
        ("sub.sat.f16 $d, $a, $b;", H, &[0x3c00, 0x4000], 0),
        ("mul.ftz.sat.f16 $d, $a, $b;", H, &[0x4000, 0x4000], 0x3c00),
        (
            "fma.rn.relu.f16 $d, $a, $b, $c;",
            H,
            &[0x3c00, 0xc000, 0],
            0,
        ),
        (
            "fma.rn.relu.bf16 $d, $a, $b, $c;",
            H,
            &[0x3f80, 0xffc0, 0],
            0x7fff,
        ),
        ("neg.ftz.f16 $d, $a;", H, &[0x0001], 0x8000),
        ("abs.bf16 $d, $a;", H, &[0xff81], 0x7fff),
        ("min.NaN.f16 $d, $a, $b;", H, &[0x7e01, 0x3c00], 0x7fff),
        ("max.ftz.f16 $d, $a, $b;", H, &[0x8001, 0x8000], 0x8000),
        (
            "min.xorsign.abs.f16 $d, $a, $b;",
            H,
            &[0xbc00, 0x4000],
            0xbc00,
        ),
        ("ex2.approx.f16 $d, $a;", H, &[0x4200], 0x4800),
        ("ex2.approx.ftz.bf16 $d, $a;", H, &[0xc080], 0x3d80),
        ("tanh.approx.bf16 $d, $a;", H, &[0x7f80], 0x3f80),
        ("tanh.approx.f16 $d, $a;", H, &[0x8000], 0x8000),
    ]);
}

#[test]
fn pairs_compute_both_halves() {
    check(&[
        (
            "add.f16x2 $d, $a, $b;",
            R,
            &[0x3c00_7c00, 0x3c00_fc00],
            0x4000_7fff,
        ),
        (
            "add.rn.bf16x2 $d, $a, $b;",
            R,
            &[0x3f80_4000, 0x3f80_c000],
            0x4000_0000,
        ),
        (
            "sub.f16x2 $d, $a, $b;",
            R,
            &[0x3c00_4000, 0x4000_3c00],
            0xbc00_3c00,
        ),
        (
            "mul.sat.f16x2 $d, $a, $b;",
            R,
            &[0x4000_bc00, 0x3c00_3c00],
            0x3c00_0000,
        ),
        (
            "fma.rn.f16x2 $d, $a, $b, $c;",
            R,
            &[0x3c01_3c00, 0x3c01_4000, 0xbc00_3c00],
            0x1800_4200,
        ),
        (
            "fma.rn.relu.bf16x2 $d, $a, $b, $c;",
            R,
            &[0xbf80_3f80, 0x3f80_3f80, 0],
            0x0000_3f80,
        ),
        ("neg.f16x2 $d, $a;", R, &[0x3c00_fe00], 0xbc00_7fff),
        ("abs.bf16x2 $d, $a;", R, &[0xbf80_8000], 0x3f80_0000),
        (
            "max.f16x2 $d, $a, $b;",
            R,
            &[0x7e00_3c00, 0x3c00_4000],
            0x3c00_4000,
        ),
        (
            "min.NaN.bf16x2 $d, $a, $b;",
            R,
            &[0x7fc0_3f80, 0x3f80_4000],
            0x7fff_3f80,
        ),
        (
            "max.xorsign.abs.bf16x2 $d, $a, $b;",
            R,
            &[0xbf80_3f80, 0x4000_4000],
            0xc000_4000,
        ),
        ("ex2.approx.f16x2 $d, $a;", R, &[0x4000_0000], 0x4400_3c00),
        ("tanh.approx.bf16x2 $d, $a;", R, &[0xff80_0000], 0xbf80_0000),
    ]);
}

#[test]
fn single_pairs_round_once() {
    let one = u64::from(1_f32.to_bits());
    let two = u64::from(2_f32.to_bits());
    check(&[
        (
            "add.rn.f32x2 $d, $a, $b;",
            D,
            &[one << 32 | two, one << 32 | one],
            two << 32 | 0x4040_0000,
        ),
        (
            "fma.rz.f32x2 $d, $a, $b, $c;",
            D,
            &[one << 32 | one, one << 32 | one, 0x3300_0000],
            one << 32 | one,
        ),
        (
            "cvt.u16.u32 %h1, $a; add.f32.f16 $d, %h1, $b;",
            R,
            &[0x3c00, one],
            two,
        ),
        (
            "cvt.u16.u32 %h1, $a; fma.rn.f32.bf16 $d, %h1, %h1, $b;",
            R,
            &[0x4000, one],
            0x40a0_0000,
        ),
    ]);
}

#[test]
fn extremes_of_three_operands() {
    let one = 0x3f80_0000;
    check(&[
        (
            "min.f32 $d, $a, $b, $c;",
            super::arithmetic::F,
            &[one, 0x7fc0_0000, 0xbf80_0000],
            0xbf80_0000,
        ),
        (
            "max.NaN.f32 $d, $a, $b, $c;",
            super::arithmetic::F,
            &[one, 0x7fc0_0000, 0xbf80_0000],
            0x7fff_ffff,
        ),
        (
            "max.xorsign.abs.f32 $d, $a, $b;",
            super::arithmetic::F,
            &[one, 0xc000_0000],
            0xc000_0000,
        ),
    ]);
}
