//! Every public function of the driver and memory crates that may call the driver is in the list of operations of a
//! contract test file, so that the tests over all operations include it. Exceptions are listed here with their reasons.
#![cfg(not(miri))]

mod interface;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use curium_tests::uses_cuda;

use self::interface::Interface;
use crate::operations;

/// The reason used for a function whose result type is the only sign of a driver call.
const FALLIBLE: &str = "it returns a `Result`";

/// Methods that check their arguments and make no driver call, on any type.
const CHECKS: &[&str] = &[
    "cast",
    "chunks",
    "pitched",
    "region",
    "row",
    "row_mut",
    "slice",
    "slice_mut",
    "split_at",
    "split_at_mut",
];

/// Functions that are not operations or cannot be tested here, each with its reason.
const EXEMPT: &[(&str, &str)] = &[
    (
        "CopyBatch::copy",
        "collects a copy; `CopyBatch::enqueue` calls the driver",
    ),
    ("CopyBatch::copy_pitched", "as for `CopyBatch::copy`"),
    ("DecompressBatch::add", "as for `CopyBatch::copy`"),
    ("DiskCache::clear", "works on files; see `disk_cache`"),
    ("DiskCache::get", "as for `DiskCache::clear`"),
    ("DiskCache::open", "as for `DiskCache::clear`"),
    ("DiskCache::put", "as for `DiskCache::clear`"),
    ("DiskCache::remove", "as for `DiskCache::clear`"),
    ("DiskCache::usage", "as for `DiskCache::clear`"),
    ("Driver::version", "returns what loading the driver read"),
    (
        "BorrowedBuffer::new",
        "checks its length, and calls no driver",
    ),
    (
        "ExternalResource::from_table",
        "checks a table, and calls no driver; see `resource_table`",
    ),
    (
        "Graph::as_raw",
        "checks that the graph is intact, and calls no driver",
    ),
    ("Graph::as_raw_node", "as for `Graph::as_raw`"),
    ("Graph::node_from_raw", "as for `Graph::as_raw`"),
    (
        "HostPitchedSlice::new",
        "checks its shape, and calls no driver",
    ),
    ("HostPitchedSliceMut::new", "as for `HostPitchedSlice::new`"),
    ("Image::from_bytes", "checks bytes, and calls no driver"),
    ("Image::from_file", "as for `Image::from_bytes`"),
    ("Image::from_ptx", "as for `Image::from_bytes`"),
    ("Snapshot::write", "writes to a writer"),
    (
        "CheckpointProcess::checkpoint",
        "no simulator brings a process so far; the tests beside it do, on a table of their own",
    ),
    ("CheckpointProcess::lock", "as for `checkpoint`"),
    ("CheckpointProcess::restore", "as for `checkpoint`"),
    ("CheckpointProcess::restore_thread", "as for `checkpoint`"),
    ("CheckpointProcess::unlock", "as for `checkpoint`"),
    (
        "Context::enter",
        "a building block of operations: each of them that needs a current context uses it",
    ),
    ("Context::entered", "as for `Context::enter`"),
    ("Driver::expect_same", "as for `Context::entered`"),
    (
        "Exclusive::acquire",
        "a lock, which calls no driver; see `reentry`",
    ),
    ("Stream::drain", "as for `Context::entered`; see `teardown`"),
    (
        "Stream::refuse_outside_scope",
        "as for `Context::entered`; see `capture_closure`",
    ),
    (
        "Stream::expect_running",
        "as for `Stream::refuse_outside_scope`",
    ),
    (
        "Stream::pooled_event",
        "as for `Context::entered`; see `event_pool`",
    ),
    (
        "Stream::record_pooled_event",
        "as for `Stream::pooled_event`",
    ),
    (
        "Stream::refuse_capture",
        "as for `Stream::refuse_outside_scope`",
    ),
    (
        "capture_guard::refuse_wait",
        "as for `Stream::refuse_outside_scope`",
    ),
    (
        "capture_mode::with_relaxed_capture_mode",
        "as for `Context::entered`; see `capture`",
    ),
    (
        "capture_mode::with_relaxed_capture_mode_if_possible",
        "as for `with_relaxed_capture_mode`",
    ),
    (
        "Context::pop",
        "changes the stack by design; see `context_stack`",
    ),
    ("Context::push", "as for `pop`"),
    ("Context::set_current", "as for `pop`"),
    ("Context::unset_current", "as for `pop`"),
    (
        "AccessGuard::new",
        "enters a capture, and calls no driver; see `lease`",
    ),
    ("AccessGuard::blocking", "as for `AccessGuard::new`"),
    ("Accesses::revoke", "as for `AccessGuard::new`"),
    ("Accesses::view", "as for `AccessGuard::new`"),
    (
        "Array::borrow_raw",
        "describes what other code made; see `foreign_code`",
    ),
    (
        "ExternalBuffer::close",
        "the simulator has no other interface to share with",
    ),
    ("ExternalMemory::close", "as for `ExternalBuffer`"),
    ("ExternalMemory::map", "as for `ExternalBuffer`"),
    (
        "ExternalMemory::map_image",
        "the tests beside it bring functions of their own; see `external`",
    ),
    ("ExternalSemaphore::close", "as for `ExternalBuffer`"),
    (
        "ExternalSemaphore::signal",
        "as for `ExternalMemory::map_image`",
    ),
    (
        "ExternalSemaphore::wait",
        "as for `ExternalMemory::map_image`",
    ),
    #[cfg(not(target_os = "linux"))]
    ("IpcMemory::close", "as for `MemoryPool::export_pointer`"),
    #[cfg(not(target_os = "linux"))]
    ("IpcMemory::open", "as for `MemoryPool::export_pointer`"),
    #[cfg(not(target_os = "linux"))]
    ("IpcMemoryHandle::of", "as for `MemoryPool::export_pointer`"),
    #[cfg(not(target_os = "linux"))]
    (
        "PinnedBuffer::zeroed_on_node",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(all(unix, not(target_os = "linux")))]
    (
        "MemoryPool::export_fd",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(all(unix, not(target_os = "linux")))]
    (
        "MemoryPool::import_fd",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(all(unix, not(target_os = "linux")))]
    (
        "PhysicalMemory::export_fd",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(all(unix, not(target_os = "linux")))]
    (
        "PhysicalMemory::import_fd",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(windows)]
    (
        "ExternalMemory::import_win32",
        "the simulator has no Win32 handles; see `win32`",
    ),
    #[cfg(windows)]
    (
        "ExternalSemaphore::import_win32",
        "as for `ExternalMemory::import_win32`",
    ),
    #[cfg(windows)]
    (
        "MemoryPool::export_win32",
        "as for `ExternalMemory::import_win32`",
    ),
    #[cfg(windows)]
    (
        "MemoryPool::import_win32",
        "as for `ExternalMemory::import_win32`",
    ),
    #[cfg(not(target_os = "linux"))]
    (
        "MemoryPool::export_pointer",
        "the simulator shares memory on Linux only",
    ),
    #[cfg(not(target_os = "linux"))]
    (
        "MemoryPool::import_pointer",
        "as for `MemoryPool::export_pointer`",
    ),
    #[cfg(windows)]
    (
        "PhysicalMemory::export_win32",
        "as for `ExternalMemory::import_win32`",
    ),
    #[cfg(windows)]
    (
        "PhysicalMemory::import_win32",
        "as for `ExternalMemory::import_win32`",
    ),
    #[cfg(not(target_os = "linux"))]
    ("PoolMemory::close", "as for `MemoryPool::export_pointer`"),
    ("MipmappedArray::borrow_raw", "as for `Array::borrow_raw`"),
    (
        "MulticastBinding::close",
        "as for `ExternalMemory::map_image`",
    ),
    (
        "MulticastObject::add_device",
        "as for `ExternalMemory::map_image`",
    ),
    (
        "MulticastObject::bind",
        "as for `ExternalMemory::map_image`",
    ),
    (
        "MulticastObject::close",
        "as for `ExternalMemory::map_image`",
    ),
    ("Graph::add_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::add_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::semaphore_signal_count", "as for `ExternalBuffer`"),
    ("Graph::semaphore_wait_count", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Device::first", "loads this machine's driver"),
    ("DiskCache::of_user", "reads the environment"),
    (
        "Driver::from_provider",
        "initializes another driver; every test that uses one does",
    ),
    ("Pending::detach", "enqueues nothing; see `copy`"),
    (
        "AllocationRecorder::flush",
        "waits for a writer of lines, and calls no driver",
    ),
    ("Registered::scope", "as for `new`; see `host_memory`"),
    ("RegisteredRef::scope", "as for `Registered::scope`"),
    (
        "Staging::set_options",
        "changes what the context holds; see `staging`",
    ),
    ("Staging::trim", "as for `set_options`"),
    (
        "Driver::load",
        "loads this machine's driver; see the tests of the loader",
    ),
    ("Driver::load_from", "as for `load`"),
    (
        "Driver::gl_devices",
        "the simulator has no graphics; the tests beside it bring functions of their own",
    ),
    ("EglConsumer::acquire", "as for `gl_devices`"),
    ("EglConsumer::close", "as for `gl_devices`"),
    ("EglConsumer::connect", "as for `gl_devices`"),
    ("EglFrame::close", "as for `gl_devices`"),
    ("EglFrame::planes", "as for `gl_devices`"),
    ("EglProducer::close", "as for `gl_devices`"),
    ("EglProducer::connect", "as for `gl_devices`"),
    ("EglProducer::present", "as for `gl_devices`"),
    ("EglProducer::take_back", "as for `gl_devices`"),
    ("Event::from_egl_sync", "as for `gl_devices`"),
    ("GraphicsResource::close", "as for `gl_devices`"),
    ("GraphicsResource::egl_frame", "as for `gl_devices`"),
    ("GraphicsResource::from_egl_image", "as for `gl_devices`"),
    ("GraphicsResource::from_gl_buffer", "as for `gl_devices`"),
    ("GraphicsResource::from_gl_image", "as for `gl_devices`"),
    ("GraphicsResource::map", "as for `gl_devices`"),
    ("GraphicsResource::set_access", "as for `gl_devices`"),
    ("MappedGraphics::array", "as for `gl_devices`"),
    ("MappedGraphics::close", "as for `gl_devices`"),
    ("MappedGraphics::mipmapped_array", "as for `gl_devices`"),
    ("MappedGraphics::pointer", "as for `gl_devices`"),
    (
        "until_done::until_done",
        "copies from and to slices end with it",
    ),
];

/// Returns the names of all operations, without the suffix that distinguishes variants of one function.
fn operations() -> BTreeSet<&'static str> {
    let all = operations::all().into_iter().chain(operations::solitary());
    all.flat_map(|(name, _)| name.split(',').next().unwrap_or(name).split(" and "))
        .collect()
}

