//! Errors: the last one, names and texts.

use std::ffi::{CStr, c_char};
use std::ptr;

use curium_sys::CUresult;

use crate::state::{self, Code};

/// The codes without a counterpart in the driver.
const OWN: [(Code, &CStr, &CStr); 8] = [
    (
        9,
        c"cudaErrorInvalidConfiguration",
        c"invalid configuration argument",
    ),
    (12, c"cudaErrorInvalidPitchValue", c"invalid pitch argument"),
    (13, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
    (
        17,
        c"cudaErrorInvalidDevicePointer",
        c"invalid device pointer",
    ),
    (
        21,
        c"cudaErrorInvalidMemcpyDirection",
        c"invalid copy direction for memcpy",
    ),
    (
        35,
        c"cudaErrorInsufficientDriver",
        c"CUDA driver version is insufficient for CUDA runtime version",
    ),
    (
        52,
        c"cudaErrorMissingConfiguration",
        c"__global__ function call is not configured",
    ),
    (
        98,
        c"cudaErrorInvalidDeviceFunction",
        c"invalid device function",
    ),
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
// SAFETY: as for the other functions.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Code {
    let last = state::last_error();
    state::clear_error();
    last
}

/// Returns the last error of the thread.
// SAFETY: as for the other functions.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Code {
    state::last_error()
}

/// Returns the name of a code.
// SAFETY: as for the other functions.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: Code) -> *const c_char {
    let own = OWN.iter().find(|own| own.0 == code).map(|own| own.1);
    let renamed = RENAMED
        .iter()
        .find(|renamed| renamed.0 == code)
        .map(|renamed| renamed.1);
    own.or(renamed)
        .map_or_else(|| of_driver(code, Text::Name), CStr::as_ptr)
}

/// Returns the text of a code.
// SAFETY: as for the other functions.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: Code) -> *const c_char {
    let own = OWN.iter().find(|own| own.0 == code);
    own.map_or_else(|| of_driver(code, Text::Description), |own| own.2.as_ptr())
}

#[derive(Clone, Copy)]
enum Text {
    Name,
    Description,
}

/// Returns the driver's name or description of a code.
fn of_driver(code: Code, which: Text) -> *const c_char {
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
    use std::ffi::CStr;
    use std::ptr;

    use super::*;
    use crate::tests::simulate;

    #[test]
    fn last_error_is_kept_until_it_is_taken() {
        let _turn = simulate();
        let name = |code| {
            // SAFETY: the name is one of the runtime, and ends with NUL.
            unsafe { CStr::from_ptr(cudaGetErrorName(code)) }
                .to_str()
                .expect("names are in ASCII")
        };
        let refused = crate::device::cudaGetDevice;
        assert_eq!(crate::tests::code!(refused(ptr::null_mut())), 1);
        assert_eq!(
            (
                name(cudaPeekAtLastError()),
                cudaGetLastError(),
                cudaGetLastError()
            ),
            ("cudaErrorInvalidValue", 1, 0)
        );
        assert_eq!(name(0), "cudaSuccess");
        assert_eq!(name(123_456), "unrecognized error code");
    }
}
