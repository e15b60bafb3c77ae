//! Tests that packages leave out, from the repositories of their sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Folder, python};

/// One commit of a repository. Git checks its contents against the commit's name.
#[derive(Debug)]
pub(super) struct Repository {
    /// The folder in the output folder.
    name: &'static str,
    url: &'static str,
    commit: &'static str,
}

/// The release 1.1.0 of cuda-core, with the tests of cuda-bindings.
pub(super) static CUDA_PYTHON: Repository = Repository {
    name: "cuda-python-sources",
    url: "https://github.com/NVIDIA/cuda-python",
    commit: "8eb9dc2ba180394a763d40405be4cf8865b5f8eb",
};
/// The release 1.5.0 of Dr.Jit.
pub(super) static DRJIT: Repository = Repository {
    name: "drjit-sources",
    url: "https://github.com/mitsuba-renderer/drjit",
    commit: "671cbb25244be8a9731ac7b0e40e60ff122b8f8d",
};
/// The release 1.3.0 of Quadrants.
pub(super) static QUADRANTS: Repository = Repository {
    name: "quadrants-sources",
    url: "https://github.com/Genesis-Embodied-AI/quadrants",
    commit: "ab9a58ab5f9e30daf7d8302083ea7b9bc4368a1d",
};

impl Repository {
    /// Fetches the commit unless it is there. Returns the reason if this machine cannot.
    pub(super) fn prepare(&self, folder: &Folder) -> Result<Option<String>> {
        let sources = self.sources(folder);
        if sources.is_dir() {
            return Ok(None);
        }
        let work = sources.with_extension(std::process::id().to_string());
        fs::create_dir_all(&work)?;
        for arguments in [
            &["init", "--quiet"][..],
            &["fetch", "--quiet", "--depth=1", self.url, self.commit],
            &["checkout", "--quiet", self.commit],
        ] {
            if let Some(reason) = python::failure(git(&work).args(arguments))? {
                fs::remove_dir_all(&work)?;
                return Ok(Some(format!("git cannot fetch them (offline?): {reason}")));
            }
        }
        fs::rename(&work, &sources).with_context(|| sources.display().to_string())?;
        Ok(None)
    }

    /// Returns the folder with the files of the commit.
    pub(super) fn sources(&self, folder: &Folder) -> PathBuf {
        let short = &self.commit[..12];
        folder.built.join(format!("{}-{short}", self.name))
    }
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    git
}
