//! Occupancy, and the launch configurations that it suggests.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use bitflags::bitflags;
use curium_sys::CUoccupancy_flags;

use super::Kernel;
use crate::base::contain::contain_callback;
use crate::call;
use crate::kernel::launch::{LaunchAttributes, LaunchConfig};
use crate::{Context, Driver, Error, Result};

bitflags! {
    /// Flags for occupancy calculations.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct OccupancyFlags: u32 {
        /// Returns 0 where global caching makes the block too large for a multiprocessor, instead
        /// of calculating the occupancy as if caching were disabled.
        const DISABLE_CACHING_OVERRIDE = CUoccupancy_flags::CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

/// The launch configuration that achieves the maximum occupancy of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct SuggestedSize {
    /// The minimum number of blocks that achieves the occupancy.
    pub min_grid: u32,
    /// The number of threads per block.
    pub block: u32,
}

impl<S> Kernel<S> {
    /// Returns the maximum number of resident blocks per multiprocessor, for blocks of `block`
    /// threads with `shared_bytes` bytes of dynamic shared memory.
    ///
    /// CUDA: `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    ///
    /// # Errors
    ///
    /// An argument error if the kernel is bound to another context.
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    #[doc(alias = "cudaOccupancyMaxActiveBlocksPerMultiprocessor")]
    pub fn max_active_blocks(
        &self,
        context: &Context,
        block: u32,
        shared_bytes: usize,
    ) -> Result<u32> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        self.occupancy("Kernel::max_active_blocks", context, |driver, place| {
            // SAFETY: `place` is valid for writes, the kernel is live, and a context of its driver
            // is current.
            unsafe {
                call!(
                    driver,
                    cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        place,
                        kernel,
                        signed(block),
                        shared_bytes
                    )
                )
            }
        })
    }

    /// Returns the maximum number of resident blocks like [`Kernel::max_active_blocks`], with
    /// flags.
    ///
    /// CUDA: `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`].
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")]
    #[doc(alias = "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")]
    pub fn max_active_blocks_with_flags(
        &self,
        context: &Context,
        block: u32,
        shared_bytes: usize,
        flags: OccupancyFlags,
    ) -> Result<u32> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        let flags = flags.bits();
        self.occupancy(
            "Kernel::max_active_blocks_with_flags",
            context,
            |driver, place| {
                // SAFETY: `place` is valid for writes, the kernel is live, and a context of its
                // driver is current.
                unsafe {
                    call!(
                        driver,
                        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                            place,
                            kernel,
                            signed(block),
                            shared_bytes,
                            flags
                        )
                    )
                }
            },
        )
    }

    /// Returns the dynamic shared memory per block, in bytes, that is available if `blocks` blocks
    /// of `block` threads are resident on a multiprocessor.
    ///
    /// CUDA: `cuOccupancyAvailableDynamicSMemPerBlock`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`], and `CUDA_ERROR_INVALID_VALUE` if this many blocks do
    /// not fit.
    #[doc(alias = "cuOccupancyAvailableDynamicSMemPerBlock")]
    #[doc(alias = "cudaOccupancyAvailableDynamicSMemPerBlock")]
    pub fn available_dynamic_shared_bytes(
        &self,
        context: &Context,
        blocks: u32,
        block: u32,
    ) -> Result<usize> {
        self.inner()
            .check_context("Kernel::available_dynamic_shared_bytes", context)?;
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        let mut bytes = 0;
        let blocks = signed(blocks);
        let block = signed(block);
        let result = context.entered(|driver| {
            // SAFETY: `bytes` is valid for writes, the kernel is live, and a context of its driver
            // is current.
            unsafe {
                call!(
                    driver,
                    cuOccupancyAvailableDynamicSMemPerBlock(&raw mut bytes, kernel, blocks, block)
                )
            }
        });
        result.map_err(|error| error.about(format!("kernel `{}`", self.name())))?;
        Ok(bytes)
    }

    /// Returns the launch configuration with the maximum occupancy, for blocks with `shared_bytes`
    /// bytes of dynamic shared memory and at most `max_block` threads. A `max_block` of 0 sets no
    /// maximum.
    ///
    /// CUDA: `cuOccupancyMaxPotentialBlockSize`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`].
    #[doc(alias = "cuOccupancyMaxPotentialBlockSize")]
    #[doc(alias = "cudaOccupancyMaxPotentialBlockSize")]
    pub fn suggested_size(
        &self,
        context: &Context,
        shared_bytes: usize,
        max_block: u32,
    ) -> Result<SuggestedSize> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        self.suggestion("Kernel::suggested_size", context, |driver, grid, block| {
            let max_block = signed(max_block);
            // SAFETY: `grid` and `block` are valid for writes, the kernel is live, and a context of
            // its driver is current.
            unsafe {
                call!(
                    driver,
                    cuOccupancyMaxPotentialBlockSize(
                        grid,
                        block,
                        kernel,
                        None,
                        shared_bytes,
                        max_block
                    )
                )
            }
        })
    }

    /// Returns the launch configuration like [`Kernel::suggested_size`], with flags and a dynamic
    /// shared memory size that depends on the block size: `shared_bytes` returns the bytes for a
    /// number of threads.
    ///
    /// CUDA: `cuOccupancyMaxPotentialBlockSizeWithFlags`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`].
    #[doc(alias = "cuOccupancyMaxPotentialBlockSizeWithFlags")]
    #[doc(alias = "cudaOccupancyMaxPotentialBlockSizeWithFlags")]
    pub fn suggested_size_with(
        &self,
        context: &Context,
        shared_bytes: impl Fn(u32) -> usize,
        max_block: u32,
        flags: OccupancyFlags,
    ) -> Result<SuggestedSize> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        let flags = flags.bits();
        with_block_function(&shared_bytes, |function| {
            self.suggestion(
                "Kernel::suggested_size_with",
                context,
                |driver, grid, block| {
                    let max_block = signed(max_block);
                    // SAFETY: `grid` and `block` are valid for writes, the kernel is live, a
                    // context of its driver is current, and `function` may be called on this thread
                    // until this returns.
                    unsafe {
                        call!(
                            driver,
                            cuOccupancyMaxPotentialBlockSizeWithFlags(
                                grid,
                                block,
                                kernel,
                                Some(function),
                                0,
                                max_block,
                                flags
                            )
                        )
                    }
                },
            )
        })
    }

    /// Returns a configuration with at least one thread for each of `count` elements, with the
    /// block size of maximum occupancy. The kernel must compare its index with the count.
    ///
    /// CUDA: `cuOccupancyMaxPotentialBlockSize`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`].
    pub fn suggested_config(&self, context: &Context, count: usize) -> Result<LaunchConfig> {
        let block = self.suggested_size(context, 0, 0)?.block.max(1);
        Ok(LaunchConfig::with_block(count, block))
    }

    /// Returns the maximum number of clusters that can be resident on the device. `attributes`
    /// contain the cluster size.
    ///
    /// CUDA: `cuOccupancyMaxActiveClusters`, since 11.7.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`], and `CUDA_ERROR_INVALID_CLUSTER_SIZE` for an
    /// unsupported cluster size.
    #[doc(alias = "cuOccupancyMaxActiveClusters")]
    #[doc(alias = "cudaOccupancyMaxActiveClusters")]
    pub fn active_clusters(
        &self,
        context: &Context,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
    ) -> Result<u32> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        attributes.check(self.driver())?;
        let config = attributes.launch_config(&config, std::ptr::null_mut());
        self.occupancy("Kernel::active_clusters", context, |driver, place| {
            // SAFETY: `place` is valid for writes, `config` is live with its attributes, the kernel
            // is live, and a context of its driver is current.
            unsafe {
                call!(
                    driver,
                    cuOccupancyMaxActiveClusters(place, kernel, &raw const config)
                )
            }
        })
    }

    /// Returns the maximum cluster size, in blocks, for a launch configuration.
    ///
    /// CUDA: `cuOccupancyMaxPotentialClusterSize`, since 11.7.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`].
    #[doc(alias = "cuOccupancyMaxPotentialClusterSize")]
    #[doc(alias = "cudaOccupancyMaxPotentialClusterSize")]
    pub fn max_cluster_size(
        &self,
        context: &Context,
        config: LaunchConfig,
        attributes: &LaunchAttributes<'_>,
    ) -> Result<u32> {
        let bound = self.bound(context)?;
        let kernel = bound.as_raw();
        attributes.check(self.driver())?;
        let config = attributes.launch_config(&config, std::ptr::null_mut());
        self.occupancy("Kernel::max_cluster_size", context, |driver, place| {
            // SAFETY: `place` is valid for writes, `config` is live with its attributes, the kernel
            // is live, and a context of its driver is current.
            unsafe {
                call!(
                    driver,
                    cuOccupancyMaxPotentialClusterSize(place, kernel, &raw const config)
                )
            }
        })
    }

    /// Queries one number with the context current.
    fn occupancy(
        &self,
        operation: &'static str,
        context: &Context,
        query: impl FnOnce(&Driver, *mut c_int) -> Result<()>,
    ) -> Result<u32> {
        self.inner().check_context(operation, context)?;
        let mut number = 0;
        let result = context.entered(|driver| query(driver, &raw mut number));
        result.map_err(|error| self.named(error))?;
        Ok(number.try_into().unwrap_or_default())
    }

    /// Queries a grid size and a block size with the context current.
    fn suggestion(
        &self,
        operation: &'static str,
        context: &Context,
        query: impl FnOnce(&Driver, *mut c_int, *mut c_int) -> Result<()>,
    ) -> Result<SuggestedSize> {
        self.inner().check_context(operation, context)?;
        let mut grid = 0;
        let mut block = 0;
        let result = context.entered(|driver| query(driver, &raw mut grid, &raw mut block));
        result.map_err(|error| self.named(error))?;
        Ok(SuggestedSize {
            min_grid: grid.try_into().unwrap_or_default(),
            block: block.try_into().unwrap_or_default(),
        })
    }

    fn named(&self, error: Error) -> Error {
        error.about(format!("kernel `{}`", self.name()))
    }
}

