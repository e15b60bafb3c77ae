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
    ("AllocationRecorder::flush", "waits for a writer of lines, and calls no driver"),
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

/// The tests that the tables in a section of the page on testing name, each of which must be there.
fn named_tests(heading: &str) -> BTreeSet<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(tests.join("../docs/testing.md")).expect("the page can be read");
    let mut named = BTreeSet::new();
    for row in rows(&page, heading).filter(|row| row.len() == 5) {
        let text: String = quoted(row[2]).iter().map(|file| source(tests, file)).collect();
        for test in quoted(row[3]) {
            assert!(text.contains(&format!("fn {test}()")), "`{}` names the test `{test}`, which is not there", row[1]);
            named.insert(test);
        }
    }
    named
}

/// The text of a file that a table names: one of the contract tests, or one by its path in the repository, which may be a folder.
fn source(tests: &Path, file: &str) -> String {
    let places = [tests.join("tests/contract"), tests.join("..")];
    let name = file.trim_end_matches(".rs");
    let read = |place: &Path| std::fs::read_to_string(place.join(format!("{name}.rs"))).ok();
    let is_folder = tests.join("..").join(file).is_dir();
    let text = places.iter().find_map(|place| read(place)).or_else(|| is_folder.then(String::new));
    text.unwrap_or_else(|| panic!("the page names the file `{file}`, which is not there"))
}

#[test]
fn every_test_that_the_page_on_testing_names_exists() {
    if !uses_cuda() {
        let sections = [
            "What libraries before this one can do",
            "What the driver crate can do",
            "What memory can do",
            "What goes wrong",
        ];
        for section in sections {
            let named = named_tests(&format!("## {section}")).len();
            assert!(named > 15, "the page names {named} tests in {section}");
        }
    }
}

#[test]
fn every_test_of_the_drivers_behaviour_stands_in_its_table() {
    if uses_cuda() {
        return;
    }
    let named = named_tests("## What the driver does");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/behaviour");
    let mut found = 0;
    for file in std::fs::read_dir(folder).expect("there is such a folder") {
        let path = file.expect("the folder can be listed").path();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let tests = text.split("#[test]\nfn ").skip(1).filter_map(|test| test.split_once('('));
        for (test, _) in tests {
            found += 1;
            assert!(named.contains(test), "the page on testing does not name `{test}` of {}", path.display());
        }
    }
    assert!(found > 30, "there are {found} tests");
}

#[test]
fn page_on_testing_lists_exactly_the_kernels_of_the_test_set() {
    if uses_cuda() {
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(tests.join("../docs/testing.md")).expect("the page can be read");
    let mut listed = Vec::new();
    for row in rows(&page, "## The kernels of the test set").filter(|row| row.len() == 9 && row[1].starts_with('`')) {
        let [kernel, file, test] = [row[1], row[4], row[5]].map(|cell| quoted(cell).concat());
        let text = std::fs::read_to_string(tests.join(format!("tests/contract/{file}.rs"))).expect("the file is there");
        let body = text.split_once(&format!("fn {test}()")).map(|(_, after)| after).unwrap_or_default();
        let body = body.split_once("#[test]").map_or(body, |(body, _)| body);
        assert!(body.contains(&format!("\"{kernel}\"")), "`{test}` of `{file}` has no kernel `{kernel}`");
        listed.push(kernel);
    }
    let sources = std::fs::read_dir(tests.join("kernels")).expect("the folder is there");
    let sources = sources.map(|source| source.expect("it can be read").path());
    let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "cu"));
    let text: String = sources.map(|path| std::fs::read_to_string(path).expect("it can be read")).collect();
    let head = |after: &str| after.split_once("void ").map(|(_, head)| head.to_owned());
    let mut kernels: Vec<_> =
        text.split("__global__").skip(1).filter_map(head).filter_map(|head| name(&head)).collect();
    kernels.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, kernels);
}

/// The name of the kernel whose head this begins: the first that is no attribute with arguments.
fn name(head: &str) -> Option<String> {
    let mut names = head.split(|character: char| !character.is_alphanumeric() && character != '_');
    names.find(|name| !name.is_empty() && !name.starts_with("__") && name.parse::<u32>().is_err()).map(str::to_owned)
}

/// The cells of each line in a section of a page.
fn rows<'a>(page: &'a str, heading: &str) -> impl Iterator<Item = Vec<&'a str>> {
    let (_, section) = page.split_once(heading).expect("the page has the section");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    section.lines().map(|line| line.split('|').map(str::trim).collect())
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
