//! The parts of a Rust toolchain that compile kernels.

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs4::FileExt;

use crate::artifact::Artifacts;
use crate::error::{Error, Result};
use crate::program;

/// The target of device code.
pub(crate) const DEVICE: &str = "nvptx64-nvidia-cuda";

/// The environment variable with the name of another toolchain of rustup.
pub(crate) const TOOLCHAIN: &str = "CURIUM_KERNELS_TOOLCHAIN";

/// The oldest release that compiles kernels correctly: older ones duplicate barriers
/// (rust-lang/rust#137086).
const MINIMUM: (u32, u32) = (1, 97);

/// Changes with the flags for `core`, so that an old build of `core` is not used.
const CORE_REVISION: u32 = 2;

/// Flags with which the distributed `core` is built. They affect which functions are inlined; with
/// them, the PTX is the same.
const CORE_FLAGS: &[&str] = &[
    "-Csymbol-mangling-version=v0",
    "-Ccodegen-units=1",
    "-Cdebuginfo=1",
    "-Zinline-mir-preserve-debug",
    "-Zmir-strip-debuginfo=locals-in-tiny-functions",
];

/// rustc as the front end, LLVM's tools, and `core` for the device.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    /// The toolchain of rustup, if it is not that of the package.
    name: Option<OsString>,
    cargo: PathBuf,
    rustc: PathBuf,
    /// The folder of the package, whose toolchain file decides.
    folder: PathBuf,
    /// The first line of `rustc -vV`.
    pub(crate) version: String,
    pub(crate) host: String,
    commit: String,
    sysroot: PathBuf,
    tools: PathBuf,
    /// A sysroot with `core` for the device.
    device_sysroot: PathBuf,
}

