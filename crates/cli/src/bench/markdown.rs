//! The figures as Markdown tables.

use super::report::{Report, Row};

/// The title and the parameter of each group of measurements.
const GROUPS: [(&str, &str, &str); 19] = [
    (
        "launch/threads",
        "Launches by several threads, each on its own stream: `cuLaunchKernel`",
        "threads",
    ),
    (
        "launch/current",
        "A launch with its context current: `cuLaunchKernel`",
        "threads",
    ),
    (
        "graph/chain",
        "Graph launch, without waiting for completion: `cuGraphLaunch`",
        "kernels",
    ),
    (
        "graph/leased",
        "Launch of a graph that leases buffers, without waiting for completion: `cuGraphLaunch`",
        "buffers",
    ),
    (
        "graph/nodes",
        "Graph launch until completion: `cuGraphLaunch`, `cuStreamSynchronize`",
        "nodes",
    ),
    (
        "graph/training-step",
        "A training step of many small kernels and copies until completion: launched one by one, and replayed as a graph",
        "step",
    ),
    (
        "graph/update",
        "New arguments for a node of a graph: `cuGraphExecKernelNodeSetParams`",
        "nodes",
    ),
    (
        "copy/pageable-to-device",
        "From an ordinary slice to the device: `cuMemcpyHtoDAsync`",
        "size",
    ),
    (
        "copy/device-to-pageable",
        "From the device to an ordinary slice: `cuMemcpyDtoHAsync`",
        "size",
    ),
    (
        "copy/pinned-to-device",
        "From pinned memory to the device: `cuMemcpyHtoDAsync`",
        "size",
    ),
    (
        "copy/device-to-pinned",
        "From the device to pinned memory: `cuMemcpyDtoHAsync`",
        "size",
    ),
    (
        "allocate/bytes",
        "An allocation and its deallocation, compared with `cuMemAllocAsync` and `cuMemFreeAsync`",
        "size",
    ),
    (
        "allocate/plain-bytes",
        "An allocation and its deallocation, compared with `cuMemAlloc` and `cuMemFree`",
        "size",
    ),
    (
        "allocate/buffer",
        "A `DeviceBuffer` and its drop, compared with `cuMemAllocAsync` and `cuMemFreeAsync`",
        "size",
    ),
    (
        "allocate/borrowing-buffer",
        "The same with a borrowed resource instead of a clone",
        "size",
    ),
    (
        "allocate/threads",
        "An allocation of 1 MiB and its deallocation by several threads in total, compared with `cuMemAllocAsync`",
        "threads",
    ),
    (
        "allocate/live",
        "A random deallocation and an allocation, of 512 B to 128 KiB, compared with `cuMemAllocAsync`",
        "live blocks",
    ),
    (
        "allocate/plain-live",
        "The same, compared with `cuMemAlloc`",
        "live blocks",
    ),
    (
        "calls/one-stream",
        "Calls of the driver for a buffer whose fills, kernels and copies are on one stream",
        "uses of each kind",
    ),
];

impl Report {
    /// Returns a table for each group of measurements, in the order of measurement.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("{}; medians [quartiles].\n", self.title());
        let groups = self
            .comparisons
            .chunk_by(|one, other| one.parts().0 == other.parts().0);
        groups.for_each(|rows| text += &table(rows));
        text
    }
}

/// Returns the table of one group.
fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let (group, _) = first.parts();
    let entry = GROUPS.iter().find(|(name, ..)| *name == group);
    let (title, varied) = entry.map_or((group, "value"), |(_, title, varied)| (title, varied));
    let has_notes = rows.iter().any(|row| row.note.is_some());
    let (heading, rule) = if has_notes { (" |", "---|") } else { ("", "") };
    let mut text = format!(
        "\n{title}:\n\n| {varied} | C, {unit} | Curium, {unit} | Curium / C |{heading}\n",
        unit = first.unit
    );
    text += &format!("|---|---|---|---|{rule}\n");
    for row in rows {
        let [c, curium, ratio] = row.figures();
        let value = row.size().unwrap_or_else(|| grouped(row.parts().1));
        let note = row
            .note
            .as_deref()
            .filter(|_| has_notes)
            .map_or_else(String::new, |note| format!(" {note} |"));
        text += &format!("| {value} | {c} | {curium} | {ratio} |{note}\n");
    }
    text
}

/// Adds thousands separators to a number; other text is unchanged.
fn grouped(digits: &str) -> String {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    let groups: Vec<_> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bench::suite::{self, Plan};

    #[test]
    fn every_measured_group_has_a_title() {
        let ids = suite::ids(&Plan::hardware());
        let measured: HashSet<_> = ids
            .iter()
            .filter_map(|id| id.rsplit_once('/'))
            .map(|(group, _)| group)
            .collect();
        let titled: HashSet<_> = GROUPS.iter().map(|(group, ..)| *group).collect();
        assert_eq!(measured, titled);
    }

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        assert_eq!(
            ["1", "100", "1000", "1000000", "replayed"].map(grouped),
            ["1", "100", "1,000", "1,000,000", "replayed"]
        );
    }
}
