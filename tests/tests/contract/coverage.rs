//! The operations are complete: whatever users can call of the driver and the memory layer is one of them if it may call the
//! driver, or stands here with the reason why it is not.
#![cfg(not(miri))]

mod callees;
mod foreign;
mod item;
mod known_type;
mod source;
mod type_index;
mod typing;

use std::collections::BTreeSet;
use std::path::Path;

use curium_tests::uses_cuda;

use self::source::Source;
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
    ("AccessGuard::new", "enters a capture, and calls no driver; see `lease`"),
    ("AccessGuard::blocking", "as for `AccessGuard::new`"),
    ("Accesses::revoke", "as for `AccessGuard::new`"),
    ("Accesses::view", "as for `AccessGuard::new`"),
    ("Array::from_raw_borrowed", "describes what other code made; see `foreign_code`"),
    ("ExternalBuffer::close", "the simulator has no other interface to share with"),
    ("ExternalMemory::close", "as for `ExternalBuffer`"),
    ("ExternalMemory::map", "as for `ExternalBuffer`"),
    ("ExternalMemory::map_image", "the tests beside it bring functions of their own; see `external`"),
    ("ExternalSemaphore::close", "as for `ExternalBuffer`"),
    ("ExternalSemaphore::signal", "as for `ExternalMemory::map_image`"),
    ("ExternalSemaphore::wait", "as for `ExternalMemory::map_image`"),
    ("MipmappedArray::from_raw_borrowed", "as for `Array::from_raw_borrowed`"),
    ("MulticastBinding::close", "as for `ExternalMemory::map_image`"),
    ("MulticastObject::add_device", "as for `ExternalMemory::map_image`"),
    ("MulticastObject::bind", "as for `ExternalMemory::map_image`"),
    ("MulticastObject::close", "as for `ExternalMemory::map_image`"),
    ("Graph::add_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::add_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("Graph::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Graph::semaphore_signal_count", "as for `ExternalBuffer`"),
    ("Graph::semaphore_wait_count", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_signal", "as for `ExternalBuffer`"),
    ("GraphExec::set_semaphore_wait", "as for `ExternalBuffer`"),
    ("Device::first", "loads this machine's driver"),
    ("DiskCache::of_user", "asks the environment for a folder"),
    ("Driver::from_provider", "initializes another driver; every test that uses one does"),
    ("Pending::detach", "enqueues nothing; see `copy`"),
    ("Recording::flush", "waits for a writer of lines, and calls no driver"),
    ("Registered::scope", "as for `new`; see `host_memory`"),
    ("RegisteredRef::scope", "as for `Registered::scope`"),
    ("Staging::byte_len", "reads what the context holds; see `staging`"),
    ("Staging::options", "as for `byte_len`"),
    ("Staging::set_options", "as for `byte_len`"),
    ("Staging::trim", "as for `byte_len`"),
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
    ("NvtxRange::new", "calls a library of tools, and not the driver"),
    ("nvtx::nvtx_mark", "as for `NvtxRange::new`"),
];

fn read(crates: &[&str]) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut source = Source::default();
    crates.iter().for_each(|name| source.read(&folder.join(name)));
    source.finish();
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
    let exempt: BTreeSet<&str> = EXEMPT.iter().map(|(name, _)| *name).collect();
    let public: BTreeSet<&str> = source.public().collect();
    let expected: BTreeSet<&str> = public.iter().copied().filter(|name| reaching.contains_key(name)).collect();
    assert!(expected.len() > 250, "{} of {} public functions may call the driver", expected.len(), public.len());
    let missing: Vec<_> = expected
        .iter()
        .filter(|name| !done.contains(**name) && !exempt.contains(**name))
        .map(|name| format!("{name}, which calls {}", reaching[name]))
        .collect();
    let reasons = EXEMPT.iter().map(|(name, _)| *name);
    let stale: Vec<_> = reasons.filter(|name| done.contains(*name) || !expected.contains(*name)).collect();
    let unknown: Vec<_> = done.difference(&public).collect();
    let is_complete = missing.is_empty() && stale.is_empty() && unknown.is_empty();
    assert!(
        is_complete,
        "public functions that are neither operations nor exempt: {missing:#?}\n\
         functions that are exempt and need not be: {stale:#?}\n\
         operations on functions that are not public: {unknown:#?}"
    );
}

