//! Live objects: created and not yet destroyed.

mod object;

use std::fmt;

pub use self::object::LiveObject;

/// The number of live objects of a simulator by kind, for tests that detect leaks.
///
/// Primary contexts count while they are retained. Default streams, default pools and the objects
/// of a module or library do not count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LiveHandles {
    /// Contexts, primary ones included.
    pub contexts: u64,
    /// Streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Callbacks for the notifications of devices and for the log.
    pub listeners: u64,
    /// Modules.
    pub modules: u64,
    /// Libraries.
    pub libraries: u64,
    /// Links.
    pub links: u64,
    /// Graphs that are not part of another graph.
    pub graphs: u64,
    /// Executable graphs.
    pub executable_graphs: u64,
    /// User objects.
    pub user_objects: u64,
    /// Memory pools.
    pub pools: u64,
    /// Allocations of device memory.
    pub device_allocations: u64,
    /// Allocations of pinned host memory.
    pub host_allocations: u64,
    /// Allocations of managed memory.
    pub managed_allocations: u64,
    /// Ranges of host memory that are registered.
    pub registrations: u64,
    /// Reserved ranges of addresses.
    pub address_ranges: u64,
    /// Physical allocations that have a handle or a mapping.
    pub physical_allocations: u64,
    /// Mappings of physical memory.
    pub mappings: u64,
    /// Opened memory of other processes.
    pub imported_allocations: u64,
    /// Arrays, with each level of a mipmapped array counted separately.
    pub arrays: u64,
    /// Texture objects.
    pub textures: u64,
    /// Surface objects.
    pub surfaces: u64,
}

impl LiveHandles {
    /// Returns the number of objects of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts().iter().map(|(_, count)| count).sum()
    }

    /// Returns `true` if nothing is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("contexts", self.contexts),
            ("streams", self.streams),
            ("events", self.events),
            ("listeners", self.listeners),
            ("modules", self.modules),
            ("libraries", self.libraries),
            ("links", self.links),
            ("graphs", self.graphs),
            ("executable graphs", self.executable_graphs),
            ("user objects", self.user_objects),
            ("pools", self.pools),
            ("device allocations", self.device_allocations),
            ("host allocations", self.host_allocations),
            ("managed allocations", self.managed_allocations),
            ("registrations", self.registrations),
            ("address ranges", self.address_ranges),
            ("physical allocations", self.physical_allocations),
            ("mappings", self.mappings),
            ("imported allocations", self.imported_allocations),
            ("arrays", self.arrays),
            ("textures", self.textures),
            ("surfaces", self.surfaces),
        ]
    }
}

impl fmt::Display for LiveHandles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.write_str("nothing is live");
        }
        let live = self.counts().into_iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = live
            .map(|(kind, count)| format!("{kind}: {count}"))
            .collect();
        write!(formatter, "live {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_live_kinds_only() {
        let live = LiveHandles {
            streams: 2,
            device_allocations: 1,
            ..LiveHandles::default()
        };
        assert_eq!(live.to_string(), "live streams: 2, device allocations: 1");
        assert_eq!((live.total(), live.is_empty()), (3, false));
        assert_eq!(LiveHandles::default().to_string(), "nothing is live");
    }
}
