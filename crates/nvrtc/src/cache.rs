//! The disk cache of compiled programs.
//!
//! A cached program is used if source, headers, options, name expressions and the build of NVRTC
//! are the same. Files that the source may include from disk are compared, too: see [`Includes`].
//! Programs are not cached if the source computes the operand of an `#include`, or if options read
//! or write other files (precompiled headers, times).

mod record;

use curium_driver::{CacheKey, DiskCache};

use crate::includes::Includes;
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
    let entry = cache.get(&key).ok().flatten();
    if let Some(compiled) = entry.and_then(|record| record::read(&record, program)) {
        return Ok(compiled);
    }
    let compiled = nvrtc.compile_anew(program, options)?;
    // A header that changed during the compilation may have been read before or after the change.
    if self::key(nvrtc, program, options).as_ref() == Some(&key) {
        // The program is valid even if the cache has no room for it.
        let _ = cache.put(&key, &record::write(&compiled));
    }
    Ok(compiled)
}

/// Returns everything that determines the output of the compiler; `None` if it is unknown.
fn key(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> Option<CacheKey> {
    let arguments = options.to_arguments();
    let includes = Includes::scan(program, &arguments).fingerprint()?;
    // SAFETY: only `compile` stores entries under the key, and it stores outputs of NVRTC.
    let mut key = unsafe { CacheKey::for_code("nvrtc") }
        .with("version", &nvrtc.version().as_raw().to_le_bytes())
        .with("build", &nvrtc.build().to_le_bytes())
        .with("name", program.name.as_bytes())
        .with("source", program.source.as_bytes())
        .with("includes", &includes.to_le_bytes());
    for (name, text) in &program.headers {
        key = key
            .with("header", name.as_bytes())
            .with("text", text.as_bytes());
    }
    for expression in &program.expressions {
        key = key.with("expression", expression.as_bytes());
    }
    for argument in &arguments {
        key = key.with("option", argument.as_bytes());
    }
    Some(key)
}
