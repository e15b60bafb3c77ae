//! Shared parts of the tests: raw calls by name, and fixtures.

use std::ffi::c_void;
use std::sync::mpsc;

use curium_sim::{Config, Simulator};
use curium_sys::{Api, CUcontext, CUdeviceptr, CUresult, CUstream};

pub(crate) const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Calls one function of a table of functions.
macro_rules! cu {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = $api.$name.expect(concat!("the driver has `", stringify!($name), "`"));
        // SAFETY: the arguments are valid, or the function refuses them before it uses them.
        unsafe { function($($argument),*) }
    }};
}

/// Calls one function that must succeed.
macro_rules! ok {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!($crate::support::cu!($api, $name($($argument),*)), $crate::support::SUCCESS, stringify!($name))
    };
}

/// Calls a function that writes one value, and returns the value.
macro_rules! get {
    ($api:expr, $name:ident(_ $(, $argument:expr)* $(,)?)) => {{
        let mut value = Default::default();
        $crate::support::ok!($api, $name(&raw mut value $(, $argument)*));
        value
    }};
    ($api:expr, $name:ident($first:expr, _)) => {{
        let mut value = Default::default();
        $crate::support::ok!($api, $name($first, &raw mut value));
        value
    }};
}

/// Calls a function that writes one handle, and returns the handle.
macro_rules! handle {
    ($api:expr, $name:ident(_ $(, $argument:expr)* $(,)?)) => {{
        let mut handle = std::ptr::null_mut();
        $crate::support::ok!($api, $name(&raw mut handle $(, $argument)*));
        handle
    }};
}

pub(crate) use {cu, get, handle, ok};

/// An initialized simulator with its functions, and the primary context current.
pub(crate) struct Fixture {
    pub(crate) simulator: Simulator,
    pub(crate) api: Api,
    pub(crate) context: CUcontext,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(Config::new().with_workers(2).with_memory_budget(64 << 20))
    }

    pub(crate) fn with(config: Config) -> Self {
        let simulator = Simulator::new(config).expect("failed to create a simulator");
        let api = simulator.api();
        ok!(api, cuInit(0));
        let context = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
        ok!(api, cuCtxSetCurrent(context));
        Self {
            simulator,
            api,
            context,
        }
    }

    pub(crate) fn alloc(&self, size: usize) -> CUdeviceptr {
        get!(self.api, cuMemAlloc_v2(_, size))
    }

    pub(crate) fn stream(&self, flags: u32) -> CUstream {
        handle!(self.api, cuStreamCreate(_, flags))
    }

    pub(crate) fn upload(&self, to: CUdeviceptr, bytes: &[u8]) {
        ok!(
            self.api,
            cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len())
        );
    }

    pub(crate) fn download(&self, from: CUdeviceptr, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        ok!(
            self.api,
            cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, size)
        );
        bytes
    }

    /// Blocks a stream until the gate opens.
    pub(crate) fn block(&self, stream: CUstream) -> Gate {
        let (open, opened) = mpsc::channel();
        let data: *mut mpsc::Receiver<()> = Box::into_raw(Box::new(opened));
        ok!(
            self.api,
            cuLaunchHostFunc(stream, Some(wait_for_gate), data.cast())
        );
        Gate(Some(open))
    }
}

/// Keeps a stream blocked until the gate is opened or dropped.
#[must_use]
pub(crate) struct Gate(Option<mpsc::Sender<()>>);

impl Gate {
    pub(crate) fn open(mut self) {
        self.0 = None;
    }
}

unsafe extern "C" fn wait_for_gate(data: *mut c_void) {
    // SAFETY: `block` made the pointer from a box, and each host function runs once.
    let opened = unsafe { Box::from_raw(data.cast::<mpsc::Receiver<()>>()) };
    // The sender is dropped to open the gate, so the error is the signal.
    opened.recv().unwrap_or_default();
}
