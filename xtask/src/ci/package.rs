//! Checks that each crate can be published: its manifest, its package, and the documentation of its
//! features. Also checks that the programs outside the workspace are locked to the crates' present
//! dependencies.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::manifest::Manifest;
use super::{Options, Outcome};
use crate::cargo::cargo;

/// The keys that a manifest requires in addition to cargo's requirements.
const SAID: [&[&str]; 8] = [
    &["package", "description"],
    &["package", "license"],
    &["package", "readme"],
    &["package", "rust-version"],
    &["package", "categories"],
    &["package", "keywords"],
    &["package", "metadata", "docs", "rs", "all-features"],
    &["lints", "workspace"],
];

/// The folders of the programs outside the workspace, which are built with `--locked`.
const OUTSIDE: [&str; 2] = ["outside/compare", "outside/rust"];

/// The files that a package must contain besides its sources.
const HELD: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Checks the packages without building them, which takes seconds; `cargo package --workspace` does
/// the rest.
pub(super) fn run(_options: &Options) -> Result<Outcome> {
    let mut faults = Vec::new();
    for manifest in Manifest::all()? {
        let packed = packed(manifest.name())?;
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| manifest.folder.join(root));
        let root = roots
            .iter()
            .find(|root| root.exists())
            .context("the package has no source")?;
        let library = fs::read_to_string(root)?;
        let problems = unsaid(&manifest)
            .into_iter()
            .chain(lacking(&packed))
            .chain(undocumented(&manifest, &library));
        faults.extend(problems.map(|fault| format!("{}: {fault}", manifest.name())));
        println!("{}: {} files", manifest.name(), packed.len());
    }
    for folder in OUTSIDE {
        let mut command = cargo();
        command.current_dir(crate::root().join(folder)).args([
            "update",
            "--quiet",
            "--workspace",
            "--locked",
        ]);
        if !command.status().context("cargo cannot be run")?.success() {
            faults.push(format!(
                "{folder}/Cargo.lock is out of date: run cargo update --workspace there"
            ));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(Outcome::Passed)
}

/// Returns the files that cargo packs.
fn packed(package: &str) -> Result<Vec<String>> {
    let mut command = cargo();
    command.args([
        "package",
        "--quiet",
        "--list",
        "--allow-dirty",
        "--package",
        package,
    ]);
    let output = command.output().context("cargo cannot be run")?;
    ensure!(
        output.status.success(),
        "cargo package: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect())
}

fn unsaid(manifest: &Manifest) -> Vec<String> {
    let unsaid = SAID.iter().filter(|path| manifest.get(path).is_none());
    unsaid
        .map(|path| format!("the manifest lacks {}", path.join(".")))
        .collect()
}

fn lacking(packed: &[String]) -> Vec<String> {
    let lacking = HELD
        .iter()
        .filter(|name| !packed.iter().any(|file| file == *name));
    lacking
        .map(|name| format!("the package lacks {name}"))
        .collect()
}

/// Returns the features without documentation in the manifest or in the crate.
fn undocumented(manifest: &Manifest, library: &str) -> Vec<String> {
    let section = library
        .split_once("//! # Features\n")
        .map_or("", |(_, rest)| rest);
    let section = section.split("//! # ").next().unwrap_or_default();
    let mut faults = Vec::new();
    for (feature, documentation) in manifest.features() {
        if documentation.is_empty() {
            faults.push(format!(
                "the feature {feature} has no line with ## before it in the manifest"
            ));
        }
        if !section.contains(&format!("`{feature}`")) {
            faults.push(format!(
                "the feature {feature} is not under `# Features` in lib.rs or main.rs"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest::parse(PathBuf::new(), text.to_owned()).expect("invalid manifest")
    }

    #[test]
    fn empty_manifest_lacks_every_key() {
        assert_eq!(
            unsaid(&manifest("[package]\nname = \"a\"\n")).len(),
            SAID.len()
        );
        let said = "[package]\nname = \"a\"\ndescription = \"d\"\nlicense.workspace = true\n";
        assert_eq!(unsaid(&manifest(said)).len(), SAID.len() - 2);
    }

    #[test]
    fn package_without_a_license_is_named() {
        let packed = ["LICENSE-MIT", "README.md", "src/lib.rs"].map(str::to_owned);
        assert_eq!(lacking(&packed), ["the package lacks LICENSE-APACHE"]);
    }

    /// Features are documented in the manifest and in the crate's documentation.
    #[test]
    fn feature_is_documented_twice() {
        let manifest = manifest("[package]\nname = \"a\"\n[features]\n## Good.\nb = []\nc = []\n");
        let library = "//! # Features\n//!\n//! - `b`: good.\n//!\n//! # Example\n//! `c`\n";
        let faults = undocumented(&manifest, library);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults.iter().all(|fault| fault.contains("feature c")),
            "{faults:?}"
        );
    }
}
