//! Damaged machine code: 1,000 cubins and fat binaries, none of which crashes the process through
//! safe code.
#![cfg(not(miri))]

mod damage;

use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use curium_driver::{
    CacheKey, DiskCache, Image, ImageKind, JitOptions, Library, Linker, Module, Result,
};
use curium_tests::{
    TestDriver, TestResult, kernels, on_driver, outcome_of_new_process, outcomes_of_processes,
    uses_cuda,
};

/// The number of images, and the number that one process loads.
const IMAGES: u64 = 1000;
const PORTION: u64 = 100;
/// The time limit for restarting crashed processes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which loading one image counts as a hang.
const LOAD_TIMEOUT: Duration = Duration::from_secs(2);

type Fill = (&'static mut [u32], u32, u32);

#[test]
fn damaged_images_crash_nothing() -> TestResult {
    let portions = IMAGES / PORTION;
    let outcomes = outcomes_of_processes(portions as usize, "", |number, _| {
        let start = number as u64 * PORTION;
        on_driver(|test| load_by_safe_code(test, start..start + PORTION))
    })?;
    for (number, (success, written)) in outcomes.into_iter().enumerate() {
        assert!(
            success,
            "the process with portion {number} died:\n{written}"
        );
    }
    Ok(())
}

/// Demonstrates that loading such images requires `unsafe`: some of them crash the process.
#[test]
fn damaged_images_crash_drivers() -> TestResult {
    if !uses_cuda() {
        return curium_tests::skip("the simulator has no machine code");
    }
    let begin = Instant::now();
    let mut next = 0;
    let mut crashed = Vec::new();
    while next < IMAGES && begin.elapsed() < PATIENCE {
        let outcome = outcome_of_new_process(&next.to_string(), |start| {
            let start = start.parse()?;
            on_driver(|test| load_by_unsafe_code(test, start..IMAGES))
        });
        let Err(written) = outcome else {
            next = IMAGES;
            break;
        };
        // The harness starts the line of the first.
        let last = written
            .lines()
            .filter_map(|line| line.rsplit_once("image ")?.1.parse::<u64>().ok())
            .next_back()
            .unwrap_or_else(|| panic!("the process died before the first image:\n{written}"));
        crashed.push(last);
        next = last + 1;
    }
    let count = crashed.len();
    tell(&format!(
        "{count} of {next} damaged images crashed or hung the driver through unsafe code: {crashed:?}"
    ))?;
    Ok(())
}

/// Written directly to the stream, because the harness captures the output of macros in tests that
/// pass.
fn tell(text: &str) -> TestResult {
    writeln!(std::io::stderr(), "{text}")?;
    Ok(())
}

/// Returns machine code for the device of `test`, compiled by its driver.
fn cubins(test: &TestDriver) -> Result<Vec<Vec<u8>>> {
    let mut cubins = Vec::new();
    for ptx in [kernels::FILL, kernels::REDUCE, kernels::SAXPY] {
        let mut linker = Linker::new(&test.context(), &JitOptions::new())?;
        linker.add_image("ptx", &Image::from_ptx(ptx)?, &JitOptions::new())?;
        cubins.push(linker.complete()?.as_bytes().to_vec());
    }
    Ok(cubins)
}

fn damaged_images(
    test: &TestDriver,
    range: Range<u64>,
) -> Result<impl Iterator<Item = (u64, Vec<u8>)> + use<>> {
    let capability = test.device().compute_capability()?;
    let cubins = cubins(test)?;
    let architecture = capability.major * 10 + capability.minor;
    Ok(range.map(move |index| (index, damage::damaged(&cubins, architecture, index))))
}

/// A cache in a temporary directory, which is removed on drop.
struct Scratch(DiskCache);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("curium-damaged-{}", std::process::id()));
        Ok(Self(DiskCache::open(folder)?))
    }

    /// Returns the only entry.
    fn entry(&self) -> TestResult<PathBuf> {
        let mut files = fs::read_dir(self.0.folder())?;
        Ok(files.next().ok_or("no cache entry")??.path())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(self.0.folder()).expect("the test owns the folder");
    }
}

/// Passes each image to every safe function that could load it.
fn load_by_safe_code(test: &TestDriver, range: Range<u64>) -> TestResult {
    let context = test.context();
    let options = JitOptions::new();
    let scratch = Scratch::new()?;
    let library =
        |cache: &DiskCache| Library::from_ptx_cached(&context, kernels::FILL, &options, cache);
    drop(library(&scratch.0)?);
    let entry = scratch.entry()?;
    let linked = cubins(test)?.swap_remove(0).len();
    let whole = fs::read(&entry)?;
    let head = &whole[..whole.len() - linked.min(whole.len())];
    for (index, image) in damaged_images(test, range)? {
        let text = String::from_utf8_lossy(&image);
        drop((
            Image::from_ptx(&text),
            Library::from_ptx(&context, &text),
            Module::from_ptx(&context, &text),
        ));
        let key = CacheKey::new("ptx").with("ptx", kernels::FILL.as_bytes());
        scratch.0.put(&key, &image)?;
        scratch.0.remove(&key)?;
        // The file of an entry, and one with the header of a valid entry.
        let file = if index % 2 == 0 {
            image
        } else {
            [head, &image].concat()
        };
        fs::write(&entry, file)?;
        let kernel = match index / 2 % 2 {
            0 => library(&scratch.0).and_then(|library| library.kernel::<Fill>("fill")),
            _ => Module::from_ptx_cached(&context, kernels::FILL, &options, &scratch.0)
                .and_then(|module| module.kernel("fill")),
        };
        kernel.map_err(|error| format!("after image {index}: {error}"))?;
    }
    Ok(())
}

/// Loads each image with the driver. It may crash the process.
fn load_by_unsafe_code(test: &TestDriver, range: Range<u64>) -> TestResult {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let context = test.context();
    std::thread::spawn(|| end_when_stuck(&LOADED));
    for (index, image) in damaged_images(test, range)? {
        tell_parent(index)?;
        LOADED.fetch_add(1, Ordering::Relaxed);
        let kind = if image.starts_with(b"\x7fELF") {
            ImageKind::Cubin
        } else {
            ImageKind::FatBinary
        };
        // The driver reads past the end of a truncated image.
        let image = [image.as_slice(), &[0; 4096]].concat();
        // SAFETY: the image is not valid compiler output; its effect is the subject of the test, in
        // a process that may crash.
        let image = unsafe { Image::from_bytes_unchecked(kind, &image) };
        drop(Module::from_image(&context, &image, &JitOptions::new()));
        drop(Library::from_image(&context, &image, &JitOptions::new()));
    }
    Ok(())
}

/// Ends this process if `count` does not change for [`LOAD_TIMEOUT`].
fn end_when_stuck(count: &AtomicU64) -> ! {
    let mut last = count.load(Ordering::Relaxed);
    loop {
        std::thread::sleep(LOAD_TIMEOUT);
        let now = count.load(Ordering::Relaxed);
        if now == last && now != 0 {
            std::process::abort();
        }
        last = now;
    }
}

/// Writes the index of the next image and flushes it.
fn tell_parent(index: u64) -> TestResult {
    let mut output = std::io::stdout();
    writeln!(output, "image {index}")?;
    output.flush()?;
    Ok(())
}
