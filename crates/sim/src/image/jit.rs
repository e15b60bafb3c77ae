//! JIT options: the log buffers, and the maximum number of registers.

use std::ffi::{c_char, c_void};
use std::slice;

use curium_sys::{CUjit_option, CUresult};

use crate::argument::Pointer;
use crate::result::Result;

/// The options that a caller passed, read when it passed them: the caller may reuse the array of
/// names for anything else.
#[derive(Clone)]
pub(crate) struct JitOptions {
    names: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
    /// The caller's array of values, in which the sizes of logs are replaced.
    outputs: Pointer<*mut c_void>,
}

impl JitOptions {
    /// Returns the options that a caller passed for one call.
    pub(crate) fn new(
        names: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        count: u32,
    ) -> Result<Self> {
        let count = count as usize;
        if count == 0 {
            return Ok(Self::none());
        }
        if names.is_null() || values.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let outputs = values;
        // SAFETY: by the contract of the C function, the array has `count` names.
        let names = unsafe { slice::from_raw_parts(names.as_ptr(), count) }.to_vec();
        // SAFETY: by the contract of the C function, the array has `count` values.
        let values = unsafe { slice::from_raw_parts(values.as_ptr(), count) }.to_vec();
        if names
            .iter()
            .any(|name| name.0 >= CUjit_option::CU_JIT_NUM_OPTIONS.0)
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Self {
            names,
            values,
            outputs,
        })
    }

    pub(crate) fn none() -> Self {
        Self {
            names: Vec::new(),
            values: Vec::new(),
            outputs: Pointer::null(),
        }
    }

    /// Returns the maximum number of registers per thread.
    pub(crate) fn max_registers(&self) -> Option<u32> {
        let index = self.find(CUjit_option::CU_JIT_MAX_REGISTERS)?;
        // The low half of the pointer contains the number.
        Some(self.values[index].addr() as u32).filter(|registers| *registers > 0)
    }

    /// Returns `true` if the caller passed a buffer for a log.
    pub(crate) fn has_log(&self) -> bool {
        self.find(CUjit_option::CU_JIT_ERROR_LOG_BUFFER)
            .or_else(|| self.find(CUjit_option::CU_JIT_INFO_LOG_BUFFER))
            .is_some()
    }

    /// Writes the error log and an empty info log into the buffers that the caller passed.
    pub(crate) fn report(&self, errors: &str) {
        self.fill(
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            errors,
        );
        self.fill(
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            "",
        );
    }

    /// Writes a log, and replaces the buffer size by the number of bytes written.
    fn fill(&self, buffer: CUjit_option, size: CUjit_option, log: &str) {
        let (Some(buffer), Some(size)) = (self.find(buffer), self.find(size)) else {
            return;
        };
        let capacity = self.values[size].addr();
        // SAFETY: the value of this option is a buffer with the size in the other option.
        let output: Pointer<c_char> = unsafe { Pointer::from_raw(self.values[buffer].cast()) };
        let written = if output.is_null() || capacity == 0 {
            0
        } else {
            // SAFETY: the buffer has `capacity` bytes, at least one.
            unsafe { output.fill_with(log, capacity) }
        };
        // SAFETY: the index is below the number of options.
        let size = unsafe { self.outputs.as_ptr().add(size) };
        // SAFETY: the caller keeps the array of values, in which sizes are replaced, as long as the
        // options are used.
        unsafe { size.write(std::ptr::without_provenance_mut(written)) };
    }

    fn find(&self, option: CUjit_option) -> Option<usize> {
        self.names.iter().position(|name| *name == option)
    }
}
