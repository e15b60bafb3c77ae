//! A `cuda.h` with the headers beside it, parsed by bindgen.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};

use super::surface::Surface;
use crate::package::Pins;

/// The declarations of one CUDA version's headers in Rust.
pub(crate) struct Header {
    /// bindgen's output: types, constants, layout assertions and the functions.
    pub(crate) text: String,
    /// The ABI that it declares.
    pub(crate) surface: Surface,
}

/// A proof that bindgen finds libclang.
pub(crate) struct Clang(());

impl Clang {
    /// Points bindgen at the pinned libclang, unless `LIBCLANG_PATH` chooses another. The program has no second thread yet.
    pub(crate) fn pinned() -> Result<Self> {
        if std::env::var_os("LIBCLANG_PATH").is_some() {
            return Ok(Self(()));
        }
        let folder = Pins::read()?.libclang.unpacked()?;
        let library = crate::package::find(&folder, |name| name == "libclang.so")
            .context("the libclang package holds no libclang.so")?;
        let folder = library.parent().context("libclang.so lies in no folder")?;
        // SAFETY: commands call this first, before they start a thread that could read the environment.
        unsafe { std::env::set_var("LIBCLANG_PATH", folder) };
        Ok(Self(()))
    }
}

impl Header {
    /// Parses the headers beside the `cuda.h` at `path`.
    pub(crate) fn parse(clang: &Clang, path: &Path) -> Result<Self> {
        Self::read(declarations(clang, path)?).with_context(|| path.display().to_string())
    }

    /// Parses the output of [`declarations`] for a header.
    pub(crate) fn read(text: String) -> Result<Self> {
        let surface = Surface::read(&syn::parse_file(&text).context("bindgen's output")?)?;
        Ok(Self { text, surface })
    }
}

/// Returns the `cuda.h` at `path` and the driver's other headers beside it in Rust, with every symbol that CUDA ever exported declared.
///
/// The result depends on these headers alone: those of the system, and of OpenGL, EGL and VDPAU, are replaced by ours.
pub(crate) fn declarations(clang: &Clang, path: &Path) -> Result<String> {
    ensure!(path.is_file(), "{}: there is no such file", path.display());
    let folder = path
        .parent()
        .and_then(Path::to_str)
        .context("the header's path is not UTF-8")?;
    let all = ours().join("driver_api.h");
    finished(builder(
        clang,
        &all,
        vec![format!("-isystem{folder}")],
        "(cu|CU|CUDA)[A-Za-z_0-9]*",
    )?)
}

/// Returns the items of the header at `path` whose names match `items`, in Rust. Headers that it includes come from `folders`, or from
/// our headers, which replace the system's. The library's own version is not part of its interface.
pub(crate) fn library_declarations(
    clang: &Clang,
    path: &Path,
    folders: &[PathBuf],
    items: &str,
) -> Result<String> {
    let arguments = folders
        .iter()
        .map(|folder| format!("-isystem{}", folder.display()))
        .collect();
    finished(
        builder(clang, path, arguments, items)?.blocklist_var(
            "CU[A-Z]+_VER(SION|_[A-Z]+)|NCCL_(MAJOR|MINOR|PATCH|SUFFIX|VERSION_CODE)",
        ),
    )
}

/// Returns the include folder that replaces the system's headers.
fn ours() -> PathBuf {
    crate::root().join("xtask/include")
}

fn builder(_clang: &Clang, header: &Path, arguments: Vec<String>, items: &str) -> Result<Builder> {
    let builder = Builder::default()
        .header(header.to_str().context("the header's path is not UTF-8")?)
        .clang_args([
            "-nostdinc",
            "-D__CUDA_API_VERSION_INTERNAL",
            "--target=x86_64-unknown-linux-gnu",
        ])
        .clang_args(arguments)
        .clang_arg(format!("-isystem{}", ours().display()))
        .allowlist_item(items)
        .blocklist_function(".*_pt[ds][sz]")
        .default_enum_style(EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(true)
        .derive_default(true)
        .use_core()
        .merge_extern_blocks(true)
        .rust_target(RustTarget::stable(85, 0).map_err(|error| anyhow::anyhow!("{error}"))?)
        .rust_edition(RustEdition::Edition2024)
        .disable_header_comment()
        .formatter(Formatter::None);
    Ok(builder)
}

fn finished(builder: Builder) -> Result<String> {
    Ok(builder
        .generate()
        .context("the headers could not be parsed")?
        .to_string())
}
