//! A transformer block: the forward pass of a layer of a language model, with all kernels in Rust.
//!
//! ```text
//! h = x + attention(norm(x) * W_qkv) * W_out
//! y = h + gelu(norm(h) * W_up) * W_down
//! ```
//!
//! Kernels share code like all Rust code: the four products are one function, and what happens to
//! its result is a closure. The whole pass is captured once as a graph, whose launches cost the
//! host a single call. The result is compared with that of the host.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

mod reference;

use std::time::Duration;

use curium::prelude::*;
use curium_kernel::host::{Blocks, RowMajor};

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use core::array;

    use curium_kernel::prelude::*;

    /// The number of dimensions of a head of attention.
    pub const HEAD: usize = 32;

    /// Normalizes each row to mean 0 and variance 1, and scales it.
    #[kernel]
    pub fn layer_norm(
        block: Block<256>,
        mut scratch: Scratch<f32>,
        x: Matrix<f32>,
        gain: &[f32],
        bias: &[f32],
        mut y: PerBlockRow<f32>,
    ) {
        let Some(x) = x.row(block.index()) else {
            return;
        };
        let Some(mut y) = y.row(&block) else { return };
        // One check here, and none in the loops.
        let gain = &gain[..x.len()];
        let bias = &bias[..x.len()];
        let sum = block.threads(|t| t.block_stride(x.len()).map(|i| x[i]).sum::<f32>());
        let mean = block.sum(&sum, &mut scratch) / x.len() as f32;
        let squares = block.threads(|t| {
            t.block_stride(x.len())
                .map(|i| (x[i] - mean) * (x[i] - mean))
                .sum::<f32>()
        });
        let variance = block.sum(&squares, &mut scratch) / x.len() as f32;
        let scale = (variance + 1e-5).fast_rsqrt();
        block.threads_with(&mut y, |_, y| {
            for (i, y) in y {
                *y = ((x[i] - mean) * scale).mul_add(gain[i], bias[i]);
            }
        });
    }

    /// A block of threads of a matrix product.
    type Threads = Block<16, 16>;

    /// Computes a tile of 64 × 64 elements of the product `a * b`, 4 × 4 in each thread. `finish`
    /// receives each sum and its position, and returns the element of the result.
    fn product(
        block: &Threads,
        a_tile: &mut Shared<Tile<f32, 64, 16, 1>>,
        b_tile: &mut Shared<Tile<f32, 16, 64>>,
        a: Matrix<f32>,
        b: Matrix<f32>,
        mut result: PerBlockTile<f32, 64, 64>,
        finish: impl Fn(Position, f32) -> f32 + Sync,
    ) {
        let first_row = block.index_y() * 64;
        let first_column = block.index_x() * 64;
        let mut sums = Registers::new([[0.0_f32; 4]; 4]);
        for first_k in (0..a.columns()).step_by(16) {
            a_tile.fill(block, |_, (row, k)| {
                a.get(first_row + row, first_k + k).copied().unwrap_or(0.0)
            });
            b_tile.fill(block, |_, (k, column)| {
                b.get(first_k + k, first_column + column)
                    .copied()
                    .unwrap_or(0.0)
            });
            (&mut *a_tile, &mut *b_tile).synced(block, |(a, b)| {
                block.threads_with(&mut sums, |t, sums| {
                    for k in 0..16 {
                        let a: [f32; 4] = array::from_fn(|i| a[t.y() + 16 * i][k]);
                        let b: [f32; 4] = array::from_fn(|j| b[k][t.x() + 16 * j]);
                        for i in 0..4 {
                            for j in 0..4 {
                                sums[i][j] = a[i].mul_add(b[j], sums[i][j]);
                            }
                        }
                    }
                });
            });
        }
        result.for_each_with(block, &sums, |position, element, sums| {
            *element = finish(position, sums[position.i][position.j]);
        });
    }

    /// y = x * weights + bias
    #[kernel]
    pub fn linear(
        block: Threads,
        mut x_tile: Shared<Tile<f32, 64, 16, 1>>,
        mut weight_tile: Shared<Tile<f32, 16, 64>>,
        x: Matrix<f32>,
        weights: Matrix<f32>,
        bias: &[f32],
        y: PerBlockTile<f32, 64, 64>,
    ) {
        product(
            &block,
            &mut x_tile,
            &mut weight_tile,
            x,
            weights,
            y,
            |position, sum| sum + bias[position.column],
        );
    }

    /// y = gelu(x * weights + bias)
    #[kernel]
    pub fn linear_gelu(
        block: Threads,
        mut x_tile: Shared<Tile<f32, 64, 16, 1>>,
        mut weight_tile: Shared<Tile<f32, 16, 64>>,
        x: Matrix<f32>,
        weights: Matrix<f32>,
        bias: &[f32],
        y: PerBlockTile<f32, 64, 64>,
    ) {
        product(
            &block,
            &mut x_tile,
            &mut weight_tile,
            x,
            weights,
            y,
            |position, sum| gelu(sum + bias[position.column]),
        );
    }

    /// y = x * weights + bias + residual
    #[kernel]
    pub fn linear_residual(
        block: Threads,
        mut x_tile: Shared<Tile<f32, 64, 16, 1>>,
        mut weight_tile: Shared<Tile<f32, 16, 64>>,
        x: Matrix<f32>,
        weights: Matrix<f32>,
        bias: &[f32],
        residual: Matrix<f32>,
        y: PerBlockTile<f32, 64, 64>,
    ) {
        product(
            &block,
            &mut x_tile,
            &mut weight_tile,
            x,
            weights,
            y,
            |position, sum| sum + bias[position.column] + residual[(position.row, position.column)],
        );
    }

    /// The Gaussian error linear unit, by its approximation with the hyperbolic tangent: x * (1 +
    /// tanh(z)) / 2 is x / (1 + exp(-2 z)).
    fn gelu(x: f32) -> f32 {
        let z = 0.797_884_6 * (x + 0.044_715 * x * x * x);
        x / (1.0 + (-2.0 * z).exp())
    }

    /// The softmax of a query so far: the sum of the values with their weights `exp(score - max)`,
    /// and the sum of the weights.
    #[derive(Clone, Copy)]
    struct Softmax {
        max: f32,
        weights: f32,
        values: [f32; HEAD],
    }

    impl Softmax {
        fn add(&mut self, score: f32, value: &[f32; HEAD]) {
            if score > self.max {
                let factor = (self.max - score).exp();
                self.max = score;
                self.weights *= factor;
                for sum in &mut self.values {
                    *sum *= factor;
                }
            }
            let weight = (score - self.max).exp();
            self.weights += weight;
            for (sum, value) in self.values.iter_mut().zip(value) {
                *sum = value.mul_add(weight, *sum);
            }
        }
    }

    /// Causal attention: each position of the sequence attends to those before it and to itself.
    ///
    /// A row of `qkv` has the queries of all heads, then their keys, then their values. A block
    /// computes 64 queries of a head, one in each thread. The scores are never stored: the softmax
    /// is corrected when the maximum grows.
    #[kernel]
    pub fn attention(
        block: Block<1, 64>,
        mut keys: Shared<Tile<f32, 64, HEAD>>,
        mut values: Shared<Tile<f32, 64, HEAD>>,
        qkv: Matrix<f32>,
        mut out: PerBlockTile<f32, 64, HEAD>,
    ) {
        let first_query = block.index_y() * 64;
        let first_column = block.index_x() * HEAD;
        let width = out.columns();
        let element = |row: usize, part: usize, column: usize| {
            let column = part * width + first_column + column;
            qkv.get(row, column).copied().unwrap_or(0.0)
        };
        let scale = (HEAD as f32).fast_rsqrt();
        let query: Registers<[f32; HEAD]> =
            block.threads(|t| array::from_fn(|i| element(first_query + t.y(), 0, i) * scale));
        let mut softmax = Registers::new(Softmax {
            max: f32::NEG_INFINITY,
            weights: 0.0,
            values: [0.0; HEAD],
        });
        for first_key in (0..first_query + 64).step_by(64) {
            keys.fill(&block, |_, (row, i)| element(first_key + row, 1, i));
            values.fill(&block, |_, (row, i)| element(first_key + row, 2, i));
            (&mut keys, &mut values).synced(&block, |(keys, values)| {
                block.threads_with((&query, &mut softmax), |t, (query, softmax)| {
                    for key in 0..64 {
                        if first_key + key <= first_query + t.y() {
                            let products = query.iter().zip(&keys[key]);
                            let score = products.fold(0.0_f32, |sum, (q, k)| q.mul_add(*k, sum));
                            softmax.add(score, &values[key]);
                        }
                    }
                });
            });
        }
        out.for_each_with(&block, &softmax, |position, out, softmax| {
            *out = softmax.values[position.j] / softmax.weights;
        });
    }
}
curium_kernel::include_kernels!("kernels");

