//! The paths at which a library may be installed.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::vec;
use std::vec::Vec;

use super::{LibraryDescription, Origin, Package, python};
use crate::has_raised_privileges;

/// The properties of a machine that the search depends on.
#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    /// The root of the file system.
    root: &'a Path,
    /// The architecture, as in [`env::consts::ARCH`].
    architecture: &'a str,
    /// Returns the value of an environment variable that is set and may be followed.
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The paths to open, and the searched folders without a match.
#[derive(Default)]
pub(super) struct Candidates {
    /// The paths to open, in order.
    pub(super) paths: Vec<PathBuf>,
    /// Existing folders that do not contain the library.
    pub(super) folders: Vec<PathBuf>,
}

impl Machine<'_> {
    /// Returns this machine.
    pub(super) fn this() -> Machine<'static> {
        Machine {
            root: Path::new("/"),
            architecture: env::consts::ARCH,
            variable: &variable,
        }
    }

    /// Returns the value of an environment variable as a path.
    pub(super) fn path(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from)
    }

    /// Returns a path that is absolute on every Unix.
    fn absolute(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the toolkits that the environment names.
    fn toolkits(&self) -> Vec<PathBuf> {
        self.paths(&["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"])
    }

    /// Returns the values of the environment variables that are set, as paths.
    pub(super) fn paths(&self, variables: &[&str]) -> Vec<PathBuf> {
        variables
            .iter()
            .filter_map(|name| self.path(name))
            .collect()
    }

    /// Returns paths that are absolute on every Unix.
    pub(super) fn absolutes(&self, paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(|path| self.absolute(path)).collect()
    }

    /// Returns the folders of the target below the root of a toolkit: servers with ARM processors
    /// (SBSA), Jetson, or x86-64.
    fn targets(&self, folder: &str) -> Vec<PathBuf> {
        let names: &[&str] = match self.architecture {
            "aarch64" => &["sbsa-linux", "aarch64-linux"],
            _ => &["x86_64-linux"],
        };
        names
            .iter()
            .map(|name| Path::new("targets").join(name).join(folder))
            .collect()
    }

    /// Returns the folders with libraries below the root of a toolkit or a Conda environment.
    fn library_folders(&self) -> Vec<PathBuf> {
        if cfg!(windows) {
            return [r"bin\x64", "bin", r"Library\bin\x64", r"Library\bin"]
                .map(PathBuf::from)
                .into();
        }
        [
            vec![PathBuf::from("lib64"), PathBuf::from("lib")],
            self.targets("lib"),
            // Installers of older toolkits put CUPTI there, and link to it from nowhere.
            vec![PathBuf::from("extras/CUPTI/lib64")],
        ]
        .concat()
    }

    /// Returns the folders in which drivers are installed and that the system's loader does not
    /// always search: WSL, NixOS, containers, Jetson.
    fn driver_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.absolutes(&[
            "/usr/lib/wsl/lib",
            "/run/opengl-driver/lib",
            "/usr/local/nvidia/lib64",
        ]);
        if self.architecture == "aarch64" {
            folders.extend(self.absolutes(&[
                "/usr/lib/aarch64-linux-gnu/nvidia",
                "/usr/lib/aarch64-linux-gnu/tegra",
            ]));
        }
        folders
    }

    /// Returns the folders of toolkits and of Python packages.
    fn toolkit_folders(&self, packages: &[Package]) -> Vec<PathBuf> {
        let names = self.library_folders();
        let mut folders = join_all(&self.toolkits(), &names);
        folders.extend(self.in_packages(packages));
        if cfg!(not(windows)) {
            folders.extend(join_all(
                &self.absolutes(&["/usr/local/cuda", "/opt/cuda"]),
                &names,
            ));
            folders.extend(self.absolutes(&["/usr/lib64", "/usr/lib"]));
        }
        folders
    }

    fn in_packages(&self, packages: &[Package]) -> Vec<PathBuf> {
        let folders: Vec<_> = packages
            .iter()
            .map(|package| PathBuf::from(package.folder))
            .collect();
        join_all(&python::package_folders(self), &folders)
    }

    fn include_folders(&self, packages: &[Package]) -> Vec<PathBuf> {
        let names = [vec![PathBuf::from("include")], self.targets("include")].concat();
        let mut folders = join_all(&self.toolkits(), &names);
        folders.extend(self.in_packages(packages));
        folders.extend(self.absolutes(&[
            "/usr/local/cuda/include",
            "/opt/cuda/include",
            "/usr/include",
        ]));
        folders
    }
}

