//! cuBLASLt: on the simulator with the library for simulated devices, and with
//! `CURIUM_TEST_DRIVER=cuda` with this machine's.
#![cfg(not(miri))]

mod batch;
mod capture;
mod epilogue;
mod fp8;
mod hostile;
mod product;
mod store;
mod tuner;
mod value;

use curium_blas::MatrixLayout;
use curium_blas::lt::{BlasLt, CuBlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_driver::Stream;
use curium_tests::{TestDriver, uses_cuda};

use self::value::Value;

pub(crate) fn cublaslt() -> CuBlasLt {
    if uses_cuda() {
        CuBlasLt::load().expect("CURIUM_TEST_DRIVER=cuda needs cuBLASLt")
    } else {
        curium_sim_libraries::cublaslt()
    }
}

fn lt(test: &TestDriver) -> BlasLt {
    BlasLt::new(&cublaslt(), &test.context()).expect("failed to create a handle")
}

fn plan(lt: &BlasLt, matmul: &Matmul) -> MatmulPlan {
    MatmulPlan::new(lt, matmul, PlanOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Executes a plan with a workspace of its own.
fn execute(plan: &mut MatmulPlan, stream: &Stream, operands: Operands<'_>) {
    let mut workspace = plan.workspace(stream).expect("allocation failed");
    plan.execute(stream, operands.with_workspace(&mut workspace))
        .unwrap_or_else(|error| panic!("{error}"));
}

fn rows<T: Value>(rows: usize, columns: usize) -> TypedLayout {
    TypedLayout::new::<T>(MatrixLayout::row_major(rows, columns))
}

fn columns<T: Value>(rows: usize, columns: usize) -> TypedLayout {
    TypedLayout::new::<T>(MatrixLayout::column_major(rows, columns))
}
