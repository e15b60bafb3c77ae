//! The layout of both sides of a transform, resolved and checked.

use std::ffi::c_longlong;
use std::fmt;

use crate::element::Form;
use crate::error::{Result, ShapeError};
use crate::shape::{Embedding, Shape};

/// The layout of a transform.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) form: Form,
    pub(crate) lengths: Vec<usize>,
    pub(crate) batches: usize,
    pub(crate) input: Side,
    pub(crate) output: Side,
    /// The number of complex elements that a transform in place needs; `None` if the layouts of
    /// both sides do not agree.
    span_in_place: Option<usize>,
}

/// The layout of one side of a transform.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Side {
    /// The lengths of the data.
    lengths: Vec<usize>,
    /// The lengths of the array that contains the data.
    embedding: Vec<usize>,
    stride: usize,
    /// The distance between the elements of each dimension.
    steps: Vec<usize>,
    /// The distance between the first elements of two batches.
    distance: usize,
    /// The number of elements from the first one to the last one of all batches.
    span: usize,
}

/// The elements of one side of a transform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Elements {
    Complex,
    /// The complex side of a real transform, which has n / 2 + 1 elements in the last dimension.
    HalfComplex,
    Real,
}

impl Elements {
    /// Returns the layout of a side with these elements. By default they are packed, and the real
    /// rows of a transform in place are padded to the length of the complex ones.
    fn side(
        self,
        operation: &'static str,
        name: &str,
        shape: &Shape,
        embedding: Option<&Embedding>,
    ) -> Result<Side> {
        let mut lengths = shape.lengths.clone();
        if self == Self::HalfComplex
            && let Some(last) = lengths.last_mut()
        {
            *last = *last / 2 + 1;
        }
        let embedding = embedding.cloned().unwrap_or_else(|| {
            let mut padded = lengths.clone();
            if self == Self::Real
                && shape.is_in_place
                && let Some(last) = padded.last_mut()
            {
                *last = (*last / 2 + 1).saturating_mul(2);
            }
            Embedding {
                lengths: padded,
                stride: 1,
                distance: None,
            }
        });
        Side::new(operation, name, lengths, &embedding, shape.batches)
    }
}

impl Layout {
    pub(crate) fn new(operation: &'static str, form: Form, shape: &Shape) -> Result<Self> {
        let Shape {
            lengths, batches, ..
        } = shape;
        if lengths.contains(&0) || *batches == 0 {
            return Err(refused(
                operation,
                format!("nothing to transform ({lengths:?}, {batches} batches)"),
            ));
        }
        let (input, output) = match form {
            Form::ComplexToComplex => (Elements::Complex, Elements::Complex),
            Form::RealToComplex => (Elements::Real, Elements::HalfComplex),
            Form::ComplexToReal => (Elements::HalfComplex, Elements::Real),
        };
        let input = input.side(operation, "input", shape, shape.input.as_ref())?;
        let output = output.side(operation, "output", shape, shape.output.as_ref())?;
        if output.overlaps(*batches) {
            return Err(refused(
                operation,
                format!("elements of the output overlap ({output}, {batches} batches)"),
            ));
        }
        let span_in_place = span_in_place(form, *batches, &input, &output);
        Ok(Self {
            form,
            lengths: lengths.clone(),
            batches: *batches,
            input,
            output,
            span_in_place,
        })
    }

    /// Checks that every length is a power of two.
    pub(crate) fn check_powers_of_two(&self, operation: &'static str) -> Result<()> {
        if self.lengths.iter().all(|length| length.is_power_of_two()) {
            return Ok(());
        }
        let lengths = &self.lengths;
        Err(refused(
            operation,
            format!("cuFFT requires lengths that are powers of two for f16 ({lengths:?})"),
        ))
    }

    /// Returns the number of complex elements that a transform in place needs, if the layouts of
    /// both sides agree.
    #[inline]
    pub(crate) fn span_in_place(&self, operation: &'static str) -> Result<usize> {
        self.span_in_place
            .ok_or_else(|| self.disagreement(operation))
    }

    #[cold]
    fn disagreement(&self, operation: &'static str) -> crate::Error {
        let advice = if self.form == Form::ComplexToComplex {
            ""
        } else {
            "; create the plan with `Shape::in_place`"
        };
        let Self { input, output, .. } = self;
        refused(
            operation,
            format!("layouts do not agree (input {input}, output {output}){advice}"),
        )
    }
}