impl Candidates {
    /// Returns the candidates on a machine. If the variable of the library is set, they are the
    /// library or the folder that it names.
    pub(super) fn for_library(library: &LibraryDescription, machine: &Machine<'_>) -> Self {
        if let Some(chosen) = machine.path(library.variable) {
            return Self {
                paths: in_folder_or_itself(library, &chosen),
                ..Self::default()
            };
        }
        match library.origin {
            Origin::Driver => Self {
                paths: driver_paths(library, machine),
                ..Self::default()
            },
            Origin::Toolkit(packages) => {
                Self::in_toolkits(library, machine.toolkit_folders(packages))
            }
        }
    }

    /// Returns the bare names, and the files that exist in `folders`. Listing every name in every
    /// folder would obscure the useful lines.
    fn in_toolkits(
        library: &LibraryDescription,
        folders: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let mut candidates = Self {
            paths: bare_names(library),
            ..Self::default()
        };
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let files = library.files.iter().map(|file| folder.join(file));
            let present: Vec<_> = files.filter(|path| path.exists()).collect();
            if present.is_empty() {
                candidates.folders.push(folder);
            } else {
                candidates.paths.extend(present);
            }
        }
        candidates
    }
}

/// Returns the preferred bare name, that name in each folder of drivers, and the other bare names.
/// On Windows the bare names alone, which are opened in the system folder only.
fn driver_paths(library: &LibraryDescription, machine: &Machine<'_>) -> Vec<PathBuf> {
    let Some((first, rest)) = library.files.split_first() else {
        return Vec::new();
    };
    let first = PathBuf::from(first);
    let mut paths = vec![first.clone()];
    if cfg!(not(windows)) {
        paths.extend(join_all(&machine.driver_folders(), &[first]));
    }
    paths.extend(rest.iter().map(PathBuf::from));
    paths
}

/// Returns each of the relative paths `names` below each of `folders`, those of the first folder
/// first.
///
/// The paths are collected in vectors: adaptors of iterators, nested and with several sources,
/// compile to many times the code.
fn join_all(folders: &[PathBuf], names: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::with_capacity(folders.len() * names.len());
    for folder in folders {
        paths.extend(names.iter().map(|name| folder.join(name)));
    }
    paths
}

/// Returns the folders of headers of the toolkits and of the Python `packages` on this machine, in
/// the order in which libraries are searched for. Some may not exist.
#[must_use]
pub fn include_folders(packages: &[Package]) -> Vec<PathBuf> {
    Machine::this().include_folders(packages)
}

/// Returns every name of the library in the folder at `path`, or `path` itself if it is not a
/// folder.
fn in_folder_or_itself(library: &LibraryDescription, path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        library.files.iter().map(|file| path.join(file)).collect()
    } else {
        vec![path.to_path_buf()]
    }
}

/// Returns the names that the system's loader searches for. There are none on Windows, whose loader
/// would search the folder of the program and the current folder first.
fn bare_names(library: &LibraryDescription) -> Vec<PathBuf> {
    if cfg!(windows) {
        Vec::new()
    } else {
        library.files.iter().map(PathBuf::from).collect()
    }
}

