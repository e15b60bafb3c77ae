//! Virtual memory: addresses and memory apart, and what is mapped where.
//!
//! An [`AddressRange`] is addresses without memory, [`PhysicalMemory`] is memory without an address, and a [`Mapping`] puts the one
//! behind the other. A mapping owns both: whatever order handles are dropped in, the driver sees unmapping before the release of
//! the memory and the addresses.
//!
//! A new mapping may be used by nobody until [`Mapping::set_access`] says who may.

mod address_range;
mod mapping;
mod physical_memory;
mod properties;
mod sharing;

pub use self::address_range::{AddressRange, ReserveOptions};
pub use self::mapping::Mapping;
pub use self::physical_memory::PhysicalMemory;
pub use self::properties::{Granularity, PhysicalOptions, PhysicalUsage};
pub use self::sharing::FabricHandle;
