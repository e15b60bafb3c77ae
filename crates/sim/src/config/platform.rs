//! The operating systems whose drivers are simulated.

use curium_sys::CUdevice_attribute as Attribute;

/// The operating system whose driver is simulated. The simulator itself runs on any.
///
/// | | Linux | Windows (WDDM) | WSL 2 |
/// |---|---|---|---|
/// | concurrent managed access | by device model | no | no |
/// | pageable memory access | by device model | no | no |
/// | peer access | yes | no | no |
/// | file descriptors of memory | yes | no | no |
/// | time limit for kernels | no | yes | yes |
///
/// The time limit is an attribute: the simulator stops no kernel, since kernels take much longer
/// here. A [`Fault`](crate::Fault) can return `CUDA_ERROR_LAUNCH_TIMEOUT`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Platform {
    /// Linux.
    #[default]
    Linux,
    /// Windows, with a device that also draws the desktop: the driver model WDDM.
    Windows,
    /// Linux in WSL 2, on the driver of Windows.
    Wsl,
}

impl Platform {
    /// All platforms.
    pub(super) const ALL: [Self; 3] = [Self::Linux, Self::Windows, Self::Wsl];

    /// Returns the name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::Wsl => "wsl",
        }
    }

    /// Returns `true` if Windows manages the memory of the devices.
    pub(crate) const fn is_windows(self) -> bool {
        matches!(self, Self::Windows | Self::Wsl)
    }

    /// Returns an attribute of a device whose value depends on Windows.
    pub(crate) fn attribute(self, attribute: Attribute) -> Option<i32> {
        if !self.is_windows() {
            return None;
        }
        match attribute {
            Attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT => Some(1),
            Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
            | Attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
            | Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
            | Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
            | Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
            | Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED => Some(0),
            _ => None,
        }
    }
}
