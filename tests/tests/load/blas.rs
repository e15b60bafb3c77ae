//! A library with the functions of cuBLAS that `cudarc_interop` uses. It multiplies on the host, between two copies by
//! the driver.

use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Synchronize = unsafe extern "C" fn(*mut c_void) -> c_int;
type CopyToHost = unsafe extern "C" fn(*mut f32, *const f32, usize) -> c_int;
type CopyToDevice = unsafe extern "C" fn(*mut f32, *const f32, usize) -> c_int;

const LAZY: c_int = 1;

/// The function `$name` of the driver that the process uses.
macro_rules! driver {
    ($name:literal as $type:ty) => {
        unsafe {
            let library = dlopen(c"libcuda.so.1".as_ptr(), LAZY);
            std::mem::transmute::<*mut c_void, $type>(dlsym(library, $name.as_ptr()))
        }
    };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(handle: *mut *mut *mut c_void) -> c_int {
    unsafe { handle.write(Box::into_raw(Box::new(std::ptr::null_mut()))) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasDestroy_v2(handle: *mut *mut c_void) -> c_int {
    drop(unsafe { Box::from_raw(handle) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetStream_v2(handle: *mut *mut c_void, stream: *mut c_void) -> c_int {
    unsafe { handle.write(stream) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSgemm_v2(
    handle: *mut *mut c_void,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    a: *const f32,
    lda: c_int,
    b: *const f32,
    ldb: c_int,
    beta: *const f32,
    c: *mut f32,
    ldc: c_int,
) -> c_int {
    let (alpha, beta) = unsafe { (alpha.read(), beta.read()) };
    if (transpose_a, transpose_b, alpha, beta) != (0, 0, 1.0, 0.0) {
        return 15;
    }
    let [m, n, k, lda, ldb, ldc] = [m, n, k, lda, ldb, ldc].map(|size| size as usize);
    // The first wait is for the work that was on the stream before.
    let waited = unsafe { driver!(c"cuStreamSynchronize" as Synchronize)(handle.read()) };
    let copy_to_host = driver!(c"cuMemcpyDtoH_v2" as CopyToHost);
    let read = |from: *const f32, count: usize| {
        let mut values = vec![0.0_f32; count];
        let code = unsafe { copy_to_host(values.as_mut_ptr(), from, count * 4) };
        if code == 0 { values } else { vec![f32::NAN; count] }
    };
    let a = read(a, lda * k);
    let b = read(b, ldb * n);
    let mut product = read(c, ldc * n);
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        product[column * ldc + row] = (0..k).map(|k| a[k * lda + row] * b[column * ldb + k]).sum();
    }
    let written = unsafe { driver!(c"cuMemcpyHtoD_v2" as CopyToDevice)(c, product.as_ptr(), ldc * n * 4) };
    if waited == 0 && written == 0 { 0 } else { 14 }
}
