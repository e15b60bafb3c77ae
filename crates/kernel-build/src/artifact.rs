//! The artifacts that cargo built for the device.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::toolchain::DEVICE;

/// The results of a build.
#[derive(Debug, Default)]
pub(crate) struct Artifacts {
    /// The libraries of dependencies, with the identifiers of their packages. Cargo reports them in
    /// the order in which they were finished, in which a library may precede one that it needs.
    libraries: Vec<(String, PathBuf)>,
    /// The source files.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Artifacts {
    /// Reads the messages of cargo about the package with this manifest.
    pub(crate) fn parse(messages: &str, manifest: &Path) -> Self {
        let mut artifacts = Self::default();
        for message in messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            let is_root =
                Path::new(message["manifest_path"].as_str().unwrap_or_default()) == manifest;
            for file in message["filenames"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                let file = Path::new(file);
                let is_library = file
                    .extension()
                    .is_some_and(|extension| extension == "rlib");
                if !is_library
                    || !file
                        .components()
                        .any(|component| component.as_os_str() == DEVICE)
                {
                    continue;
                }
                // The file that lists the sources of `libname-hash.rlib` is `name-hash.d`, and that
                // of a finished library `libname.d`.
                let name = file.file_stem().unwrap_or_default().to_string_lossy();
                let list = if is_root {
                    file.with_extension("d")
                } else {
                    file.with_file_name(format!("{}.d", name.trim_start_matches("lib")))
                };
                if !artifacts.add_files(&list) {
                    let source =
                        Path::new(message["target"]["src_path"].as_str().unwrap_or_default());
                    artifacts.files.extend(source.parent().map(Path::to_owned));
                }
                if !is_root {
                    let package = message["package_id"].as_str().unwrap_or_default();
                    artifacts
                        .libraries
                        .push((package.to_owned(), file.to_owned()));
                }
            }
        }
        artifacts
    }

    /// Adds the files that a file of dependencies lists, in which spaces in names are escaped.
    /// Returns `false` if there is no such list.
    fn add_files(&mut self, path: &Path) -> bool {
        let Ok(text) = fs::read_to_string(path) else {
            return false;
        };
        for line in text.lines() {
            let Some((_, list)) = line.split_once(": ") else {
                continue;
            };
            let list = list.replace("\\ ", "\0");
            let files = list.split(' ').filter(|file| !file.is_empty());
            self.files
                .extend(files.map(|file| PathBuf::from(file.replace('\0', " "))));
        }
        true
    }

    /// Returns the libraries in any order.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Path> {
        self.libraries.iter().map(|(_, path)| &**path)
    }

    /// Returns the libraries in the order for the linker, each before those that it needs.
    /// `metadata` is the output of `cargo metadata`.
    pub(crate) fn sorted_libraries(&self, metadata: &Value) -> Vec<PathBuf> {
        let nodes = metadata["resolve"]["nodes"].as_array();
        let mut needs: HashMap<&str, Vec<&str>> = HashMap::new();
        for node in nodes.into_iter().flatten() {
            let dependencies = node["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            needs.insert(
                node["id"].as_str().unwrap_or_default(),
                dependencies.collect(),
            );
        }
        let mut packages = Vec::new();
        let mut visited = HashSet::new();
        for (package, _) in &self.libraries {
            visit(package, &needs, &mut visited, &mut packages);
        }
        let libraries = packages.iter().rev().flat_map(|package| {
            let of_package = self
                .libraries
                .iter()
                .filter(move |(other, _)| other == package);
            of_package.map(|(_, path)| path.clone())
        });
        libraries.collect()
    }
}

/// Pushes a package after all packages that it needs.
fn visit<'a>(
    package: &'a str,
    needs: &HashMap<&'a str, Vec<&'a str>>,
    visited: &mut HashSet<&'a str>,
    packages: &mut Vec<&'a str>,
) {
    if !visited.insert(package) {
        return;
    }
    for needed in needs.get(package).into_iter().flatten() {
        visit(needed, needs, visited, packages);
    }
    packages.push(package);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo reports a small crate before a large one that it needs, because rustc needs only the
    /// metadata of the large one. The linker takes definitions from the libraries that follow.
    #[test]
    fn libraries_precede_those_that_they_need() -> Result<(), serde_json::Error> {
        let message = |name: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"{name}\",\"manifest_path\":\"/{name}/Cargo.toml\",\"filenames\":[\"/t/{DEVICE}/release/deps/lib{name}-1.rlib\"]}}\n"
            )
        };
        let metadata = serde_json::from_str(
            r#"{"resolve":{"nodes":[{"id":"app","dependencies":["kernel","half"]},{"id":"kernel","dependencies":["bytemuck"]},
                {"id":"half","dependencies":["libm"]},{"id":"libm","dependencies":[]},{"id":"bytemuck","dependencies":["libm"]}]}}"#,
        )?;
        let orders = [
            ["half", "kernel", "libm", "bytemuck"],
            ["libm", "bytemuck", "half", "kernel"],
            ["kernel", "half", "bytemuck", "libm"],
        ];
        for order in orders {
            let messages: String = order
                .iter()
                .chain(&["app"])
                .map(|name| message(name))
                .collect();
            let artifacts = Artifacts::parse(&messages, Path::new("/app/Cargo.toml"));
            let sorted = artifacts.sorted_libraries(&metadata);
            let position = |name: &str| {
                sorted
                    .iter()
                    .position(|path| path.ends_with(format!("lib{name}-1.rlib")))
            };
            assert_eq!(sorted.len(), 4);
            for (library, needed) in [
                ("half", "libm"),
                ("kernel", "bytemuck"),
                ("bytemuck", "libm"),
            ] {
                assert!(
                    position(library) < position(needed),
                    "{order:?}: {sorted:?}"
                );
            }
        }
        Ok(())
    }
}
