//! Random transforms: shapes, batches, strides and arrays around the data.

use bytemuck::Pod;
use curium_driver::Stream;
use curium_fft::{Complex, Complex64, Embedding, Plan, Real, Shape};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};
use fastrand::Rng;

use super::plan;
use super::reference::{half, transform};

/// A source of random numbers that a seed repeats.
struct Random(Rng);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    /// Returns a number between -1 and 1 that every type represents.
    fn number(&mut self) -> f64 {
        self.below(257) as f64 / 128.0 - 1.0
    }
}

/// One side of a random transform: the positions of its elements, in order, and the number of
/// elements of the memory.
struct Side {
    embedding: Embedding,
    positions: Vec<usize>,
    memory: usize,
}

impl Side {
    fn new<const RANK: usize>(random: &mut Random, lengths: [usize; RANK], batches: usize) -> Self {
        let outer = lengths.map(|length| length + random.below(3));
        let is_interleaved = random.below(3) == 0;
        let stride = if is_interleaved {
            batches + random.below(2)
        } else {
            1 + random.below(3)
        };
        let array = outer.iter().product::<usize>() * stride;
        let distance = if is_interleaved {
            1
        } else {
            array + random.below(4)
        };
        let mut positions = Vec::new();
        for batch in 0..batches {
            for element in 0..lengths.iter().product() {
                let mut remainder = element;
                let mut position = 0;
                let mut step = stride;
                for dimension in (0..RANK).rev() {
                    position += remainder % lengths[dimension] * step;
                    remainder /= lengths[dimension];
                    step *= outer[dimension];
                }
                positions.push(batch * distance + position);
            }
        }
        let memory = positions.iter().max().map_or(0, |last| last + 1);
        let embedding = Embedding::new(outer)
            .with_stride(stride)
            .with_distance(distance);
        Self {
            embedding,
            positions,
            memory,
        }
    }

    /// Puts numbers at their positions, between others.
    fn scatter<T: Pod>(&self, numbers: &[T], between: T) -> Vec<T> {
        let mut memory = vec![between; self.memory];
        self.positions
            .iter()
            .zip(numbers)
            .for_each(|(position, number)| memory[*position] = *number);
        memory
    }

    /// Returns the numbers at their positions, and checks that those between are as they were.
    fn gather<T: Pod + PartialEq>(&self, memory: &[T], between: T) -> Vec<T> {
        let mut is_element = vec![false; memory.len()];
        self.positions
            .iter()
            .for_each(|position| is_element[*position] = true);
        let untouched = is_element
            .iter()
            .zip(memory)
            .all(|(is_element, number)| *is_element || *number == between);
        assert!(
            untouched,
            "elements that do not belong to the output were written"
        );
        self.positions
            .iter()
            .map(|position| memory[*position])
            .collect()
    }
}

/// A precision that is tested.
trait Tested: Real + Pod + PartialEq {
    const ERROR: f64;

    fn narrow(number: f64) -> Self;

    fn widen(self) -> f64;
}

impl Tested for f32 {
    const ERROR: f64 = 1e-5;

    fn narrow(number: f64) -> Self {
        number as Self
    }

    fn widen(self) -> f64 {
        self.into()
    }
}

impl Tested for f64 {
    const ERROR: f64 = 1e-13;

    fn narrow(number: f64) -> Self {
        number
    }

    fn widen(self) -> f64 {
        self
    }
}

impl Tested for half::f16 {
    const ERROR: f64 = 1e-2;

    fn narrow(number: f64) -> Self {
        Self::from_f64(number)
    }

    fn widen(self) -> f64 {
        self.to_f64()
    }
}

fn narrow<R: Tested>(numbers: &[Complex64]) -> Vec<Complex<R>> {
    numbers
        .iter()
        .map(|number| Complex::new(R::narrow(number.re), R::narrow(number.im)))
        .collect()
}

fn widen<R: Tested>(numbers: &[Complex<R>]) -> Vec<Complex64> {
    numbers
        .iter()
        .map(|number| Complex64::new(number.re.widen(), number.im.widen()))
        .collect()
}

/// Checks that the error is small relative to the norm of the result.
#[track_caller]
fn assert_near<R: Tested>(found: &[Complex64], expected: &[Complex64], context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.sum::<f64>().sqrt();
    let size = norm(&mut expected.iter().map(Complex64::norm_sqr));
    let error = norm(
        &mut found
            .iter()
            .zip(expected)
            .map(|(found, expected)| (found - expected).norm_sqr()),
    );
    assert!(
        error <= R::ERROR * size.max(1.0),
        "{context}: error {error} at norm {size}"
    );
}

