//! Whether each crate of the library compiles without its features, and with each of them alone.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Options, Outcome, run_all};
use crate::cargo::cargo;

/// The folders of the crates that have features.
const CRATES: [&str; 5] = ["sys", "driver", "memory", "curium", "sim"];

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

pub(super) fn run(_options: &Options) -> Result<Outcome> {
    for folder in CRATES {
        let manifest = manifest(folder)?;
        check(&manifest.package.name, None)?;
        for feature in manifest.features.keys().filter(|feature| *feature != "default") {
            check(&manifest.package.name, Some(feature))?;
        }
    }
    Ok(Outcome::Passed)
}

fn manifest(folder: &str) -> Result<Manifest> {
    let path = crate::root().join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is no manifest", path.display()))
}

/// Compiles one crate with one feature or none, where a warning is an error.
fn check(package: &str, feature: Option<&str>) -> Result<Outcome> {
    println!("{package}: {}", feature.unwrap_or("no feature"));
    let mut command = cargo();
    command.args(["clippy", "--quiet", "-p", package, "--no-default-features"]);
    run_all(
        command.args(feature.into_iter().flat_map(|feature| ["--features", feature])).args(["--", "-D", "warnings"]),
    )
    .with_context(|| format!("{package} with {}", feature.unwrap_or("no feature")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_with_features_are_all_checked() {
        let crates = std::fs::read_dir(crate::root().join("crates")).expect("the crates are there");
        for entry in crates {
            let folder = entry.expect("the folder is readable").file_name().into_string().expect("it is a name");
            let has_features = !manifest(&folder).expect("it is a manifest").features.is_empty();
            assert!(!has_features || CRATES.contains(&folder.as_str()), "{folder} has features and is not checked");
        }
    }
}
