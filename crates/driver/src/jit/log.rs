//! One run of the JIT compiler: its options as driver parameters, and its logs.

use std::borrow::Cow;
use std::ffi::{c_char, c_uint, c_void};
use std::time::Duration;

use curium_format::ptx;
use curium_sys::{CUjit_option, CUresult, CudaVersion};

use super::{HostSymbol, JitOptions};
use crate::base::error::CallError;
use crate::{Driver, Error};

/// The size of each of the two log buffers in bytes.
const LOG_SIZE: usize = 8 * 1024;

/// The logs of the JIT compiler or linker.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JitReport {
    /// The information log: the compiled functions, and with [`JitOptions::verbose`] the resources
    /// of each kernel. Empty for machine code, and if the code came from the driver's cache.
    pub info: Box<str>,
    /// The error log: errors and warnings.
    pub errors: Box<str>,
    /// The wall time of the compilation, if [`JitOptions::measure_time`] was set.
    pub wall_time: Option<Duration>,
    /// The number of threads per block that the compiler assumed, if
    /// [`JitOptions::threads_per_block`] was set.
    pub threads_per_block: Option<u32>,
}

/// The options of one run, with buffers for its output, which must outlive all uses by the driver.
pub(crate) struct Compilation {
    names: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
    errors: Vec<u8>,
    info: Vec<u8>,
    /// Arrays that option values point to.
    _pointers: Vec<Vec<*mut c_void>>,
}

// SAFETY: the pointers refer to memory that this value owns, or are borrowed for the duration of
// the call.
unsafe impl Send for Compilation {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for Compilation {}

impl Compilation {
    pub(crate) fn new(options: &JitOptions<'_>) -> Self {
        let mut compilation = Self::empty();
        compilation.add_logs();
        compilation.add_options(options);
        compilation
    }

    /// Returns the options of one linker input. The logs belong to the linker.
    pub(crate) fn for_input(options: &JitOptions<'_>) -> Self {
        let mut compilation = Self::empty();
        compilation.add_options(options);
        compilation
    }
    pub(crate) fn len(&self) -> c_uint {
        // The number of options is bounded by a small constant.
        self.names.len() as c_uint
    }

    pub(crate) fn options(&mut self) -> *mut CUjit_option {
        self.names.as_mut_ptr()
    }

    pub(crate) fn values(&mut self) -> *mut *mut c_void {
        self.values.as_mut_ptr()
    }

    /// Returns the 32-bit value that the driver has stored for an option, in the lower half of a
    /// pointer.
    fn answer(&self, option: CUjit_option) -> Option<u32> {
        self.value(option).map(|value| value.addr() as u32)
    }

    /// Returns the logs that the driver has written.
    pub(crate) fn report(&self) -> JitReport {
        let milliseconds = self
            .answer(CUjit_option::CU_JIT_WALL_TIME)
            .map(f32::from_bits);
        JitReport {
            info: text(&self.info),
            errors: text(&self.errors),
            wall_time: milliseconds
                .and_then(|time| Duration::try_from_secs_f64(f64::from(time) / 1e3).ok()),
            threads_per_block: self.answer(CUjit_option::CU_JIT_THREADS_PER_BLOCK),
        }
    }

    /// Adds the error log to `error`, and a hint if the version of `ptx` is the cause.
    #[cold]
    pub(crate) fn explain(&self, driver: &Driver, ptx: Option<&str>, error: Error) -> Error {
        error
            .with_log(&text(&self.errors))
            .advised(|error| version_advice(driver, ptx?, error))
    }

    fn empty() -> Self {
        Self {
            names: Vec::new(),
            values: Vec::new(),
            errors: Vec::new(),
            info: Vec::new(),
            _pointers: Vec::new(),
        }
    }

    fn add_options(&mut self, options: &JitOptions<'_>) {
        for (option, value) in options.numbers() {
            self.add_number(option, value as usize);
        }
        if options.measure_time {
            self.add_number(CUjit_option::CU_JIT_WALL_TIME, 0);
        }
        self.add_names(options);
    }

    fn add_logs(&mut self) {
        self.errors = vec![0; LOG_SIZE];
        self.info = vec![0; LOG_SIZE];
        let errors = self.errors.as_mut_ptr().cast();
        let info = self.info.as_mut_ptr().cast();
        self.add(CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors);
        self.add_number(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_SIZE);
        self.add(CUjit_option::CU_JIT_INFO_LOG_BUFFER, info);
        self.add_number(CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_SIZE);
    }