/// Returns the public functions of the driver and memory crates.
fn interface() -> Interface {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    Interface::of(&[&crates.join("driver"), &crates.join("memory")])
}

/// Returns `true` if the result type of `name` is its only reason, and its name marks a check of arguments.
fn is_check(name: &str, reason: &str) -> bool {
    reason == FALLIBLE
        && name
            .split("::")
            .last()
            .is_some_and(|method| CHECKS.contains(&method))
}

#[test]
fn every_public_function_that_may_call_the_driver_is_an_operation() {
    if uses_cuda() {
        return;
    }
    let (interface, done) = (interface(), operations());
    let exempt: BTreeSet<&str> = EXEMPT.iter().map(|(name, _)| *name).collect();
    let public: BTreeSet<&str> = interface.functions.keys().map(String::as_str).collect();
    let with_reason = interface
        .functions
        .iter()
        .filter_map(|(name, reason)| Some((name.as_str(), (*reason)?)));
    let expected: BTreeMap<_, _> = with_reason
        .filter(|(name, reason)| !is_check(name, reason))
        .collect();
    assert!(
        expected.len() > 600,
        "{} of {} public functions may call the driver",
        expected.len(),
        public.len()
    );
    let missing = expected
        .iter()
        .filter(|(name, _)| !done.contains(*name) && !exempt.contains(*name));
    let missing: Vec<_> = missing
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    let stale: Vec<_> = exempt
        .iter()
        .filter(|name| done.contains(*name) || !expected.contains_key(*name))
        .collect();
    let unknown: Vec<_> = done.difference(&public).collect();
    assert!(
        missing.is_empty() && stale.is_empty() && unknown.is_empty(),
        "public functions that are neither in the list `operations` of a contract test file nor exempt: {missing:#?}\n\
         exemptions that are not needed: {stale:#?}\n\
         operations on functions that are not public: {unknown:#?}"
    );
}

