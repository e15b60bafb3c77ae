//! The C functions: one file per CUDA object, with the functions of that object as methods of
//! [`Call`] under their C names.
//!
//! A method receives the unchecked arguments of the C function, and returns `Ok` or the code. It
//! checks handles and null pointers in the order in which hardware does. The steps that all calls
//! have in common are in [`Driver::admit`].

mod array;
mod capture;
mod checkpoint;
mod context;
mod copy;
mod device;
mod device_memory;
mod error;
mod event;
mod function;
mod graph;
mod green;
mod host_function;
mod host_memory;
mod image;
mod ipc;
mod ipc_event;
mod kernel;
mod launch;
mod library;
mod link;
mod log;
mod managed;
mod memset;
mod module;
mod notification;
mod occupancy;
mod pointer;
mod pool;
mod profiler;
mod residency;
mod resource;
mod retired;
mod stream;
mod stream_attribute;
mod stream_memory_operation;
mod symbol;
mod tensor_map;
mod texture;
mod virtual_memory;

use std::ops::Deref;

use curium_sys::CUresult;

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::result::Result;

/// A call of a C function.
pub(crate) struct Call<'a> {
    driver: &'a Driver,
}

impl<'a> Call<'a> {
    /// Creates a call that [`Driver::admit`] has let through.
    pub(crate) fn new(driver: &'a Driver) -> Self {
        Self { driver }
    }
}

impl Deref for Call<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuInit(&self, flags: u32) -> Result {
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if self.config().devices == 0 {
            return Err(CUresult::CUDA_ERROR_NO_DEVICE);
        }
        self.initialize();
        Ok(())
    }

    pub(crate) fn cuDriverGetVersion(&self, version: Pointer<i32>) -> Result {
        version.write(self.config().driver_version.as_raw().cast_signed())
    }
}