fn span_in_place(form: Form, batches: usize, input: &Side, output: &Side) -> Option<usize> {
    let (complex, agree) = match form {
        Form::ComplexToComplex => (input, input == output),
        Form::RealToComplex => (output, output.holds(input, batches)),
        Form::ComplexToReal => (input, input.holds(output, batches)),
    };
    agree.then_some(complex.span)
}

impl Side {
    fn new(
        operation: &'static str,
        name: &str,
        lengths: Vec<usize>,
        embedding: &Embedding,
        batches: usize,
    ) -> Result<Self> {
        let Embedding {
            lengths: outer,
            stride,
            ..
        } = embedding;
        let is_embedded = outer.len() == lengths.len()
            && lengths
                .iter()
                .zip(outer)
                .skip(1)
                .all(|(length, outer)| length <= outer);
        if !is_embedded || *stride == 0 {
            let problem = format!(
                "{name} does not fit its layout ({lengths:?} in {outer:?}, stride {stride})"
            );
            return Err(refused(operation, problem));
        }
        Self::embedded(lengths, embedding, batches).ok_or_else(|| {
            refused(
                operation,
                format!("{name} too large ({outer:?}, stride {stride}, {batches} batches)"),
            )
        })
    }

    /// Returns the layout of a side in an embedding; `None` if a number exceeds `usize` or C's
    /// type.
    fn embedded(lengths: Vec<usize>, embedding: &Embedding, batches: usize) -> Option<Self> {
        let outer = &embedding.lengths;
        let steps = steps(outer, embedding.stride)?;
        let distance = match embedding.distance {
            Some(distance) => distance,
            None => steps[0].checked_mul(outer[0])?,
        };
        let span = span(&lengths, &steps, distance, batches)?;
        let is_representable = outer
            .iter()
            .chain(&steps)
            .chain([&distance, &span])
            .all(|number| c_longlong::try_from(*number).is_ok());
        if !is_representable {
            return None;
        }
        Some(Self {
            lengths,
            embedding: outer.clone(),
            stride: embedding.stride,
            steps,
            distance,
            span,
        })
    }

    /// Returns the number of elements from the first one to the last one of all batches.
    #[inline]
    pub(crate) fn span(&self) -> usize {
        self.span
    }

    pub(crate) fn stride(&self) -> c_longlong {
        self.stride as c_longlong
    }

    pub(crate) fn distance(&self) -> c_longlong {
        self.distance as c_longlong
    }

    pub(crate) fn embedding(&self) -> Vec<c_longlong> {
        self.embedding
            .iter()
            .map(|length| *length as c_longlong)
            .collect()
    }

    /// Returns `true` unless the stride of each dimension exceeds the extent of all dimensions with
    /// smaller strides.
    fn overlaps(&self, batches: usize) -> bool {
        let mut steps: Vec<_> = self
            .steps
            .iter()
            .copied()
            .zip(self.lengths.iter().copied())
            .collect();
        steps.push((self.distance, batches));
        steps.retain(|(_, count)| *count > 1);
        steps.sort_unstable();
        let mut reach = 0;
        steps.into_iter().any(|(distance, count)| {
            let overlaps = distance <= reach;
            // The sum of all is less than the span.
            reach += distance * (count - 1);
            overlaps
        })
    }

    /// Returns `true` if each row of `real` starts where the same row of these complex elements
    /// does.
    fn holds(&self, real: &Self, batches: usize) -> bool {
        let rows = self
            .steps
            .iter()
            .zip(&real.steps)
            .take(self.lengths.len() - 1);
        let batches = (batches > 1).then_some((&self.distance, &real.distance));
        self.stride == 1
            && real.stride == 1
            && rows
                .chain(batches)
                .all(|(complex, real)| complex.checked_mul(2) == Some(*real))
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lengths,
            embedding,
            stride,
            distance,
            ..
        } = self;
        write!(
            formatter,
            "{lengths:?} in {embedding:?}, stride {stride}, distance {distance}"
        )
    }
}

/// Returns the distance between the elements of each dimension; `None` if one exceeds `usize`.
fn steps(embedding: &[usize], stride: usize) -> Option<Vec<usize>> {
    let mut steps = vec![stride; embedding.len()];
    for dimension in (1..embedding.len()).rev() {
        steps[dimension - 1] = steps[dimension].checked_mul(embedding[dimension])?;
    }
    Some(steps)
}

