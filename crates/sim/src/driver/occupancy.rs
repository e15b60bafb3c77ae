//! Occupancy: the number of blocks of a kernel that are resident on a multiprocessor.

use curium_sys::CUdevice_attribute as Attribute;

use crate::driver::device::Devices;
use crate::driver::function::registers;
use crate::object::function::ResolvedKernel;
use crate::result::Result;

/// The granularity in which registers are allocated to warps, and shared memory to blocks.
const REGISTER_STEP: u32 = 256;

pub(crate) const SHARED_STEP: u32 = 128;

impl Devices<'_> {
    /// Returns the number of blocks of a size that are resident on a multiprocessor.
    pub(crate) fn max_active_blocks(
        &self,
        resolved: &ResolvedKernel,
        block: u32,
        dynamic_shared: usize,
    ) -> Result<u32> {
        let kernel = resolved.kernel()?;
        let dynamic_shared = u32::try_from(dynamic_shared).unwrap_or(u32::MAX);
        if block > self.max_threads(kernel) || dynamic_shared > self.max_dynamic_shared(resolved)? {
            return Ok(0);
        }
        let warp_size = self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE);
        let warps = block.div_ceil(warp_size);
        let by_threads = self
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
            / (warps * warp_size);
        let per_warp = (registers(kernel) * warp_size).next_multiple_of(REGISTER_STEP);
        let by_registers = self
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
            / (per_warp * warps);
        let reserved =
            self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
        let shared =
            (kernel.static_shared + dynamic_shared + reserved).next_multiple_of(SHARED_STEP);
        let by_shared = self
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
            / shared;
        let by_blocks =
            self.attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
        Ok(by_threads.min(by_registers).min(by_shared).min(by_blocks))
    }
}
