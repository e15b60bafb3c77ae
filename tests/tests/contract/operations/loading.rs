//! The operations that load code from sources other than a string.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use curium_driver::{Image, JitOptions, Library, LinkInput, Linker, Module, Result};
use curium_tests::kernels;

use super::{Made, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Library::from_image", |fixture| {
        made(Library::from_image(&fixture.driver, &Image::from_ptx(kernels::FILL)?, &JitOptions::new())?)
    }),
    ("Library::from_file", |fixture| {
        // SAFETY: the file is PTX.
        made(unsafe { Library::from_file(&fixture.driver, file(), &JitOptions::new()) }?)
    }),
    ("Library::untyped_kernel", |fixture| made(fixture.code.library.untyped_kernel("fill")?)),
    ("Library::into_raw", |fixture| {
        let raw = taken(Library::from_ptx(&fixture.driver, kernels::FILL)?.into_raw());
        // SAFETY: `into_raw` released ownership of the library, and it has no other owner.
        made(unsafe { Library::from_raw(&fixture.driver, raw) })
    }),
    ("Module::from_image", |fixture| {
        made(Module::from_image(&fixture.context, &Image::from_ptx(kernels::FILL)?, &JitOptions::new())?)
    }),
    ("Module::from_file", |fixture| {
        // SAFETY: the file is PTX.
        made(unsafe { Module::from_file(&fixture.context, file()) }?)
    }),
    ("Module::untyped_kernel", |fixture| made(fixture.code.module.untyped_kernel("fill")?)),
    ("Module::into_raw", |fixture| {
        let raw = taken(Module::from_ptx(&fixture.context, kernels::FILL)?.into_raw());
        // SAFETY: `into_raw` released ownership of the module, and it has no other owner.
        made(unsafe { Module::from_raw(&fixture.context, raw) })
    }),
    ("Linker::new", |fixture| made(Linker::new(&fixture.context, &JitOptions::new())?)),
    ("Linker::add_image", |fixture| {
        let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
        linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &JitOptions::new())?;
        made(linker)
    }),
    ("Linker::add_bytes", |fixture| {
        let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
        let text = [kernels::FILL.as_bytes(), &[0]].concat();
        // SAFETY: the bytes are PTX that ends with a NUL.
        unsafe { linker.add_bytes(LinkInput::Ptx, "fill", &text, &JitOptions::new()) }?;
        made(linker)
    }),
    ("Linker::add_file", |fixture| {
        let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
        // SAFETY: the file is PTX.
        unsafe { linker.add_file(LinkInput::Ptx, file(), &JitOptions::new()) }?;
        made(linker)
    }),
    ("LinkedImage::close", |fixture| linked_and_closed(&fixture.context)),
];

/// Operations that a simulator may not support.
pub(super) const SOLITARY: &[Operation] = &[
    ("Library::managed", |fixture| made(fixture.code.library.managed::<u32>("word")?)),
    ("Library::unified_function", |fixture| made(fixture.code.library.unified_function("fill")?)),
];

/// Returns the path of a PTX file, written once: the machine that runs the tests need not have the source tree.
fn file() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("curium-fill-{}.ptx", std::process::id()));
        std::fs::write(&path, kernels::FILL).expect("a file can be written");
        path
    });
    &FILE
}

/// Returns the handle of an object released by its only owner.
fn taken<T, H>(result: Result<T, H>) -> T {
    result.unwrap_or_else(|_| panic!("nobody else has it"))
}

fn linked_and_closed(context: &curium_driver::Context) -> Result<Made> {
    let options = JitOptions::new();
    let mut linker = Linker::new(context, &options)?;
    linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &options)?;
    linker.complete()?.close().map_err(|returned| returned.error).map(boxed)
}
