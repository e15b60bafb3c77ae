//! Virtual memory management (VMM).
//!
//! An [`AddressRange`] is a reserved range of virtual addresses, a [`PhysicalMemory`] is a physical
//! allocation, and a [`Mapping`] maps physical memory into a range. A mapping keeps both alive, so
//! handles may be dropped in any order.
//!
//! A new mapping is inaccessible until [`Mapping::set_access`] grants access.

mod address_range;
mod mapping;
mod node;
mod physical_memory;
mod properties;
mod sharing;

pub use self::address_range::{AddressRange, ReserveOptions};
pub use self::mapping::Mapping;
pub(crate) use self::node::map_on_node;
pub use self::physical_memory::PhysicalMemory;
pub use self::properties::{Granularity, PhysicalOptions, PhysicalUsage};
pub use self::sharing::FabricHandle;
