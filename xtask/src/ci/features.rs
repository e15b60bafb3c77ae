//! Checks that each crate compiles without its features, and with each of them alone.

use anyhow::{Context as _, Result};

use super::manifest::Manifest;
use super::{Options, Outcome, run_all};
use crate::cargo::cargo;

pub(super) fn run(_options: &Options) -> Result<Outcome> {
    for manifest in Manifest::all()? {
        let features = manifest.features();
        if features.is_empty() {
            continue;
        }
        check(manifest.name(), None)?;
        for (feature, _) in features {
            check(manifest.name(), Some(feature))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Compiles one crate with one feature or none, with warnings as errors.
fn check(package: &str, feature: Option<&str>) -> Result<Outcome> {
    println!("{package}: {}", feature.unwrap_or("no feature"));
    let mut command = cargo();
    command.args(["clippy", "--quiet", "-p", package, "--no-default-features"]);
    run_all(
        command
            .args(
                feature
                    .into_iter()
                    .flat_map(|feature| ["--features", feature]),
            )
            .args(["--", "-D", "warnings"]),
    )
    .with_context(|| format!("{package} with {}", feature.unwrap_or("no feature")))
}
