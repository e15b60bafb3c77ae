//! The arithmetic of reductions.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use curium_sys::nccl::{ncclDataType_t, ncclRedOp_t};
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

/// The operator of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Plain(ncclRedOp_t),
    /// A sum of elements that are multiplied by a factor first.
    Scaled(Factor),
}

/// A factor, which has the type of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    /// The bytes of the number.
    Value([u8; 8]),
    /// The address of the number in device memory, which is read when an operation runs.
    Address(u64),
}

impl Operator {
    /// Returns the address of the factor in device memory, if it is there.
    pub(super) fn factor_address(self) -> Option<u64> {
        match self {
            Self::Scaled(Factor::Address(address)) => Some(address),
            _ => None,
        }
    }

    /// Returns `true` if another rank may use `other`: factors may differ.
    pub(super) fn matches(self, other: Self) -> bool {
        match (self, other) {
            (Self::Scaled(_), Self::Scaled(_)) => true,
            (first, second) => first == second,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(operator) => write!(formatter, "{operator:?}"),
            Self::Scaled(_) => formatter.write_str("a pre-multiplied sum"),
        }
    }
}

/// A number that is reduced. Sums of floats with fewer bits are computed with 32 bits.
trait Number: Pod {
    type Wide: Copy + PartialOrd;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(first: Self::Wide, second: Self::Wide) -> Self::Wide;
    fn multiply(first: Self::Wide, second: Self::Wide) -> Self::Wide;
    fn divide(sum: Self::Wide, ranks: usize) -> Self::Wide;
}

macro_rules! integer {
    ($($ty:ty),*) => {
        $(impl Number for $ty {
            type Wide = Self;
            fn widen(self) -> Self { self }
            fn narrow(wide: Self) -> Self { wide }
            fn add(first: Self, second: Self) -> Self { first.wrapping_add(second) }
            fn multiply(first: Self, second: Self) -> Self { first.wrapping_mul(second) }
            fn divide(sum: Self, ranks: usize) -> Self { Self::try_from(ranks).map_or(0, |ranks| sum / ranks) }
        })*
    };
}

macro_rules! float {
    ($($ty:ty: $wide:ty, $widen:expr, $narrow:expr;)*) => {
        $(impl Number for $ty {
            type Wide = $wide;
            fn widen(self) -> $wide { $widen(self) }
            fn narrow(wide: $wide) -> Self { $narrow(wide) }
            fn add(first: $wide, second: $wide) -> $wide { first + second }
            fn multiply(first: $wide, second: $wide) -> $wide { first * second }
            fn divide(sum: $wide, ranks: usize) -> $wide { sum / ranks as $wide }
        })*
    };
}

integer!(i8, u8, i32, u32, i64, u64);
float! {
    f32: f32, |value| value, |value| value;
    f64: f64, |value| value, |value| value;
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
    F8E4M3: f32, |value: F8E4M3| value.to_f32(), F8E4M3::from_f32;
    F8E5M2: f32, |value: F8E5M2| value.to_f32(), F8E5M2::from_f32;
}

/// Calls a generic function with the type of the elements.
macro_rules! with_type {
    ($element:expr, $function:ident($($argument:expr),*)) => {
        match $element {
            ncclDataType_t::ncclInt8 => $function::<i8>($($argument),*),
            ncclDataType_t::ncclUint8 => $function::<u8>($($argument),*),
            ncclDataType_t::ncclInt32 => $function::<i32>($($argument),*),
            ncclDataType_t::ncclUint32 => $function::<u32>($($argument),*),
            ncclDataType_t::ncclInt64 => $function::<i64>($($argument),*),
            ncclDataType_t::ncclUint64 => $function::<u64>($($argument),*),
            ncclDataType_t::ncclFloat16 => $function::<f16>($($argument),*),
            ncclDataType_t::ncclFloat64 => $function::<f64>($($argument),*),
            ncclDataType_t::ncclBfloat16 => $function::<bf16>($($argument),*),
            ncclDataType_t::ncclFloat8e4m3 => $function::<F8E4M3>($($argument),*),
            ncclDataType_t::ncclFloat8e5m2 => $function::<F8E5M2>($($argument),*),
            _ => $function::<f32>($($argument),*),
        }
    };
}

