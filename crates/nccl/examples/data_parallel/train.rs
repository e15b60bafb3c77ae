//! A perceptron with one hidden layer, trained by gradient descent on equal parts of a batch.

use std::error::Error;

use curium_blas::{Blas, CuBlas, Matrix, MatrixMut, Vector, VectorMut};
use curium_driver::{Graph, Kernel, LaunchConfig, Library, Stream};
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

type Activation = Kernel<(&'static [f32], &'static mut [f32], u32)>;

/// The part of the training data, the weights and the memory of one rank.
struct Model {
    relu: Activation,
    relu_gradient: Activation,
    rows: usize,
    x: DeviceBuffer<f32>,
    target: DeviceBuffer<f32>,
    first: DeviceBuffer<f32>,
    second: DeviceBuffer<f32>,
    sums: DeviceBuffer<f32>,
    active: DeviceBuffer<f32>,
    backward: DeviceBuffer<f32>,
    difference: DeviceBuffer<f32>,
    first_gradient: DeviceBuffer<f32>,
    second_gradient: DeviceBuffer<f32>,
    loss: DeviceBuffer<f32>,
}

/// Trains for some steps, and returns the loss before each of them.
///
/// The first step runs at once, which connects the ranks. The others are launches of a graph with
/// the operations of a step, including those of NCCL. Fails within the timeout of the communicator
/// if a rank does.
pub(crate) fn train(
    cublas: &CuBlas,
    communicator: &mut Communicator,
    steps: usize,
) -> Result<Vec<f32>> {
    let context = communicator.context().clone();
    let stream = context.stream()?;
    let reducing = context.stream()?;
    let mut model = Model::new(&stream, communicator.rank(), communicator.size())?;
    let mut losses = Vec::new();
    model.step(
        &mut Blas::new(cublas, &stream)?,
        communicator,
        &stream,
        &reducing,
    )?;
    communicator.synchronize(&stream)?;
    losses.push(model.loss.to_vec()?[0]);

    let graph = Graph::capture(&context, |scope| -> Result<()> {
        let reducing = scope.fork()?;
        model.step(
            &mut Blas::new(cublas, scope)?,
            communicator,
            scope,
            &reducing,
        )?;
        Ok(scope.join(&reducing)?)
    })?;
    let mut step = graph.instantiate()?;
    for _ in 1..steps {
        step.launch(&stream)?;
        communicator.synchronize(&stream)?;
        losses.push(model.loss.to_vec()?[0]);
    }
    Ok(losses)
}

impl Model {
    fn new(stream: &Stream, rank: usize, ranks: usize) -> Result<Self> {
        let library = Library::from_ptx(stream.context(), PTX)?;
        let rows = BATCH / ranks;
        Ok(Self {
            relu: library.kernel("relu")?,
            relu_gradient: library.kernel("relu_gradient")?,
            rows,
            x: part(stream, rank, rows, INPUTS, |row, column| {
                ((row * 7 + column * 3) % 11) as f32 / 11.0 - 0.5
            })?,
            target: part(stream, rank, rows, OUTPUTS, |row, column| {
                ((row * 5 + column) % 7) as f32 / 7.0
            })?,
            first: DeviceBuffer::from_slice(stream, &weights(INPUTS, HIDDEN))?,
            second: DeviceBuffer::from_slice(stream, &weights(HIDDEN, OUTPUTS))?,
            sums: DeviceBuffer::zeroed(stream, rows * HIDDEN)?,
            active: DeviceBuffer::zeroed(stream, rows * HIDDEN)?,
            backward: DeviceBuffer::zeroed(stream, rows * HIDDEN)?,
            difference: DeviceBuffer::zeroed(stream, rows * OUTPUTS)?,
            first_gradient: DeviceBuffer::zeroed(stream, INPUTS * HIDDEN)?,
            second_gradient: DeviceBuffer::zeroed(stream, HIDDEN * OUTPUTS)?,
            loss: DeviceBuffer::zeroed(stream, 1)?,
        })
    }

