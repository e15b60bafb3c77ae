//! The links between the devices of this machine.

use std::fmt;

use curium_sys::CUresult;

use crate::{Device, DeviceAttribute, Driver, PeerLink, Result};

/// A snapshot of the links between all visible devices.
///
/// `Display` writes a table with a row for each accessing device and a column for each accessed
/// device.
#[derive(Clone, Debug)]
pub struct Topology {
    devices: Vec<TopologyDevice>,
    /// The links, by accessing device and then by accessed device.
    links: Vec<Option<PeerLink>>,
}

/// One device of a [`Topology`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TopologyDevice {
    /// The name of the device.
    pub name: String,
    /// The PCI bus identifier.
    pub pci_bus_id: String,
    /// The closest host NUMA node, if the driver reports it.
    pub numa_node: Option<u32>,
}

impl Driver {
    /// Returns a snapshot of the links between all visible devices.
    ///
    /// CUDA: `cuDeviceGetP2PAttribute` for each pair, and the attributes of each device.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn topology(&self) -> Result<Topology> {
        let devices = self.devices()?;
        let pairs = devices
            .iter()
            .flat_map(|from| devices.iter().map(move |to| (from, to)));
        let links = pairs
            .map(|(from, to)| link(from, to))
            .collect::<Result<_>>()?;
        let devices = devices
            .iter()
            .map(TopologyDevice::new)
            .collect::<Result<_>>()?;
        Ok(Topology { devices, links })
    }
}

impl Topology {
    /// Returns the devices, in the order of their ordinals.
    #[must_use]
    pub fn devices(&self) -> &[TopologyDevice] {
        &self.devices
    }

    /// Returns the access of the device with ordinal `from` to the memory of the device with
    /// ordinal `to`; `None` if they are equal or do not exist.
    #[must_use]
    pub fn link(&self, from: usize, to: usize) -> Option<&PeerLink> {
        let count = self.devices.len();
        if from >= count || to >= count {
            return None;
        }
        self.links.get(from * count + to)?.as_ref()
    }

    /// Returns the cells of the table that `Display` writes, row by row.
    fn cells(&self) -> Vec<Vec<String>> {
        let count = self.devices.len();
        let mut heading = vec!["from".to_owned()];
        heading.extend((0..count).map(|to| format!("to {to}")));
        heading.extend(["NUMA", "PCI", "name"].map(str::to_owned));
        let rows = self.devices.iter().enumerate().map(|(from, device)| {
            let mut row = vec![from.to_string()];
            row.extend((0..count).map(|to| {
                self.link(from, to)
                    .map_or_else(|| "-".to_owned(), PeerLink::to_string)
            }));
            row.push(
                device
                    .numa_node
                    .map_or_else(|| "-".to_owned(), |node| node.to_string()),
            );
            row.extend([device.pci_bus_id.clone(), device.name.clone()]);
            row
        });
        std::iter::once(heading).chain(rows).collect()
    }
}

impl TopologyDevice {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            name: device.name()?,
            pci_bus_id: device.pci_bus_id()?,
            numa_node: match device.attribute(DeviceAttribute::HOST_NUMA_ID) {
                // Older drivers do not support the attribute.
                Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => None,
                answer => answer?,
            },
        })
    }
}

/// Returns the link between two devices; `None` if they are the same device.
fn link(from: &Device, to: &Device) -> Result<Option<PeerLink>> {
    if from.as_raw() == to.as_raw() {
        return Ok(None);
    }
    from.peer_link(to).map(Some)
}

impl fmt::Display for Topology {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.cells();
        let mut widths = vec![0; cells[0].len()];
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for (number, row) in cells.iter().enumerate() {
            let padded = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            let line = padded.collect::<Vec<_>>().join("  ");
            let end = if number + 1 < cells.len() { "\n" } else { "" };
            write!(formatter, "{}{end}", line.trim_end())?;
        }
        Ok(())
    }
}

/// For example, `rank 0 + atomics`, or `none` without access.
impl fmt::Display for PeerLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.access {
            return formatter.write_str("none");
        }
        write!(formatter, "rank {}", self.performance_rank)?;
        match (self.all_atomics, self.some_atomics) {
            (true, _) => formatter.write_str(" + atomics"),
            (false, true) => formatter.write_str(" + some atomics"),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, numa_node: Option<u32>) -> TopologyDevice {
        TopologyDevice {
            name: name.to_owned(),
            pci_bus_id: "0000:01:00.0".to_owned(),
            numa_node,
        }
    }

    #[test]
    fn topology_prints_a_table_with_a_cell_for_each_pair() {
        let fast = PeerLink {
            access: true,
            all_atomics: true,
            ..PeerLink::default()
        };
        let topology = Topology {
            devices: vec![device("A", Some(0)), device("B", None)],
            links: vec![None, Some(fast), Some(PeerLink::default()), None],
        };
        let expected = "\
from  to 0  to 1              NUMA  PCI           name
0     -     rank 0 + atomics  0     0000:01:00.0  A
1     none  -                 -     0000:01:00.0  B";
        assert_eq!(topology.to_string(), expected);
        assert_eq!(topology.link(0, 1), Some(&fast));
        assert_eq!(
            (
                topology.link(0, 0),
                topology.link(0, 2),
                topology.link(2, 0)
            ),
            (None, None, None)
        );
        assert_eq!(topology.link(usize::MAX, 1), None);
    }

    #[test]
    fn invalid_device_has_no_link() {
        let devices = ["A", "B", "C"].map(|name| device(name, None)).to_vec();
        let topology = Topology {
            devices,
            links: vec![Some(PeerLink::default()); 9],
        };
        assert!(topology.link(2, 2).is_some());
        // Without the check, the index would overflow.
        assert_eq!(topology.link(usize::MAX / 3, 1), None);
        assert_eq!(topology.link(3, 0), None);
    }
}
