//! Devices.

use curium_sys::{CUdevice, CUdevice_attribute, CUresult};

use crate::config::{Config, SHARES_MEMORY};
use crate::result::Result;

/// The devices of a driver: what the settings alone decide.
#[derive(Clone, Copy)]
pub(crate) struct Devices<'a> {
    pub(crate) config: &'a Config,
}

impl Devices<'_> {
    /// Returns the index of the device with this ordinal.
    pub(crate) fn device(&self, ordinal: CUdevice) -> Result<usize> {
        let index = u32::try_from(ordinal)
            .ok()
            .filter(|index| *index < self.config.devices);
        index
            .map(|index| index as usize)
            .ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)
    }

    /// Checks that both devices exist and differ: every two devices have a link that supports
    /// accesses and all atomic operations, as between GPUs on one board, except integrated devices
    /// and those on Windows.
    pub(crate) fn link(&self, source: CUdevice, target: CUdevice) -> Result {
        if self.device(source)? == self.device(target)? {
            Err(CUresult::CUDA_ERROR_INVALID_DEVICE)
        } else {
            Ok(())
        }
    }

    /// Returns an attribute of a device: that of its model, unless the settings or the system
    /// decide it.
    pub(crate) fn attribute(&self, index: usize, attribute: CUdevice_attribute) -> Option<i32> {
        use CUdevice_attribute as Attribute;
        let config = self.config;
        let of_model = config.device_model.attribute(attribute)?;
        Some(match attribute {
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => pci_bus(index).into(),
            Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => {
                config.has_concurrent_managed_access().into()
            }
            Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS => {
                config.has_pageable_memory_access().into()
            }
            Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => {
                i32::from(config.handle_types() != 0)
            }
            Attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES
                if config.handle_types() == 0 =>
            {
                0
            }
            Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
            | Attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED
                if !SHARES_MEMORY =>
            {
                0
            }
            _ => config.platform.attribute(attribute).unwrap_or(of_model),
        })
    }

    /// Returns the compute capability of the devices, times ten.
    pub(crate) fn compute_capability(&self) -> u32 {
        self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
            + self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    }

    /// Returns an attribute of the hardware that every model has.
    pub(crate) fn attribute_value(&self, attribute: CUdevice_attribute) -> u32 {
        self.config.device_model.attribute_value(attribute)
    }
}

/// Returns the PCI bus of a device, which is unique.
pub(crate) fn pci_bus(index: usize) -> u8 {
    (index as u8).wrapping_add(1)
}
