//! The parameters of a launch, in either of the two forms of the C API.

use std::ffi::c_void;

use curium_ptx::exec::Kernel;
use curium_sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END, CUresult,
};

use crate::argument::{Pointer, elements};
use crate::result::Result;

/// The parameters that the caller of a launch passed.
#[derive(Clone, Copy)]
pub(crate) enum Arguments {
    Nothing,
    /// An array of pointers, one per parameter.
    Pointers(Pointer<*mut c_void>),
    /// A list of keys and values that name a buffer.
    Extra(Pointer<*mut c_void>),
}

/// The maximum number of keys of `extra`: a longer list is endless.
const MAX_KEYS: usize = 8;

/// The maximum alignment of a parameter.
const MAX_ALIGNMENT: usize = 16;

impl Arguments {
    pub(crate) fn new(
        parameters: Pointer<*mut c_void>,
        extra: Pointer<*mut c_void>,
    ) -> Result<Self> {
        match (parameters.is_null(), extra.is_null()) {
            (true, true) => Ok(Self::Nothing),
            (false, true) => Ok(Self::Pointers(parameters)),
            (true, false) => Ok(Self::Extra(extra)),
            (false, false) => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    /// Copies the parameters into the layout of the kernel.
    pub(crate) fn collect(self, kernel: &Kernel) -> Result<Box<[u8]>> {
        let mut buffer = vec![0; kernel.param_size].into_boxed_slice();
        match self {
            _ if kernel.params.is_empty() => {}
            Self::Nothing => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            Self::Pointers(pointers) => {
                // SAFETY: the caller of a launch passes as many pointers as the kernel has
                // parameters.
                let pointers =
                    unsafe { elements(pointers.as_ptr().cast_const(), kernel.params.len()) }?;
                for (parameter, pointer) in kernel.params.iter().zip(pointers) {
                    // SAFETY: each points to a value of its parameter's size.
                    let value = unsafe { elements(pointer.cast_const().cast(), parameter.size) }?;
                    buffer[parameter.offset..][..parameter.size].copy_from_slice(value);
                }
            }
            Self::Extra(extra) => {
                // SAFETY: the list is one of `cuLaunchKernel`.
                let arguments = unsafe { argument_buffer(extra) }?;
                let length = buffer.len();
                // A buffer may be padded like a struct, whose size is a multiple of its alignment.
                if arguments.len() > length.next_multiple_of(MAX_ALIGNMENT) {
                    return Err(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
                }
                buffer.copy_from_slice(
                    arguments
                        .get(..length)
                        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?,
                );
            }
        }
        Ok(buffer)
    }
}

/// Returns the buffer that a list of keys and values names.
///
/// # Safety
///
/// The list is valid for `cuLaunchKernel`: it ends with the end key, and each value has the type of
/// its key.
unsafe fn argument_buffer<'a>(extra: Pointer<*mut c_void>) -> Result<&'a [u8]> {
    let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
    let mut entry = extra.as_ptr().cast_const();
    let mut start = None;
    let mut size = None;
    for _ in 0..MAX_KEYS {
        // SAFETY: the caller guarantees that the list ends with its end key, after which nothing is
        // read.
        let key = unsafe { entry.read() };
        if key == CU_LAUNCH_PARAM_END {
            // SAFETY: the caller guarantees that the buffer has the length in the list.
            return unsafe { elements(start.ok_or(invalid)?, size.ok_or(invalid)?) };
        }
        // SAFETY: a value follows each key but the end key.
        let position = unsafe { entry.add(1) };
        // SAFETY: the value was written by the caller.
        let value = unsafe { position.read() };
        // SAFETY: another key follows each value.
        entry = unsafe { entry.add(2) };
        match key {
            CU_LAUNCH_PARAM_BUFFER_POINTER => start = Some(value.cast_const().cast()),
            CU_LAUNCH_PARAM_BUFFER_SIZE => {
                // SAFETY: the value of this key points to a `size_t`.
                size = Some(unsafe { Pointer::from_raw(value.cast::<usize>()) }.read()?);
            }
            _ => return Err(invalid),
        }
    }
    Err(invalid)
}