    /// Enqueues one step, or captures it.
    ///
    /// Gradients are reduced on a stream of their own: those of the second layer while the
    /// gradients of the first are computed. Accesses of both streams are ordered by the buffers.
    fn step(
        &mut self,
        blas: &mut Blas,
        communicator: &mut Communicator,
        stream: &Stream,
        reducing: &Stream,
    ) -> Result<()> {
        let rows = self.rows;
        let hidden = u32::try_from(self.rows * HIDDEN)?;
        let launch = LaunchConfig::for_elements(self.rows * HIDDEN);

        // Forward: the difference between output and target, divided by the number of samples.
        let inputs = Matrix::row_major(&self.x, rows, INPUTS)?;
        let mut result = MatrixMut::row_major(&mut self.sums, rows, HIDDEN)?;
        blas.gemm(
            1.0,
            inputs,
            Matrix::row_major(&self.first, INPUTS, HIDDEN)?,
            0.0,
            &mut result,
        )?;
        // SAFETY: the kernel accesses `hidden` elements, which is the length of both buffers.
        unsafe {
            self.relu
                .launch(stream, launch, (&self.sums, &mut self.active, hidden))
        }?;
        self.difference
            .on_mut(stream)
            .copy_from_device(&self.target)?;
        let activations = Matrix::row_major(&self.active, rows, HIDDEN)?;
        let weights = Matrix::row_major(&self.second, HIDDEN, OUTPUTS)?;
        let scale = 1.0 / BATCH as f32;
        let mut result = MatrixMut::row_major(&mut self.difference, rows, OUTPUTS)?;
        blas.gemm(scale, activations, weights, -scale, &mut result)?;

        // Backward: the gradients of the second layer are reduced while those of the first are
        // computed.
        let differences = Matrix::row_major(&self.difference, rows, OUTPUTS)?;
        let mut result = MatrixMut::row_major(&mut self.second_gradient, HIDDEN, OUTPUTS)?;
        blas.gemm(1.0, activations.transposed(), differences, 0.0, &mut result)?;
        communicator.all_reduce_in_place(reducing, &mut self.second_gradient, Reduction::Sum)?;
        let mut result = MatrixMut::row_major(&mut self.backward, rows, HIDDEN)?;
        blas.gemm(1.0, differences, weights.transposed(), 0.0, &mut result)?;
        // SAFETY: the kernel accesses `hidden` elements, which is the length of both buffers.
        unsafe {
            self.relu_gradient
                .launch(stream, launch, (&self.sums, &mut self.backward, hidden))
        }?;
        let gradients = Matrix::row_major(&self.backward, rows, HIDDEN)?;
        let mut result = MatrixMut::row_major(&mut self.first_gradient, INPUTS, HIDDEN)?;
        blas.gemm(1.0, inputs.transposed(), gradients, 0.0, &mut result)?;
        communicator.all_reduce_in_place(reducing, &mut self.first_gradient, Reduction::Sum)?;

        // The loss: half of the squares of the differences.
        let row = Matrix::row_major(&self.difference, 1, rows * OUTPUTS)?;
        let mut result = MatrixMut::row_major(&mut self.loss, 1, 1)?;
        blas.gemm(0.5 * BATCH as f32, row, row.transposed(), 0.0, &mut result)?;
        communicator.all_reduce_in_place(reducing, &mut self.loss, Reduction::Sum)?;

        blas.axpy(
            -LEARNING_RATE,
            Vector::new(&self.second_gradient),
            &mut VectorMut::new(&mut self.second),
        )?;
        blas.axpy(
            -LEARNING_RATE,
            Vector::new(&self.first_gradient),
            &mut VectorMut::new(&mut self.first),
        )?;
        Ok(())
    }
}

/// Returns the rows of this rank of a matrix of all samples.
fn part(
    stream: &Stream,
    rank: usize,
    rows: usize,
    columns: usize,
    element: impl Fn(usize, usize) -> f32,
) -> Result<DeviceBuffer<f32>> {
    let elements: Vec<f32> = (rank * rows..(rank + 1) * rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| element(row, column))
        .collect();
    Ok(DeviceBuffer::from_slice(stream, &elements)?)
}

/// Returns the same small weights on every rank.
fn weights(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns)
        .map(|index| ((index * 37 + 11) % 101) as f32 / 101.0 - 0.5)
        .collect()
}
