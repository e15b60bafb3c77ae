//! A tensor as it lies in memory, and how it is fetched.

use std::ffi::c_void;

use curium_driver::DevicePointer;
use curium_driver::sys::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle,
};

/// The most dimensions.
pub(super) const MAX_RANK: usize = 5;

/// A tensor as it lies in device memory, and how it is fetched to shared memory. The innermost dimension comes first: it has no
/// stride, since its elements lie side by side.
///
/// What the accelerator wants, and every [`TensorMap`](super::TensorMap) checks:
/// - 1 to 5 dimensions, 3 or more if the layout is interleaved;
/// - an address that is a multiple of 16, or of 32 for [`TensorInterleave::Bytes32`] and packed types of 16 bytes;
/// - extents of 1 to 2³² elements, the innermost a multiple of 128 or 2 for packed types;
/// - strides that are multiples of 16 (or 32, as for the address) below 2⁴⁰ bytes;
/// - steps of 1 to 8;
/// - [`TensorSwizzle::Bytes32`] with [`TensorInterleave::Bytes32`];
/// - [`TensorFill::Nan`] only for types of floating-point numbers.
#[derive(Clone, Copy, Debug)]
pub struct TensorLayout {
    pub(super) data_type: TensorDataType,
    pub(super) address: u64,
    extents: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
    steps: [u32; MAX_RANK],
    /// May be more than [`MAX_RANK`], which is refused when a map is made.
    rank: usize,
    /// The numbers of strides and steps that were given.
    pub(super) given: [Option<usize>; 2],
    pub(super) interleave: TensorInterleave,
    pub(super) swizzle: TensorSwizzle,
    pub(super) l2_promotion: TensorL2Promotion,
    pub(super) fill: TensorFill,
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorDataType {
    /// Unsigned integers of 8 bits, or any bytes.
    Uint8,
    /// Unsigned integers of 16 bits.
    Uint16,
    /// Unsigned integers of 32 bits.
    Uint32,
    /// Signed integers of 32 bits.
    Int32,
    /// Unsigned integers of 64 bits.
    Uint64,
    /// Signed integers of 64 bits.
    Int64,
    /// Floating-point numbers of 16 bits.
    Float16,
    /// Floating-point numbers of 32 bits.
    Float32,
    /// Floating-point numbers of 64 bits.
    Float64,
    /// Floating-point numbers of 16 bits with the exponent of 32.
    Bfloat16,
    /// Floating-point numbers of 32 bits whose subnormals become zero.
    Float32FlushToZero,
    /// Floating-point numbers of 32 bits whose significands are rounded to 10 bits.
    TensorFloat32,
    /// As [`TensorDataType::TensorFloat32`], and subnormals become zero.
    TensorFloat32FlushToZero,
    /// Sixteen numbers of 4 bits in 8 bytes. Needs a driver for CUDA 12.8.
    Packed4Align8,
    /// Sixteen numbers of 4 bits in 8 bytes, which go to 16 bytes of shared memory. Needs a driver for CUDA 12.8.
    Packed4Align16,
    /// Sixteen numbers of 6 bits in 12 bytes, which go to 16 bytes of shared memory. Needs a driver for CUDA 12.8.
    Packed6Align16,
}

/// How the channels of images lie in memory.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorInterleave {
    /// Side by side.
    #[default]
    None,
    /// In slices of 16 bytes.
    Bytes16,
    /// In slices of 32 bytes.
    Bytes32,
}

/// How rows are shuffled in shared memory, so that columns are read without conflicts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorSwizzle {
    /// Not at all.
    #[default]
    None,
    /// In spans of 32 bytes.
    Bytes32,
    /// In spans of 64 bytes.
    Bytes64,
    /// In spans of 128 bytes.
    Bytes128,
    /// In spans of 128 bytes, by chunks of 32 bytes. Needs a driver for CUDA 12.8.
    Bytes128Atom32,
    /// As [`TensorSwizzle::Bytes128Atom32`], with halves of 16 bytes swapped in every other row. Needs a driver for CUDA 12.8.
    Bytes128Atom32Flip8,
    /// In spans of 128 bytes, by chunks of 64 bytes. Needs a driver for CUDA 12.8.
    Bytes128Atom64,
}

