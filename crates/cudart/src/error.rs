//! Errors: the last one, names and texts.

use std::ffi::{CStr, c_char};
use std::ptr;

use curium_sys::CUresult;

use crate::state::{self, Code};

/// An error without a counterpart in the driver.
struct RuntimeError {
    code: Code,
    name: &'static CStr,
    description: &'static CStr,
}

const RUNTIME_ERRORS: [RuntimeError; 8] = [
    RuntimeError {
        code: 9,
        name: c"cudaErrorInvalidConfiguration",
        description: c"invalid configuration argument",
    },
    RuntimeError {
        code: 12,
        name: c"cudaErrorInvalidPitchValue",
        description: c"invalid pitch argument",
    },
    RuntimeError {
        code: 13,
        name: c"cudaErrorInvalidSymbol",
        description: c"invalid device symbol",
    },
    RuntimeError {
        code: 17,
        name: c"cudaErrorInvalidDevicePointer",
        description: c"invalid device pointer",
    },
    RuntimeError {
        code: 21,
        name: c"cudaErrorInvalidMemcpyDirection",
        description: c"invalid copy direction for memcpy",
    },
    RuntimeError {
        code: 35,
        name: c"cudaErrorInsufficientDriver",
        description: c"CUDA driver version is insufficient for CUDA runtime version",
    },
    RuntimeError {
        code: 52,
        name: c"cudaErrorMissingConfiguration",
        description: c"__global__ function call is not configured",
    },
    RuntimeError {
        code: 98,
        name: c"cudaErrorInvalidDeviceFunction",
        description: c"invalid device function",
    },
];

/// The names that cannot be derived from the driver's names.
const RENAMED: [(Code, &CStr); 14] = [
    (0, c"cudaSuccess"),
    (2, c"cudaErrorMemoryAllocation"),
    (3, c"cudaErrorInitializationError"),
    (4, c"cudaErrorCudartUnloading"),
    (1, c"cudaErrorInvalidValue"),
    (100, c"cudaErrorNoDevice"),
    (101, c"cudaErrorInvalidDevice"),
    (209, c"cudaErrorNoKernelImageForDevice"),
    (400, c"cudaErrorInvalidResourceHandle"),
    (500, c"cudaErrorSymbolNotFound"),
    (600, c"cudaErrorNotReady"),
    (700, c"cudaErrorIllegalAddress"),
    (719, c"cudaErrorLaunchFailure"),
    (999, c"cudaErrorUnknown"),
];

/// Returns the last error of the thread and clears it.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Code {
    let last = state::last_error();
    state::clear_error();
    last
}

/// Returns the last error of the thread.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Code {
    state::last_error()
}

/// Returns the name of a code.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: Code) -> *const c_char {
    if let Some(error) = RUNTIME_ERRORS.iter().find(|error| error.code == code) {
        return error.name.as_ptr();
    }
    match RENAMED.iter().find(|(renamed, _)| *renamed == code) {
        Some((_, name)) => name.as_ptr(),
        None => driver_text(code, Text::Name),
    }
}

/// Returns the text of a code.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: Code) -> *const c_char {
    match RUNTIME_ERRORS.iter().find(|error| error.code == code) {
        Some(error) => error.description.as_ptr(),
        None => driver_text(code, Text::Description),
    }
}

#[derive(Clone, Copy)]
enum Text {
    Name,
    Description,
}

/// Returns the driver's name or description of a code.
fn driver_text(code: Code, which: Text) -> *const c_char {
    let unknown = c"unrecognized error code".as_ptr();
    let Ok(api) = state::api() else {
        return unknown;
    };
    let function = match which {
        Text::Name => api.cuGetErrorName,
        Text::Description => api.cuGetErrorString,
    };
    let mut text = ptr::null();
    let Some(function) = function else {
        return unknown;
    };
    // SAFETY: the pointer is to a local variable.
    let returned = unsafe { function(CUresult(code.cast_unsigned()), &raw mut text) };
    if returned == CUresult::CUDA_SUCCESS && !text.is_null() {
        text
    } else {
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::simulate;

    fn name(code: Code) -> String {
        // SAFETY: the name is one of the runtime, and ends with NUL.
        let name = unsafe { CStr::from_ptr(cudaGetErrorName(code)) };
        name.to_string_lossy().into_owned()
    }

    #[test]
    fn last_error_is_stored_until_it_is_returned() {
        let _turn = simulate();
        let get_device = crate::device::cudaGetDevice;
        assert_eq!(crate::tests::code!(get_device(state::Out::null())), 1);
        assert_eq!(
            (
                name(cudaPeekAtLastError()).as_str(),
                cudaGetLastError(),
                cudaGetLastError()
            ),
            ("cudaErrorInvalidValue", 1, 0)
        );
        assert_eq!(name(0), "cudaSuccess");
        assert_eq!(name(123_456), "unrecognized error code");
    }
}
