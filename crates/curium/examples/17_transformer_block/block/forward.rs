//! The forward pass.

use curium::blas::lt::Operands;
use curium::prelude::*;

use super::{Activations, Block, Options, Result};

impl Block {
    /// Enqueues the forward pass.
    pub(crate) fn forward(&mut self, stream: &Stream) -> Result<()> {
        let Self { kernels, products, parameters, workspaces, .. } = self;
        let Activations { normalized1, qkv, statistics1, .. } = &mut self.activations;
        let (gain, bias) = (&parameters.norm1_gain, &parameters.norm1_bias);
        kernels.layer_norm(stream, &self.input, (gain, bias), normalized1, statistics1)?;
        let operands = Operands::new(normalized1, &parameters.qkv_weight, qkv).with_bias(&parameters.qkv_bias);
        products.qkv.execute(stream, operands.with_workspace(&mut workspaces[0]))?;

        self.attention(stream)?;

        let Self { kernels, products, parameters, workspaces, .. } = self;
        let workspace = &mut workspaces[0];
        let Activations { context, middle, normalized2, hidden, activated, statistics2, .. } = &mut self.activations;
        let operands = Operands::new(context, &parameters.projection_weight, middle).with_factors(1.0, 1.0);
        let operands = operands.with_c(&self.input).with_bias(&parameters.projection_bias);
        products.projection.execute(stream, operands.with_workspace(workspace))?;

        let (gain, bias) = (&parameters.norm2_gain, &parameters.norm2_bias);
        kernels.layer_norm(stream, middle, (gain, bias), normalized2, statistics2)?;
        let operands = Operands::new(normalized2, &parameters.up_weight, activated).with_bias(&parameters.up_bias);
        products.up.execute(stream, operands.with_auxiliary_output(hidden).with_workspace(workspace))?;
        let operands = Operands::new(activated, &parameters.down_weight, &mut self.output).with_factors(1.0, 1.0);
        let operands = operands.with_c(middle).with_bias(&parameters.down_bias);
        Ok(products.down.execute(stream, operands.with_workspace(workspace))?)
    }

    /// Enqueues the attention, group by group.
    fn attention(&mut self, stream: &Stream) -> Result<()> {
        let Self { shape, kernels, products, workspaces, .. } = self;
        let Options { group, parts, .. } = self.options;
        let Activations { qkv, probabilities, context, .. } = &mut self.activations;
        for first in (0..shape.all_heads()).step_by(group) {
            let [queries, keys, values] = shape.parts_of_head(first);
            let (keys, values) = (qkv.as_slice().slice(keys..)?, qkv.as_slice().slice(values..)?);
            let mut of_group = probabilities.as_slice_mut().slice(shape.scores_of_heads(first, group))?;
            for (plan, begin) in products.scores.iter_mut().zip(shape.begins(parts)) {
                let queries = qkv.as_slice().slice(queries + shape.position(begin, 3)..)?;
                let mut scores = of_group.reborrow().slice(begin * shape.sequence..)?;
                let operands = Operands::new(&queries, &keys, &mut scores);
                plan.execute(stream, operands.with_workspace(&mut workspaces[0]))?;
            }
            kernels.softmax(stream, &mut of_group)?;
            for (plan, begin) in products.context.iter_mut().zip(shape.begins(parts)) {
                let weights = of_group.as_slice().slice(begin * shape.sequence..)?;
                let mut result = context.as_slice_mut().slice(first * shape.head() + shape.position(begin, 1)..)?;
                let operands = Operands::new(&weights, &values, &mut result);
                plan.execute(stream, operands.with_workspace(&mut workspaces[0]))?;
            }
        }
        Ok(())
    }
}
