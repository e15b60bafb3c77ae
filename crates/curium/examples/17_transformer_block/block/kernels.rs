//! The kernels of the normalizations.

use curium::driver::DeviceAttribute;
use curium::prelude::*;
use half::bf16;

use super::{Buffer, Partial, Result, Shape};

const PTX: &str = include_str!("../../kernels/transformer.ptx");

/// The number of lanes of a warp.
const LANES: u32 = 32;
/// The number of rows that a block of threads processes at a time.
const WARPS: u32 = 4;
/// The number of blocks for each multiprocessor that sum gradients of normalizations.
const BLOCKS: u32 = 3;

pub(super) type Read<T> = &'static [T];
pub(super) type Write<T> = &'static mut [T];

/// The kernels.
pub(super) struct Kernels {
    layer_norm: Kernel<LayerNorm>,
    layer_norm_backward: Kernel<LayerNormBackward>,
    sum_partial: Kernel<SumPartial>,
    shape: Shape,
    partial_rows: u32,
}

type LayerNorm = (
    Read<bf16>,
    Read<bf16>,
    Read<bf16>,
    Write<bf16>,
    Write<f32>,
    u32,
    u32,
);
type SumPartial = (Read<f32>, Read<f32>, Write<bf16>, Write<bf16>, u32, u32);
type LayerNormBackward = (
    Read<bf16>,
    Read<bf16>,
    Read<f32>,
    Read<bf16>,
    Read<bf16>,
    Write<bf16>,
    Write<f32>,
    Write<f32>,
    u32,
    u32,
);

impl Kernels {
    pub(super) fn load(stream: &Stream, shape: Shape) -> Result<Self> {
        let library = Library::from_ptx(stream.context(), PTX)?;
        let multiprocessors = stream
            .device()
            .attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)?;
        let blocks = u32::try_from(shape.rows())?.div_ceil(WARPS);
        Ok(Self {
            layer_norm: library.kernel("layer_norm_4")?,
            layer_norm_backward: library.kernel("layer_norm_backward_4")?,
            sum_partial: library.kernel("sum_partial")?,
            shape,
            partial_rows: blocks.min(BLOCKS * multiprocessors),
        })
    }

    /// Returns the number of rows of the partial sums of the gradients of a normalization.
    pub(super) fn partial_rows(&self) -> usize {
        self.partial_rows as usize
    }

    /// Normalizes rows.
    pub(super) fn layer_norm(
        &self,
        stream: &Stream,
        x: &Buffer,
        gain: &Buffer,
        bias: &Buffer,
        y: &mut Buffer,
        statistics: &mut DeviceBuffer<f32>,
    ) -> Result<()> {
        let rows = self.shape.rows();
        let width = self.shape.width;
        expect([
            (x.len(), rows * width),
            (gain.len(), width),
            (bias.len(), width),
        ])?;
        expect([(y.len(), rows * width), (statistics.len(), 2 * rows)])?;
        let config = for_rows(rows)?;
        let sizes = (u32::try_from(rows)?, u32::try_from(width)?);
        let arguments = (x, gain, bias, y, statistics, sizes.0, sizes.1);
        // SAFETY: the kernel accesses as many elements as checked above.
        Ok(unsafe { self.layer_norm.launch(stream, config, arguments) }?)
    }

    /// Computes `dx`, the gradient of the input of a normalization plus `residual`, from that of
    /// its output, its input and its statistics, and the partial sums of the gradients of gain and
    /// bias.
    #[expect(clippy::too_many_arguments, reason = "each is an operand")]
    pub(super) fn layer_norm_backward(
        &self,
        stream: &Stream,
        dy: &Buffer,
        x: &Buffer,
        statistics: &DeviceBuffer<f32>,
        gain: &Buffer,
        residual: &Buffer,
        dx: &mut Buffer,
        partial: &mut Partial,
    ) -> Result<()> {
        let rows = self.shape.rows();
        let width = self.shape.width;
        let all = rows * width;
        let sums = self.partial_rows() * width;
        expect([
            (dy.len(), all),
            (x.len(), all),
            (residual.len(), all),
            (dx.len(), all),
        ])?;
        expect([(statistics.len(), 2 * rows), (gain.len(), width)])?;
        expect([(partial.gain.len(), sums), (partial.bias.len(), sums)])?;
        let config = LaunchConfig::new(self.partial_rows, (LANES, WARPS));
        let sizes = (rows as u32, width as u32);
        let Partial {
            gain: of_gain,
            bias: of_bias,
        } = partial;
        let arguments = (
            dy, x, statistics, gain, residual, dx, of_gain, of_bias, sizes.0, sizes.1,
        );
        // SAFETY: the kernel accesses as many elements as checked above, and stores one row of sums
        // for each block.
        Ok(unsafe { self.layer_norm_backward.launch(stream, config, arguments) }?)
    }

    /// Adds the partial sums.
    pub(super) fn sum_partial(
        &self,
        stream: &Stream,
        partial: &Partial,
        gain: &mut Buffer,
        bias: &mut Buffer,
    ) -> Result<()> {
        let width = self.shape.width;
        let sums = self.partial_rows() * self.shape.width;
        expect([
            (partial.gain.len(), sums),
            (partial.bias.len(), sums),
            (gain.len(), width),
            (bias.len(), width),
        ])?;
        let config = LaunchConfig::new(((width as u32).div_ceil(LANES), 2), (LANES, LANES));
        let arguments = (
            &partial.gain,
            &partial.bias,
            gain,
            bias,
            self.partial_rows,
            width as u32,
        );
        // SAFETY: the kernel accesses as many elements as checked above.
        Ok(unsafe { self.sum_partial.launch(stream, config, arguments) }?)
    }
}

/// Returns the configuration with a warp for each row.
fn for_rows(rows: usize) -> Result<LaunchConfig> {
    Ok(LaunchConfig::new(
        u32::try_from(rows)?.div_ceil(WARPS),
        (LANES, WARPS),
    ))
}

/// Checks that memory has as many elements as a kernel accesses.
pub(super) fn expect<const COUNT: usize>(lengths: [(usize, usize); COUNT]) -> Result<()> {
    match lengths
        .into_iter()
        .find(|(length, expected)| length != expected)
    {
        Some((length, expected)) => {
            Err(format!("block: memory has {length} elements instead of {expected}").into())
        }
        None => Ok(()),
    }
}
