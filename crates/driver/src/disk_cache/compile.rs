//! Compiled PTX, cached between runs.

use std::sync::OnceLock;

use crate::disk_cache::{CacheKey, DiskCache};
use crate::{Context, Image, ImageKind, JitOptions, Linker, Result, emit_event};

/// The file in which Linux reports the driver release. Releases for the same CUDA version have
/// different compilers.
const RELEASE: &str = "/sys/module/nvidia/version";

impl Image<'static> {
    /// Returns the machine code of a PTX text for the device of `context`, from `cache` if present;
    /// otherwise compiles and caches it.
    ///
    /// Code is found if the text, the options, the architecture and the driver are the same. A
    /// failure of the cache is reported to `tracing`, and the code is compiled. Options that borrow
    /// from the program, such as [`JitOptions::symbols`], disable caching.
    ///
    /// CUDA: `cuLinkCreate_v2`, `cuLinkAddData_v2`, `cuLinkComplete`, if the code is not cached.
    ///
    /// # Errors
    ///
    /// As for [`Linker::add_image`] and [`Linker::complete`].
    pub fn compile_cached(
        cache: &DiskCache,
        context: &Context,
        ptx: &str,
        options: &JitOptions<'_>,
    ) -> Result<Self> {
        let image = Image::ptx("Image::compile_cached", ptx)?;
        if options.borrows() {
            return compile(context, &image, options);
        }
        Ok(find_or_compile(
            cache,
            &key(context, &image, options)?,
            context,
            &image,
            options,
        )?
        .0)
    }
}

/// Calls `load` with the machine code of `ptx`, from `cache` if present. Cached code that `load`
/// rejects is removed and compiled again.
///
/// # Errors
///
/// The error of `load` for newly compiled code, or of the compiler.
pub(crate) fn load_cached<T>(
    cache: &DiskCache,
    context: &Context,
    ptx: &Image<'_>,
    options: &JitOptions<'_>,
    load: impl Fn(&Image<'_>) -> Result<T>,
) -> Result<T> {
    if options.borrows() {
        return load(&compile(context, ptx, options)?);
    }
    let key = key(context, ptx, options)?;
    let (code, was_cached) = find_or_compile(cache, &key, context, ptx, options)?;
    match load(&code) {
        Err(error) if was_cached && !error.is_sticky() => {
            emit_event!(WARN, %error, "the cached image cannot be loaded and is compiled again");
            report(cache.remove(&key));
            load(&find_or_compile(cache, &key, context, ptx, options)?.0)
        }
        result => result,
    }
}

/// Returns the code under `key`, compiling and caching it if it is missing, and `true` if it was
/// cached.
fn find_or_compile(
    cache: &DiskCache,
    key: &CacheKey,
    context: &Context,
    ptx: &Image<'_>,
    options: &JitOptions<'_>,
) -> Result<(Image<'static>, bool)> {
    if let Some(cached) = find(cache, key) {
        return Ok((cached, true));
    }
    let compiled = compile(context, ptx, options)?;
    report(cache.put(key, compiled.as_bytes()));
    Ok((compiled, false))
}

/// Reports a failure of the cache, which does not fail the load.
fn report(result: Result<()>) {
    if let Err(error) = result {
        emit_event!(WARN, %error, "the compiled image cannot be cached");
    }
}

/// Returns a key of everything that determines the compiled code of `ptx`. It contains the device's
/// architecture even if the options name another.
fn key(context: &Context, ptx: &Image<'_>, options: &JitOptions<'_>) -> Result<CacheKey> {
    static DRIVER: OnceLock<String> = OnceLock::new();
    let release = DRIVER.get_or_init(|| std::fs::read_to_string(RELEASE).unwrap_or_default());
    let capability = context.device().compute_capability()?;
    let mut choices = Vec::new();
    for (option, value) in options.numbers() {
        choices.extend(option.0.to_le_bytes());
        choices.extend(value.to_le_bytes());
    }
    // SAFETY: only output of the driver's linker is stored under the key.
    let key = unsafe { CacheKey::for_code("ptx") };
    Ok(key
        .with("driver", context.driver().version().to_string().as_bytes())
        .with("release", release.trim().as_bytes())
        .with(
            "architecture",
            format!("{}.{}", capability.major, capability.minor).as_bytes(),
        )
        .with("options", &choices)
        .with("ptx", ptx.as_bytes()))
}

/// Returns the code stored under `key`.
fn find(cache: &DiskCache, key: &CacheKey) -> Option<Image<'static>> {
    let bytes = match cache.get(key) {
        Ok(bytes) => bytes?,
        Err(error) => {
            emit_event!(WARN, %error, "the cached image cannot be read");
            return None;
        }
    };
    // SAFETY: only `find_or_compile` stores entries under such keys, and it stores output of the
    // driver's linker; the cache returns it unmodified.
    match unsafe { Image::from_bytes(&bytes) } {
        Ok(image) if image.kind() == ImageKind::Cubin => Some(image.into_owned()),
        _ => None,
    }
}

fn compile(
    context: &Context,
    image: &Image<'_>,
    options: &JitOptions<'_>,
) -> Result<Image<'static>> {
    let mut linker = Linker::new(context, options)?;
    linker.add_image("ptx", image, options)?;
    Ok(linker.complete()?.image().into_owned())
}
