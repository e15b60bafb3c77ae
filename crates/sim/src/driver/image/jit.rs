//! JIT options: the log buffers, and the maximum number of registers.

use std::ffi::{c_char, c_void};

use curium_sys::{CUjit_option, CUresult};

use crate::argument::Pointer;
use crate::driver::Result;

/// The options that a caller passed.
#[derive(Clone, Copy)]
pub(crate) struct JitOptions {
    names: Pointer<CUjit_option>,
    values: Pointer<*mut c_void>,
    count: usize,
}

impl JitOptions {
    /// Returns the options that a caller passed for one call.
    pub(crate) fn new(
        names: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        count: u32,
    ) -> Result<Self> {
        let count = count as usize;
        if count > 0 && (names.is_null() || values.is_null()) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let options = Self {
            names,
            values,
            count,
        };
        let are_valid =
            (0..count).all(|index| options.name(index).0 < CUjit_option::CU_JIT_NUM_OPTIONS.0);
        if are_valid {
            Ok(options)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(crate) fn none() -> Self {
        Self {
            names: Pointer::null(),
            values: Pointer::null(),
            count: 0,
        }
    }

    /// Returns the maximum number of registers per thread.
    pub(crate) fn max_registers(&self) -> Option<u32> {
        let index = self.find(CUjit_option::CU_JIT_MAX_REGISTERS)?;
        // The low half of the pointer contains the number.
        Some(self.value(index).addr() as u32).filter(|registers| *registers > 0)
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
        let capacity = self.value(size).addr();
        // SAFETY: the value of this option is a buffer with the size in the other option.
        let output: Pointer<c_char> = unsafe { Pointer::from_raw(self.value(buffer).cast()) };
        let written = if output.is_null() || capacity == 0 {
            0
        } else {
            // SAFETY: the buffer has `capacity` bytes, at least one.
            unsafe { output.fill_with(log, capacity) }
        };
        // SAFETY: the index is below the number of options.
        let size = unsafe { self.values.as_ptr().add(size) };
        // SAFETY: the caller passed an array of values, in which sizes are replaced.
        unsafe { size.write(std::ptr::without_provenance_mut(written)) };
    }

    fn find(&self, option: CUjit_option) -> Option<usize> {
        (0..self.count).find(|index| self.name(*index) == option)
    }

    fn name(&self, index: usize) -> CUjit_option {
        // SAFETY: the index is below the number of options, of which the caller passed an array.
        let name = unsafe { self.names.as_ptr().add(index) };
        // SAFETY: the name is an element of the caller's array.
        unsafe { name.read() }
    }

    fn value(&self, index: usize) -> *mut c_void {
        // SAFETY: the index is below the number of options, of whose values the caller passed an array.
        let value = unsafe { self.values.as_ptr().add(index) };
        // SAFETY: the value is an element of the caller's array.
        unsafe { value.read() }
    }
}
