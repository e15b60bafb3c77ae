//! One measurement, for C and for Curium.

use std::time::Duration;

use crate::{Comparison, Result, Unit};

/// One of the two implementations that are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Direct calls through the driver's table, as a C program makes them.
    C,
    /// Curium.
    Curium,
}

/// One measurement, such as a launch, with its resources.
pub struct Measurement<'a> {
    id: String,
    rounds: usize,
    /// The operations between waits, for C and for Curium.
    batches: [usize; 2],
    bytes: Option<usize>,
    run: Run<'a>,
    note: Note<'a>,
}

/// Repeats the operation, and returns the elapsed time.
type Run<'a> = Box<dyn FnMut(Way, usize) -> Result<Duration> + 'a>;

/// Returns a note about a comparison.
type Note<'a> = Box<dyn Fn(&Comparison) -> Result<Option<String>> + 'a>;

impl Way {
    /// Both, C first.
    pub const ALL: [Self; 2] = [Self::C, Self::Curium];

    /// Returns the displayed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Curium => "Curium",
        }
    }
}

impl<'a> Measurement<'a> {
    pub(crate) fn new(
        id: String,
        rounds: usize,
        batches: [usize; 2],
        run: impl FnMut(Way, usize) -> Result<Duration> + 'a,
    ) -> Self {
        Self {
            id,
            rounds,
            batches,
            bytes: None,
            run: Box::new(run),
            note: Box::new(|_| Ok(None)),
        }
    }

    /// Measures bandwidth instead of time.
    pub(crate) fn of_bytes(self, bytes: usize) -> Self {
        Self {
            bytes: Some(bytes),
            ..self
        }
    }

    pub(crate) fn with_note(
        self,
        note: impl Fn(&Comparison) -> Result<Option<String>> + 'a,
    ) -> Self {
        Self {
            note: Box::new(note),
            ..self
        }
    }

    /// Returns the id, such as `launch/threads/2`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of bytes per operation of a copy.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        self.bytes
    }

    /// Repeats the operation `count` times, and returns the elapsed time without the waits between batches.
    ///
    /// # Errors
    ///
    /// Returns the errors of the driver.
    pub fn time(&mut self, way: Way, count: usize) -> Result<Duration> {
        let (mut time, mut left) = (Duration::ZERO, count);
        while left > 0 {
            let batch = left.min(self.batch(way));
            time += (self.run)(way, batch)?;
            left -= batch;
        }
        Ok(time)
    }

    /// Measures both ways in turns, for the rounds of the plan.
    ///
    /// # Errors
    ///
    /// Returns the errors of the driver.
    pub fn compare(&mut self) -> Result<Comparison> {
        let unit = if self.bytes.is_some() {
            Unit::GigabytesPerSecond
        } else {
            Unit::Nanoseconds
        };
        let comparison =
            Comparison::measure(self.id.clone(), unit, self.rounds, |way| self.sample(way))?;
        let note = (self.note)(&comparison)?;
        Ok(Comparison { note, ..comparison })
    }

    /// Measures one batch: nanoseconds per operation, or GB/s.
    fn sample(&mut self, way: Way) -> Result<f64> {
        let batch = self.batch(way);
        let nanoseconds = (self.run)(way, batch)?.as_nanos() as f64 / batch as f64;
        Ok(self
            .bytes
            .map_or(nanoseconds, |bytes| bytes as f64 / nanoseconds.max(1.0)))
    }

    fn batch(&self, way: Way) -> usize {
        self.batches[way as usize].max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_batches_that_are_no_larger_than_planned() {
        let mut batches = Vec::new();
        let mut measurement = Measurement::new("a/1".to_owned(), 1, [4, 100], |way, count| {
            batches.push((way, count));
            Ok(Duration::from_nanos(count as u64))
        });
        let time = [Way::C, Way::Curium]
            .map(|way| measurement.time(way, 10).expect("nothing fails").as_nanos());
        assert_eq!(time, [10, 10]);
        drop(measurement);
        assert_eq!(
            batches,
            [(Way::C, 4), (Way::C, 4), (Way::C, 2), (Way::Curium, 10)]
        );
    }

    #[test]
    fn comparison_is_of_one_time_or_of_bytes() {
        let run = |way, count: usize| {
            Ok(Duration::from_nanos(
                count as u64 * if way == Way::C { 10 } else { 20 },
            ))
        };
        let comparison = Measurement::new("a/1".to_owned(), 3, [5, 7], run)
            .compare()
            .expect("nothing fails");
        assert_eq!(
            (comparison.c.median(), comparison.curium.median()),
            (10.0, 20.0)
        );
        let copy = Measurement::new("a/1".to_owned(), 3, [1, 1], run).of_bytes(100);
        let mut copy =
            copy.with_note(|comparison| Ok(Some(format!("{} rounds", comparison.c.count()))));
        let comparison = copy.compare().expect("nothing fails");
        assert_eq!(
            (comparison.c.median(), comparison.ratio.median()),
            (10.0, 0.5)
        );
        assert_eq!(comparison.note.as_deref(), Some("3 rounds"));
    }
}
