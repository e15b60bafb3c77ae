//! cudarc's copies and its cuBLAS on a stream and buffers of Curium, on this machine's driver.
//!
//! Both crates use the primary context of the device. Without a cuBLAS library, the matrices are
//! copied and not multiplied.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program prints its results"
)]

use std::error::Error;
use std::ffi::c_int;
use std::ops::Deref;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{self, CudaBlas, Gemm, GemmConfig};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use curium_driver::AsRawStream as _;
use curium_driver::{Driver, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::kernels;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Saxpy = Kernel<(f32, &'static [f32], &'static mut [f32], u32)>;

/// A buffer of Curium as an operand of cudarc: `&DeviceBuffer` is read, and `&mut DeviceBuffer` is
/// written.
///
/// cudarc uses it on the buffer's own stream only, which orders its work with all other work on the
/// buffer.
struct Operand<B> {
    buffer: B,
    stream: Arc<CudaStream>,
}

impl<B: Deref<Target = DeviceBuffer<f32>>> Operand<B> {
    fn new(buffer: B, stream: &Arc<CudaStream>) -> Self {
        assert_eq!(
            stream.cu_stream().cast(),
            buffer.stream().as_raw(),
            "cudarc uses the stream of the buffer"
        );
        Self {
            buffer,
            stream: Arc::clone(stream),
        }
    }

    fn on(&self, stream: &CudaStream) -> (CUdeviceptr, SyncOnDrop<'_>) {
        assert_eq!(
            stream.cu_stream(),
            self.stream.cu_stream(),
            "cudarc uses the stream of the buffer"
        );
        (self.buffer.as_pointer().as_raw(), SyncOnDrop::Sync(None))
    }
}

impl<B: Deref<Target = DeviceBuffer<f32>>> DeviceSlice<f32> for Operand<B> {
    fn len(&self) -> usize {
        self.buffer.len()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl DevicePtr<f32> for Operand<&DeviceBuffer<f32>> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        self.on(stream)
    }
}

impl DevicePtrMut<f32> for Operand<&mut DeviceBuffer<f32>> {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        self.on(stream)
    }
}

/// The number of rows of A and C, of columns of B and C, and of terms of each sum.
const M: usize = 3;
const N: usize = 5;
const K: usize = 4;
const SHAPE: GemmConfig<f32> = GemmConfig {
    transa: CUBLAS_OP_N,
    transb: CUBLAS_OP_N,
    m: M as c_int,
    n: N as c_int,
    k: K as c_int,
    alpha: 1.0,
    lda: M as c_int,
    ldb: K as c_int,
    beta: 0.0,
    ldc: M as c_int,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let driver = Driver::load()?;
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let context = CudaContext::new(0)?;
    assert_eq!(
        context.cu_ctx().cast(),
        stream.context().as_raw(),
        "both crates use the primary context"
    );
    // SAFETY: the stream belongs to the context, and `stream` outlives what cudarc does with it.
    let shared = unsafe { context.wrap_borrowed_stream(stream.as_raw().cast()) };
    let saxpy = Library::from_ptx(&driver, kernels::SAXPY)?.kernel("saxpy")?;
    println!("copied: {:?}", copy(&stream, &shared, &saxpy)?);
    // SAFETY: looking for cuBLAS runs its initializers, which any program that links it runs too.
    if unsafe { cublas::sys::is_culib_present() } {
        println!("multiplied: {:?}", multiply(&stream, &shared, &saxpy)?);
    } else {
        println!("no cuBLAS found");
    }
    Ok(())
}

/// Returns `2 * x + x`: the second operand is a copy by cudarc, between a fill and a kernel of
/// Curium.
fn copy(stream: &Stream, shared: &Arc<CudaStream>, saxpy: &Saxpy) -> Outcome<Vec<f32>> {
    let x = DeviceBuffer::from_slice(stream, &[1.0, 2.0, 3.0])?;
    let mut y = DeviceBuffer::zeroed(stream, x.len())?;
    shared.memcpy_dtod(&Operand::new(&x, shared), &mut Operand::new(&mut y, shared))?;
    double_and_add(stream, saxpy, &x, &mut y)
}

/// Returns `2 * A * B + A * B`: the products are those of cuBLAS, which stores matrices by columns.
fn multiply(stream: &Stream, shared: &Arc<CudaStream>, saxpy: &Saxpy) -> Outcome<Vec<f32>> {
    let a: Vec<_> = (0..M * K).map(|i| i as f32).collect();
    let b: Vec<_> = (0..K * N).map(|i| i as f32).collect();
    let a = DeviceBuffer::from_slice(stream, &a)?;
    let b = DeviceBuffer::from_slice(stream, &b)?;
    let mut x = DeviceBuffer::zeroed(stream, M * N)?;
    let mut y = DeviceBuffer::zeroed(stream, M * N)?;
    let blas = CudaBlas::new(Arc::clone(shared))?;
    for product in [&mut x, &mut y] {
        let a = Operand::new(&a, shared);
        let b = Operand::new(&b, shared);
        let mut c = Operand::new(product, shared);
        // SAFETY: the operands have the elements that the shape needs.
        unsafe { blas.gemm(SHAPE, &a, &b, &mut c) }?;
    }
    double_and_add(stream, saxpy, &x, &mut y)
}

/// Returns `2 * x + y`. The kernel follows the work of cudarc on the same stream, and the host
/// waits only for the result.
fn double_and_add(
    stream: &Stream,
    saxpy: &Saxpy,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
) -> Outcome<Vec<f32>> {
    let count = x.len() as u32;
    // SAFETY: `saxpy` reads x, writes y, and guards its index with the length of both.
    unsafe {
        saxpy.launch(
            stream,
            LaunchConfig::for_elements(x.len()),
            (2.0, x, &mut *y, count),
        )
    }?;
    Ok(y.to_vec()?)
}
