//! The comparison of the two implementations.

use crate::{Result, Samples, Way};

/// The samples of Curium and of C.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The id, such as `launch/threads/2`.
    pub id: String,
    /// The unit of the samples.
    pub unit: Unit,
    /// The samples of C.
    pub c: Samples,
    /// The samples of Curium.
    pub curium: Samples,
    /// The ratio of Curium to C, for each round.
    pub ratio: Samples,
    /// A note.
    pub note: Option<String>,
}

/// The unit of samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unit {
    /// Nanoseconds per operation: lower is better.
    Nanoseconds,
    /// GB/s: higher is better.
    GigabytesPerSecond,
    /// Driver calls: lower is better.
    Calls,
}

impl Comparison {
    /// Measures both implementations alternately, each first in every other round. The first round is a warm-up, which
    /// loads code and allocates memory.
    pub(crate) fn measure(
        id: String,
        unit: Unit,
        rounds: usize,
        mut measure: impl FnMut(Way) -> Result<f64>,
    ) -> Result<Self> {
        let mut pairs = Vec::with_capacity(rounds);
        for round in 0..=rounds {
            let first = if round % 2 == 0 { Way::C } else { Way::Curium };
            let second = if first == Way::C { Way::Curium } else { Way::C };
            let (one, other) = (measure(first)?, measure(second)?);
            pairs.push(if first == Way::C {
                (one, other)
            } else {
                (other, one)
            });
        }
        let pairs = &pairs[1..];
        Ok(Self {
            id,
            unit,
            c: pairs.iter().map(|(c, _)| *c).collect(),
            curium: pairs.iter().map(|(_, curium)| *curium).collect(),
            ratio: pairs.iter().map(|(c, curium)| curium / c).collect(),
            note: None,
        })
    }

    /// Returns the id without its value, such as `launch/threads`.
    #[must_use]
    pub fn group(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the value of the parameter, if it is a number.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.id.rsplit('/').next()?.parse().ok()
    }
}

impl Unit {
    /// Returns the abbreviation.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::GigabytesPerSecond => "GB/s",
            Self::Calls => "calls",
        }
    }

    /// Returns `true` if lower is better.
    #[must_use]
    pub fn is_cost(self) -> bool {
        self != Self::GigabytesPerSecond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_take_turns_and_the_first_round_is_left_out() {
        let mut order = Vec::new();
        let comparison = Comparison::measure("a/b/7".to_owned(), Unit::Nanoseconds, 3, |way| {
            order.push(way);
            Ok(if order.len() <= 2 {
                1e9
            } else if way == Way::C {
                10.0
            } else {
                20.0
            })
        });
        let comparison = comparison.expect("nothing fails");
        assert_eq!(
            order,
            [
                Way::C,
                Way::Curium,
                Way::Curium,
                Way::C,
                Way::C,
                Way::Curium,
                Way::Curium,
                Way::C
            ]
        );
        assert_eq!(
            (
                comparison.c.median(),
                comparison.curium.median(),
                comparison.ratio.median()
            ),
            (10.0, 20.0, 2.0)
        );
        assert_eq!(comparison.c.count(), 3);
        assert_eq!((comparison.group(), comparison.value()), ("a/b", Some(7.0)));
    }
}
