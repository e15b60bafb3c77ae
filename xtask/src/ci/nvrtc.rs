//! The tests of `curium-nvrtc` with the real compilers, which need no GPU, the chapter of the book
//! on CUDA C++, and the example that compiles.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::{Options, Outcome, run_all};
use crate::cargo::cargo;
use crate::package::{CudaVersion, Pins};
use crate::version::Version;

/// The oldest version, which runs by default besides the newest.
const OLDEST: Version = Version::from_raw(11080);

/// The first version with precompiled headers, which runs in the long form, too.
const PRECOMPILED_HEADERS: Version = Version::from_raw(12080);

/// The environment variable with the folders of CUDA's headers.
const INCLUDE_VARIABLE: &str = "CURIUM_CUDA_INCLUDE_PATH";

/// The module of the book's chapter on CUDA C++, and the first version that compiles CUB.
const CHAPTER: &str = "cuda_cpp";
const CHAPTER_SINCE: Version = Version::from_raw(12080);

/// The example that compiles a template. The simulated driver accepts PTX of an NVRTC that is not
/// newer.
const EXAMPLE: &str =
    "run --quiet -p curium --features nvrtc --example 08_nvrtc_templates -- --device sim";
const DRIVER: Version = Version::from_raw(13000);
/// The output of the example with NVRTC; without NVRTC it succeeds, too.
const RESULT: &str = "[3.0, 5.0, 7.0], [-1, -2, -3]";

/// Runs the tests once for each version, in processes of their own: a process loads one NVRTC.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let pins = Pins::read()?;
    let chosen = chosen(&pins, options)?;
    for nvrtc in &chosen {
        println!("NVRTC of CUDA {}", nvrtc.version);
        let mut command = cargo();
        command
            .args(["test", "-p", "curium-nvrtc", "--quiet"])
            .env("CURIUM_NVRTC_PATH", folder(nvrtc)?);
        if let Some(linker) = pins
            .nvjitlink
            .iter()
            .find(|linker| linker.version == nvrtc.version)
        {
            let folder = linker
                .package
                .folder_with(|name| name.starts_with("libnvJitLink.so"))?;
            command.env("CURIUM_NVJITLINK_PATH", folder);
        }
        if let Some(folders) = include_folders(&pins, nvrtc.version)? {
            command.env(INCLUDE_VARIABLE, folders);
        }
        run_all(&mut command)?;
    }
    for nvrtc in &chosen {
        if let Some(folders) = include_folders(&pins, nvrtc.version)?
            && nvrtc.version >= CHAPTER_SINCE
        {
            run_chapter(nvrtc, &folders)?;
        }
    }
    let newest = chosen.iter().rfind(|nvrtc| nvrtc.version <= DRIVER);
    newest.map_or(Ok(()), |nvrtc| run_example(nvrtc))?;
    Ok(Outcome::Passed)
}

/// Returns the folders of CUDA's headers of this version, if its C++ libraries are pinned.
fn include_folders(pins: &Pins, version: Version) -> Result<Option<OsString>> {
    let Some(cccl) = pins.cccl.iter().find(|cccl| cccl.version == version) else {
        return Ok(None);
    };
    let cub = cccl.package.folder_with(|name| name == "cub.cuh")?;
    let libraries = cub
        .parent()
        .context("the package has a folder of headers")?;
    let folders = [pins.cuda(version)?.include()?, libraries.to_path_buf()];
    Ok(Some(std::env::join_paths(folders)?))
}

/// Runs the code of the book's chapter, which only compiles without NVRTC.
fn run_chapter(nvrtc: &CudaVersion, include_folders: &OsString) -> Result<()> {
    let mut command = cargo();
    command
        .args(["test", "-p", "curium-tests", "--quiet", "--doc", CHAPTER])
        .env("CURIUM_NVRTC_PATH", folder(nvrtc)?)
        .env(INCLUDE_VARIABLE, include_folders);
    run_all(&mut command)?;
    Ok(())
}

/// Returns the folder of this NVRTC.
fn folder(nvrtc: &CudaVersion) -> Result<PathBuf> {
    nvrtc
        .package
        .folder_with(|name| name.starts_with("libnvrtc.so"))
}

fn run_example(nvrtc: &CudaVersion) -> Result<()> {
    let mut command = cargo();
    command
        .args(EXAMPLE.split(' '))
        .env("CURIUM_NVRTC_PATH", folder(nvrtc)?)
        .stderr(Stdio::inherit());
    let output = command.output().context("cargo cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.contains(RESULT),
        "08_nvrtc_templates: {}, {text}",
        output.status
    );
    Ok(())
}

/// Returns the NVRTCs of the chosen versions, or of the default ones.
fn chosen<'a>(pins: &'a Pins, options: &Options) -> Result<Vec<&'a CudaVersion>> {
    let mut versions = options.cuda.clone();
    if versions.is_empty() {
        versions.push(OLDEST);
        if options.thorough {
            versions.push(PRECOMPILED_HEADERS);
        }
        let newest = pins.nvrtc.last().context("no NVRTC is pinned")?;
        versions.push(newest.version);
    }
    versions
        .into_iter()
        .map(|version| {
            let pinned = pins.nvrtc.iter().find(|nvrtc| nvrtc.version == version);
            pinned.with_context(|| format!("no NVRTC of CUDA {version} is pinned"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oldest and the newest version run unless others are chosen, and one in between in the
    /// long form.
    #[test]
    fn oldest_and_newest_run_by_default() {
        let pins = Pins::read().expect("the pins are valid");
        let newest = pins.newest().expect("no NVRTC is pinned").version;
        let mut options = Options::default();
        let versions = |options: &Options| -> Result<Vec<Version>> {
            let chosen = chosen(&pins, options)?;
            Ok(chosen.iter().map(|nvrtc| nvrtc.version).collect())
        };
        assert_eq!(
            versions(&options).expect("all are pinned"),
            [OLDEST, newest]
        );
        options.thorough = true;
        assert_eq!(
            versions(&options).expect("all are pinned"),
            [OLDEST, PRECOMPILED_HEADERS, newest]
        );
        options.cuda = vec![newest];
        assert_eq!(versions(&options).expect("not pinned"), [newest]);
        options.cuda = vec![Version::from_raw(10000)];
        versions(&options).expect_err("it is not pinned");
    }
}
