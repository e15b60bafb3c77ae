//! The matrix products of a block, as plans of cuBLASLt.

use curium::blas::MatrixLayout;
use curium::blas::lt::{BlasLt, Epilogue, Matmul, MatmulPlan, PlanOptions, Tuner, TypedLayout};
use curium::prelude::*;
use half::bf16;

use super::{Result, Shape};

/// The choice of the algorithms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tuning {
    /// Those that the library expects to be the fastest.
    Expected,
    /// The fastest in a measurement.
    Measured,
}

/// The plans, named after their results.
pub(super) struct Products {
    pub(super) qkv: MatmulPlan,
    pub(super) projection: MatmulPlan,
    pub(super) up: MatmulPlan,
    pub(super) down: MatmulPlan,
    pub(super) gradient: GradientProducts,
    /// The greatest workspace of a plan.
    pub(super) workspace_bytes: usize,
}

/// The plans of the backward pass.
pub(super) struct GradientProducts {
    pub(super) hidden: MatmulPlan,
    pub(super) down_weight: MatmulPlan,
    pub(super) normalized2: MatmulPlan,
    pub(super) up_weight: MatmulPlan,
    pub(super) projection_weight: MatmulPlan,
    pub(super) context: MatmulPlan,
    pub(super) qkv_weight: MatmulPlan,
    pub(super) normalized1: MatmulPlan,
}

impl Products {
    pub(super) fn new(lt: &BlasLt, stream: &Stream, shape: Shape, tuning: Tuning) -> Result<Self> {
        let mut workspace_bytes = 0;
        let mut plan = |matmul: Matmul| -> Result<MatmulPlan> {
            let plan = match tuning {
                Tuning::Expected => MatmulPlan::new(lt, &matmul, PlanOptions::default())?,
                Tuning::Measured => Tuner::new().plan(lt, stream, &matmul)?.plan,
            };
            workspace_bytes = workspace_bytes.max(plan.workspace_bytes());
            Ok(plan)
        };
        let rows = shape.rows();
        let width = shape.width;
        let hidden = shape.hidden();
        let input = matrix(rows, width);
        Ok(Self {
            qkv: plan(layer(rows, width, 3 * width).with_epilogue(Epilogue::Bias))?,
            // The addend is the residual.
            projection: plan(
                layer(rows, width, width)
                    .with_c(input)
                    .with_epilogue(Epilogue::Bias),
            )?,
            up: plan(layer(rows, width, hidden).with_epilogue(Epilogue::GeluAuxiliaryBias))?,
            down: plan(
                layer(rows, hidden, width)
                    .with_c(input)
                    .with_epilogue(Epilogue::Bias),
            )?,
            gradient: GradientProducts::new(shape, &mut plan)?,
            workspace_bytes,
        })
    }
}

impl GradientProducts {
    fn new(shape: Shape, plan: &mut impl FnMut(Matmul) -> Result<MatmulPlan>) -> Result<Self> {
        let rows = shape.rows();
        let width = shape.width;
        let hidden = shape.hidden();
        Ok(Self {
            hidden: plan(layer_input(rows, hidden, width).with_epilogue(Epilogue::GeluGradient))?,
            down_weight: plan(
                layer_weight(rows, hidden, width).with_epilogue(Epilogue::BiasGradientA),
            )?,
            normalized2: plan(layer_input(rows, width, hidden))?,
            up_weight: plan(
                layer_weight(rows, width, hidden).with_epilogue(Epilogue::BiasGradientA),
            )?,
            projection_weight: plan(
                layer_weight(rows, width, width).with_epilogue(Epilogue::BiasGradientA),
            )?,
            context: plan(layer_input(rows, width, width))?,
            qkv_weight: plan(
                layer_weight(rows, width, 3 * width).with_epilogue(Epilogue::BiasGradientA),
            )?,
            normalized1: plan(layer_input(rows, width, 3 * width))?,
        })
    }
}

fn matrix(rows: usize, columns: usize) -> TypedLayout {
    TypedLayout::new::<bf16>(MatrixLayout::row_major(rows, columns))
}

fn transposed(matrix: TypedLayout) -> TypedLayout {
    TypedLayout::new::<bf16>(matrix.layout().transposed())
}

/// Describes the output of a layer: the input times the transposed weight.
fn layer(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(
        matrix(rows, inputs),
        transposed(matrix(outputs, inputs)),
        matrix(rows, outputs),
    )
}

/// Describes the gradient of the input of a layer: the gradient of the output times the weight.
fn layer_input(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(
        matrix(rows, outputs),
        matrix(outputs, inputs),
        matrix(rows, inputs),
    )
}

/// Describes the gradient of the weight of a layer: the transposed gradient of the output times the
/// input.
fn layer_weight(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(
        transposed(matrix(rows, outputs)),
        matrix(rows, inputs),
        matrix(outputs, inputs),
    )
}
