//! The report as tables.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{Table, presets};

use crate::bytes::size;
use crate::info::report::{DeviceReport, LibraryReport, LinkReport, Report};

/// The report for people.
pub(super) struct Tables<'a> {
    pub(super) report: &'a Report,
    /// Includes every attribute.
    pub(super) attributes: bool,
    /// Includes every function that the driver lacks.
    pub(super) missing: bool,
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.overview())?;
        for device in &self.report.devices {
            writeln!(
                formatter,
                "\ndevice {}: {}\n{}",
                device.ordinal,
                device.name,
                summary(device)
            )?;
            if self.attributes {
                writeln!(formatter, "{}", attributes(device))?;
            }
        }
        if !self.report.links.is_empty() {
            let heading = "access from the row's device to the memory of the column's device";
            writeln!(
                formatter,
                "\n{heading}\n{}",
                topology(&self.report.links, self.report.devices.len())
            )?;
        }
        if !self.report.driver.missing.is_empty() {
            writeln!(
                formatter,
                "\nfunctions that this driver lacks\n{}",
                self.missing_functions()
            )?;
        }
        Ok(())
    }
}

impl Tables<'_> {
    fn overview(&self) -> Table {
        let Report {
            simulated,
            driver,
            compilers,
            libraries,
            ..
        } = self.report;
        let mut table = framed();
        table.add_row(["driver", &format!("CUDA {}", driver.version)]);
        if let Some(reason) = simulated {
            table.add_row(["simulated", reason]);
        }
        if let Some(library) = &driver.library {
            table.add_row(["library", library]);
        }
        let present = driver.functions - driver.missing.len();
        table.add_row(["functions", &format!("{present} of {}", driver.functions)]);
        for compiler in compilers {
            table.add_row([compiler.name, &version_text(compiler, "CUDA ")]);
        }
        for library in libraries {
            table.add_row([library.name, &version_text(library, "")]);
        }
        table
    }

    /// Returns a row for each CUDA version with more functions.
    fn missing_functions(&self) -> Table {
        let mut by_version: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
        for missing in &self.report.driver.missing {
            by_version
                .entry(order(&missing.needs))
                .or_default()
                .push(missing.function);
        }
        let mut table = framed();
        table.set_header(["needs", "functions"]);
        for ((major, minor), functions) in by_version {
            table.add_row([format!("CUDA {major}.{minor}"), self.functions(&functions)]);
        }
        table
    }

    fn functions(&self, functions: &[&str]) -> String {
        if self.missing {
            return functions.join("\n");
        }
        match functions {
            [function] => (*function).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more (--missing lists them)", rest.len()),
            [] => String::new(),
        }
    }
}

/// Converts a version such as `13.1` to a form that can be sorted.
fn order(version: &str) -> (u32, u32) {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    (
        major.parse().unwrap_or_default(),
        minor.parse().unwrap_or_default(),
    )
}

fn version_text(library: &LibraryReport, of: &str) -> String {
    match (&library.version, &library.reason) {
        (Some(version), _) => format!("{of}{version}"),
        (None, Some(_)) => "not found (--json lists the paths tried)".to_owned(),
        (None, None) => String::new(),
    }
}

fn summary(device: &DeviceReport) -> Table {
    let mut table = framed();
    table.add_rows([
        [
            "compute capability".to_owned(),
            device.compute_capability.clone(),
        ],
        ["memory".to_owned(), size(device.memory_bytes)],
        [
            "multiprocessors".to_owned(),
            device.attribute("MULTIPROCESSOR_COUNT").to_string(),
        ],
        [
            "clock".to_owned(),
            format!("{} MHz", device.attribute("CLOCK_RATE") / 1000),
        ],
        [
            "memory bus".to_owned(),
            format!("{} bits", device.attribute("GLOBAL_MEMORY_BUS_WIDTH")),
        ],
        [
            "L2 cache".to_owned(),
            size_attribute(device, "L2_CACHE_SIZE"),
        ],
        [
            "shared memory per block".to_owned(),
            size_attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        ],
        [
            "registers per block".to_owned(),
            device.attribute("MAX_REGISTERS_PER_BLOCK").to_string(),
        ],
        [
            "threads per block".to_owned(),
            device.attribute("MAX_THREADS_PER_BLOCK").to_string(),
        ],
        [
            "asynchronous copy engines".to_owned(),
            device.attribute("ASYNC_ENGINE_COUNT").to_string(),
        ],
        [
            "stream-ordered pools".to_owned(),
            flag_attribute(device, "MEMORY_POOLS_SUPPORTED").to_owned(),
        ],
        [
            "managed memory, concurrent".to_owned(),
            flag_attribute(device, "CONCURRENT_MANAGED_ACCESS").to_owned(),
        ],
        [
            "clusters".to_owned(),
            flag_attribute(device, "CLUSTER_LAUNCH").to_owned(),
        ],
        [
            "ECC".to_owned(),
            flag_attribute(device, "ECC_ENABLED").to_owned(),
        ],
        ["PCI".to_owned(), device.pci_bus_id.clone()],
        ["UUID".to_owned(), device.uuid.clone()],
    ]);
    table
}

fn size_attribute(device: &DeviceReport, name: &str) -> String {
    size(u64::try_from(device.attribute(name)).unwrap_or_default())
}

fn flag_attribute(device: &DeviceReport, name: &str) -> &'static str {
    if device.attribute(name) == 0 {
        "no"
    } else {
        "yes"
    }
}

fn attributes(device: &DeviceReport) -> Table {
    let mut table = framed();
    table.set_header(["attribute", "value"]);
    for (name, value) in &device.attributes {
        table.add_row([
            (*name).to_owned(),
            value.map_or_else(|| "not known to this driver".to_owned(), |v| v.to_string()),
        ]);
    }
    table
}

fn topology(links: &[LinkReport], devices: usize) -> Table {
    let mut table = framed();
    let mut header = vec![String::new()];
    header.extend((0..devices).map(|to| to.to_string()));
    table.set_header(header);
    for from in 0..devices {
        let mut row = vec![from.to_string()];
        row.extend((0..devices).map(|to| {
            links
                .iter()
                .find(|link| (link.from, link.to) == (from, to))
                .map_or("-".to_owned(), link_text)
        }));
        table.add_row(row);
    }
    table
}

fn link_text(link: &LinkReport) -> String {
    match (link.access, link.atomics) {
        (false, _) => "through the host".to_owned(),
        (true, "none") => format!("rank {}", link.performance_rank),
        (true, atomics) => format!("rank {}, {atomics} atomics", link.performance_rank),
    }
}

fn framed() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY.with_rounded_corners());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_number_and_not_by_letter() {
        assert!(
            order("9.2") < order("12.0")
                && order("12.8") < order("12.9")
                && order("12.9") < order("13.1")
        );
    }

    #[test]
    fn link_without_access_goes_through_the_host() {
        let link = LinkReport {
            from: 0,
            to: 1,
            access: false,
            performance_rank: 1,
            atomics: "none",
            arrays: false,
        };
        assert_eq!(
            topology(&[link], 2)
                .to_string()
                .matches("through the host")
                .count(),
            1
        );
    }
}
