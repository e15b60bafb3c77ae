//! Compiled PTX in a [`DiskCache`].

use std::fs;
use std::path::PathBuf;
#[cfg(all(target_os = "linux", not(miri)))]
use std::time::{Duration, Instant};

use curium_driver::{
    CacheKey, DiskCache, Error, Function, JitOptions, LaunchConfig, Library, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
#[cfg(all(target_os = "linux", not(miri)))]
use curium_tests::beside_a_process_that_is_killed;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_simulator, simulator_test};

type Fill = (&'static mut [u32], u32, u32);

/// A cache in a temporary directory, which is removed on drop.
struct Scratch(DiskCache);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("curium-{name}-{}", std::process::id()));
        // An earlier run may have left it.
        let _ = fs::remove_dir_all(&folder);
        Self(DiskCache::open(folder).expect("failed to open the cache"))
    }

    fn entries(&self) -> TestResult<Vec<PathBuf>> {
        Ok(fs::read_dir(self.0.folder())?
            .map(|file| file.expect("a file").path())
            .collect())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder harms no later test.
        let _ = fs::remove_dir_all(self.0.folder());
    }
}

fn load(test: &TestDriver, cache: &DiskCache) -> TestResult<Library> {
    let loaded =
        Library::from_ptx_cached(&test.context(), kernels::FILL, &JitOptions::new(), cache);
    Ok(loaded?)
}

/// Asserts that the kernel of the library works.
fn assert_fills(test: &TestDriver, library: &Library) -> TestResult {
    let stream = test.stream();
    let fill = library.kernel::<Fill>("fill")?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 40)?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(40),
            (&mut buffer, 9, 40),
        )
    }?;
    assert_eq!(buffer.to_vec()?, [9; 40]);
    Ok(())
}

#[driver_test]
fn code_is_compiled_once_and_found_again(test: &TestDriver) -> TestResult {
    let scratch = Scratch::new("found");
    let first = test.assert_calls(Function::cuLinkComplete, 1, || load(test, &scratch.0))?;
    assert_fills(test, &first)?;
    drop(first);
    assert_eq!(scratch.0.usage()?.entries, 1);
    let second = test.assert_calls(Function::cuLinkCreate_v2, 0, || load(test, &scratch.0))?;
    assert_fills(test, &second)?;
    let module = Module::from_ptx_cached(
        &test.context(),
        kernels::FILL,
        &JitOptions::new(),
        &scratch.0,
    );
    assert!(module?.kernel::<Fill>("fill").is_ok());
    Ok(())
}

#[driver_test]
fn other_options_are_other_code(test: &TestDriver) -> TestResult {
    let scratch = Scratch::new("options");
    drop(load(test, &scratch.0)?);
    let options = JitOptions::new().with_optimization_level(0);
    let library = test.assert_calls(Function::cuLinkComplete, 1, || {
        Library::from_ptx_cached(&test.context(), kernels::FILL, &options, &scratch.0)
    });
    assert_fills(test, &library?)?;
    assert_eq!(scratch.entries()?.len(), 2);
    Ok(())
}

#[driver_test]
fn damaged_entry_is_compiled_again(test: &TestDriver) -> TestResult {
    let scratch = Scratch::new("damaged");
    drop(load(test, &scratch.0)?);
    let path = scratch.entries()?.pop().ok_or("no cache entry")?;
    let mut bytes = fs::read(&path)?;
    *bytes.last_mut().ok_or("empty file")? ^= 1;
    fs::write(&path, &bytes)?;
    let library = test.assert_calls(Function::cuLinkComplete, 1, || load(test, &scratch.0))?;
    assert_fills(test, &library)?;
    test.assert_calls(Function::cuLinkComplete, 0, || load(test, &scratch.0))?;
    Ok(())
}

/// An entry with a key of the program is never loaded as code.
#[test]
fn program_entry_is_no_code() -> TestResult {
    const CUBIN: &[u8] = include_bytes!("../../../crates/driver/tests/images/bump.sm_75.cubin");
    on_simulator(Config::new(), |test, _| -> TestResult {
        let scratch = Scratch::new("forged");
        let release = fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
        let capability = test.device().compute_capability()?;
        // The parts of the cache key that a program can reconstruct.
        let key = CacheKey::new("ptx")
            .with("driver", test.driver().version().to_string().as_bytes())
            .with("release", release.trim().as_bytes())
            .with(
                "architecture",
                format!("{}.{}", capability.major, capability.minor).as_bytes(),
            )
            .with("options", &[])
            .with("ptx", &[kernels::FILL.as_bytes(), &[0]].concat());
        scratch.0.put(&key, CUBIN)?;
        // A cached image that the driver rejected would be loaded twice.
        let library =
            test.assert_calls(Function::cuLibraryLoadData, 1, || load(test, &scratch.0))?;
        assert_fills(test, &library)?;
        assert_eq!(
            scratch.0.get(&key)?.as_deref(),
            Some(CUBIN),
            "the program's entry stays"
        );
        Ok(())
    })?;
    Ok(())
}

