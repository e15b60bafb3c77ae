//! `cvt` to and from packed numbers, tf32 and 8-bit formats, and `cvt.pack`.

use crate::form::Operand::{B16, B32};
use crate::form::{BRAIN, BRAINS, FIVES, FOURS, Form, HALF, HALVES, SINGLE};
use crate::reference::integer::{Integer, S32};
use crate::reference::real::{
    BF16, Class, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, Format, Round, TF32,
};
use crate::reference::wide::Wide;

pub(super) fn forms() -> Vec<Form> {
    let mut forms = pairs();
    forms.extend(tensor_floats());
    forms.extend(small());
    forms.extend(finite());
    forms.extend(random());
    forms.extend(scales());
    forms.extend(packed_integers());
    forms
}

/// Two f32 packed as halves of a register.
fn pairs() -> Vec<Form> {
    let mut forms = Vec::new();
    for (name, format, o) in [("f16x2", F16, HALVES), ("bf16x2", BF16, BRAINS)] {
        for (direction, round) in [("rn", Round::Nearest), ("rz", Round::Zero)] {
            for relu in [false, true] {
                let narrow = move |bits: u64| {
                    let sign = if F32.is_negative(bits) {
                        format.sign()
                    } else {
                        0
                    };
                    let result = match F32.class(bits) {
                        Class::Nan => format.nan(&[]),
                        Class::Infinite => sign | format.infinity(),
                        Class::Finite { .. } => {
                            format.round(&F32.wide(bits).expect("not finite"), round)
                        }
                    };
                    if relu { format.relu(result) } else { result }
                };
                let name = format!(
                    "cvt.{direction}{}.{name}.f32",
                    if relu { ".relu" } else { "" }
                );
                let form = Form::new(name, o, [SINGLE, SINGLE], move |[a, b, ..]| {
                    narrow(a) << 16 | narrow(b)
                });
                forms.push(form.needs(80));
            }
        }
    }
    forms
}

fn tensor_floats() -> Vec<Form> {
    let forms = [
        ("rna", Round::Away, false, 80),
        ("rn", Round::Nearest, false, 90),
        ("rn.relu", Round::Nearest, true, 90),
        ("rz", Round::Zero, false, 90),
        ("rz.relu", Round::Zero, true, 90),
    ];
    forms
        .into_iter()
        .map(|(direction, round, relu, architecture)| {
            Form::new(
                format!("cvt.{direction}.tf32.f32"),
                SINGLE,
                [SINGLE],
                move |[a, ..]: [u64; 4]| {
                    let narrow = match F32.class(a) {
                        // As measured: rounding half away from zero truncates the lower bits.
                        Class::Nan if round == Round::Away => return a & !0x1fff,
                        Class::Nan => return 0x7fff_ffff,
                        Class::Infinite => a >> 13,
                        Class::Finite { .. } => {
                            TF32.round(&F32.wide(a).expect("not finite"), round)
                        }
                    };
                    (if relu { TF32.relu(narrow) } else { narrow }) << 13
                },
            )
            .needs(architecture)
        })
        .collect()
}

/// A format of at most 8 bits: its largest number, and its NaN or the result for NaN.
#[derive(Clone, Copy)]
struct Small {
    name: &'static str,
    format: Format,
    largest: u64,
    nan: u64,
    architecture: u32,
}

const SMALL: [Small; 5] = [
    Small {
        name: "e4m3x2",
        format: E4M3,
        largest: 0x7e,
        nan: 0x7f,
        architecture: 90,
    },
    Small {
        name: "e5m2x2",
        format: E5M2,
        largest: 0x7b,
        nan: 0x7f,
        architecture: 90,
    },
    Small {
        name: "e2m3x2",
        format: E2M3,
        largest: 0x1f,
        nan: 0x1f,
        architecture: 100,
    },
    Small {
        name: "e3m2x2",
        format: E3M2,
        largest: 0x1f,
        nan: 0x1f,
        architecture: 100,
    },
    Small {
        name: "e2m1x2",
        format: E2M1,
        largest: 0x7,
        nan: 0x7,
        architecture: 100,
    },
];

impl Small {
    /// Returns the nearest number of the format, never an infinity.
    fn narrow(self, from: Format, bits: u64, relu: bool) -> u64 {
        let sign = if from.is_negative(bits) && !relu {
            self.format.sign()
        } else {
            0
        };
        match from.class(bits) {
            Class::Nan => self.nan,
            _ if relu && from.is_negative(bits) => 0,
            Class::Infinite => sign | self.largest,
            Class::Finite { .. } => {
                let number = from.wide(bits).expect("not finite");
                sign | self
                    .format
                    .round_magnitude(&number, Round::Nearest)
                    .min(self.largest)
            }
        }
    }

