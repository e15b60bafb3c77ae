//! A transformer block with its backward pass, in bf16 on one device.
//!
//! Rows of activations are positions of the sequence, and within them the samples of the batch: row `position * batch + sample`. The rows
//! of the weights of queries, keys and values are ordered by head, then query, key and value. Every head of every sample therefore begins a
//! constant distance after the previous one, and no matrix is transposed in memory.

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

impl Block {
    /// Allocates the block on `stream`, chooses the algorithms of its products, and uploads the parameters, the input and the gradient of
    /// the output.
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
        let elements = |count: usize| Buffer::uninit(stream, count);
        let upload = |values: &[bf16]| Buffer::from_slice(stream, values);
        let (of_input, of_hidden) = (shape.rows() * shape.width, shape.rows() * shape.hidden());
        let for_queries =
            || DeviceBuffer::<f32>::uninit(stream, shape.all_heads() * shape.sequence);
        let statistics = || DeviceBuffer::uninit(stream, 2 * shape.rows());
        let partial = || -> Result<_> {
            let sums = || DeviceBuffer::uninit(stream, kernels.partial_rows() * shape.width);
            Ok(Partial {
                gain: sums()?,
                bias: sums()?,
            })
        };
        Ok(Self {
            parameters: sample.parameters.try_map(|values| upload(values))?,
            input: upload(&sample.input)?,
            output_gradient: upload(&sample.output_gradient)?,
            activations: Activations {
                normalized1: elements(of_input)?,
                qkv: elements(3 * of_input)?,
                context: elements(of_input)?,
                log_sums: for_queries()?,
                middle: elements(of_input)?,
                normalized2: elements(of_input)?,
                hidden: elements(of_hidden)?,
                activated: elements(of_hidden)?,
                statistics1: statistics()?,
                statistics2: statistics()?,
            },
            gradients: Gradients {
                normalized1: elements(of_input)?,
                qkv: elements(3 * of_input)?,
                context: elements(of_input)?,
                deltas: for_queries()?,
                middle: elements(of_input)?,
                normalized2: elements(of_input)?,
                hidden: elements(of_hidden)?,
                partial1: partial()?,
                partial2: partial()?,
            },
            ranks: None,
            workspace: DeviceBuffer::uninit(stream, products.workspace_bytes.max(1))?,
            output: elements(of_input)?,
            input_gradient: elements(of_input)?,
            parameter_gradients: shape.lengths().try_map(|count| elements(*count))?,
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
