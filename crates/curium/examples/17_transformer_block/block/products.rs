//! The matrix products of a block, as plans of cuBLASLt.

use std::ops::Range;

use curium::blas::MatrixLayout;
use curium::blas::lt::{BlasLt, Epilogue, Matmul, MatmulPlan, PlanOptions, Tuner, TypedLayout};
use curium::prelude::*;
use half::bf16;

use super::{Options, Result, Shape};

/// The choice of the algorithms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tuning {
    /// Those that the library expects to be the fastest.
    Expected,
    /// The fastest in a measurement.
    Measured,
}

/// The plans, named after their results. Those of the attention have a plan for each part of the sequence.
pub(super) struct Products {
    pub(super) qkv: MatmulPlan,
    pub(super) scores: Vec<MatmulPlan>,
    pub(super) context: Vec<MatmulPlan>,
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
    pub(super) values: Vec<MatmulPlan>,
    pub(super) probabilities: Vec<MatmulPlan>,
    pub(super) queries: Vec<MatmulPlan>,
    pub(super) keys: Vec<MatmulPlan>,
    pub(super) qkv_weight: MatmulPlan,
    pub(super) normalized1: MatmulPlan,
}

impl Products {
    pub(super) fn new(lt: &BlasLt, stream: &Stream, shape: Shape, options: Options) -> Result<Self> {
        let mut workspace_bytes = 0;
        let mut plan = |matmul: Matmul| -> Result<MatmulPlan> {
            let plan = match options.tuning {
                Tuning::Expected => MatmulPlan::new(lt, &matmul, PlanOptions::default())?,
                Tuning::Measured => Tuner::new().plan(lt, stream, &matmul)?.plan,
            };
            workspace_bytes = workspace_bytes.max(plan.workspace_bytes());
            Ok(plan)
        };
        let (rows, width, hidden) = (shape.rows(), shape.width, shape.hidden());
        let input = matrix(rows, width);
        let heads = Heads { shape, count: options.group, part: shape.part(options.parts) };
        Ok(Self {
            qkv: plan(layer(rows, width, 3 * width).with_epilogue(Epilogue::Bias))?,
            scores: heads.each_part().map(|part| plan(heads.scores(part, 3))).collect::<Result<_>>()?,
            context: heads.each_part().map(|part| plan(heads.of_queries(part, 1))).collect::<Result<_>>()?,
            // The addend is the residual.
            projection: plan(layer(rows, width, width).with_c(input).with_epilogue(Epilogue::Bias))?,
            up: plan(layer(rows, width, hidden).with_epilogue(Epilogue::GeluAuxiliaryBias))?,
            down: plan(layer(rows, hidden, width).with_c(input).with_epilogue(Epilogue::Bias))?,
            gradient: GradientProducts::new(shape, heads, &mut plan)?,
            workspace_bytes,
        })
    }
}

impl GradientProducts {
    fn new(shape: Shape, heads: Heads, plan: &mut impl FnMut(Matmul) -> Result<MatmulPlan>) -> Result<Self> {
        let (rows, width, hidden) = (shape.rows(), shape.width, shape.hidden());
        Ok(Self {
            hidden: plan(layer_input(rows, hidden, width).with_epilogue(Epilogue::GeluBiasGradient))?,
            down_weight: plan(layer_weight(rows, hidden, width).with_epilogue(Epilogue::BiasGradientA))?,
            normalized2: plan(layer_input(rows, width, hidden))?,
            up_weight: plan(layer_weight(rows, width, hidden))?,
            projection_weight: plan(layer_weight(rows, width, width).with_epilogue(Epilogue::BiasGradientA))?,
            context: plan(layer_input(rows, width, width))?,
            values: heads.each_part().map(|part| plan(heads.of_keys(part, 1))).collect::<Result<_>>()?,
            probabilities: heads.each_part().map(|part| plan(heads.scores(part, 1))).collect::<Result<_>>()?,
            queries: heads.each_part().map(|part| plan(heads.of_queries(part, 3))).collect::<Result<_>>()?,
            keys: heads.each_part().map(|part| plan(heads.of_keys(part, 3))).collect::<Result<_>>()?,
            qkv_weight: plan(layer_weight(rows, width, 3 * width).with_epilogue(Epilogue::BiasGradientA))?,
            normalized1: plan(layer_input(rows, width, 3 * width))?,
        })
    }
}

