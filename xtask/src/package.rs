//! Pinned packages: fetched by name and release, verified by checksum, unpacked once into a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::version::Version;

/// One wheel of the package index, pinned by its checksum.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) package: String,
    pub(crate) release: String,
    pub(crate) sha256: String,
    /// The sha256 of the text of [`Package::headers`], for packages of which only these are
    /// fetched.
    pub(crate) headers: Option<String>,
}

/// The package of one version of CUDA, or of a library with a numbering of its own.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CudaVersion {
    pub(crate) version: Version,
    #[serde(flatten)]
    pub(crate) package: Package,
}

/// The pinned packages of `cuda-versions.toml`.
#[derive(Debug, Deserialize)]
pub(crate) struct Pins {
    pub(crate) cuda: Vec<CudaVersion>,
    pub(crate) libclang: Package,
    /// NVRTC of each version, the oldest first.
    pub(crate) nvrtc: Vec<CudaVersion>,
    /// nvJitLink of each version, the oldest first.
    pub(crate) nvjitlink: Vec<CudaVersion>,
    /// cuBLAS and cuBLASLt of each version, the oldest first.
    pub(crate) cublas: Vec<CudaVersion>,
    /// cuRAND of each version, the oldest first.
    pub(crate) curand: Vec<CudaVersion>,
    /// cuFFT of each version, the oldest first.
    pub(crate) cufft: Vec<CudaVersion>,
    /// CUPTI of each version, the oldest first.
    pub(crate) cupti: Vec<CudaVersion>,
    /// NCCL of each of its own versions, the oldest first.
    pub(crate) nccl: Vec<CudaVersion>,
    /// The CUDA C++ Core Libraries for the versions of NVRTC that are tested by default, the oldest
    /// first.
    pub(crate) cccl: Vec<CudaVersion>,
    /// The assemblers with which the simulator is compared.
    pub(crate) ptxas: Vec<CudaVersion>,
}

