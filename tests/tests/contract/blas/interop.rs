//! A library of C that takes a `cublasHandle_t` shares handles, streams and buffers with this crate.

use std::ffi::c_int;

use curium_blas::lt::{BlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::sys::{Api, cublasHandle_t, cublasStatus_t};
use curium_blas::{Blas, MatrixLayout, Vector, VectorMut};
use curium_memory::DeviceBuffer;
use curium_tests::on_driver;

use super::{blas_on, cublas};

/// The library, which calls cuBLAS by C's functions.
mod c_library {
    use super::{Api, c_int, cublasHandle_t, cublasStatus_t};

    /// Doubles `n` numbers in device memory on the stream of the handle.
    ///
    /// # Safety
    ///
    /// The handle is live, and `x` are `n` numbers in device memory.
    pub(super) unsafe extern "C" fn double_all(
        api: &Api,
        handle: cublasHandle_t,
        n: c_int,
        x: *mut f32,
    ) -> cublasStatus_t {
        let (scale, two) = (api.cublasSscal_v2.expect("every version has it"), 2.0_f32);
        // SAFETY: the caller guarantees the handle and the memory.
        unsafe { scale(handle, n, &raw const two, x, 1) }
    }

    /// Creates a handle.
    pub(super) fn create(api: &Api) -> cublasHandle_t {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the place is valid for writes.
        let code = unsafe { api.cublasCreate_v2.expect("every version has it")(&raw mut handle) };
        assert_eq!(code, cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        handle
    }
}

#[test]
fn library_works_on_the_handle_and_the_stream_between_two_operations() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0_f32, 20.0]).expect("memory suffices");
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y)).expect("the lengths agree");
        let (library, raw) = (cublas(), blas.as_raw());
        let pointer = std::ptr::without_provenance_mut(y.as_pointer().as_raw() as usize);
        let double = || {
            // SAFETY: the handle lives, and the memory has two numbers. The stream orders the call with the accesses before and after it.
            Ok(unsafe { c_library::double_all(library.api(), raw, 2, pointer) })
        };
        let code = test.context().entered(|_| double()).expect("the context can be entered");
        assert_eq!(code, cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y)).expect("the lengths agree");
        assert_eq!(y.to_vec().expect("it can be read"), [23.0, 46.0]);
    });
}

#[test]
fn handle_of_the_library_is_taken_over_and_destroyed_once() {
    on_driver(|test| {
        let (stream, library) = (test.stream(), cublas());
        let raw = test.context().entered(|_| Ok(c_library::create(library.api()))).expect("the context can be entered");
        // SAFETY: the handle was created in this context, and nobody else uses it.
        let mut blas = unsafe { Blas::from_raw(&library, raw, &stream) }.expect("the stream can be set");
        assert_eq!(blas.as_raw(), raw);
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        blas.scal(3.0, &mut VectorMut::new(&mut x)).expect("it is enqueued");
        assert_eq!(x.to_vec().expect("it can be read"), [3.0, 6.0]);
        drop(blas);
        if test.simulator().is_some() {
            // SAFETY: the simulated library finds handles that are not live.
            let code = unsafe { library.api().cublasDestroy_v2.expect("every version has it")(raw) };
            assert_eq!(code, cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED);
        }
    });
}

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
        let plan = MatmulPlan::new(&lt.expect("the device is known"), &matmul, PlanOptions::default());
        let mut plan = plan.expect("there is an algorithm");
        let a = DeviceBuffer::filled(&stream, 256, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let mut workspace = plan.workspace(&stream).expect("memory suffices");
        plan.execute(&stream, Operands::new(&a, &a, &mut d).with_workspace(&mut workspace)).expect("it is enqueued");
        assert_eq!(d.to_vec().expect("it can be read"), [16.0; 256]);
        drop(plan);
        // The handle is still that of `blas`.
        blas.scal(0.5, &mut VectorMut::new(&mut d)).expect("it is enqueued");
        assert_eq!(d.to_vec().expect("it can be read"), [8.0; 256]);
    });
}