/// Returns the value of an environment variable, unless the program has elevated privileges.
fn variable(name: &str) -> Option<OsString> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    (!has_raised_privileges()).then_some(value)
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;
    use std::string::{String, ToString as _};

    use super::super::driver::DRIVER;
    use super::*;

    static EXAMPLE: LibraryDescription = LibraryDescription {
        name: "example",
        variable: "CURIUM_EXAMPLE_PATH",
        files: &["libexample.so.13", "libexample.so.12"],
        origin: Origin::Toolkit(&[Package {
            name: "example",
            folder: "nvidia/example/lib",
        }]),
        companions: &[],
        required: &[],
        symbol_versions: &[],
        check: |_| Ok(()),
    };

    #[test]
    fn bare_names_come_first_in_order() {
        let names: Vec<_> = EXAMPLE.files.iter().map(PathBuf::from).collect();
        assert_eq!(Candidates::in_toolkits(&EXAMPLE, []).paths, names);
    }

    #[test]
    fn folder_is_searched_for_libraries() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let all: Vec<_> = EXAMPLE
            .files
            .iter()
            .map(|file| folder.path().join(file))
            .collect();
        assert_eq!(in_folder_or_itself(&EXAMPLE, folder.path()), all);
        fs::write(&all[1], "").expect("the folder is writable");
        assert_eq!(in_folder_or_itself(&EXAMPLE, &all[1]), all[1..]);
    }

    #[test]
    fn libraries_in_folders_follow_the_bare_names() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let full = folder.path().join("full");
        let empty = folder.path().join("empty");
        fs::create_dir(&full).expect("the folder is writable");
        fs::create_dir(&empty).expect("the folder is writable");
        let library = full.join(EXAMPLE.files[1]);
        fs::write(&library, "").expect("the folder is writable");
        let candidates = Candidates::in_toolkits(
            &EXAMPLE,
            [full, empty.clone(), folder.path().join("absent")],
        );
        assert_eq!(candidates.paths[EXAMPLE.files.len()..], [library]);
        assert_eq!(candidates.folders, [empty]);
    }

    /// The files among the candidates of `library` on a machine with these files and variables, in
    /// order.
    fn found(
        library: &LibraryDescription,
        architecture: &str,
        files: &[&str],
        variables: &[(&str, &str)],
    ) -> Vec<String> {
        let root = tempfile::tempdir().expect("failed to create a folder");
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a file is in a folder"))
                .expect("the folder is writable");
            fs::write(path, "").expect("the folder is writable");
        }
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(set, _)| *set == name)?;
            let path = root.path().join(value.trim_start_matches('/'));
            Some(path.into_os_string())
        };
        let machine = Machine {
            root: root.path(),
            architecture,
            variable: &variable,
        };
        let paths = Candidates::for_library(library, &machine).paths;
        let existing = paths
            .iter()
            .filter(|path| path.is_absolute() && path.is_file());
        let relative = existing.map(|path| {
            path.strip_prefix(root.path())
                .expect("path outside of the root")
        });
        relative
            .map(|path| path.to_str().expect("the names are text").to_string())
            .collect()
    }

    #[test]
    fn driver_is_found_on_each_machine() {
        for (architecture, file) in [
            ("x86_64", "usr/lib/wsl/lib/libcuda.so.1"),
            ("aarch64", "usr/lib/wsl/lib/libcuda.so.1"),
            ("x86_64", "run/opengl-driver/lib/libcuda.so.1"),
            ("x86_64", "usr/local/nvidia/lib64/libcuda.so.1"),
            ("aarch64", "usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1"),
            ("aarch64", "usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1"),
        ] {
            assert_eq!(
                found(&DRIVER, architecture, &[file], &[]),
                [file],
                "{architecture}"
            );
        }
        assert!(
            found(
                &DRIVER,
                "x86_64",
                &["usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1"],
                &[]
            )
            .is_empty()
        );
    }

    #[test]
    fn driver_that_a_variable_names_hides_all_others() {
        let files = ["usr/lib/wsl/lib/libcuda.so.1", "opt/mine/libcuda.so.1"];
        for value in ["/opt/mine", "/opt/mine/libcuda.so.1"] {
            assert_eq!(
                found(&DRIVER, "x86_64", &files, &[("CURIUM_DRIVER_PATH", value)]),
                files[1..]
            );
        }
    }

    #[test]
    fn toolkit_in_a_variable_comes_first() {
        let files = [
            "opt/toolkit/targets/sbsa-linux/lib/libexample.so.13",
            "opt/env/lib/python3.12/site-packages/nvidia/example/lib/libexample.so.12",
            "usr/local/cuda/lib64/libexample.so.12",
            "usr/local/cuda/targets/aarch64-linux/lib/libexample.so.12",
        ];
        let variables = [("CUDA_PATH", "/opt/toolkit"), ("VIRTUAL_ENV", "/opt/env")];
        assert_eq!(found(&EXAMPLE, "aarch64", &files, &variables), files);
        // The libraries of ARM processors are not those of this machine.
        assert_eq!(found(&EXAMPLE, "x86_64", &files, &variables), files[1..3]);
    }

    #[test]
    fn interpreter_in_the_path_leads_to_its_packages() {
        let files = [
            "opt/python/bin/python3",
            "opt/python/lib/python3.13/site-packages/nvidia/example/lib/libexample.so.13",
        ];
        assert_eq!(
            found(&EXAMPLE, "x86_64", &files, &[("PATH", "/opt/python/bin")]),
            files[1..]
        );
    }
}
