//! The types of elements, which are computed with as `f64`.

use bytemuck::Pod;
use curium_sys::cublas::cudaDataType_t;
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

use super::{Result, UNSUPPORTED};

/// A type of elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Element {
    F64,
    F32,
    F16,
    Bf16,
    F8E4M3,
    F8E5M2,
    I8,
    I32,
}

impl Element {
    pub(super) fn from_raw(raw: cudaDataType_t) -> Result<Self> {
        match raw {
            cudaDataType_t::CUDA_R_64F => Ok(Self::F64),
            cudaDataType_t::CUDA_R_32F => Ok(Self::F32),
            cudaDataType_t::CUDA_R_16F => Ok(Self::F16),
            cudaDataType_t::CUDA_R_16BF => Ok(Self::Bf16),
            cudaDataType_t::CUDA_R_8F_E4M3 => Ok(Self::F8E4M3),
            cudaDataType_t::CUDA_R_8F_E5M2 => Ok(Self::F8E5M2),
            cudaDataType_t::CUDA_R_8I => Ok(Self::I8),
            cudaDataType_t::CUDA_R_32I => Ok(Self::I32),
            _ => Err(UNSUPPORTED),
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::I8 => 1,
        }
    }

    pub(super) fn is_fp8(self) -> bool {
        matches!(self, Self::F8E4M3 | Self::F8E5M2)
    }

    /// Converts the bytes of elements.
    pub(super) fn read(self, bytes: &[u8]) -> Vec<f64> {
        match self {
            Self::F64 => map(bytes, |value: f64| value),
            Self::F32 => map(bytes, |value: f32| value.into()),
            Self::F16 => map(bytes, f16::to_f64),
            Self::Bf16 => map(bytes, bf16::to_f64),
            Self::F8E4M3 => map(bytes, |value: F8E4M3| value.to_f64()),
            Self::F8E5M2 => map(bytes, |value: F8E5M2| value.to_f64()),
            Self::I8 => map(bytes, |value: i8| value.into()),
            Self::I32 => map(bytes, |value: i32| value.into()),
        }
    }

    /// Rounds numbers to elements, and returns their bytes. Types of 8 bits saturate.
    pub(super) fn write(self, values: &[f64]) -> Vec<u8> {
        match self {
            Self::F64 => bytes(values, |value| value),
            Self::F32 => bytes(values, |value| value as f32),
            // As on hardware, results are those of f32, rounded again.
            Self::F16 => bytes(values, |value| f16::from_f32(value as f32)),
            Self::Bf16 => bytes(values, |value| bf16::from_f32(value as f32)),
            Self::F8E4M3 => bytes(values, |value| F8E4M3::from_f32(value as f32)),
            Self::F8E5M2 => bytes(values, |value| F8E5M2::from_f32(value as f32)),
            Self::I8 => bytes(values, |value| value.round_ties_even() as i8),
            Self::I32 => bytes(values, |value| value as i32),
        }
    }
}

fn map<T: Pod>(bytes: &[u8], convert: impl Fn(T) -> f64) -> Vec<f64> {
    bytemuck::pod_collect_to_vec::<u8, T>(bytes)
        .into_iter()
        .map(convert)
        .collect()
}

fn bytes<T: Pod>(values: &[f64], convert: impl Fn(f64) -> T) -> Vec<u8> {
    let elements: Vec<T> = values.iter().map(|value| convert(*value)).collect();
    bytemuck::cast_slice(&elements).to_vec()
}