    /// Returns the f16 with the same value.
    fn widen(self, bits: u64, relu: bool) -> u64 {
        let bits = bits & (self.format.sign() | (self.format.sign() - 1));
        let magnitude = bits & !self.format.sign();
        let sign = if self.format.is_negative(bits) {
            F16.sign()
        } else {
            0
        };
        let is_nan = match self.name {
            "e4m3x2" => magnitude == 0x7f,
            "e5m2x2" => magnitude > 0x7c,
            _ => false,
        };
        if is_nan {
            return F16.nan(&[]);
        }
        if self.name == "e5m2x2" && magnitude == 0x7c {
            return if relu && sign != 0 {
                0
            } else {
                sign | F16.infinity()
            };
        }
        let Class::Finite { mantissa, exponent } = self.format.finite(bits) else {
            unreachable!("`finite` excludes the others")
        };
        let number = Wide::new(sign != 0, u128::from(mantissa), exponent);
        let result = F16.round(&number, Round::Nearest);
        if relu { F16.relu(result) } else { result }
    }
}

fn small() -> Vec<Form> {
    let mut forms = Vec::new();
    for small in SMALL {
        let Small {
            name,
            architecture,
            format,
            ..
        } = small;
        let is_four = format.width == 4;
        let bits = if is_four { 4 } else { 8 };
        let d = if is_four { B16 } else { FOURS };
        // The destination of a pair of 4-bit numbers is a byte.
        let text = |code: String| {
            if is_four {
                format!("{{ .reg .b8 %y; {code} cvt.u16.u8 $d, %y; }}")
            } else {
                code
            }
        };
        let result = if is_four { "%y" } else { "$d" };
        for (flags, relu) in [("", false), (".relu", true)] {
            let instruction = format!("cvt.rn.satfinite{flags}.{name}.f32");
            let f = move |[a, b, ..]: [u64; 4]| {
                small.narrow(F32, a, relu) << bits | small.narrow(F32, b, relu)
            };
            let code = text(format!("{instruction} {result}, $a, $b;"));
            forms.push(
                Form::new(instruction, d, [SINGLE, SINGLE], f)
                    .code(code)
                    .needs(architecture),
            );
            if format.width == 8 {
                forms.push(
                    Form::new(
                        format!("cvt.rn.satfinite{flags}.{name}.f16x2"),
                        d,
                        [HALVES],
                        move |[a, ..]: [u64; 4]| {
                            small.narrow(F16, a >> 16, relu) << 8
                                | small.narrow(F16, a & 0xffff, relu)
                        },
                    )
                    .needs(architecture),
                );
            }
            let f =
                move |[a, ..]: [u64; 4]| small.widen(a >> bits, relu) << 16 | small.widen(a, relu);
            let instruction = format!("cvt.rn{flags}.f16x2.{name}");
            let (source, code) = match name {
                "e5m2x2" => (FIVES, format!("{instruction} $d, $a;")),
                "e2m1x2" => (
                    B16,
                    format!("{{ .reg .b8 %y; cvt.u8.u16 %y, $a; {instruction} $d, %y; }}"),
                ),
                _ => (FOURS, format!("{instruction} $d, $a;")),
            };
            forms.push(
                Form::new(instruction, B32, [source], f)
                    .code(code)
                    .needs(architecture),
            );
        }
    }
    forms
}

