//! The fused attention: kernels that compute softmax and both products of a tile at a time, without
//! storing scores.

use curium::prelude::*;
use half::bf16;

use super::kernels::{Read, Write, expect};
use super::{Buffer, Result, Shape};

const FORWARD: &str = include_str!("../../kernels/attention.ptx");
const BACKWARD: &str = include_str!("../../kernels/attention_backward.ptx");

/// The number of threads of a block.
const THREADS: u32 = 128;
/// The number of rows of a tile.
const TILE_ROWS: u32 = 128;
/// The width of a head.
pub(super) const HEAD: usize = 64;

/// The kernels.
pub(super) struct Attention {
    forward: Kernel<Forward>,
    backward_queries: Kernel<BackwardQueries>,
    backward_keys: Kernel<BackwardKeys>,
    shape: Shape,
}

type Forward = (Read<bf16>, Write<bf16>, Write<f32>, u32, f32, u32);
type BackwardQueries = (
    Read<bf16>,
    Read<bf16>,
    Read<bf16>,
    Read<f32>,
    Write<f32>,
    Write<bf16>,
    u32,
    f32,
    u32,
);
type BackwardKeys = (
    Read<bf16>,
    Read<bf16>,
    Read<f32>,
    Read<f32>,
    Write<bf16>,
    u32,
    f32,
    u32,
);

impl Attention {
    pub(super) fn load(stream: &Stream, shape: Shape) -> Result<Self> {
        let [forward, backward] =
            [FORWARD, BACKWARD].map(|ptx| Library::from_ptx(stream.context(), ptx));
        let forward = forward?;
        let backward = backward?;
        let attention = Self {
            forward: forward.kernel("attention_64")?,
            backward_queries: backward.kernel("attention_backward_queries_64")?,
            backward_keys: backward.kernel("attention_backward_keys_64")?,
            shape,
        };
        let device = stream.device();
        attention
            .forward
            .set_max_dynamic_shared_bytes(device, attention.row_bytes())?;
        attention
            .backward_queries
            .set_max_dynamic_shared_bytes(device, attention.row_bytes())?;
        attention
            .backward_keys
            .set_max_dynamic_shared_bytes(device, attention.column_bytes())?;
        Ok(attention)
    }

    /// Computes the context, and the logarithms of the sums of the exponentials of each row, which
    /// the backward pass reads.
    pub(super) fn forward(
        &self,
        stream: &Stream,
        qkv: &Buffer,
        context: &mut Buffer,
        log_sums: &mut DeviceBuffer<f32>,
    ) -> Result<()> {
        self.expect([(qkv.len(), 3), (context.len(), 1)], [log_sums.len()])?;
        let (length, scale, is_causal) = self.numbers()?;
        let arguments = (qkv, context, log_sums, length, scale, is_causal);
        // SAFETY: the kernel accesses as many elements as checked above, and as much shared memory
        // as configured.
        Ok(unsafe {
            self.forward
                .launch(stream, self.config(self.row_bytes())?, arguments)
        }?)
    }

    /// Computes the gradients of the queries, keys and values from `dy`, that of the context.
    /// Stores the product of each row of the context and its gradient in `deltas`.
    #[expect(clippy::too_many_arguments, reason = "each is an operand")]
    pub(super) fn backward(
        &self,
        stream: &Stream,
        qkv: &Buffer,
        context: &Buffer,
        dy: &Buffer,
        log_sums: &DeviceBuffer<f32>,
        deltas: &mut DeviceBuffer<f32>,
        gradients: &mut Buffer,
    ) -> Result<()> {
        let lengths = [
            (qkv.len(), 3),
            (context.len(), 1),
            (dy.len(), 1),
            (gradients.len(), 3),
        ];
        self.expect(lengths, [log_sums.len(), deltas.len()])?;
        let (length, scale, is_causal) = self.numbers()?;
        let of_queries = self.config(self.row_bytes())?;
        let of_keys = self.config(self.column_bytes())?;
        let arguments = (
            qkv,
            context,
            dy,
            log_sums,
            &mut *deltas,
            &mut *gradients,
            length,
            scale,
            is_causal,
        );
        // SAFETY: the kernel accesses as many elements as checked above, and as much shared memory
        // as configured.
        unsafe { self.backward_queries.launch(stream, of_queries, arguments) }?;
        let arguments = (
            qkv, dy, log_sums, &*deltas, gradients, length, scale, is_causal,
        );
        // SAFETY: the kernel accesses as many elements as checked above, and as much shared memory
        // as configured.
        Ok(unsafe { self.backward_keys.launch(stream, of_keys, arguments) }?)
    }

    /// Checks the numbers of elements: multiples of those of the input, and one element for each
    /// row of each head.
    fn expect<const INPUTS: usize, const ROWS: usize>(
        &self,
        inputs: [(usize, usize); INPUTS],
        rows: [usize; ROWS],
    ) -> Result<()> {
        let Shape {
            sequence, width, ..
        } = self.shape;
        expect(inputs.map(|(length, multiple)| (length, multiple * self.shape.rows() * width)))?;
        expect(rows.map(|length| (length, self.shape.all_heads() * sequence)))
    }

    /// Returns the length of the sequence, the factor of scores, and whether the mask is causal.
    fn numbers(&self) -> Result<(u32, f32, u32)> {
        let scale = 1.0 / (self.shape.head() as f32).sqrt();
        Ok((
            u32::try_from(self.shape.sequence)?,
            scale,
            u32::from(self.shape.is_causal),
        ))
    }

    /// Returns the configuration with a block for each head of all samples and each tile of its
    /// rows.
    fn config(&self, shared_bytes: u32) -> Result<LaunchConfig> {
        let tiles = self.shape.sequence.div_ceil(TILE_ROWS as usize);
        let grid = (
            u32::try_from(self.shape.all_heads())?,
            u32::try_from(tiles)?,
        );
        Ok(LaunchConfig::new(grid, THREADS).with_shared_bytes(shared_bytes))
    }

    fn tile_bytes(&self) -> u32 {
        TILE_ROWS * (HEAD * size_of::<bf16>()) as u32
    }

    /// Returns the shared memory of a block with a tile of queries: two stages, and the tile.
    fn row_bytes(&self) -> u32 {
        3 * self.tile_bytes()
    }

    /// Returns the shared memory of a block with a tile of keys and one of values, whose stages
    /// have two numbers for each query.
    fn column_bytes(&self) -> u32 {
        4 * self.tile_bytes() + 2 * TILE_ROWS * size_of::<f32>() as u32
    }
}
