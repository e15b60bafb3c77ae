//! The package with the kernels, and the crate for the device that is generated from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::feature;
use crate::program;
use crate::source;
use crate::toolchain::Toolchain;

/// The device crate, which every crate of kernels uses.
const DEVICE_CRATE: &str = "curium-kernel";

/// The feature of the device crate for the host.
const HOST_FEATURE: &str = "host";

/// A package, as `cargo metadata` describes it.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    edition: String,
    /// The root file of the library.
    pub(crate) library: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
    dependencies: Vec<Value>,
    /// The features and optional dependencies that each feature enables.
    features: BTreeMap<String, Vec<String>>,
}

impl Package {
    pub(crate) fn read(folder: &Path, toolchain: &Toolchain) -> Result<Self> {
        let manifest = folder.join("Cargo.toml");
        let text = program::run(
            toolchain
                .cargo()
                .args([
                    "metadata",
                    "--no-deps",
                    "--format-version=1",
                    "--manifest-path",
                ])
                .arg(&manifest),
        )?;
        let metadata: Value = serde_json::from_str(&text)
            .map_err(|error| Error::Source(format!("cargo metadata: {error}")))?;
        let canonical = manifest.canonicalize().map_err(Error::file(&manifest))?;
        let package = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| {
                let path = package["manifest_path"].as_str().map(Path::new);
                path.and_then(|path| path.canonicalize().ok()).as_ref() == Some(&canonical)
            })
            .ok_or_else(|| {
                Error::Source(format!(
                    "{}: cargo does not describe this package",
                    manifest.display()
                ))
            })?;
        for target in package["targets"].as_array().into_iter().flatten() {
            source::check_crate_names(Path::new(target["src_path"].as_str().unwrap_or_default()))?;
        }
        let targets = package["targets"].as_array();
        let library = targets.into_iter().flatten().find(|target| {
            let kinds = target["kind"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| {
                kind.as_str()
                    .is_some_and(|kind| kind == "lib" || kind == "rlib")
            })
        });
        Ok(Self {
            folder: folder.to_owned(),
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            edition: package["edition"].as_str().unwrap_or("2024").to_owned(),
            library: library.and_then(|target| Some(PathBuf::from(target["src_path"].as_str()?))),
            workspace: PathBuf::from(metadata["workspace_root"].as_str().unwrap_or_default()),
            dependencies: package["dependencies"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            features: serde_json::from_value(package["features"].clone()).unwrap_or_default(),
        })
    }

    /// Returns the enabled features: those of the running build script, or the default ones.
    pub(crate) fn features(&self, is_build_script: bool) -> BTreeSet<&str> {
        if is_build_script {
            let names = self.features.keys().map(String::as_str);
            return names.filter(|name| feature::is_enabled(name)).collect();
        }
        let mut enabled = BTreeSet::new();
        let mut pending = vec!["default"];
        while let Some(name) = pending.pop() {
            if let Some((name, enables)) = self.features.get_key_value(name)
                && enabled.insert(name.as_str())
            {
                pending.extend(enables.iter().map(String::as_str));
            }
        }
        enabled
    }

    /// Returns `true` if one of the features enables an optional dependency.
    fn enables(&self, features: &BTreeSet<&str>, dependency: &str) -> bool {
        let mut enabled = features.iter().flat_map(|feature| &self.features[*feature]);
        enabled.any(|enabled| match enabled.strip_prefix("dep:") {
            Some(name) => name == dependency,
            None => enabled
                .split_once('/')
                .is_some_and(|(name, _)| name == dependency),
        })
    }

    /// Returns the manifest of the crate for the device. Its dependencies are `curium-kernel`,
    /// `names`, and for a whole package all but the optional ones that no feature enables.
    pub(crate) fn device_manifest(
        &self,
        package_name: &str,
        root: &Path,
        names: &[String],
        is_whole: bool,
        features: &BTreeSet<&str>,
        profile: &str,
    ) -> Result<String> {
        let mut manifest = format!(
            "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = {:?}\npublish = false\n\n[lib]\nname = {:?}\npath = {}\n\n[workspace]\n\n",
            package_name,
            self.edition,
            package_name.replace('-', "_"),
            toml_string(&root.display().to_string()),
        );
        manifest += profile;
        let normal: Vec<&Value> = self
            .dependencies
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .collect();
        for name in names.iter().map(String::as_str).chain([DEVICE_CRATE]) {
            if !normal.iter().any(|dependency| key(dependency) == name) {
                return Err(Error::Source(format!(
                    "package `{}`: `{name}` is not among its [dependencies]; kernels use the version that the package depends on",
                    self.name
                )));
            }
        }
        for dependency in normal {
            let name = key(dependency);
            if name == DEVICE_CRATE && dependency["name"] != DEVICE_CRATE {
                return Err(Error::Source(format!(
                    "package `{}`: the dependency `{DEVICE_CRATE}` is the package {}, by another name; `#[kernel]` refers to the device crate by \
                     this name",
                    self.name, dependency["name"]
                )));
            }
            let is_disabled =
                dependency["optional"].as_bool().unwrap_or(false) && !self.enables(features, name);
            let is_named = name == DEVICE_CRATE || names.iter().any(|listed| listed == name);
            if is_named || (is_whole && !is_disabled && dependency["target"].is_null()) {
                write_dependency(&mut manifest, dependency)?;
            }
        }
        Ok(manifest)
    }
}

/// The name under which a package depends on another.
fn key(dependency: &Value) -> &str {
    dependency["rename"]
        .as_str()
        .or(dependency["name"].as_str())
        .unwrap_or_default()
}

/// Returns a string of TOML.
fn toml_string(text: &str) -> String {
    // The escapes of JSON are a part of those of TOML.
    Value::String(text.to_owned()).to_string()
}

fn write_dependency(manifest: &mut String, dependency: &Value) -> Result<()> {
    let name = dependency["name"].as_str().unwrap_or_default();
    let _ = writeln!(manifest, "[dependencies.{}]", toml_string(key(dependency)));
    let mut entry = |key: &str, value: &str| {
        let _ = writeln!(manifest, "{key} = {}", toml_string(value));
    };
    entry("package", name);
    if let Some(path) = dependency["path"].as_str() {
        entry("path", path);
    } else {
        entry("version", dependency["req"].as_str().unwrap_or("*"));
        if let Some(registry) = dependency["registry"].as_str() {
            entry("registry-index", registry);
        }
        match dependency["source"].as_str() {
            None => {}
            Some(source) => match source.strip_prefix("git+") {
                None => {}
                Some(git) => {
                    let (url, query) = git.split_once('?').unwrap_or((git, ""));
                    entry("git", url);
                    if let Some((kind, value)) = query.split_once('=') {
                        entry(kind, value);
                    }
                }
            },
        }
    }
    let features = dependency["features"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let features: Vec<String> = features
        .filter(|feature| name != DEVICE_CRATE || *feature != HOST_FEATURE)
        .map(toml_string)
        .collect();
    let defaults = dependency["uses_default_features"]
        .as_bool()
        .unwrap_or(true);
    let _ = writeln!(
        manifest,
        "features = [{}]\ndefault-features = {defaults}\n",
        features.join(", ")
    );
    Ok(())
}