/// `.satfinite` for formats with infinities: the largest number replaces them.
fn finite() -> Vec<Form> {
    let narrow = |bits: u64, format: Format, round: Round, relu: bool| {
        let sign = if F32.is_negative(bits) {
            format.sign()
        } else {
            0
        };
        let result = match F32.class(bits) {
            Class::Nan => return format.nan(&[]),
            Class::Infinite => sign | format.infinity(),
            Class::Finite { .. } => format.round(&F32.wide(bits).expect("not finite"), round),
        };
        let result = if result & !format.sign() == format.infinity() {
            result - 1
        } else {
            result
        };
        if relu { format.relu(result) } else { result }
    };
    let mut forms = Vec::new();
    for (name, format, one, two) in [("f16", F16, HALF, HALVES), ("bf16", BF16, BRAIN, BRAINS)] {
        for (direction, round, relu) in [
            ("rn", Round::Nearest, false),
            ("rn", Round::Nearest, true),
            ("rz", Round::Zero, false),
            ("rz", Round::Zero, true),
        ] {
            let flags = if relu { "relu.satfinite" } else { "satfinite" };
            let f = move |[a, ..]: [u64; 4]| narrow(a, format, round, relu);
            forms.push(
                Form::new(
                    format!("cvt.{direction}.{flags}.{name}.f32"),
                    one,
                    [SINGLE],
                    f,
                )
                .needs(80),
            );
            let pair = Form::new(
                format!("cvt.{direction}.{flags}.{name}x2.f32"),
                two,
                [SINGLE, SINGLE],
                move |[a, b, ..]: [u64; 4]| {
                    narrow(a, format, round, relu) << 16 | narrow(b, format, round, relu)
                },
            );
            forms.push(pair.needs(80));
        }
    }
    for (direction, round, relu, architecture) in [
        ("rna.satfinite", Round::Away, false, 80),
        ("rn.satfinite", Round::Nearest, false, 100),
        ("rn.satfinite.relu", Round::Nearest, true, 100),
        ("rz.satfinite", Round::Zero, false, 100),
        ("rz.satfinite.relu", Round::Zero, true, 100),
    ] {
        forms.push(
            Form::new(
                format!("cvt.{direction}.tf32.f32"),
                SINGLE,
                [SINGLE],
                move |[a, ..]: [u64; 4]| match F32.class(a) {
                    // As measured: the lower bits are truncated first, and a resulting infinity is
                    // replaced by the largest number.
                    Class::Nan if round == Round::Away && a & 0x7f_e000 == 0 => {
                        a & 0x8000_0000 | 0x7f7f_e000
                    }
                    Class::Nan => 0x7fff_ffff,
                    _ => narrow(a, TF32, round, relu) << 13,
                },
            )
            .needs(architecture),
        );
    }
    forms
}

/// Returns the random bits of one number of `cvt.rs`, by their positions in the register, starting
/// at the most significant one.
fn bits_at(random: u64, places: impl IntoIterator<Item = u32>) -> u64 {
    places
        .into_iter()
        .fold(0, |bits, position| bits << 1 | random >> position & 1)
}

/// Rounds down, or up if the sum of the random bits as a fraction and the discarded part is at
/// least one.
fn at_random(format: Format, bits: u64, random: u64, width: u32) -> u64 {
    let number = F32.wide(bits).expect("not finite");
    let below = format.round_magnitude(&number, Round::Zero);
    let value = |magnitude: u64| match format.finite(magnitude) {
        Class::Finite { mantissa, exponent } => mantissa as f64 * f64::from(exponent).exp2(),
        _ => unreachable!("`finite` excludes the others"),
    };
    let between = (f64::from(f32::from_bits(bits as u32)).abs() - value(below))
        / (value(below + 1) - value(below));
    below + u64::from(between + random as f64 / f64::from(width).exp2() >= 1.0)
}

/// `cvt.rs`: stochastic rounding with the bits of another register.
fn random() -> Vec<Form> {
    let mut forms = random_pairs();
    let fp8: [Vec<u32>; 4] = [
        (16..32).collect(),
        (16..32).rev().collect(),
        (0..16).collect(),
        (0..16).rev().collect(),
    ];
    let fp4 = [
        (8..16).chain(24..32).collect(),
        (24..32).rev().chain((8..16).rev()).collect(),
        (0..8).chain(16..24).collect(),
        (16..24).rev().chain((0..8).rev()).collect::<Vec<u32>>(),
    ];
    for small in SMALL {
        let name = small.name.replace("x2", "x4");
        let width = if small.format.width == 4 { 4 } else { 8 };
        for (flags, relu) in [("satfinite", false), ("relu.satfinite", true)] {
            let values = if width == 4 { fp4.clone() } else { fp8.clone() };
            let d = if width == 4 { B16 } else { B32 };
            let instruction = format!("cvt.rs.{flags}.{name}.f32");
            let code = format!("{instruction} $d, {{$a, $b, $c, $a}}, $e;");
            forms.push(
                Form::new(
                    instruction,
                    d,
                    [SINGLE, SINGLE, SINGLE, B32],
                    move |[a, b, c, random]: [u64; 4]| {
                        [a, b, c, a]
                            .into_iter()
                            .zip(&values)
                            .fold(0, |whole, (bits, values)| {
                                let random = bits_at(random, values.iter().copied());
                                whole << width | small.at_random(bits, random, 16, relu)
                            })
                    },
                )
                .code(code)
                .needs(100),
            );
        }
    }
    forms
}

