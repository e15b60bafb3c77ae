//! Source to PTX: rustc as the front end, `llvm-link`, the rewrite, `opt` and `llc`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Kernels;
use crate::artifact::Artifacts;
use crate::error::{Diagnostic, Error, Result};
use crate::package::Package;
use crate::program;
use crate::rewrite::{self, Kernel, Lines, Rewritten};
use crate::source::{Root, RootFile, Source};
use crate::target::Target;
use crate::toolchain::{DEVICE, Toolchain, lock, write};
use crate::variables;

/// The passes of `opt`. Facts of conditions are used once more at the end, because many bounds
/// checks have their final form only after indices were simplified. A single `instcombine` is an
/// error if it does not reach a fixpoint, unless that is not verified.
const PASSES: &str = "globaldce,default<O3>,function(constraint-elimination,instcombine<no-verify-fixpoint>,simplifycfg)";

/// Loops that copy or set words stay loops: the back end would replace the call of `memcpy` or
/// `memset` by a loop over bytes.
const KEEP_LOOPS: [&str; 2] = ["-disable-loop-idiom-memcpy", "-disable-loop-idiom-memset"];

/// The maximum size in instructions of a loop with a constant number of rounds that is unrolled.
/// LLVM's 300 leaves arrays of registers in local memory, if a loop indexes them: nvcc has such
/// loops unrolled by pragmas.
const UNROLL_THRESHOLD: u32 = 1200;

/// The version of PTX with the calls of inlined functions in its source lines.
const INLINED_CALLS_SINCE: (u32, u32) = (7, 2);

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) images: Vec<(Target, String)>,
    pub(crate) kernels: Vec<Kernel>,
    /// The files that the compiler read, except those of the toolchain.
    pub(crate) files: Vec<PathBuf>,
}

/// A build in progress.
struct Build<'a> {
    options: &'a Kernels,
    toolchain: &'a Toolchain,
    package: &'a Package,
    root: &'a Root,
    /// The folder of the generated crate and of intermediate files.
    work: PathBuf,
    /// The folder in which cargo builds, which other packages may share.
    target_folder: PathBuf,
}

/// Compiles kernels. The folder `out` is the build's own.
pub(crate) fn compile(
    options: &Kernels,
    toolchain: &Toolchain,
    package: &Package,
    root: &Root,
    out: &Path,
) -> Result<Compiled> {
    let build = Build {
        options,
        toolchain,
        package,
        root,
        work: out.join(format!("{}-device", options.source.name())),
        target_folder: shared_target_folder(out),
    };
    let linked = build.work.join("linked.ll");
    let files = build.front_end(&linked)?;
    let text = fs::read_to_string(&linked).map_err(Error::file(&linked))?;
    let symbols = toolchain.library_symbols()?;
    let options = rewrite::Options {
        panics: build.options.panics,
        targets: &build.options.targets,
        library_symbols: &symbols,
    };
    let Rewritten { ir, kernels } = rewrite::rewrite(&text, &options).map_err(Error::Refused)?;
    let device = build.work.join("device.ll");
    fs::write(&device, ir).map_err(Error::file(&device))?;
    let mut images = Vec::new();
    for target in &build.options.targets {
        images.push((target.clone(), build.back_end(&device, target)?));
    }
    Ok(Compiled {
        images,
        kernels,
        files,
    })
}

/// Returns a folder that all packages of an outer build share, so that each dependency is built
/// once.
fn shared_target_folder(out: &Path) -> PathBuf {
    // `target/debug/build/package-hash/out`, and `target/debug/build/package/hash/out` since Rust
    // 1.100
    let build = out
        .ancestors()
        .skip(2)
        .take(3)
        .find(|folder| folder.ends_with("build"));
    match build.and_then(Path::parent) {
        Some(profile) => profile.join("curium-kernels"),
        None => out.join("target"),
    }
}

