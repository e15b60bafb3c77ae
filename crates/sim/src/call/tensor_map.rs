//! Tensor maps, which `exec/tensor_map.rs` lays out.

use std::ffi::c_void;

use curium_ptx::exec::tensor_map::{Corners, Field, IM2COL, MAGIC, TILED};
use curium_sys::{
    CUresult, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode,
    CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::result::Result;

/// The kind of an im2col map along the width, by which no instruction copies.
const IM2COL_WIDE: u64 = 3;

/// The tensor of a map, checked.
struct Tensor {
    /// The fields that occur once in a map, with their values.
    fields: [(Field, u64); 8],
    extents: Vec<u64>,
    strides: Vec<u64>,
    steps: Vec<u32>,
}

/// The arguments that all maps share.
struct Arguments {
    data_type: CUtensorMapDataType,
    rank: u32,
    address: Pointer<c_void>,
    extents: ConstPointer<u64>,
    strides: ConstPointer<u64>,
    steps: ConstPointer<u32>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuTensorMapEncodeTiled(
        &self,
        map: Pointer<CUtensorMap>,
        data_type: CUtensorMapDataType,
        rank: u32,
        address: Pointer<c_void>,
        extents: ConstPointer<u64>,
        strides: ConstPointer<u64>,
        boxed: ConstPointer<u32>,
        steps: ConstPointer<u32>,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) -> Result {
        let arguments = Arguments {
            data_type,
            rank,
            address,
            extents,
            strides,
            steps,
            interleave,
            swizzle,
            promotion,
            fill,
        };
        self.require_current()?;
        let tensor = arguments.check(1, self.devices().compute_capability())?;
        // SAFETY: by the contract of the C function, there are as many values as the rank.
        let boxed = unsafe { elements(boxed.as_ptr(), rank as usize) }?;
        let width = u64::from(boxed[0]) * bits(data_type)? / 8;
        let is_whole = width.is_multiple_of(16);
        if !boxed.iter().all(|count| (1..=256).contains(count))
            || !is_whole
            || !arguments.fits_swizzle(width)
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let packed = pack(boxed.iter().map(|count| u64::from(*count - 1)), 8);
        write(map, &tensor, TILED, packed)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuTensorMapEncodeIm2col(
        &self,
        map: Pointer<CUtensorMap>,
        data_type: CUtensorMapDataType,
        rank: u32,
        address: Pointer<c_void>,
        extents: ConstPointer<u64>,
        strides: ConstPointer<u64>,
        lower: ConstPointer<i32>,
        upper: ConstPointer<i32>,
        channels: u32,
        pixels: u32,
        steps: ConstPointer<u32>,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) -> Result {
        let arguments = Arguments {
            data_type,
            rank,
            address,
            extents,
            strides,
            steps,
            interleave,
            swizzle,
            promotion,
            fill,
        };
        self.require_current()?;
        let tensor = arguments.check(3, self.devices().compute_capability())?;
        // SAFETY: by the contract of the C function, there are two values less than the rank.
        let lower = unsafe { elements(lower.as_ptr(), rank as usize - 2) }?;
        // SAFETY: by the contract of the C function, there are two values less than the rank.
        let upper = unsafe { elements(upper.as_ptr(), rank as usize - 2) }?;
        let limit = [1 << 15, 1 << 7, 1 << 4][rank as usize - 3];
        // Pixels are iterated along width, height and depth. These dimensions follow the channels,
        // unless the channels are sliced.
        let spatial = &tensor.extents[usize::from(interleave.0 == 0)..];
        let mut corners = spatial.iter().zip(lower.iter().zip(upper));
        let is_box = corners.all(|(extent, (lower, upper))| {
            extent.cast_signed() + i64::from(*upper) > i64::from(*lower)
        });
        let is_within = is_box
            && lower
                .iter()
                .chain(upper)
                .all(|offset| (-limit..limit).contains(offset));
        if !is_within || !arguments.fits_column(channels, pixels)? {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let corners = Corners::new(rank as usize).pack(lower, upper);
        write(
            map,
            &tensor,
            IM2COL,
            corners | u64::from(channels - 1) << 16 | u64::from(pixels),
        )
    }

    /// Encodes a map that no instruction of the simulator accepts: devices of compute capability
    /// 9.0 encode such maps, but do not copy by them.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuTensorMapEncodeIm2colWide(
        &self,
        map: Pointer<CUtensorMap>,
        data_type: CUtensorMapDataType,
        rank: u32,
        address: Pointer<c_void>,
        extents: ConstPointer<u64>,
        strides: ConstPointer<u64>,
        lower: i32,
        upper: i32,
        channels: u32,
        pixels: u32,
        steps: ConstPointer<u32>,
        interleave: CUtensorMapInterleave,
        mode: CUtensorMapIm2ColWideMode,
        swizzle: CUtensorMapSwizzle,
        promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) -> Result {
        let arguments = Arguments {
            data_type,
            rank,
            address,
            extents,
            strides,
            steps,
            interleave,
            swizzle,
            promotion,
            fill,
        };
        self.require_current()?;
        let tensor = arguments.check(3, self.devices().compute_capability())?;
        let swizzles = [
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
        ];
        // Pixels are iterated along the width, which follows the channels, unless the channels are
        // sliced.
        let width = tensor.extents[usize::from(interleave.0 == 0)].cast_signed();
        let offsets = i64::from(i16::MIN)..=i64::from(i16::MAX);
        let [lower, upper] = [lower, upper].map(i64::from);
        let is_valid = offsets.contains(&lower)
            && offsets.contains(&upper)
            && width + upper > lower
            && mode.0 <= CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128.0
            && swizzles.contains(&swizzle)
            && arguments.fits_column(channels, pixels)?;
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let offsets = pack(
            [lower, upper]
                .map(|offset| (offset as u64) & 0xffff)
                .into_iter(),
            16,
        );
        let column = u64::from(channels - 1) << 16 | u64::from(pixels);
        write(map, &tensor, IM2COL_WIDE, offsets << 32 | column)
    }

    pub(crate) fn cuTensorMapReplaceAddress(
        &self,
        map: Pointer<CUtensorMap>,
        address: Pointer<c_void>,
    ) -> Result {
        self.require_current()?;
        let mut encoded = map.read()?;
        // As on hardware, the content of the map is not checked.
        if address.is_null() || !address.address().is_multiple_of(16) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        set_field(&mut encoded, Field::ADDRESS, address.address());
        map.write(encoded)
    }
}

impl Arguments {
    /// Checks the tensor of a map with at least `least` dimensions.
    fn check(&self, least: u32, compute_capability: u32) -> Result<Tensor> {
        let least = if self.interleave.0 == 0 { least } else { 3 };
        // Swizzles of other atomicities, and packed elements, came with compute capability 10.0.
        let is_extended = compute_capability >= 100;
        let last_swizzle = if is_extended {
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B
        } else {
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B
        };
        let last_type = if is_extended {
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
        } else {
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
        };
        let is_known = self.interleave.0 <= 2
            && self.swizzle.0 <= last_swizzle.0
            && self.data_type.0 <= last_type.0
            && self.promotion.0 <= 3
            && self.fill.0 <= 1;
        if !(least..=5).contains(&self.rank) || !is_known {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let rank = self.rank as usize;
        // SAFETY: by the contract of the C function, there are as many values as the rank.
        let extents = unsafe { elements(self.extents.as_ptr(), rank) }?;
        // SAFETY: by the contract of the C function, there is one value less than the rank.
        let strides = unsafe { elements(self.strides.as_ptr(), rank - 1) }?;
        // SAFETY: by the contract of the C function, there are as many values as the rank.
        let steps = unsafe { elements(self.steps.as_ptr(), rank) }?;
        let address = self.address.address();
        let is_padded =
            self.data_type.0 >= CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B.0;
        let alignment = if self.interleave.0 == 2 || is_padded {
            32
        } else {
            16
        };
        let is_valid = address.is_multiple_of(alignment)
            && extents.iter().all(|extent| (1..=1 << 32).contains(extent))
            && strides
                .iter()
                .all(|stride| stride.is_multiple_of(alignment) && (1..1 << 40).contains(stride))
            && steps.iter().all(|step| (1..=8).contains(step))
            && (self.fill.0 == 0 || (6..=12).contains(&self.data_type.0));
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        bits(self.data_type)?;
        Ok(Tensor {
            fields: self.fields(address),
            extents: extents.into(),
            strides: strides.into(),
            steps: steps.into(),
        })
    }

    fn fields(&self, address: u64) -> [(Field, u64); 8] {
        // `tensormap.replace` treats the swizzles of 128 bytes as one. Their atomicity, a separate
        // field, distinguishes them.
        let swizzle = self
            .swizzle
            .0
            .min(CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B.0);
        [
            (Field::ADDRESS, address),
            (Field::DATA_TYPE, self.data_type.0.into()),
            (Field::RANK, self.rank.into()),
            (Field::INTERLEAVE, self.interleave.0.into()),
            (Field::SWIZZLE, swizzle.into()),
            (Field::ATOMICITY, (self.swizzle.0 - swizzle).into()),
            (Field::PROMOTION, self.promotion.0.into()),
            (Field::FILL, self.fill.0.into()),
        ]
    }

    /// Returns `true` if a column can have this many channels per pixel, and pixels.
    fn fits_column(&self, channels: u32, pixels: u32) -> Result<bool> {
        let width = u64::from(channels) * bits(self.data_type)? / 8;
        Ok((1..=256).contains(&channels)
            && (1..=1024).contains(&pixels)
            && width.is_multiple_of(16)
            && self.fits_swizzle(width))
    }

    /// Returns `true` if this many bytes of the innermost dimension fit the span of the swizzle.
    fn fits_swizzle(&self, bytes: u64) -> bool {
        let span = [u64::MAX, 32, 64, 128, 128, 128, 128][self.swizzle.0 as usize];
        self.interleave.0 != 0 || bytes <= span
    }
}

/// Returns the bits of an element.
fn bits(data_type: CUtensorMapDataType) -> Result<u64> {
    const BITS: [u64; 16] = [8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6];
    BITS.get(data_type.0 as usize)
        .copied()
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

/// Packs values, the first in the lowest bits.
fn pack(values: impl Iterator<Item = u64>, width: u32) -> u64 {
    values.enumerate().fold(0, |packed, (index, value)| {
        packed | value << (index as u32 * width)
    })
}

fn write(map: Pointer<CUtensorMap>, tensor: &Tensor, kind: u64, taken: u64) -> Result {
    let map = map.required()?;
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    encoded.opaque[0] = MAGIC | kind;
    set_field(&mut encoded, Field::TAKEN, taken);
    tensor
        .fields
        .iter()
        .for_each(|(field, value)| set_field(&mut encoded, *field, *value));
    (0..)
        .zip(&tensor.steps)
        .for_each(|(index, step)| set_field(&mut encoded, Field::step(index), u64::from(*step)));
    (0..)
        .zip(&tensor.extents)
        .for_each(|(index, extent)| set_field(&mut encoded, Field::extent(index), *extent));
    (0..)
        .zip(&tensor.strides)
        .for_each(|(index, stride)| set_field(&mut encoded, Field::stride(index), *stride));
    map.write(encoded)
}

fn set_field(map: &mut CUtensorMap, field: Field, value: u64) {
    let word = &mut map.opaque[field.word()];
    *word = field.set(*word, value);
}