impl Pins {
    /// Reads `xtask/cuda-versions.toml`.
    pub(crate) fn read() -> Result<Self> {
        let path = crate::root().join("xtask/cuda-versions.toml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Returns the newest CUDA version, from which the bindings are generated.
    pub(crate) fn newest(&self) -> Result<&CudaVersion> {
        self.cuda
            .last()
            .context("cuda-versions.toml lists no CUDA version")
    }

    /// Returns the NVRTC whose PTX every supported driver accepts: the oldest.
    pub(crate) fn oldest_nvrtc(&self) -> Result<&Package> {
        Ok(&self
            .nvrtc
            .first()
            .context("cuda-versions.toml lists no NVRTC")?
            .package)
    }

    /// Returns the pin of CUDA `version`.
    pub(crate) fn cuda(&self, version: Version) -> Result<&CudaVersion> {
        self.cuda
            .iter()
            .find(|cuda| cuda.version == version)
            .with_context(|| {
                let pinned: Vec<_> = self
                    .cuda
                    .iter()
                    .map(|cuda| cuda.version.to_string())
                    .collect();
                format!(
                    "CUDA {version} is not pinned; known are {}",
                    pinned.join(", ")
                )
            })
    }
}

impl CudaVersion {
    /// Returns the folder that holds `cuda.h` and `cudaTypedefs.h` of this version.
    pub(crate) fn include(&self) -> Result<PathBuf> {
        self.package.folder_with(|name| name == "cuda.h")
    }
}

impl Package {
    /// Returns the folder within the package that holds the first file whose name is `wanted`.
    pub(crate) fn folder_with(&self, wanted: impl Fn(&str) -> bool + Copy) -> Result<PathBuf> {
        let file = find(&self.unpacked()?, wanted).with_context(|| {
            format!(
                "{} {} lacks a file that it must hold",
                self.package, self.release
            )
        })?;
        Ok(file
            .parent()
            .expect("a file lies in a folder")
            .to_path_buf())
    }

    /// Returns the file `name` of the package. Only this file is cached, unless the whole package
    /// is.
    pub(crate) fn header(&self, name: &str) -> Result<PathBuf> {
        let whole = self.folder("")?;
        let folder = if whole.is_dir() {
            whole
        } else {
            self.kept("-header", |unpacked| only(unpacked, name))?
        };
        find(&folder, |file| file == name)
            .with_context(|| format!("{} holds no {name}", folder.display()))
    }

    /// Returns the folder of the package's headers; reads and verifies them on first use. The rest
    /// of the package, hundreds of megabytes, stays where it is.
    pub(crate) fn headers(&self) -> Result<PathBuf> {
        let folder = self.folder("-headers")?;
        if folder.is_dir() {
            return Ok(folder);
        }
        let work = cache().join(format!(
            "{}-{}.{}",
            self.package,
            self.release,
            std::process::id()
        ));
        self.read_headers(&work)?;
        self.verify_headers(&work)?;
        let moved = fs::rename(&work, &folder);
        ensure!(
            moved.is_ok() || folder.is_dir(),
            "{} cannot be created: {moved:?}",
            folder.display()
        );
        Ok(folder)
    }

    /// Copies the headers into the folder `into`, with a program that reads parts of a wheel
    /// through pip.
    fn read_headers(&self, into: &Path) -> Result<()> {
        let mut python = Command::new("python3");
        python.args([
            "-c",
            include_str!("package/read_headers.py"),
            &self.package,
            &self.release,
            &self.sha256,
        ]);
        let output = python
            .arg(into)
            .output()
            .context("python3 with pip is needed to fetch packages")?;
        ensure!(
            output.status.success(),
            "the headers of {}=={} are not in the cache {} and could not be read with pip (offline?):\n{}",
            self.package,
            self.release,
            cache().display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }

    fn verify_headers(&self, folder: &Path) -> Result<()> {
        let pinned = self
            .headers
            .as_deref()
            .context("cuda-versions.toml pins no headers of the package")?;
        let mut files = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        let mut all = Sha256::new();
        for file in files {
            all.update(fs::read(file.path())?);
        }
        self.check_digest("headers with sha256", &hexadecimal(&all.finalize()), pinned)
    }

    /// Returns the folder of the unpacked package; fetches and verifies it on first use.
    pub(crate) fn unpacked(&self) -> Result<PathBuf> {
        self.kept("", |unpacked| Ok(unpacked.to_path_buf()))
    }

    /// Returns the cache folder with the part of the unpacked package that `keep` selects.
    fn kept(&self, suffix: &str, keep: impl Fn(&Path) -> Result<PathBuf>) -> Result<PathBuf> {
        let folder = self.folder(suffix)?;
        if folder.is_dir() {
            return Ok(folder);
        }
        // Another process may fetch the same package. Each uses its own folder, and the first one
        // wins.
        let work = cache().join(format!(
            "{}-{}.{}",
            self.package,
            self.release,
            std::process::id()
        ));
        let wheel = self.download(&work.join("wheel"))?;
        self.verify(&wheel)?;
        unzip(&wheel, &work.join("unpacked"))?;
        let moved = fs::rename(keep(&work.join("unpacked"))?, &folder);
        fs::remove_dir_all(&work)?;
        ensure!(
            moved.is_ok() || folder.is_dir(),
            "{} cannot be created: {moved:?}",
            folder.display()
        );
        Ok(folder)
    }

    fn folder(&self, suffix: &str) -> Result<PathBuf> {
        let digest = self.sha256.get(..12).with_context(|| {
            format!(
                "the sha256 of {} {} in cuda-versions.toml is not 64 digits long",
                self.package, self.release
            )
        })?;
        Ok(cache().join(format!(
            "{}-{}-{digest}{suffix}",
            self.package, self.release
        )))
    }

    fn download(&self, into: &Path) -> Result<PathBuf> {
        let requirement = format!("{}=={}", self.package, self.release);
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]);
        pip.arg("--only-binary=:all:");
        for platform in [
            "manylinux_2_28",
            "manylinux_2_27",
            "manylinux_2_17",
            "manylinux2014",
            "manylinux2010",
            "manylinux1",
        ] {
            pip.args(["--platform", &format!("{platform}_x86_64")]);
        }
        let output = pip
            .arg("-d")
            .arg(into)
            .arg(&requirement)
            .output()
            .context("python3 with pip is needed to fetch packages")?;
        ensure!(
            output.status.success(),
            "{requirement} is not in the cache {} and could not be fetched with pip (offline?):\n{}",
            cache().display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let mut files = fs::read_dir(into)?.collect::<std::io::Result<Vec<_>>>()?;
        match (files.pop(), files.is_empty()) {
            (Some(file), true) => Ok(file.path()),
            _ => bail!(
                "pip did not download exactly one file for {requirement} to {}",
                into.display()
            ),
        }
    }

    fn verify(&self, wheel: &Path) -> Result<()> {
        self.check_digest(
            "sha256",
            &hexadecimal(&Sha256::digest(fs::read(wheel)?)),
            &self.sha256,
        )
    }

    fn check_digest(&self, what: &str, found: &str, pinned: &str) -> Result<()> {
        let Self {
            package, release, ..
        } = self;
        ensure!(
            found == pinned,
            "{package} {release} has {what} {found}, but cuda-versions.toml pins {pinned}"
        );
        Ok(())
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the package cache: `CURIUM_CUDA_CACHE`, or `.cuda` in the workspace if it is not set.
fn cache() -> PathBuf {
    std::env::var_os("CURIUM_CUDA_CACHE").map_or_else(|| crate::root().join(".cuda"), PathBuf::from)
}

/// Returns a folder next to `unpacked` that contains only its file `name`.
fn only(unpacked: &Path, name: &str) -> Result<PathBuf> {
    let file = find(unpacked, |file| file == name)
        .with_context(|| format!("the package holds no {name}"))?;
    let folder = unpacked.with_file_name("only");
    fs::create_dir(&folder)?;
    fs::rename(file, folder.join(name))?;
    Ok(folder)
}

fn unzip(wheel: &Path, into: &Path) -> Result<()> {
    let output = Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(into)
        .output()?;
    ensure!(
        output.status.success(),
        "{}: {}",
        wheel.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// Returns the first file below `folder` whose name is `wanted`.
pub(crate) fn find(folder: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
    let file = files.into_iter().find(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(wanted)
    });
    file.or_else(|| folders.iter().find_map(|folder| find(folder, wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        Package {
            package: "a".to_owned(),
            release: "1".to_owned(),
            sha256: String::new(),
            headers: None,
        }
    }

    #[test]
    fn pins_name_each_version_once_and_in_order() {
        let pins = Pins::read().expect("the pins are valid");
        for list in [
            &pins.cuda,
            &pins.nvrtc,
            &pins.nvjitlink,
            &pins.cublas,
            &pins.curand,
            &pins.cufft,
            &pins.cupti,
            &pins.nccl,
            &pins.cccl,
        ] {
            let versions: Vec<_> = list.iter().map(|cuda| cuda.version).collect();
            assert!(
                versions.is_sorted_by(|earlier, later| earlier < later),
                "{versions:?}"
            );
        }
    }

    #[test]
    fn libraries_are_pinned_for_every_version() {
        let pins = Pins::read().expect("the pins are valid");
        let versions =
            |list: &[CudaVersion]| list.iter().map(|cuda| cuda.version).collect::<Vec<_>>();
        let cuda = versions(&pins.cuda);
        for list in [
            &pins.nvrtc,
            &pins.cublas,
            &pins.curand,
            &pins.cufft,
            &pins.cupti,
        ] {
            assert_eq!(versions(list), cuda);
        }
        assert_eq!(
            versions(&pins.nvjitlink),
            cuda[1..],
            "CUDA 12.0 introduced nvJitLink"
        );
    }

    #[test]
    fn package_with_another_checksum_is_refused() {
        let wheel = tempfile::NamedTempFile::new().expect("failed to create a file");
        let package = Package {
            sha256: "0".repeat(64),
            ..package()
        };
        let message = package
            .verify(wheel.path())
            .expect_err("no file has this checksum")
            .to_string();
        assert!(message.contains("has sha256 e3b0c44298fc1c14"), "{message}");
    }

    #[test]
    fn package_without_a_checksum_is_an_error() {
        let package = package();
        let message = package
            .unpacked()
            .expect_err("there is no checksum")
            .to_string();
        assert!(message.contains("not 64 digits long"), "{message}");
    }

    #[test]
    fn headers_with_another_checksum_are_refused() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let package = Package {
            headers: Some("0".repeat(64)),
            ..package()
        };
        fs::write(folder.path().join("a.h"), "").expect("the folder is writable");
        let message = package
            .verify_headers(folder.path())
            .expect_err("no file has this checksum")
            .to_string();
        assert!(
            message.contains("headers with sha256 e3b0c44298fc1c14"),
            "{message}"
        );
    }
}