/// Returns the number of elements from the first one to the last one of all batches; `None` if it
/// exceeds `usize`. No length is 0.
fn span(lengths: &[usize], steps: &[usize], distance: usize, batches: usize) -> Option<usize> {
    let mut last = distance.checked_mul(batches - 1)?;
    for (length, step) in lengths.iter().zip(steps) {
        last = last.checked_add(step.checked_mul(length - 1)?)?;
    }
    last.checked_add(1)
}

#[cold]
fn refused(operation: &'static str, problem: String) -> crate::Error {
    ShapeError::refused(operation, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(form: Form, shape: &Shape) -> Result<Layout> {
        Layout::new("Plan::new", form, shape)
    }

    #[test]
    fn spans_end_at_the_last_element() {
        let shape = Shape::new([3, 4])
            .with_batches(2)
            .with_input(Embedding::new([5, 6]).with_stride(2).with_distance(100));
        let layout = layout(Form::ComplexToComplex, &shape).expect("invalid layout");
        // The last element is (2, 3) of the second batch.
        assert_eq!(layout.input.span(), 100 + (2 * 6 + 3) * 2 + 1);
        assert_eq!(layout.output.span(), 24);
    }

    #[test]
    fn real_sides_are_longer_and_padded_in_place() {
        let shape = Shape::new([2, 5]).with_batches(3);
        let packed = layout(Form::RealToComplex, &shape).expect("invalid layout");
        assert_eq!((packed.input.span(), packed.output.span()), (30, 18));
        assert!(packed.span_in_place("f").is_err());
        let padded = layout(Form::ComplexToReal, &shape.in_place()).expect("invalid layout");
        assert_eq!((padded.input.span(), padded.output.span()), (18, 35));
        assert_eq!(padded.span_in_place("f").ok(), Some(18));
    }

    /// Every combination of extreme lengths, embeddings, strides, distances and batches is an
    /// error, or has a span in the range of C's type.
    #[test]
    fn extreme_shapes_are_errors_not_panics() {
        const NUMBERS: [usize; 8] = [
            1,
            2,
            3,
            1 << 31,
            1 << 32,
            usize::MAX / 2,
            usize::MAX / 2 + 1,
            usize::MAX,
        ];
        struct Random(u64);

        impl Random {
            fn number(&mut self) -> usize {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                NUMBERS[(self.0 >> 32) as usize % NUMBERS.len()]
            }

            fn embedding(&mut self) -> Embedding {
                let embedding =
                    Embedding::new([self.number(), self.number()]).with_stride(self.number());
                match self.number() {
                    1 | 2 => embedding,
                    distance => embedding.with_distance(distance),
                }
            }
        }

        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let forms = [
            Form::ComplexToComplex,
            Form::RealToComplex,
            Form::ComplexToReal,
        ];
        let mut accepted = 0;
        for round in 0..200_000 {
            let input = random.embedding();
            let output = random.embedding();
            let mut shape =
                Shape::new([random.number(), random.number()]).with_batches(random.number());
            if random.number() > 2 {
                shape = shape.with_input(input);
            }
            if random.number() > 2 {
                shape = shape.with_output(output);
            }
            if random.number() > 2 {
                shape = shape.in_place();
            }
            let form = forms[round % forms.len()];
            let Ok(layout) = layout(form, &shape) else {
                continue;
            };
            accepted += 1;
            for side in [&layout.input, &layout.output] {
                let numbers = side.embedding.iter().chain(&side.steps);
                for number in numbers.chain([&side.stride, &side.distance, &side.span]) {
                    assert!(c_longlong::try_from(*number).is_ok(), "{shape:?}");
                }
            }
            let _ = layout.span_in_place("f");
        }
        assert!(accepted > 1000, "{accepted} shapes are possible");
    }

    #[test]
    fn overlapping_outputs_are_refused() {
        let interleaved = Embedding::new([100]).with_stride(30).with_distance(1);
        let shape = Shape::new([100])
            .with_batches(30)
            .with_output(interleaved.clone());
        assert!(layout(Form::ComplexToComplex, &shape).is_ok());
        let shape = Shape::new([100]).with_batches(31).with_output(interleaved);
        assert!(layout(Form::ComplexToComplex, &shape).is_err());
        let dense = Embedding::new([8]).with_distance(7);
        assert!(
            layout(
                Form::ComplexToComplex,
                &Shape::new([8]).with_batches(2).with_output(dense.clone())
            )
            .is_err()
        );
        // Inputs may overlap, as windows of a signal do.
        assert!(
            layout(
                Form::ComplexToComplex,
                &Shape::new([8]).with_batches(2).with_input(dense)
            )
            .is_ok()
        );
    }
}