use kernels::HEAD;

/// The sizes of a block.
#[derive(Clone, Copy)]
struct Shape {
    /// The number of positions.
    sequence: usize,
    /// The number of features of a position.
    width: usize,
}

impl Shape {
    /// The number of features between the two products of the perceptron.
    fn hidden(self) -> usize {
        4 * self.width
    }
}

/// A matrix of weights and a bias.
struct Layer<T> {
    weights: T,
    bias: T,
    inputs: usize,
    outputs: usize,
}

/// The gain and the bias of a normalization.
struct Norm<T> {
    gain: T,
    bias: T,
}

/// The parameters of a block: `Vec<f32>` on the host and `DeviceBuffer<f32>` on the device.
struct Parameters<T> {
    first_norm: Norm<T>,
    qkv: Layer<T>,
    out: Layer<T>,
    second_norm: Norm<T>,
    up: Layer<T>,
    down: Layer<T>,
}

impl Parameters<Vec<f32>> {
    /// Returns random parameters, of the sizes that training begins with.
    fn new(shape: Shape) -> Self {
        let mut random = Random::new(1);
        let mut norm = || Norm {
            gain: random.numbers(shape.width, 0.1, 1.0),
            bias: random.numbers(shape.width, 0.1, 0.0),
        };
        let first_norm = norm();
        let second_norm = norm();
        let mut layer = |inputs: usize, outputs: usize| Layer {
            weights: random.numbers(inputs * outputs, 2.0 / (inputs as f32).sqrt(), 0.0),
            bias: random.numbers(outputs, 0.1, 0.0),
            inputs,
            outputs,
        };
        Self {
            first_norm,
            qkv: layer(shape.width, 3 * shape.width),
            out: layer(shape.width, shape.width),
            second_norm,
            up: layer(shape.width, shape.hidden()),
            down: layer(shape.hidden(), shape.width),
        }
    }