/// Returns the size of an element; `None` for types that are not simulated.
pub(super) fn width(element: ncclDataType_t) -> Option<usize> {
    match element {
        ncclDataType_t::ncclInt8 | ncclDataType_t::ncclUint8 => Some(1),
        ncclDataType_t::ncclFloat8e4m3 | ncclDataType_t::ncclFloat8e5m2 => Some(1),
        ncclDataType_t::ncclFloat16 | ncclDataType_t::ncclBfloat16 => Some(2),
        ncclDataType_t::ncclInt32 | ncclDataType_t::ncclUint32 | ncclDataType_t::ncclFloat32 => {
            Some(4)
        }
        ncclDataType_t::ncclInt64 | ncclDataType_t::ncclUint64 | ncclDataType_t::ncclFloat64 => {
            Some(8)
        }
        _ => None,
    }
}

/// Returns the elements multiplied by the factor of the operator; `read` is the factor in device
/// memory, if it is there.
pub(super) fn scaled(
    operator: Operator,
    element: ncclDataType_t,
    source: &[u8],
    read: &[u8],
) -> Vec<u8> {
    match operator {
        Operator::Plain(_) => source.to_vec(),
        Operator::Scaled(Factor::Value(factor)) => with_type!(element, multiplied(&factor, source)),
        Operator::Scaled(Factor::Address(_)) => with_type!(element, multiplied(read, source)),
    }
}

fn multiplied<T: Number>(factor: &[u8], source: &[u8]) -> Vec<u8> {
    let factor = bytemuck::pod_read_unaligned::<T>(&factor[..size_of::<T>()]).widen();
    let elements = bytemuck::pod_collect_to_vec::<u8, T>(source).into_iter();
    let scaled: Vec<T> = elements
        .map(|element| T::narrow(T::multiply(factor, element.widen())))
        .collect();
    bytemuck::cast_slice(&scaled).to_vec()
}

/// Reduces the elements of all ranks, in the order of the ranks.
pub(super) fn reduced(operator: Operator, element: ncclDataType_t, parts: &[Arc<[u8]>]) -> Vec<u8> {
    let operator = match operator {
        Operator::Plain(operator) => operator,
        Operator::Scaled(_) => ncclRedOp_t::ncclSum,
    };
    with_type!(element, combined(operator, parts))
}

fn combined<T: Number>(operator: ncclRedOp_t, parts: &[Arc<[u8]>]) -> Vec<u8> {
    let ranks = parts.len();
    let mut elements = parts
        .iter()
        .map(|part| bytemuck::pod_collect_to_vec::<u8, T>(part));
    let first = elements.next().unwrap_or_default();
    let mut total: Vec<T::Wide> = first.into_iter().map(T::widen).collect();
    for part in elements {
        for (total, element) in total.iter_mut().zip(part) {
            *total = pair::<T>(operator, *total, element.widen());
        }
    }
    let is_average = operator == ncclRedOp_t::ncclAvg;
    let result: Vec<T> = total
        .into_iter()
        .map(|total| {
            T::narrow(if is_average {
                T::divide(total, ranks)
            } else {
                total
            })
        })
        .collect();
    bytemuck::cast_slice(&result).to_vec()
}

fn pair<T: Number>(operator: ncclRedOp_t, first: T::Wide, second: T::Wide) -> T::Wide {
    match operator {
        ncclRedOp_t::ncclProd => T::multiply(first, second),
        ncclRedOp_t::ncclMax => {
            if second > first {
                second
            } else {
                first
            }
        }
        ncclRedOp_t::ncclMin => {
            if second < first {
                second
            } else {
                first
            }
        }
        _ => T::add(first, second),
    }
}
