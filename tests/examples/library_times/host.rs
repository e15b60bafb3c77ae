//! The host cost of queued calls.

use std::time::Instant;

use curium_blas::lt::{
    BlasLt, Compute, Matmul, MatmulElement, MatmulPlan, Operands, PlanOptions, TypedLayout,
};
use curium_blas::sys::cublasOperation_t;
use curium_blas::{Blas, CuBlas, Matrix, MatrixLayout, MatrixMut, Vector, VectorMut};
use curium_driver::AsRawStream as _;
use curium_driver::Graph;
use curium_driver::sys::CUresult;
use curium_fft::sys::CUFFT_FORWARD;
use curium_fft::{Complex32, CuFft, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_rand::{CuRand, Generator, Philox4x32};
use half::bf16;

use crate::c::{self, call, pointer};
use crate::matrices::Kind;
use crate::rounds::Rounds;
use crate::{Machine, Result};

/// The rows and the columns of small matrices.
const SIZE: usize = 16;

/// The elements of vectors and transforms.
const LEN: usize = 1024;

/// Prints the cost of each operation.
pub(crate) fn run(machine: &Machine) -> Result {
    println!("host cost of a queued call          |  ns: Curium,      C | ratio");
    if let Some(library) = &machine.blas {
        blas(machine, library)?;
    }
    if let Some(library) = &machine.lt {
        let lt = BlasLt::new(library, &machine.context)?;
        matmul::<f32>(machine, &lt, "MatmulPlan, f32 16 × 16")?;
        matmul::<bf16>(machine, &lt, "MatmulPlan, bf16 16 × 16")?;
    }
    if let Some(library) = &machine.fft {
        fft(machine, library)?;
    }
    if let Some(library) = &machine.rand {
        uniform(machine, library)?;
    }
    Ok(())
}

impl Machine {
    /// Measures an operation through Curium and through C's function, and prints its row.
    fn compare(
        &self,
        name: &str,
        mut curium: impl FnMut() -> Result,
        mut c: impl FnMut() -> Result,
    ) -> Result {
        // Fewer calls than a stream queues before the host waits.
        let (rounds, calls) = if self.is_simulated {
            (3, 5)
        } else {
            (201, 200)
        };
        let rounds = Rounds::measure(rounds, 2, |form| match form {
            0 => self.host_time(calls, &mut curium),
            _ => self.host_time(calls, &mut c),
        })?;
        let curium = rounds.median(0) * 1e9;
        let c = rounds.median(1) * 1e9;
        println!(
            "{name:<35} | {curium:12.0} {c:8.0} | {}",
            rounds.ratio(0, 1)
        );
        Ok(())
    }

    /// Returns the seconds until a call returns.
    fn host_time(&self, calls: usize, call: &mut dyn FnMut() -> Result) -> Result<f64> {
        call()?;
        self.stream.synchronize()?;
        let start = Instant::now();
        (0..calls).try_for_each(|_| call())?;
        let time = start.elapsed();
        self.stream.synchronize()?;
        Ok(time.as_secs_f64() / calls as f64)
    }
}

fn blas(machine: &Machine, library: &CuBlas) -> Result {
    let stream = &machine.stream;
    let api = library.api();
    let mut blas = Blas::new(library, stream)?;
    let handle = blas.as_raw();
    let a = DeviceBuffer::<f32>::zeroed(stream, LEN)?;
    let b = DeviceBuffer::<f32>::zeroed(stream, LEN)?;
    let mut d = DeviceBuffer::<f32>::zeroed(stream, LEN)?;
    let addresses = [&a, &b, &d].map(|buffer| buffer.as_pointer().as_raw());
    let c_gemm = || {
        let ([a, b, d], size, (alpha, beta)) = (addresses, SIZE as i32, (1.0_f32, 0.0_f32));
        let none = cublasOperation_t::CUBLAS_OP_N;
        let alpha = &raw const alpha;
        let beta = &raw const beta;
        let a = pointer(a);
        let b = pointer(b);
        let d = pointer(d);
        // SAFETY: the matrices have this size and live until the stream is synchronized; the handle
        // is live, and its context is current.
        unsafe {
            call!(
                api,
                cublasSgemm_v2(
                    handle, none, none, size, size, size, alpha, a, size, b, size, beta, d, size
                )
            )
        }
    };
    machine.compare("C against C: gemm, f32 16 × 16", c_gemm, c_gemm)?;
    let gemm = || {
        let a = Matrix::column_major(&a, SIZE, SIZE)?;
        let b = Matrix::column_major(&b, SIZE, SIZE)?;
        Ok(blas.gemm(
            1.0,
            a,
            b,
            0.0,
            &mut MatrixMut::column_major(&mut d, SIZE, SIZE)?,
        )?)
    };
    machine.compare("gemm, f32 16 × 16", gemm, c_gemm)?;
    let axpy_curium = || Ok(blas.axpy(0.5, Vector::new(&a), &mut VectorMut::new(&mut d))?);
    machine.compare("axpy, f32 1024", axpy_curium, || {
        let ([x, _, y], len, alpha) = (addresses, LEN as i32, 0.5_f32);
        // SAFETY: the vectors have this length and live until the stream is synchronized; the
        // handle is live, and its context is current.
        unsafe {
            call!(
                api,
                cublasSaxpy_v2(handle, len, &raw const alpha, pointer(x), 1, pointer(y), 1)
            )
        }
    })?;
    gemm_mixed(machine, &mut blas, library)
}

fn gemm_mixed(machine: &Machine, blas: &mut Blas, library: &CuBlas) -> Result {
    let stream = &machine.stream;
    let api = library.api();
    let handle = blas.as_raw();
    let a = DeviceBuffer::<bf16>::zeroed(stream, LEN)?;
    let b = DeviceBuffer::<bf16>::zeroed(stream, LEN)?;
    let mut d = DeviceBuffer::<bf16>::zeroed(stream, LEN)?;
    let addresses = [&a, &b, &d].map(|buffer| buffer.as_pointer().as_raw());
    let kind = Kind::new::<bf16, bf16>("bf16", Compute::F32);
    let curium = || {
        let a = Matrix::row_major(&a, SIZE, SIZE)?;
        let b = Matrix::column_major(&b, SIZE, SIZE)?;
        Ok(blas.gemm_mixed(
            1.0,
            a,
            b,
            0.0,
            &mut MatrixMut::column_major(&mut d, SIZE, SIZE)?,
        )?)
    };
    // SAFETY: the matrices have this size and live until the stream is synchronized; the handle is
    // live, and its context is current.
    machine.compare("gemm_mixed, bf16 16 × 16", curium, || unsafe {
        c::gemm(api, handle, &kind, SIZE, addresses)
    })
}

fn matmul<T: MatmulElement>(machine: &Machine, lt: &BlasLt, name: &'static str) -> Result {
    let stream = &machine.stream;
    let rows = TypedLayout::new::<T>(MatrixLayout::row_major(SIZE, SIZE));
    let columns = TypedLayout::new::<T>(MatrixLayout::column_major(SIZE, SIZE));
    let options = PlanOptions::default().with_workspace_limit(WORKSPACE);
    let mut plan = MatmulPlan::new(lt, &Matmul::new(rows, columns, columns), options)?;
    let product = c::Product::new(lt, &Kind::new::<T, T>(name, Compute::F32), SIZE, WORKSPACE)?;
    let mut workspace = DeviceBuffer::<u8>::zeroed(stream, WORKSPACE)?;
    let a = DeviceBuffer::<T>::zeroed(stream, LEN)?;
    let b = DeviceBuffer::<T>::zeroed(stream, LEN)?;
    let mut d = DeviceBuffer::<T>::zeroed(stream, LEN)?;
    let addresses = [&a, &b, &d].map(|buffer| buffer.as_pointer().as_raw());
    let memory = workspace.as_pointer().as_raw();
    let curium = || {
        Ok(plan.execute(
            stream,
            Operands::new(&a, &b, &mut d).with_workspace(&mut workspace),
        )?)
    };
    // SAFETY: the matrices have this size and live until the stream is synchronized, as the
    // workspace; the handle is live, and its context is current.
    machine.compare(name, curium, || unsafe {
        product.execute(addresses, memory, stream)
    })?;
    let graph = Graph::capture(&machine.context, |scope| {
        plan.execute(
            scope,
            Operands::new(&a, &b, &mut d).with_workspace(&mut workspace),
        )
    })?;
    let mut graph = graph.instantiate()?;
    let raw = graph.as_raw();
    let launch = stream
        .driver()
        .api()
        .cuGraphLaunch
        .ok_or("no `cuGraphLaunch`")?;
    machine.compare(
        &format!("{name}, graph"),
        || Ok(graph.launch(stream)?),
        || {
            // SAFETY: the graph is live and keeps what it uses, which is used on this stream only.
            match unsafe { launch(raw, stream.as_raw()) } {
                CUresult::CUDA_SUCCESS => Ok(()),
                code => Err(format!("cuGraphLaunch returned {code:?}").into()),
            }
        },
    )
}

/// The size of a workspace in bytes.
const WORKSPACE: usize = 4 << 20;

fn fft(machine: &Machine, library: &CuFft) -> Result {
    let api = library.api();
    let mut plan = Plan::<Complex32, Complex32>::new(library, &machine.stream, &Shape::new([LEN]))?;
    let raw = plan.as_raw();
    let mut data = DeviceBuffer::<Complex32>::zeroed(&machine.stream, LEN)?;
    let address = data.as_pointer().as_raw();
    let curium = || Ok(plan.forward_in_place(&mut data)?);
    machine.compare("transform, complex f32 1024", curium, || {
        let data = pointer(address);
        // SAFETY: the data has this length and lives until the stream is synchronized; the plan is
        // live, and its context is current.
        unsafe { call!(api, cufftXtExec(raw, data, data, CUFFT_FORWARD)) }
    })
}

fn uniform(machine: &Machine, library: &CuRand) -> Result {
    let api = library.api();
    let mut generator = Generator::<Philox4x32>::seeded(library, &machine.stream, 1)?;
    let raw = generator.as_raw();
    let mut numbers = DeviceBuffer::<f32>::zeroed(&machine.stream, LEN)?;
    let address = numbers.as_pointer().as_raw();
    let curium = || Ok(generator.uniform(&mut numbers)?);
    machine.compare("generator, uniform f32 1024", curium, || {
        // SAFETY: the memory has this length and lives until the stream is synchronized; the
        // generator is live, and its context is current.
        unsafe { call!(api, curandGenerateUniform(raw, pointer(address), LEN)) }
    })
}
