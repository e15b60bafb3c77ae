//! Launches of kernels.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUdevice_attribute, CUfunction, CUfunction_attribute, CUkernel, CUlaunchAttribute,
    CUlaunchConfig, CUstream,
};

use crate::registry;
use crate::state::{self, INVALID_CONFIGURATION, INVALID_VALUE, Out, Result, enter, per_thread};
use crate::{cu, forward_without_context, runtime};

/// `dim3`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Dim3 {
    pub(crate) x: c_uint,
    pub(crate) y: c_uint,
    pub(crate) z: c_uint,
}

#[cfg(test)]
impl Dim3 {
    pub(crate) fn new(x: c_uint, y: c_uint, z: c_uint) -> Self {
        Self { x, y, z }
    }
}

/// The launch configuration in `<<<…>>>`.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: CUstream,
    attributes: *mut CUlaunchAttribute,
    count: c_uint,
}

/// The beginning of `cudaFuncAttributes`, which is the same in all versions.
#[repr(C)]
pub(crate) struct FuncAttributes {
    sizes: [usize; 3],
    numbers: [c_int; 7],
}

impl LaunchConfig {
    fn to_driver(&self) -> Result<CUlaunchConfig> {
        Ok(CUlaunchConfig {
            gridDimX: self.grid.x,
            gridDimY: self.grid.y,
            gridDimZ: self.grid.z,
            blockDimX: self.block.x,
            blockDimY: self.block.y,
            blockDimZ: self.block.z,
            sharedMemBytes: c_uint::try_from(self.shared).map_err(|_| INVALID_VALUE)?,
            hStream: self.stream,
            attrs: self.attributes,
            numAttrs: self.count,
        })
    }
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// Stores the configuration of the following launch.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: CUstream,
) -> c_uint {
    let configuration = Configuration {
        grid,
        block,
        shared,
        stream: stream.expose_provenance(),
    };
    CONFIGURATIONS.with_borrow_mut(|all| all.push(configuration));
    0
}

/// Returns the kernel of a host function as a function handle.
pub(crate) fn function(host: *const c_void) -> Result<CUfunction> {
    enter()?;
    Ok(registry::kernel(host)?.cast())
}

fn launch(function: CUfunction, config: &Configuration, values: *mut *mut c_void) -> Result<()> {
    let Configuration {
        grid,
        block,
        shared,
        stream,
    } = *config;
    let shared = c_uint::try_from(shared).map_err(|_| INVALID_VALUE)?;
    let stream: CUstream = ptr::with_exposed_provenance_mut(stream);
    // SAFETY: the caller of the runtime function guarantees the arguments.
    let launched = unsafe {
        cu!(cuLaunchKernel(
            function,
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            shared,
            stream,
            values,
            ptr::null_mut()
        ))
    };
    if exceeds_shared_memory(function, shared)? {
        launched
    } else {
        configured(launched)
    }
}

/// Returns `true` if a launch has more dynamic shared memory than its kernel opted in to.
fn exceeds_shared_memory(function: CUfunction, shared: c_uint) -> Result<bool> {
    let mut limit = 0;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if shared > 0 {
        // SAFETY: `limit` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuFuncGetAttribute(&raw mut limit, attribute, function)) }?;
    }
    Ok(i64::from(shared) > i64::from(limit))
}

fn kernel_attribute(kernel: CUkernel, attribute: CUfunction_attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: `value` is valid for writes, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe {
        cu!(cuKernelGetAttribute(
            &raw mut value,
            attribute,
            kernel,
            state::device()
        ))
    }?;
    Ok(value)
}

fn kernel_size(kernel: CUkernel, attribute: CUfunction_attribute) -> Result<usize> {
    Ok(usize::try_from(kernel_attribute(kernel, attribute)?).unwrap_or_default())
}

/// Refines the driver's invalid-value error: the runtime distinguishes an invalid configuration.
fn configured(launched: Result<()>) -> Result<()> {
    launched.map_err(|code| {
        if code == INVALID_VALUE {
            INVALID_CONFIGURATION
        } else {
            code
        }
    })
}

