//! One measurement, for C and for Curium.

use std::time::Duration;

use anyhow::Result;

use super::{Comparison, Unit};

/// One of the two implementations that are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Implementation {
    /// Direct calls through the driver's table, as a C program makes them.
    C,
    /// Curium.
    Curium,
}

/// One measurement, such as a launch, with its resources.
pub(super) struct Measurement<'a> {
    id: String,
    rounds: usize,
    /// The operations between waits, for C and for Curium.
    batches: [usize; 2],
    bytes: Option<usize>,
    run: Run<'a>,
}

/// Repeats the operation, and returns the elapsed time.
type Run<'a> = Box<dyn FnMut(Implementation, usize) -> Result<Duration> + 'a>;

impl Implementation {
    /// Both, C first.
    pub(super) const ALL: [Self; 2] = [Self::C, Self::Curium];
}

impl<'a> Measurement<'a> {
    pub(super) fn new(
        id: String,
        rounds: usize,
        batches: [usize; 2],
        run: impl FnMut(Implementation, usize) -> Result<Duration> + 'a,
    ) -> Self {
        Self {
            id,
            rounds,
            batches,
            bytes: None,
            run: Box::new(run),
        }
    }

    /// Measures the bandwidth of copies of `bytes` bytes instead of time.
    pub(super) fn with_bytes(self, bytes: usize) -> Self {
        Self {
            bytes: Some(bytes),
            ..self
        }
    }

    /// Measures both implementations alternately, for the rounds of the plan.
    pub(super) fn compare(mut self) -> Result<Comparison> {
        let unit = if self.bytes.is_some() {
            Unit::GigabytesPerSecond
        } else {
            Unit::Nanoseconds
        };
        let id = self.id.clone();
        Comparison::measure(id, unit, self.rounds, |implementation| {
            self.sample(implementation)
        })
    }

    /// Measures one batch: nanoseconds per operation, or GB/s.
    fn sample(&mut self, implementation: Implementation) -> Result<f64> {
        let batch = self.batches[implementation as usize].max(1);
        let time = (self.run)(implementation, batch)?;
        let nanoseconds = time.as_nanos() as f64 / batch as f64;
        Ok(match self.bytes {
            Some(bytes) => bytes as f64 / nanoseconds.max(1.0),
            None => nanoseconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pretends that an operation takes 10 ns in C and 20 ns in Curium.
    fn run(implementation: Implementation, count: usize) -> Result<Duration> {
        let nanoseconds = match implementation {
            Implementation::C => 10,
            Implementation::Curium => 20,
        };
        Ok(Duration::from_nanos(count as u64 * nanoseconds))
    }

    #[test]
    fn times_are_per_operation() -> Result<()> {
        let comparison = Measurement::new("a/1".to_owned(), 3, [5, 7], run).compare()?;
        assert_eq!(comparison.c.median(), 10.0);
        assert_eq!(comparison.curium.median(), 20.0);
        Ok(())
    }

    #[test]
    fn copies_are_measured_in_bandwidth() -> Result<()> {
        let comparison = Measurement::new("a/1".to_owned(), 3, [1, 1], run)
            .with_bytes(100)
            .compare()?;
        assert_eq!(comparison.c.median(), 10.0);
        assert_eq!(comparison.ratio.median(), 0.5);
        Ok(())
    }
}
