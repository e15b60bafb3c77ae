//! `cargo xtask sim`: builds the simulated driver and libraries, as one shared library.

#[path = "../../crates/cli/src/simulator/libraries.rs"]
mod libraries;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo;
use crate::version::Version;

/// The command that builds the shared library. Its soname is the driver's, so that programs linked
/// to the driver load it.
const BUILD: &[&str] = &[
    "rustc",
    "-p",
    "curium-sim-libraries",
    "--lib",
    "--release",
    "--features",
    "export",
    "--crate-type",
    "cdylib",
];
const COMPILER: &[&str] = &["-C", "link-arg=-Wl,-soname,libcuda.so.1"];
/// The command that builds the static library, from which libraries with other exports are linked.
const BUILD_STATIC: &[&str] = &[
    "rustc",
    "-p",
    "curium-sim-libraries",
    "--lib",
    "--release",
    "--features",
    "export",
    "--crate-type",
    "staticlib",
];
/// The functions of the libraries, as patterns of a linker script.
const LIBRARY_FUNCTIONS: &str = "cublas*; cufft*; cupti*; curand*; nccl*;";
/// The system libraries that the static library requires.
const SYSTEM: &[&str] = &[
    "-lgcc_s",
    "-lutil",
    "-lrt",
    "-lpthread",
    "-lm",
    "-ldl",
    "-lc",
];
/// The versions of the CUDA runtime, each with the name of its shared library.
const RUNTIMES: [(&str, &str); 3] = [
    ("11", "libcudart.so.11.0"),
    ("12", "libcudart.so.12"),
    ("13", "libcudart.so.13"),
];
/// The list of functions.
const FUNCTIONS: &str = "crates/sys/src/generated/functions.rs";

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Leave out the symbols that drivers of this CUDA version lack, as a real driver does.
    #[arg(long, value_name = "VERSION")]
    cuda: Option<Version>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = cargo::target_folder()?.join("sim");
    let path = match options.cuda {
        Some(version) => folder.join(version.to_string()).join("libcuda.so.1"),
        None => folder.join("libcuda.so.1"),
    };
    fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    match options.cuda {
        Some(version) => link(version, &path)?,
        None => {
            let library = built(BUILD, COMPILER, "so")?;
            // Running programs keep the file that they mapped.
            let copy = path.with_extension("new");
            fs::copy(&library, &copy)
                .and_then(|_| fs::rename(&copy, &path))
                .with_context(|| path.display().to_string())?;
        }
    }
    println!("{}", path.display());
    libraries::create(&path)?;
    if options.cuda.is_none() {
        for (major, soname) in RUNTIMES {
            build_runtime(major, soname, &folder)?;
        }
    }
    Ok(())
}

/// Builds the CUDA runtime of one version next to the driver: as a shared library under its usual
/// name, and as a static library in a separate folder, for programs that are relinked.
fn build_runtime(major: &str, soname: &str, folder: &Path) -> Result<()> {
    let setting = format!("env.CURIUM_CUDART_MAJOR='{major}'");
    let arguments = [
        "rustc",
        "--config",
        &setting,
        "-p",
        "curium-cudart",
        "--lib",
        "--release",
        "--crate-type",
        "staticlib",
    ];
    let objects = built(&arguments, &[], "a")?;
    let folder_of_static = folder.join(format!("cudart-{major}"));
    fs::create_dir_all(&folder_of_static)?;
    fs::copy(&objects, folder_of_static.join("libcudart_static.a"))?;
    let script = folder_of_static.join("exports.map");
    fs::write(
        &script,
        format!("{soname} {{ global: cuda*; __cuda*; local: *; }};\n"),
    )?;
    let path = folder.join(soname);
    link_shared(soname, &script, &objects, &path)?;
    println!("{}", path.display());
    Ok(())
}

/// Builds with cargo, and returns the only file with this extension.
fn built(arguments: &[&str], compiler: &[&str], extension: &str) -> Result<std::path::PathBuf> {
    let artifacts = cargo::build(arguments, compiler)?;
    let file = artifacts
        .into_iter()
        .map(|artifact| artifact.file)
        .find(|file| file.extension().is_some_and(|ending| ending == extension));
    file.with_context(|| format!("cargo built no file that ends in .{extension}"))
}