/// How much of memory a miss of the L2 cache fetches at least.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorL2Promotion {
    /// What is asked for.
    #[default]
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// What elements outside of the tensor are.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorFill {
    /// Zero.
    #[default]
    Zero,
    /// A special NaN, which makes a fused multiply-add zero.
    Nan,
}

impl TensorLayout {
    /// A tensor at `pointer` of so many elements in each dimension, the innermost first, without gaps.
    #[must_use]
    #[inline]
    pub fn new<T>(data_type: TensorDataType, pointer: DevicePointer<T>, extents: &[u64]) -> Self {
        let mut layout = Self {
            data_type,
            address: pointer.as_raw(),
            extents: [1; MAX_RANK],
            strides: [0; MAX_RANK],
            steps: [1; MAX_RANK],
            rank: extents.len(),
            given: [None; 2],
            interleave: TensorInterleave::None,
            swizzle: TensorSwizzle::None,
            l2_promotion: TensorL2Promotion::None,
            fill: TensorFill::Zero,
        };
        layout.extents.iter_mut().zip(extents).for_each(|(to, from)| *to = *from);
        let mut stride = extents.first().map_or(0, |width| width.saturating_mul(data_type.bits()) / 8);
        for (to, extent) in layout.strides.iter_mut().zip(layout.extents.iter().skip(1)) {
            *to = stride;
            stride = stride.saturating_mul(*extent);
        }
        layout
    }

    /// With so many bytes from one index to the next, for each dimension but the innermost.
    #[must_use]
    #[inline]
    pub fn with_strides(mut self, strides: &[u64]) -> Self {
        self.given[0] = Some(strides.len());
        self.strides.iter_mut().zip(strides).for_each(|(to, from)| *to = *from);
        self
    }

    /// That takes only every so many-th element of each dimension. A layout that is not interleaved ignores the step of the innermost.
    #[must_use]
    #[inline]
    pub fn with_element_strides(mut self, steps: &[u32]) -> Self {
        self.given[1] = Some(steps.len());
        self.steps.iter_mut().zip(steps).for_each(|(to, from)| *to = *from);
        self
    }

    /// With channels in slices.
    #[must_use]
    #[inline]
    pub const fn with_interleave(mut self, interleave: TensorInterleave) -> Self {
        self.interleave = interleave;
        self
    }

    /// That is shuffled in shared memory.
    #[must_use]
    #[inline]
    pub const fn with_swizzle(mut self, swizzle: TensorSwizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// Whose misses fetch more.
    #[must_use]
    #[inline]
    pub const fn with_l2_promotion(mut self, promotion: TensorL2Promotion) -> Self {
        self.l2_promotion = promotion;
        self
    }

    /// With this outside of the tensor.
    #[must_use]
    #[inline]
    pub const fn with_fill(mut self, fill: TensorFill) -> Self {
        self.fill = fill;
        self
    }

    #[inline]
    pub(super) fn rank(&self) -> u32 {
        u32::try_from(self.rank).unwrap_or(u32::MAX)
    }

    /// The elements of each dimension.
    #[inline]
    pub(super) fn extents(&self) -> &[u64] {
        &self.extents[..self.rank.min(MAX_RANK)]
    }

    /// The strides of all dimensions but the innermost.
    #[inline]
    pub(super) fn strides(&self) -> &[u64] {
        &self.strides[..self.rank.clamp(1, MAX_RANK) - 1]
    }

    /// The step of each dimension.
    #[inline]
    pub(super) fn steps(&self) -> &[u32] {
        &self.steps[..self.rank.min(MAX_RANK)]
    }

    /// The bytes from the first element to the last, if the layout is not interleaved. Extents and strides are checked.
    #[inline]
    pub(super) fn span(&self) -> u128 {
        let width = (u128::from(self.extents[0]) * u128::from(self.data_type.bits())).div_ceil(8);
        let outer = self.extents().iter().skip(1).zip(self.strides());
        width + outer.map(|(extent, stride)| u128::from(extent - 1) * u128::from(*stride)).sum::<u128>()
    }

    /// The bytes from the first element to the end of what the accelerator writes with the last: rows are written in 16 bytes at once.
    #[inline]
    pub(super) fn written_span(&self) -> u128 {
        self.span().next_multiple_of(16)
    }

    #[inline]
    pub(super) fn raw_address(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.address as usize)
    }
}

