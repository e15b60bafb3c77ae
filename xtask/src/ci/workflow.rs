//! `.github/workflows/ci.yml`, which is generated from the steps, the versions of CUDA and the
//! published packages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::manifest::Manifest;
use super::{Outcome, STEPS};
use crate::stale;

/// The workflow, with the places that are generated in double braces.
const TEMPLATE: &str = include_str!("workflow.yml");

const WORKFLOW: &str = ".github/workflows/ci.yml";

#[derive(Deserialize)]
struct Versions {
    cuda: Vec<Cuda>,
}

#[derive(Deserialize)]
struct Cuda {
    version: String,
}

/// Writes the workflow.
pub(super) fn write() -> Result<()> {
    stale::write(&files()?)
}

/// Compares the workflow with the expected text.
pub(super) fn check() -> Result<Outcome> {
    stale::check(&files()?, "cargo xtask ci --workflow").map(|()| Outcome::Passed)
}

fn files() -> Result<BTreeMap<PathBuf, String>> {
    let text = TEMPLATE
        .replace("{{versions}}", &versions()?)
        .replace("{{packages}}", &packages()?)
        .replace("{{long steps}}", &long_steps()?);
    Ok(BTreeMap::from([(crate::root().join(WORKFLOW), text)]))
}

/// Returns the versions of CUDA, as a list of YAML.
fn versions() -> Result<String> {
    let file = crate::root().join("xtask/cuda-versions.toml");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let versions: Versions = toml::from_str(&text)?;
    let quoted: Vec<_> = versions
        .cuda
        .iter()
        .map(|cuda| format!("\"{}\"", cuda.version))
        .collect();
    Ok(quoted.join(", "))
}

/// Returns the published packages as arguments of cargo.
fn packages() -> Result<String> {
    let manifests = Manifest::all()?;
    let arguments: Vec<_> = manifests
        .iter()
        .filter(|manifest| manifest.get(&["package", "publish"]).is_none())
        .map(|manifest| format!("-p {}", manifest.name()))
        .collect();
    Ok(arguments.join(" "))
}

/// Returns a job for each step that has a long form.
fn long_steps() -> Result<String> {
    let mut text = String::new();
    for step in STEPS {
        let Some(job) = &step.long else { continue };
        write!(
            text,
            "\n  {}:\n    runs-on: ubuntu-latest\n    timeout-minutes: {}\n",
            step.name, job.minutes
        )?;
        if let Some(container) = job.container {
            writeln!(text, "    container: {container}")?;
        }
        writeln!(text, "    steps:\n      - uses: actions/checkout@v4")?;
        for command in job.before {
            writeln!(text, "      - run: {command}")?;
        }
        writeln!(
            text,
            "      - run: cargo xtask ci --step {} --thorough",
            step.name
        )?;
    }
    Ok(text)
}
