//! The forward pass.

use curium::blas::lt::Operands;
use curium::prelude::*;

use super::{Activations, Block, Result};

impl Block {
    /// Enqueues the forward pass.
    pub(crate) fn forward(&mut self, stream: &Stream) -> Result<()> {
        let Self {
            kernels,
            attention,
            products,
            parameters,
            workspace,
            ..
        } = self;
        let Activations {
            normalized1,
            qkv,
            context,
            log_sums,
            middle,
            normalized2,
            hidden,
            activated,
            statistics1,
            statistics2,
        } = &mut self.activations;
        let gain = &parameters.norm1_gain;
        let bias = &parameters.norm1_bias;
        kernels.layer_norm(stream, &self.input, gain, bias, normalized1, statistics1)?;
        let operands =
            Operands::new(normalized1, &parameters.qkv_weight, qkv).with_bias(&parameters.qkv_bias);
        products
            .qkv
            .execute(stream, operands.with_workspace(workspace))?;

        attention.forward(stream, qkv, context, log_sums)?;

        let operands =
            Operands::new(context, &parameters.projection_weight, middle).with_factors(1.0, 1.0);
        let operands = operands
            .with_c(&self.input)
            .with_bias(&parameters.projection_bias);
        products
            .projection
            .execute(stream, operands.with_workspace(workspace))?;

        let gain = &parameters.norm2_gain;
        let bias = &parameters.norm2_bias;
        kernels.layer_norm(stream, middle, gain, bias, normalized2, statistics2)?;
        let operands = Operands::new(normalized2, &parameters.up_weight, activated)
            .with_bias(&parameters.up_bias);
        products.up.execute(
            stream,
            operands
                .with_auxiliary_output(hidden)
                .with_workspace(workspace),
        )?;
        let operands = Operands::new(activated, &parameters.down_weight, &mut self.output)
            .with_factors(1.0, 1.0);
        let operands = operands.with_c(middle).with_bias(&parameters.down_bias);
        Ok(products
            .down
            .execute(stream, operands.with_workspace(workspace))?)
    }
}
