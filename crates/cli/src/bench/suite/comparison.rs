//! The comparison of the two implementations.

use anyhow::Result;

use super::{Implementation, Samples};

/// The samples of Curium and of C.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Comparison {
    /// The id, such as `launch/threads/2`.
    pub(in crate::bench) id: String,
    /// The unit of the samples.
    pub(in crate::bench) unit: Unit,
    /// The samples of C.
    pub(in crate::bench) c: Samples,
    /// The samples of Curium.
    pub(in crate::bench) curium: Samples,
    /// The ratio of Curium to C, for each round.
    pub(in crate::bench) ratio: Samples,
    /// A remark, such as the fragmentation after the measurement.
    pub(in crate::bench) note: Option<String>,
}

/// The unit of samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::bench) enum Unit {
    /// Nanoseconds per operation: lower is better.
    Nanoseconds,
    /// GB/s: higher is better.
    GigabytesPerSecond,
    /// Driver calls: lower is better.
    Calls,
}

impl Comparison {
    /// Measures both implementations alternately, each first in every other round. The first round
    /// is a warm-up, which loads code and allocates memory.
    pub(super) fn measure(
        id: String,
        unit: Unit,
        rounds: usize,
        mut measure: impl FnMut(Implementation) -> Result<f64>,
    ) -> Result<Self> {
        let mut c = Vec::with_capacity(rounds);
        let mut curium = Vec::with_capacity(rounds);
        for round in 0..=rounds {
            let mut order = Implementation::ALL;
            if round % 2 == 1 {
                order.reverse();
            }
            for implementation in order {
                let sample = measure(implementation)?;
                match implementation {
                    _ if round == 0 => {}
                    Implementation::C => c.push(sample),
                    Implementation::Curium => curium.push(sample),
                }
            }
        }
        Ok(Self {
            id,
            unit,
            ratio: curium
                .iter()
                .zip(&c)
                .map(|(curium, c)| curium / c)
                .collect(),
            c: c.into_iter().collect(),
            curium: curium.into_iter().collect(),
            note: None,
        })
    }

    /// Returns the id without its value, such as `launch/threads`.
    pub(in crate::bench) fn group(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the value of the parameter, if it is a number.
    pub(in crate::bench) fn value(&self) -> Option<f64> {
        self.id.rsplit('/').next()?.parse().ok()
    }
}

impl Unit {
    /// Returns the abbreviation.
    pub(in crate::bench) fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::GigabytesPerSecond => "GB/s",
            Self::Calls => "calls",
        }
    }

    /// Returns `true` if lower is better.
    pub(in crate::bench) fn is_cost(self) -> bool {
        self != Self::GigabytesPerSecond
    }
}

#[cfg(test)]
mod tests {
    use Implementation::{C, Curium};

    use super::*;

    #[test]
    fn implementations_alternate_after_a_warm_up() -> Result<()> {
        let mut order = Vec::new();
        let comparison =
            Comparison::measure("a/b/7".to_owned(), Unit::Nanoseconds, 3, |implementation| {
                order.push(implementation);
                Ok(match implementation {
                    _ if order.len() <= 2 => 1e9,
                    C => 10.0,
                    Curium => 20.0,
                })
            })?;
        assert_eq!(order, [C, Curium, Curium, C, C, Curium, Curium, C]);
        assert_eq!(comparison.c.median(), 10.0);
        assert_eq!(comparison.curium.median(), 20.0);
        assert_eq!(comparison.ratio.median(), 2.0);
        assert_eq!(comparison.c.count(), 3);
        assert_eq!(comparison.group(), "a/b");
        assert_eq!(comparison.value(), Some(7.0));
        Ok(())
    }
}
