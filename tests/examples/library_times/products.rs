//! The time of large matrix products on the device.

use curium_blas::lt::{
    BlasLt, Compute, Matmul, MatmulPlan, Operands, PlanOptions, Tuner, TypedLayout,
};
use curium_blas::sys::cublasHandle_t;
use curium_blas::{Blas, Element, MathMode, Matrix, MatrixLayout, MatrixMut};
use curium_driver::{Event, EventFlags, Stream};
use curium_memory::DeviceBuffer;
use float8::F8E4M3;
use half::bf16;

use crate::c;
use crate::matrices::{Kind, Number, random};
use crate::rounds::Rounds;
use crate::{Machine, Result};

/// The forms of a product, in the order in which they are measured.
const C_LT: usize = 0;
const CURIUM_LT: usize = 1;
const TUNED: usize = 2;
const C_BLAS: usize = 3;
const CURIUM_BLAS: usize = 4;

/// The maximum size of a workspace in bytes, which is also that of the handle of cuBLAS on the
/// device.
const WORKSPACE: usize = 32 << 20;

/// The duration of a sample in seconds, and of all samples of a product.
const SAMPLE: f64 = 0.025;
const BUDGET: f64 = 4.0;

/// A product of square matrices with the handle of cuBLAS: `a` by rows, `b` and the result by
/// columns.
type Gemm<T, D> = fn(
    &mut Blas,
    &DeviceBuffer<T>,
    &DeviceBuffer<T>,
    &mut DeviceBuffer<D>,
    usize,
) -> curium_blas::Result<()>;

/// A product in all its forms, with memory that they share.
struct Product<'a, T, D> {
    stream: &'a Stream,
    kind: Kind,
    size: usize,
    a: DeviceBuffer<T>,
    b: DeviceBuffer<T>,
    d: DeviceBuffer<D>,
    workspace: DeviceBuffer<u8>,
    plan: MatmulPlan,
    tuned: MatmulPlan,
    c: c::Product<'a>,
    blas: Option<(Blas, cublasHandle_t, Gemm<T, D>)>,
}

/// Prints the rates of the products of each type and size.
pub(crate) fn run(machine: &Machine) -> Result {
    let Some(library) = &machine.lt else {
        return Ok(());
    };
    let lt = BlasLt::new(library, &machine.context)?;
    println!(
        "products of square matrices, TFLOP/s; a ratio is Curium's rate to that of C's call with the same library"
    );
    println!(
        "type   size |   Lt: C,  Curium,   tuned; ratio of Curium, of tuned        |  Blas: C,  Curium; ratio"
    );
    let sizes: &[usize] = if machine.is_simulated {
        &[64]
    } else {
        &[4096, 8192, 16384]
    };
    for &size in sizes {
        print(
            machine,
            &lt,
            Kind::new::<bf16, bf16>("bf16", Compute::F32),
            size,
            Some(gemm_mixed),
        )?;
        print(
            machine,
            &lt,
            Kind::new::<f32, f32>("tf32", Compute::Tf32),
            size,
            Some(gemm::<f32>),
        )?;
        print::<F8E4M3, bf16>(
            machine,
            &lt,
            Kind::new::<F8E4M3, bf16>("e4m3", Compute::F32),
            size,
            None,
        )?;
        print(
            machine,
            &lt,
            Kind::new::<f64, f64>("f64", Compute::F64),
            size,
            Some(gemm::<f64>),
        )?;
    }
    Ok(())
}

fn gemm<T: Element + From<f32>>(
    blas: &mut Blas,
    a: &DeviceBuffer<T>,
    b: &DeviceBuffer<T>,
    d: &mut DeviceBuffer<T>,
    size: usize,
) -> curium_blas::Result<()> {
    let a = Matrix::row_major(a, size, size)?;
    let b = Matrix::column_major(b, size, size)?;
    blas.gemm(
        T::from(1.0),
        a,
        b,
        T::from(0.0),
        &mut MatrixMut::column_major(d, size, size)?,
    )
}

fn gemm_mixed(
    blas: &mut Blas,
    a: &DeviceBuffer<bf16>,
    b: &DeviceBuffer<bf16>,
    d: &mut DeviceBuffer<bf16>,
    size: usize,
) -> curium_blas::Result<()> {
    let a = Matrix::row_major(a, size, size)?;
    let b = Matrix::column_major(b, size, size)?;
    blas.gemm_mixed(1.0, a, b, 0.0, &mut MatrixMut::column_major(d, size, size)?)
}

/// Measures the forms of one product, and prints their rates.
fn print<T: Number, D: Number>(
    machine: &Machine,
    lt: &BlasLt,
    kind: Kind,
    size: usize,
    gemm: Option<Gemm<T, D>>,
) -> Result {
    let mut product = Product::<T, D>::new(machine, lt, kind, size, gemm)?;
    let forms = if product.blas.is_some() {
        CURIUM_BLAS + 1
    } else {
        C_BLAS
    };
    product.compare_results(forms)?;
    let mut repetitions = 1;
    let mut rounds = 2;
    if !machine.is_simulated {
        let time = product.time(C_LT, 3)?;
        repetitions = ((SAMPLE / time).ceil() as usize).max(1);
        rounds = ((BUDGET / (time * repetitions as f64 * forms as f64)) as usize).clamp(5, 41);
    }
    let rounds = Rounds::measure(rounds, forms, |form| product.time(form, repetitions))?;
    let rate = |form| 2.0 * (size as f64).powi(3) / rounds.median(form) / 1e12;
    let [c, curium, tuned] = [C_LT, CURIUM_LT, TUNED].map(rate);
    // A rate is the inverse of a time.
    print!(
        "{:<5} {size:5} | {c:7.1} {curium:8.1} {tuned:8.1}  {}  {}",
        kind.name,
        rounds.ratio(C_LT, CURIUM_LT),
        rounds.ratio(C_LT, TUNED)
    );
    if forms > CURIUM_BLAS {
        let [c, curium] = [C_BLAS, CURIUM_BLAS].map(rate);
        print!(
            " | {c:7.1} {curium:8.1}  {}",
            rounds.ratio(C_BLAS, CURIUM_BLAS)
        );
    }
    println!();
    Ok(())
}

