//! The C functions for fills of memory.

mod rows;

use curium_sys::{CUdeviceptr, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::copy::legacy;
use crate::memory::Fill;
use crate::object::graph::content::{Content, Set};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemsetD8_v2(&self, address: CUdeviceptr, value: u8, count: usize) -> Result {
        self.fill_now(
            address,
            Fill {
                value: value.into(),
                width: 1,
                count,
            },
        )
    }

    pub(crate) fn cuMemsetD16_v2(&self, address: CUdeviceptr, value: u16, count: usize) -> Result {
        self.fill_now(
            address,
            Fill {
                value: value.into(),
                width: 2,
                count,
            },
        )
    }

    pub(crate) fn cuMemsetD32_v2(&self, address: CUdeviceptr, value: u32, count: usize) -> Result {
        self.fill_now(
            address,
            Fill {
                value,
                width: 4,
                count,
            },
        )
    }

    pub(crate) fn cuMemsetD8Async(
        &self,
        address: CUdeviceptr,
        value: u8,
        count: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.fill_async(
            address,
            Fill {
                value: value.into(),
                width: 1,
                count,
            },
            stream,
        )
    }

    pub(crate) fn cuMemsetD16Async(
        &self,
        address: CUdeviceptr,
        value: u16,
        count: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.fill_async(
            address,
            Fill {
                value: value.into(),
                width: 2,
                count,
            },
            stream,
        )
    }

    pub(crate) fn cuMemsetD32Async(
        &self,
        address: CUdeviceptr,
        value: u32,
        count: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.fill_async(
            address,
            Fill {
                value,
                width: 4,
                count,
            },
            stream,
        )
    }
}

impl Call<'_> {
    /// Fills in the default stream. The host waits only if it can access the memory.
    fn fill_now(&self, address: CUdeviceptr, fill: Fill) -> Result {
        self.require_current()?;
        self.fill_async(address, fill, legacy())?;
        let is_on_host = self
            .memory()
            .find(address)
            .is_some_and(|allocation| allocation.purpose.is_on_host());
        if is_on_host {
            self.cuStreamSynchronize(legacy())
        } else {
            Ok(())
        }
    }

    fn fill_async(&self, address: CUdeviceptr, fill: Fill, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let size = fill
            .count
            .checked_mul(fill.width)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if !address.is_multiple_of(fill.width as u64) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.operands().filled(address, size)?;
        if size == 0 {
            return Ok(());
        }
        state.enqueue(stream, Content::Set(Set::new(address, fill, 0, 1)))
    }
}
