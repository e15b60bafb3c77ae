//! A cache of compiled programs on disk.

mod fingerprint;
mod includes;
mod record;
mod store;

use std::path::{Path, PathBuf};

use curium_driver::{CudaVersion, Driver};

use self::includes::Includes;
pub use self::store::CacheUsage;
use self::store::Store;
use crate::{CompileOptions, CompiledProgram, Error, Nvrtc, Program, Result};

/// Compiled programs on disk, for all processes of the user.
///
/// What was compiled once is read in place of being compiled again: from the same source, headers, options and name expressions, by the
/// same build of NVRTC. Files that the source includes from disk are read and compared too. Programs whose files cannot be told, since
/// an `#include` is computed, and those that options make read or write other files (precompiled headers, times, headers of
/// NVRTC's) are compiled each time.
///
/// [`Nvrtc::with_cache`] uses one. An entry is written to a file of its own, which is moved into its place when it is whole and on the disk: processes that are killed,
/// or that compile the same program, do no harm. What is read is verified. The folder is the user's alone, and what was not used for
/// the longest time goes when it outgrows its limit.
///
/// ```no_run
/// use curium_nvrtc::{Cache, CompileOptions, Nvrtc, Program};
///
/// let nvrtc = Nvrtc::load()?.with_cache(Cache::open()?);
/// let program = Program::new("empty.cu", r#"extern "C" __global__ void empty() {}"#);
/// let compiled = nvrtc.compile(&program, &CompileOptions::new())?;
/// # Ok::<(), curium_nvrtc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    store: Store,
    driver: Option<CudaVersion>,
}

impl Cache {
    /// How many bytes a cache holds at most, unless [`Cache::with_limit`] says otherwise.
    pub const DEFAULT_LIMIT: u64 = 1 << 30;

    /// The cache of this user: `nvrtc` in the folder that `CURIUM_CACHE_PATH` names, else in `curium` in `XDG_CACHE_HOME`, else in
    /// `.cache/curium` in `HOME`; on Windows in `curium` in `LOCALAPPDATA`. The folder is made if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if there is no such folder and it cannot be made, or others than the user may read or write it.
    pub fn open() -> Result<Self> {
        Self::at(Self::folder()?)
    }

    /// A cache in `folder`, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// As for [`Cache::open`].
    pub fn at(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let store = Store::open(folder, Self::DEFAULT_LIMIT).map_err(|error| file_error(folder, error))?;
        Ok(Self { store, driver: None })
    }

    /// Where [`Cache::open`] has its files.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if no environment variable tells.
    pub fn folder() -> Result<PathBuf> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = variable("CURIUM_CACHE_PATH")
            .or_else(|| Some(variable(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_CACHE_HOME" })?.join("curium")))
            .or_else(|| Some(variable("HOME")?.join(".cache").join("curium")));
        let none =
            || file_error(Path::new("cache"), std::io::Error::other("neither CURIUM_CACHE_PATH nor HOME is set"));
        Ok(base.ok_or_else(none)?.join("nvrtc"))
    }

    /// The same with another limit, in bytes. One entry is kept whatever its size.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.store.limit = bytes;
        self
    }

    /// The same with entries of their own for each version of the driver. NVRTC does not ask the driver, so this is for programs whose
    /// options were chosen by it in ways that they do not show.
    #[must_use]
    pub fn with_driver(mut self, driver: &Driver) -> Self {
        self.driver = Some(driver.version());
        self
    }

    /// The compiled program, from the cache or from `nvrtc`. A cache that cannot be read or written is none.
    pub(crate) fn compile(
        &self,
        nvrtc: &Nvrtc,
        program: &Program,
        options: &CompileOptions,
    ) -> Result<CompiledProgram> {
        let Some(key) = self.key(nvrtc, program, options) else { return nvrtc.compile_anew(program, options) };
        let found = self.store.get(&key).and_then(|record| record::read(&record, program));
        if let Some(compiled) = found {
            return Ok(compiled);
        }
        let compiled = nvrtc.compile_anew(program, options)?;
        // Whoever has no room for the entry still has the program.
        let _ = self.store.put(&key, &record::write(&compiled));
        Ok(compiled)
    }

    /// How much the cache holds.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the folder cannot be read.
    pub fn usage(&self) -> Result<CacheUsage> {
        self.store.usage().map_err(|error| file_error(&self.store.folder, error))
    }

    /// Removes every entry, and tells what they were.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the folder cannot be read, or a file cannot be removed.
    pub fn clear(&self) -> Result<CacheUsage> {
        self.store.clear().map_err(|error| file_error(&self.store.folder, error))
    }

    /// Everything that decides what the compiler makes; `None` if it is not known.
    fn key(&self, nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> Option<Vec<u8>> {
        let arguments = options.to_arguments();
        let includes = Includes::of(program, &arguments)?;
        let mut key = record::Writer::default();
        key.number(u64::from(nvrtc.version().as_raw()));
        key.number(u64::from(nvrtc.build()));
        key.number(u64::from(self.driver.map_or(0, CudaVersion::as_raw)));
        key.text(&program.name);
        key.text(&program.source);
        key.texts(program.headers.iter().flat_map(|(name, text)| [name, text]));
        key.texts(&program.expressions);
        key.texts(&arguments);
        key.texts(&includes.facts);
        Some(key.bytes)
    }
}

fn file_error(path: &Path, error: std::io::Error) -> Error {
    Error::File { path: path.display().to_string().into(), error }
}