#[test]
fn what_a_function_calls_is_told_by_type_where_one_is_written_and_by_name_elsewhere() {
    let source = Source::of_text(
        "struct Far; struct Near<T> { far: Arc<Far>, list: Vec<Far>, map: HashMap<u32, Far>, lock: Mutex<Far>, of: T }
        impl Far { fn take(&self) -> Option<u32> { unsafe { call!(driver, cuInit(0)) }; None } fn near(&self) -> u32 { 1 } }
        trait Reach { fn reach(&self); }
        impl Reach for Far { fn reach(&self) { self.take(); } }
        trait Rest { fn rest(&self) {} }
        impl Rest for Far { fn rest(&self) {} }
        macro_rules! taking { () => { fn made(&self) { self.far.take(); } }; }
        impl<T: Reach> Near<T> {
            fn a_field(&self) { self.far.take(); }
            fn a_loop(&self) { for far in &self.list { far.take(); } }
            fn a_map(&self) { self.map.values().for_each(|far| drop(far.take())); }
            fn a_lock(&self) { let far = self.lock.lock(); far.take(); }
            fn a_bound(&self) { self.of.reach(); }
            fn a_path(&self) { Far::take(&self.far); }
            fn a_name(&self) { other_crate::far().take(); }
            fn a_function_passed_on(&self) { self.list.iter().map(Far::take).count(); }
            fn a_macro(&self) { assert!(self.far.take().is_none()); }
            taking!();
            fn no_option(&self, mut option: Option<Far>) { option.take(); }
            fn no_result(&self) { self.far.near().take(); }
            fn no_shadow(&self) { let far = String::new(); far.take(); }
            fn no_closure(&self, words: &[u32]) { words.iter().for_each(|word| drop(word.take())); }
            fn no_local(&self, take: u32) { other_crate::use_of(take); }
            fn no_bound<R: Rest>(&self, rest: R) { rest.rest(); }
        }
        fn take() { unsafe { call!(driver, cuInit(0)) }; }",
    );
    let reaching = source.reaching();
    let of_near: BTreeSet<&str> = reaching.keys().filter_map(|name| name.strip_prefix("Near::")).collect();
    let expected = [
        "a_bound",
        "a_field",
        "a_function_passed_on",
        "a_lock",
        "a_loop",
        "a_macro",
        "a_map",
        "a_name",
        "a_path",
        "made",
    ];
    assert_eq!(of_near, BTreeSet::from(expected));
}

#[test]
fn every_kernel_of_the_test_set_is_named_by_a_contract_test() {
    if uses_cuda() {
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = text_below(&tests.join("tests/contract"), "rs");
    let code = text_below(&tests.join("kernels"), "ptx");
    let entries = code.split(".entry ").skip(1).filter_map(|entry| entry.split_once('('));
    let kernels: Vec<_> = entries.map(|(name, _)| name.trim()).collect();
    assert!(kernels.len() > 100, "{} kernels", kernels.len());
    let unused: Vec<_> = kernels.iter().filter(|name| !text.contains(&format!("\"{name}\""))).collect();
    assert!(unused.is_empty(), "kernels that no contract test names: {unused:?}");
}

/// The text of all files below `folder` with this extension.
fn text_below(folder: &Path, extension: &str) -> String {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let texts = paths.map(|path| match path.extension() {
        _ if path.is_dir() => text_below(&path, extension),
        Some(found) if found == extension => std::fs::read_to_string(&path).expect("the file can be read"),
        _ => String::new(),
    });
    texts.collect()
}