runtime! {
    fn __cudaPopCallConfiguration(
        grid: Out<Dim3>,
        block: Out<Dim3>,
        shared: Out<usize>,
        stream: Out<usize>,
    ) {
        const MISSING: c_int = 52;
        let popped = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(MISSING)?;
        grid.write(popped.grid)?;
        block.write(popped.block)?;
        shared.write(popped.shared)?;
        stream.write(popped.stream)
    }

    [cudaLaunchKernel_ptsz(stream)]
    fn cudaLaunchKernel(
        host: *const c_void,
        grid: Dim3,
        block: Dim3,
        values: *mut *mut c_void,
        shared: usize,
        stream: CUstream,
    ) {
        let config = Configuration { grid, block, shared, stream: stream.expose_provenance() };
        launch(function(host)?, &config, values)
    }

    fn __cudaGetKernel(kernel: Out<CUkernel>, host: *const c_void) {
        kernel.write(function(host)?.cast())
    }

    fn cudaGetKernel(kernel: Out<CUkernel>, host: *const c_void) {
        kernel.write(function(host)?.cast())
    }

    [__cudaLaunchKernel_ptsz(stream)]
    fn __cudaLaunchKernel(
        kernel: CUkernel,
        grid: Dim3,
        block: Dim3,
        values: *mut *mut c_void,
        shared: usize,
        stream: CUstream,
    ) {
        if kernel.is_null() {
            return Err(match state::last_error() {
                0 => state::INVALID_DEVICE_FUNCTION,
                earlier => earlier,
            });
        }
        enter()?;
        let config = Configuration { grid, block, shared, stream: stream.expose_provenance() };
        launch(kernel.cast(), &config, values)
    }

    [cudaLaunchCooperativeKernel_ptsz(stream)]
    fn cudaLaunchCooperativeKernel(
        host: *const c_void,
        grid: Dim3,
        block: Dim3,
        values: *mut *mut c_void,
        shared: usize,
        stream: CUstream,
    ) {
        let function = function(host)?;
        let shared = c_uint::try_from(shared).map_err(|_| INVALID_VALUE)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        configured(unsafe { cu!(cuLaunchCooperativeKernel(
            function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, values
        )) })
    }

    fn cudaLaunchKernelExC(config: Option<&LaunchConfig>, host: *const c_void, values: *mut *mut c_void) {
        let function = function(host)?;
        let config = config.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `config` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        configured(unsafe { cu!(cuLaunchKernelEx(&raw const config, function, values, ptr::null_mut())) })
    }

    fn cudaLaunchKernelExC_ptsz(
        config: Option<&LaunchConfig>,
        host: *const c_void,
        values: *mut *mut c_void,
    ) {
        let function = function(host)?;
        let mut config = config.ok_or(INVALID_VALUE)?.to_driver()?;
        config.hStream = per_thread(config.hStream);
        // SAFETY: `config` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        configured(unsafe { cu!(cuLaunchKernelEx(&raw const config, function, values, ptr::null_mut())) })
    }

    fn cudaOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        host: *const c_void,
        config: Option<&LaunchConfig>,
    ) {
        let function = function(host)?;
        let config = config.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `config` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuOccupancyMaxActiveClusters(clusters, function, &raw const config)) }
    }

    fn cudaOccupancyMaxPotentialClusterSize(
        size: *mut c_int,
        host: *const c_void,
        config: Option<&LaunchConfig>,
    ) {
        let function = function(host)?;
        let config = config.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `config` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuOccupancyMaxPotentialClusterSize(size, function, &raw const config)) }
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        size: *mut usize,
        host: *const c_void,
        blocks: c_int,
        threads: c_int,
    ) {
        let function = function(host)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuOccupancyAvailableDynamicSMemPerBlock(size, function, blocks, threads)) }
    }

    fn cudaFuncGetParamCount(host: *const c_void, count: *mut usize) {
        let kernel: CUkernel = function(host)?.cast();
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuKernelGetParamCount(kernel, count)) }
    }

    fn cudaFuncGetParamInfo(
        host: *const c_void,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) {
        let kernel: CUkernel = function(host)?.cast();
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuKernelGetParamInfo(kernel, index, offset, size)) }
    }

    // Shared memory has had one configuration since compute capability 5.0.
    fn cudaFuncSetSharedMemConfig(host: *const c_void, _config: c_int) {
        function(host).map(|_| ())
    }

    fn cudaFuncSetAttribute(host: *const c_void, attribute: c_int, value: c_int) {
        let kernel: CUkernel = function(host)?.cast();
        let attribute = CUfunction_attribute(attribute.cast_unsigned());
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuKernelSetAttribute(attribute, value, kernel, state::device())) }
    }

    fn cudaGetFuncBySymbol(function: Out<CUfunction>, host: *const c_void) {
        let kernel = self::function(host)?.cast();
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuKernelGetFunction(&raw mut handle, kernel)) }?;
        function.write(handle)
    }

    fn cudaFuncGetName(name: *mut *const c_char, host: *const c_void) {
        let kernel: CUkernel = function(host)?.cast();
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuKernelGetName(name, kernel)) }
    }

    fn cudaFuncSetCacheConfig(host: *const c_void, _config: c_int) {
        function(host).map(|_| ())
    }

    fn cudaFuncGetAttributes(attributes: Out<FuncAttributes>, host: *const c_void) {
        use CUfunction_attribute as Attribute;

        let kernel: CUkernel = function(host)?.cast();
        attributes.write(FuncAttributes {
            sizes: [
                kernel_size(kernel, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
                kernel_size(kernel, Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
                kernel_size(kernel, Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            ],
            numbers: [
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
                kernel_attribute(kernel, Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)?,
            ],
        })
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        host: *const c_void,
        threads: c_int,
        shared: usize,
    ) {
        let function = function(host)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared)) }
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        host: *const c_void,
        threads: c_int,
        shared: usize,
        flags: c_uint,
    ) {
        let function = function(host)?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, flags)) }
    }
}

forward_without_context! {
    unsafe fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int)
        = cuDeviceGetAttribute(value, CUdevice_attribute(attribute.cast_unsigned()), device);
}
