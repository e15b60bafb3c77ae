//! The definition of the transform, in 64 bits.

use curium_fft::Complex64;

/// Transforms data of these lengths, slowest first, by the sum that defines it. `sign` is that of
/// the exponent.
pub(super) fn transform(lengths: &[usize], sign: f64, data: &[Complex64]) -> Vec<Complex64> {
    let indices = |mut position: usize| {
        let mut indices = vec![0; lengths.len()];
        for (index, length) in indices.iter_mut().zip(lengths).rev() {
            (*index, position) = (position % length, position / length);
        }
        indices
    };
    let phase = |left: &[usize], right: &[usize]| -> f64 {
        let turns = left
            .iter()
            .zip(right)
            .zip(lengths)
            .map(|((a, b), length)| (a * b % length) as f64 / *length as f64);
        turns.sum()
    };
    let all: Vec<_> = (0..data.len()).map(indices).collect();
    all.iter()
        .map(|output: &Vec<usize>| {
            let terms = all.iter().zip(data).map(|(input, number)| {
                number * Complex64::cis(sign * std::f64::consts::TAU * phase(input, output))
            });
            terms.sum()
        })
        .collect()
}

/// Returns the numbers of a complex side that stand for real data: the first `n / 2 + 1` of each
/// row of `n`.
pub(super) fn half(lengths: &[usize], data: &[Complex64]) -> Vec<Complex64> {
    let row = lengths.last().copied().unwrap_or(1);
    data.chunks_exact(row)
        .flat_map(|row| row[..row.len() / 2 + 1].iter().copied())
        .collect()
}
