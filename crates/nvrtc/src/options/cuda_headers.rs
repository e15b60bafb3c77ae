//! CUDA headers installed on this machine.

use std::path::{Path, PathBuf};

use curium_driver::sys::load::{Package, include_folders};

use super::CompileOptions;
use crate::{Error, Result};

/// The folders of headers in NVIDIA's Python packages.
const PACKAGES: [Package; 3] = [
    Package {
        name: "nvidia-cuda-runtime",
        folder: "nvidia/cu13/include",
    },
    Package {
        name: "nvidia-cuda-runtime-cu12",
        folder: "nvidia/cuda_runtime/include",
    },
    Package {
        name: "nvidia-cuda-cccl-cu12",
        folder: "nvidia/cuda_cccl/include",
    },
];

/// Headers that programs include, and the packages that contain them, for CUDA 13 and CUDA 12.
const NEEDED: [(&str, &str); 2] = [
    (
        "cuda_fp16.h",
        "nvidia-cuda-runtime` or `nvidia-cuda-runtime-cu12",
    ),
    ("nv/target", "nvidia-cuda-cccl` or `nvidia-cuda-cccl-cu12"),
];

impl CompileOptions {
    /// Adds the folders of this machine's CUDA headers, such as `cuda_fp16.h`, and of the CUDA C++ Core Libraries, such
    /// as `nv/target` and `cuda/std/array`.
    ///
    /// The first folder that contains them is used, in this order: `include` in `CUDA_HOME`, `CUDA_PATH` and
    /// `CONDA_PREFIX`; the packages `nvidia-cuda-runtime` and `nvidia-cuda-cccl` (for CUDA 12: `-cu12`) in the active
    /// Python environments; `/usr/local/cuda`, `/opt/cuda` and `/usr`. Set-uid programs ignore the environment. The
    /// headers should be of the same CUDA version as NVRTC.
    /// [`Nvrtc::install_bundled_headers`](crate::Nvrtc::install_bundled_headers) requires no installed headers.
    ///
    /// NVRTC: `--include-path`.
    ///
    /// # Errors
    ///
    /// [`Error::Headers`] names the missing header, the package to install and the folders that were searched.
    pub fn with_cuda_headers(self) -> Result<Self> {
        self.with_headers_in(&include_folders(&PACKAGES))
    }

    /// Adds the first of `folders` that contains each header. CUDA 13 has the CUDA C++ Core Libraries in a separate
    /// folder.
    fn with_headers_in(mut self, folders: &[PathBuf]) -> Result<Self> {
        let mut used: Vec<PathBuf> = Vec::new();
        for (header, package) in NEEDED {
            let has = |folder: &Path| folder.join(header).is_file();
            let found = folders
                .iter()
                .flat_map(|folder| [folder.clone(), folder.join("cccl")])
                .find(|folder| has(folder));
            let Some(folder) = found else {
                return Err(Error::Headers {
                    header,
                    package,
                    folders: folders.to_vec(),
                });
            };
            if !used.contains(&folder) {
                used.push(folder);
            }
        }
        for folder in used {
            self = self.with_include_path(folder);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder_with(headers: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder can be created");
        for header in headers {
            let path = folder.path().join(header);
            fs::create_dir_all(path.parent().expect("it is in a folder"))
                .expect("the folder is writable");
            fs::write(path, "").expect("the folder is writable");
        }
        folder
    }

    fn arguments(folders: &[PathBuf]) -> Vec<String> {
        CompileOptions::new()
            .with_headers_in(folders)
            .expect("the headers are there")
            .to_arguments()
    }

    #[test]
    fn first_folder_with_each_header_is_used_once() {
        let whole = folder_with(&["cuda_fp16.h", "nv/target"]);
        let runtime = folder_with(&["cuda_fp16.h"]);
        let core = folder_with(&["cuda_fp16.h", "cccl/nv/target"]);
        let path = |folder: &tempfile::TempDir| folder.path().to_path_buf();
        let option = |path: &Path| format!("--include-path={}", path.display());
        let nowhere = PathBuf::from("/nowhere");
        assert_eq!(
            arguments(&[nowhere, path(&whole), path(&runtime)]),
            [option(whole.path())]
        );
        assert_eq!(
            arguments(&[path(&runtime), path(&whole)]),
            [option(runtime.path()), option(whole.path())]
        );
        assert_eq!(
            arguments(&[path(&core)]),
            [option(core.path()), option(&core.path().join("cccl"))]
        );
    }

    #[test]
    fn missing_header_is_an_error_that_names_the_package() {
        let runtime = folder_with(&["cuda_fp16.h"]);
        let folders = [runtime.path().to_path_buf(), PathBuf::from("/nowhere")];
        let error = CompileOptions::new()
            .with_headers_in(&folders)
            .expect_err("there is no `nv/target`")
            .to_string();
        assert!(
            error.starts_with("CUDA headers: `nv/target` not found (searched "),
            "{error}"
        );
        assert!(
            error.contains("/nowhere)")
                && error.contains("; install the Python package `nvidia-cuda-cccl`"),
            "{error}"
        );
        let error = CompileOptions::new()
            .with_headers_in(&[])
            .expect_err("there is nothing")
            .to_string();
        assert!(
            error.contains("`cuda_fp16.h`") && error.contains("`nvidia-cuda-runtime`"),
            "{error}"
        );
    }
}