    fn to_device(&self, stream: &Stream) -> curium::Result<Parameters<DeviceBuffer<f32>>> {
        let norm = |norm: &Norm<Vec<f32>>| -> curium::Result<_> {
            Ok(Norm {
                gain: DeviceBuffer::from_slice(stream, &norm.gain)?,
                bias: DeviceBuffer::from_slice(stream, &norm.bias)?,
            })
        };
        let layer = |layer: &Layer<Vec<f32>>| -> curium::Result<_> {
            Ok(Layer {
                weights: DeviceBuffer::from_slice(stream, &layer.weights)?,
                bias: DeviceBuffer::from_slice(stream, &layer.bias)?,
                inputs: layer.inputs,
                outputs: layer.outputs,
            })
        };
        Ok(Parameters {
            first_norm: norm(&self.first_norm)?,
            qkv: layer(&self.qkv)?,
            out: layer(&self.out)?,
            second_norm: norm(&self.second_norm)?,
            up: layer(&self.up)?,
            down: layer(&self.down)?,
        })
    }
}

/// A generator of random numbers on the host (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns numbers around `center`, over a range of the width `spread`.
    fn numbers(&mut self, count: usize, spread: f32, center: f32) -> Vec<f32> {
        let mut number = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            center + spread * ((self.0 >> 40) as f32 / (1 << 24) as f32 - 0.5)
        };
        (0..count).map(|_| number()).collect()
    }
}

