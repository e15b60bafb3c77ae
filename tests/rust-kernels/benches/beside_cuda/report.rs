//! The table and the file of results.

use std::fmt::{self, Write as _};

use curium_driver::{Device, Kernel, Untyped};
use serde_json::json;

use crate::Result;
use crate::bench::Bench;

/// Whether an output agrees with that of the first variant or the reference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Agreement {
    NotCompared,
    Equal,
    /// The number of elements that differ.
    Wrong(usize),
}

impl fmt::Display for Agreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompared => formatter.write_str("not compared"),
            Self::Equal => formatter.write_str("ok"),
            Self::Wrong(count) => write!(formatter, "WRONG ({count} elements)"),
        }
    }
}

/// The figures of a kernel as compiled by one compiler.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    pub(crate) compiler: &'static str,
    pub(crate) registers: u32,
    pub(crate) local_bytes: usize,
    pub(crate) ptx_bytes: Option<usize>,
    pub(crate) agreement: Agreement,
    /// The times of launches in microseconds.
    times: Vec<f64>,
}

impl Measurement {
    pub(crate) fn new(
        compiler: &'static str,
        device: &Device,
        kernel: &Kernel<Untyped>,
        ptx_bytes: Option<usize>,
    ) -> Result<Self> {
        Ok(Self {
            compiler,
            registers: kernel.registers(device)?,
            local_bytes: kernel.local_bytes(device)?,
            ptx_bytes,
            agreement: Agreement::NotCompared,
            times: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, microseconds: f64) {
        self.times.push(microseconds);
    }

    /// Returns a quartile of the times.
    fn quartile(&self, quarter: usize) -> Option<f64> {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        let last = times.len().checked_sub(1)?;
        let position = (last * quarter) as f64 / 4.0;
        let below = times[position.floor() as usize];
        let above = times[position.ceil() as usize];
        Some(below + (above - below) * position.fract())
    }

    /// Returns the median of the times in microseconds.
    pub(crate) fn median(&self) -> Option<f64> {
        self.quartile(2)
    }

    /// Returns the difference between the quartiles.
    fn spread(&self) -> Option<f64> {
        Some(self.quartile(3)? - self.quartile(1)?)
    }
}

/// The figures of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Those of Rust are the last.
    pub(crate) measurements: Vec<Measurement>,
}

impl Row {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            measurements: Vec::new(),
        }
    }

    /// Returns the time of Rust relative to that of the first other compiler.
    fn ratio(&self) -> Option<f64> {
        let (rust, others) = self.measurements.split_last()?;
        Some(rust.median()? / others.first()?.median()?)
    }

    fn is_success(&self) -> bool {
        self.measurements
            .iter()
            .all(|measurement| measurement.agreement == Agreement::Equal)
    }
}

/// The widths of the columns: the name, a time, the ratio, the others.
const NAME: usize = 22;
const TIME: usize = 20;
const RATIO: usize = 7;

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:NAME$}", self.name)?;
        for measurement in &self.measurements {
            let text = match (measurement.median(), measurement.spread()) {
                (Some(median), Some(spread)) => format!("{median:.1} ± {:.1}", spread / 2.0),
                _ => "-".to_owned(),
            };
            write!(formatter, "{text:>TIME$}")?;
        }
        let ratio = self.ratio().map(|ratio| format!("{ratio:.3}"));
        write!(formatter, "{:>RATIO$}", ratio.as_deref().unwrap_or("-"))?;
        let column = |value: &dyn Fn(&Measurement) -> String| {
            let values: Vec<String> = self.measurements.iter().map(value).collect();
            values.join("/")
        };
        let registers = column(&|measurement| measurement.registers.to_string());
        let local = column(&|measurement| measurement.local_bytes.to_string());
        let ptx = column(&|measurement| {
            let bytes = measurement.ptx_bytes.map(|bytes| bytes.to_string());
            bytes.unwrap_or_else(|| "-".to_owned())
        });
        write!(formatter, "  {registers:>11}  {local:>9}  {ptx:>20}")?;
        let wrong: Vec<String> = self
            .measurements
            .iter()
            .filter(|measurement| measurement.agreement != Agreement::Equal)
            .map(|measurement| format!("{}: {}", measurement.compiler, measurement.agreement))
            .collect();
        let agreement = if wrong.is_empty() {
            "ok".to_owned()
        } else {
            wrong.join(", ")
        };
        write!(formatter, "  {agreement}")
    }
}

/// All results.
#[derive(Debug)]
pub(crate) struct Report {
    device: String,
    compilers: Vec<(String, String)>,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(device: &Device, bench: &Bench) -> Result<Self> {
        let compilers = bench.twins.compilers.iter();
        Ok(Self {
            device: device.name()?,
            compilers: compilers
                .map(|compiler| (compiler.name.to_owned(), compiler.version.clone()))
                .collect(),
            rows: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns `true` if all outputs agree.
    pub(crate) fn is_success(&self) -> bool {
        self.rows.iter().all(Row::is_success)
    }

    /// Returns the first lines of the table.
    pub(crate) fn header(&self) -> String {
        let mut text = format!("{}\n", self.device);
        for (name, version) in &self.compilers {
            let _ = writeln!(text, "{name} {version}");
        }
        let _ = write!(text, "{:NAME$}", "kernel");
        for (name, _) in &self.compilers {
            let _ = write!(text, "{:>TIME$}", format!("{name} µs"));
        }
        let _ = write!(text, "{:>TIME$}{:>RATIO$}", "Rust µs", "ratio");
        text + "    registers      local             PTX bytes  outputs"
    }

    /// Returns the last lines of the table.
    pub(crate) fn summary(&self) -> String {
        let mut ratios: Vec<f64> = self.rows.iter().filter_map(Row::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let wrong = self.rows.iter().filter(|row| !row.is_success()).count();
        let outputs = format!("{} kernels, {wrong} with wrong outputs", self.rows.len());
        match (ratios.get(ratios.len() / 2), ratios.last()) {
            (Some(median), Some(last)) => {
                format!("{outputs}; ratio: median {median:.3}, largest {last:.3}")
            }
            _ => outputs,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let measurements: Vec<_> = row
                    .measurements
                    .iter()
                    .map(|measurement| {
                        json!({
                            "compiler": measurement.compiler,
                            "median_us": measurement.median(),
                            "quartiles_us": [measurement.quartile(1), measurement.quartile(3)],
                            "registers": measurement.registers,
                            "local_bytes": measurement.local_bytes,
                            "ptx_bytes": measurement.ptx_bytes,
                            "outputs": measurement.agreement.to_string(),
                        })
                    })
                    .collect();
                json!({ "kernel": row.name, "ratio": row.ratio(), "measurements": measurements })
            })
            .collect();
        let compilers: Vec<_> = self
            .compilers
            .iter()
            .map(|(name, version)| json!({ "name": name, "version": version }))
            .collect();
        format!(
            "{:#}\n",
            json!({ "device": self.device, "compilers": compilers, "kernels": rows })
        )
    }
}
