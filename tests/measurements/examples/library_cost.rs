//! Enqueues operations of NVIDIA's libraries as a C program does or through Curium, with a driver
//! that does nothing and libraries whose operations do nothing: `cargo xtask cost` counts the
//! instructions of both.
//!
//! Usage: `library_cost MODE COUNT`. A mode is the name of the function that is counted.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;

use curium_blas::lt::{BlasLt, CuBlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::sys::{
    Api, cublasHandle_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatrixLayout_t, cublasOperation_t, cublasStatus_t, cudaStream_t,
};
use curium_blas::{Blas, CuBlas, Matrix, MatrixLayout, MatrixMut};
use curium_driver::AsRawStream as _;
use curium_driver::{Context, Stream};
use curium_fft::sys::{CUFFT_FORWARD, cufftHandle, cufftResult};
use curium_fft::{Complex32, CuFft, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_rand::sys::{curandGenerator_t, curandStatus_t};
use curium_rand::{CuRand, Generator, Philox4x32};
use curium_tests::{assume_current, copy_of, idle_driver_that_assumes_a_context};

const SIZE: usize = 16;

type Result<T = (), E = curium_blas::Error> = std::result::Result<T, E>;

/// The matrices of a product: two factors, and the result.
struct Matrices {
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    d: DeviceBuffer<f32>,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else {
        return Err("usage: library_cost MODE COUNT".into());
    };
    let driver = idle_driver_that_assumes_a_context();
    let count = count.parse()?;
    let context = driver.device(0)?.primary_context()?;
    // The C functions need a current context, and Curium's then switch none.
    context.set_current()?;
    assume_current(&context);
    let stream = context.stream()?;
    let mut matrices = Matrices {
        a: DeviceBuffer::zeroed(&stream, SIZE * SIZE)?,
        b: DeviceBuffer::zeroed(&stream, SIZE * SIZE)?,
        d: DeviceBuffer::zeroed(&stream, SIZE * SIZE)?,
    };
    match mode.as_str() {
        "c_gemms" => {
            let mut blas = idle_blas(&stream)?;
            let handle = blas.as_raw();
            c_gemms(blas.library().api(), handle, &matrices, count)
                .map_err(|code| format!("{code:?}").into())
        }
        "curium_gemms" => Ok(curium_gemms(
            &mut idle_blas(&stream)?,
            &mut matrices,
            count,
        )?),
        "c_matmuls" => {
            let lt = idle_lt(&context)?;
            c_matmuls(&lt, &stream, &matrices, count).map_err(|code| format!("{code:?}").into())
        }
        "curium_matmuls" => {
            let square = TypedLayout::new::<f32>(MatrixLayout::column_major(SIZE, SIZE));
            let matmul = Matmul::new(square, square, square);
            let mut plan = MatmulPlan::new(&idle_lt(&context)?, &matmul, PlanOptions::default())?;
            let mut workspace = plan.workspace(&stream)?;
            Ok(curium_matmuls(
                &mut plan,
                &stream,
                &mut matrices,
                &mut workspace,
                count,
            )?)
        }
        "c_transforms" | "curium_transforms" => {
            let library = idle_fft()?;
            let mut plan = Plan::new(&library, &stream, &Shape::new([SIZE]))?;
            let mut data = DeviceBuffer::<Complex32>::zeroed(&stream, SIZE)?;
            if mode == "curium_transforms" {
                return Ok(curium_transforms(&mut plan, &mut data, count)?);
            }
            c_transforms(library.api(), plan.as_raw(), &data, count)
                .map_err(|code| format!("{code:?}").into())
        }
        "c_uniforms" | "curium_uniforms" => {
            let library = idle_rand()?;
            let mut generator = Generator::seeded(&library, &stream, 1)?;
            let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, SIZE)?;
            if mode == "curium_uniforms" {
                return Ok(curium_uniforms(&mut generator, &mut numbers, count)?);
            }
            c_uniforms(library.api(), generator.as_raw(), &numbers, count)
                .map_err(|code| format!("{code:?}").into())
        }
        other => Err(format!("there is no mode {other}").into()),
    }
}

/// Returns a handle of a simulated library whose products do nothing.
fn idle_blas(stream: &Stream) -> Result<Blas> {
    let mut api = copy_of(curium_sim_libraries::cublas().api());
    api.cublasSgemm_v2 = Some(multiply_nothing);
    let mut raw = ptr::null_mut();
    if let Some(create) = api.cublasCreate_v2 {
        // SAFETY: the place is valid for writes, and a context is current.
        unsafe { create(&raw mut raw) };
    }
    // SAFETY: the functions are those of the simulated library, except for one that does nothing.
    let library = unsafe { CuBlas::from_api(api) }?;
    // SAFETY: the handle was created above, and nothing else uses it.
    let mut blas = unsafe { Blas::from_raw(&library, raw, stream) }?;
    // The default exceeds the memory of the idle driver.
    blas.set_workspace(1 << 12)?;
    Ok(blas)
}

/// As above, for cuBLASLt.
fn idle_lt(context: &Context) -> Result<BlasLt> {
    let mut api = copy_of(curium_sim_libraries::cublaslt().api());
    api.cublasLtMatmul = Some(multiply_nothing_lt);
    // SAFETY: the handle was created above, and nothing else uses it.
    BlasLt::new(&unsafe { CuBlasLt::from_api(api) }?, context)
}

/// As above, for cuFFT.
fn idle_fft() -> curium_fft::Result<CuFft> {
    let mut api = copy_of(curium_sim_libraries::cufft().api());
    api.cufftXtExec = Some(transform_nothing);
    // SAFETY: the handle was created above, and nothing else uses it.
    Ok(unsafe { CuFft::from_api(api) }?)
}

/// As above, for cuRAND.
fn idle_rand() -> curium_rand::Result<CuRand> {
    let mut api = copy_of(curium_sim_libraries::curand().api());
    api.curandGenerateUniform = Some(generate_nothing);
    // SAFETY: the handle was created above, and nothing else uses it.
    Ok(unsafe { CuRand::from_api(api) }?)
}

/// Enqueues as a C program does: the call, and a check of its result.
#[inline(never)]
fn c_gemms(
    api: &Api,
    handle: cublasHandle_t,
    matrices: &Matrices,
    count: u64,
) -> Result<(), cublasStatus_t> {
    let none = cublasOperation_t::CUBLAS_OP_N;
    for _ in 0..count {
        let matrices = black_box(matrices);
        let size = black_box(SIZE as c_int);
        let [a, b, d] = matrices.pointers();
        let alpha = 1.0;
        let beta = 0.0;
        let alpha = &raw const alpha;
        let beta = &raw const beta;
        // SAFETY: `idle_blas` has put a function there.
        let gemm = unsafe { black_box(api).cublasSgemm_v2.unwrap_unchecked() };
        let a = a.cast();
        let b = b.cast();
        let d = d.cast();
        let handle = black_box(handle);
        // SAFETY: the function does nothing.
        checked(unsafe {
            gemm(
                handle, none, none, size, size, size, alpha, a, size, b, size, beta, d, size,
            )
        })?;
    }
    Ok(())
}

#[inline(never)]
fn curium_gemms(blas: &mut Blas, matrices: &mut Matrices, count: u64) -> Result {
    for _ in 0..count {
        let Matrices { a, b, d } = black_box(&mut *matrices);
        let a = Matrix::column_major(a, SIZE, SIZE)?;
        let b = Matrix::column_major(b, SIZE, SIZE)?;
        black_box(&mut *blas).gemm(1.0, a, b, 0.0, &mut MatrixMut::column_major(d, SIZE, SIZE)?)?;
    }
    Ok(())
}

/// Enqueues as a C program does that has created the descriptors, which the function does not use,
/// before.
#[inline(never)]
fn c_matmuls(
    lt: &BlasLt,
    stream: &Stream,
    matrices: &Matrices,
    count: u64,
) -> Result<(), cublasStatus_t> {
    let algorithm = cublasLtMatmulAlgo_t::default();
    for _ in 0..count {
        let (lt, stream, [a, b, d]) = (
            black_box(lt),
            black_box(stream),
            black_box(matrices).pointers(),
        );
        let alpha = 1.0_f32;
        let beta = 0.0_f32;
        let alpha = (&raw const alpha).cast();
        let beta = (&raw const beta).cast();
        let (operation, layout) = black_box((ptr::dangling_mut(), ptr::dangling_mut()));
        let handle = lt.as_raw();
        let on = stream.as_raw().cast();
        let algorithm = &raw const algorithm;
        // SAFETY: `idle_lt` has put a function there.
        let matmul = unsafe { lt.library().api().cublasLtMatmul.unwrap_unchecked() };
        let workspace = ptr::null_mut();
        // SAFETY: the function does nothing.
        checked(unsafe {
            matmul(
                handle, operation, alpha, a, layout, b, layout, beta, d, layout, d, layout,
                algorithm, workspace, 0, on,
            )
        })?;
    }
    Ok(())
}

#[inline(never)]
fn curium_matmuls(
    plan: &mut MatmulPlan,
    stream: &Stream,
    matrices: &mut Matrices,
    workspace: &mut DeviceBuffer<u8>,
    count: u64,
) -> Result {
    for _ in 0..count {
        let Matrices { a, b, d } = black_box(&mut *matrices);
        let operands = Operands::new(a, b, d).with_workspace(black_box(&mut *workspace));
        black_box(&mut *plan).execute(black_box(stream), operands)?;
    }
    Ok(())
}

#[inline(never)]
fn c_transforms(
    api: &curium_fft::sys::Api,
    plan: cufftHandle,
    data: &DeviceBuffer<Complex32>,
    count: u64,
) -> Result<(), cufftResult> {
    for _ in 0..count {
        let data = ptr::without_provenance_mut(black_box(data).as_pointer().as_raw() as usize);
        // SAFETY: `idle_fft` has put a function there.
        let transform = unsafe { black_box(api).cufftXtExec.unwrap_unchecked() };
        // SAFETY: the function does nothing.
        match unsafe { transform(black_box(plan), data, data, CUFFT_FORWARD) } {
            cufftResult::CUFFT_SUCCESS => {}
            code => return Err(code),
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_transforms(
    plan: &mut Plan<Complex32, Complex32>,
    data: &mut DeviceBuffer<Complex32>,
    count: u64,
) -> curium_fft::Result<()> {
    (0..count).try_for_each(|_| black_box(&mut *plan).forward_in_place(black_box(&mut *data)))
}

#[inline(never)]
fn c_uniforms(
    api: &curium_rand::sys::Api,
    generator: curandGenerator_t,
    numbers: &DeviceBuffer<f32>,
    count: u64,
) -> Result<(), curandStatus_t> {
    for _ in 0..count {
        let numbers = black_box(numbers);
        let output = ptr::without_provenance_mut(numbers.as_pointer().as_raw() as usize);
        // SAFETY: `idle_rand` has put a function there.
        let generate = unsafe { black_box(api).curandGenerateUniform.unwrap_unchecked() };
        // SAFETY: the function does nothing.
        match unsafe { generate(black_box(generator), output, numbers.len()) } {
            curandStatus_t::CURAND_STATUS_SUCCESS => {}
            code => return Err(code),
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_uniforms(
    generator: &mut Generator<Philox4x32>,
    numbers: &mut DeviceBuffer<f32>,
    count: u64,
) -> curium_rand::Result<()> {
    (0..count).try_for_each(|_| black_box(&mut *generator).uniform(black_box(&mut *numbers)))
}

impl Matrices {
    fn pointers(&self) -> [*mut c_void; 3] {
        let Self { a, b, d } = self;
        [a, b, d].map(|buffer| ptr::without_provenance_mut(buffer.as_pointer().as_raw() as usize))
    }
}

#[inline(always)]
fn checked(code: cublasStatus_t) -> Result<(), cublasStatus_t> {
    if code == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}

unsafe extern "C" fn multiply_nothing(
    _: cublasHandle_t,
    _: cublasOperation_t,
    _: cublasOperation_t,
    _: c_int,
    _: c_int,
    _: c_int,
    _: *const f32,
    _: *const f32,
    _: c_int,
    _: *const f32,
    _: c_int,
    _: *const f32,
    _: *mut f32,
    _: c_int,
) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

unsafe extern "C" fn multiply_nothing_lt(
    _: cublasLtHandle_t,
    _: cublasLtMatmulDesc_t,
    _: *const c_void,
    _: *const c_void,
    _: cublasLtMatrixLayout_t,
    _: *const c_void,
    _: cublasLtMatrixLayout_t,
    _: *const c_void,
    _: *const c_void,
    _: cublasLtMatrixLayout_t,
    _: *mut c_void,
    _: cublasLtMatrixLayout_t,
    _: *const cublasLtMatmulAlgo_t,
    _: *mut c_void,
    _: usize,
    _: cudaStream_t,
) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

unsafe extern "C" fn transform_nothing(
    _: cufftHandle,
    _: *mut c_void,
    _: *mut c_void,
    _: c_int,
) -> cufftResult {
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn generate_nothing(
    _: curandGenerator_t,
    _: *mut f32,
    _: usize,
) -> curandStatus_t {
    curandStatus_t::CURAND_STATUS_SUCCESS
}
