//! Tensor layouts.

use std::ffi::c_void;

use curium_driver::DevicePointer;
use curium_driver::sys::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

/// The maximum number of dimensions.
pub(super) const MAX_RANK: usize = 5;

/// The layout of a tensor in device memory, and how it is copied to shared memory. The innermost
/// dimension comes first; its elements are contiguous, so it has no stride.
///
/// TMA requires the following, which every [`TensorMap`](super::TensorMap) checks:
/// - 1 to 5 dimensions, 3 or more if the layout is interleaved;
/// - an address that is a multiple of 16, or of 32 for [`TensorInterleave::Bytes32`] and for
///   16-byte packed types;
/// - extents of 1 to 2³² elements, the innermost a multiple of 128 for 16-byte packed types and of
///   2 for other packed types;
/// - strides that are multiples of 16 (or 32, as for the address) below 2⁴⁰ bytes;
/// - element strides of 1 to 8;
/// - [`TensorSwizzle::Bytes32`] with [`TensorInterleave::Bytes32`];
/// - [`TensorFill::Nan`] for floating-point types only.
#[derive(Clone, Copy, Debug)]
pub struct TensorLayout {
    pub(super) data_type: TensorDataType,
    pub(super) address: u64,
    extents: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
    steps: [u32; MAX_RANK],
    /// May exceed [`MAX_RANK`], which is reported when a map is created.
    rank: usize,
    /// The number of strides and of element strides, if set.
    pub(super) given: [Option<usize>; 2],
    pub(super) interleave: TensorInterleave,
    pub(super) swizzle: TensorSwizzle,
    pub(super) l2_promotion: TensorL2Promotion,
    pub(super) fill: TensorFill,
}

/// The data type of a tensor's elements.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorDataType {
    /// 8-bit unsigned integers, or bytes.
    Uint8,
    /// 16-bit unsigned integers.
    Uint16,
    /// 32-bit unsigned integers.
    Uint32,
    /// 32-bit signed integers.
    Int32,
    /// 64-bit unsigned integers.
    Uint64,
    /// 64-bit signed integers.
    Int64,
    /// 16-bit floating-point numbers.
    Float16,
    /// 32-bit floating-point numbers.
    Float32,
    /// 64-bit floating-point numbers.
    Float64,
    /// bfloat16 numbers.
    Bfloat16,
    /// 32-bit floating-point numbers; subnormals are flushed to zero.
    Float32FlushToZero,
    /// TF32: 32-bit floating-point numbers rounded to a 10-bit mantissa.
    TensorFloat32,
    /// TF32 with subnormals flushed to zero. See [`TensorDataType::TensorFloat32`].
    TensorFloat32FlushToZero,
    /// Sixteen 4-bit numbers in 8 bytes. Requires a driver for CUDA 12.8.
    Packed4Align8,
    /// Sixteen 4-bit numbers in 8 bytes, padded to 16 bytes in shared memory. Requires a driver for
    /// CUDA 12.8.
    Packed4Align16,
    /// Sixteen 6-bit numbers in 12 bytes, padded to 16 bytes in shared memory. Requires a driver
    /// for CUDA 12.8.
    Packed6Align16,
}

/// The interleaving of channels.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorInterleave {
    /// No interleaving.
    #[default]
    None,
    /// Slices of 16 bytes.
    Bytes16,
    /// Slices of 32 bytes.
    Bytes32,
}

/// The shared memory swizzle, which avoids bank conflicts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorSwizzle {
    /// No swizzle.
    #[default]
    None,
    /// Spans of 32 bytes.
    Bytes32,
    /// Spans of 64 bytes.
    Bytes64,
    /// Spans of 128 bytes.
    Bytes128,
    /// Spans of 128 bytes with 32-byte atoms. Requires a driver for CUDA 12.8.
    Bytes128Atom32,
    /// Spans of 128 bytes with 32-byte atoms, with the 16-byte halves swapped in every other row.
    /// Requires a driver for CUDA 12.8.
    Bytes128Atom32Flip8,
    /// Spans of 128 bytes with 64-byte atoms. Requires a driver for CUDA 12.8.
    Bytes128Atom64,
}

/// The L2 promotion: the minimum fetch size of an L2 miss.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorL2Promotion {
    /// No promotion.
    #[default]
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// The value of out-of-bounds elements.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TensorFill {
    /// Zero.
    #[default]
    Zero,
    /// A special NaN, which a fused multiply-add turns into zero.
    Nan,
}

