//! The video instructions on edge values.

use super::arithmetic::{R, check};

/// Elements are computed separately, and may be summed.
#[test]
fn elements_are_separate() {
    check(&[
        (
            "vadd2.u32.u32.u32 $d, $a, $b, $c;",
            R,
            &[0xffff_0001, 0x0001_0001, 0],
            2,
        ),
        (
            "vadd2.s32.s32.s32.sat $d, $a, $b, $c;",
            R,
            &[0x7fff_8000, 0x0001_ffff, 0],
            0x7fff_8000,
        ),
        (
            "vsub4.u32.u32.u32.sat $d, $a, $b, $c;",
            R,
            &[0x0102_0304, 0x0201_0404, 0],
            0x0001_0000,
        ),
        (
            "vabsdiff4.u32.u32.u32.add $d, $a, $b, $c;",
            R,
            &[0x0102_0304, 0x0403_0201, 100],
            108,
        ),
        (
            "vabsdiff4.u32.u32.u32 $d, $a, $b, $c;",
            R,
            &[0xff00_1020, 0x00ff_2010, 0],
            0xffff_1010,
        ),
        (
            "vabsdiff2.u32.s32.s32.add $d, $a, $b, $c;",
            R,
            &[0x0001_8000, 0xffff_7fff, 0],
            2 + 0xffff,
        ),
        (
            "vavrg4.u32.u32.u32 $d, $a, $b, $c;",
            R,
            &[0x0102_0304, 0x0202_0205, 0],
            0x0202_0305,
        ),
        (
            "vavrg2.s32.s32.s32 $d, $a, $b, $c;",
            R,
            &[0xfffe_0001, 0xffff_0002, 0],
            0xfffe_0002,
        ),
        (
            "vmin4.s32.s32.s32 $d, $a, $b, $c;",
            R,
            &[0x8001_7f00, 0x0000_0000, 0],
            0x8000_0000,
        ),
        (
            "vmax2.u32.u32.u32 $d.h1, $a, $b, $c;",
            R,
            &[0x0005_0006, 0x0004_0009, 0x1234_5678],
            0x0005_5678,
        ),
        (
            "vadd4.u32.u32.u32 $d.b210, $a, $b, $c;",
            R,
            &[0x0101_0101, 0x0202_0202, 0xaa00_0000],
            0xaa03_0303,
        ),
        (
            "vadd2.u32.u32.u32 $d, $a.h01, $b.h22, $c;",
            R,
            &[0x0001_0002, 0x0030_0010, 0],
            0x0012_0011,
        ),
        (
            "vset4.u32.u32.gt $d, $a, $b, $c;",
            R,
            &[0x0503_0201, 0x0404_0001, 0],
            0x0100_0100,
        ),
        (
            "vset2.s32.s32.ne.add $d, $a, $b, $c;",
            R,
            &[0x0001_0001, 0x0001_0002, 7],
            8,
        ),
    ]);
}
