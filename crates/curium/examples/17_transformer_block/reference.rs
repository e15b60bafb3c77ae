//! The block in f64 on the CPU, and the comparison with it.

use std::convert::Infallible;

use half::bf16;

use crate::block::{Parameters, Sample, Shape};

/// The results of a step, and their names.
pub(crate) struct Reference {
    pub(crate) output: Vec<f64>,
    pub(crate) input_gradient: Vec<f64>,
    pub(crate) parameter_gradients: Parameters<Vec<f64>>,
}

/// The epsilon of normalizations.
const EPSILON: f64 = 1e-5;

impl Sample {
    /// Creates pseudo-random values of the usual magnitudes, the same on each call. Ranks have the
    /// same parameters.
    pub(crate) fn new(shape: Shape, rank: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut numbers = |count: usize, middle: f64, range: f64| -> Vec<bf16> {
            let mut number = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                bf16::from_f64(middle + range * ((state >> 40) as f64 / (1 << 23) as f64 - 1.0))
            };
            (0..count).map(|_| number()).collect()
        };
        let lengths = shape.lengths();
        let of_width = (3.0 / shape.width as f64).sqrt();
        let of_hidden = (3.0 / shape.hidden() as f64).sqrt();
        let parameters = Parameters {
            norm1_gain: numbers(lengths.norm1_gain, 1.0, 0.5),
            norm1_bias: numbers(lengths.norm1_bias, 0.0, 0.5),
            qkv_weight: numbers(lengths.qkv_weight, 0.0, of_width),
            qkv_bias: numbers(lengths.qkv_bias, 0.0, 0.5),
            projection_weight: numbers(lengths.projection_weight, 0.0, of_width),
            projection_bias: numbers(lengths.projection_bias, 0.0, 0.5),
            norm2_gain: numbers(lengths.norm2_gain, 1.0, 0.5),
            norm2_bias: numbers(lengths.norm2_bias, 0.0, 0.5),
            up_weight: numbers(lengths.up_weight, 0.0, of_width),
            up_bias: numbers(lengths.up_bias, 0.0, 0.5),
            down_weight: numbers(lengths.down_weight, 0.0, of_hidden),
            down_bias: numbers(lengths.down_bias, 0.0, 0.5),
        };
        let elements = shape.rows() * shape.width;
        // The values of previous ranks.
        let _ = numbers(rank * 2 * elements, 0.0, 1.7);
        Self {
            parameters,
            input: numbers(elements, 0.0, 1.7),
            output_gradient: numbers(elements, 0.0, 1.7),
        }
    }
}

impl Reference {
    /// Computes one rank's step; gradients are averaged across ranks.
    pub(crate) fn averaged(shape: Shape, rank: usize, ranks: usize) -> Self {
        let mut all: Vec<_> = (0..ranks)
            .map(|rank| Self::new(shape, &Sample::new(shape, rank)))
            .collect();
        let gradients: Vec<_> = all
            .iter()
            .map(|step| step.parameter_gradients.named())
            .collect();
        let mut parameters = 0..;
        let Ok(parameter_gradients) = all[rank].parameter_gradients.try_map(|_| {
            let parameter = parameters.next().expect("the range is endless");
            let elements = 0..gradients[rank][parameter].1.len();
            let means = elements.map(|element| {
                let sum: f64 = gradients
                    .iter()
                    .map(|step| step[parameter].1[element])
                    .sum();
                sum / ranks as f64
            });
            Ok::<_, Infallible>(means.collect())
        });
        Self {
            parameter_gradients,
            ..all.swap_remove(rank)
        }
    }