#[test]
fn public_function_may_call_the_driver_if_its_body_its_documentation_or_its_result_shows_it() {
    let interface = Interface::of_text(
        "pub struct Stream; pub(crate) struct Private; pub trait Kept { fn keep(&self) -> Result<()>; }
        impl Stream {
            pub fn called(&self) { unsafe { call!(self.driver(), cuInit(0)) }; }
            /// Returns the count.
            ///
            /// CUDA: `cuInit`.
            pub fn documented(&self) -> usize { 0 }
            pub fn fallible(&self) -> Result<usize> { Ok(0) }
            pub fn pending(&self) -> Pending<Self> { todo!() }
            pub fn plain(&self) -> Option<usize> { None }
            #[doc(hidden)]
            pub fn hidden(&self) -> Result<()> { Ok(()) }
            fn private(&self) -> Result<()> { Ok(()) }
        }
        impl Private { pub fn fallible(&self) -> Result<()> { Ok(()) } }
        impl Kept for Stream { fn keep(&self) -> Result<()> { Ok(()) } }
        impl Other for Stream { fn other(&self) -> Result<()> { Ok(()) } }
        #[cfg(any(not(any(unix, windows)), all(unix, windows)))]
        impl Stream { pub fn absent(&self) -> Result<()> { Ok(()) } }
        impl Stream { #[cfg(all(unix, windows))] pub fn absent_too(&self) -> Result<()> { Ok(()) } }
        #[cfg(test)]
        mod tests { pub fn tested() -> Result<()> { Ok(()) } }
        pub fn free() -> Result<()> { Ok(()) }",
    );
    let reasons = interface
        .functions
        .iter()
        .map(|(name, reason)| (name.as_str(), reason.is_some()));
    let expected = [
        ("Stream::called", true),
        ("Stream::documented", true),
        ("Stream::fallible", true),
        ("Stream::keep", true),
        ("Stream::pending", true),
        ("Stream::plain", false),
        ("text::free", true),
    ];
    assert_eq!(reasons.collect::<Vec<_>>(), expected);
}

#[test]
fn every_kernel_of_the_test_set_is_named_by_a_contract_test() {
    if uses_cuda() {
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = text_below(&tests.join("tests/contract"), "rs");
    let code = text_below(&tests.join("kernels"), "ptx");
    let entries = code
        .split(".entry ")
        .skip(1)
        .filter_map(|entry| entry.split_once('('));
    let kernels: Vec<_> = entries.map(|(name, _)| name.trim()).collect();
    assert!(kernels.len() > 100, "{} kernels", kernels.len());
    let unused: Vec<_> = kernels
        .iter()
        .filter(|name| !text.contains(&format!("\"{name}\"")))
        .collect();
    assert!(
        unused.is_empty(),
        "kernels that no contract test names: {unused:?}"
    );
}

/// Returns the text of all files below `folder` with this extension.
fn text_below(folder: &Path, extension: &str) -> String {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let texts = paths.map(|path| match path.extension() {
        _ if path.is_dir() => text_below(&path, extension),
        Some(found) if found == extension => {
            std::fs::read_to_string(&path).expect("the file can be read")
        }
        _ => String::new(),
    });
    texts.collect()
}