impl Toolchain {
    /// Finds the toolchain that builds the package in `folder`, and builds `core` if necessary.
    ///
    /// # Errors
    ///
    /// [`Error::Toolchain`] if a part is missing, which names the command that installs it.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let name = env::var_os(TOOLCHAIN).filter(|name| !name.is_empty());
        let program = |variable: &str, default: &str| {
            let path = env::var_os(variable).filter(|_| name.is_none());
            path.map_or_else(|| PathBuf::from(default), PathBuf::from)
        };
        let cargo = program("CARGO", "cargo");
        let rustc = program("RUSTC", "rustc");
        Self::from_programs(cargo, rustc, name, folder)
    }

    /// Finds the parts of the toolchain with this `cargo` and `rustc`.
    fn from_programs(
        cargo: PathBuf,
        rustc: PathBuf,
        name: Option<OsString>,
        folder: &Path,
    ) -> Result<Self> {
        let mut toolchain = Self {
            cargo,
            rustc,
            name,
            folder: folder.to_owned(),
            version: String::new(),
            host: String::new(),
            commit: String::new(),
            sysroot: PathBuf::new(),
            tools: PathBuf::new(),
            device_sysroot: PathBuf::new(),
        };
        let description = program::run(toolchain.rustc().arg("-vV"))?;
        let field = |name: &str| {
            let mut lines = description.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        toolchain.version = description.lines().next().unwrap_or_default().to_owned();
        toolchain.host = field("host:");
        toolchain.commit = field("commit-hash:");
        check_release(&field("release:"))?;
        toolchain.sysroot =
            PathBuf::from(program::run(toolchain.rustc().args(["--print", "sysroot"]))?.trim());
        toolchain.tools = toolchain
            .sysroot
            .join("lib/rustlib")
            .join(&toolchain.host)
            .join("bin");
        toolchain.check_parts()?;
        toolchain.device_sysroot = if library_folder(&toolchain.sysroot).exists() {
            toolchain.sysroot.clone()
        } else {
            toolchain.core()?
        };
        Ok(toolchain)
    }

    /// Returns an error that names all missing parts, and the command that installs them.
    fn check_parts(&self) -> Result<()> {
        let missing_tool = ["llvm-link", "llvm-nm", "opt", "llc"]
            .into_iter()
            .find(|tool| !self.tools.join(executable(tool)).exists());
        let has_core = library_folder(&self.sysroot).exists() || self.core_source().exists();
        let option = self.rustup_option();
        let version = &self.version;
        let problem = match (missing_tool, has_core) {
            (None, true) => return Ok(()),
            (Some(tool), true) => format!(
                "LLVM's program `{tool}` is missing in {version}; run `rustup component add llvm-tools{option}`"
            ),
            (Some(tool), false) => format!(
                "LLVM's program `{tool}` and `core` for the GPU are missing in {version}; run `rustup component add llvm-tools rust-src{option}`"
            ),
            (None, false) => format!(
                "`core` for the GPU is missing in {version}; run `rustup component add rust-src{option}`, or \
                 `rustup target add {DEVICE}{option}` where that target is to be had"
            ),
        };
        Err(Error::Toolchain(problem))
    }

    /// Returns the option with which rustup changes this toolchain, or nothing if it is none of
    /// rustup's.
    fn rustup_option(&self) -> String {
        let folder = self.sysroot.parent();
        match self.sysroot.file_name() {
            Some(name) if folder.is_some_and(|folder| folder.ends_with("toolchains")) => {
                format!(" --toolchain {}", name.to_string_lossy())
            }
            _ => String::new(),
        }
    }

    /// The manifest of `core` in the component `rust-src`.
    fn core_source(&self) -> PathBuf {
        self.sysroot
            .join("lib/rustlib/src/rust/library/core/Cargo.toml")
    }

    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.command(&self.cargo);
        command.current_dir(&self.folder);
        if self.name.is_none() {
            command.env("RUSTC", &self.rustc);
        }
        // An empty value also overrides the configuration of cargo.
        command
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "");
        command
    }

    fn rustc(&self) -> Command {
        let mut command = self.command(&self.rustc);
        command.current_dir(&self.folder);
        command
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = program::command(program);
        if let Some(name) = &self.name {
            command.env("RUSTUP_TOOLCHAIN", name);
        }
        command
    }

    /// Returns one of LLVM's tools.
    pub(crate) fn tool(&self, name: &str) -> Command {
        program::command(self.tools.join(executable(name)))
    }

    /// The flags for all crates of a device build.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec![
            format!("--sysroot={}", self.device_sysroot.display()),
            "-Cno-prepopulate-passes".to_owned(),
            "-Ccodegen-units=1".to_owned(),
            "-Csymbol-mangling-version=v0".to_owned(),
        ]
    }

    /// Returns the prefixes of paths on this machine, and what replaces them in the PTX.
    pub(crate) fn path_prefixes(&self) -> Vec<(PathBuf, String)> {
        let mut prefixes = Vec::new();
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
        let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
        for entry in registries.into_iter().flatten().flatten() {
            prefixes.push((entry.path(), String::new()));
        }
        prefixes.push((
            self.sysroot.join("lib/rustlib/src/rust"),
            format!("/rustc/{}", self.commit),
        ));
        prefixes
    }

    /// A file that changes when components are added.
    pub(crate) fn components(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/components")
    }

    /// Returns the libraries of `core` in the order for the linker: each needs those that follow.
    pub(crate) fn libraries(&self) -> Result<Vec<PathBuf>> {
        let folder = library_folder(&self.device_sysroot);
        let mut libraries = Vec::new();
        for prefix in ["liballoc-", "libcore-", "libcompiler_builtins-"] {
            libraries.extend(files_with_prefix(&folder, prefix)?);
        }
        if libraries.len() < 3 {
            return Err(Error::Toolchain(format!(
                "{}: `alloc`, `core` or `compiler_builtins` is missing",
                folder.display()
            )));
        }
        // `compiler_builtins` can panic.
        libraries.push(libraries[1].clone());
        Ok(libraries)
    }

    /// Returns the symbols that `core` and `alloc` define.
    pub(crate) fn library_symbols(&self) -> Result<HashSet<String>> {
        let libraries = self.libraries()?;
        let text = program::run(
            self.tool("llvm-nm")
                .args(["--defined-only", "--format=just-symbols"])
                .args(&libraries[..2]),
        )?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns a sysroot with `core` built from its sources, once for each toolchain.
    fn core(&self) -> Result<PathBuf> {
        let cache = cache_folder()?;
        let name = format!(
            "core-{CORE_REVISION}-{}",
            self.commit.get(..16).unwrap_or("local")
        );
        let finished = cache.join(&name);
        if finished.exists() {
            return Ok(finished);
        }
        fs::create_dir_all(&cache).map_err(Error::file(&cache))?;
        // One process builds, and the others wait. The folder appears at once with all of its
        // files, and is never changed.
        let _lock = lock(&cache.join(format!("{name}.lock")))?;
        if finished.exists() {
            return Ok(finished);
        }
        let work = cache.join(format!("{name}.build"));
        // A build that was interrupted has left it.
        let _ = fs::remove_dir_all(&work);
        let result = self
            .build_core(&work)
            .and_then(|sysroot| fs::rename(&sysroot, &finished).map_err(Error::file(&finished)));
        let _ = fs::remove_dir_all(&work);
        result.map(|()| finished)
    }

    /// Builds `core` and `alloc` in the folder `work`, and returns a sysroot with them.
    fn build_core(&self, work: &Path) -> Result<PathBuf> {
        let package = work.join("package");
        let source = package.join("src/lib.rs");
        write(
            &package.join("Cargo.toml"),
            "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n",
        )?;
        write(&source, "#![no_std]\n")?;
        let mut flags: Vec<String> = CORE_FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        for (from, to) in self.path_prefixes() {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
        let target_folder = work.join("target");
        let mut command = self.cargo();
        command
            .args([
                "build",
                "--release",
                "-Zbuild-std=core,alloc",
                "--message-format=json",
                "--target",
                DEVICE,
            ])
            .arg("--manifest-path")
            .arg(package.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target_folder)
            // `core` is a part of the compiler, and only builds with its permission. User code does
            // not get it.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        let messages = program::run(&mut command)?;
        let sysroot = work.join("sysroot");
        let libraries = library_folder(&sysroot);
        fs::create_dir_all(&libraries).map_err(Error::file(&libraries))?;
        for library in Artifacts::parse(&messages, &package.join("Cargo.toml")).libraries() {
            let target = libraries.join(library.file_name().unwrap_or_default());
            fs::copy(library, &target).map_err(Error::file(&target))?;
        }
        Ok(sysroot)
    }
}

/// Refuses releases that duplicate barriers.
fn check_release(release: &str) -> Result<()> {
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let version = (
        numbers.next().and_then(std::result::Result::ok),
        numbers.next().and_then(std::result::Result::ok),
    );
    match version {
        (Some(major), Some(minor)) if (major, minor) >= MINIMUM => Ok(()),
        _ => Err(Error::Toolchain(format!(
            "kernels need Rust {}.{} or newer, and this is Rust {release}, which duplicates barriers (rust-lang/rust#137086); \
             run `rustup update stable`",
            MINIMUM.0, MINIMUM.1
        ))),
    }
}

fn executable(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}

fn library_folder(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(DEVICE).join("lib")
}

/// Returns the libraries in a folder whose names have a prefix.
fn files_with_prefix(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::file(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) && name.ends_with(".rlib") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The folder for `core`, which all packages share.
fn cache_folder() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("CURIUM_KERNELS_CACHE").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    let folder = if cfg!(windows) {
        env::var_os("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library/Caches"))
    } else {
        let cache = env::var_os("XDG_CACHE_HOME")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        cache.or_else(|| Some(env::home_dir()?.join(".cache")))
    };
    match folder {
        Some(folder) => Ok(folder.join("curium/kernels")),
        None => Err(Error::Toolchain(
            "there is no folder for `core`; set CURIUM_KERNELS_CACHE".to_owned(),
        )),
    }
}

