//! A form of an instruction: how it is written, what it takes and what it must give.

use crate::reference::real::{BF16, E4M3, E5M2, F16, F32, F64, Format};

/// What an operand is: how many bits, and which values are at its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    B8,
    B16,
    B32,
    B64,
    /// A number of bits to shift or to extract, or a position.
    Count,
    /// 0 or 1.
    Truth,
    Float(Format),
    /// Two numbers in one register.
    Pair(Format),
    /// Two integers of 16 bits in one register.
    Halves,
    /// Four integers of 8 bits.
    Bytes,
}

impl Operand {
    /// Bits in memory.
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

    /// Bits of the register.
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

/// How far a result may be from the exact value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Units in the last place of the value.
    pub(crate) ulps: f64,
    pub(crate) absolute: f64,
}

impl Bound {
    pub(crate) const fn ulps(ulps: f64) -> Self {
        Self { ulps, absolute: 0.0 }
    }

    pub(crate) const fn absolute(absolute: f64) -> Self {
        Self { ulps: 0.0, absolute }
    }
}

/// What a form must give.
pub(crate) enum Expected {
    /// These bits.
    Bits(Box<dyn Fn(Sources) -> u64>),
    /// A number near this one; where there is a second number in a register, the value of the lower and of the upper.
    Near { format: Format, value: Box<dyn Fn(Sources) -> Vec<f64>>, bound: Bound, flushes: bool },
}

/// A form of an instruction.
pub(crate) struct Form {
    /// Unique: the instruction as it is written, and what tells it from others with that spelling.
    pub(crate) name: String,
    /// PTX with `$d` for the result and `$a` to `$e` for the sources.
    pub(crate) code: String,
    pub(crate) result: Operand,
    pub(crate) sources: Vec<Operand>,
    pub(crate) expected: Expected,
    /// The least compute capability that has it.
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
        Self::expecting(name.into(), result, &sources, Expected::Bits(Box::new(expected)))
    }

    /// Creates a form that approximates a function of one number, or of each of two in a register.
    pub(crate) fn near(
        name: impl Into<String>,
        format: Format,
        pairs: bool,
        bound: Bound,
        value: impl Fn(f64) -> f64 + 'static,
    ) -> Self {
        let name = name.into();
        let flushes = name.contains(".ftz");
        let operand = if pairs { Operand::Pair(format) } else { Operand::Float(format) };
        let of_bits = move |bits: u64| {
            let bits = bits & (format.sign() | (format.sign() - 1));
            // bf16 has the exponents of f32, and flushes what f32 would: nothing but what is smaller.
            value(format.value(if flushes { format.flush(bits) } else { bits }))
        };
        let values = move |sources: Sources| {
            let upper = pairs.then(|| of_bits(sources[0] >> format.width));
            [of_bits(sources[0])].into_iter().chain(upper).collect()
        };
        let expected = Expected::Near { format, value: Box::new(values), bound, flushes };
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
        let expected = Expected::Near { format, value: Box::new(value), bound, flushes: name.contains(".ftz") };
        Self::expecting(name, Operand::Float(format), &sources, expected)
    }

    fn expecting(name: String, result: Operand, sources: &[Operand], expected: Expected) -> Self {
        let operands: String = ["$a", "$b", "$c", "$e"][..sources.len()].iter().map(|it| format!(", {it}")).collect();
        let code = format!("{name} $d{operands};");
        Self { name, code, result, sources: sources.to_vec(), expected, architecture: 75 }
    }

    /// Returns what runs in place of the name with its operands. The name gets what the code is not named by.
    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Returns the least compute capability that has it.
    pub(crate) fn needs(mut self, architecture: u32) -> Self {
        self.architecture = architecture;
        self
    }

    /// Returns the result, whose bits are those of one NaN if it is any of those between which PTX leaves the choice: NaNs of f64, and what
    /// conversions make of NaNs.
    pub(crate) fn canonical(&self, bits: u64) -> u64 {
        let is_free = |format: Format| format == F64 || self.name.starts_with("cvt.");
        match self.result {
            Operand::Float(format) if is_free(format) && format.is_nan(bits) => format.infinity() | 1,
            _ => bits,
        }
    }

    /// Returns what is wrong with a result, if anything.
    pub(crate) fn judge(&self, sources: Sources, found: u64) -> Option<String> {
        match &self.expected {
            Expected::Bits(expected) => {
                let expected = expected(sources);
                (self.canonical(expected) != self.canonical(found)).then(|| format!("{expected:#x}"))
            }
            Expected::Near { format, value, bound, flushes } => {
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
    // The logarithm of a subnormal double would be wrong; none of the values is one.
    let exponent = (value.abs().log2().floor() as i32).clamp(format.least + format.precision as i32 - 1, 1023);
    let ulp = f64::from(exponent - (format.precision as i32 - 1)).exp2();
    let room = bound.ulps * ulp + bound.absolute;
    if number.is_infinite() {
        return number.signum() == value.signum() && value.abs() + room >= largest;
    }
    (number - value).abs() <= room
}
