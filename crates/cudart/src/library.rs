//! Libraries of kernels that are loaded at run time.

use std::ffi::{c_char, c_int, c_uint, c_void};

use curium_sys::{CUfunction_attribute, CUjit_option, CUkernel, CUlibrary, CUlibraryOption};

use crate::state::{INVALID_VALUE, Out, enter};
use crate::{cu, forward, registry, runtime};

runtime! {
    fn cudaLibraryGetKernel(kernel: Out<CUkernel>, library: CUlibrary, name: *const c_char) {
        enter()?;
        let mut handle = CUkernel::default();
        // SAFETY: `handle` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuLibraryGetKernel(&raw mut handle, library, name)) }?;
        registry::add_library_kernels(library, &[handle]);
        kernel.write(handle)
    }

    fn cudaLibraryEnumerateKernels(kernels: *mut CUkernel, count: c_uint, library: CUlibrary) {
        enter()?;
        if kernels.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut handles = vec![CUkernel::default(); count as usize];
        // SAFETY: `handles` has `count` elements, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuLibraryEnumerateKernels(handles.as_mut_ptr(), count, library)) }?;
        // SAFETY: the caller of the runtime function guarantees that `kernels` has `count`
        // elements.
        unsafe { kernels.copy_from_nonoverlapping(handles.as_ptr(), handles.len()) };
        // The driver leaves the elements beyond the number of kernels as they are.
        handles.retain(|handle| !handle.is_null());
        registry::add_library_kernels(library, &handles);
        Ok(())
    }

    fn cudaLibraryUnload(library: CUlibrary) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuLibraryUnload(library)) }?;
        registry::remove_library_kernels(library);
        Ok(())
    }

    fn cudaKernelSetAttributeForDevice(
        kernel: CUkernel,
        attribute: CUfunction_attribute,
        value: c_int,
        device: c_int,
    ) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuKernelSetAttribute(attribute, value, kernel, device)) }
    }
}

forward! {
    unsafe fn cudaLibraryLoadData(
        library: *mut CUlibrary,
        code: *const c_void,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    ) = cuLibraryLoadData(
        library,
        code,
        options,
        values,
        count,
        library_options,
        library_values,
        library_count,
    );

    unsafe fn cudaLibraryLoadFromFile(
        library: *mut CUlibrary,
        path: *const c_char,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    ) = cuLibraryLoadFromFile(
        library,
        path,
        options,
        values,
        count,
        library_options,
        library_values,
        library_count,
    );

    unsafe fn cudaLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary)
        = cuLibraryGetKernelCount(count, library);

    unsafe fn cudaLibraryGetGlobal(
        address: *mut *mut c_void,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) = cuLibraryGetGlobal(address.cast(), bytes, library, name);

    unsafe fn cudaLibraryGetManaged(
        address: *mut *mut c_void,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) = cuLibraryGetManaged(address.cast(), bytes, library, name);

    unsafe fn cudaLibraryGetUnifiedFunction(
        function: *mut *mut c_void,
        library: CUlibrary,
        symbol: *const c_char,
    ) = cuLibraryGetUnifiedFunction(function, library, symbol);
}
