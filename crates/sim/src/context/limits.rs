//! Limits of a context.

use curium_ptx::exec::RuntimeUse;

/// The limits of a context, with the values and rules of the imitated hardware.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) stack: usize,
    pub(crate) printf_buffer: usize,
    pub(crate) malloc_heap: usize,
    pub(crate) sync_depth: usize,
    pub(crate) pending_launches: usize,
    pub(crate) fetch_granularity: usize,
    pub(crate) persisting_l2: usize,
    /// The functions of the device runtime that launched kernels call.
    pub(crate) launched: RuntimeUse,
}

impl Limits {
    /// Returns the size of the heap for kernels, in bytes.
    pub(crate) fn malloc_heap(&self) -> usize {
        self.malloc_heap
    }

    /// Returns the size of the buffer for device-side `printf`, in bytes.
    pub(crate) fn printf_buffer(&self) -> usize {
        self.printf_buffer
    }

    /// Fixes the limits of the runtime's functions that a launched kernel calls.
    pub(crate) fn record_launch(&mut self, runtime: RuntimeUse) {
        self.launched.add(runtime);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stack: 1024,
            printf_buffer: 8_650_752,
            malloc_heap: 8 << 20,
            sync_depth: 2,
            pending_launches: 2048,
            fetch_granularity: 64,
            persisting_l2: 9_830_400,
            launched: RuntimeUse::default(),
        }
    }
}
