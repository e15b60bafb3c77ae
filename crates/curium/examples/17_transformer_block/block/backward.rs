//! The backward pass.

use curium::blas::lt::Operands;
use curium::prelude::*;

use super::average::average;
use super::{Activations, Block, Gradients, Result};

impl Block {
    /// Enqueues the backward pass on `stream`, and the averages over the ranks beside it on
    /// `reducing`. The buffers order accesses of both streams.
    pub(crate) fn backward(&mut self, stream: &Stream, reducing: &Stream) -> Result<()> {
        self.perceptron_backward(stream, reducing)?;
        let Activations {
            qkv,
            context,
            log_sums,
            ..
        } = &self.activations;
        let Gradients {
            qkv: of_qkv,
            context: dy,
            deltas,
            ..
        } = &mut self.gradients;
        self.attention
            .backward(stream, qkv, context, dy, log_sums, deltas, of_qkv)?;
        self.projections_backward(stream, reducing)
    }

    /// Enqueues the gradients from the output to the result of the attention.
    fn perceptron_backward(&mut self, stream: &Stream, reducing: &Stream) -> Result<()> {
        let Self {
            kernels,
            products,
            parameters,
            parameter_gradients: of,
            ranks,
            ..
        } = self;
        let workspace = &mut self.workspace;
        let plans = &mut products.gradient;
        let dy = &self.output_gradient;
        let Activations {
            context,
            middle,
            normalized2,
            hidden,
            activated,
            statistics2,
            ..
        } = &self.activations;
        let results = &mut self.gradients;
        let of_hidden = &mut results.hidden;
        let of_normalized2 = &mut results.normalized2;
        let of_middle = &mut results.middle;
        let of_context = &mut results.context;
        let partial2 = &mut results.partial2;

        let operands =
            Operands::new(dy, activated, &mut of.down_weight).with_bias_gradient(&mut of.down_bias);
        plans
            .down_weight
            .execute(stream, operands.with_workspace(workspace))?;
        average(ranks, reducing, [&mut of.down_weight, &mut of.down_bias])?;
        let operands = Operands::new(dy, &parameters.down_weight, of_hidden).with_auxiliary(hidden);
        plans
            .hidden
            .execute(stream, operands.with_workspace(workspace))?;

        let operands = Operands::new(of_hidden, normalized2, &mut of.up_weight)
            .with_bias_gradient(&mut of.up_bias);
        plans
            .up_weight
            .execute(stream, operands.with_workspace(workspace))?;
        average(ranks, reducing, [&mut of.up_weight, &mut of.up_bias])?;
        let operands = Operands::new(of_hidden, &parameters.up_weight, of_normalized2);
        plans
            .normalized2
            .execute(stream, operands.with_workspace(workspace))?;

        let x = middle;
        let statistics = statistics2;
        let gain = &parameters.norm2_gain;
        kernels.layer_norm_backward(
            stream,
            of_normalized2,
            x,
            statistics,
            gain,
            dy,
            of_middle,
            partial2,
        )?;
        kernels.sum_partial(stream, partial2, &mut of.norm2_gain, &mut of.norm2_bias)?;

        let operands = Operands::new(of_middle, context, &mut of.projection_weight);
        let operands = operands.with_bias_gradient(&mut of.projection_bias);
        plans
            .projection_weight
            .execute(stream, operands.with_workspace(workspace))?;
        let of_norm2 = [&mut of.norm2_gain, &mut of.norm2_bias];
        average(ranks, reducing, of_norm2)?;
        average(
            ranks,
            reducing,
            [&mut of.projection_weight, &mut of.projection_bias],
        )?;
        let operands = Operands::new(of_middle, &parameters.projection_weight, of_context);
        Ok(plans
            .context
            .execute(stream, operands.with_workspace(workspace))?)
    }

    /// Enqueues the gradients from queries, keys and values to the input.
    fn projections_backward(&mut self, stream: &Stream, reducing: &Stream) -> Result<()> {
        let Self {
            kernels,
            products,
            parameters,
            parameter_gradients: of,
            ranks,
            ..
        } = self;
        let workspace = &mut self.workspace;
        let plans = &mut products.gradient;
        let Activations {
            normalized1,
            statistics1,
            ..
        } = &self.activations;
        let Gradients {
            qkv,
            normalized1: of_normalized1,
            middle,
            partial1,
            ..
        } = &mut self.gradients;

        let operands = Operands::new(qkv, normalized1, &mut of.qkv_weight)
            .with_bias_gradient(&mut of.qkv_bias);
        plans
            .qkv_weight
            .execute(stream, operands.with_workspace(workspace))?;
        average(ranks, reducing, [&mut of.qkv_weight, &mut of.qkv_bias])?;
        let operands = Operands::new(qkv, &parameters.qkv_weight, of_normalized1);
        plans
            .normalized1
            .execute(stream, operands.with_workspace(workspace))?;

        let x = &self.input;
        let statistics = statistics1;
        let gain = &parameters.norm1_gain;
        let result = &mut self.input_gradient;
        kernels.layer_norm_backward(
            stream,
            of_normalized1,
            x,
            statistics,
            gain,
            middle,
            result,
            partial1,
        )?;
        kernels.sum_partial(stream, partial1, &mut of.norm1_gain, &mut of.norm1_bias)?;
        average(ranks, reducing, [&mut of.norm1_gain, &mut of.norm1_bias])
    }
}