    /// Computes a step.
    pub(crate) fn new(shape: Shape, sample: &Sample) -> Self {
        let Ok(p) = sample
            .parameters
            .try_map(|values| Ok::<_, Infallible>(to_f64(values)));
        let x = to_f64(&sample.input);
        let dy = to_f64(&sample.output_gradient);
        let width = shape.width;
        let hidden = shape.hidden();

        let norm1 = Norm::new(&x, &p.norm1_gain, &p.norm1_bias);
        let qkv = Layer {
            input: &norm1.output,
            weight: &p.qkv_weight,
            inputs: width,
        };
        let attention = Attention::new(shape, qkv.output(&p.qkv_bias));
        let projection = Layer {
            input: &attention.context,
            weight: &p.projection_weight,
            inputs: width,
        };
        let middle = sum(&x, &projection.output(&p.projection_bias));
        let norm2 = Norm::new(&middle, &p.norm2_gain, &p.norm2_bias);
        let up = Layer {
            input: &norm2.output,
            weight: &p.up_weight,
            inputs: width,
        };
        let before = up.output(&p.up_bias);
        let activated: Vec<f64> = before.iter().map(|x| gelu(*x)).collect();
        let down = Layer {
            input: &activated,
            weight: &p.down_weight,
            inputs: hidden,
        };
        let output = sum(&middle, &down.output(&p.down_bias));

        let of_down = down.gradient(&dy);
        let of_before: Vec<f64> = of_down
            .input
            .iter()
            .zip(&before)
            .map(|(d, x)| d * gelu_slope(*x))
            .collect();
        let of_up = up.gradient(&of_before);
        let of_norm2 = norm2.gradient(&of_up.input, &p.norm2_gain);
        let of_middle = sum(&dy, &of_norm2.input);
        let of_projection = projection.gradient(&of_middle);
        let of_qkv = qkv.gradient(&attention.gradient(&of_projection.input));
        let of_norm1 = norm1.gradient(&of_qkv.input, &p.norm1_gain);
        Self {
            output,
            input_gradient: sum(&of_middle, &of_norm1.input),
            parameter_gradients: Parameters {
                norm1_gain: of_norm1.weight,
                norm1_bias: of_norm1.bias,
                qkv_weight: of_qkv.weight,
                qkv_bias: of_qkv.bias,
                projection_weight: of_projection.weight,
                projection_bias: of_projection.bias,
                norm2_gain: of_norm2.weight,
                norm2_bias: of_norm2.bias,
                up_weight: of_up.weight,
                up_bias: of_up.bias,
                down_weight: of_down.weight,
                down_bias: of_down.bias,
            },
        }
    }
}

/// Returns the largest error of a result, relative to the largest expected element.
pub(crate) fn error(found: &[bf16], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len(), "the result has all elements");
    let largest = expected
        .iter()
        .fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let differences = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (found.to_f64() - expected).abs());
    // A NaN is the greatest error.
    differences.fold(0.0_f64, |error, difference| {
        if difference <= error {
            error
        } else {
            difference
        }
    }) / largest
}

/// The gradients of the operands of a layer or a normalization, whose weight is called gain.
struct Gradient {
    input: Vec<f64>,
    weight: Vec<f64>,
    bias: Vec<f64>,
}

/// A layer: input times the transposed weight, plus bias.
struct Layer<'a> {
    input: &'a [f64],
    weight: &'a [f64],
    inputs: usize,
}

impl Layer<'_> {
    fn outputs(&self) -> usize {
        self.weight.len() / self.inputs
    }

    fn output(&self, bias: &[f64]) -> Vec<f64> {
        let mut outputs = Vec::new();
        for row in self.input.chunks(self.inputs) {
            for (weight, bias) in self.weight.chunks(self.inputs).zip(bias) {
                outputs.push(dot(row, weight) + bias);
            }
        }
        outputs
    }

    fn gradient(&self, dy: &[f64]) -> Gradient {
        let outputs = self.outputs();
        let mut gradient = Gradient {
            input: vec![0.0; self.input.len()],
            weight: vec![0.0; self.weight.len()],
            bias: vec![0.0; outputs],
        };
        let rows = self
            .input
            .chunks(self.inputs)
            .zip(gradient.input.chunks_mut(self.inputs));
        for ((x, dx), dy) in rows.zip(dy.chunks(outputs)) {
            for (output, dy) in dy.iter().enumerate() {
                let weights = output * self.inputs..(output + 1) * self.inputs;
                add_scaled(dx, *dy, &self.weight[weights.clone()]);
                add_scaled(&mut gradient.weight[weights], *dy, x);
                gradient.bias[output] += dy;
            }
        }
        gradient
    }
}

/// The normalization of rows.
struct Norm {
    normalized: Vec<f64>,
    /// The reciprocals of the deviations of the rows.
    reciprocals: Vec<f64>,
    output: Vec<f64>,
}

impl Norm {
    fn new(x: &[f64], gain: &[f64], bias: &[f64]) -> Self {
        let width = gain.len();
        let mut norm = Self {
            normalized: Vec::new(),
            reciprocals: Vec::new(),
            output: Vec::new(),
        };
        for row in x.chunks(width) {
            let mean = row.iter().sum::<f64>() / width as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let reciprocal = 1.0 / (variance + EPSILON).sqrt();
            norm.reciprocals.push(reciprocal);
            for ((x, gain), bias) in row.iter().zip(gain).zip(bias) {
                norm.normalized.push((x - mean) * reciprocal);
                norm.output.push((x - mean) * reciprocal * gain + bias);
            }
        }
        norm
    }

    fn gradient(&self, dy: &[f64], gain: &[f64]) -> Gradient {
        let width = gain.len();
        let mut gradient = Gradient {
            input: Vec::new(),
            weight: vec![0.0; width],
            bias: vec![0.0; width],
        };
        let rows = self
            .normalized
            .chunks(width)
            .zip(dy.chunks(width))
            .zip(&self.reciprocals);
        for ((normalized, dy), reciprocal) in rows {
            let scaled: Vec<f64> = dy.iter().zip(gain).map(|(dy, gain)| dy * gain).collect();
            let mean = scaled.iter().sum::<f64>() / width as f64;
            let product = dot(&scaled, normalized) / width as f64;
            for column in 0..width {
                gradient.weight[column] += dy[column] * normalized[column];
                gradient.bias[column] += dy[column];
                gradient
                    .input
                    .push(reciprocal * (scaled[column] - mean - normalized[column] * product));
            }
        }
        gradient
    }
}

