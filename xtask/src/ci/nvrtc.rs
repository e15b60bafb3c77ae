//! The tests of `curium-nvrtc` with the real compilers, which need no GPU.

use anyhow::{Context as _, Result};

use super::{Options, Outcome, run_all};
use crate::cargo::cargo;
use crate::package::{CudaVersion, Pins};
use crate::version::Version;

/// The versions that are run when none is chosen, besides the newest: the oldest, and the first with precompiled headers.
const VERSIONS: [Version; 2] = [Version::from_raw(11080), Version::from_raw(12080)];

/// Runs the tests once for each version, in processes of their own: a process loads one NVRTC.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let pins = Pins::read()?;
    for nvrtc in chosen(&pins, &options.cuda)? {
        println!("NVRTC of CUDA {}", nvrtc.version);
        let mut command = cargo();
        command.args(["test", "-p", "curium-nvrtc", "--quiet"]);
        command.env("CURIUM_NVRTC_PATH", nvrtc.package.folder_of(|name| name.starts_with("libnvrtc.so"))?);
        if let Some(linker) = pins.nvjitlink.iter().find(|linker| linker.version == nvrtc.version) {
            let folder = linker.package.folder_of(|name| name.starts_with("libnvJitLink.so"))?;
            command.env("CURIUM_NVJITLINK_PATH", folder);
        }
        run_all(&mut command)?;
    }
    Ok(Outcome::Passed)
}

/// The NVRTCs of `versions`, or of those that are always run.
fn chosen<'a>(pins: &'a Pins, versions: &[Version]) -> Result<Vec<&'a CudaVersion>> {
    let find = |version: &Version| {
        let found = pins.nvrtc.iter().find(|nvrtc| nvrtc.version == *version);
        found.with_context(|| format!("no NVRTC of CUDA {version} is pinned"))
    };
    if !versions.is_empty() {
        return versions.iter().map(find).collect();
    }
    let newest = pins.nvrtc.last().context("no NVRTC is pinned")?;
    VERSIONS.iter().map(find).chain([Ok(newest)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_one_between_and_newest_are_run_unless_others_are_chosen() {
        let pins = Pins::read().expect("the pins are valid");
        let versions = |chosen: &[Version]| {
            let chosen = super::chosen(&pins, chosen)?;
            Ok::<_, anyhow::Error>(chosen.iter().map(|nvrtc| nvrtc.version).collect::<Vec<_>>())
        };
        let newest = pins.newest().expect("there is one").version;
        assert_eq!(versions(&[]).expect("all are pinned"), [VERSIONS[0], VERSIONS[1], newest]);
        assert_eq!(versions(&[newest]).expect("it is pinned"), [newest]);
        versions(&[Version::from_raw(10000)]).expect_err("it is not pinned");
    }
}
