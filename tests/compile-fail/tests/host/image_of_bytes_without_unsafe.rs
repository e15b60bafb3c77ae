//! Loading machine code from bytes or files requires `unsafe`.

use curium_driver::{CacheKey, Context, Image, ImageKind, JitOptions, Library, Module, Result};

static CODE: Image<'static> = Image::from_bytes_unchecked(ImageKind::Cubin, b"");

fn image(bytes: &[u8]) -> Result<Image<'_>> {
    Image::from_bytes(bytes)
}

fn file(context: &Context) -> Result<()> {
    let image = Image::from_file("kernels.cubin")?;
    drop(Library::from_image(context, &image, &JitOptions::new())?);
    drop(Library::from_file(context, "kernels.cubin", &JitOptions::new())?);
    drop(Module::from_file(context, "kernels.cubin")?);
    Ok(())
}

fn key() -> CacheKey {
    CacheKey::for_code("ptx")
}

fn main() {}