/// A transformer block on a device, with the memory of its intermediate results.
struct TransformerBlock {
    shape: Shape,
    parameters: Parameters<DeviceBuffer<f32>>,
    input: DeviceBuffer<f32>,
    normalized: DeviceBuffer<f32>,
    qkv: DeviceBuffer<f32>,
    attended: DeviceBuffer<f32>,
    middle: DeviceBuffer<f32>,
    hidden: DeviceBuffer<f32>,
    output: DeviceBuffer<f32>,
}

impl TransformerBlock {
    fn new(
        stream: &Stream,
        shape: Shape,
        parameters: &Parameters<Vec<f32>>,
        input: &[f32],
    ) -> curium::Result<Self> {
        assert_eq!(shape.width % HEAD, 0, "a block has whole heads");
        let buffer = |columns: usize| DeviceBuffer::uninit(stream, shape.sequence * columns);
        Ok(Self {
            shape,
            parameters: parameters.to_device(stream)?,
            input: DeviceBuffer::from_slice(stream, input)?,
            normalized: buffer(shape.width)?,
            qkv: buffer(3 * shape.width)?,
            attended: buffer(shape.width)?,
            middle: buffer(shape.width)?,
            hidden: buffer(shape.hidden())?,
            output: buffer(shape.width)?,
        })
    }

    /// Enqueues the forward pass: seven launches.
    fn forward(&mut self, stream: &Stream, kernels: &Kernels) -> curium::Result<()> {
        let Shape { sequence, width } = self.shape;
        let parameters = &self.parameters;
        let row_per_block = Blocks::new(sequence as u32);
        let tiles = |columns: usize, tile: usize| {
            Blocks::new((columns.div_ceil(tile) as u32, sequence.div_ceil(64) as u32))
        };

        kernels.layer_norm.launch(
            stream,
            row_per_block,
            RowMajor::new(&self.input, sequence, width),
            &parameters.first_norm.gain,
            &parameters.first_norm.bias,
            RowMajor::new(&mut self.normalized, sequence, width),
        )?;
        kernels.linear.launch(
            stream,
            tiles(3 * width, 64),
            RowMajor::new(&self.normalized, sequence, width),
            parameters.qkv.weights(),
            &parameters.qkv.bias,
            RowMajor::new(&mut self.qkv, sequence, 3 * width),
        )?;
        kernels.attention.launch(
            stream,
            tiles(width, HEAD),
            RowMajor::new(&self.qkv, sequence, 3 * width),
            RowMajor::new(&mut self.attended, sequence, width),
        )?;
        kernels.linear_residual.launch(
            stream,
            tiles(width, 64),
            RowMajor::new(&self.attended, sequence, width),
            parameters.out.weights(),
            &parameters.out.bias,
            RowMajor::new(&self.input, sequence, width),
            RowMajor::new(&mut self.middle, sequence, width),
        )?;
        kernels.layer_norm.launch(
            stream,
            row_per_block,
            RowMajor::new(&self.middle, sequence, width),
            &parameters.second_norm.gain,
            &parameters.second_norm.bias,
            RowMajor::new(&mut self.normalized, sequence, width),
        )?;
        kernels.linear_gelu.launch(
            stream,
            tiles(self.shape.hidden(), 64),
            RowMajor::new(&self.normalized, sequence, width),
            parameters.up.weights(),
            &parameters.up.bias,
            RowMajor::new(&mut self.hidden, sequence, self.shape.hidden()),
        )?;
        kernels.linear_residual.launch(
            stream,
            tiles(width, 64),
            RowMajor::new(&self.hidden, sequence, self.shape.hidden()),
            parameters.down.weights(),
            &parameters.down.bias,
            RowMajor::new(&self.middle, sequence, width),
            RowMajor::new(&mut self.output, sequence, width),
        )
    }
}

