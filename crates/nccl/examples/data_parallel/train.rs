//! A perceptron with one hidden layer, trained by gradient descent on equal parts of a batch.

use std::error::Error;

use curium_blas::{Blas, CuBlas, Matrix, MatrixMut, Vector, VectorMut};
use curium_driver::{LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Reduction};

pub(crate) type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const INPUTS: usize = 8;
const HIDDEN: usize = 32;
const OUTPUTS: usize = 4;
/// The number of samples of all ranks.
const BATCH: usize = 64;
const LEARNING_RATE: f32 = 0.2;

/// `relu`: y = max(x, 0). `relu_gradient`: g = 0 where x is not positive.
const PTX: &str = r"
.version 7.8
.target sm_75
.address_size 64

.visible .entry relu(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d3, %d0, %d2;
    ld.global.f32 %f0, [%d3];
    max.f32 %f1, %f0, 0f00000000;
    add.u64 %d3, %d1, %d2;
    st.global.f32 [%d3], %f1;
    ret;
}

.visible .entry relu_gradient(.param .u64 x, .param .u64 g, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [g];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d3, %d0, %d2;
    ld.global.f32 %f0, [%d3];
    setp.gt.f32 %p, %f0, 0f00000000;
    @%p ret;
    add.u64 %d3, %d1, %d2;
    mov.f32 %f1, 0f00000000;
    st.global.f32 [%d3], %f1;
    ret;
}
";

/// Trains for some steps, and returns the loss before each of them.
///
/// Gradients are reduced on a stream of their own: those of the second layer while the gradients of the first are computed. Accesses of
/// both streams are ordered by the buffers.
pub(crate) fn train(cublas: &CuBlas, communicator: &mut Communicator, steps: usize) -> Result<Vec<f32>> {
    let context = communicator.context().clone();
    let (stream, reducing) = (context.stream()?, context.stream()?);
    let (rank, rows) = (communicator.rank(), BATCH / communicator.size());
    let (library, mut blas) = (Library::from_ptx(&context, PTX)?, Blas::new(cublas, &stream)?);
    // SAFETY: `relu` reads `n` elements of the first memory, and writes as many of the second.
    let relu = unsafe { library.kernel::<(&[f32], &mut [f32], u32)>("relu")?.declare_safe() };
    // SAFETY: as above for `relu_gradient`.
    let relu_gradient = unsafe { library.kernel::<(&[f32], &mut [f32], u32)>("relu_gradient")?.declare_safe() };
    let hidden = u32::try_from(rows * HIDDEN)?;
    let launch = LaunchConfig::for_elements(hidden);

    let x = part(&stream, rank, rows, INPUTS, |row, column| ((row * 7 + column * 3) % 11) as f32 / 11.0 - 0.5)?;
    let target = part(&stream, rank, rows, OUTPUTS, |row, column| ((row * 5 + column) % 7) as f32 / 7.0)?;
    let mut first = DeviceBuffer::from_slice(&stream, &weights(INPUTS, HIDDEN))?;
    let mut second = DeviceBuffer::from_slice(&stream, &weights(HIDDEN, OUTPUTS))?;
    let mut sums = DeviceBuffer::<f32>::zeroed(&stream, rows * HIDDEN)?;
    let mut active = DeviceBuffer::<f32>::zeroed(&stream, rows * HIDDEN)?;
    let mut backward = DeviceBuffer::<f32>::zeroed(&stream, rows * HIDDEN)?;
    let mut difference = DeviceBuffer::<f32>::zeroed(&stream, rows * OUTPUTS)?;
    let mut first_gradient = DeviceBuffer::<f32>::zeroed(&stream, INPUTS * HIDDEN)?;
    let mut second_gradient = DeviceBuffer::<f32>::zeroed(&stream, HIDDEN * OUTPUTS)?;

    let mut losses = Vec::new();
    for _ in 0..steps {
        // Forward: the difference between output and target, divided by the number of samples.
        let inputs = Matrix::row_major(&x, rows, INPUTS)?;
        let mut result = MatrixMut::row_major(&mut sums, rows, HIDDEN)?;
        blas.gemm(1.0, inputs, Matrix::row_major(&first, INPUTS, HIDDEN)?, 0.0, &mut result)?;
        relu.launch(&stream, launch, (&sums, &mut active, hidden))?;
        difference.copy_from_device(&target)?;
        let (activations, weights) =
            (Matrix::row_major(&active, rows, HIDDEN)?, Matrix::row_major(&second, HIDDEN, OUTPUTS)?);
        let scale = 1.0 / BATCH as f32;
        blas.gemm(scale, activations, weights, -scale, &mut MatrixMut::row_major(&mut difference, rows, OUTPUTS)?)?;

        // Backward: the gradients of the second layer are reduced while those of the first are computed.
        let differences = Matrix::row_major(&difference, rows, OUTPUTS)?;
        let mut result = MatrixMut::row_major(&mut second_gradient, HIDDEN, OUTPUTS)?;
        blas.gemm(1.0, activations.transposed(), differences, 0.0, &mut result)?;
        communicator.all_reduce_in_place(&reducing, &mut second_gradient, Reduction::Sum)?;
        let mut result = MatrixMut::row_major(&mut backward, rows, HIDDEN)?;
        blas.gemm(1.0, differences, weights.transposed(), 0.0, &mut result)?;
        relu_gradient.launch(&stream, launch, (&sums, &mut backward, hidden))?;
        let mut result = MatrixMut::row_major(&mut first_gradient, INPUTS, HIDDEN)?;
        blas.gemm(1.0, inputs.transposed(), Matrix::row_major(&backward, rows, HIDDEN)?, 0.0, &mut result)?;
        communicator.all_reduce_in_place(&reducing, &mut first_gradient, Reduction::Sum)?;

        let squares = blas.dot(Vector::new(&difference), Vector::new(&difference))?;
        losses.push(total(communicator, &reducing, 0.5 * BATCH as f32 * squares)?);
        blas.axpy(-LEARNING_RATE, Vector::new(&second_gradient), &mut VectorMut::new(&mut second))?;
        blas.axpy(-LEARNING_RATE, Vector::new(&first_gradient), &mut VectorMut::new(&mut first))?;
    }
    Ok(losses)
}

/// Returns the sum of a number over the ranks. Notices ranks that fail.
fn total(communicator: &mut Communicator, stream: &Stream, value: f32) -> Result<f32> {
    let mut memory = DeviceBuffer::from_slice(stream, &[value])?;
    communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum)?;
    communicator.synchronize(stream)?;
    Ok(memory.to_vec()?[0])
}

/// Returns the rows of this rank of a matrix of all samples.
fn part(
    stream: &Stream,
    rank: usize,
    rows: usize,
    columns: usize,
    element: impl Fn(usize, usize) -> f32,
) -> Result<DeviceBuffer<f32>> {
    let own = rank * rows..(rank + 1) * rows;
    let elements: Vec<f32> = own
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| element(row, column))
        .collect();
    Ok(DeviceBuffer::from_slice(stream, &elements)?)
}

/// Returns the same small weights on every rank.
fn weights(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|index| ((index * 37 + 11) % 101) as f32 / 101.0 - 0.5).collect()
}
