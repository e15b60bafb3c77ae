//! The calls by Curium.

use curium_blas::lt::{BlasLt, Compute, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::{Blas, Matrix, MatrixLayout, MatrixMut, Vector};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use curium_rand::{Generator, Xorwow};

use super::{LEN, Libraries, Operation, SIZE, WORKSPACE};
use crate::Result;

pub(crate) struct Calls {
    pub(super) stream: Stream,
    pub(super) blas: Blas,
    pub(super) lt: BlasLt,
    plan: MatmulPlan,
    pub(super) generator: Generator<Xorwow>,
    pub(super) workspace: DeviceBuffer<u8>,
    pub(super) a: DeviceBuffer<f32>,
    pub(super) b: DeviceBuffer<f32>,
    pub(super) d: DeviceBuffer<f32>,
}

impl Calls {
    pub(crate) fn new(libraries: &Libraries, stream: &Stream) -> Result<Self> {
        let lt = BlasLt::new(&libraries.lt, stream.context())?;
        let square = TypedLayout::new::<f32>(MatrixLayout::column_major(SIZE, SIZE));
        let matmul = Matmul::new(square, square, square).with_compute(Compute::Tf32);
        let options = PlanOptions::default().with_workspace_limit(WORKSPACE);
        Ok(Self {
            stream: stream.clone(),
            blas: Blas::new(&libraries.blas, stream)?,
            plan: MatmulPlan::new(&lt, &matmul, options)?,
            lt,
            generator: Generator::seeded(&libraries.rand, stream, 1)?,
            workspace: DeviceBuffer::uninit(stream, WORKSPACE)?,
            a: DeviceBuffer::zeroed(stream, LEN)?,
            b: DeviceBuffer::zeroed(stream, LEN)?,
            d: DeviceBuffer::zeroed(stream, LEN)?,
        })
    }

    pub(crate) fn call(&mut self, operation: Operation) -> Result<()> {
        let Self {
            stream,
            blas,
            plan,
            generator,
            workspace,
            a,
            b,
            d,
            ..
        } = self;
        match operation {
            Operation::Gemm => {
                let a = Matrix::column_major(a, SIZE, SIZE)?;
                let b = Matrix::column_major(b, SIZE, SIZE)?;
                blas.gemm(1.0, a, b, 0.0, &mut MatrixMut::column_major(d, SIZE, SIZE)?)?;
            }
            Operation::Asum => drop(std::hint::black_box(blas.asum(Vector::new(a))?)),
            Operation::Matmul => {
                plan.execute(stream, Operands::new(a, b, d).with_workspace(workspace))?
            }
            Operation::Uniform => generator.uniform(d)?,
        }
        Ok(())
    }
}
