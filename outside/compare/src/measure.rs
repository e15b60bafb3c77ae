//! Measurements in turns, and how they are printed.

use std::time::Instant;

use crate::Result;
use crate::samples::Samples;
use crate::subject::Subject;

/// The selected operations, and the number of rounds.
pub(crate) struct Plan {
    filter: String,
    rounds: usize,
    /// Operations in a turn: fewer launches than the driver queues before it has the host wait.
    pub(crate) count: u32,
    pub(crate) allocations: &'static [usize],
    pub(crate) copies: &'static [usize],
}

/// The unit in which times are printed.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Nanoseconds,
    /// GB/s of so many bytes.
    Rate(usize),
}

impl Plan {
    /// Reads the program's arguments. `--bench` is what runs every benchmark.
    pub(crate) fn read(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut plan = Self {
            filter: String::new(),
            rounds: 101,
            count: 400,
            allocations: &[4 << 10, 1 << 20, 64 << 20],
            copies: &[4 << 10, 256 << 10, 4 << 20, 64 << 20, 1 << 30],
        };
        for argument in arguments {
            match argument.as_str() {
                "--bench" => {}
                "--quick" => {
                    plan = Self {
                        filter: plan.filter,
                        ..Self::quick()
                    }
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}").into());
                }
                _ => plan.filter = argument,
            }
        }
        Ok(plan)
    }

    /// Returns a plan that takes seconds, on the simulator too, and runs everything once.
    fn quick() -> Self {
        Self {
            filter: String::new(),
            rounds: 3,
            count: 20,
            allocations: &[1 << 20],
            copies: &[4 << 10, 4 << 20],
        }
    }

    pub(crate) fn wants(&self, id: &str) -> bool {
        id.contains(&self.filter)
    }

    /// Measures one operation of all subjects in rounds, each of which another one begins, and prints the times.
    /// A round before all others is left out, since it loads and allocates.
    pub(crate) fn compare(
        &self,
        id: &str,
        unit: Unit,
        subjects: &mut [Box<dyn Subject>],
        measure: impl Fn(&mut dyn Subject) -> Result<Option<f64>>,
    ) -> Result<()> {
        let mut times = vec![Vec::new(); subjects.len()];
        for round in 0..=self.rounds(unit) {
            for turn in 0..subjects.len() {
                let index = (round + turn) % subjects.len();
                let name = subjects[index].name();
                let time = measure(subjects[index].as_mut())
                    .map_err(|error| format!("{id}, {name}: {error}"))?;
                times[index].extend(time.filter(|_| round > 0));
            }
        }
        println!("\n{id}");
        for (subject, samples) in subjects
            .iter()
            .zip(&times)
            .filter(|(_, samples)| !samples.is_empty())
        {
            println!("  {:<26}{}", subject.name(), row(unit, samples, &times[0]));
        }
        Ok(())
    }

    /// Fewer if one takes long.
    fn rounds(&self, unit: Unit) -> usize {
        match unit {
            Unit::Nanoseconds => self.rounds,
            Unit::Rate(bytes) if bytes >= 1 << 30 => self.rounds.min(5),
            Unit::Rate(_) => self.rounds.min(31),
        }
    }
}

impl Unit {
    fn convert(self, nanoseconds: f64) -> f64 {
        match self {
            Self::Nanoseconds => nanoseconds,
            Self::Rate(bytes) => bytes as f64 / nanoseconds.max(1.0),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => format!("{value:.0}"),
            Self::Rate(_) => format!("{value:.2}"),
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Rate(_) => "GB/s",
        }
    }
}

/// The median with its quartiles, and the ratio to the first subject's.
fn row(unit: Unit, times: &[f64], first: &[f64]) -> String {
    let values: Samples = times.iter().map(|time| unit.convert(*time)).collect();
    let ratio: Samples = times
        .iter()
        .zip(first)
        .map(|(time, first)| unit.convert(*time) / unit.convert(*first))
        .collect();
    let [low, median, high] = [0.25, 0.5, 0.75].map(|part| unit.text(values.quantile(part)));
    let quartiles = format!("[{low} {high}]");
    // Two decimal places would round the ratio of something a hundred times faster to 0.
    let digits = if ratio.median() < 0.1 { 4 } else { 2 };
    format!(
        "{median:>12} {:<4} {quartiles:<24} ratio {:.digits$}",
        unit.symbol(),
        ratio.median()
    )
}

/// Nanoseconds for each of `count` runs of `body`.
#[inline]
pub(crate) fn each<E>(count: u32, mut body: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let begin = Instant::now();
    for _ in 0..count {
        body()?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_the_median_of_the_ratios_of_each_turn() {
        let row = row(Unit::Nanoseconds, &[10.0, 20.0, 90.0], &[5.0, 40.0, 30.0]);
        assert_eq!(
            row.split_whitespace().collect::<Vec<_>>(),
            ["20", "ns", "[20", "90]", "ratio", "2.00"]
        );
    }

    #[test]
    fn rate_is_that_of_the_bytes() {
        assert!((Unit::Rate(4096).convert(2048.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn option_that_is_unknown_is_refused() {
        assert!(Plan::read(["--slow".to_owned()].into_iter()).is_err());
        let arguments = ["launch", "--quick", "--bench"].map(str::to_owned);
        let plan = Plan::read(arguments.into_iter()).expect("they are known");
        assert!(plan.rounds < 10 && plan.wants("launch/queued") && !plan.wants("copy/4"));
    }
}
