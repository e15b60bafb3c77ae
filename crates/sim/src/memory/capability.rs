//! Capabilities of allocations for sharing.

use curium_sys::CU_MEM_CREATE_USAGE_HW_DECOMPRESS;

use super::{Allocation, Memory, Purpose, Records};
use crate::config::SHARES_MEMORY;

/// The uses of an allocation besides reads and writes in one process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capability {
    /// The mask of the handle types that it can be exported as.
    pub(crate) handle_types: u32,
    /// `true` if another process can open it through an IPC handle.
    pub(crate) is_opened: bool,
    /// `true` if other devices on the bus can access it.
    pub(crate) is_on_bus: bool,
    pub(crate) is_decompressed: bool,
    /// The access rights of the queried device.
    pub(crate) rights: u32,
}

impl Memory {
    /// Returns the capabilities of an allocation for a device.
    pub(crate) fn capability(&self, allocation: &Allocation, device: usize) -> Capability {
        let records = self.read();
        let rights = [3, 1]
            .into_iter()
            .find(|rights| records.allows(allocation, Some(device), *rights))
            .unwrap_or(0);
        Capability {
            rights,
            ..records.capability_kind(allocation)
        }
    }
}

impl Records {
    fn capability_kind(&self, allocation: &Allocation) -> Capability {
        match allocation.purpose {
            Purpose::Device => Capability {
                is_opened: SHARES_MEMORY,
                is_on_bus: true,
                is_decompressed: true,
                ..Capability::default()
            },
            Purpose::Mapped(_) => self.mapping_properties(allocation.base).map_or_else(
                Capability::default,
                |properties| Capability {
                    handle_types: properties.handle_types,
                    is_on_bus: properties.gpu_direct != 0,
                    is_decompressed: u32::from(properties.usage)
                        & CU_MEM_CREATE_USAGE_HW_DECOMPRESS
                        != 0,
                    ..Capability::default()
                },
            ),
            Purpose::Pool(pool) | Purpose::HostPool(pool) | Purpose::ManagedPool(pool) => {
                Capability {
                    handle_types: self.pools.get(pool).map_or(0, |pool| pool.handle_types),
                    ..Capability::default()
                }
            }
            _ => Capability::default(),
        }
    }
}
