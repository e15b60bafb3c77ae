//! An instruction form: its spelling, its operands and its expected results.

use crate::reference::real::{BF16, E4M3, E5M2, F16, F32, F64, Format};

/// The kind of an operand, which determines its width and its edge values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    B8,
    B16,
    B32,
    B64,
    /// A shift count, a field length or a position.
    Count,
    /// A predicate value, 0 or 1.
    Truth,
    Float(Format),
    /// Two packed numbers.
    Pair(Format),
    /// Two packed 16-bit integers.
    Halves,
    /// Four packed 8-bit integers.
    Bytes,
}

impl Operand {
    /// Returns the number of bits in memory.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::B8 => 8,
            Self::B16 => 16,
            Self::B32 | Self::Count | Self::Truth | Self::Halves | Self::Bytes => 32,
            Self::B64 => 64,
            Self::Float(format) => format.width,
            Self::Pair(format) => 2 * format.width,
        }
    }

    /// Returns the number of bits of the register.
    pub(crate) fn register(self) -> u32 {
        self.bits().max(16)
    }
}

pub(crate) const HALF: Operand = Operand::Float(F16);
pub(crate) const BRAIN: Operand = Operand::Float(BF16);
pub(crate) const SINGLE: Operand = Operand::Float(F32);
pub(crate) const DOUBLE: Operand = Operand::Float(F64);
pub(crate) const HALVES: Operand = Operand::Pair(F16);
pub(crate) const BRAINS: Operand = Operand::Pair(BF16);
pub(crate) const FOURS: Operand = Operand::Pair(E4M3);
pub(crate) const FIVES: Operand = Operand::Pair(E5M2);

/// The bits of the sources of one thread.
pub(crate) type Sources = [u64; 4];

/// The allowed error of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Units in the last place.
    pub(crate) ulps: f64,
    pub(crate) absolute: f64,
}

impl Bound {
    pub(crate) const fn ulps(ulps: f64) -> Self {
        Self {
            ulps,
            absolute: 0.0,
        }
    }

    pub(crate) const fn absolute(absolute: f64) -> Self {
        Self {
            ulps: 0.0,
            absolute,
        }
    }
}

/// The expected result of a form.
pub(crate) enum Expected {
    /// Exact bits.
    Bits(Box<dyn Fn(Sources) -> u64>),
    /// A number near this value; for packed numbers, the values of the lower and the upper number.
    Near {
        format: Format,
        value: Box<dyn Fn(Sources) -> Vec<f64>>,
        bound: Bound,
        flushes: bool,
    },
}

/// A form of an instruction.
pub(crate) struct Form {
    /// The unique name: the instruction as written, and a suffix if several forms have that
    /// spelling.
    pub(crate) name: String,
    /// PTX with `$d` for the result and `$a` to `$e` for the sources.
    pub(crate) code: String,
    pub(crate) result: Operand,
    pub(crate) sources: Vec<Operand>,
    pub(crate) expected: Expected,
    /// The minimum compute capability.
    pub(crate) architecture: u32,
}

impl Form {
    /// Creates a form whose operands are its sources.
    pub(crate) fn new<const N: usize>(
        name: impl Into<String>,
        result: Operand,
        sources: [Operand; N],
        expected: impl Fn(Sources) -> u64 + 'static,
    ) -> Self {
        Self::expecting(
            name.into(),
            result,
            &sources,
            Expected::Bits(Box::new(expected)),
        )
    }

    /// Creates a form that approximates a function of one number, or of each of two packed numbers.
    pub(crate) fn near(
        name: impl Into<String>,
        format: Format,
        pairs: bool,
        bound: Bound,
        value: impl Fn(f64) -> f64 + 'static,
    ) -> Self {
        let name = name.into();
        let flushes = name.contains(".ftz");
        let operand = if pairs {
            Operand::Pair(format)
        } else {
            Operand::Float(format)
        };
        let of_bits = move |bits: u64| {
            let bits = bits & (format.sign() | (format.sign() - 1));
            // bf16 has the exponent range of f32, so the same magnitudes are flushed.
            value(format.value(if flushes { format.flush(bits) } else { bits }))
        };
        let expected = Expected::Near {
            format,
            value: Box::new(move |sources: Sources| {
                let upper = pairs.then(|| of_bits(sources[0] >> format.width));
                [of_bits(sources[0])].into_iter().chain(upper).collect()
            }),
            bound,
            flushes,
        };
        Self::expecting(name, operand, &[operand], expected)
    }

