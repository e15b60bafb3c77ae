//! Compiles CUDA kernels in Rust to PTX.
//!
//! Kernels are written with `curium-kernel`, in a module of a package or in a package of their own.
//! A build script compiles them with the Rust toolchain that builds the package, and
//! `curium_kernel::include_kernels!` embeds the result:
//!
//! ```no_run
//! // in `main` of build.rs
//! curium_kernel_build::Kernels::module("src/main.rs", "kernels").compile();
//! ```
//!
//! # Requirements
//!
//! A stable Rust toolchain of version 1.97 or newer with two components:
//!
//! ```text
//! rustup component add llvm-tools rust-src
//! ```
//!
//! `core` is built for the GPU from `rust-src` once for each toolchain, in half a minute, in the
//! folder `CURIUM_KERNELS_CACHE` or `curium/kernels` of the user's cache folder. Where
//! `rustup target add nvptx64-nvidia-cuda` finds that target, it takes the place of `rust-src`.
//! Nothing of NVIDIA is needed.
//!
//! The device code is compiled with the features of the package that are enabled for the host.
//!
//! `CURIUM_KERNELS_TOOLCHAIN` names another toolchain of rustup for the kernels, such as `stable`,
//! if that of the package is too old.
//!
//! # Prebuilt PTX
//!
//! A build without these parts needs PTX that is committed beside the source. The environment
//! variable `CURIUM_KERNELS` selects what a build does:
//!
//! | value | effect |
//! |---|---|
//! | `build` | compiles the kernels; a missing part of the toolchain is an error |
//! | `prebuilt` | uses the prebuilt PTX; an error if the kernels have changed since it was compiled |
//! | `update` | compiles the kernels, and writes the prebuilt PTX |
//! | `check` | compiles the kernels, and compares them with the prebuilt PTX |
//! | not set | compiles the kernels, or uses the prebuilt PTX on docs.rs, in a published package, and if a part of the toolchain is missing |
//!
//! [`Kernels::prefer_prebuilt`] selects prebuilt PTX that belongs to the source also where the
//! kernels could be compiled.
//!
//! The prebuilt PTX has no source lines and no paths of the machine, and its text is the same on
//! every machine with the same toolchain.
//!
//! # How it works
//!
//! rustc is the front end only: it translates the crate and its dependencies to LLVM IR without
//! running LLVM's passes. `llvm-link` links the modules with `core`. This crate rewrites what Rust
//! cannot express (kernels, shared memory, instructions of the GPU, panics), and refuses what safe
//! kernels must not do, such as atomics of `core` and statics that can change. `opt` and `llc`
//! compile the result.
//!
//! An error in a kernel is reported once, at its line: by the compilation for the host if it has it
//! too, and otherwise by `include_kernels!`.

mod artifact;
mod compile;
mod error;
mod feature;
mod host;
mod ir;
mod package;
mod prebuilt;
mod program;
mod rewrite;
mod source;
mod target;
mod toolchain;
mod variables;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use error::{Diagnostic, Error, Result};
pub use rewrite::Panics;
pub use target::Target;

use compile::Compiled;
use package::Package;
use source::{Root, Source};
use toolchain::{DEVICE, Toolchain};

/// The environment variable that selects what a build does.
const MODE: &str = "CURIUM_KERNELS";

/// The variable with the file that `include_kernels!` includes, without the name of the module.
const FILE_VARIABLE: &str = "CURIUM_KERNELS_FILE_";

/// The sources that this build script has compiled.
static COMPILED: Mutex<Vec<Source>> = Mutex::new(Vec::new());

/// The target of a build that sets none.
const DEFAULT_TARGET: &str = "sm_80";

/// Kernels of a package, and how they are compiled.
#[derive(Clone, Debug)]
pub struct Kernels {
    source: Source,
    targets: Vec<Target>,
    target_errors: Vec<String>,
    panics: Panics,
    contract: bool,
    overflow_checks: bool,
    debug_lines: bool,
    dependencies: Vec<String>,
    prefers_prebuilt: bool,
    is_build_script: bool,
}

