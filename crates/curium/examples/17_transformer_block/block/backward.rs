//! The backward pass.

use curium::blas::lt::Operands;
use curium::prelude::*;

use super::{Activations, Block, Gradients, Options, Result};

impl Block {
    /// Enqueues the backward pass: the gradients of activations on `stream`, and those of weights on `fork`, beside them. The buffers order
    /// accesses of both streams.
    pub(crate) fn backward(&mut self, stream: &Stream, fork: &Stream) -> Result<()> {
        self.perceptron_backward(stream, fork)?;
        self.attention_backward(stream)?;
        self.projections_backward(stream, fork)
    }

    /// Enqueues the gradients from the output to the result of the attention.
    fn perceptron_backward(&mut self, stream: &Stream, fork: &Stream) -> Result<()> {
        let Self { kernels, products, parameters, parameter_gradients: of, .. } = self;
        let [workspace, beside] = &mut self.workspaces;
        let (plans, dy) = (&mut products.gradient, &self.output_gradient);
        let Activations { context, middle, normalized2, hidden, activated, statistics2, .. } = &self.activations;
        let results = &mut self.gradients;
        let (of_hidden, of_normalized2, of_middle) =
            (&mut results.hidden, &mut results.normalized2, &mut results.middle);
        let (of_context, partial2) = (&mut results.context, &mut results.partial2);

        let operands = Operands::new(dy, activated, &mut of.down_weight).with_bias_gradient(&mut of.down_bias);
        plans.down_weight.execute(fork, operands.with_workspace(beside))?;
        let operands = Operands::new(dy, &parameters.down_weight, of_hidden).with_auxiliary(hidden);
        let operands = operands.with_bias_gradient(&mut of.up_bias);
        plans.hidden.execute(stream, operands.with_workspace(workspace))?;

        let operands = Operands::new(of_hidden, normalized2, &mut of.up_weight);
        plans.up_weight.execute(fork, operands.with_workspace(beside))?;
        let operands = Operands::new(of_hidden, &parameters.up_weight, of_normalized2);
        plans.normalized2.execute(stream, operands.with_workspace(workspace))?;

        let (forward, gain) = ((middle, statistics2), &parameters.norm2_gain);
        kernels.layer_norm_backward(stream, of_normalized2, forward, gain, dy, of_middle, partial2)?;
        kernels.sum_partial(fork, partial2, &mut of.norm2_gain, &mut of.norm2_bias)?;

        let operands = Operands::new(of_middle, context, &mut of.projection_weight);
        let operands = operands.with_bias_gradient(&mut of.projection_bias);
        plans.projection_weight.execute(fork, operands.with_workspace(beside))?;
        let operands = Operands::new(of_middle, &parameters.projection_weight, of_context);
        Ok(plans.context.execute(stream, operands.with_workspace(workspace))?)
    }

    /// Enqueues the gradients of queries, keys and values, group by group.
    fn attention_backward(&mut self, stream: &Stream) -> Result<()> {
        let Self { shape, kernels, products, .. } = self;
        let Options { group, parts, .. } = self.options;
        let (plans, [workspace, _]) = (&mut products.gradient, &mut self.workspaces);
        let Activations { qkv, probabilities, .. } = &self.activations;
        let Gradients { qkv: of_qkv, scores, context: dy, .. } = &mut self.gradients;
        for first in (0..shape.all_heads()).step_by(group) {
            let [queries, keys, values] = shape.parts_of_head(first);
            let dy_at = |begin: usize| dy.as_slice().slice(first * shape.head() + shape.position(begin, 1)..);
            let qkv_at = |part: usize, begin: usize| qkv.as_slice().slice(part + shape.position(begin, 3)..);
            let weights = probabilities.as_slice().slice(shape.scores_of_heads(first, group))?;
            for (plan, begin) in plans.probabilities.iter_mut().zip(shape.begins(parts)) {
                let mut result = scores.as_slice_mut().slice(begin * shape.sequence..)?;
                let (dy, values) = (dy_at(begin)?, qkv_at(values, 0)?);
                plan.execute(stream, Operands::new(&dy, &values, &mut result).with_workspace(workspace))?;
            }
            for (plan, begin) in plans.values.iter_mut().zip(shape.begins(parts)) {
                // The queries from the part on see it.
                let (weights, dy) = (weights.slice(begin * (shape.sequence + 1)..)?, dy_at(begin)?);
                let mut result = of_qkv.as_slice_mut().slice(values + shape.position(begin, 3)..)?;
                plan.execute(stream, Operands::new(&weights, &dy, &mut result).with_workspace(workspace))?;
            }
            kernels.softmax_backward(stream, weights, scores)?;
            for (plan, begin) in plans.queries.iter_mut().zip(shape.begins(parts)) {
                let (scores, keys) = (scores.as_slice().slice(begin * shape.sequence..)?, qkv_at(keys, 0)?);
                let mut result = of_qkv.as_slice_mut().slice(queries + shape.position(begin, 3)..)?;
                plan.execute(stream, Operands::new(&scores, &keys, &mut result).with_workspace(workspace))?;
            }
            for (plan, begin) in plans.keys.iter_mut().zip(shape.begins(parts)) {
                let scores = scores.as_slice().slice(begin * (shape.sequence + 1)..)?;
                let queries = qkv_at(queries, begin)?;
                let mut result = of_qkv.as_slice_mut().slice(keys + shape.position(begin, 3)..)?;
                plan.execute(stream, Operands::new(&scores, &queries, &mut result).with_workspace(workspace))?;
            }
        }
        Ok(())
    }

    /// Enqueues the gradients from queries, keys and values to the input.
    fn projections_backward(&mut self, stream: &Stream, fork: &Stream) -> Result<()> {
        let Self { kernels, products, parameters, parameter_gradients: of, .. } = self;
        let [workspace, beside] = &mut self.workspaces;
        let plans = &mut products.gradient;
        let Activations { normalized1, statistics1, .. } = &self.activations;
        let Gradients { qkv, normalized1: of_normalized1, middle, partial1, .. } = &mut self.gradients;

        let operands = Operands::new(qkv, normalized1, &mut of.qkv_weight).with_bias_gradient(&mut of.qkv_bias);
        plans.qkv_weight.execute(fork, operands.with_workspace(beside))?;
        let operands = Operands::new(qkv, &parameters.qkv_weight, of_normalized1);
        plans.normalized1.execute(stream, operands.with_workspace(workspace))?;

        let (forward, gain) = ((&self.input, statistics1), &parameters.norm1_gain);
        let result = &mut self.input_gradient;
        kernels.layer_norm_backward(stream, of_normalized1, forward, gain, middle, result, partial1)?;
        kernels.sum_partial(fork, partial1, &mut of.norm1_gain, &mut of.norm1_bias)
    }
}
