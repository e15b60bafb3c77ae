//! Constructors.

use std::marker::PhantomData;
use std::sync::Arc;

use curium_driver::sys::{CUDA_ARRAY3D_DESCRIPTOR, CUarray};
use curium_driver::{Error, Result, Stream, call};

use super::{Array, ArrayFlags, ArrayHandle, ArrayShape, Owner, Texel, Uses};

impl<T: Texel> Array<T> {
    /// Allocates an array with undefined contents. `stream` is the array's stream. Dropping the
    /// array waits on the host until all accesses have completed.
    ///
    /// CUDA: `cuArray3DCreate_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if an extent is 0 or a cubemap has an invalid shape;
    /// `CUDA_ERROR_INVALID_VALUE` if a limit of the device is exceeded; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuArrayCreate")]
    #[doc(alias = "cudaMallocArray")]
    #[doc(alias = "cuArray3DCreate")]
    #[doc(alias = "cudaMalloc3DArray")]
    pub fn new(stream: &Stream, shape: ArrayShape, flags: ArrayFlags) -> Result<Self> {
        shape.check("Array::new")?;
        let uses = Uses::new("Array::new", stream)?;
        let descriptor = shape.to_raw::<T>(flags);
        let raw = stream.context().entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` and `descriptor` are valid pointers, and the context is current.
            unsafe {
                call!(driver, cuArray3DCreate_v2(&raw mut raw, &raw const descriptor) creates raw)
            }?;
            Ok(raw)
        });
        let raw = raw.map_err(|error| error.about(format!("{shape} of {}", T::FORMAT)))?;
        let bytes = (shape.len() as u64).saturating_mul(size_of::<T>() as u64);
        let handle = ArrayHandle {
            raw,
            bytes,
            owner: Owner::Handle(Arc::clone(&uses)),
        };
        Ok(Self::from_handle(handle, shape, flags, uses))
    }

    /// Allocates an array and copies `source` to it, in the order of [`Array::copy_from_slice`].
    /// Waits until the copy has completed.
    ///
    /// CUDA: `cuArray3DCreate_v2`, `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`Array::new`] and [`Array::copy_from_slice`].
    pub fn from_slice(
        stream: &Stream,
        source: &[T],
        shape: ArrayShape,
        flags: ArrayFlags,
    ) -> Result<Self> {
        let array = Self::new(stream, shape, flags)?;
        array.copy_from_slice(source)?;
        Ok(array)
    }

    /// Borrows an array that other code owns, such as a graphics library.
    ///
    /// CUDA: `cuArray3DGetDescriptor_v2`.
    ///
    /// # Safety
    ///
    /// - `raw` is an array of the stream's context that outlives the result.
    /// - Other accesses to it are ordered with those through the result.
    ///
    /// # Errors
    ///
    /// An argument error if the elements are not of type `T`.
    pub unsafe fn borrow_raw(stream: &Stream, raw: CUarray) -> Result<Self> {
        // SAFETY: the caller guarantees that the array is live.
        let (shape, flags) = unsafe { described::<T>("Array::borrow_raw", stream, raw) }?;
        let handle = ArrayHandle {
            raw,
            bytes: 0,
            owner: Owner::Foreign,
        };
        Ok(Self::from_handle(
            handle,
            shape,
            flags,
            Uses::borrowed(stream),
        ))
    }

    pub(super) fn from_handle(
        handle: ArrayHandle,
        shape: ArrayShape,
        flags: ArrayFlags,
        uses: Arc<Uses>,
    ) -> Self {
        Self {
            handle: Arc::new(handle),
            shape,
            flags,
            stream: uses.stream.clone(),
            uses,
            _elements: PhantomData,
        }
    }
}

/// Returns the descriptor of an array, or an argument error of `operation` if its elements are not
/// of type `T`.
///
/// # Safety
///
/// `raw` is an array of the stream's context.
pub(super) unsafe fn described<T: Texel>(
    operation: &'static str,
    stream: &Stream,
    raw: CUarray,
) -> Result<(ArrayShape, ArrayFlags)> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
    // SAFETY: `descriptor` is a valid pointer, and the caller guarantees that the array is live.
    unsafe {
        call!(
            stream.driver(),
            cuArray3DGetDescriptor_v2(&raw mut descriptor, raw)
        )
    }?;
    let (shape, flags, format) = ArrayShape::from_raw(&descriptor);
    if format != T::FORMAT {
        let reason = format!(
            "element type mismatch (the array has elements of {format}, not {})",
            T::FORMAT
        );
        return Err(Error::argument(operation, reason));
    }
    Ok((shape, flags))
}