/// Compiled kernels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// PTX for each target, in ascending order.
    pub images: Vec<Image>,
    /// The names of the kernels.
    pub kernels: Vec<String>,
    /// The files that the kernels were compiled from.
    pub files: Vec<PathBuf>,
}

/// The PTX for a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Image {
    /// The architecture.
    pub target: Target,
    /// The text.
    pub ptx: String,
}

impl Kernels {
    fn new(source: Source) -> Self {
        Self {
            source,
            targets: Target::new(DEFAULT_TARGET).into_iter().collect(),
            target_errors: Vec::new(),
            panics: Panics::default(),
            contract: false,
            overflow_checks: false,
            debug_lines: true,
            dependencies: Vec::new(),
            prefers_prebuilt: false,
            is_build_script: false,
        }
    }

    /// A module of a package: `mod name { … }` or `mod name;` at the top level of `file`, such as
    /// `src/main.rs`. The path is relative to the package.
    ///
    /// A package may have several modules, each with its own call and its own name, which selects
    /// it in `include_kernels!`. Binaries, examples and the library are separate crates: the module
    /// is in the file that includes it, or in the library, whose `pub struct Kernels` the others
    /// use.
    ///
    /// ```no_run
    /// # use curium_kernel_build::Kernels;
    /// // in `main` of build.rs
    /// Kernels::module("src/lib.rs", "kernels").compile();
    /// Kernels::module("src/bin/sort.rs", "sort_kernels").compile();
    /// ```
    pub fn module(file: impl Into<PathBuf>, name: &str) -> Self {
        Self::new(Source::Module {
            file: file.into(),
            name: name.to_owned(),
        })
    }

    /// The library of a package, which consists of kernels and is `no_std`.
    pub fn package() -> Self {
        Self::new(Source::Package)
    }