/// A folder that went away costs a compilation and no more.
#[driver_test]
fn removed_folder_costs_one_compilation(test: &TestDriver) -> TestResult {
    let scratch = Scratch::new("gone");
    fs::remove_dir_all(scratch.0.folder())?;
    for _ in 0..2 {
        let library = test.assert_calls(Function::cuLinkComplete, 1, || load(test, &scratch.0))?;
        assert_fills(test, &library)?;
    }
    Ok(())
}

/// A cached code that the driver rejects is compiled again.
#[simulator_test]
fn rejected_cached_code_is_recompiled(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let scratch = Scratch::new("refused");
    drop(load(test, &scratch.0)?);
    simulator.inject(
        Fault::on(Function::cuLibraryLoadData).returns(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU),
    );
    let library = test.assert_calls(Function::cuLinkComplete, 1, || load(test, &scratch.0))?;
    assert_fills(test, &library)?;
    assert_eq!(scratch.entries()?.len(), 1);
    Ok(())
}

/// A PTX that does not compile is an error with the log and leaves no entry.
#[driver_test]
fn failed_compilation_leaves_no_entry(test: &TestDriver) -> TestResult {
    let scratch = Scratch::new("wrong");
    let ptx =
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry bad() { nonsense; }\n";
    let error = Library::from_ptx_cached(&test.context(), ptx, &JitOptions::new(), &scratch.0);
    let error = error.expect_err("there is no such instruction");
    let Error::Call(call) = &error else {
        panic!("{error}")
    };
    assert!(
        call.log.as_ref().is_some_and(|log| log.contains("line 4")),
        "{error}"
    );
    assert!(scratch.entries()?.is_empty());
    Ok(())
}

/// The test and its child processes agree on the content: an entry is the same byte, `LENGTH`
/// times.
#[cfg(all(target_os = "linux", not(miri)))]
const LENGTH: usize = 200_000;

/// A process that is killed while it writes leaves whole entries or none.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn killed_writer_leaves_no_entry() -> TestResult {
    let keys = ["a", "b"].map(|name| CacheKey::new("killed").with("name", name.as_bytes()));
    let open = |process: u32| {
        let folder = std::env::temp_dir().join(format!("curium-killed-{process}"));
        DiskCache::open(folder).expect("failed to open the cache")
    };
    let write = || {
        let cache = open(std::os::unix::process::parent_id());
        loop {
            let put = |byte: u8, key| cache.put(key, &vec![byte; LENGTH]).expect("write failed");
            (0..=u8::MAX).for_each(|byte| keys.iter().for_each(|key| put(byte, key)));
        }
    };
    let scratch = Scratch(open(std::process::id()));
    let lookup = |key| scratch.0.get(key).expect("an entry is complete or missing");
    let is_whole =
        |bytes: &Vec<u8>| bytes.len() == LENGTH && bytes.iter().all(|byte| *byte == bytes[0]);
    for _ in 0..4 {
        beside_a_process_that_is_killed(write, || {
            let mut seen = 0;
            let begin = Instant::now();
            while seen < 20 {
                assert!(
                    begin.elapsed() < Duration::from_secs(60),
                    "the other process writes nothing"
                );
                let entry = lookup(&keys[seen % 2]);
                assert!(entry.as_ref().is_none_or(is_whole));
                seen += usize::from(entry.is_some());
            }
        });
        assert!(
            keys.iter()
                .all(|key| lookup(key).is_some_and(|entry| is_whole(&entry))),
            "both were written before"
        );
    }
    scratch.0.put(&keys[0], b"the next")?;
    assert_eq!(lookup(&keys[0]).as_deref(), Some(b"the next".as_slice()));
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{DiskCache, Image, JitOptions, Library, Module};
    use curium_tests::kernels;

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[(
        "Library::from_ptx_cached and Module::from_ptx_cached and Image::compile_cached",
        |fixture| {
            let folder =
                std::env::temp_dir().join(format!("curium-operations-{}", std::process::id()));
            let cache = DiskCache::open(&folder)?;
            let options = JitOptions::new();
            let library =
                Library::from_ptx_cached(&fixture.context, kernels::FILL, &options, &cache);
            let module = Module::from_ptx_cached(&fixture.context, kernels::FILL, &options, &cache);
            let image =
                Image::compile_cached(&cache, &fixture.context, kernels::FILL, &options).map(drop);
            // It is absent if the operation failed early.
            let _ = std::fs::remove_dir_all(folder);
            image?;
            made((library?, module?))
        },
    )];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