impl Build<'_> {
    /// Compiles the crate and its dependencies, and links them with `core` to LLVM IR in the file
    /// `linked`.
    fn front_end(&self, linked: &Path) -> Result<Vec<PathBuf>> {
        let source = self.work.join("src/lib.rs");
        let root = match &self.root.file {
            RootFile::Generated(text) | RootFile::Declaration(text) => {
                write(&source, text)?;
                PathBuf::from("src/lib.rs")
            }
            RootFile::Existing(path) => path.clone(),
        };
        let is_whole = matches!(self.options.source, Source::Package);
        let package_name = self.package_name();
        let profile = format!(
            "[profile.release]\nopt-level = 3\ncodegen-units = 1\ndebug = \"line-directives-only\"\npanic = \"abort\"\noverflow-checks = {}\n\n",
            self.options.overflow_checks
        );
        let manifest = self.work.join("Cargo.toml");
        write(
            &manifest,
            &self.package.device_manifest(
                &package_name,
                &root,
                &self.options.dependencies,
                is_whole,
                &self.package.features(self.options.is_build_script),
                &profile,
            )?,
        )?;
        // The versions of dependencies are those of the host.
        let lock_file = self.package.workspace.join("Cargo.lock");
        if let Ok(text) = fs::read_to_string(&lock_file) {
            let copy = self.work.join("Cargo.lock.host");
            if fs::read_to_string(&copy).ok().as_ref() != Some(&text) {
                write(&self.work.join("Cargo.lock"), &text)?;
                write(&copy, &text)?;
            }
        }
        // Another package of the outer build may rebuild a dependency, so the libraries are read
        // before it can.
        fs::create_dir_all(&self.target_folder).map_err(Error::file(&self.target_folder))?;
        let _lock = lock(&self.target_folder.join("front-end.lock"))?;
        let metadata = self.metadata(&manifest)?;
        let prefixes = self.path_prefixes(&metadata);
        let bitcode = self.work.join("kernels.bc");
        let mut messages = self.cargo_rustc(&manifest, &bitcode, &prefixes)?;
        if !bitcode.exists() {
            // Cargo remembers an earlier build whose result was deleted.
            let mut clean = self.toolchain.cargo();
            clean.args([
                "clean",
                "--quiet",
                "--release",
                "--target",
                DEVICE,
                "--package",
                &package_name,
                "--manifest-path",
            ]);
            program::run(
                clean
                    .arg(&manifest)
                    .arg("--target-dir")
                    .arg(&self.target_folder),
            )?;
            messages = self.cargo_rustc(&manifest, &bitcode, &prefixes)?;
        }
        let mut artifacts = Artifacts::parse(&messages, &manifest);
        let libraries = artifacts.sorted_libraries(&metadata);
        program::run(
            self.toolchain
                .tool("llvm-link")
                .args(["--only-needed", "--ignore-non-bitcode", "-S", "-o"])
                .arg(linked)
                .arg(&bitcode)
                .args(&libraries)
                .args(self.toolchain.libraries()?),
        )?;
        let is_changeable = |file: &PathBuf| {
            file.is_absolute()
                && !file.starts_with(&self.work)
                && !file
                    .components()
                    .any(|component| component.as_os_str() == "registry")
        };
        let files = std::mem::take(&mut artifacts.files);
        let mut files: Vec<PathBuf> = files.into_iter().filter(is_changeable).collect();
        files.push(self.package.folder.join(&self.root.shown));
        files.push(self.package.folder.join("Cargo.toml"));
        files.extend(Some(lock_file).filter(|file| file.exists()));
        files.dedup();
        Ok(files)
    }

    /// The name of the generated package. It is unique among the packages of an outer build.
    fn package_name(&self) -> String {
        match &self.options.source {
            Source::Package => self.package.name.clone(),
            Source::Module { name, .. } => format!("{}-{name}", self.package.name),
        }
    }

    /// Returns the packages of the build, and what each depends on.
    fn metadata(&self, manifest: &Path) -> Result<Value> {
        let mut command = self.toolchain.cargo();
        command.args([
            "metadata",
            "--format-version=1",
            "--filter-platform",
            DEVICE,
            "--manifest-path",
        ]);
        let text = program::run(command.arg(manifest))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Source(format!("cargo metadata: {error}")))
    }

    /// Returns the prefixes of paths on this machine, and what replaces them. A dependency in a
    /// folder is called as one of a registry is.
    fn path_prefixes(&self, metadata: &Value) -> Vec<(PathBuf, String)> {
        let mut prefixes = self.toolchain.path_prefixes();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            let name = package["name"].as_str().unwrap_or_default();
            let version = package["version"].as_str().unwrap_or_default();
            if let (true, Some(folder)) = (package["source"].is_null(), manifest.parent()) {
                prefixes.push((folder.to_owned(), format!("{name}-{version}")));
            }
        }
        prefixes.retain(|(from, _)| *from != self.work);
        prefixes
    }

    fn cargo_rustc(
        &self,
        manifest: &Path,
        bitcode: &Path,
        prefixes: &[(PathBuf, String)],
    ) -> Result<String> {
        let mut flags = self.toolchain.flags();
        flags.extend(remap(prefixes));
        let mut command = self.toolchain.cargo();
        command
            .args([
                "rustc",
                "--lib",
                "--crate-type=rlib",
                "--release",
                "--target",
                DEVICE,
                "--message-format=json",
            ])
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(&self.target_folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            .arg("--")
            .arg(format!("--emit=llvm-bc={}", bitcode.display()))
            .args(self.root_flags());
        let output = program::output(&mut command)?;
        if output.is_success {
            return Ok(output.stdout);
        }
        let diagnostics = diagnostics(&output.stdout);
        if diagnostics.is_empty() {
            return Err(Error::Program {
                program: "cargo".to_owned(),
                message: output.stderr,
            });
        }
        Err(Error::Compile(self.without_host_errors(
            manifest,
            prefixes,
            diagnostics,
        )))
    }

    /// Removes the errors that the compilation for the host reports too.
    fn without_host_errors(
        &self,
        manifest: &Path,
        prefixes: &[(PathBuf, String)],
        mut diagnostics: Vec<Diagnostic>,
    ) -> Vec<Diagnostic> {
        if !self.options.is_build_script {
            return diagnostics;
        }
        let mut command = self.toolchain.cargo();
        command
            .args([
                "rustc",
                "--lib",
                "--release",
                "--message-format=json",
                "--target",
                &self.toolchain.host,
                "--manifest-path",
            ])
            .arg(manifest)
            .arg("--target-dir")
            .arg(&self.target_folder)
            .env("CARGO_ENCODED_RUSTFLAGS", remap(prefixes).join("\x1f"))
            .arg("--")
            .args(self.root_flags());
        let Ok(output) = program::output(&mut command) else {
            return diagnostics;
        };
        let host = self::diagnostics(&output.stdout);
        let is_of_host = |diagnostic: &Diagnostic| {
            host.iter().any(|other| {
                other.message == diagnostic.message
                    && other.file == diagnostic.file
                    && other.line == diagnostic.line
            })
        };
        diagnostics.retain(|diagnostic| !is_of_host(diagnostic));
        diagnostics
    }

    /// Flags for the crate itself. Warnings are those of the outer build.
    fn root_flags(&self) -> Vec<String> {
        let mut prefixes = vec![(self.package.folder.clone(), String::new())];
        // Two files with one name are one for rustc, which would read the declaration of a module
        // in place of the module.
        if matches!(self.root.file, RootFile::Generated(_)) {
            let shown = self.root.shown.display().to_string();
            prefixes.push((PathBuf::from("src/lib.rs"), shown.clone()));
            prefixes.push((self.work.join("src/lib.rs"), shown));
        }
        let mut flags = remap(&prefixes);
        flags.push("--cap-lints=allow".to_owned());
        for feature in self.package.features(self.options.is_build_script) {
            flags.push("--cfg".to_owned());
            flags.push(format!("feature={feature:?}"));
        }
        flags
    }

    /// Compiles LLVM IR to PTX.
    fn back_end(&self, device: &Path, target: &Target) -> Result<String> {
        let optimized = self.work.join(format!("{target}.ll"));
        let ptx = self.work.join(format!("{target}.ptx"));
        let cpu = format!("-mcpu={target}");
        let features = format!("-mattr={}", target.feature());
        program::run(
            self.toolchain
                .tool("opt")
                .arg(format!("-passes={PASSES}"))
                .arg(format!("-unroll-threshold={UNROLL_THRESHOLD}"))
                .args(KEEP_LOOPS)
                // Otherwise all threads load shared memory before a loop in which one of them
                // writes it: the value is not used, but the accesses are a race.
                .arg("-disable-licm-promotion")
                .args([&cpu, &features])
                .arg(device)
                .args(["-S", "-o"])
                .arg(&optimized),
        )?;
        let text = fs::read_to_string(&optimized).map_err(Error::file(&optimized))?;
        let (text, lines) = Lines::number(&rewrite::copy_by_vectors(&text));
        fs::write(&optimized, text).map_err(Error::file(&optimized))?;
        let contraction = if self.options.contract {
            "-fp-contract=fast"
        } else {
            "-fp-contract=off"
        };
        let output = program::output(
            self.toolchain
                .tool("llc")
                .args(["-O3", "-asm-verbose=0", contraction, &cpu, &features])
                // A value that is used behind a condition only would be computed there, one after
                // another and with its operands in registers until then.
                .arg("-disable-machine-sink")
                .arg(&optimized)
                .arg("-o")
                .arg(&ptx),
        )?;
        // llc only warns of a processor that it does not have.
        if !output.is_success || output.stderr.contains("is not a recognized") {
            return Err(Error::Program {
                program: format!("llc for {target}"),
                message: output.stderr,
            });
        }
        let text = fs::read_to_string(&ptx).map_err(Error::file(&ptx))?;
        let text = variables::ordered(&text);
        if !self.options.debug_lines {
            return Ok(without_lines(&text));
        }
        let lines = if target.ptx_version() < INLINED_CALLS_SINCE {
            lines.without_calls()
        } else {
            lines
        };
        Ok(lines.restore(&text))
    }
}

