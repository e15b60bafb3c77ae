//! A `cuda.h` as bindgen reads it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use bindgen::{EnumVariation, Formatter, RustEdition, RustTarget};

use crate::package::Pins;

/// The declarations of one `cuda.h` in Rust.
pub(crate) struct Header {
    /// The generated file: types, constants, layout assertions and one `extern` block per function.
    pub(crate) file: syn::File,
}

impl Header {
    /// Parses `path` with every symbol that CUDA ever exported declared.
    ///
    /// The result depends on the header alone: its few system headers are replaced by ours.
    pub(crate) fn parse(path: &Path) -> Result<Self> {
        use_pinned_libclang()?;
        let text = bindgen::Builder::default()
            .header(path.to_str().context("the header's path is not UTF-8")?)
            .clang_args(["-nostdinc", "-D__CUDA_API_VERSION_INTERNAL", "--target=x86_64-unknown-linux-gnu"])
            .clang_arg(format!("-isystem{}", crate::root().join("xtask/include").display()))
            .allowlist_item("(cu|CU|CUDA)[A-Za-z_0-9]*")
            .blocklist_function(".*_pt[ds][sz]")
            .default_enum_style(EnumVariation::NewType { is_bitfield: false, is_global: false })
            .prepend_enum_name(false)
            .generate_comments(false)
            .layout_tests(true)
            .derive_default(true)
            .use_core()
            .merge_extern_blocks(true)
            .rust_target(RustTarget::stable(85, 0).map_err(|error| anyhow::anyhow!("{error}"))?)
            .rust_edition(RustEdition::Edition2024)
            .disable_header_comment()
            .formatter(Formatter::None)
            .generate()
            .with_context(|| path.display().to_string())?
            .to_string();
        let file = syn::parse_file(&text).with_context(|| format!("bindgen's output for {}", path.display()))?;
        Ok(Self { file })
    }

    /// The functions, by name.
    pub(crate) fn functions(&self) -> BTreeMap<String, syn::Signature> {
        let blocks = self.file.items.iter().filter_map(|item| match item {
            syn::Item::ForeignMod(block) => Some(block),
            _ => None,
        });
        let items = blocks.flat_map(|block| &block.items);
        items
            .filter_map(|item| match item {
                syn::ForeignItem::Fn(function) => Some((function.sig.ident.to_string(), function.sig.clone())),
                _ => None,
            })
            .collect()
    }
}

/// Points bindgen at the pinned libclang unless the user chose one.
fn use_pinned_libclang() -> Result<()> {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return Ok(());
    }
    let folder = Pins::read()?.libclang.unpacked()?;
    let library = crate::package::find(&folder, |name| name == "libclang.so")
        .context("the libclang package holds no libclang.so")?;
    // SAFETY: this program has started no thread that reads the environment.
    unsafe { std::env::set_var("LIBCLANG_PATH", library.parent().context("libclang.so lies in no folder")?) };
    Ok(())
}
