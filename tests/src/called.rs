//! Records the driver functions that tests called on this machine's driver, for the list of
//! functions tested on a GPU.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use curium_driver::{Call, Function, observe_calls};
use curium_sys::CUresult;
use parking_lot::Mutex;

/// The environment variable with the path of the file to which function names are appended, one per
/// line.
const VARIABLE: &str = "CURIUM_CALLED";

/// Runs `test`, and appends the functions that it called to the file that the environment variable
/// names, if set. Calls that the machine does not support are not recorded.
///
/// # Panics
///
/// Panics if the test fails or the file cannot be written.
pub(crate) fn noting_calls<R>(test: impl FnOnce() -> R) -> R {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return test();
    };
    let called = Arc::new(Mutex::new(BTreeSet::new()));
    let list = Arc::clone(&called);
    let guard = observe_calls(move |call: &Call<'_>| {
        if call.code != CUresult::CUDA_ERROR_NOT_SUPPORTED {
            list.lock().insert(call.function);
        }
    });
    let outcome = test();
    drop(guard);
    let called = std::mem::take(&mut *called.lock());
    append(&path, &called).expect("failed to write the file of CURIUM_CALLED");
    outcome
}

/// Writes all names in one call, so that the lines of several processes do not mix.
fn append(path: &OsStr, called: &BTreeSet<Function>) -> io::Result<()> {
    let lines: String = called
        .iter()
        .map(|function| format!("{function}\n"))
        .collect();
    File::options()
        .append(true)
        .create(true)
        .open(path)?
        .write_all(lines.as_bytes())
}
