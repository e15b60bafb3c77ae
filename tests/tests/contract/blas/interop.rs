//! A handle of cuBLAS is one of cuBLASLt.

use curium_blas::lt::{BlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::{MatrixLayout, VectorMut};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::blas_on;

#[driver_test]
fn cublas_handle_is_a_cublaslt_handle(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let library = crate::blas_lt::cublaslt();
    // SAFETY: the handle lives until the end of the test, after the plan.
    let lt = unsafe { BlasLt::borrow_raw(&library, blas.as_raw().cast(), &test.context()) };
    let square = TypedLayout::new::<f32>(MatrixLayout::row_major(16, 16));
    let matmul = Matmul::new(square, square, square);
    let mut plan = MatmulPlan::new(&lt?, &matmul, PlanOptions::default())?;
    let a = DeviceBuffer::filled(&stream, 256, 1.0_f32)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
    let mut workspace = plan.workspace(&stream)?;
    plan.execute(
        &stream,
        Operands::new(&a, &a, &mut d).with_workspace(&mut workspace),
    )?;
    assert_eq!(d.to_vec()?, [16.0; 256]);
    drop(plan);
    // The handle is still that of `blas`.
    blas.scal(0.5, &mut VectorMut::new(&mut d))?;
    assert_eq!(d.to_vec()?, [8.0; 256]);
    Ok(())
}
