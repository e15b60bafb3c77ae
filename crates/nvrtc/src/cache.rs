//! Compiled programs in a cache on disk.
//!
//! What was compiled once is read in place of being compiled again: from the same source, headers, options and name expressions, by the
//! same build of NVRTC. Files that the source includes from disk are read and compared too. Programs whose files cannot be told, since
//! an `#include` is computed, and those that options make read or write other files (precompiled headers, times, headers of
//! NVRTC's) are compiled each time.

mod fingerprint;
mod includes;
mod record;

use curium_driver::{CacheKey, DiskCache};

use self::includes::Includes;
use crate::{CompileOptions, CompiledProgram, Nvrtc, Program, Result};

/// The compiled program, from `cache` or from `nvrtc`. A cache that cannot be read or written is none.
pub(crate) fn compile(
    cache: &DiskCache,
    nvrtc: &Nvrtc,
    program: &Program,
    options: &CompileOptions,
) -> Result<CompiledProgram> {
    let Some(key) = key(nvrtc, program, options) else { return nvrtc.compile_anew(program, options) };
    let found = cache.get(&key).ok().flatten().and_then(|record| record::read(&record, program));
    if let Some(compiled) = found {
        return Ok(compiled);
    }
    let compiled = nvrtc.compile_anew(program, options)?;
    // Whoever has no room for the entry still has the program.
    let _ = cache.put(&key, &record::write(&compiled));
    Ok(compiled)
}

/// Everything that decides what the compiler makes; `None` if it is not known.
fn key(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> Option<CacheKey> {
    let arguments = options.to_arguments();
    let includes = Includes::of(program, &arguments)?;
    // SAFETY: only `compile` keeps something under the key, and it keeps what NVRTC made.
    let mut key = unsafe { CacheKey::of_code("nvrtc") }
        .with("version", &nvrtc.version().as_raw().to_le_bytes())
        .with("build", &nvrtc.build().to_le_bytes())
        .with("name", program.name.as_bytes())
        .with("source", program.source.as_bytes());
    for (name, text) in &program.headers {
        key = key.with("header", name.as_bytes()).with("text", text.as_bytes());
    }
    let lists = [("expression", &program.expressions), ("option", &arguments), ("file", &includes.facts)];
    for (name, value) in lists.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value))) {
        key = key.with(name, value.as_bytes());
    }
    Some(key)
}
