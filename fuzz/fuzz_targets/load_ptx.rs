//! Any text as a module: the simulator loads it or refuses it, soon, in little memory, and without a panic.
#![no_main]

use std::cell::OnceCell;
use std::ffi::CString;
use std::ptr;

use curium_sim::{Config, Simulator};
use curium_sys::{CUcontext, CUresult};
use libfuzzer_sys::fuzz_target;

/// Calls a function of the simulator.
macro_rules! cu {
    ($simulator:expr, $name:ident($($argument:expr),*)) => {{
        let function = $simulator.api().$name.expect("the simulator has every function");
        // SAFETY: the arguments are what the function wants: places for what it writes, live handles, and texts that end.
        unsafe { function($($argument),*) }
    }};
}

/// A simulator with a current context.
fn simulator() -> Simulator {
    let simulator = Simulator::new(Config::new()).expect("a simulator can be created");
    let mut context: CUcontext = ptr::null_mut();
    assert_eq!(cu!(simulator, cuInit(0)), CUresult::CUDA_SUCCESS);
    assert_eq!(
        cu!(simulator, cuDevicePrimaryCtxRetain(&raw mut context, 0)),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(
        cu!(simulator, cuCtxSetCurrent(context)),
        CUresult::CUDA_SUCCESS
    );
    simulator
}

thread_local! {
    static SIMULATOR: OnceCell<Simulator> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = CString::new(bytes) else {
        return;
    };
    SIMULATOR.with(|cell| {
        let simulator = cell.get_or_init(simulator);
        let mut module = ptr::null_mut();
        if cu!(
            simulator,
            cuModuleLoadData(&raw mut module, text.as_ptr().cast())
        ) == CUresult::CUDA_SUCCESS
        {
            assert_eq!(
                cu!(simulator, cuModuleUnload(module)),
                CUresult::CUDA_SUCCESS
            );
        }
    });
});