impl<'a, T: Number, D: Number> Product<'a, T, D> {
    fn new(
        machine: &'a Machine,
        lt: &'a BlasLt,
        kind: Kind,
        size: usize,
        gemm: Option<Gemm<T, D>>,
    ) -> Result<Self> {
        let stream = &machine.stream;
        let len = size * size;
        let rows = TypedLayout::new::<T>(MatrixLayout::row_major(size, size));
        let columns = TypedLayout::new::<T>(MatrixLayout::column_major(size, size));
        let result = TypedLayout::new::<D>(MatrixLayout::column_major(size, size));
        let matmul = Matmul::new(rows, columns, result).with_compute(kind.compute);
        let options = PlanOptions::default().with_workspace_limit(WORKSPACE);
        let blas = match (gemm, &machine.blas) {
            (Some(gemm), Some(library)) => {
                let mut blas = Blas::new(library, stream)?;
                blas.set_workspace(WORKSPACE)?;
                blas.set_math_mode(if kind.compute == Compute::Tf32 {
                    MathMode::Tf32
                } else {
                    MathMode::Default
                })?;
                let raw = blas.as_raw();
                Some((blas, raw, gemm))
            }
            _ => None,
        };
        // Long products need fewer measurements.
        let tuner = Tuner::new()
            .with_options(options)
            .with_repetitions(if size > 8192 { 3 } else { 10 });
        let tuned = tuner.plan(lt, stream, &matmul)?.plan;
        Ok(Self {
            kind,
            size,
            a: random(stream, len, 1)?,
            b: random(stream, len, 2)?,
            d: DeviceBuffer::uninit(stream, len)?,
            workspace: DeviceBuffer::uninit(stream, WORKSPACE)?,
            plan: MatmulPlan::new(lt, &matmul, options)?,
            tuned,
            c: c::Product::new(lt, &kind, size, WORKSPACE)?,
            blas,
            stream,
        })
    }

    /// Enqueues the product.
    fn execute(&mut self, form: usize) -> Result {
        let Self {
            a,
            b,
            d,
            workspace,
            stream,
            ..
        } = self;
        let addresses = [
            a.as_pointer().as_raw(),
            b.as_pointer().as_raw(),
            d.as_pointer().as_raw(),
        ];
        let memory = workspace.as_pointer().as_raw();
        match (form, &mut self.blas) {
            // SAFETY: the matrices have this size and live until the stream is synchronized, as the
            // workspace; the handle is live, and its context is current.
            (C_LT, _) => unsafe { self.c.execute(addresses, memory, stream) },
            (CURIUM_LT, _) => Ok(self
                .plan
                .execute(stream, Operands::new(a, b, d).with_workspace(workspace))?),
            (TUNED, _) => Ok(self
                .tuned
                .execute(stream, Operands::new(a, b, d).with_workspace(workspace))?),
            (C_BLAS, Some((blas, handle, _))) => {
                // SAFETY: the matrices have this size and live until the stream is synchronized, as
                // the workspace; the handle is live, and its context is current.
                unsafe {
                    c::gemm(
                        blas.library().api(),
                        *handle,
                        &self.kind,
                        self.size,
                        addresses,
                    )
                }
            }
            (CURIUM_BLAS, Some((blas, _, gemm))) => Ok(gemm(blas, a, b, d, self.size)?),
            _ => Err("there is no such form".into()),
        }
    }

    /// Returns the seconds on the device that a product takes, after some that are not measured.
    fn time(&mut self, form: usize, repetitions: usize) -> Result<f64> {
        let begin = Event::new(self.stream.context(), EventFlags::empty())?;
        let end = Event::new(self.stream.context(), EventFlags::empty())?;
        (0..repetitions / 4).try_for_each(|_| self.execute(form))?;
        begin.record(self.stream)?;
        (0..repetitions).try_for_each(|_| self.execute(form))?;
        end.record(self.stream)?;
        end.synchronize()?;
        Ok(end.elapsed_since(&begin)?.as_secs_f64() / repetitions as f64)
    }

    /// Runs each form once, which also loads its kernel, and checks that all compute the same.
    fn compare_results(&mut self, forms: usize) -> Result {
        let count = self.size.min(256);
        let mut expected: Vec<f64> = Vec::new();
        for form in 0..forms {
            self.d.zero()?;
            self.execute(form)?;
            let results = self.d.slice(..count)?.to_vec()?;
            let results: Vec<f64> = results.into_iter().map(Number::value).collect();
            if form == C_LT {
                expected = results;
                continue;
            }
            let scale = expected
                .iter()
                .fold(0.0, |most: f64, value| most.max(value.abs()));
            let agrees = expected
                .iter()
                .zip(&results)
                .all(|(x, y)| (x - y).abs() <= BOUND * scale);
            if scale == 0.0 || !agrees {
                return Err(format!(
                    "{} {}: form {form} and C's differ",
                    self.kind.name, self.size
                )
                .into());
            }
        }
        Ok(())
    }
}

/// The bound of the difference of two forms, relative to the largest element: results are rounded
/// to 8 bits.
const BOUND: f64 = 0.02;