/// Waits until this process alone has a lock file. The lock ends with the result.
pub(crate) fn lock(path: &Path) -> Result<fs::File> {
    let file = fs::File::create(path).map_err(Error::file(path))?;
    FileExt::lock(&file).map_err(Error::file(path))?;
    Ok(file)
}

/// Writes a file, if its text changes. Another process sees the old file or the new one.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text).map_err(Error::file(&temporary))?;
    fs::rename(&temporary, path).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_releases_are_refused() {
        for release in ["1.97.0", "1.98.0-nightly", "1.100.0-beta.7", "2.0.0"] {
            assert!(check_release(release).is_ok(), "{release}");
        }
        for release in ["1.96.1", "1.88.0", "1.95.0-nightly", ""] {
            let error = check_release(release);
            assert!(
                error.is_err_and(|error| error.to_string().contains("1.97")),
                "{release}"
            );
        }
    }

    /// Finds a toolchain whose rustc is a script. Its sysroot has these empty files.
    #[cfg(unix)]
    fn find_with(
        release: &str,
        files: &[&str],
    ) -> std::result::Result<Result<Toolchain>, Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir()?;
        let sysroot = folder.path().join("toolchains/1.98.0-host");
        for file in files {
            let path = sysroot.join("lib/rustlib").join(file);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, "")?;
        }
        let rustc = folder.path().join("rustc");
        let script = format!(
            "#!/bin/sh\nif [ $1 = -vV ]; then\nprintf 'rustc {release}\\nhost: host\\ncommit-hash: 0123456789abcdef\\nrelease: {release}\\n'\nelse\necho {}\nfi\n",
            sysroot.display()
        );
        fs::write(&rustc, script)?;
        fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755))?;
        let cargo = PathBuf::from("cargo");
        let name = Some(OsString::from("test"));
        Ok(Toolchain::from_programs(cargo, rustc, name, folder.path()))
    }

    /// An error names all parts that are missing, and one command that installs them.
    #[cfg(unix)]
    #[test]
    fn missing_parts_are_named() -> std::result::Result<(), Box<dyn std::error::Error>> {
        const TOOLS: [&str; 4] = [
            "host/bin/llvm-link",
            "host/bin/llvm-nm",
            "host/bin/opt",
            "host/bin/llc",
        ];
        const TARGET: &str = "nvptx64-nvidia-cuda/lib/libcore-1.rlib";
        const SOURCE: &str = "src/rust/library/core/Cargo.toml";
        let [link, nm, opt, _] = TOOLS;
        for (files, texts) in [
            (
                &[][..],
                &[
                    "`llvm-link` and `core`",
                    "rustc 1.98.0",
                    "`rustup component add llvm-tools rust-src --toolchain 1.98.0-host`",
                ][..],
            ),
            (
                &[TARGET, link, nm, opt],
                &[
                    "`llc` is missing",
                    "`rustup component add llvm-tools --toolchain 1.98.0-host`",
                ],
            ),
            (&[SOURCE, link], &["`llvm-nm` is missing"]),
            (
                &TOOLS,
                &[
                    "`core` for the GPU is missing",
                    "`rustup component add rust-src --toolchain 1.98.0-host`",
                    "`rustup target add nvptx64-nvidia-cuda --toolchain 1.98.0-host`",
                ],
            ),
        ] {
            let Err(error) = find_with("1.98.0", files)? else {
                return Err(format!("no error with {files:?}").into());
            };
            let message = error.to_string();
            for text in texts {
                assert!(message.contains(text), "{text} is missing in: {message}");
            }
        }
        let complete = [&TOOLS[..], &[TARGET]].concat();
        assert!(find_with("1.98.0", &complete)?.is_ok());
        // The release counts first: nothing that is installed for it would help.
        for files in [&[][..], &complete] {
            let Err(error) = find_with("1.95.0", files)? else {
                return Err("an old release".into());
            };
            let message = error.to_string();
            for text in [
                "Rust 1.97 or newer",
                "Rust 1.95.0",
                "`rustup update stable`",
            ] {
                assert!(message.contains(text), "{text} is missing in: {message}");
            }
        }
        Ok(())
    }
}
