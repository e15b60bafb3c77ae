//! Tensor maps for the tensor memory accelerator (TMA).

mod check;
mod im2col;
mod layout;
mod view;

use std::ffi::c_void;
use std::fmt;

use curium_driver::sys::{CUtensorMap, CUtensorMapAllocClass};
use curium_driver::{ByValue, Context, DevicePointer, Error, Result, call};

pub use self::im2col::{Im2col, Im2colWide, Im2colWideMode};
pub use self::layout::{
    TensorDataType, TensorFill, TensorInterleave, TensorL2Promotion, TensorLayout, TensorSwizzle,
};
pub use self::view::{TensorRead, TensorView, TensorViewMut, TensorWrite};

/// A tensor map (`CUtensorMap`): describes a tensor in device memory, and the box of it that one
/// TMA copy transfers. Kernels receive its 128 bytes by value.
///
/// Requires compute capability 9.0. The map contains the address of the tensor but does not keep
/// the memory alive; the safety contract of the launch covers that. Pass a [`TensorView`] instead
/// to keep the memory alive.
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

/// The allocation class: how far TMA may prefetch beyond a tensor.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TensorAllocationClass {
    /// Derived by the driver from the shape of the tensor.
    #[default]
    Auto,
    /// 4 KiB.
    Small,
    /// 128 KiB, all of which must be accessible.
    Large,
}

// SAFETY: it is `repr(transparent)` over the type that kernels declare, and contains no reference
// to host memory.
unsafe impl ByValue for TensorMap {}

impl TensorMap {
    /// Creates a map of tiles with `elements` elements in each dimension, innermost first.
    ///
    /// CUDA: `cuTensorMapEncodeTiled`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error for a layout that TMA does not support; see [`TensorLayout`]. A box has 1
    /// to 256 elements per dimension, and a multiple of 16 bytes in the innermost one, which must
    /// fit the swizzle span unless the layout is interleaved.
    #[doc(alias = "cuTensorMapEncodeTiled")]
    pub fn tiled(context: &Context, layout: &TensorLayout, elements: &[u32]) -> Result<Self> {
        check::layout("TensorMap::tiled", layout, 1)?;
        check::boxed("TensorMap::tiled", layout, elements)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid pointer, and each list has as many values as the rank
            // requires.
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

    /// Creates a map of im2col columns: pixels of images, as used by convolutions.
    ///
    /// CUDA: `cuTensorMapEncodeIm2col`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error for a layout that TMA does not support; see [`TensorLayout`] and
    /// [`Im2col`].
    #[doc(alias = "cuTensorMapEncodeIm2col")]
    pub fn im2col(context: &Context, layout: &TensorLayout, pixels: &Im2col<'_>) -> Result<Self> {
        check::layout("TensorMap::im2col", layout, 3)?;
        check::im2col("TensorMap::im2col", layout, pixels)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid pointer, and each list has as many values as the rank
            // requires.
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

    /// Creates a map of im2col columns along the width of images.
    ///
    /// CUDA: `cuTensorMapEncodeIm2colWide`. Requires a driver for CUDA 12.8 and a device of compute
    /// capability 10.0.
    ///
    /// # Errors
    ///
    /// An argument error for a layout that TMA does not support; see [`TensorLayout`] and
    /// [`Im2colWide`].
    #[doc(alias = "cuTensorMapEncodeIm2colWide")]
    pub fn im2col_wide(
        context: &Context,
        layout: &TensorLayout,
        pixels: &Im2colWide,
    ) -> Result<Self> {
        check::layout("TensorMap::im2col_wide", layout, 3)?;
        check::im2col_wide("TensorMap::im2col_wide", layout, pixels)?;
        Self::encode(context, |driver, map| {
            // SAFETY: `map` is a valid pointer, and each list has as many values as the rank
            // requires.
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

    /// Replaces the tensor's address. `pointer` must be aligned as the layout requires.
    ///
    /// CUDA: `cuTensorMapReplaceAddress`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the address is not a multiple of 16; `CUDA_ERROR_INVALID_VALUE` if the
    /// layout requires 32.
    #[doc(alias = "cuTensorMapReplaceAddress")]
    pub fn replace_address<T>(
        &mut self,
        context: &Context,
        pointer: DevicePointer<T>,
    ) -> Result<()> {
        check::address("TensorMap::replace_address", pointer.as_raw(), 16)?;
        let address = std::ptr::without_provenance_mut::<c_void>(pointer.as_raw() as usize);
        context.entered(|driver| {
            // SAFETY: the map is initialized, and the driver only stores the address.
            unsafe { call!(driver, cuTensorMapReplaceAddress(&raw mut self.0, address)) }
        })
    }

    /// Sets the allocation class, and returns the effective one.
    ///
    /// CUDA: `cuTensorMapSetAllocationClass`. Requires a driver for CUDA 13.5.
    ///
    /// # Safety
    ///
    /// For [`TensorAllocationClass::Large`], the memory from the start of the tensor's allocation
    /// is accessible up to the size that the device attribute
    /// [`TENSOR_MAP_LARGE_TENSOR_MIN_SIZE`](curium_driver::DeviceAttribute::TENSOR_MAP_LARGE_TENSOR_MIN_SIZE)
    /// reports, for as long as the map is used.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuTensorMapSetAllocationClass")]
    pub unsafe fn set_allocation_class(
        &mut self,
        context: &Context,
        class: TensorAllocationClass,
    ) -> Result<TensorAllocationClass> {
        let wanted = class.to_raw();
        let mut effective = CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_AUTO;
        context.entered(|driver| {
            // SAFETY: the map is initialized, `effective` is a valid pointer, and the caller
            // guarantees that the memory is accessible.
            unsafe {
                call!(
                    driver,
                    cuTensorMapSetAllocationClass(&raw mut self.0, wanted, &raw mut effective)
                )
            }
        })?;
        Ok(TensorAllocationClass::from_raw(effective))
    }

    /// Returns the 128 opaque bytes as words.
    #[must_use]
    pub fn to_words(&self) -> [u64; 16] {
        self.0.opaque
    }

    /// Creates the map from its bytes.
    ///
    /// # Safety
    ///
    /// `words` was returned by [`TensorMap::to_words`].
    #[must_use]
    pub const unsafe fn from_words(words: [u64; 16]) -> Self {
        Self(CUtensorMap { opaque: words })
    }

    /// Creates a map with `encode`, which runs with the context current.
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
    const fn to_raw(self) -> CUtensorMapAllocClass {
        match self {
            Self::Auto => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_AUTO,
            Self::Small => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_SMALL,
            Self::Large => CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_LARGE,
        }
    }

    fn from_raw(raw: CUtensorMapAllocClass) -> Self {
        match raw {
            CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_SMALL => Self::Small,
            CUtensorMapAllocClass::CU_TENSOR_MAP_ALLOC_CLASS_LARGE => Self::Large,
            _ => Self::Auto,
        }
    }
}

impl fmt::Debug for TensorMap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TensorMap").finish_non_exhaustive()
    }
}

/// Adds the hint that the device may be too old.
#[cold]
fn explain(error: Error, context: &Context) -> Error {
    let capability = context.device().compute_capability();
    error.advised(|_| {
        let capability = capability.ok().filter(|capability| capability.major < 9)?;
        let major = capability.major;
        let minor = capability.minor;
        Some(
            format!("tensor maps require compute capability 9.0 (this device has {major}.{minor})")
                .into(),
        )
    })
}

const _: () = assert!(
    size_of::<TensorMap>() == 128 && align_of::<TensorMap>() >= 64,
    "kernels take it so"
);