/// The attention of all heads.
struct Attention {
    shape: Shape,
    qkv: Vec<f64>,
    /// The probabilities, by head of all samples, query and key.
    probabilities: Vec<f64>,
    context: Vec<f64>,
}

impl Attention {
    fn new(shape: Shape, qkv: Vec<f64>) -> Self {
        let length = shape.sequence;
        let probabilities = Vec::new();
        let context = vec![0.0; shape.rows() * shape.width];
        let mut attention = Self {
            shape,
            qkv,
            probabilities,
            context,
        };
        for (head, query) in attention.places() {
            let visible = attention.visible(query);
            let mut row: Vec<f64> = (0..length)
                .map(|key| attention.score(head, query, key))
                .collect();
            row[visible..].fill(f64::NEG_INFINITY);
            let largest = row
                .iter()
                .fold(f64::NEG_INFINITY, |largest, score| largest.max(*score));
            row.iter_mut()
                .for_each(|score| *score = (*score - largest).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|weight| *weight /= total);
            let start = attention.context_at(head, query);
            for (key, weight) in row[..visible].iter().enumerate() {
                let values = attention.part(head, key, 2).to_vec();
                add_scaled(
                    &mut attention.context[start..start + shape.head()],
                    *weight,
                    &values,
                );
            }
            attention.probabilities.extend(row);
        }
        attention
    }

    /// Returns the gradient of queries, keys and values.
    fn gradient(&self, dy: &[f64]) -> Vec<f64> {
        let length = self.shape.sequence;
        let width = self.shape.head();
        let mut gradient = vec![0.0; self.qkv.len()];
        for (row, (head, query)) in self.places().into_iter().enumerate() {
            let weights = &self.probabilities[row * length..(row + 1) * length];
            let dy = &dy[self.context_at(head, query)..][..width];
            let of_weights: Vec<f64> = (0..length)
                .map(|key| dot(dy, self.part(head, key, 2)))
                .collect();
            let mean = dot(weights, &of_weights);
            for key in 0..self.visible(query) {
                let of_score = weights[key] * (of_weights[key] - mean) / (width as f64).sqrt();
                let [of_query, of_key, of_value] = [(query, 0), (key, 1), (key, 2)]
                    .map(|(position, part)| self.part_at(head, position, part));
                add_scaled(
                    &mut gradient[of_query..of_query + width],
                    of_score,
                    self.part(head, key, 1),
                );
                add_scaled(
                    &mut gradient[of_key..of_key + width],
                    of_score,
                    self.part(head, query, 0),
                );
                add_scaled(&mut gradient[of_value..of_value + width], weights[key], dy);
            }
        }
        gradient
    }

    /// Returns all heads of all samples with all queries.
    fn places(&self) -> Vec<(usize, usize)> {
        let heads = 0..self.shape.all_heads();
        heads
            .flat_map(|head| (0..self.shape.sequence).map(move |query| (head, query)))
            .collect()
    }

    fn visible(&self, query: usize) -> usize {
        if self.shape.is_causal {
            query + 1
        } else {
            self.shape.sequence
        }
    }

    fn score(&self, head: usize, query: usize, key: usize) -> f64 {
        dot(self.part(head, query, 0), self.part(head, key, 1)) / (self.shape.head() as f64).sqrt()
    }

    /// Returns the query, the key or the value of a position.
    fn part(&self, head: usize, position: usize, part: usize) -> &[f64] {
        &self.qkv[self.part_at(head, position, part)..][..self.shape.head()]
    }

    fn part_at(&self, head: usize, position: usize, part: usize) -> usize {
        let sample = head / self.shape.heads;
        let head = head % self.shape.heads;
        let width = self.shape.head();
        (position * self.shape.batch + sample) * 3 * self.shape.width
            + head * 3 * width
            + part * width
    }

    fn context_at(&self, head: usize, position: usize) -> usize {
        let sample = head / self.shape.heads;
        let head = head % self.shape.heads;
        (position * self.shape.batch + sample) * self.shape.width + head * self.shape.head()
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + gelu_argument(x).tanh())
}

fn gelu_slope(x: f64) -> f64 {
    let tanh = gelu_argument(x).tanh();
    let slope = std::f64::consts::FRAC_2_PI.sqrt() * (1.0 + 3.0 * 0.044_715 * x * x);
    0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope
}

fn gelu_argument(x: f64) -> f64 {
    std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn add_scaled(to: &mut [f64], factor: f64, values: &[f64]) {
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to += factor * value);
}

fn to_f64(values: &[bf16]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}