    /// Creates a form whose result is one number near the value of a function of all sources.
    pub(crate) fn near_value<const N: usize>(
        name: impl Into<String>,
        format: Format,
        sources: [Operand; N],
        bound: Bound,
        value: impl Fn(Sources) -> Vec<f64> + 'static,
    ) -> Self {
        let name = name.into();
        let expected = Expected::Near {
            format,
            value: Box::new(value),
            bound,
            flushes: name.contains(".ftz"),
        };
        Self::expecting(name, Operand::Float(format), &sources, expected)
    }

    fn expecting(name: String, result: Operand, sources: &[Operand], expected: Expected) -> Self {
        let operands: String = ["$a", "$b", "$c", "$e"][..sources.len()]
            .iter()
            .map(|suffix| format!(", {suffix}"))
            .collect();
        let code = format!("{name} $d{operands};");
        Self {
            name,
            code,
            result,
            sources: sources.to_vec(),
            expected,
            architecture: 75,
        }
    }

    /// Replaces the code generated from the name and its operands.
    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Sets the minimum compute capability.
    pub(crate) fn needs(mut self, architecture: u32) -> Self {
        self.architecture = architecture;
        self
    }

    /// Returns the result with every NaN that PTX leaves unspecified replaced by one NaN: NaNs of
    /// f64, and NaNs from conversions.
    pub(crate) fn canonical(&self, bits: u64) -> u64 {
        let is_free = |format: Format| format == F64 || self.name.starts_with("cvt.");
        match self.result {
            Operand::Float(format) if is_free(format) && format.is_nan(bits) => {
                format.infinity() | 1
            }
            _ => bits,
        }
    }

    /// Returns a description of the expected result if `found` differs from it.
    pub(crate) fn judge(&self, sources: Sources, found: u64) -> Option<String> {
        match &self.expected {
            Expected::Bits(expected) => {
                let expected = expected(sources);
                (self.canonical(expected) != self.canonical(found))
                    .then(|| format!("{expected:#x}"))
            }
            Expected::Near {
                format,
                value,
                bound,
                flushes,
            } => {
                let values = value(sources);
                let near = values.iter().enumerate().all(|(index, value)| {
                    let shift = index as u32 * format.width;
                    let bits = found >> shift & (format.sign() | (format.sign() - 1));
                    is_near(*format, *value, bits, *bound, *flushes)
                });
                (!near).then(|| format!("near {values:?}"))
            }
        }
    }
}

/// Returns `true` if `found` is near a value.
pub(crate) fn is_near(format: Format, value: f64, found: u64, bound: Bound, flushes: bool) -> bool {
    let number = format.value(found);
    if value.is_nan() {
        return found == format.nan(&[]) || format == F64 && number.is_nan();
    }
    if number == value {
        return true;
    }
    let normal = f64::from(format.least + format.precision as i32 - 1).exp2();
    if flushes && value.abs() < normal && number == 0.0 {
        return true;
    }
    let largest = format.value(format.infinity() - 1);
    // The logarithm of a subnormal double would be wrong, but no value is subnormal.
    let exponent =
        (value.abs().log2().floor() as i32).clamp(format.least + format.precision as i32 - 1, 1023);
    let ulp = f64::from(exponent - (format.precision as i32 - 1)).exp2();
    let room = bound.ulps * ulp + bound.absolute;
    if number.is_infinite() {
        return number.signum() == value.signum() && value.abs() + room >= largest;
    }
    (number - value).abs() <= room
}
