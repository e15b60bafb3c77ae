//! Rounds of measurements, and their statistics.

use curium_tests::Samples;

use crate::Result;

/// The rounds that are left out.
const FIRST_ROUNDS: usize = 2;

/// The times of all forms in each round.
pub(crate) struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Measures `forms` forms in each of `count` rounds.
    pub(crate) fn measure(
        count: usize,
        forms: usize,
        mut measure: impl FnMut(usize) -> Result<f64>,
    ) -> Result<Self> {
        let mut rounds = Vec::with_capacity(count);
        for round in 0..FIRST_ROUNDS + count {
            let mut times = vec![0.0; forms];
            for turn in 0..forms {
                let form = form_at(round, turn, forms);
                times[form] = measure(form)?;
            }
            rounds.push(times);
        }
        Ok(Self(rounds.split_off(FIRST_ROUNDS)))
    }

    /// Returns the median time of a form.
    pub(crate) fn median(&self, form: usize) -> f64 {
        self.0
            .iter()
            .map(|times| times[form])
            .collect::<Samples>()
            .median()
    }

    /// Formats the median of the ratios of two forms with its standard error: 0.93 interquartile
    /// ranges over the root of the number of rounds, for a normal distribution.
    pub(crate) fn ratio(&self, form: usize, base: usize) -> String {
        let ratios: Samples = self
            .0
            .iter()
            .map(|times| times[form] / times[base])
            .collect();
        let error =
            0.93 * (ratios.quantile(0.75) - ratios.quantile(0.25)) / (self.0.len() as f64).sqrt();
        format!("{:6.3} ± {error:5.3}", ratios.median())
    }
}

/// Returns the form of a turn: each is first equally often, and every second round has the opposite
/// order.
fn form_at(round: usize, turn: usize, forms: usize) -> usize {
    let form = (round / 2 + turn) % forms;
    if round.is_multiple_of(2) {
        form
    } else {
        forms - 1 - form
    }
}
