//! Mapped memory of a host NUMA node.

use curium_driver::{Context, Error, Result};

use super::{AddressRange, Granularity, Mapping, PhysicalMemory, PhysicalOptions};
use crate::{MemoryAccess, MemoryLocation};

/// Maps at least `bytes` bytes of a node for the host and the device of `context`.
pub(crate) fn map_on_node(
    operation: &'static str,
    context: &Context,
    node: u32,
    bytes: usize,
) -> Result<Mapping> {
    let node = i32::try_from(node)
        .map_err(|_| Error::argument(operation, format!("no such NUMA node {node}")))?;
    let driver = context.driver();
    let location = MemoryLocation::HostNuma(node);
    let options = PhysicalOptions::new(location);
    let granularity = options.granularity(driver, Granularity::Minimum)?.max(1);
    let padded = bytes.checked_next_multiple_of(granularity);
    let padded = padded
        .ok_or_else(|| Error::argument(operation, format!("size overflow ({bytes} bytes)")))?;
    let memory = PhysicalMemory::with_options(driver, padded, &options)?;
    let mapping = AddressRange::reserve(driver, padded)?.map(0, &memory)?;
    let users = [location, context.device().into()].map(|user| (user, MemoryAccess::ReadWrite));
    mapping.set_accesses(&users)?;
    Ok(mapping)
}
