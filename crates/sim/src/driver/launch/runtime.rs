//! Host services for running kernels: printing and memory allocation.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

use curium_ptx::exec::{Report, Runtime, RuntimeUse, Surface, Texture};

use crate::context::Context;
use crate::context::kernel_heap::KernelHeap;
use crate::driver::Driver;
use crate::handle::Id;
use crate::lock::{Mutex, MutexGuard, Rank};
use crate::memory::{Owner, Purpose};
use crate::object::graph::plan::SharedConditions;

/// The host services of one launch.
pub(crate) struct Host<'a> {
    driver: &'a Driver,
    context: Id<Context>,
    /// The output of the kernel, which is delivered when the kernel ends.
    printed: Mutex<Vec<u8>>,
    /// The maximum output that is kept.
    max_printed: usize,
    /// The textures and surfaces that the kernel has used.
    textures: Mutex<HashMap<u64, Arc<Texture>>>,
    surfaces: Mutex<HashMap<u64, Arc<Surface>>>,
    /// The conditional values, if the launch is one of a graph.
    conditions: Option<&'a SharedConditions>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(
        driver: &'a Driver,
        context: Id<Context>,
        runtime: RuntimeUse,
        conditions: Option<&'a SharedConditions>,
    ) -> Self {
        let max_printed = driver
            .lock()
            .contexts
            .valid_context_mut(context)
            .map_or(0, |context| {
                // In the launch of a graph, the kernel is known only here.
                context.limits_mut().record_launch(runtime);
                context.limits().printf_buffer()
            });
        Self {
            driver,
            context,
            printed: Mutex::new(Rank::LaunchOutput, Vec::new()),
            max_printed,
            textures: Mutex::new(Rank::LaunchTextures, HashMap::new()),
            surfaces: Mutex::new(Rank::LaunchSurfaces, HashMap::new()),
            conditions,
        }
    }

    /// Writes the output of the kernel.
    pub(crate) fn flush(&self) {
        let text = std::mem::take(&mut *self.text());
        if !text.is_empty() {
            self.driver.output().append(&text);
        }
    }

    fn text(&self) -> MutexGuard<'_, Vec<u8>> {
        self.printed.lock()
    }

    /// Returns the heap of the context, created on first use.
    fn with_heap<T>(&self, use_heap: impl FnOnce(&mut KernelHeap) -> T) -> Option<T> {
        let mut state = self.driver.lock();
        let context = state.contexts.valid_context_mut(self.context).ok()?;
        if context.kernel_heap().is_none() {
            let size = context.limits().malloc_heap() as u64;
            let owner = Owner {
                context: self.context,
                device: context.device(),
            };
            let base = self
                .driver
                .memory()
                .allocate_on_device(size, owner, Purpose::Module)
                .ok()?;
            // Memory freed by one launch may be allocated by another, on any stream.
            self.driver.memory().unmark(base);
            context.set_kernel_heap(KernelHeap::new(base, size));
        }
        context.kernel_heap().map(use_heap)
    }
}

impl Runtime for Host<'_> {
    fn print(&self, text: &[u8]) {
        let mut printed = self.text();
        printed.extend_from_slice(text);
        if printed.len() > self.max_printed.saturating_mul(2) {
            // The buffer is a ring: the oldest text is lost.
            let lost = printed.len() - self.max_printed;
            printed.drain(..lost);
        }
    }

    fn write_assertion(&self, text: &[u8]) {
        // A program that closed the output discards it.
        let _ = std::io::stderr().write_all(text);
    }

    fn continues_after(&self, fault: &Report) -> bool {
        self.driver.report_survivable(fault)
    }

    fn allocate(&self, size: u64) -> Option<u64> {
        let address = self.with_heap(|heap| heap.allocate(size)).flatten()?;
        self.driver.memory().record_fresh(address, size);
        Some(address)
    }

    fn free(&self, address: u64) -> bool {
        self.with_heap(|heap| heap.free(address)).unwrap_or(false)
    }

    fn set_condition(&self, handle: u64, value: u32) {
        if let Some(conditions) = self.conditions {
            conditions.lock().set(handle, value);
        }
    }

    fn texture(&self, handle: u64) -> Option<Arc<Texture>> {
        cached(&self.textures, handle, || {
            self.driver.texture_for_kernels(handle)
        })
    }

    fn surface(&self, handle: u64) -> Option<Arc<Surface>> {
        cached(&self.surfaces, handle, || {
            self.driver.surface_for_kernels(handle)
        })
    }
}

/// Returns the cached result of `find` for a handle.
fn cached<T>(
    cache: &Mutex<HashMap<u64, Arc<T>>>,
    handle: u64,
    find: impl FnOnce() -> Option<T>,
) -> Option<Arc<T>> {
    let mut cache = cache.lock();
    if let Some(object) = cache.get(&handle) {
        return Some(Arc::clone(object));
    }
    let object = Arc::new(find()?);
    cache.insert(handle, Arc::clone(&object));
    Some(object)
}
