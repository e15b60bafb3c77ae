//! The computation of a transform, row by row in each dimension.

use bytemuck::Pod;
use num_complex::Complex;
use num_traits::Zero as _;
use rustfft::{FftDirection, FftNum, FftPlanner};

use super::plan::Form;

/// A real number as it is in memory, and the type that transforms compute with.
pub(super) trait Stored: Pod + Send + Sync {
    type Computed: FftNum;

    fn widen(self) -> Self::Computed;

    fn narrow(computed: Self::Computed) -> Self;
}

impl Stored for f32 {
    type Computed = Self;

    fn widen(self) -> Self {
        self
    }

    fn narrow(computed: Self) -> Self {
        computed
    }
}

impl Stored for f64 {
    type Computed = Self;

    fn widen(self) -> Self {
        self
    }

    fn narrow(computed: Self) -> Self {
        computed
    }
}

impl Stored for half::f16 {
    type Computed = f32;

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn narrow(computed: f32) -> Self {
        Self::from_f32(computed)
    }
}

/// Transforms the bytes of all batches.
pub(super) fn transform<S: Stored>(
    form: Form,
    lengths: &[usize],
    direction: FftDirection,
    input: &[u8],
) -> Vec<u8> {
    let numbers: Vec<S::Computed> = bytemuck::pod_collect_to_vec::<u8, S>(input)
        .into_iter()
        .map(S::widen)
        .collect();
    let numbers = match form {
        Form::ComplexToComplex => {
            let mut data = pairs(&numbers);
            along(lengths, 0..lengths.len(), direction, &mut data);
            parts(&data)
        }
        Form::RealToComplex => parts(&real_to_complex(lengths, &numbers)),
        Form::ComplexToReal => complex_to_real(lengths, pairs(&numbers)),
    };
    let numbers: Vec<S> = numbers.into_iter().map(S::narrow).collect();
    bytemuck::cast_slice(&numbers).to_vec()
}

fn real_to_complex<T: FftNum>(lengths: &[usize], numbers: &[T]) -> Vec<Complex<T>> {
    let last = lengths.len() - 1;
    let mut half = lengths.to_vec();
    half[last] = lengths[last] / 2 + 1;
    let mut data: Vec<_> = numbers
        .iter()
        .map(|number| Complex::new(*number, T::zero()))
        .collect();
    along(&lengths[last..], 0..1, FftDirection::Forward, &mut data);
    let mut data: Vec<_> = data
        .chunks_exact(lengths[last])
        .flat_map(|row| row[..half[last]].iter().copied())
        .collect();
    along(&half, 0..last, FftDirection::Forward, &mut data);
    data
}

/// The imaginary parts of the numbers that are real for a real signal are left out.
fn complex_to_real<T: FftNum>(lengths: &[usize], mut data: Vec<Complex<T>>) -> Vec<T> {
    let last = lengths.len() - 1;
    let mut half = lengths.to_vec();
    half[last] = lengths[last] / 2 + 1;
    along(&half, 0..last, FftDirection::Inverse, &mut data);
    let len = lengths[last];
    let mut whole = Vec::with_capacity(data.len() / half[last] * len);
    for row in data.chunks_exact(half[last]) {
        for index in 0..len {
            let number = if index < row.len() {
                row[index]
            } else {
                row[len - index].conj()
            };
            let is_real = index == 0 || 2 * index == len;
            whole.push(Complex::new(
                number.re,
                if is_real { T::zero() } else { number.im },
            ));
        }
    }
    let mut data = whole;
    along(&lengths[last..], 0..1, FftDirection::Inverse, &mut data);
    data.into_iter().map(|number| number.re).collect()
}

/// Transforms arrays of these lengths, which follow each other, along some dimensions.
fn along<T: FftNum>(
    lengths: &[usize],
    dimensions: std::ops::Range<usize>,
    direction: FftDirection,
    data: &mut [Complex<T>],
) {
    let mut planner = FftPlanner::new();
    for dimension in dimensions {
        let len = lengths[dimension];
        let step: usize = lengths[dimension + 1..].iter().product();
        let fft = planner.plan_fft(len, direction);
        let mut line = vec![Complex::zero(); len];
        for array in data.chunks_exact_mut(len * step) {
            for start in 0..step {
                for (to, from) in line.iter_mut().zip(array[start..].iter().step_by(step)) {
                    *to = *from;
                }
                fft.process(&mut line);
                for (to, from) in array[start..].iter_mut().step_by(step).zip(&line) {
                    *to = *from;
                }
            }
        }
    }
}

fn pairs<T: FftNum>(numbers: &[T]) -> Vec<Complex<T>> {
    numbers
        .as_chunks::<2>()
        .0
        .iter()
        .map(|parts| Complex::new(parts[0], parts[1]))
        .collect()
}

fn parts<T: FftNum>(numbers: &[Complex<T>]) -> Vec<T> {
    numbers
        .iter()
        .flat_map(|number| [number.re, number.im])
        .collect()
}
