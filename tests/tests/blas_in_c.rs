//! A C library that takes a `cublasHandle_t` shares handles, streams and buffers with
//! `curium-blas`.

use std::ffi::c_int;

use curium_blas::sys::{Api, cublasHandle_t, cublasStatus_t};
use curium_blas::{Blas, CuBlas, Vector, VectorMut};
use curium_memory::DeviceBuffer;
use curium_tests::{TestResult, c_library, on_driver, uses_cuda};
use libloading::{Library, Symbol};

type NewHandle = unsafe extern "C" fn() -> cublasHandle_t;
type Normalize = unsafe extern "C" fn(cublasHandle_t, c_int, *mut f32) -> cublasStatus_t;

fn cublas() -> CuBlas {
    if uses_cuda() {
        CuBlas::load().expect("CURIUM_TEST_DRIVER=cuda needs cuBLAS")
    } else {
        curium_sim_libraries::cublas()
    }
}

/// Returns the library, linked to the cuBLAS of `api`, or `None` without a C compiler.
fn normalizer(api: &Api) -> Option<Library> {
    let library = c_library(concat!(
        include_str!("../c/cublas.c"),
        include_str!("../c/normalize.c")
    ))?;
    // SAFETY: the variable is a pointer to a function of this type, and not used yet.
    unsafe { set(&library, "forward_create", api.cublasCreate_v2) };
    // SAFETY: the variable is a pointer to a function of this type, and not used yet.
    unsafe { set(&library, "forward_nrm2", api.cublasSnrm2_v2) };
    // SAFETY: the variable is a pointer to a function of this type, and not used yet.
    unsafe { set(&library, "forward_scal", api.cublasSscal_v2) };
    Some(library)
}

/// Sets a variable of the library.
///
/// # Safety
///
/// The variable has the type `T`, and no thread uses it.
unsafe fn set<T>(library: &Library, name: &str, value: T) {
    // SAFETY: as the caller guarantees.
    let variable: Symbol<'_, *mut T> = unsafe { library.get(name) }.expect("the library has it");
    // SAFETY: as the caller guarantees.
    unsafe { variable.write(value) };
}

/// A C library works on the handle and the stream between two operations of Curium.
#[test]
fn c_library_shares_the_handle() -> TestResult {
    let cublas = cublas();
    let Some(library) = normalizer(cublas.api()) else {
        return curium_tests::skip("no C compiler `cc`");
    };
    // SAFETY: the function has this type.
    let normalize: Symbol<'_, Normalize> = unsafe { library.get(c"normalize") }?;
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = Blas::new(&cublas, &stream)?;
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
        let mut y = DeviceBuffer::from_slice(&stream, &[2.0_f32, 2.0])?;
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))?;
        let raw = blas.as_raw();
        let pointer = std::ptr::without_provenance_mut(y.as_pointer().as_raw() as usize);
        let context = test.context();
        let normalized = |n| {
            // SAFETY: the handle lives, and the memory has two numbers. The stream orders the calls
            // with the accesses before and after.
            context
                .entered(|_| Ok(unsafe { normalize(raw, n, pointer) }))
                .expect("failed to enter the context")
        };
        assert_eq!(normalized(2), cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        assert_eq!(normalized(0), cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE);
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))?;
        let y = y.to_vec()?;
        assert!(
            (y[0] - 1.6).abs() < 1e-6 && (y[1] - 2.8).abs() < 1e-6,
            "{y:?}"
        );
        Ok(())
    })
}

#[test]
fn adopted_handle_is_destroyed() -> TestResult {
    let cublas = cublas();
    let Some(library) = normalizer(cublas.api()) else {
        return curium_tests::skip("no C compiler `cc`");
    };
    // SAFETY: the function has this type.
    let new_handle: Symbol<'_, NewHandle> = unsafe { library.get(c"new_handle") }?;
    on_driver(|test| {
        let stream = test.stream();
        // SAFETY: a context is current.
        let raw = test.context().entered(|_| Ok(unsafe { new_handle() }))?;
        assert!(!raw.is_null());
        // SAFETY: the handle was created in this context, and nobody else uses it.
        let mut blas = unsafe { Blas::from_raw(&cublas, raw, &stream) }?;
        assert_eq!(blas.as_raw(), raw);
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
        blas.scal(3.0, &mut VectorMut::new(&mut x))?;
        assert_eq!(x.to_vec()?, [3.0, 6.0]);
        drop(blas);
        if test.simulator().is_some() {
            // SAFETY: the simulated library finds handles that are not live.
            let code = unsafe {
                cublas
                    .api()
                    .cublasDestroy_v2
                    .ok_or("no `cublasDestroy_v2`")?(raw)
            };
            assert_eq!(code, cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED);
        }
        Ok(())
    })
}
