//! The figures, as a table and as JSON.

use std::fmt;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use curium::prelude::*;
use serde::Serialize;

use super::suite::{Comparison, Samples, Unit};
use crate::bytes::size;
use crate::machine::Machine;

/// The version of the JSON schema.
const SCHEMA: u32 = 1;

/// The figures, with the device and the driver.
#[derive(Serialize)]
pub(super) struct Report {
    schema: u32,
    curium: &'static str,
    device: String,
    driver: String,
    simulated: bool,
    pub(super) comparisons: Vec<Row>,
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) unit: &'static str,
    /// `true` if lower is better.
    cost: bool,
    rounds: usize,
    c: Spread,
    curium: Spread,
    ratio: Spread,
    pub(super) note: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
struct Spread {
    median: f64,
    low_quartile: f64,
    high_quartile: f64,
}

impl Report {
    pub(super) fn new(
        machine: &Machine,
        context: &Context,
        comparisons: &[Comparison],
    ) -> Result<Self> {
        Ok(Self {
            schema: SCHEMA,
            curium: env!("CARGO_PKG_VERSION"),
            device: context.device().name()?,
            driver: machine.driver().version().to_string(),
            simulated: machine.simulated().is_some(),
            comparisons: comparisons.iter().map(Row::new).collect(),
        })
    }

    /// Returns the title: device and driver.
    pub(super) fn title(&self) -> String {
        let warning = if self.simulated {
            ": times of a simulator are not representative of hardware"
        } else {
            ""
        };
        format!("{}, driver for CUDA {}{warning}", self.device, self.driver)
    }
}

impl Row {
    fn new(comparison: &Comparison) -> Self {
        let Comparison {
            id,
            unit,
            c,
            curium,
            ratio,
            note,
        } = comparison;
        Self {
            id: id.clone(),
            unit: unit.symbol(),
            cost: unit.is_cost(),
            rounds: c.count(),
            c: Spread::from_samples(c),
            curium: Spread::from_samples(curium),
            ratio: Spread::from_samples(ratio),
            note: note.clone(),
        }
    }

    fn cells(&self) -> [String; 5] {
        let [c, curium, ratio] = self.figures();
        let size = self
            .size()
            .map_or_else(String::new, |size| format!(" ({size})"));
        [
            format!("{}{size}, {}", self.id, self.unit),
            c,
            curium,
            ratio,
            self.note.clone().unwrap_or_default(),
        ]
    }

    /// Returns the cells: C, Curium and their ratio, each with quartiles.
    pub(super) fn figures(&self) -> [String; 3] {
        let digits = match self.unit {
            unit if unit == Unit::GigabytesPerSecond.symbol() => 2,
            unit if unit == Unit::Calls.symbol() => 0,
            _ => usize::from(self.curium.median < 100.0),
        };
        [
            self.c.format(digits),
            self.curium.format(digits),
            self.ratio.format(3),
        ]
    }

    /// Splits an id into group and value.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.id.rsplit_once('/').unwrap_or((&self.id, ""))
    }

    /// Formats a value that is a size in bytes.
    pub(super) fn size(&self) -> Option<String> {
        const SIZES: [&str; 4] = [
            "allocate/bytes",
            "allocate/plain-bytes",
            "allocate/buffer",
            "allocate/borrowing-buffer",
        ];
        let (group, value) = self.parts();
        let is_size = group.starts_with("copy/") || SIZES.contains(&group);
        value.parse().ok().filter(|_| is_size).map(size)
    }
}

impl Spread {
    fn from_samples(samples: &Samples) -> Self {
        let [low_quartile, median, high_quartile] =
            [0.25, 0.5, 0.75].map(|part| samples.quantile(part));
        Self {
            median,
            low_quartile,
            high_quartile,
        }
    }

    /// Formats the median with the quartiles in brackets.
    fn format(self, digits: usize) -> String {
        let Self {
            median,
            low_quartile,
            high_quartile,
        } = self;
        format!("{median:.digits$} [{low_quartile:.digits$} {high_quartile:.digits$}]")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY.with_rounded_corners());
        table.set_header(["median [quartiles]", "C", "Curium", "Curium / C", ""]);
        table.add_rows(self.comparisons.iter().map(Row::cells));
        for column in 1..=3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        write!(formatter, "{}\n{table}", self.title())
    }
}
