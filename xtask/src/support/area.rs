//! The areas of the driver API, which are counted separately.

use std::fmt;

/// A part of the driver API.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Area {
    Driver,
    Graph,
    Memory,
}

impl Area {
    pub(crate) const ALL: [Self; 3] = [Self::Driver, Self::Memory, Self::Graph];

    /// Returns the area of the function called `name`.
    pub(crate) fn from_name(name: &str) -> Self {
        if starts_with_any(name, GRAPH) && !name.starts_with("cuGraphics")
            || name.starts_with("cuStream") && name.contains("apture")
        {
            Self::Graph
        } else if starts_with_any(name, MEMORY)
            || MEMORY_PARTS.iter().any(|part| name.contains(part))
        {
            Self::Memory
        } else {
            Self::Driver
        }
    }
}

const GRAPH: &[&str] = &[
    "cuGraph",
    "cuUserObject",
    "cuDeviceGetGraphMem",
    "cuDeviceSetGraphMem",
    "cuDeviceGraphMem",
];

const MEMORY: &[&str] = &[
    "cuArray",
    "cuFabricCpy",
    "cuLogicalEndpoint",
    "cuMem",
    "cuMipmapped",
    "cuMulticast",
    "cuPointer",
    "cuSurf",
    "cuTensorMap",
    "cuTex",
];

const MEMORY_PARTS: &[&str] = &[
    "External",
    "IpcCloseMem",
    "IpcGetMem",
    "IpcOpenMem",
    "MemPool",
];

impl fmt::Display for Area {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Driver => "Driver",
            Self::Graph => "Graphs",
            Self::Memory => "Memory",
        })
    }
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_distinguished_by_name() {
        for (name, area) in [
            ("cuGraphLaunch", Area::Graph),
            ("cuStreamBeginCapture_v2", Area::Graph),
            ("cuGraphicsMapResources", Area::Driver),
            ("cuStreamAttachMemAsync", Area::Driver),
            ("cuDeviceSetMemPool", Area::Memory),
            ("cuIpcGetMemHandle", Area::Memory),
            ("cuIpcGetEventHandle", Area::Driver),
            ("cuLogicalEndpointBindMem", Area::Memory),
            ("cuImportExternalSemaphore", Area::Memory),
        ] {
            assert_eq!(Area::from_name(name), area, "{name}");
        }
    }
}
