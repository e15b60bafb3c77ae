//! The operations are complete: whatever users can call of the driver and the memory layer is one of them if it may call the
//! driver, or stands here with the reason why it is not.
#![cfg(not(miri))]

mod callees;
mod source;
mod uncovered;

use std::collections::BTreeSet;
use std::path::Path;

use curium_tests::uses_cuda;

use self::source::Source;
use self::uncovered::UNCOVERED;
use crate::operations;

/// Functions that are no operations, or none that can be tried here, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    (
        "CheckpointProcess::checkpoint",
        "no simulator brings a process so far; the tests beside it do, on a table of their own",
    ),
    ("CheckpointProcess::lock", "as for `checkpoint`"),
    ("CheckpointProcess::restore", "as for `checkpoint`"),
    ("CheckpointProcess::restore_thread", "as for `checkpoint`"),
    ("CheckpointProcess::unlock", "as for `checkpoint`"),
    ("Context::pop", "changes the stack, as it says; see `context_stack`"),
    ("Context::push", "as for `pop`"),
    ("Context::set_current", "as for `pop`"),
    ("Context::unset_current", "as for `pop`"),
    ("CoreDumpListener::close", "needs a newer driver than the simulator plays; see the tests beside it"),
    ("CoreDumpListener::on_completion", "as for `close`"),
    ("CoreDumpListener::on_start", "as for `close`"),
    ("DecompressBatch::enqueue", "no simulated device has the engine; the test beside it sees the refusal"),
    ("Array::from_raw_borrowed", "describes what other code made; see `foreign_code`"),
    ("Array::map_tiles", "needs a sparse array; see the tests of arrays"),
    ("Array::memory_requirements", "as for `map_tiles`"),
    ("Array::sparse_properties", "as for `map_tiles`"),
    ("MipmappedArray::map_tiles", "as for `Array::map_tiles`"),
    ("MipmappedArray::memory_requirements", "as for `Array::map_tiles`"),
    ("MipmappedArray::sparse_properties", "as for `Array::map_tiles`"),
    ("ExternalBuffer::close", "the simulator has no other interface to share with"),
    ("ExternalMemory::close", "as for `ExternalBuffer`"),
    ("ExternalMemory::import_fd", "as for `ExternalBuffer`"),
    ("ExternalMemory::map", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::close", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::for_graph", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::import_fd", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::signal", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::wait", "as for `ExternalBuffer`"),
    ("MulticastBinding::close", "the simulator has no switch that multicasts"),
    ("MulticastObject::add_device", "as for `MulticastBinding`"),
    ("MulticastObject::bind", "as for `MulticastBinding`"),
    ("MulticastObject::new", "as for `MulticastBinding`"),
    ("MulticastOptions::granularity", "as for `MulticastBinding`"),
    ("Graph::add_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::add_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::semaphore_signal_count", "as for `ExternalBuffer`"),
    ("Graph::semaphore_wait_count", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Surface::bind", "as the arguments of arrays' buffers; see the tests of textures"),
    ("Texture::bind", "as for `Surface::bind`"),
    ("Device::first", "loads this machine's driver"),
    ("Driver::load", "loads this machine's driver; see the tests of the loader"),
    ("Driver::load_from", "as for `load`"),
    ("Driver::gl_devices", "the simulator has no graphics; the tests beside it bring functions of their own"),
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
    ("Image::compile_cached", "finds on the disk what an earlier call has left; see `disk_cache`"),
    ("Library::from_ptx_cached", "as for `compile_cached`"),
    ("Module::from_ptx_cached", "as for `compile_cached`"),
    ("Stream::launch_host_function_with", "needs a newer driver than the simulator plays; see `host_function`"),
    ("NvtxRange::new", "calls a library of tools, and not the driver"),
    ("Trace::write", "ends what the operation on `on_stream` begins"),
    ("nvtx::nvtx_mark", "as for `NvtxRange::new`"),
];

/// Functions that call no driver but a namesake of a function that does: an iterator's `take`, the `as_raw` of a value.
const NAMESAKES: &[&str] = &[
    "CacheKey::new",
    "CacheKey::with",
    "DiskCache::clear",
    "DiskCache::get",
    "DiskCache::of_user",
    "DiskCache::open",
    "DiskCache::put",
    "DiskCache::remove",
    "Accesses::after_partial_write",
    "Accesses::after_read",
    "Accesses::after_write",
    "Accesses::allocated",
    "Accesses::reads_freely_on",
    "Accesses::writes_freely_on",
    "CachingResource::context",
    "CachingResource::statistics",
    "DeviceVec::as_pointer",
    "DeviceVec::stream",
    "MipmappedArray::driver",
    "MipmappedArray::stream",
    "EventPool::new",
    "EventPool::with_capacity",
    "Image::from_bytes",
    "Image::from_file",
    "Image::from_ptx",
    "LaunchAttributes::with_access_policy_window",
    "LaunchAttributes::with_carveout",
    "LaunchAttributes::with_cluster_portability",
    "LaunchAttributes::with_cluster_scheduling",
    "LaunchAttributes::with_launch_completion_event",
    "LaunchAttributes::with_memory_sync_domain",
    "LaunchAttributes::with_programmatic_event",
    "LaunchAttributes::with_shared_memory_mode",
    "Reclaiming::statistics",
    "Staging::byte_len",
    "StreamPool::new",
    "StreamPool::with_capacity",
];

fn read(crates: &[&str]) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut source = Source::default();
    crates.iter().for_each(|name| source.read(&folder.join(name)));
    source
}

/// The names of all operations, without what tells operations on one function apart.
fn operations() -> BTreeSet<&'static str> {
    let all = operations::all().into_iter().chain(operations::solitary());
    all.flat_map(|(name, _)| name.split(',').next().unwrap_or(name).split(" and ")).collect()
}

#[test]
fn every_public_function_that_may_call_the_driver_is_an_operation() {
    if uses_cuda() {
        return;
    }
    let (source, done) = (read(&["driver", "memory"]), operations());
    let reaching = source.reaching();
    let exempt: BTreeSet<&str> =
        EXEMPT.iter().map(|(name, _)| *name).chain(NAMESAKES.iter().chain(UNCOVERED).copied()).collect();
    let public: BTreeSet<&str> = source.public().collect();
    let expected: BTreeSet<&str> = public.iter().copied().filter(|name| reaching.contains_key(name)).collect();
    assert!(expected.len() > 250, "{} of {} public functions may call the driver", expected.len(), public.len());
    let missing: Vec<_> = expected
        .iter()
        .filter(|name| !done.contains(**name) && !exempt.contains(**name))
        .map(|name| format!("{name}, which calls {}", reaching[name]))
        .collect();
    let reasons = EXEMPT.iter().map(|(name, _)| *name);
    let stale: Vec<_> = reasons.filter(|name| done.contains(*name) || !public.contains(*name)).collect();
    let unknown: Vec<_> = done.difference(&public).collect();
    let is_complete = missing.is_empty() && stale.is_empty() && unknown.is_empty();
    assert!(
        is_complete,
        "public functions that are neither operations nor exempt: {missing:#?}\n\
         functions that are exempt and need not be: {stale:#?}\n\
         operations on functions that are not public: {unknown:#?}"
    );
}
