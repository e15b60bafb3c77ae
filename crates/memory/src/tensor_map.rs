//! Descriptions of tensors for the unit of a device that copies them.

mod check;
mod im2col;
mod layout;
mod view;

use std::ffi::c_void;
use std::fmt;

use curium_driver::sys::{CUtensorMap, CUtensorMapAllocClass};
use curium_driver::{ByValue, Context, DevicePointer, Error, Result, call};

pub use self::im2col::{Im2col, Im2colWide, WideMode};
pub use self::layout::{TensorDataType, TensorFill, TensorInterleave, TensorL2Promotion, TensorLayout, TensorSwizzle};
pub use self::view::{TensorRead, TensorView, TensorViewMut, TensorWrite};

/// A tensor in device memory, and what part of it one copy takes, as the tensor memory accelerator of a device wants it: 128 bytes that
/// a kernel takes by value.
///
/// Devices from compute capability 9.0 on have that unit. The map holds the address of the tensor, and what a kernel does with it is
/// the contract of its launch: neither the map nor the launch keeps the memory alive. A [`TensorView`] does, as an argument of a kernel.
///
/// ```
/// use curium_memory::{DeviceBuffer, TensorDataType, TensorLayout, TensorMap, TensorSwizzle};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let context = driver.device(0)?.primary_context()?;
/// # let stream = context.stream()?;
/// let matrix = DeviceBuffer::<f32>::zeroed(&stream, 256 * 64)?; // 256 rows of 64
/// let layout = TensorLayout::new(TensorDataType::Float32, matrix.as_pointer(), &[64, 256]).with_swizzle(TensorSwizzle::Bytes128);
/// let tile = TensorMap::tiled(&context, &layout, &[32, 8])?; // 8 rows of 32
/// # let _ = tile;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct TensorMap(CUtensorMap);

/// How far beyond a tensor the accelerator may fetch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorAllocationClass {
    /// What the driver makes of the shape of the tensor.
    #[default]
    Auto,
    /// 4 KiB.
    Small,
    /// 128 KiB, all of which must be there.
    Large,
}

// SAFETY: it is `repr(transparent)` over the type that kernels declare, and holds no reference into the host's memory.
unsafe impl ByValue for TensorMap {}