/// One random transform of `RANK` dimensions.
struct Case<'a, const RANK: usize> {
    random: &'a mut Random,
    stream: &'a Stream,
    lengths: [usize; RANK],
    batches: usize,
}

impl<const RANK: usize> Case<'_, RANK> {
    fn data(&mut self, len: usize) -> Vec<Complex64> {
        (0..len * self.batches)
            .map(|_| Complex64::new(self.random.number(), self.random.number()))
            .collect()
    }

    /// Transforms each batch by definition.
    fn expected(&self, sign: f64, data: &[Complex64]) -> Vec<Complex64> {
        let len = self.lengths.iter().product();
        data.chunks_exact(len)
            .flat_map(|batch| transform(&self.lengths, sign, batch))
            .collect()
    }

    fn context<R>(&self, shape: &Shape) -> String {
        format!("{} {shape:?}", std::any::type_name::<R>())
    }

    fn complex<R: Tested>(&mut self) -> TestResult {
        let input = Side::new(self.random, self.lengths, self.batches);
        let output = Side::new(self.random, self.lengths, self.batches);
        let shape = Shape::new(self.lengths).with_batches(self.batches);
        let shape = shape
            .with_input(input.embedding.clone())
            .with_output(output.embedding.clone());
        let mut plan: Plan<Complex<R>, Complex<R>> = plan(self.stream, &shape);
        assert_eq!(
            (plan.input_len(), plan.output_len()),
            (input.memory, output.memory)
        );
        let data = self.data(self.lengths.iter().product());
        let zero = Complex::new(R::narrow(0.0), R::narrow(0.0));
        let between = Complex::new(R::narrow(77.0), R::narrow(-77.0));
        let from =
            DeviceBuffer::from_slice(self.stream, &input.scatter(&narrow::<R>(&data), zero))?;
        for sign in [-1.0, 1.0] {
            let mut to = DeviceBuffer::from_slice(self.stream, &vec![between; output.memory])?;
            let called = if sign < 0.0 {
                plan.forward(&from, &mut to)
            } else {
                plan.inverse(&from, &mut to)
            };
            called?;
            let actual = output.gather(&to.to_vec()?, between);
            assert_near::<R>(
                &widen(&actual),
                &self.expected(sign, &data),
                &self.context::<R>(&shape),
            );
        }
        Ok(())
    }

    fn in_place<R: Tested>(&mut self) {
        let shape = Shape::new(self.lengths)
            .with_batches(self.batches)
            .in_place();
        let mut plan: Plan<Complex<R>, Complex<R>> = plan(self.stream, &shape);
        let data = self.data(self.lengths.iter().product());
        let mut buffer =
            DeviceBuffer::from_slice(self.stream, &narrow::<R>(&data)).expect("allocation failed");
        plan.inverse_in_place(&mut buffer).expect("the memory fits");
        let actual = widen(&buffer.to_vec().expect("read failed"));
        assert_near::<R>(
            &actual,
            &self.expected(1.0, &data),
            &self.context::<R>(&shape),
        );
    }

    /// Transforms real data forward, and back.
    fn real<R: Tested>(&mut self) -> TestResult {
        let mut half_lengths = self.lengths;
        half_lengths[RANK - 1] = self.lengths[RANK - 1] / 2 + 1;
        let real = Side::new(self.random, self.lengths, self.batches);
        let complex = Side::new(self.random, half_lengths, self.batches);
        let len = self.lengths.iter().product::<usize>();
        let data: Vec<_> = self
            .data(len)
            .into_iter()
            .map(|number| Complex64::from(number.re))
            .collect();
        let spectrum = half(&self.lengths, &self.expected(-1.0, &data));
        let shape = Shape::new(self.lengths).with_batches(self.batches);

        let forward = shape
            .clone()
            .with_input(real.embedding.clone())
            .with_output(complex.embedding.clone());
        let mut plan_forward: Plan<R, Complex<R>> = plan(self.stream, &forward);
        let numbers: Vec<R> = data.iter().map(|number| R::narrow(number.re)).collect();
        let from = DeviceBuffer::from_slice(self.stream, &real.scatter(&numbers, R::narrow(0.0)))?;
        let between = Complex::new(R::narrow(77.0), R::narrow(-77.0));
        let mut to = DeviceBuffer::from_slice(self.stream, &vec![between; complex.memory])?;
        plan_forward.forward(&from, &mut to)?;
        let actual = complex.gather(&to.to_vec()?, between);
        assert_near::<R>(&widen(&actual), &spectrum, &self.context::<R>(&forward));

        let inverse = shape
            .with_input(complex.embedding.clone())
            .with_output(real.embedding.clone());
        let mut plan_inverse: Plan<Complex<R>, R> = plan(self.stream, &inverse);
        let zero = Complex::new(R::narrow(0.0), R::narrow(0.0));
        let memory = complex.scatter(&narrow::<R>(&spectrum), zero);
        let mut from = DeviceBuffer::from_slice(self.stream, &memory)?;
        let between = R::narrow(77.0);
        let mut to = DeviceBuffer::from_slice(self.stream, &vec![between; real.memory])?;
        plan_inverse.inverse(&mut from, &mut to)?;
        let actual = real.gather(&to.to_vec()?, between);
        let actual: Vec<_> = actual
            .into_iter()
            .map(|number| Complex64::from(number.widen()))
            .collect();
        let expected: Vec<_> = data.iter().map(|number| number * len as f64).collect();
        assert_near::<R>(&actual, &expected, &self.context::<R>(&inverse));
        Ok(())
    }

    /// Transforms real data forward and back in place, with padded rows.
    fn real_in_place<R: Tested>(&mut self) -> TestResult {
        let row = self.lengths[RANK - 1];
        let len = self.lengths.iter().product::<usize>();
        let padded = row / 2 + 1;
        let data: Vec<_> = self
            .data(len)
            .into_iter()
            .map(|number| Complex64::from(number.re))
            .collect();
        let spectrum = half(&self.lengths, &self.expected(-1.0, &data));
        let rows: Vec<_> = data
            .chunks_exact(row)
            .flat_map(|row: &[Complex64]| -> Vec<Complex64> {
                let real_part = |index: usize| row.get(index).map_or(0.0, |number| number.re);
                (0..padded)
                    .map(|pair| Complex64::new(real_part(2 * pair), real_part(2 * pair + 1)))
                    .collect()
            })
            .collect();
        let shape = Shape::new(self.lengths)
            .with_batches(self.batches)
            .in_place();
        let mut buffer = DeviceBuffer::from_slice(self.stream, &narrow::<R>(&rows))?;
        let mut forward: Plan<R, Complex<R>> = plan(self.stream, &shape);
        forward.forward_in_place(&mut buffer)?;
        let actual = widen(&buffer.to_vec()?);
        assert_near::<R>(&actual, &spectrum, &self.context::<R>(&shape));
        let mut inverse: Plan<Complex<R>, R> = plan(self.stream, &shape);
        inverse.inverse_in_place(&mut buffer)?;
        let actual = widen(&buffer.to_vec()?);
        let actual: Vec<_> = actual
            .chunks_exact(padded)
            .flat_map(|row: &[Complex64]| -> Vec<Complex64> {
                let all = row.iter().flat_map(|pair| [pair.re, pair.im]);
                all.take(self.lengths[RANK - 1])
                    .map(Complex64::from)
                    .collect()
            })
            .collect();
        let expected: Vec<_> = data.iter().map(|number| number * len as f64).collect();
        assert_near::<R>(&actual, &expected, &self.context::<R>(&shape));
        Ok(())
    }

    fn every<R: Tested>(&mut self) -> TestResult {
        self.complex::<R>()?;
        self.in_place::<R>();
        self.real::<R>()?;
        self.real_in_place::<R>()?;
        Ok(())
    }
}

