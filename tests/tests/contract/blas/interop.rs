//! A handle of cuBLAS is one of cuBLASLt.

use curium_blas::lt::{BlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::{MatrixLayout, VectorMut};
use curium_memory::DeviceBuffer;
use curium_tests::on_driver;

use super::blas_on;

#[test]
fn handle_of_cublas_is_one_of_cublaslt() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let library = crate::blas_lt::cublaslt();
        // SAFETY: the handle lives until the end of the test, after the plan.
        let lt = unsafe { BlasLt::borrow_raw(&library, blas.as_raw().cast(), &test.context()) };
        let square = TypedLayout::new::<f32>(MatrixLayout::row_major(16, 16));
        let matmul = Matmul::new(square, square, square);
        let plan = MatmulPlan::new(
            &lt.expect("the device is known"),
            &matmul,
            PlanOptions::default(),
        );
        let mut plan = plan.expect("there is an algorithm");
        let a = DeviceBuffer::filled(&stream, 256, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let mut workspace = plan.workspace(&stream).expect("memory suffices");
        plan.execute(
            &stream,
            Operands::new(&a, &a, &mut d).with_workspace(&mut workspace),
        )
        .expect("it is enqueued");
        assert_eq!(d.to_vec().expect("it can be read"), [16.0; 256]);
        drop(plan);
        // The handle is still that of `blas`.
        blas.scal(0.5, &mut VectorMut::new(&mut d))
            .expect("it is enqueued");
        assert_eq!(d.to_vec().expect("it can be read"), [8.0; 256]);
    });
}
