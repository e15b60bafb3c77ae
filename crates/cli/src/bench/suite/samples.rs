//! Samples of one measurement.

/// Samples of one measurement, or ratios of two.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Samples {
    /// In ascending order.
    sorted: Vec<f64>,
}

impl Samples {
    /// Returns the quantile `part`, from 0 to 1.
    ///
    /// # Panics
    ///
    /// Panics if there is no sample.
    pub(in crate::bench) fn quantile(&self, part: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[(last as f64 * part).round() as usize]
    }

    /// Returns the median.
    pub(in crate::bench) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the number of samples.
    pub(in crate::bench) fn count(&self) -> usize {
        self.sorted.len()
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Samples = [5.0, 1.0, 3.0, -2.0, 4.0].into_iter().collect();
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| samples.quantile(part)),
            [-2.0, 1.0, 3.0, 4.0, 5.0]
        );
        assert_eq!(samples.median(), 3.0);
        assert_eq!(samples.count(), 5);
    }
}