    /// Sets the architectures, from `sm_70` to `sm_121a`. Default: `sm_80`. There is PTX for each
    /// of them, and the best one for a device is selected when the kernels are loaded.
    #[must_use]
    pub fn targets<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.targets.clear();
        for name in names {
            match Target::new(name) {
                Ok(target) => self.targets.push(target),
                Err(error) => self.target_errors.push(error.to_string()),
            }
        }
        self.sort_targets()
    }

    /// Adds an architecture with a version of PTX, such as
    /// `Target::new("sm_90")?.with_ptx_version(8, 5)?`. It replaces an architecture of the same
    /// name.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.targets
            .retain(|other| other.to_string() != target.to_string());
        self.targets.push(target);
        self.sort_targets()
    }

    fn sort_targets(mut self) -> Self {
        self.targets.sort();
        self.targets.dedup();
        self
    }

    /// Sets what a panic does. Default: [`Panics::Message`].
    #[must_use]
    pub fn panics(mut self, panics: Panics) -> Self {
        self.panics = panics;
        self
    }

    /// Allows the compiler to round `a * b + c` once, as CUDA C++ does by default. Default:
    /// `false`, as everywhere in Rust; `mul_add` rounds once in either case.
    ///
    /// # Safety
    ///
    /// The compiler decides at each place, also in copies of one expression. A floating-point value
    /// of the code of a block or a warp can therefore differ between threads in its last bit. No
    /// branch of such code depends on a value that was computed from a product and a sum: compare
    /// such values in the code of one thread only.
    #[must_use]
    pub unsafe fn contract(mut self, contract: bool) -> Self {
        self.contract = contract;
        self
    }

    /// Sets whether integer overflow panics. Default: `false`, whatever the profile of the host is.
    #[must_use]
    pub fn overflow_checks(mut self, checks: bool) -> Self {
        self.overflow_checks = checks;
        self
    }

    /// Sets whether the PTX has source lines and the calls of inlined functions, which profilers
    /// and the simulator show. Default: `true`. Prebuilt PTX has none.
    #[must_use]
    pub fn debug_lines(mut self, lines: bool) -> Self {
        self.debug_lines = lines;
        self
    }

    /// Sets the packages that a module of kernels uses, besides `curium-kernel`. They are names of
    /// `[dependencies]` of the package, so that the host and the device use the same versions. A
    /// whole package uses all that are not optional.
    #[must_use]
    pub fn dependencies<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.dependencies = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Sets whether a build uses the prebuilt PTX wherever it belongs to the source. Default:
    /// `false`. The build takes seconds less for users of a program, and compiles the kernels only
    /// after a change.
    #[must_use]
    pub fn prefer_prebuilt(mut self, prefer: bool) -> Self {
        self.prefers_prebuilt = prefer;
        self
    }

    /// Returns the options as the prebuilt PTX records them.
    fn describe(&self) -> String {
        let mut text = String::new();
        if self.panics == Panics::Trap {
            text += ", panics trap";
        }
        if self.contract {
            text += ", contraction";
        }
        if self.overflow_checks {
            text += ", overflow checks";
        }
        text
    }

    /// Compiles the kernels in a build script, for `include_kernels!`. A module's name selects it
    /// there; a whole package is called `kernels`.
    ///
    /// Errors appear when `include_kernels!` is compiled. Two sources of one name are an error of
    /// the build script.
    ///
    /// # Panics
    ///
    /// Panics outside of a build script, and if the folder of the build cannot be written.
    pub fn compile(&self) {
        let variable = |name: &str| {
            PathBuf::from(
                env::var_os(name)
                    .unwrap_or_else(|| panic!("{name} is not set: this is no build script")),
            )
        };
        let out = variable("OUT_DIR");
        let package = variable("CARGO_MANIFEST_DIR");
        let name = self.source.name();
        let mut compiled = COMPILED
            .lock()
            .expect("no call panics while it holds the lock");
        if let Some(message) = self.source.conflict(&compiled) {
            println_directive(&format!("cargo::error={message}"));
            return;
        }
        compiled.push(self.source.clone());
        drop(compiled);
        let options = Self {
            is_build_script: true,
            ..self.clone()
        };
        for name in [
            MODE,
            "DOCS_RS",
            "CURIUM_KERNELS_CACHE",
            toolchain::TOOLCHAIN,
        ] {
            println_directive(&format!("cargo::rerun-if-env-changed={name}"));
        }
        let text = if env::var_os("TARGET").is_some_and(|target| target == DEVICE) {
            // A package of kernels that is a dependency of others needs no kernels on the device.
            String::new()
        } else {
            options.compile_for_host(&package, &out)
        };
        let file = out.join(format!("{name}.rs"));
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // `include_kernels!` reads the variable, so that it can report a module that no build
        // script compiles.
        println_directive(&format!(
            "cargo::rustc-env={FILE_VARIABLE}{name}={}",
            file.display()
        ));
    }

    /// Returns the source for `include_kernels!`.
    fn compile_for_host(&self, package: &Path, out: &Path) -> String {
        let mut root = None;
        let error = match self.compile_with_mode(package, out, &mut root) {
            Ok(compiled) => match self.write_images(out, &compiled) {
                Ok(images) => {
                    rerun_if_changed(&compiled.files);
                    return host::render(self, root.as_ref(), &images, &compiled.kernels);
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        // Cargo runs the script again while there are errors: the file never exists. What would
        // mend them may be in any crate.
        println_directive(&format!(
            "cargo::rerun-if-changed={}",
            out.join("always").display()
        ));
        // The kernels are declared, so that code that launches them causes no further errors.
        let declaration = host::render(self, root.as_ref(), &[], &[]);
        match error {
            // The compilation for the host reports the errors.
            Error::Compile(diagnostics) if diagnostics.is_empty() => declaration,
            error => declaration + &host::error(&error.to_string()),
        }
    }

    fn write_images(&self, out: &Path, compiled: &Compiled) -> Result<Vec<(Target, PathBuf)>> {
        let mut images = Vec::new();
        for (target, ptx) in &compiled.images {
            let path = host::image_path(out, self.source.name(), target);
            toolchain::write(&path, ptx)?;
            images.push((target.clone(), path));
        }
        Ok(images)
    }

    /// Compiles the kernels or reads the prebuilt PTX, and sets `root` to their source.
    fn compile_with_mode(
        &self,
        package: &Path,
        out: &Path,
        root: &mut Option<Root>,
    ) -> Result<Compiled> {
        let mode = env::var(MODE).unwrap_or_default();
        let is_published = package.join("Cargo.toml.orig").exists();
        let prefers_prebuilt = match &*mode {
            "build" | "update" | "check" => false,
            "prebuilt" => true,
            "" => self.prefers_prebuilt || env::var_os("DOCS_RS").is_some() || is_published,
            _ => {
                return Err(Error::Source(format!(
                    "{MODE}: `{mode}` is none of build, prebuilt, update and check"
                )));
            }
        };
        if prefers_prebuilt {
            let prebuilt = self.read_prebuilt(package, root);
            if prebuilt.is_ok() || mode == "prebuilt" {
                return prebuilt;
            }
        }
        let toolchain = match Toolchain::find(package) {
            Ok(toolchain) => toolchain,
            Err(missing @ (Error::Toolchain(_) | Error::Program { .. })) if mode.is_empty() => {
                return self.read_prebuilt(package, root).map_err(|stale| {
                    Error::Toolchain(format!(
                        "{missing}\na build without these parts needs prebuilt PTX: {stale}"
                    ))
                });
            }
            Err(error) => return Err(error),
        };
        println_directive(&format!(
            "cargo::rerun-if-changed={}",
            toolchain.components().display()
        ));
        let (source, compiled) = self.compile_source(&toolchain, package, out)?;
        let source = root.insert(source);
        let compiled = compiled?;
        if mode == "update" || mode == "check" {
            let files = prebuilt::render(self, package, source, &compiled, &toolchain.version)?;
            if mode == "update" {
                prebuilt::update(&files)?;
            } else {
                prebuilt::check(&files)?;
            }
        }
        Ok(compiled)
    }

    fn read_prebuilt(&self, package: &Path, root: &mut Option<Root>) -> Result<Compiled> {
        // The package is read without cargo, so its crates are in their usual places.
        for root in ["src/lib.rs", "src/main.rs"] {
            source::check_crate_names(&package.join(root))?;
        }
        let source = self
            .source
            .read(package, Some(&package.join("src/lib.rs")))?;
        prebuilt::read(self, package, root.insert(source))
    }

    fn compile_source(
        &self,
        toolchain: &Toolchain,
        package: &Path,
        out: &Path,
    ) -> Result<(Root, Result<Compiled>)> {
        if !self.target_errors.is_empty() {
            return Err(Error::Source(self.target_errors.join("\n")));
        }
        let package = Package::read(package, toolchain)?;
        let root = self
            .source
            .read(&package.folder, package.library.as_deref())?;
        let compiled = compile::compile(self, toolchain, &package, &root, out);
        Ok((root, compiled))
    }

    /// Compiles the kernels outside of a build script. `package` is the folder of the package;
    /// `out` is a folder for the build, which later builds reuse.
    ///
    /// # Errors
    ///
    /// An error if a part of the toolchain is missing, or if the kernels do not compile.
    pub fn build(&self, package: &Path, out: &Path) -> Result<Output> {
        let package = package.canonicalize().map_err(Error::file(package))?;
        fs::create_dir_all(out).map_err(Error::file(out))?;
        let out = out.canonicalize().map_err(Error::file(out))?;
        let toolchain = Toolchain::find(&package)?;
        let (_, compiled) = self.compile_source(&toolchain, &package, &out)?;
        let compiled = compiled?;
        Ok(Output {
            images: compiled
                .images
                .into_iter()
                .map(|(target, ptx)| Image { target, ptx })
                .collect(),
            kernels: compiled
                .kernels
                .into_iter()
                .map(|kernel| kernel.name)
                .collect(),
            files: compiled.files,
        })
    }
}

/// Runs the build script again when one of the files changes.
fn rerun_if_changed(files: &[PathBuf]) {
    for file in files {
        println_directive(&format!("cargo::rerun-if-changed={}", file.display()));
    }
}

#[expect(
    clippy::print_stdout,
    reason = "cargo reads the output of build scripts"
)]
fn println_directive(directive: &str) {
    println!("{directive}");
}