/// The products of a group of heads. A width of 3 is that of queries, keys and values together, and a width of 1 that of the context.
#[derive(Clone, Copy)]
struct Heads {
    shape: Shape,
    count: usize,
    /// The number of positions of a part of the sequence.
    part: usize,
}

impl Heads {
    fn each_part(self) -> Range<usize> {
        0..self.shape.sequence / self.part
    }

    /// Describes the scores of a part of the queries, or the gradients of their probabilities: a matrix of this width times the transposed
    /// keys or values up to the end of the part.
    fn scores(self, part: usize, width: usize) -> Matmul {
        let end = (part + 1) * self.part;
        self.product(self.vectors(self.part, width), transposed(self.vectors(end, 3)), self.weights(self.part, end))
    }

    /// Describes the sums of keys or values for a part of the queries, in a matrix of this width.
    fn of_queries(self, part: usize, width: usize) -> Matmul {
        let end = (part + 1) * self.part;
        self.product(self.weights(self.part, end), self.vectors(end, 3), self.vectors(self.part, width))
    }

    /// Describes the sums over the queries that see a part of the keys, in a matrix of this width.
    fn of_keys(self, part: usize, width: usize) -> Matmul {
        let seeing = self.shape.sequence - part * self.part;
        let weights = transposed(self.weights(seeing, self.part));
        self.product(weights, self.vectors(seeing, width), self.vectors(self.part, 3))
    }

    /// Returns the layout of consecutive positions of the heads, which lie side by side in rows of all samples.
    fn vectors(self, positions: usize, width: usize) -> TypedLayout {
        let leading = self.shape.batch * width * self.shape.width;
        let layout = MatrixLayout::row_major(positions, self.shape.head()).with_leading_dimension(leading);
        TypedLayout::new::<bf16>(layout).with_stride(width * self.shape.head())
    }

    /// Returns the layout of the weights of keys for queries.
    fn weights(self, queries: usize, keys: usize) -> TypedLayout {
        let length = self.shape.sequence;
        let layout = MatrixLayout::row_major(queries, keys).with_leading_dimension(length);
        TypedLayout::new::<bf16>(layout).with_stride(length * length)
    }

    fn product(self, a: TypedLayout, b: TypedLayout, d: TypedLayout) -> Matmul {
        // The first elements of heads and of parts are multiples of these.
        let bytes = (self.shape.head() | self.part) * size_of::<bf16>();
        let alignment = (1 << bytes.trailing_zeros()).min(256);
        Matmul::new(a, b, d).with_batches(self.count).with_alignment(alignment)
    }
}

fn matrix(rows: usize, columns: usize) -> TypedLayout {
    TypedLayout::new::<bf16>(MatrixLayout::row_major(rows, columns))
}

fn transposed(matrix: TypedLayout) -> TypedLayout {
    TypedLayout::new::<bf16>(matrix.layout().transposed()).with_stride(matrix.stride())
}

/// Describes the output of a layer: the input times the transposed weight.
fn layer(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(matrix(rows, inputs), transposed(matrix(outputs, inputs)), matrix(rows, outputs))
}

/// Describes the gradient of the input of a layer: the gradient of the output times the weight.
fn layer_input(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(matrix(rows, outputs), matrix(outputs, inputs), matrix(rows, inputs))
}

/// Describes the gradient of the weight of a layer: the transposed gradient of the output times the input.
fn layer_weight(rows: usize, inputs: usize, outputs: usize) -> Matmul {
    Matmul::new(transposed(matrix(rows, outputs)), matrix(rows, inputs), matrix(outputs, inputs))
}
