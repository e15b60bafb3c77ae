//! Every public function of the crates that wrap the driver, and that may call it, is registered as
//! an operation by a contract test file, so that the tests over all operations include it.
//! Exemptions are listed here.
#![cfg(not(miri))]

mod interface;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use curium_tests::uses_cuda;

use self::interface::Interface;
use crate::operations;

/// The reason used for a function whose result type is the only sign of a driver call.
const FALLIBLE: &str = "it returns a `Result`";

/// Methods that check their arguments and make no driver call, on any type.
const CHECKS: &[&str] = &[
    "cast",
    "cast_mut",
    "chunks",
    "chunks_mut",
    "pitched",
    "pitched_mut",
    "region",
    "row",
    "row_mut",
    "slice",
    "slice_mut",
    "split_at",
    "split_at_mut",
];

/// Functions that need not be operations.
struct Exemption {
    /// The reason, for the reader.
    #[expect(dead_code, reason = "documentation")]
    reason: &'static str,
    functions: &'static [&'static str],
}

/// Functions that are not operations or cannot be tested here, by reason.
const EXEMPT: &[Exemption] = &[
    Exemption {
        reason: "collects a copy; `CopyBatch::enqueue` calls the driver",
        functions: &[
            "CopyBatch::copy",
            "CopyBatch::copy_pitched",
            "DecompressBatch::add",
        ],
    },
    Exemption {
        reason: "works on files; see `disk_cache`",
        functions: &[
            "DiskCache::clear",
            "DiskCache::get",
            "DiskCache::open",
            "DiskCache::put",
            "DiskCache::remove",
            "DiskCache::usage",
        ],
    },
    Exemption {
        reason: "returns a version that was read when the driver was loaded",
        functions: &["Driver::version"],
    },
    Exemption {
        reason: "calls CUPTI and no driver; see `trace`",
        functions: &["Trace::with_options"],
    },
    Exemption {
        reason: "checks its length, and calls no driver",
        functions: &["BorrowedBuffer::new"],
    },
    Exemption {
        reason: "checks a table, and calls no driver; see `resource_table`",
        functions: &["ExternalResource::from_table"],
    },
    Exemption {
        reason: "checks that the graph is intact, and calls no driver",
        functions: &[
            "Graph::as_raw",
            "Graph::as_raw_node",
            "Graph::node_from_raw",
        ],
    },
    Exemption {
        reason: "checks its shape, and calls no driver",
        functions: &["HostPitchedSlice::new", "HostPitchedSliceMut::new"],
    },
    Exemption {
        reason: "checks bytes, and calls no driver",
        functions: &["Image::from_bytes", "Image::from_file", "Image::from_ptx"],
    },
    Exemption {
        reason: "writes to a writer",
        functions: &["Snapshot::write"],
    },
    Exemption {
        reason: "requires a checkpointed process, which no simulator has; see `checkpoint`",
        functions: &[
            "CheckpointProcess::checkpoint",
            "CheckpointProcess::lock",
            "CheckpointProcess::restore",
            "CheckpointProcess::restore_thread",
            "CheckpointProcess::unlock",
        ],
    },
    Exemption {
        reason: "a building block of operations, which cover it",
        functions: &[
            "Context::enter",
            "Context::entered",
            "Driver::check_same",
            "Stream::check_enqueue",
            "Stream::check_enqueue_now",
            "Stream::check_enqueue_uncaptured",
            "Stream::drain",
            "Stream::enqueue",
            "Stream::enqueue_or",
            "Stream::enqueue_uncaptured",
            "Stream::enqueue_now",
            "Stream::enqueue_release",
            "Stream::pooled_event",
            "Stream::record_pooled_event",
            "capture_guard::refuse_wait",
            "capture_mode::with_relaxed_capture_mode",
            "capture_mode::with_relaxed_capture_mode_if_possible",
            "extend::array_descriptor",
        ],
    },
    Exemption {
        reason: "a lock, which calls no driver; see `reentry`",
        functions: &["Exclusive::acquire"],
    },
    Exemption {
        reason: "changes the stack by design; see `context_stack`",
        functions: &[
            "Context::pop",
            "Context::push",
            "Context::set_current",
            "Context::unset_current",
        ],
    },
    Exemption {
        reason: "records accesses, and calls no driver; see `lease`",
        functions: &["Accesses::revoke", "Accesses::view"],
    },
    Exemption {
        reason: "borrows a handle of other code; see `foreign_code`",
        functions: &["Array::borrow_raw", "MipmappedArray::borrow_raw"],
    },
    Exemption {
        reason: "requires another graphics or compute API, which the simulator does not have",
        functions: &[
            "ExternalBuffer::close",
            "ExternalMemory::close",
            "ExternalMemory::map",
            "ExternalSemaphore::close",
            "Graph::add_semaphore_signal",
            "Graph::add_semaphore_wait",
            "Graph::set_semaphore_signal",
            "Graph::set_semaphore_wait",
            "Graph::semaphore_signal_count",
            "Graph::semaphore_wait_count",
            "GraphExec::set_semaphore_signal",
            "GraphExec::set_semaphore_wait",
        ],
    },
    Exemption {
        reason: "requires driver functions that only `external` supplies",
        functions: &[
            "ExternalMemory::map_image",
            "ExternalSemaphore::signal",
            "ExternalSemaphore::wait",
            "MulticastBinding::close",
            "MulticastObject::add_device",
            "MulticastObject::bind",
            "MulticastObject::close",
        ],
    },
    #[cfg(not(target_os = "linux"))]
    Exemption {
        reason: "the simulator shares memory on Linux only",
        functions: &[
            "IpcMemory::close",
            "IpcMemory::open",
            "IpcMemoryHandle::of",
            "PinnedBuffer::zeroed_on_node",
            "MemoryPool::export_pointer",
            "MemoryPool::import_pointer",
            "PoolMemory::close",
        ],
    },
    #[cfg(all(unix, not(target_os = "linux")))]
    Exemption {
        reason: "the simulator shares memory on Linux only",
        functions: &[
            "MemoryPool::export_fd",
            "MemoryPool::import_fd",
            "PhysicalMemory::export_fd",
            "PhysicalMemory::import_fd",
        ],
    },
    #[cfg(windows)]
    Exemption {
        reason: "the simulator has no Win32 handles; see `win32`",
        functions: &[
            "ExternalMemory::import_win32",
            "ExternalSemaphore::import_win32",
            "MemoryPool::export_win32",
            "MemoryPool::import_win32",
            "PhysicalMemory::export_win32",
            "PhysicalMemory::import_win32",
        ],
    },
    Exemption {
        reason: "loads this machine's driver; see the tests of the loader",
        functions: &["Device::first", "Driver::load", "Driver::load_from"],
    },
    Exemption {
        reason: "reads the environment",
        functions: &["DiskCache::for_user"],
    },
    Exemption {
        reason: "initializes a driver; every test does",
        functions: &["Driver::from_provider"],
    },
    Exemption {
        reason: "enqueues nothing; see `copy`",
        functions: &["Pending::detach"],
    },
    Exemption {
        reason: "waits for a writer, and calls no driver",
        functions: &["AllocationRecorder::flush"],
    },
    Exemption {
        reason: "registers for a scope; see `host_memory`",
        functions: &["Registered::scope", "RegisteredRef::scope"],
    },
    Exemption {
        reason: "configures the staging buffers; see `staging`",
        functions: &["Staging::set_options", "Staging::trim"],
    },
    Exemption {
        reason: "requires a graphics API, which the simulator does not have",
        functions: &[
            "GlDevices::query",
            "EglConsumer::acquire",
            "EglConsumer::close",
            "EglConsumer::connect",
            "EglFrame::close",
            "EglFrame::planes",
            "EglProducer::close",
            "EglProducer::connect",
            "EglProducer::present",
            "EglProducer::take_back",
            "GraphicsResource::close",
            "GraphicsResource::egl_frame",
            "GraphicsResource::from_egl_image",
            "GraphicsResource::from_gl_buffer",
            "GraphicsResource::from_gl_image",
            "GraphicsResource::map",
            "GraphicsResource::set_access",
            "egl::event_from_egl_sync",
            "MappedGraphics::array",
            "MappedGraphics::close",
            "MappedGraphics::mipmapped_array",
            "MappedGraphics::pointer",
        ],
    },
    Exemption {
        reason: "the end of a copy from or to a slice; such copies cover it",
        functions: &["until_done::until_done"],
    },
];

