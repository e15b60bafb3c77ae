//! Device memory shared between processes (CUDA IPC).

use std::ffi::c_char;
use std::fmt;

use curium_driver::extend::release;
use curium_driver::sys::{CUdeviceptr, CUipcMem_flags, CUipcMemHandle, CUipcMemHandle_st};
use curium_driver::{Context, DevicePointer, Result, Returned, call};

curium_driver::shared_handle! {
    /// An IPC handle of device memory, for another process on the same machine. It is an array of
    /// bytes, which can be sent over any channel.
    ///
    /// Only memory allocated with `cuMemAlloc` has such handles. Stream-ordered memory is shared
    /// through its [pool](curium_memory::MemoryPool::export_fd).
    pub struct IpcMemoryHandle of CUipcMemHandle;
}

/// Device memory of another process. Close it before that process frees the memory. Wrap it in a
/// [`BorrowedBuffer`](curium_memory::BorrowedBuffer) to use it like a buffer.
pub struct IpcMemory {
    address: CUdeviceptr,
    context: Context,
}

impl IpcMemoryHandle {
    /// Returns the handle of the allocation that `pointer` points into. Another process can
    /// [open](IpcMemory::open) it for as long as the allocation exists.
    ///
    /// CUDA: `cuIpcGetMemHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `pointer` does not point into memory allocated with
    /// `cuMemAlloc`.
    #[doc(alias = "cuIpcGetMemHandle")]
    #[doc(alias = "cudaIpcGetMemHandle")]
    pub fn of<T>(context: &Context, pointer: DevicePointer<T>) -> Result<Self> {
        let mut handle = CUipcMemHandle::default();
        context.entered(|driver| {
            // SAFETY: `handle` is a valid pointer, the context is current, and the driver validates
            // the address.
            unsafe { call!(driver, cuIpcGetMemHandle(&raw mut handle, pointer.as_raw())) }
                .map_err(|error| error.about(format!("address {pointer:?}")))
        })?;
        Ok(Self(handle.reserved.map(|byte| byte.to_ne_bytes()[0])))
    }
}

impl IpcMemory {
    /// Opens memory of another process in `context`. Enables peer access if the memory is on
    /// another device.
    ///
    /// CUDA: `cuIpcOpenMemHandle_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` in the exporting process; `CUDA_ERROR_INVALID_VALUE` for an
    /// invalid handle; `CUDA_ERROR_TOO_MANY_PEERS`.
    #[doc(alias = "cuIpcOpenMemHandle")]
    #[doc(alias = "cudaIpcOpenMemHandle")]
    pub fn open(context: &Context, handle: IpcMemoryHandle) -> Result<Self> {
        let handle = CUipcMemHandle_st {
            reserved: handle.0.map(|byte| c_char::from_ne_bytes([byte])),
        };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
        let address = context.entered(|driver| {
            let mut address = 0;
            // SAFETY: `address` is a valid pointer, the context is current, and the driver checks
            // the bytes of the handle.
            unsafe { call!(driver, cuIpcOpenMemHandle_v2(&raw mut address, handle, flags) creates address) }?;
            Ok(address)
        })?;
        Ok(Self {
            address,
            context: context.clone(),
        })
    }

    /// Returns the address of the first byte in this process. Accesses through the pointer are not
    /// tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// Returns the context in which the memory was opened.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Closes the memory, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuIpcCloseMemHandle`.
    ///
    /// # Errors
    ///
    /// Returns the memory together with the error if the driver fails.
    #[doc(alias = "cuIpcCloseMemHandle")]
    #[doc(alias = "cudaIpcCloseMemHandle")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.end().map_err(|error| Returned::new(self, error))
    }

    fn end(&mut self) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the memory is open, its context is current, and it is not used after this
            // call.
            unsafe { call!(driver, cuIpcCloseMemHandle(self.address)) }
        })?;
        self.address = 0;
        Ok(())
    }
}

impl fmt::Debug for IpcMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IpcMemory({:?})", self.as_pointer())
    }
}

impl Drop for IpcMemory {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.end());
        }
    }
}
