//! Host services for running kernels: printing and memory allocation.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::Arc;

use curium_ptx::exec::{Report, Runtime, RuntimeUse, Surface, Texture};

use crate::driver::graph::SharedConditions;
use crate::driver::{Context, Driver};
use crate::handle::Id;
use crate::lock::{Mutex, MutexGuard, Rank};
use crate::memory::{Owner, Purpose};

/// The host services of one launch.
pub(super) struct Host<'a> {
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

/// The heap that kernels of a context allocate from: one allocation, cut up.
pub(crate) struct KernelHeap {
    /// Unused ranges: address and size.
    free: BTreeMap<u64, u64>,
    /// The sizes of allocated blocks.
    used: HashMap<u64, u64>,
}

/// The alignment of allocated addresses.
const ALIGNMENT: u64 = 16;

impl<'a> Host<'a> {
    pub(super) fn new(
        driver: &'a Driver,
        context: Id<Context>,
        runtime: RuntimeUse,
        conditions: Option<&'a SharedConditions>,
    ) -> Self {
        let max_printed = driver
            .lock()
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
    pub(super) fn flush(&self) {
        let text = std::mem::take(&mut *self.text());
        if !text.is_empty() {
            self.driver.append_output(&text);
        }
    }

    fn text(&self) -> MutexGuard<'_, Vec<u8>> {
        self.printed.lock()
    }

    /// Returns the heap of the context, created on first use.
    fn with_heap<T>(&self, use_heap: impl FnOnce(&mut KernelHeap) -> T) -> Option<T> {
        let mut state = self.driver.lock();
        let context = state.valid_context_mut(self.context).ok()?;
        if context.kernel_heap.is_none() {
            let size = context.limits().malloc_heap() as u64;
            let owner = Owner {
                context: self.context,
                device: context.device,
            };
            let base = self
                .driver
                .memory()
                .allocate_on_device(size, owner, Purpose::Module)
                .ok()?;
            // Memory freed by one launch may be allocated by another, on any stream.
            self.driver.memory().unmark(base);
            context.kernel_heap = Some(KernelHeap::new(base, size));
        }
        context.kernel_heap.as_mut().map(use_heap)
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

impl KernelHeap {
    fn new(base: u64, size: u64) -> Self {
        Self {
            free: BTreeMap::from([(base, size)]),
            used: HashMap::new(),
        }
    }

    /// Returns the first range that is large enough.
    fn allocate(&mut self, size: u64) -> Option<u64> {
        let size = size.checked_next_multiple_of(ALIGNMENT)?;
        let (address, free_size) = self
            .free
            .iter()
            .map(|(address, free_size)| (*address, *free_size))
            .find(|(_, free_size)| *free_size >= size)?;
        self.free.remove(&address);
        if free_size > size {
            self.free.insert(address + size, free_size - size);
        }
        self.used.insert(address, size);
        Some(address)
    }

    /// Frees a range, and coalesces it with free neighbors.
    fn free(&mut self, mut address: u64) -> bool {
        let Some(mut size) = self.used.remove(&address) else {
            return false;
        };
        if let Some(after) = self.free.remove(&(address + size)) {
            size += after;
        }
        if let Some((&before, &length)) = self.free.range(..address).next_back()
            && before + length == address
        {
            address = before;
            size += length;
        }
        self.free.insert(address, size);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ranges_are_joined_and_used_again() {
        let mut heap = KernelHeap::new(4096, 64);
        let [a, b, c] = [1, 17, 16].map(|size| heap.allocate(size).expect("there is room"));
        assert_eq!([a, b, c], [4096, 4112, 4144]);
        assert_eq!(heap.allocate(1), None);
        assert!(heap.free(a) && heap.free(c) && heap.free(b));
        assert!(!heap.free(b), "it was freed already");
        assert_eq!(heap.allocate(64), Some(4096));
        assert_eq!(heap.allocate(u64::MAX), None);
    }
}
