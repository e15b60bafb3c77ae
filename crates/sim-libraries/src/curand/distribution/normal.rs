//! The normal distribution.

use std::f64::consts::TAU;

/// Converts two numbers between 0 and 1 to two independent normal ones.
pub(super) fn box_muller(first: f64, second: f64) -> [f64; 2] {
    let radius = (-2.0 * first.ln()).sqrt();
    let (sine, cosine) = (TAU * second).sin_cos();
    [radius * sine, radius * cosine]
}

/// Returns the number that a normal one is below with this probability: algorithm AS 241 by
/// Wichura, with a relative error of 10⁻¹⁶.
pub(super) fn quantile(probability: f64) -> f64 {
    let centered = probability - 0.5;
    if centered.abs() <= 0.425 {
        return centered * ratio(0.180_625 - centered * centered, &CENTRAL.0, &CENTRAL.1);
    }
    let tail = (-probability.min(1.0 - probability).ln()).sqrt();
    let (shift, (upper, lower)) = if tail <= 5.0 {
        (1.6, &MIDDLE)
    } else {
        (5.0, &FAR)
    };
    ratio(tail - shift, upper, lower).copysign(centered)
}

/// The coefficients of a polynomial, the constant one first.
type Polynomial = [f64; 8];

fn ratio(x: f64, upper: &Polynomial, lower: &Polynomial) -> f64 {
    evaluate(upper, x) / evaluate(lower, x)
}

fn evaluate(coefficients: &Polynomial, x: f64) -> f64 {
    coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, factor| sum * x + factor)
}

const CENTRAL: (Polynomial, Polynomial) = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);

const MIDDLE: (Polynomial, Polynomial) = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);

const FAR: (Polynomial, Polynomial) = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        let tables = [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.8, 0.841_621_233_572_914_3),
            (1e-9, -5.997_807_015_008_182),
            (1e-20, -9.262_340_089_798_408),
        ];
        for (probability, number) in tables {
            let computed = quantile(probability);
            assert!(
                (computed - number).abs() < 1e-12 * number.abs().max(1.0),
                "{computed} instead of {number}"
            );
        }
    }
}
