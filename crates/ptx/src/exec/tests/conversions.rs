//! Conversions to and from the formats that only conversions use.

use super::arithmetic::{H, NAN32, R, check};

const HF: (char, char) = ('h', 'f');
const RH: (char, char) = ('r', 'h');
const HR: (char, char) = ('h', 'r');

fn bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

#[test]
fn tf32_keeps_ten_bits() {
    check(&[
        ("cvt.rna.tf32.f32 $d, $a;", R, &[0x3f80_1000], 0x3f80_2000),
        ("cvt.rn.tf32.f32 $d, $a;", R, &[0x3f80_1000], 0x3f80_0000),
        ("cvt.rn.tf32.f32 $d, $a;", R, &[0x3f80_3000], 0x3f80_4000),
        ("cvt.rz.tf32.f32 $d, $a;", R, &[0xbf80_1fff], 0xbf80_0000),
        ("cvt.rn.relu.tf32.f32 $d, $a;", R, &[0xbf80_1fff], 0),
        ("cvt.rna.tf32.f32 $d, $a;", R, &[0xffc0_1fff], 0xffc0_0000),
        ("cvt.rna.tf32.f32 $d, $a;", R, &[0x7f7f_ffff], 0x7f80_0000),
        ("cvt.rna.tf32.f32 $d, $a;", R, &[0xff80_0000], 0xff80_0000),
    ]);
}

#[test]
fn f32_pairs_convert_to_bytes() {
    check(&[
        (
            "cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;",
            HF,
            &[bits(1.0), bits(-448.0)],
            0x38fe,
        ),
        (
            "cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;",
            HF,
            &[bits(f32::INFINITY), NAN32],
            0x7e7f,
        ),
        (
            "cvt.rn.satfinite.relu.e4m3x2.f32 $d, $a, $b;",
            HF,
            &[bits(-3.0), bits(2.0)],
            0x0040,
        ),
        (
            "cvt.rn.satfinite.e5m2x2.f32 $d, $a, $b;",
            HF,
            &[bits(1.25), bits(-1e9)],
            0x3dfb,
        ),
        (
            "cvt.rn.satfinite.e4m3x2.f16x2 $d, $a;",
            HR,
            &[0x3c00_c000],
            0x38c0,
        ),
        (
            "cvt.rp.satfinite.ue8m0x2.f32 $d, $a, $b;",
            HF,
            &[bits(1.5), bits(0.25)],
            0x807d,
        ),
        (
            "cvt.rz.satfinite.ue8m0x2.f32 $d, $a, $b;",
            HF,
            &[bits(1.5), NAN32],
            0x7fff,
        ),
    ]);
}

#[test]
fn bytes_convert_to_f16_pairs() {
    check(&[
        ("cvt.rn.f16x2.e4m3x2 $d, $a;", RH, &[0x38c0], 0x3c00_c000),
        ("cvt.rn.f16x2.e4m3x2 $d, $a;", RH, &[0x017f], 0x1800_7fff),
        (
            "cvt.rn.relu.f16x2.e5m2x2 $d, $a;",
            RH,
            &[0x7cbc],
            0x7c00_0000,
        ),
        ("cvt.rn.f16x2.e5m2x2 $d, $a;", RH, &[0xfc3c], 0xfc00_3c00),
        ("cvt.rn.bf16x2.ue8m0x2 $d, $a;", RH, &[0x7fff], 0x3f80_7fff),
    ]);
}

/// The forms of the CUDA headers: conversions between bf16 and bytes take registers of 8 bits.
#[test]
fn bf16_conversions_of_bytes() {
    const S8: &str = "{ .reg .b8 byte; cvt.rzi.s8.bf16 byte, $a; mov.b16 $d, {byte, 0}; }";
    const U8: &str = "{ .reg .b8 byte; cvt.rni.u8.bf16 byte, $a; mov.b16 $d, {byte, 0}; }";
    const FROM_S8: &str =
        "{ .reg .b8 byte, other; mov.b16 {byte, other}, $a; cvt.rn.bf16.s8 $d, byte; }";
    const FROM_U8: &str =
        "{ .reg .b8 byte, other; mov.b16 {byte, other}, $a; cvt.rn.bf16.u8 $d, byte; }";
    let [nan, three, large, negative] = [0x7fc0, 0xc06d, bits(300.0) >> 16, bits(-129.0) >> 16];
    check(&[
        (S8, H, &[bits(1.5) >> 16], 1),
        (S8, H, &[three], 0xfd),
        (S8, H, &[large], 0x7f),
        (S8, H, &[negative], 0x80),
        (S8, H, &[nan], 0),
        (U8, H, &[bits(2.5) >> 16], 2),
        (U8, H, &[bits(200.0) >> 16], 200),
        (U8, H, &[large], 0xff),
        (U8, H, &[negative], 0),
        (FROM_S8, H, &[0x12fd], bits(-3.0) >> 16),
        (FROM_U8, H, &[0x12fd], bits(253.0) >> 16),
    ]);
}

#[test]
fn integers_saturate() {
    check(&[
        (
            "cvt.pack.sat.s16.s32 $d, $a, $b;",
            R,
            &[0x0001_0000, 0xffff_0000],
            0x7fff_8000,
        ),
        (
            "cvt.pack.sat.u16.s32 $d, $a, $b;",
            R,
            &[0xffff_ffff, 0x0001_0000],
            0x0000_ffff,
        ),
        (
            "cvt.pack.sat.u8.s32.b32 $d, $a, $b, $c;",
            R,
            &[300, 5, 0x1234],
            0x1234_ff05,
        ),
        (
            "cvt.pack.sat.s4.s32.b32 $d, $a, $b, $c;",
            R,
            &[100, 0xffff_ff00, 0xab],
            0xab78,
        ),
        (
            "cvt.pack.sat.u2.s32.b32 $d, $a, $b, $c;",
            R,
            &[9, 1, 1],
            0x1d,
        ),
    ]);
}
