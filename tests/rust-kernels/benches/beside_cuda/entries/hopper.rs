//! Matrix products by TMA and `wgmma`, which need compute capability 9.0.

use curium_driver::ArgumentList;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::{
    DeviceBuffer, TensorDataType, TensorLayout, TensorRead, TensorSwizzle, TensorView,
};
use curium_test_kernels_hopper::Kernels as Hopper;

use super::Entry;
use crate::Result;
use crate::bench::{Bench, Comparison, Tolerance};
use crate::report::Row;

const SOURCE: &str = "gemm_hopper.cu";

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "gemm_128x128",
        source: SOURCE,
        run: |bench, entry| gemm(bench, entry, 128, 4),
    },
    Entry {
        name: "gemm_128x256",
        source: SOURCE,
        run: |bench, entry| gemm(bench, entry, 256, 4),
    },
];

/// The rows of a block, and the columns of a tile.
const ROWS: usize = 128;
const INNER: usize = 64;

/// Returns the view of a matrix in boxes of `rows` rows.
fn boxes(
    matrix: &DeviceBuffer<u16>,
    sizes: [usize; 2],
    rows: usize,
) -> curium_driver::Result<TensorView<'_>> {
    let extents = [sizes[1] as u64, sizes[0] as u64];
    let layout = TensorLayout::new(TensorDataType::Uint16, matrix.as_pointer(), &extents)
        .with_swizzle(TensorSwizzle::Bytes128);
    TensorView::tiled(matrix.as_slice(), &layout, &[INNER as u32, rows as u32])
}

/// Rounds a number to bfloat16.
fn bf16(number: f32) -> u16 {
    let bits = number.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// c = a * bᵀ in blocks of 128 rows. The numbers are multiples of 1/2 from -1 to 1, so that the
/// sums are exact.
fn gemm(bench: &Bench, entry: &Entry, block_columns: usize, stages: usize) -> Result<Row> {
    let rows = bench.size(8192, 200);
    let columns = bench.size(8192, 328);
    let inner = bench.size(8192, 328);
    let hopper = Hopper::load(bench.context.device())?;
    let noise = |seed: u64| -> Vec<u16> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..1 << 18)
            .map(|_| bf16(f32::from(random.i8(-2..=2)) / 2.0))
            .collect()
    };
    let a = bench.repeat(&noise(1), rows * inner)?;
    let b = bench.repeat(&noise(2), columns * inner)?;
    let c = DeviceBuffer::<u16>::zeroed(&bench.stream, rows * columns)?;
    let grid = (
        u32::try_from(columns.div_ceil(block_columns))?,
        u32::try_from(rows.div_ceil(ROWS))?,
    );
    let shared = stages * ((ROWS + block_columns) * INNER * 2 + 16) + 1024;
    bench.compare(
        entry,
        Comparison {
            outputs: c,
            tolerance: Tolerance::Exact,
            prepare: &|_| Ok(()),
            kernel: &|_| {
                if block_columns == 128 {
                    hopper.gemm_128x128.kernel()
                } else {
                    hopper.gemm_128x256.kernel()
                }
            },
            rust: &|_, stream, c| {
                let a = RowMajor::new(&a, rows, inner);
                let b = RowMajor::new(&b, columns, inner);
                let c = RowMajor::new(c, rows, columns);
                let grid = Blocks::new(grid);
                if block_columns == 128 {
                    hopper.gemm_128x128.launch(stream, grid, stages, a, b, c)
                } else {
                    hopper.gemm_128x256.launch(stream, grid, stages, a, b, c)
                }
            },
            cuda: &|twin, c| {
                let a = boxes(&a, [rows, inner], ROWS)?;
                let b = boxes(&b, [columns, inner], block_columns)?;
                let arguments = ArgumentList::new()
                    .argument::<TensorRead>(&a)
                    .argument::<TensorRead>(&b)
                    .write(c)
                    .value(u32::try_from(rows)?)
                    .value(u32::try_from(columns)?)
                    .value(u32::try_from(inner)?)
                    .value(u32::try_from(stages)?);
                twin.launch_with_shared(grid, 256, u32::try_from(shared)?, arguments)
            },
            reference: &|| {
                let wide = |matrix: Vec<u16>| -> Vec<f32> {
                    let number = |bits: &u16| f32::from_bits(u32::from(*bits) << 16);
                    matrix.iter().map(number).collect()
                };
                let (a, b) = (wide(a.to_vec()?), wide(b.to_vec()?));
                let mut numbers = Vec::new();
                for a in a.chunks(inner) {
                    for b in b.chunks(inner) {
                        let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                        numbers.push(f64::from(bf16(sum)));
                    }
                }
                Ok(numbers)
            },
        },
    )
}