/// Returns flags that replace prefixes of paths. The last one that matches is used.
fn remap(prefixes: &[(PathBuf, String)]) -> Vec<String> {
    let prefixes = prefixes
        .iter()
        .filter(|(from, _)| !from.as_os_str().is_empty());
    prefixes
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect()
}

/// Removes the source lines of a PTX text, and the names of inlined functions, which are at its
/// end.
pub(crate) fn without_lines(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let code = ptx.split("\t.section\t.debug_str\n").next().unwrap_or(ptx);
    for line in code.lines() {
        let directive = line.split_whitespace().next();
        if !matches!(directive, Some(".loc" | ".file")) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Returns the errors among the messages of cargo.
fn diagnostics(messages: &str) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for message in messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let message = &message["message"];
        let text = message["message"].as_str().unwrap_or_default();
        if message["level"] != "error" || text.starts_with("aborting due to") {
            continue;
        }
        let spans = message["spans"].as_array();
        let primary = spans
            .into_iter()
            .flatten()
            .find(|span| span["is_primary"] == true);
        let primary = primary.unwrap_or(&Value::Null);
        diagnostics.push(Diagnostic {
            message: text.to_owned(),
            file: primary["file_name"].as_str().unwrap_or_default().to_owned(),
            line: primary["line_start"].as_u64().unwrap_or(0),
            rendered: message["rendered"].as_str().unwrap_or(text).to_owned(),
        });
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_lines_are_removed() {
        let ptx = ".version 7.8\n\t.file\t1 \"src/lib.rs\"\n\t.local .align 8 .b8 x[8];\n\t.loc\t1 8 20\n\tret;\n\t.section\t.debug_str\n\t{\n$L__info_string0:\n\t.b8 102,0\n\t}\n";
        assert_eq!(
            without_lines(ptx),
            ".version 7.8\n\t.local .align 8 .b8 x[8];\n\tret;\n"
        );
    }

    /// Kernels whose instructions need more than one round would not compile.
    #[test]
    fn fixpoints_are_not_verified() {
        let combine = PASSES.matches("instcombine").count();
        assert_eq!(
            combine,
            PASSES.matches("instcombine<no-verify-fixpoint>").count()
        );
    }

    #[test]
    fn packages_of_one_build_share_a_folder() {
        let out = Path::new("/w/target/debug/build/app-0123/out");
        assert_eq!(
            shared_target_folder(out),
            Path::new("/w/target/debug/curium-kernels")
        );
        let nested = Path::new("/w/target/debug/build/app/0123/out");
        assert_eq!(shared_target_folder(nested), shared_target_folder(out));
        assert_eq!(
            shared_target_folder(Path::new("/tmp/x")),
            Path::new("/tmp/x/target")
        );
    }
}