    fn add_names(&mut self, options: &JitOptions<'_>) {
        let lto = options.lto.unwrap_or_default();
        let kernels = lto
            .referenced_kernels
            .iter()
            .map(|name| name.as_ptr())
            .collect();
        let variables = lto
            .referenced_variables
            .iter()
            .map(|name| name.as_ptr())
            .collect();
        let symbols: Vec<_> = options.symbols.iter().map(HostSymbol::name).collect();
        if !symbols.is_empty() {
            let addresses = options.symbols.iter().map(HostSymbol::address).collect();
            self.add_array(CUjit_option::CU_JIT_GLOBAL_SYMBOL_ADDRESSES, addresses);
        }
        for (names, array, count) in [
            (
                symbols,
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_NAMES,
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT,
            ),
            (
                kernels,
                CUjit_option::CU_JIT_REFERENCED_KERNEL_NAMES,
                CUjit_option::CU_JIT_REFERENCED_KERNEL_COUNT,
            ),
            (
                variables,
                CUjit_option::CU_JIT_REFERENCED_VARIABLE_NAMES,
                CUjit_option::CU_JIT_REFERENCED_VARIABLE_COUNT,
            ),
        ] {
            if !names.is_empty() {
                self.add_number(count, names.len());
                self.add_array(
                    array,
                    names
                        .into_iter()
                        .map(|name: *const c_char| name.cast_mut().cast())
                        .collect(),
                );
            }
        }
    }

    fn add(&mut self, option: CUjit_option, value: *mut c_void) {
        self.names.push(option);
        self.values.push(value);
    }

    fn add_number(&mut self, option: CUjit_option, value: usize) {
        self.add(option, std::ptr::without_provenance_mut(value));
    }

    fn add_array(&mut self, option: CUjit_option, mut array: Vec<*mut c_void>) {
        self.add(option, array.as_mut_ptr().cast());
        self._pointers.push(array);
    }

    fn value(&self, option: CUjit_option) -> Option<*mut c_void> {
        self.names
            .iter()
            .position(|name| *name == option)
            .map(|index| self.values[index])
    }
}

/// Returns the text before the first NUL.
fn text(bytes: &[u8]) -> Box<str> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into()
}

/// Returns a hint about the PTX version, if it caused the failure.
fn version_advice(driver: &Driver, ptx: &str, error: &CallError) -> Option<Cow<'static, str>> {
    if error.code != CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION {
        return None;
    }
    let needed_ptx = ptx::version(ptx)?;
    let needed = match needed_ptx.first_cuda() {
        Some(version) => format!("CUDA {version} or newer"),
        None => format!("a CUDA newer than {}", CudaVersion::NEWEST_KNOWN),
    };
    let version = driver.version();
    Some(Cow::Owned(format!(
        "PTX {needed_ptx} needs a driver for {needed}, and this one is for CUDA {version}: update the driver, \
         compile with an nvcc or NVRTC of CUDA {version} or older, or compile to a cubin for the device"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_passed_with_their_count() {
        let mut target = 0_u32;
        // SAFETY: no code is loaded with this symbol.
        let symbols = [unsafe { HostSymbol::new(c"table", (&raw mut target).cast()) }];
        let compilation = Compilation::new(&JitOptions::new().with_symbols(&symbols));
        let symbol_count = compilation.value(CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT);
        assert_eq!(symbol_count.map(<*mut c_void>::addr), Some(1));
        assert_eq!(compilation._pointers[0], [(&raw mut target).cast()]);
        assert_eq!(
            compilation._pointers[1],
            [c"table".as_ptr().cast_mut().cast()]
        );
        let kernel_count = compilation.value(CUjit_option::CU_JIT_REFERENCED_KERNEL_COUNT);
        assert_eq!(kernel_count, None);
    }

    #[test]
    fn answers_are_read_from_the_values() {
        let options = JitOptions::new()
            .with_measure_time(true)
            .with_threads_per_block(64);
        let mut compilation = Compilation::new(&options);
        let time = compilation
            .names
            .iter()
            .position(|name| *name == CUjit_option::CU_JIT_WALL_TIME);
        compilation.values[time.expect("the option is present")] =
            std::ptr::without_provenance_mut(1.5_f32.to_bits() as usize);
        compilation.info[..3].copy_from_slice(b"abc");
        let report = compilation.report();
        assert_eq!(report.wall_time, Some(Duration::from_micros(1500)));
        assert_eq!(report.threads_per_block, Some(64));
        assert_eq!((&*report.info, &*report.errors), ("abc", ""));
        assert_eq!(
            Compilation::new(&JitOptions::new()).report().wall_time,
            None
        );
    }
}
