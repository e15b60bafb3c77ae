//! Numbers, their types, and what operators do.

/// The type of a value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Type {
    Bool,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Bool(bool),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
}

/// An operator with one operand, whose result has the same type unless stated otherwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unary {
    Neg,
    Not,
    CountOnes,
    LeadingZeros,
    TrailingZeros,
    ReverseBits,
    SwapBytes,
    Abs,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    RoundTiesEven,
    /// The bits as `u64`. Those of all NaNs are equal.
    Digest,
}

/// An operator with two operands of one type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Min,
    Max,
    Shl,
    Shr,
    RotateLeft,
    SaturatingAdd,
    SaturatingSub,
    /// The second operand if it is not zero, otherwise the first: associative, and not commutative.
    Last,
    /// The first operand if it is not zero, otherwise the second: associative, and not commutative.
    First,
    Equal,
    NotEqual,
    Less,
    LessEqual,
}

impl Type {
    pub(crate) const NUMBERS: [Self; 6] = [
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F32,
        Self::F64,
    ];
    pub(crate) const INTEGERS: [Self; 4] = [Self::U32, Self::I32, Self::U64, Self::I64];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The size in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// Applies an expression to the integer in a value, and returns a value of the same type.
macro_rules! for_integer {
    ($value:expr, $x:ident => $result:expr, else $otherwise:expr) => {
        match $value {
            Value::U32($x) => Value::U32($result),
            Value::I32($x) => Value::I32($result),
            Value::U64($x) => Value::U64($result),
            Value::I64($x) => Value::I64($result),
            _ => $otherwise,
        }
    };
}

/// Applies an expression to the float in a value, and returns a value of the same type.
macro_rules! for_float {
    ($value:expr, $x:ident => $result:expr, else $otherwise:expr) => {
        match $value {
            Value::F32($x) => Value::F32($result),
            Value::F64($x) => Value::F64($result),
            _ => $otherwise,
        }
    };
}

/// Casts a number to a type, as `as` does.
macro_rules! cast {
    ($x:expr, $ty:expr) => {
        match $ty {
            Type::Bool => panic!("nothing is cast to bool"),
            Type::U32 => Value::U32($x as u32),
            Type::I32 => Value::I32($x as i32),
            Type::U64 => Value::U64($x as u64),
            Type::I64 => Value::I64($x as i64),
            Type::F32 => Value::F32($x as f32),
            Type::F64 => Value::F64($x as f64),
        }
    };
}

impl Value {
    pub(crate) fn ty(self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::U32(_) => Type::U32,
            Self::I32(_) => Type::I32,
            Self::U64(_) => Type::U64,
            Self::I64(_) => Type::I64,
            Self::F32(_) => Type::F32,
            Self::F64(_) => Type::F64,
        }
    }

    /// Returns the value with these bits.
    pub(crate) fn from_bits(ty: Type, bits: u64) -> Self {
        match ty {
            Type::Bool => Self::Bool(bits & 1 != 0),
            Type::U32 => Self::U32(bits as u32),
            Type::I32 => Self::I32(bits as i32),
            Type::U64 => Self::U64(bits),
            Type::I64 => Self::I64(bits as i64),
            Type::F32 => Self::F32(f32::from_bits(bits as u32)),
            Type::F64 => Self::F64(f64::from_bits(bits)),
        }
    }

    pub(crate) fn bits(self) -> u64 {
        match self {
            Self::Bool(x) => x.into(),
            Self::U32(x) => x.into(),
            Self::I32(x) => x.cast_unsigned().into(),
            Self::U64(x) => x,
            Self::I64(x) => x.cast_unsigned(),
            Self::F32(x) => x.to_bits().into(),
            Self::F64(x) => x.to_bits(),
        }
    }

    /// Returns the bits. All NaNs have the same.
    pub(crate) fn digest(self) -> u64 {
        match self {
            Self::F32(x) if x.is_nan() => 1,
            Self::F64(x) if x.is_nan() => 1,
            _ => self.bits(),
        }
    }

    pub(crate) fn zero(ty: Type) -> Self {
        Self::from_bits(ty, 0)
    }

    pub(crate) fn as_bool(self) -> bool {
        match self {
            Self::Bool(x) => x,
            _ => panic!("{self:?} is no condition"),
        }
    }

    pub(crate) fn as_u32(self) -> u32 {
        match self {
            Self::U32(x) => x,
            _ => panic!("{self:?} is no u32"),
        }
    }

    pub(crate) fn cast(self, ty: Type) -> Self {
        match self {
            Self::Bool(x) => cast!(u32::from(x), ty),
            Self::U32(x) => cast!(x, ty),
            Self::I32(x) => cast!(x, ty),
            Self::U64(x) => cast!(x, ty),
            Self::I64(x) => cast!(x, ty),
            Self::F32(x) => cast!(x, ty),
            Self::F64(x) => cast!(x, ty),
        }
    }