/// Links a library that exports exactly the functions of drivers of `version`. A symbol cannot be
/// hidden at run time, since the system's loader resolves it.
fn link(version: Version, path: &Path) -> Result<()> {
    let script = path.with_file_name("exports.map");
    fs::write(&script, exports(&functions()?, version)?)?;
    let objects = built(BUILD_STATIC, &[], "a")?;
    link_shared("libcuda.so.1", &script, &objects, path)?;
    // The library may report at most the driver version whose functions it exports.
    println!("set CURIUM_SIM_DRIVER_VERSION={version} when it is loaded");
    Ok(())
}

/// Links a static library as a shared one with the exports that a script lists.
fn link_shared(soname: &str, script: &Path, objects: &Path, path: &Path) -> Result<()> {
    let mut linker = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    linker
        .arg("-shared")
        .arg(format!("-Wl,-soname,{soname}"))
        .args(["-Wl,--gc-sections", "-o"])
        .arg(path);
    linker.arg(format!("-Wl,--version-script={}", script.display()));
    linker
        .arg("-Wl,--whole-archive")
        .arg(objects)
        .arg("-Wl,--no-whole-archive")
        .args(SYSTEM);
    let status = linker
        .status()
        .with_context(|| format!("{} cannot be run", linker.get_program().display()))?;
    ensure!(status.success(), "the linker ended with {status}");
    Ok(())
}

/// Returns the functions of the driver, each with the version that introduced it.
pub(crate) fn functions() -> Result<Vec<(String, Version)>> {
    listed(&fs::read_to_string(crate::root().join(FUNCTIONS)).context(FUNCTIONS)?)
}

fn listed(list: &str) -> Result<Vec<(String, Version)>> {
    let lines = list
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("fn cu"));
    let function = |line: &str| {
        let name = line["fn ".len()..].split('(').next().unwrap_or_default();
        let since = line
            .rsplit_once("= ")
            .and_then(|(_, since)| since.trim_end_matches(';').parse().ok());
        let since = since.with_context(|| format!("{FUNCTIONS}: no version for {name}"))?;
        Ok((name.to_owned(), Version::from_raw(since)))
    };
    lines.map(function).collect()
}

/// Returns the linker script of the functions that drivers of `version` export, and of all
/// functions of the libraries.
fn exports(functions: &[(String, Version)], version: Version) -> Result<String> {
    let mut script = "{ global:\n".to_owned();
    let mut count = 0;
    for (name, _) in functions.iter().filter(|(_, since)| *since <= version) {
        // Includes the variants for per-thread default streams, if any.
        writeln!(script, "{name}; {name}_pt[ds][sz];")?;
        count += 1;
    }
    ensure!(
        count > 0,
        "no function of the driver is as old as CUDA {version}"
    );
    Ok(format!("{script}{LIBRARY_FUNCTIONS}\nlocal: *; }};\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "macro\n    fn cuInit(Flags: u32) -> R = 2000;\n  fn cuCtxCreate_v4(a: *mut A) -> R = 12050;\n}";

    fn version(text: &str) -> Version {
        text.parse().expect("this is a version")
    }

    #[test]
    fn exports_end_at_the_version() {
        let functions = listed(LIST).expect("the list is correct");
        let exports = |text| exports(&functions, version(text)).expect("at least one exists");
        assert_eq!(
            exports("12.4"),
            format!("{{ global:\ncuInit; cuInit_pt[ds][sz];\n{LIBRARY_FUNCTIONS}\nlocal: *; }};\n")
        );
        let newer = "cuInit; cuInit_pt[ds][sz];\ncuCtxCreate_v4; cuCtxCreate_v4_pt[ds][sz];";
        assert_eq!(
            exports("12.5"),
            format!("{{ global:\n{newer}\n{LIBRARY_FUNCTIONS}\nlocal: *; }};\n")
        );
    }

    /// A version older than every function and a line without a version are errors.
    #[test]
    fn list_without_functions_is_an_error() {
        assert!(exports(&listed(LIST).expect("the list is correct"), version("1.0")).is_err());
        assert!(listed("fn cuInit(Flags: u32) -> R;").is_err());
    }

    #[test]
    fn generated_list_grows_with_versions() {
        let functions = functions().expect("the list exists and is correct");
        let count = |text| {
            exports(&functions, version(text))
                .expect("at least one exists")
                .lines()
                .count()
        };
        assert!(
            count("11.8") > 400 && count("11.8") < count("12.0") && count("13.0") < count("13.5")
        );
    }
}
