//! A transformer block with its backward pass, in bf16 on one device.
//!
//! Rows of activations are positions of the sequence, and within them the samples of the batch: row
//! `position * batch + sample`. The rows of the weights of queries, keys and values are ordered by
//! head, then query, key and value. Every head of every sample therefore begins a constant distance
//! after the previous one, and no matrix is transposed in memory.

mod attention;
mod average;
mod backward;
mod forward;
mod kernels;
mod products;
mod shape;

use std::error::Error;

use curium::blas::lt::BlasLt;
use curium::driver::Graph;
use curium::nccl::Communicator;
use curium::prelude::*;
use half::bf16;

use self::attention::Attention;
use self::kernels::Kernels;
use self::products::Products;
pub(crate) use self::products::Tuning;
pub(crate) use self::shape::{Parameters, Shape};

pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;
pub(crate) type Buffer = DeviceBuffer<bf16>;

/// The values on the host that a step depends on.
pub(crate) struct Sample {
    pub(crate) parameters: Parameters<Vec<bf16>>,
    pub(crate) input: Vec<bf16>,
    pub(crate) output_gradient: Vec<bf16>,
}

/// A block with all of its memory, which is allocated once.
pub(crate) struct Block {
    kernels: Kernels,
    attention: Attention,
    products: Products,
    parameters: Parameters<Buffer>,
    input: Buffer,
    output_gradient: Buffer,
    activations: Activations,
    gradients: Gradients,
    /// The ranks that average their gradients.
    ranks: Option<Communicator>,
    /// The workspace of the products.
    workspace: DeviceBuffer<u8>,
    pub(crate) output: Buffer,
    pub(crate) input_gradient: Buffer,
    pub(crate) parameter_gradients: Parameters<Buffer>,
}

/// The results of the forward pass that the backward pass reads.
struct Activations {
    /// The input after the first normalization.
    normalized1: Buffer,
    /// Queries, keys and values.
    qkv: Buffer,
    /// The values, weighted by the probabilities.
    context: Buffer,
    /// The logarithm of the sum of exponentials of each query of each head.
    log_sums: DeviceBuffer<f32>,
    /// The sum of the input and the result of the attention.
    middle: Buffer,
    normalized2: Buffer,
    /// The inputs of the activation function.
    hidden: Buffer,
    activated: Buffer,
    /// The means and the reciprocals of the deviations of rows.
    statistics1: DeviceBuffer<f32>,
    statistics2: DeviceBuffer<f32>,
}

/// The gradients of the results of the forward pass.
struct Gradients {
    normalized1: Buffer,
    qkv: Buffer,
    context: Buffer,
    /// The product of the context and its gradient for each query of each head.
    deltas: DeviceBuffer<f32>,
    middle: Buffer,
    normalized2: Buffer,
    hidden: Buffer,
    partial1: Partial,
    partial2: Partial,
}

/// The partial sums of the gradients of gain and bias.
struct Partial {
    gain: DeviceBuffer<f32>,
    bias: DeviceBuffer<f32>,
}

impl Partial {
    fn new(stream: &Stream, len: usize) -> Result<Self> {
        Ok(Self {
            gain: DeviceBuffer::uninit(stream, len)?,
            bias: DeviceBuffer::uninit(stream, len)?,
        })
    }
}

impl Block {
    /// Allocates the block on `stream`, chooses the algorithms of its products, and uploads the
    /// parameters, the input and the gradient of the output.
    pub(crate) fn new(
        lt: &BlasLt,
        stream: &Stream,
        shape: Shape,
        tuning: Tuning,
        sample: &Sample,
    ) -> Result<Self> {
        shape.check()?;
        let kernels = Kernels::load(stream, shape)?;
        let products = Products::new(lt, stream, shape, tuning)?;
        let input_len = shape.rows() * shape.width;
        let hidden_len = shape.rows() * shape.hidden();
        let query_len = shape.all_heads() * shape.sequence;
        let statistics_len = 2 * shape.rows();
        let partial_len = kernels.partial_rows() * shape.width;
        Ok(Self {
            parameters: sample
                .parameters
                .try_map(|values| Buffer::from_slice(stream, values))?,
            input: Buffer::from_slice(stream, &sample.input)?,
            output_gradient: Buffer::from_slice(stream, &sample.output_gradient)?,
            activations: Activations {
                normalized1: Buffer::uninit(stream, input_len)?,
                qkv: Buffer::uninit(stream, 3 * input_len)?,
                context: Buffer::uninit(stream, input_len)?,
                log_sums: DeviceBuffer::uninit(stream, query_len)?,
                middle: Buffer::uninit(stream, input_len)?,
                normalized2: Buffer::uninit(stream, input_len)?,
                hidden: Buffer::uninit(stream, hidden_len)?,
                activated: Buffer::uninit(stream, hidden_len)?,
                statistics1: DeviceBuffer::uninit(stream, statistics_len)?,
                statistics2: DeviceBuffer::uninit(stream, statistics_len)?,
            },
            gradients: Gradients {
                normalized1: Buffer::uninit(stream, input_len)?,
                qkv: Buffer::uninit(stream, 3 * input_len)?,
                context: Buffer::uninit(stream, input_len)?,
                deltas: DeviceBuffer::uninit(stream, query_len)?,
                middle: Buffer::uninit(stream, input_len)?,
                normalized2: Buffer::uninit(stream, input_len)?,
                hidden: Buffer::uninit(stream, hidden_len)?,
                partial1: Partial::new(stream, partial_len)?,
                partial2: Partial::new(stream, partial_len)?,
            },
            ranks: None,
            workspace: DeviceBuffer::uninit(stream, products.workspace_bytes.max(1))?,
            output: Buffer::uninit(stream, input_len)?,
            input_gradient: Buffer::uninit(stream, input_len)?,
            parameter_gradients: shape
                .lengths()
                .try_map(|count| Buffer::uninit(stream, *count))?,
            kernels,
            attention: Attention::load(stream, shape)?,
            products,
        })
    }

    /// Sets the ranks over which the backward pass averages the gradients of parameters.
    pub(crate) fn with_ranks(self, communicator: Communicator) -> Self {
        Self {
            ranks: Some(communicator),
            ..self
        }
    }

    /// Captures the forward pass, or both passes, as one graph, which allocates nothing.
    pub(crate) fn capture(&mut self, context: &Context, has_backward: bool) -> Result<Graph> {
        Graph::capture(context, |scope| {
            self.forward(scope)?;
            if has_backward {
                let reducing = if self.ranks.is_some() {
                    scope.fork()?
                } else {
                    Stream::clone(scope)
                };
                self.backward(scope, &reducing)?;
            }
            Ok(())
        })
    }
}