/// Returns the names of all operations, without the suffix that distinguishes variants of one
/// function.
fn operations() -> BTreeSet<&'static str> {
    let all = operations::all().into_iter().chain(operations::solitary());
    all.flat_map(|(name, _)| name.split(',').next().unwrap_or(name).split(" and "))
        .collect()
}

/// Returns the public functions of the crates that wrap the driver.
fn interface() -> Interface {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let folders = ["driver", "memory", "interop", "diagnostics"].map(|name| crates.join(name));
    Interface::from_crates(&folders.each_ref().map(PathBuf::as_path))
}

/// Returns `true` if the result type of `name` is its only reason, and its name marks a check of
/// arguments.
fn is_check(name: &str, reason: &str) -> bool {
    reason == FALLIBLE
        && name
            .split("::")
            .last()
            .is_some_and(|method| CHECKS.contains(&method))
}

/// Every public function that may call the driver is an operation.
#[test]
fn driver_calls_are_operations() {
    if uses_cuda() {
        return curium_tests::skip("needs the sources");
    }
    let interface = interface();
    let done = operations();
    let exempt: BTreeSet<&str> = EXEMPT
        .iter()
        .flat_map(|exemption| exemption.functions)
        .copied()
        .collect();
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

/// A public function may call the driver if its body its documentation or its result shows it.
#[test]
fn driver_calls_are_detected() {
    let interface = Interface::from_text(
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

/// Every kernel of the test set is named by a contract test.
#[test]
fn every_test_kernel_is_used() {
    if uses_cuda() {
        return curium_tests::skip("needs the sources");
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
    let paths = entries.map(|entry| entry.expect("failed to list the folder").path());
    let texts = paths.map(|path| match path.extension() {
        _ if path.is_dir() => text_below(&path, extension),
        Some(found) if found == extension => {
            std::fs::read_to_string(&path).expect("failed to read the file")
        }
        _ => String::new(),
    });
    texts.collect()
}