impl TensorLayout {
    /// Creates the layout of a contiguous tensor at `pointer` with `extents` elements in each
    /// dimension, innermost first.
    #[must_use]
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
        layout
            .extents
            .iter_mut()
            .zip(extents)
            .for_each(|(to, from)| *to = *from);
        let mut stride = extents
            .first()
            .map_or(0, |width| width.saturating_mul(data_type.bits()) / 8);
        for (to, extent) in layout.strides.iter_mut().zip(layout.extents.iter().skip(1)) {
            *to = stride;
            stride = stride.saturating_mul(*extent);
        }
        layout
    }

    /// Sets the strides in bytes, for all dimensions except the innermost.
    #[must_use]
    pub fn with_strides(mut self, strides: &[u64]) -> Self {
        self.given[0] = Some(strides.len());
        self.strides
            .iter_mut()
            .zip(strides)
            .for_each(|(to, from)| *to = *from);
        self
    }

    /// Sets the element stride of each dimension: only every n-th element is copied. Layouts
    /// without interleaving ignore the stride of the innermost dimension.
    #[must_use]
    pub fn with_element_strides(mut self, steps: &[u32]) -> Self {
        self.given[1] = Some(steps.len());
        self.steps
            .iter_mut()
            .zip(steps)
            .for_each(|(to, from)| *to = *from);
        self
    }

    /// Sets the interleaving of channels.
    #[must_use]
    pub const fn with_interleave(mut self, interleave: TensorInterleave) -> Self {
        self.interleave = interleave;
        self
    }

    /// Sets the shared memory swizzle.
    #[must_use]
    pub const fn with_swizzle(mut self, swizzle: TensorSwizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// Sets the L2 promotion.
    #[must_use]
    pub const fn with_l2_promotion(mut self, promotion: TensorL2Promotion) -> Self {
        self.l2_promotion = promotion;
        self
    }

    /// Sets the value of out-of-bounds elements.
    #[must_use]
    pub const fn with_fill(mut self, fill: TensorFill) -> Self {
        self.fill = fill;
        self
    }

    pub(super) fn rank(&self) -> u32 {
        u32::try_from(self.rank).unwrap_or(u32::MAX)
    }

    /// Returns the extent of each dimension.
    pub(super) fn extents(&self) -> &[u64] {
        &self.extents[..self.rank.min(MAX_RANK)]
    }

    /// Returns the strides of all dimensions except the innermost.
    pub(super) fn strides(&self) -> &[u64] {
        &self.strides[..self.rank.clamp(1, MAX_RANK) - 1]
    }

    /// Returns the element stride of each dimension.
    pub(super) fn steps(&self) -> &[u32] {
        &self.steps[..self.rank.min(MAX_RANK)]
    }

    /// Returns the number of bytes from the first to the last element of a layout without
    /// interleaving. Extents and strides must have been checked.
    pub(super) fn span(&self) -> u128 {
        let width = (u128::from(self.extents[0]) * u128::from(self.data_type.bits())).div_ceil(8);
        let outer = self.extents().iter().skip(1).zip(self.strides());
        width
            + outer
                .map(|(extent, stride)| u128::from(extent - 1) * u128::from(*stride))
                .sum::<u128>()
    }

    /// Returns the number of bytes from the first element to the end of the last write by TMA: rows
    /// are written in units of 16 bytes.
    pub(super) fn written_span(&self) -> u128 {
        self.span().next_multiple_of(16)
    }

    pub(super) fn raw_address(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.address as usize)
    }
}

impl TensorDataType {
    /// Returns the size of an element in bits.
    #[must_use]
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

    /// Returns `true` for floating-point types.
    #[must_use]
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

    /// Returns `true` for types that are padded to groups of 16 bytes in shared memory.
    pub(super) const fn is_padded(self) -> bool {
        matches!(self, Self::Packed4Align16 | Self::Packed6Align16)
    }

    pub(super) const fn to_raw(self) -> CUtensorMapDataType {
        // Declared in the order of the driver's enum.
        CUtensorMapDataType(self as u32)
    }
}

impl TensorInterleave {
    pub(super) const fn to_raw(self) -> CUtensorMapInterleave {
        // Declared in the order of the driver's enum.
        CUtensorMapInterleave(self as u32)
    }
}

impl TensorSwizzle {
    /// Returns the maximum size of the innermost dimension of a box in bytes.
    pub(super) const fn span(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128
            | Self::Bytes128Atom32
            | Self::Bytes128Atom32Flip8
            | Self::Bytes128Atom64 => Some(128),
        }
    }

    pub(super) const fn to_raw(self) -> CUtensorMapSwizzle {
        // Declared in the order of the driver's enum.
        CUtensorMapSwizzle(self as u32)
    }
}

impl TensorL2Promotion {
    pub(super) const fn to_raw(self) -> CUtensorMapL2promotion {
        // Declared in the order of the driver's enum.
        CUtensorMapL2promotion(self as u32)
    }
}

impl TensorFill {
    pub(super) const fn to_raw(self) -> CUtensorMapFloatOOBfill {
        // Declared in the order of the driver's enum.
        CUtensorMapFloatOOBfill(self as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerators_match_c() {
        use TensorDataType as Type;
        assert_eq!(
            Type::Float16.to_raw(),
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
        );
        assert_eq!(
            Type::Bfloat16.to_raw(),
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
        );
        assert_eq!(
            Type::Packed6Align16.to_raw(),
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
        );
        let swizzle = TensorSwizzle::Bytes128Atom64.to_raw();
        assert_eq!(
            swizzle,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B
        );
        assert_eq!(
            TensorInterleave::Bytes32.to_raw(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B
        );
        assert_eq!(
            TensorL2Promotion::Bytes256.to_raw(),
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B
        );
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
        assert_eq!(
            layout.with_strides(&[256, 4096]).span(),
            2 * 4096 + 9 * 256 + 128
        );
        let largest = TensorLayout::new(TensorDataType::Float64, pointer, &[1 << 32; 5])
            .with_strides(&[(1 << 40) - 16; 4]);
        assert_eq!(
            largest.span(),
            (1 << 35) + 4 * ((1 << 32) - 1) * ((1 << 40) - 16)
        );
        let packed = TensorLayout::new(TensorDataType::Packed6Align16, pointer, &[128, 2]);
        assert_eq!((packed.strides(), packed.span()), (&[96][..], 192));
    }
}