impl TensorMap {
    /// Describes boxes of a tensor: so many elements in each dimension, as `elements` says, the innermost first.
    ///
    /// CUDA: `cuTensorMapEncodeTiled`. Needs a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error with the figures for whatever the accelerator cannot do: see [`TensorLayout`]; a box has 1 to 256 elements in each
    /// dimension, a multiple of 16 bytes in the innermost, and no more than the swizzle's unless the layout is interleaved.
    #[doc(alias = "cuTensorMapEncodeTiled")]
    #[inline]
    pub fn tiled(context: &Context, layout: &TensorLayout, elements: &[u32]) -> Result<Self> {
        check::layout("TensorMap::tiled", layout, 1)?;
        check::boxed("TensorMap::tiled", layout, elements)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid place for the answer, and each list has as many values as the rank wants.
            unsafe {
                call!(
                    driver,
                    cuTensorMapEncodeTiled(
                        map,
                        layout.data_type.to_raw(),
                        layout.rank(),
                        layout.raw_address(),
                        layout.extents().as_ptr(),
                        layout.strides().as_ptr(),
                        elements.as_ptr(),
                        layout.steps().as_ptr(),
                        layout.interleave.to_raw(),
                        layout.swizzle.to_raw(),
                        layout.l2_promotion.to_raw(),
                        layout.fill.to_raw(),
                    )
                )
            }
        })
    }

    /// Describes columns of pixels of images, as convolutions take them.
    ///
    /// CUDA: `cuTensorMapEncodeIm2col`. Needs a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error with the figures for whatever the accelerator cannot do: see [`TensorLayout`] and [`Im2col`].
    #[doc(alias = "cuTensorMapEncodeIm2col")]
    #[inline]
    pub fn im2col(context: &Context, layout: &TensorLayout, pixels: &Im2col<'_>) -> Result<Self> {
        check::layout("TensorMap::im2col", layout, 3)?;
        check::im2col("TensorMap::im2col", layout, pixels)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid place for the answer, and each list has as many values as the rank wants.
            unsafe {
                call!(
                    driver,
                    cuTensorMapEncodeIm2col(
                        map,
                        layout.data_type.to_raw(),
                        layout.rank(),
                        layout.raw_address(),
                        layout.extents().as_ptr(),
                        layout.strides().as_ptr(),
                        pixels.lower.as_ptr(),
                        pixels.upper.as_ptr(),
                        pixels.channels_per_pixel,
                        pixels.pixels_per_column,
                        layout.steps().as_ptr(),
                        layout.interleave.to_raw(),
                        layout.swizzle.to_raw(),
                        layout.l2_promotion.to_raw(),
                        layout.fill.to_raw(),
                    )
                )
            }
        })
    }

    /// Describes columns of pixels of images that lie along the width only.
    ///
    /// CUDA: `cuTensorMapEncodeIm2colWide`. Needs a driver for CUDA 12.8 and a device of compute capability 10.0.
    ///
    /// # Errors
    ///
    /// An argument error with the figures for whatever the accelerator cannot do: see [`TensorLayout`] and [`Im2colWide`].
    #[doc(alias = "cuTensorMapEncodeIm2colWide")]
    #[inline]
    pub fn im2col_wide(context: &Context, layout: &TensorLayout, pixels: &Im2colWide) -> Result<Self> {
        check::layout("TensorMap::im2col_wide", layout, 3)?;
        check::im2col_wide("TensorMap::im2col_wide", layout, pixels)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid place for the answer, and each list has as many values as the rank wants.
            unsafe {
                call!(
                    driver,
                    cuTensorMapEncodeIm2colWide(
                        map,
                        layout.data_type.to_raw(),
                        layout.rank(),
                        layout.raw_address(),
                        layout.extents().as_ptr(),
                        layout.strides().as_ptr(),
                        pixels.lower,
                        pixels.upper,
                        pixels.channels_per_pixel,
                        pixels.pixels_per_column,
                        layout.steps().as_ptr(),
                        layout.interleave.to_raw(),
                        pixels.mode.to_raw(),
                        layout.swizzle.to_raw(),
                        layout.l2_promotion.to_raw(),
                        layout.fill.to_raw(),
                    )
                )
            }
        })
    }

    /// Has the map describe another tensor of the same shape, at `pointer`, which is aligned as the map's layout wants.
    ///
    /// CUDA: `cuTensorMapReplaceAddress`. Needs a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the address is not a multiple of 16; `CUDA_ERROR_INVALID_VALUE` if the layout wants 32.
    #[doc(alias = "cuTensorMapReplaceAddress")]
    #[inline]
    pub fn replace_address<T>(&mut self, context: &Context, pointer: DevicePointer<T>) -> Result<()> {
        check::address("TensorMap::replace_address", pointer.as_raw(), 16)?;
        let address = std::ptr::without_provenance_mut::<c_void>(pointer.as_raw() as usize);
        context.entered(|driver| {
            // SAFETY: the map was encoded, and the address is only written into it.
            unsafe { call!(driver, cuTensorMapReplaceAddress(&raw mut self.0, address)) }
        })
    }

    /// Sets how far beyond the tensor the accelerator may fetch, and returns what is in effect.
    ///
    /// CUDA: `cuTensorMapSetAllocationClass`. Needs a driver for CUDA 13.5.
    ///
    /// # Safety
    ///
    /// For [`TensorAllocationClass::Large`], so much memory is accessible from the start of the tensor's allocation as the device's
    /// attribute for it says, for as long as the map is used.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuTensorMapSetAllocationClass")]
    #[inline]
    pub unsafe fn set_allocation_class(
        &mut self,
        context: &Context,
        class: TensorAllocationClass,
    ) -> Result<TensorAllocationClass> {
        let (wanted, mut effective) = (class.to_raw(), CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_AUTO);
        context.entered(|driver| {
            // SAFETY: the map was encoded, `effective` is a valid place, and the caller vouches for the memory.
            unsafe { call!(driver, cuTensorMapSetAllocationClass(&raw mut self.0, wanted, &raw mut effective)) }
        })?;
        Ok(TensorAllocationClass::from_raw(effective))
    }

    /// The 128 bytes, in words, which only the device understands.
    #[must_use]
    #[inline]
    pub fn to_words(&self) -> [u64; 16] {
        self.0.opaque
    }

    /// The map with these bytes.
    ///
    /// # Safety
    ///
    /// They came from [`TensorMap::to_words`].
    #[must_use]
    #[inline]
    pub const unsafe fn from_words(words: [u64; 16]) -> Self {
        Self(CUtensorMap { opaque: words })
    }

    /// A map that `encode` writes, with the context current.
    #[inline]
    fn encode(
        context: &Context,
        encode: impl FnOnce(&curium_driver::Driver, *mut CUtensorMap) -> Result<()>,
    ) -> Result<Self> {
        let mut map = CUtensorMap::default();
        let result = context.entered(|driver| encode(driver, &raw mut map));
        result.map_err(|error| explain(error, context))?;
        Ok(Self(map))
    }
}

impl TensorAllocationClass {
    #[inline]
    const fn to_raw(self) -> CUtensorMapAllocClass {
        match self {
            Self::Auto => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_AUTO,
            Self::Small => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_SMALL,
            Self::Large => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_LARGE,
        }
    }

    #[inline]
    fn from_raw(raw: CUtensorMapAllocClass) -> Self {
        match raw {
            CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_SMALL => Self::Small,
            CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_LARGE => Self::Large,
            _ => Self::Auto,
        }
    }
}

impl fmt::Debug for TensorMap {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TensorMap").finish_non_exhaustive()
    }
}

/// Adds to an error that the device may be too old.
#[cold]
#[inline]
fn explain(error: Error, context: &Context) -> Error {
    let capability = context.device().compute_capability();
    error.advised(|_| {
        let capability = capability.ok().filter(|capability| capability.major < 9)?;
        let (major, minor) = (capability.major, capability.minor);
        Some(format!("tensor maps need compute capability 9.0, and the device has {major}.{minor}").into())
    })
}

const _: () = assert!(size_of::<TensorMap>() == 128 && align_of::<TensorMap>() >= 64, "kernels take it so");
