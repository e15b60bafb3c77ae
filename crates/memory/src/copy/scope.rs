//! Scoped copies from and to borrowed host memory.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use crate::{AnyBitPattern, NoUninit};
use curium_driver::hazard::Operation;
use curium_driver::{Result, Stream};

use crate::capture_advice::{READ_LATER, UPLOAD};
use crate::{DeviceSlice, enqueue, size, wait};

/// A scope for copies on one stream. Created by [`copy_scope`].
pub struct CopyScope<'scope, 'env: 'scope> {
    waiter: &'scope Waiter<'env>,
    /// The invariant lifetime of the slices.
    _scope: PhantomData<Cell<&'scope ()>>,
}

/// Waits for the copies of a scope when it ends or unwinds.
struct Waiter<'env> {
    stream: &'env Stream,
    /// `true` if a copy was enqueued.
    is_used: Cell<bool>,
}

/// Runs `operation`, which enqueues copies from and to borrowed slices on `stream`. Waits for all
/// of them before it returns, even if `operation` panics.
///
/// Copies of pinned memory run while `operation` continues; copies of pageable memory may block.
/// The destinations can be read after the scope:
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, copy};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let first = [1_u32, 2];
/// let second = [3_u32, 4];
/// let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
/// let mut result = [0; 4];
/// copy::copy_scope(&stream, |scope| {
///     scope.upload(&first, &mut buffer.slice_mut(..2)?)?;
///     scope.upload(&second, &mut buffer.slice_mut(2..)?)?;
///     scope.download(&buffer, &mut result)
/// })?;
/// assert_eq!(result, [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// CUDA: `cuStreamSynchronize`.
///
/// # Errors
///
/// The error of `operation`, or an error of earlier asynchronous work in the context.
pub fn copy_scope<'env, R>(
    stream: &'env Stream,
    operation: impl for<'scope> FnOnce(&'scope CopyScope<'scope, 'env>) -> Result<R>,
) -> Result<R> {
    let waiter = Waiter {
        stream,
        is_used: Cell::new(false),
    };
    let result = operation(&CopyScope {
        waiter: &waiter,
        _scope: PhantomData,
    });
    let waited = waiter.wait();
    result.and_then(|value| waited.map(|()| value))
}

impl<'scope> CopyScope<'scope, '_> {
    /// Returns the stream of the copies.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        self.waiter.stream
    }

    /// Enqueues a copy of `source` to `target`, which must have the same length.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ, or if the stream is being captured, because a graph
    /// would outlive the scope.
    pub fn upload<T: NoUninit>(
        &'scope self,
        source: &'scope [T],
        target: &mut DeviceSlice<T>,
    ) -> Result<()> {
        const OPERATION: &str = "CopyScope::upload";
        size::same_len(OPERATION, target.len(), source.len())?;
        let mut operation = self.begin(OPERATION, UPLOAD)?;
        let end = target.operand();
        if end.bytes == 0 {
            return Ok(());
        }
        end.tracked.before_write(&mut operation)?;
        // SAFETY: both operands have this many bytes, the device operand is live on this stream,
        // and the host operand is borrowed until the scope has waited for the copy.
        let result = unsafe {
            enqueue::to_device(&operation, end.address, source.as_ptr().cast(), end.bytes)
        };
        result.map_err(|error| end.explain(error))?;
        end.tracked.after_partial_write(&mut operation);
        Ok(())
    }

    /// Enqueues a copy of `source` to `target`, which must have the same length.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// As for [`CopyScope::upload`].
    pub fn download<T: AnyBitPattern>(
        &'scope self,
        source: &DeviceSlice<T>,
        target: &'scope mut [T],
    ) -> Result<()> {
        const OPERATION: &str = "CopyScope::download";
        size::same_len(OPERATION, source.len(), target.len())?;
        let mut operation = self.begin(OPERATION, READ_LATER)?;
        let end = source.operand();
        if end.bytes == 0 {
            return Ok(());
        }
        end.tracked.before_read(&mut operation)?;
        // SAFETY: both operands have this many bytes, the device operand is live on this stream,
        // every bit pattern is a valid element, and the host operand is borrowed until the scope
        // has waited for the copy.
        let result = unsafe {
            enqueue::to_host(
                &operation,
                target.as_mut_ptr().cast(),
                end.address,
                end.bytes,
            )
        };
        result.map_err(|error| end.explain(error))?;
        end.tracked.after_read(&mut operation);
        Ok(())
    }

    fn begin(&self, name: &'static str, instead: &str) -> Result<Operation<'_>> {
        let operation = self.stream().enqueue_now(name, instead)?.blocking();
        self.waiter.is_used.set(true);
        Ok(operation)
    }
}

impl Waiter<'_> {
    /// Waits for the copies that were enqueued since the last wait.
    fn wait(&self) -> Result<()> {
        if self.is_used.replace(false) {
            wait::until_done(self.stream)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for CopyScope<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CopyScope({:?})", self.stream())
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            curium_driver::extend::report(&error);
        }
    }
}