fn cases<const RANK: usize, R: Tested>(
    stream: &Stream,
    seed: u64,
    largest: usize,
    count: usize,
) -> TestResult {
    let random = &mut Random(Rng::with_seed(seed));
    for _ in 0..count {
        let lengths = [(); RANK].map(|()| 1 + random.below(largest));
        let batches = 1 + random.below(3);
        Case {
            random,
            stream,
            lengths,
            batches,
        }
        .every::<R>()?;
    }
    Ok(())
}

#[driver_test]
fn f32_transforms_match_the_definition(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    cases::<1, f32>(&stream, 1, 50, 12)?;
    cases::<2, f32>(&stream, 2, 9, 12)?;
    cases::<3, f32>(&stream, 3, 6, 8)?;
    Ok(())
}

#[driver_test]
fn f64_transforms_match_the_definition(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    cases::<1, f64>(&stream, 4, 50, 12)?;
    cases::<2, f64>(&stream, 5, 9, 12)?;
    cases::<3, f64>(&stream, 6, 6, 8)?;
    Ok(())
}

#[driver_test]
fn f16_transforms_match_the_definition(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let random = &mut Random(Rng::with_seed(7));
    for lengths in [[8, 4], [16, 2], [4, 32]] {
        let mut case = Case {
            random,
            stream: &stream,
            lengths,
            batches: 2,
        };
        // cuFFT has no strides for real numbers of 16 bits.
        case.complex::<half::f16>()?;
        case.in_place::<half::f16>();
        case.real_in_place::<half::f16>()?;
    }
    Ok(())
}