    pub(crate) fn unary(self, operator: Unary) -> Self {
        let undefined = || panic!("{operator:?} of {self:?}");
        match operator {
            Unary::Digest => Self::U64(self.digest()),
            Unary::Neg => {
                for_integer!(self, x => x.wrapping_neg(), else for_float!(self, x => -x, else undefined()))
            }
            Unary::Not => match self {
                Self::Bool(x) => Self::Bool(!x),
                _ => for_integer!(self, x => !x, else undefined()),
            },
            Unary::CountOnes => {
                for_integer!(self, x => x.count_ones() as _, else undefined())
            }
            Unary::LeadingZeros => {
                for_integer!(self, x => x.leading_zeros() as _, else undefined())
            }
            Unary::TrailingZeros => {
                for_integer!(self, x => x.trailing_zeros() as _, else undefined())
            }
            Unary::ReverseBits => for_integer!(self, x => x.reverse_bits(), else undefined()),
            Unary::SwapBytes => for_integer!(self, x => x.swap_bytes(), else undefined()),
            Unary::Abs => for_float!(self, x => x.abs(), else undefined()),
            Unary::Sqrt => for_float!(self, x => x.sqrt(), else undefined()),
            Unary::Floor => for_float!(self, x => x.floor(), else undefined()),
            Unary::Ceil => for_float!(self, x => x.ceil(), else undefined()),
            Unary::Trunc => for_float!(self, x => x.trunc(), else undefined()),
            Unary::RoundTiesEven => for_float!(self, x => x.round_ties_even(), else undefined()),
        }
    }

    pub(crate) fn binary(self, operator: Binary, other: Self) -> Self {
        match (self, other) {
            (Self::U32(a), Self::U32(b)) => integer_u32(operator, a, b),
            (Self::I32(a), Self::I32(b)) => integer_i32(operator, a, b),
            (Self::U64(a), Self::U64(b)) => integer_u64(operator, a, b),
            (Self::I64(a), Self::I64(b)) => integer_i64(operator, a, b),
            (Self::F32(a), Self::F32(b)) => float_f32(operator, a, b),
            (Self::F64(a), Self::F64(b)) => float_f64(operator, a, b),
            (Self::Bool(a), Self::Bool(b)) => Self::Bool(match operator {
                Binary::And => a && b,
                Binary::Or => a || b,
                Binary::Xor | Binary::NotEqual => a != b,
                Binary::Equal => a == b,
                _ => panic!("{operator:?} of conditions"),
            }),
            _ => panic!("{operator:?} of {self:?} and {other:?}"),
        }
    }

    pub(crate) fn mul_add(self, a: Self, b: Self) -> Self {
        match (self, a, b) {
            (Self::F32(x), Self::F32(a), Self::F32(b)) => Self::F32(x.mul_add(a, b)),
            (Self::F64(x), Self::F64(a), Self::F64(b)) => Self::F64(x.mul_add(a, b)),
            _ => panic!("mul_add of {self:?}"),
        }
    }

    /// Returns the value as Rust source, which has its exact bits.
    pub(crate) fn source(self) -> String {
        match self {
            Self::Bool(x) => x.to_string(),
            Self::U32(x) => format!("{x}_u32"),
            Self::I32(x) if x < 0 => format!("({x}_i32)"),
            Self::I32(x) => format!("{x}_i32"),
            Self::U64(x) => format!("{x}_u64"),
            Self::I64(x) if x < 0 => format!("({x}_i64)"),
            Self::I64(x) => format!("{x}_i64"),
            Self::F32(x) if x.is_finite() && x.is_sign_positive() => format!("{x:?}_f32"),
            Self::F32(x) => format!("f32::from_bits({:#x})", x.to_bits()),
            Self::F64(x) if x.is_finite() && x.is_sign_positive() => format!("{x:?}_f64"),
            Self::F64(x) => format!("f64::from_bits({:#x})", x.to_bits()),
        }
    }
}

macro_rules! integer {
    ($name:ident, $ty:ty, $variant:ident) => {
        fn $name(operator: Binary, a: $ty, b: $ty) -> Value {
            Value::$variant(match operator {
                Binary::Add => a.wrapping_add(b),
                Binary::Sub => a.wrapping_sub(b),
                Binary::Mul => a.wrapping_mul(b),
                Binary::Div => a.wrapping_div(b | 1),
                Binary::Rem => a.wrapping_rem(b | 1),
                Binary::And => a & b,
                Binary::Or => a | b,
                Binary::Xor => a ^ b,
                Binary::Min => a.min(b),
                Binary::Max => a.max(b),
                Binary::Shl => a.wrapping_shl(b as u32),
                Binary::Shr => a.wrapping_shr(b as u32),
                Binary::RotateLeft => a.rotate_left(b as u32 % 64),
                Binary::SaturatingAdd => a.saturating_add(b),
                Binary::SaturatingSub => a.saturating_sub(b),
                Binary::Last => {
                    if b != 0 {
                        b
                    } else {
                        a
                    }
                }
                Binary::First => {
                    if a != 0 {
                        a
                    } else {
                        b
                    }
                }
                Binary::Equal => return Value::Bool(a == b),
                Binary::NotEqual => return Value::Bool(a != b),
                Binary::Less => return Value::Bool(a < b),
                Binary::LessEqual => return Value::Bool(a <= b),
            })
        }
    };
}

integer!(integer_u32, u32, U32);
integer!(integer_i32, i32, I32);
integer!(integer_u64, u64, U64);
integer!(integer_i64, i64, I64);

macro_rules! float {
    ($name:ident, $ty:ty, $variant:ident) => {
        fn $name(operator: Binary, a: $ty, b: $ty) -> Value {
            Value::$variant(match operator {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                // The sign of a zero that `min` returns is not specified. The sum with zero is
                // positive.
                Binary::Min => a.min(b) + 0.0,
                Binary::Max => a.max(b) + 0.0,
                Binary::Equal => return Value::Bool(a == b),
                Binary::NotEqual => return Value::Bool(a != b),
                Binary::Less => return Value::Bool(a < b),
                Binary::LessEqual => return Value::Bool(a <= b),
                _ => panic!("{operator:?} of floats"),
            })
        }
    };
}

float!(float_f32, f32, F32);
float!(float_f64, f64, F64);