impl Small {
    fn at_random(self, bits: u64, random: u64, width: u32, relu: bool) -> u64 {
        let sign = if F32.is_negative(bits) {
            self.format.sign()
        } else {
            0
        };
        match F32.class(bits) {
            Class::Nan => self.nan,
            _ if relu && sign != 0 => 0,
            Class::Infinite => sign | self.largest,
            Class::Finite { .. } if f64::from(f32::from_bits(bits as u32)).abs() >= 65_536.0 => {
                sign | self.largest
            }
            Class::Finite { .. } => {
                sign | at_random(self.format, bits, random, width).min(self.largest)
            }
        }
    }
}

fn random_pairs() -> Vec<Form> {
    let mut forms = Vec::new();
    for (name, format, d, width, largest) in [
        ("f16x2", F16, HALVES, 13, 65_536.0),
        ("bf16x2", BF16, BRAINS, 16, f64::INFINITY),
    ] {
        for flags in ["", ".relu", ".satfinite", ".relu.satfinite"] {
            let relu = flags.contains("relu");
            let finite = flags.contains("satfinite");
            let narrow = move |bits: u64, random: u64| {
                let sign = if F32.is_negative(bits) {
                    format.sign()
                } else {
                    0
                };
                let magnitude = match F32.class(bits) {
                    Class::Nan => return format.nan(&[]),
                    _ if relu && sign != 0 => return 0,
                    Class::Infinite => format.infinity(),
                    Class::Finite { .. }
                        if f64::from(f32::from_bits(bits as u32)).abs() >= largest =>
                    {
                        format.infinity()
                    }
                    Class::Finite { .. } => {
                        at_random(format, bits, random, width).min(format.infinity())
                    }
                };
                sign | if finite {
                    magnitude.min(format.infinity() - 1)
                } else {
                    magnitude
                }
            };
            let form = Form::new(
                format!("cvt.rs{flags}.{name}.f32"),
                d,
                [SINGLE, SINGLE, B32],
                move |[a, b, random, _]: [u64; 4]| {
                    let upper = bits_at(random, (16..16 + width).rev());
                    narrow(a, upper) << 16 | narrow(b, bits_at(random, (0..width).rev()))
                },
            );
            forms.push(form.needs(100));
        }
    }
    forms
}

/// Powers of two as scales, in the halves of a register.
fn scales() -> Vec<Form> {
    let mut forms = Vec::new();
    for (direction, up) in [("rz", false), ("rp", true)] {
        for flags in ["", ".satfinite"] {
            let scale = move |bits: u64| {
                let exponent = bits >> 7 & 0xff;
                let fraction = bits & 0x7f;
                match (exponent, fraction) {
                    (0xff, 0) => 0xfe,
                    (0xff, _) => 0xff,
                    // Subnormal numbers reach down to 2^-127, which is scale 0.
                    (0, fraction) => u64::from(up && fraction > 0x40),
                    (exponent, fraction) => (exponent + u64::from(up && fraction != 0)).min(0xfe),
                }
            };
            let name = format!("cvt.{direction}{flags}.ue8m0x2.bf16x2");
            forms.push(
                Form::new(name, B16, [BRAINS], move |[a, ..]: [u64; 4]| {
                    scale(a >> 16) << 8 | scale(a & 0xffff)
                })
                .needs(100),
            );
        }
    }
    forms
}

/// `cvt.pack`: two integers next to the low bits of a third.
fn packed_integers() -> Vec<Form> {
    let types = [
        (16, false),
        (16, true),
        (8, false),
        (8, true),
        (4, false),
        (4, true),
        (2, false),
        (2, true),
    ];
    types
        .into_iter()
        .map(|(bits, signed)| {
            let t = Integer { bits, signed };
            let pair = move |a: u64, b: u64| t.clamp(S32.value(a)) << bits | t.clamp(S32.value(b));
            if bits == 16 {
                let name = format!("cvt.pack.sat.{}.s32", t.name());
                return Form::new(name, B32, [B32, B32], move |[a, b, ..]| pair(a, b));
            }
            Form::new(
                format!("cvt.pack.sat.{}.s32.b32", t.name()),
                B32,
                [B32; 3],
                move |[a, b, c, _]: [u64; 4]| pair(a, b) | c << (2 * bits) & 0xffff_ffff,
            )
        })
        .collect::<Vec<Form>>()
}
