//! Global variables of loaded code.

use std::ffi::c_void;
use std::fmt;

use curium_sys::CUdeviceptr;

use crate::call;
use crate::hazard::Operation;
use crate::kernel::Owner;
use crate::{DevicePointer, Driver, Error, Result, Stream};

/// A `__device__`, `__constant__` or `__managed__` variable of loaded code: one `T`, or an array of
/// `T`.
///
/// It keeps the code loaded. Kernels may use the variable at any time, so reading and writing it is
/// `unsafe`.
///
/// ```no_run
/// # fn example(module: curium_driver::Module, stream: curium_driver::Stream) -> Result<(), curium_driver::Error> {
/// let factor = module.global::<f32>("factor")?;
/// // SAFETY: no kernel runs that uses `factor`.
/// unsafe { factor.write(&stream, &[2.5]) }?;
/// # Ok(())
/// # }
/// ```
pub struct Global<T> {
    pointer: DevicePointer<T>,
    len: usize,
    owner: Owner,
}

impl<T> Global<T> {
    /// Creates the variable `name` of `owner` at `address`, if its size in bytes is a multiple of
    /// the size of `T`.
    pub(crate) fn checked(
        operation: &'static str,
        owner: Owner,
        name: &str,
        address: CUdeviceptr,
        bytes: usize,
    ) -> Result<Self> {
        let size = size_of::<T>();
        if size == 0 || bytes == 0 || !bytes.is_multiple_of(size) {
            let ty = std::any::type_name::<T>();
            let reason = format!(
                "size mismatch (variable `{name}` has {bytes} bytes, not a multiple of the {size} bytes of `{ty}`)"
            );
            return Err(Error::argument(operation, reason));
        }
        if !address.is_multiple_of(align_of::<T>() as u64) {
            let reason = format!("misaligned variable (`{name}` at {address:#x})");
            return Err(Error::argument(operation, reason));
        }
        Ok(Self {
            pointer: DevicePointer::from_raw(address),
            len: bytes / size,
            owner,
        })
    }

    /// Returns the address of the first element. It is valid for as long as the code is loaded.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `false`: a variable has at least one element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns the driver of the variable.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.owner.driver()
    }

    /// Copies `source`, which must have the same number of elements, to the variable on `stream`,
    /// and waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Safety
    ///
    /// - Work that is not ordered with this stream does not use the variable during the copy.
    /// - The code accepts any value of `T` in the variable.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    pub unsafe fn write(&self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: Copy,
    {
        let operation = self.begin("Global::write", stream, source.len())?;
        let to = self.pointer.as_raw();
        let from = source.as_ptr().cast::<c_void>();
        let bytes = self.byte_len();
        // SAFETY: both sides have this many bytes; the variable stays loaded and `source` borrowed
        // until the stream has been synchronized below, and the caller guarantees that no other
        // code uses the variable.
        let result = unsafe {
            call!(
                operation.driver(),
                cuMemcpyHtoDAsync_v2(to, from, bytes, operation.raw_stream())
            )
        };
        result.map_err(|error| error.about(format!("{bytes} bytes")))?;
        stream.synchronize()
    }

    /// Copies the variable on `stream` to `target`, which must have the same number of elements,
    /// and waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Safety
    ///
    /// - Work that is not ordered with this stream does not write the variable during the copy.
    /// - The variable contains valid values of `T`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; the error of earlier asynchronous work in the
    /// context.
    pub unsafe fn read(&self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: Copy,
    {
        let operation = self.begin("Global::read", stream, target.len())?;
        let to = target.as_mut_ptr().cast::<c_void>();
        let from = self.pointer.as_raw();
        let bytes = self.byte_len();
        // SAFETY: both sides have this many bytes; the variable stays loaded and `target` borrowed
        // until the stream has been synchronized below, and the caller is responsible for the
        // values.
        let result = unsafe {
            call!(
                operation.driver(),
                cuMemcpyDtoHAsync_v2(to, from, bytes, operation.raw_stream())
            )
        };
        result.map_err(|error| error.about(format!("{bytes} bytes")))?;
        stream.synchronize()
    }

    fn begin<'a>(
        &self,
        name: &'static str,
        stream: &'a Stream,
        len: usize,
    ) -> Result<Operation<'a>> {
        self.driver().check_same(stream.driver(), name)?;
        let operation = stream.enqueue_uncaptured(name)?;
        if self.len == len {
            return Ok(operation);
        }
        Err(Error::argument(
            name,
            format!(
                "length mismatch (the variable has {} elements, the slice has {len})",
                self.len
            ),
        ))
    }
}

impl<T> Clone for Global<T> {
    fn clone(&self) -> Self {
        Self {
            pointer: self.pointer,
            len: self.len,
            owner: self.owner.clone(),
        }
    }
}

impl<T> fmt::Debug for Global<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Global({} × {} at {:?})",
            self.len,
            std::any::type_name::<T>(),
            self.pointer
        )
    }
}