/// The type of the C callback: dynamic shared memory in bytes for a number of threads.
type BlockFunction = unsafe extern "C" fn(c_int) -> usize;

thread_local! {
    /// The function that the C callback calls on this thread. CUDA passes no user data to the
    /// callback.
    static BLOCK_FUNCTION: Cell<*const BlockState<'static>> = const { Cell::new(std::ptr::null()) };
}

/// The caller's function, and the payload of its panic.
struct BlockState<'a> {
    function: &'a dyn Fn(u32) -> usize,
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

/// Restores the previous function of the thread.
struct Restore(*const BlockState<'static>);

/// Runs `operation` with a C callback that calls `function` on this thread. A panic of `function`
/// is resumed afterwards.
fn with_block_function<T>(
    function: &dyn Fn(u32) -> usize,
    operation: impl FnOnce(BlockFunction) -> T,
) -> T {
    let state = BlockState {
        function,
        panic: Cell::new(None),
    };
    let erased = (&raw const state).cast::<BlockState<'static>>();
    let restore = Restore(BLOCK_FUNCTION.replace(erased));
    let value = operation(call_block_function);
    drop(restore);
    match state.panic.take() {
        Some(panic) => resume_unwind(panic),
        None => value,
    }
}

/// The C callback: calls the closure of the innermost `with_block_function` on this thread.
///
/// # Safety
///
/// The caller is the `operation` of a `with_block_function`, on its thread.
unsafe extern "C" fn call_block_function(block: c_int) -> usize {
    contain_callback("the function of an occupancy query", 0, || {
        // SAFETY: the state lives until `with_block_function` returns, which is after the caller of
        // this function returns.
        let Some(state) = (unsafe { BLOCK_FUNCTION.get().as_ref() }) else {
            return 0;
        };
        let block = block.try_into().unwrap_or_default();
        catch_unwind(AssertUnwindSafe(|| (state.function)(block))).unwrap_or_else(|panic| {
            state.panic.set(Some(panic));
            0
        })
    })
}

impl Drop for Restore {
    fn drop(&mut self) {
        BLOCK_FUNCTION.set(self.0);
    }
}

/// Converts a number to a C `int`, saturating at a value that no device supports.
fn signed(number: u32) -> c_int {
    number.try_into().unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: BlockFunction, block: c_int) -> usize {
        // SAFETY: the tests call it within `with_block_function`.
        unsafe { function(block) }
    }

    #[test]
    fn block_function_calls_the_innermost_closure() {
        let outer = with_block_function(&|block| block as usize * 2, |function| {
            let inner =
                with_block_function(&|block| block as usize * 3, |function| call(function, 10));
            (inner, call(function, 10))
        });
        assert_eq!(outer, (30, 20));
        assert_eq!(call(call_block_function, 10), 0, "no function is set");
    }

    #[test]
    fn closure_panic_does_not_pass_through_c() {
        let mut returned = None;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            with_block_function(
                &|_| std::panic::panic_any("this panic is part of the test"),
                |function| {
                    returned = Some(call(function, 10));
                },
            );
        }));
        assert_eq!(returned, Some(0));
        assert!(outcome.is_err());
    }
}
