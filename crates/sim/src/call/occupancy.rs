//! The C functions for occupancy.

use curium_sys::{
    CUdevice_attribute as Attribute, CUfunc_st, CUlaunchAttributeID, CUlaunchConfig,
    CUoccupancyB2DSize, CUresult,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::driver::locked::Locked;
use crate::driver::occupancy::SHARED_STEP;
use crate::result::Result;

/// The limits of the extents of a grid.
const GRID_LIMITS: [Attribute; 3] = [
    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
];

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &self,
        blocks: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        block: i32,
        dynamic_shared: usize,
    ) -> Result {
        let output = blocks.required()?;
        let (state, context) = self.enter_current()?;
        let resolved = state.resolve_kernel_in(function, context)?;
        let block = positive(block)?;
        output.write(
            self.devices()
                .max_active_blocks(&resolved, block, dynamic_shared)?
                .cast_signed(),
        )
    }

    pub(crate) fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &self,
        blocks: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        block: i32,
        dynamic_shared: usize,
        flags: u32,
    ) -> Result {
        self.require_current()?;
        check_flags(flags)?;
        self.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, dynamic_shared)
    }

    pub(crate) fn cuOccupancyMaxPotentialBlockSize(
        &self,
        grid: Pointer<i32>,
        block: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        block_shared_size: CUoccupancyB2DSize,
        dynamic_shared: usize,
        limit: i32,
    ) -> Result {
        let grid = grid.required()?;
        let block = block.required()?;
        let (state, context) = self.enter_current()?;
        let resolved = state.resolve_kernel_in(function, context)?;
        // The caller's function runs without the driver's lock.
        drop(state);
        let warp = self
            .devices()
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE);
        let mut max_threads = self.devices().max_threads(resolved.kernel()?);
        if limit < 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if let Ok(limit @ 1..) = u32::try_from(limit) {
            max_threads = max_threads.min(limit);
        }
        let mut best_blocks = 0;
        let mut best_threads = 0;
        for threads in (1..=max_threads / warp)
            .rev()
            .map(|warps| warps * warp)
            .chain((max_threads < warp).then_some(max_threads))
        {
            // SAFETY: by the contract of the C function, the callback takes any number of threads.
            let shared = block_shared_size.map_or(dynamic_shared, |shared| unsafe {
                shared(threads.cast_signed())
            });
            let blocks = self
                .devices()
                .max_active_blocks(&resolved, threads, shared)?;
            if blocks * threads > best_blocks * best_threads {
                best_blocks = blocks;
                best_threads = threads;
            }
        }
        block.write(best_threads.cast_signed())?;
        let multiprocessors = self
            .devices()
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        grid.write((best_blocks * multiprocessors).cast_signed())
    }

    pub(crate) fn cuOccupancyAvailableDynamicSMemPerBlock(
        &self,
        bytes: Pointer<usize>,
        function: Pointer<CUfunc_st>,
        blocks: i32,
        block: i32,
    ) -> Result {
        let output = bytes.required()?;
        let (state, context) = self.enter_current()?;
        let resolved = state.resolve_kernel_in(function, context)?;
        let blocks = positive(blocks)?;
        let block = positive(block)?;
        if self.devices().max_active_blocks(&resolved, block, 0)? < blocks {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let all = self
            .devices()
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
        let reserved = self
            .devices()
            .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
        let per_block = all / blocks / SHARED_STEP * SHARED_STEP;
        let available = per_block.saturating_sub(reserved + resolved.kernel()?.static_shared);
        output.write(available.min(self.devices().max_dynamic_shared(&resolved)?) as usize)
    }

    pub(crate) fn cuOccupancyMaxPotentialClusterSize(
        &self,
        size: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        config: ConstPointer<CUlaunchConfig>,
    ) -> Result {
        let output = size.required()?;
        let config = config.read()?;
        let (mut state, context) = self.enter_current()?;
        check_config(&mut state, &config)?;
        output.write(
            state
                .resolve_kernel_in(function.required()?, context)?
                .max_cluster_blocks()
                .cast_signed(),
        )
    }

    pub(crate) fn cuOccupancyMaxActiveClusters(
        &self,
        clusters: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        config: ConstPointer<CUlaunchConfig>,
    ) -> Result {
        let output = clusters.required()?;
        let config = config.read()?;
        let (mut state, context) = self.enter_current()?;
        let resolved = state.resolve_kernel_in(function.required()?, context)?;
        check_config(&mut state, &config)?;
        // SAFETY: the configuration holds as many attributes as its count.
        let size = unsafe { cluster_size(&config) }?;
        if size > resolved.max_cluster_blocks() {
            return Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);
        }
        let threads = [config.blockDimX, config.blockDimY, config.blockDimZ]
            .into_iter()
            .product::<u32>();
        let blocks =
            self.devices()
                .max_active_blocks(&resolved, threads, config.sharedMemBytes as usize)?;
        let all = blocks
            * self
                .devices()
                .attribute_value(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        output.write((all / size).cast_signed())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        &self,
        grid: Pointer<i32>,
        block: Pointer<i32>,
        function: Pointer<CUfunc_st>,
        block_shared_size: CUoccupancyB2DSize,
        dynamic_shared: usize,
        limit: i32,
        flags: u32,
    ) -> Result {
        check_flags(flags)?;
        self.cuOccupancyMaxPotentialBlockSize(
            grid,
            block,
            function,
            block_shared_size,
            dynamic_shared,
            limit,
        )
    }
}

impl Locked<'_> {}

/// Returns the blocks of a cluster of a launch.
///
/// # Safety
///
/// `config` holds as many attributes as its count.
unsafe fn cluster_size(config: &CUlaunchConfig) -> Result<u32> {
    // SAFETY: the caller guarantees the number.
    let attributes = unsafe { elements(config.attrs.cast_const(), config.numAttrs as usize) }?;
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    let Some(cluster) = attributes.iter().find(|attribute| attribute.id == id) else {
        return Ok(1);
    };
    // SAFETY: this attribute's value is three numbers, for which any bytes are valid.
    let size = unsafe { cluster.value.clusterDim };
    let size = size
        .x
        .checked_mul(size.y)
        .and_then(|size_xy| size_xy.checked_mul(size.z));
    size.filter(|size| *size > 0)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

fn positive(number: i32) -> Result<u32> {
    match u32::try_from(number) {
        Ok(number @ 1..) => Ok(number),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

fn check_flags(flags: u32) -> Result {
    if flags > 1 {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// Checks the stream and the extents of a launch whose occupancy is queried.
fn check_config(state: &mut Locked<'_>, config: &CUlaunchConfig) -> Result {
    let driver = state.driver();
    let grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    // As on hardware, the threads of a block may be too many for any launch.
    let threads = config
        .blockDimX
        .checked_mul(config.blockDimY)
        .and_then(|plane| plane.checked_mul(config.blockDimZ));
    let is_positive = threads.is_some_and(|threads| threads.cast_signed() > 0);
    if !driver.devices().is_within_limits(grid, GRID_LIMITS) || !is_positive {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the stream of a configuration is a handle, as if it were an argument.
    state
        .queried_stream(unsafe { Pointer::from_raw(config.hStream) })
        .map(drop)
}
