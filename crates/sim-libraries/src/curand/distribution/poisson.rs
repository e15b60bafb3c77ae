//! The Poisson distribution.

/// The maximum mean.
const MAX_MEAN: f64 = 400_000.0;

/// A Poisson distribution, as the probabilities of the numbers around its mean.
pub(super) struct Poisson {
    first: u32,
    /// The probability that a number is at most `first`, `first + 1`, …
    cumulative: Vec<f64>,
}

impl Poisson {
    /// Returns the distribution, if it is supported. Numbers further than 40 deviations from the
    /// mean are left out.
    pub(super) fn new(mean: f64) -> Option<Self> {
        if !(mean > 0.0 && mean <= MAX_MEAN) {
            return None;
        }
        let reach = 40.0 * mean.sqrt() + 40.0;
        let first = (mean - reach).max(0.0) as u32;
        let mode = mean as u32;
        let last = (mean + reach) as u32;
        let mut weights = vec![1.0; (last - first + 1) as usize];
        for number in (first..mode).rev() {
            weights[(number - first) as usize] =
                weights[(number - first + 1) as usize] * f64::from(number + 1) / mean;
        }
        for number in mode + 1..=last {
            weights[(number - first) as usize] =
                weights[(number - first - 1) as usize] * mean / f64::from(number);
        }
        let total: f64 = weights.iter().sum();
        let cumulative = weights.iter().scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        });
        Some(Self {
            first,
            cumulative: cumulative.collect(),
        })
    }

    /// Returns the smallest number that the distribution does not exceed with this probability.
    pub(super) fn quantile(&self, probability: f64) -> u32 {
        let index = self
            .cumulative
            .partition_point(|cumulative| *cumulative < probability);
        self.first + index.min(self.cumulative.len() - 1) as u32
    }
}