impl Layer<DeviceBuffer<f32>> {
    fn weights(&self) -> RowMajor<&DeviceBuffer<f32>> {
        RowMajor::new(&self.weights, self.inputs, self.outputs)
    }
}

/// The output of a block, and the time of a forward pass.
struct Outcome {
    output: Vec<f32>,
    time: Duration,
}

fn forward(
    device: &Device,
    shape: Shape,
    parameters: &Parameters<Vec<f32>>,
    input: &[f32],
) -> curium::Result<Outcome> {
    let context = device.primary_context()?;
    let stream = context.stream()?;
    let kernels = Kernels::load(device)?;
    let mut block = TransformerBlock::new(&stream, shape, parameters, input)?;
    let graph = Graph::capture(&context, |stream| block.forward(stream, &kernels))?;
    let mut pass = graph.instantiate()?;
    let begin = Event::new(&context, EventFlags::empty())?;
    let end = Event::new(&context, EventFlags::empty())?;
    // The second pass is measured, and computes the same.
    for _ in 0..2 {
        begin.record(&stream)?;
        pass.launch(&stream)?;
        end.record(&stream)?;
    }
    let output = block.output.to_vec()?;
    Ok(Outcome {
        output,
        time: end.elapsed_since(&begin)?,
    })
}

fn run(device: &Device, shape: Shape) -> curium::Result<()> {
    let parameters = Parameters::new(shape);
    let input = Random::new(2).numbers(shape.sequence * shape.width, 2.0, 0.0);
    let outcome = forward(device, shape, &parameters, &input)?;
    let expected = reference::forward(shape, &parameters, &input);
    let differences = outcome.output.iter().zip(&expected);
    let error = differences
        .map(|(x, expected)| (f64::from(*x) - expected).abs())
        .fold(0.0, f64::max);
    println!(
        "{} positions of {} features in {:.1?}",
        shape.sequence, shape.width, outcome.time
    );
    println!("device: {:.5?} …", &outcome.output[..4]);
    println!("host:   {:.5?} …", &expected[..4]);
    println!("largest difference: {error:.1e}");
    assert!(error < 1e-4, "the device and the host disagree");
    Ok(())
}

fn main() -> curium::Result<()> {
    let shape = Shape {
        sequence: 512,
        width: 512,
    };
    run(&Device::first()?, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence ends within the second tile.
    #[test]
    fn forward_pass_agrees_with_the_host() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            let shape = Shape {
                sequence: 70,
                width: 64,
            };
            run(&device, shape)
        })
    }

    #[test]
    fn sequence_of_one_position() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            let shape = Shape {
                sequence: 1,
                width: 32,
            };
            run(&device, shape)
        })
    }

    /// A later position has no influence on earlier ones.
    #[test]
    fn attention_is_causal() -> curium::Result<()> {
        let shape = Shape {
            sequence: 66,
            width: 32,
        };
        let parameters = Parameters::new(shape);
        let input = Random::new(3).numbers(shape.sequence * shape.width, 2.0, 0.0);
        let mut other_end = input.clone();
        other_end[65 * shape.width] += 1.0;
        curium_sim::test(|device: Device| {
            let output = forward(&device, shape, &parameters, &input)?.output;
            let other = forward(&device, shape, &parameters, &other_end)?.output;
            let (earlier, last) = output.split_at(65 * shape.width);
            let (other_earlier, other_last) = other.split_at(65 * shape.width);
            assert_eq!(earlier, other_earlier);
            assert_ne!(last, other_last);
            Ok(())
        })
    }
}
