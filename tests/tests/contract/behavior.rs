//! Error codes and effects that the driver's documentation does not specify, observed on an H100
//! and an H200 with direct calls. The simulator must match them.

/// The code that a driver call returned.
macro_rules! returned {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: output pointers are valid; handles and addresses are live, or such that the
        // driver reports that they are not.
        crate::behavior::code(unsafe { curium_driver::call!($driver, $function($($argument),*)) })
    };
}

mod answers;
mod call;
mod checks;
mod context;
mod copy;
mod error;
mod event;
mod graph_condition;
mod graph_node;
mod initialization;
mod launch;
mod link;
mod mapping;
mod memory;
mod module;
mod output;
mod registered;
mod retired;
mod rows;
mod stream;
mod tensor_map;
mod texture;

use std::ptr;

use curium_driver::{Driver, Result};
use curium_sys::{CUcontext, CUfunction, CUmodule, CUresult};
use curium_tests::{ContextStack, CreatedContext, TestDriver, TestResult};

const OK: CUresult = CUresult::CUDA_SUCCESS;
const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const INVALID_CONTEXT: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const NOT_FOUND: CUresult = CUresult::CUDA_ERROR_NOT_FOUND;
const DESTROYED: CUresult = CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;

fn code(result: Result<()>) -> CUresult {
    result.map_or_else(
        |error| error.code().expect("the driver has the function"),
        |()| OK,
    )
}

/// Runs `body` with the primary context of the first device current.
fn in_context<R>(test: &TestDriver, body: impl FnOnce(&Driver) -> R) -> R {
    let context = test.context();
    let stack = ContextStack::push(test.driver(), &[context.as_raw()]);
    let outcome = body(test.driver());
    stack.assert_unchanged("the body");
    outcome
}

/// Returns the context that is current on this thread.
fn current(driver: &Driver) -> CUcontext {
    let mut context = ptr::null_mut();
    assert_eq!(returned!(driver, cuCtxGetCurrent(&raw mut context)), OK);
    context
}

/// Returns a module and its kernel, loaded in the current context.
fn loaded(driver: &Driver) -> TestResult<(CUmodule, CUfunction)> {
    let image = std::ffi::CString::new(curium_tests::kernels::FILL)?;
    let mut module = ptr::null_mut();
    let mut function = ptr::null_mut();
    assert_eq!(
        returned!(
            driver,
            cuModuleLoadData(&raw mut module, image.as_ptr().cast())
        ),
        OK
    );
    assert_eq!(
        returned!(
            driver,
            cuModuleGetFunction(&raw mut function, module, c"fill".as_ptr())
        ),
        OK
    );
    Ok((module, function))
}

/// Runs `body` with a context current that is not the primary context.
fn in_created_context<R>(test: &TestDriver, body: impl FnOnce(&Driver, CUcontext) -> R) -> R {
    let context = CreatedContext::new(&test.device());
    let stack = ContextStack::push(test.driver(), &[context.as_raw()]);
    let outcome = body(test.driver(), context.as_raw());
    stack.assert_unchanged("the body");
    outcome
}