impl TensorDataType {
    /// The bits of an element.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        match self {
            Self::Packed4Align8 | Self::Packed4Align16 => 4,
            Self::Packed6Align16 => 6,
            Self::Uint8 => 8,
            Self::Uint16 | Self::Float16 | Self::Bfloat16 => 16,
            Self::Uint64 | Self::Int64 | Self::Float64 => 64,
            Self::Uint32
            | Self::Int32
            | Self::Float32
            | Self::Float32FlushToZero
            | Self::TensorFloat32
            | Self::TensorFloat32FlushToZero => 32,
        }
    }

    /// Whether the elements are floating-point numbers.
    #[must_use]
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::Float16
                | Self::Float32
                | Self::Float64
                | Self::Bfloat16
                | Self::Float32FlushToZero
                | Self::TensorFloat32
                | Self::TensorFloat32FlushToZero
        )
    }

    /// Whether elements are packed in groups that take 16 bytes of shared memory.
    #[inline]
    pub(super) const fn is_padded(self) -> bool {
        matches!(self, Self::Packed4Align16 | Self::Packed6Align16)
    }

    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapDataType {
        // Declared in the order of C.
        CUtensorMapDataType(self as u32)
    }
}

impl TensorInterleave {
    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapInterleave {
        // Declared in the order of C.
        CUtensorMapInterleave(self as u32)
    }
}

impl TensorSwizzle {
    /// The most bytes that the innermost dimension of a box may have.
    #[inline]
    pub(super) const fn span(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128 | Self::Bytes128Atom32 | Self::Bytes128Atom32Flip8 | Self::Bytes128Atom64 => Some(128),
        }
    }

    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapSwizzle {
        // Declared in the order of C.
        CUtensorMapSwizzle(self as u32)
    }
}

impl TensorL2Promotion {
    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapL2promotion {
        // Declared in the order of C.
        CUtensorMapL2promotion(self as u32)
    }
}

impl TensorFill {
    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapFloatOOBfill {
        // Declared in the order of C.
        CUtensorMapFloatOOBfill(self as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerators_are_those_of_c() {
        use TensorDataType as Type;
        assert_eq!(Type::Float16.to_raw(), CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
        assert_eq!(Type::Bfloat16.to_raw(), CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
        assert_eq!(Type::Packed6Align16.to_raw(), CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
        let swizzle = TensorSwizzle::Bytes128Atom64.to_raw();
        assert_eq!(swizzle, CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
        assert_eq!(TensorInterleave::Bytes32.to_raw(), CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B);
        assert_eq!(TensorL2Promotion::Bytes256.to_raw(), CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
    }

    #[test]
    fn tensor_without_strides_is_tight() {
        let pointer = DevicePointer::<u8>::from_raw(0);
        let layout = TensorLayout::new(TensorDataType::Float16, pointer, &[64, 10, 3]);
        assert_eq!(
            (layout.extents(), layout.strides(), layout.steps()),
            (&[64, 10, 3][..], &[128, 1280][..], &[1; 3][..])
        );
        assert_eq!(layout.span(), 64 * 10 * 3 * 2);
        assert_eq!(layout.with_strides(&[256, 4096]).span(), 2 * 4096 + 9 * 256 + 128);
        let largest =
            TensorLayout::new(TensorDataType::Float64, pointer, &[1 << 32; 5]).with_strides(&[(1 << 40) - 16; 4]);
        assert_eq!(largest.span(), (1 << 35) + 4 * ((1 << 32) - 1) * ((1 << 40) - 16));
        let packed = TensorLayout::new(TensorDataType::Packed6Align16, pointer, &[128, 2]);
        assert_eq!((packed.strides(), packed.span()), (&[96][..], 192));
    }
}
