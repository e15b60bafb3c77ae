//! A program of the runtime, as a compiler would generate it, on the simulator.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use curium_sim::{Config, Simulator};
use parking_lot::{Mutex, MutexGuard};

use crate::launch::Dim3;
use crate::state;

/// Calls a function of the runtime, and returns its code.
macro_rules! code {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the arguments have the values that the function requires; pointers are null or to
        // variables of the test, which live until the work has completed.
        unsafe { $function($($argument),*) }
    };
}

/// Calls a function of the runtime, which succeeds.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!($crate::tests::code!($function($($argument),*)), 0, stringify!($function))
    };
}

pub(crate) use {call, code};

/// Uses a simulator as the driver of this process's runtime. One test at a time runs: they share
/// the primary context, where a capture forbids other calls.
pub(crate) fn simulate() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static SIMULATOR: OnceLock<Simulator> = OnceLock::new();
    let simulator = SIMULATOR
        .get_or_init(|| Simulator::new(Config::new()).expect("failed to create a simulator"));
    state::install(simulator.api());
    TURN.lock()
}

/// Waits for all work of the device.
pub(crate) fn synchronize() {
    use crate::device::cudaDeviceSynchronize;

    call!(cudaDeviceSynchronize());
}

/// The runtime's functions as declared by a program.
mod program {
    use std::ffi::{c_char, c_int, c_uint, c_void};

    use crate::launch::Dim3;

    // SAFETY: these are the functions of this crate.
    unsafe extern "C" {
        pub(super) fn __cudaRegisterFatBinary(record: *mut c_void) -> *mut *mut c_void;
        pub(super) fn __cudaRegisterFunction(
            handle: *mut *mut c_void,
            host: *const c_char,
            device_function: *mut c_char,
            name: *const c_char,
            thread_limit: c_int,
            thread: *mut c_void,
            block: *mut c_void,
            block_size: *mut c_void,
            grid_size: *mut c_void,
            warp_size: *mut c_int,
        );
        pub(super) fn __cudaPushCallConfiguration(
            grid: Dim3,
            block: Dim3,
            shared: usize,
            stream: *mut c_void,
        ) -> c_uint;
        pub(super) fn __cudaPopCallConfiguration(
            grid: *mut Dim3,
            block: *mut Dim3,
            shared: *mut usize,
            stream: *mut c_void,
        ) -> c_int;
        pub(super) fn cudaLaunchKernel(
            host: *const c_void,
            grid: Dim3,
            block: Dim3,
            values: *mut *mut c_void,
            shared: usize,
            stream: *mut c_void,
        ) -> c_int;
        pub(super) fn cudaMalloc(pointer: *mut *mut c_void, size: usize) -> c_int;
        pub(super) fn cudaFree(memory: *mut c_void) -> c_int;
        pub(super) fn cudaMemset(memory: *mut c_void, value: c_int, size: usize) -> c_int;
        pub(super) fn cudaMemcpy(
            to: *mut c_void,
            from: *const c_void,
            size: usize,
            direction: c_int,
        ) -> c_int;
        pub(super) fn cudaGetLastError() -> c_int;
        pub(super) fn cudaGetErrorString(code: c_int) -> *const c_char;
    }
}

/// The structures that the compiler puts into a program's data.
#[repr(C)]
struct Record {
    magic: u32,
    version: u32,
    binary: *const c_void,
    unused: *const c_void,
}

/// A fatbin produced by nvcc of CUDA 13.5 from a kernel `add(int* x, int y)`.
pub(crate) const BINARY: &[u8] = include_bytes!("../../sim/tests/images/zstd.fatbin");

fn text(code: c_int) -> String {
    // SAFETY: the call takes a number.
    let text = unsafe { program::cudaGetErrorString(code) };
    // SAFETY: the text is one of the runtime, and ends with NUL.
    unsafe { std::ffi::CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Launches the kernel of the stub as `<<<1, threads>>>(memory, 5)`, and returns the code.
fn launch(stub: &c_char, threads: u32, memory: *mut c_void) -> c_int {
    let mut grid = Dim3::new(1, 1, 1);
    let mut block = Dim3::new(threads, 1, 1);
    assert_eq!(
        // SAFETY: the call takes values only.
        unsafe { program::__cudaPushCallConfiguration(grid, block, 0, ptr::null_mut()) },
        0
    );
    block = Dim3::new(9, 9, 9);
    let mut shared = 7_usize;
    let mut stream = ptr::null_mut::<c_void>();
    // SAFETY: the pointers are to local variables.
    let popped = unsafe {
        program::__cudaPopCallConfiguration(
            &raw mut grid,
            &raw mut block,
            &raw mut shared,
            (&raw mut stream).cast(),
        )
    };
    assert_eq!(popped, 0);
    let mut address = memory;
    let mut addend = 5_i32;
    let mut values: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut addend).cast()];
    let host: *const c_void = ptr::from_ref(stub).cast();
    // SAFETY: the values are those of the kernel's parameters.
    unsafe { program::cudaLaunchKernel(host, grid, block, values.as_mut_ptr(), shared, stream) }
}

#[test]
fn program_runs_its_kernel() {
    let _turn = simulate();
    let record = Record {
        magic: 0x4662_43b1,
        version: 1,
        binary: BINARY.as_ptr().cast(),
        unused: ptr::null(),
    };
    // The host stub of a kernel is identified by its address.
    let stub: c_char = 0;
    let none = ptr::null_mut();
    // SAFETY: the record outlives the test's calls.
    let handle = unsafe { program::__cudaRegisterFatBinary((&raw const record).cast_mut().cast()) };
    // SAFETY: the name ends with NUL.
    unsafe {
        program::__cudaRegisterFunction(
            handle,
            &raw const stub,
            ptr::null_mut(),
            c"add".as_ptr(),
            -1,
            none,
            none,
            none,
            none,
            ptr::null_mut(),
        );
    };
    let mut memory = ptr::null_mut();
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { program::cudaMalloc(&raw mut memory, 128) }, 0);
    // SAFETY: the memory has 128 bytes.
    assert_eq!(unsafe { program::cudaMemset(memory, 0, 128) }, 0);
    assert_eq!(launch(&stub, 32, memory), 0);
    let mut numbers = [0_i32; 32];
    // SAFETY: both sides have 128 bytes.
    let copied = unsafe { program::cudaMemcpy(numbers.as_mut_ptr().cast(), memory, 128, 2) };
    assert_eq!((copied, numbers), (0, [5; 32]));
    let failed = launch(&stub, 5000, memory);
    assert_eq!(
        (failed, text(failed).as_str()),
        (9, "invalid configuration argument")
    );
    // SAFETY: these take nothing, and return the last error and no error.
    let errors = [(); 2].map(|()| unsafe { program::cudaGetLastError() });
    assert_eq!(errors, [9, 0]);
    assert_eq!(text(700), "an illegal memory access was encountered");
    // SAFETY: the memory is no longer used.
    assert_eq!(unsafe { program::cudaFree(memory) }, 0);
}

// After the declarations of `program`, whose signatures differ.
mod exports;
mod objects;
