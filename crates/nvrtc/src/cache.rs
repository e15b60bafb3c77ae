//! The disk cache of compiled programs.
//!
//! A cached program is used if source, headers, options, name expressions and the build of NVRTC are the same. Files
//! that the source includes from disk are compared too. Programs are not cached if an `#include` is computed, or if
//! options read or write other files (precompiled headers, times, bundled headers).

mod fingerprint;
mod includes;
mod record;

use curium_driver::{CacheKey, DiskCache};

use self::includes::Includes;
use crate::{CompileOptions, CompiledProgram, Nvrtc, Program, Result};

/// Returns the compiled program from `cache` or `nvrtc`. Failures of the cache are ignored.
pub(crate) fn compile(
    cache: &DiskCache,
    nvrtc: &Nvrtc,
    program: &Program,
    options: &CompileOptions,
) -> Result<CompiledProgram> {
    let Some(key) = key(nvrtc, program, options) else {
        return nvrtc.compile_anew(program, options);
    };
    let found = cache
        .get(&key)
        .ok()
        .flatten()
        .and_then(|record| record::read(&record, program));
    if let Some(compiled) = found {
        return Ok(compiled);
    }
    let compiled = nvrtc.compile_anew(program, options)?;
    // The program is valid even if the cache has no room for it.
    let _ = cache.put(&key, &record::write(&compiled));
    Ok(compiled)
}

/// Returns everything that determines the output of the compiler; `None` if it is unknown.
fn key(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> Option<CacheKey> {
    let arguments = options.to_arguments();
    let includes = Includes::of(program, &arguments)?;
    // SAFETY: only `compile` stores entries under the key, and it stores outputs of NVRTC.
    let mut key = unsafe { CacheKey::of_code("nvrtc") }
        .with("version", &nvrtc.version().as_raw().to_le_bytes())
        .with("build", &nvrtc.build().to_le_bytes())
        .with("name", program.name.as_bytes())
        .with("source", program.source.as_bytes());
    for (name, text) in &program.headers {
        key = key
            .with("header", name.as_bytes())
            .with("text", text.as_bytes());
    }
    let lists = [
        ("expression", &program.expressions),
        ("option", &arguments),
        ("file", &includes.facts),
    ];
    for (name, value) in lists
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| (name, value)))
    {
        key = key.with(name, value.as_bytes());
    }
    Some(key)
}
