//! CUDA headers installed on this machine.

use std::path::PathBuf;

use curium_driver::sys::has_raised_privileges;
use curium_driver::sys::load::{Package, include_folders};

use super::CompileOptions;
use crate::{Error, Result};

/// The environment variable with the folders to search instead, separated as in `PATH`.
const VARIABLE: &str = "CURIUM_CUDA_INCLUDE_PATH";

/// The folder of headers that a toolkit has in `include`, and CUDA 13 in `include/cccl`.
const SUBFOLDER: &str = "cccl";

/// The folders of headers in NVIDIA's Python packages.
const PACKAGES: [Package; 5] = [
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
    Package {
        name: "nvidia-cuda-nvcc-cu12",
        folder: "nvidia/cuda_nvcc/include",
    },
    Package {
        name: "nvidia-curand-cu12",
        folder: "nvidia/curand/include",
    },
];

/// Headers that are installed together.
struct HeaderGroup {
    /// One of them.
    header: &'static str,
    /// The packages that contain them, for CUDA 13 and CUDA 12.
    package: &'static str,
    is_required: bool,
}

const GROUPS: [HeaderGroup; 4] = [
    HeaderGroup {
        header: "cuda_fp16.h",
        package: "nvidia-cuda-runtime` or `nvidia-cuda-runtime-cu12",
        is_required: true,
    },
    HeaderGroup {
        header: "cub/version.cuh",
        package: "nvidia-cuda-cccl` or `nvidia-cuda-cccl-cu12",
        is_required: true,
    },
    HeaderGroup {
        header: "crt/mma.h",
        package: "nvidia-cuda-crt` or `nvidia-cuda-nvcc-cu12",
        is_required: false,
    },
    HeaderGroup {
        header: "curand_kernel.h",
        package: "nvidia-curand` or `nvidia-curand-cu12",
        is_required: false,
    },
];

impl CompileOptions {
    /// Adds the folders of this machine's CUDA headers, such as `cuda_fp16.h`, and of the CUDA C++
    /// Core Libraries (CUB, libcu++), such as `cub/block/block_reduce.cuh` and `cuda/std/array`.
    /// The headers of cuRAND's device functions and of `mma.h` are added if they are installed.
    ///
    /// If the environment variable `CURIUM_CUDA_INCLUDE_PATH` contains folders, separated as in
    /// `PATH`, only these are searched. Otherwise the first folder that contains the headers is
    /// used, in this order:
    ///
    /// - `include`, and that of the target such as `targets/x86_64-linux/include`, in `CUDA_HOME`,
    ///   `CUDA_PATH` and `CONDA_PREFIX`,
    /// - the packages `nvidia-cuda-runtime`, `nvidia-cuda-cccl`, `nvidia-cuda-crt` and
    ///   `nvidia-curand` (for CUDA 12: `nvidia-cuda-runtime-cu12`, `nvidia-cuda-cccl-cu12`,
    ///   `nvidia-cuda-nvcc-cu12` and `nvidia-curand-cu12`) in the active Python environments,
    /// - `/usr/local/cuda/include`, `/opt/cuda/include` and `/usr/include`.
    ///
    /// Each folder is followed by its subfolder `cccl`, where CUDA 13 has the Core Libraries.
    /// Set-uid programs ignore the environment. The headers should be of the same CUDA version as
    /// NVRTC. NVRTC of CUDA 13.3 and newer contains these headers, without cuRAND's:
    /// [`with_bundled_headers`](Self::with_bundled_headers) requires no installed headers.
    ///
    /// NVRTC: `--include-path`.
    ///
    /// # Errors
    ///
    /// [`Error::Headers`] names the missing header, the package to install and the folders that
    /// were searched.
    pub fn with_cuda_headers(self) -> Result<Self> {
        self.with_headers_in(&chosen_folders().unwrap_or_else(|| include_folders(&PACKAGES)))
    }

    /// Adds the first of `folders` that contains each group of headers.
    fn with_headers_in(mut self, folders: &[PathBuf]) -> Result<Self> {
        let mut used: Vec<PathBuf> = Vec::new();
        for group in &GROUPS {
            match folder_with(group.header, folders) {
                Some(folder) if used.contains(&folder) => {}
                Some(folder) => used.push(folder),
                None if group.is_required => {
                    return Err(Error::Headers {
                        header: group.header,
                        package: group.package,
                        folders: folders.to_vec(),
                    });
                }
                None => {}
            }
        }
        for folder in used {
            self = self.with_include_path(folder);
        }
        Ok(self)
    }
}

/// Returns the folders in [`VARIABLE`], unless it is not set or the program has elevated
/// privileges.
fn chosen_folders() -> Option<Vec<PathBuf>> {
    let value = std::env::var_os(VARIABLE).filter(|value| !value.is_empty())?;
    (!has_raised_privileges()).then(|| std::env::split_paths(&value).collect())
}

/// Returns the first of `folders`, or of their subfolders for CUDA's C++ libraries, that contains
/// `header`.
fn folder_with(header: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders
        .iter()
        .flat_map(|folder| [folder.clone(), folder.join(SUBFOLDER)])
        .find(|folder| folder.join(header).is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn headers_in(headers: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        for header in headers {
            let path = folder.path().join(header);
            fs::create_dir_all(path.parent().expect("no parent folder"))
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

    fn path(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().to_path_buf()
    }

    fn option(path: &Path) -> String {
        format!("--include-path={}", path.display())
    }

    #[test]
    fn first_folder_with_each_header_is_used_once() {
        let whole = headers_in(&["cuda_fp16.h", "cub/version.cuh"]);
        let runtime = headers_in(&["cuda_fp16.h"]);
        // CUDA 13 has `nv` in both folders.
        let core = headers_in(&[
            "cuda_fp16.h",
            "nv/target",
            "cccl/nv/target",
            "cccl/cub/version.cuh",
        ]);
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
        let random = headers_in(&["curand_kernel.h"]);
        assert_eq!(
            arguments(&[path(&random), path(&whole)]),
            [option(whole.path()), option(random.path())]
        );
    }

    #[test]
    fn missing_header_is_an_error_that_names_the_package() {
        let runtime = headers_in(&["cuda_fp16.h"]);
        let folders = [runtime.path().to_path_buf(), PathBuf::from("/nowhere")];
        let error = CompileOptions::new()
            .with_headers_in(&folders)
            .expect_err("there is no `cub/version.cuh`")
            .to_string();
        assert!(
            error.starts_with("CUDA headers: `cub/version.cuh` not found (searched "),
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
