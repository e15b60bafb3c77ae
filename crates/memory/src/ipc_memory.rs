//! Device memory that several processes of one machine use.

use std::ffi::c_char;
use std::fmt;

use curium_driver::sys::{CUdeviceptr, CUipcMem_flags, CUipcMemHandle, CUipcMemHandle_st};
use curium_driver::{Context, DevicePointer, Result, Returned, call, release};

curium_driver::shared_handle! {
    /// Names device memory of one process to another on the same machine. It is plain bytes, which any channel between the two can carry.
    ///
    /// Only memory that was allocated at once has such handles, not memory that was allocated in stream order: that is shared by its
    /// [pool](crate::MemoryPool::export_fd).
    pub struct IpcMemoryHandle of CUipcMemHandle;
}

/// Device memory of another process. It must be gone before that process frees it. A [`ForeignBuffer`](crate::ForeignBuffer) of it is used
/// like a buffer of this process.
pub struct IpcMemory {
    address: CUdeviceptr,
    context: Context,
}

impl IpcMemoryHandle {
    /// The name of the memory that `pointer` points into, whose allocation another process can [open](IpcMemory::open) for as long as
    /// it exists.
    ///
    /// CUDA: `cuIpcGetMemHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `pointer` points to no such memory.
    #[doc(alias = "cuIpcGetMemHandle")]
    #[inline]
    pub fn of<T>(context: &Context, pointer: DevicePointer<T>) -> Result<Self> {
        let mut handle = CUipcMemHandle::default();
        context.entered(|driver| {
            // SAFETY: `handle` is a valid place for the answer, the context is current, and the driver looks the address up.
            unsafe { call!(driver, cuIpcGetMemHandle(&raw mut handle, pointer.as_raw())) }
                .map_err(|error| error.about(format!("address {pointer:?}")))
        })?;
        Ok(Self(handle.reserved.map(|byte| byte.to_ne_bytes()[0])))
    }
}

impl IpcMemory {
    /// Opens memory of another process in `context`. If it is on another device, peer access to that is enabled as well.
    ///
    /// CUDA: `cuIpcOpenMemHandle_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` in the process that the memory is of; `CUDA_ERROR_INVALID_VALUE` if the handle names no memory;
    /// `CUDA_ERROR_TOO_MANY_PEERS`.
    #[doc(alias = "cuIpcOpenMemHandle")]
    #[inline]
    pub fn open(context: &Context, handle: IpcMemoryHandle) -> Result<Self> {
        let handle = CUipcMemHandle_st { reserved: handle.0.map(|byte| c_char::from_ne_bytes([byte])) };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
        let address = context.entered(|driver| {
            let mut address = 0;
            // SAFETY: `address` is a valid place for the answer, the context is current, and the driver checks the bytes of the handle.
            unsafe { call!(driver, cuIpcOpenMemHandle_v2(&raw mut address, handle, flags) creates address) }?;
            Ok(address)
        })?;
        Ok(Self { address, context: context.clone() })
    }

    /// The address of the first byte in this process. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// The context that the memory was opened in.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Ends the use of the memory in this process, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuIpcCloseMemHandle`.
    ///
    /// # Errors
    ///
    /// Gives the memory back if the driver refuses.
    #[doc(alias = "cuIpcCloseMemHandle")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.end().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the memory is open, its context is current, and it is forgotten once it is closed.
            unsafe { call!(driver, cuIpcCloseMemHandle(self.address)) }
        })?;
        self.address = 0;
        Ok(())
    }
}

impl fmt::Debug for IpcMemory {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IpcMemory({:?})", self.as_pointer())
    }
}

impl Drop for IpcMemory {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.end());
        }
    }
}
