//! The manifests of the published crates.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use toml::{Table, Value};

/// One crate: its folder and its manifest.
pub(super) struct Manifest {
    pub(super) folder: PathBuf,
    text: String,
    table: Table,
}

impl Manifest {
    /// Returns every crate below `crates`, in the order of their folders' names.
    pub(super) fn all() -> Result<Vec<Self>> {
        let crates = fs::read_dir(crate::root().join("crates"))?;
        let mut folders = crates
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        folders.sort();
        folders.into_iter().map(Self::read).collect()
    }

    fn read(folder: PathBuf) -> Result<Self> {
        let path = folder.join("Cargo.toml");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        Self::parse(folder, text).with_context(|| format!("{} is no manifest", path.display()))
    }

    pub(super) fn parse(folder: PathBuf, text: String) -> Result<Self> {
        let table: Table = toml::from_str(&text)?;
        ensure!(
            table.get("package").is_some_and(Value::is_table),
            "it does not describe a package"
        );
        Ok(Self {
            folder,
            text,
            table,
        })
    }

    pub(super) fn name(&self) -> &str {
        self.get(&["package", "name"])
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the value at a path of keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, path) = path.split_first()?;
        path.iter()
            .try_fold(self.table.get(*first)?, |value, key| value.get(key))
    }

    /// Returns the features that a user can turn on, each with its documentation: the lines before
    /// it that begin with `##`.
    pub(super) fn features(&self) -> Vec<(&str, String)> {
        let named = self.get(&["features"]).and_then(Value::as_table);
        let names = named.into_iter().flat_map(Table::keys).map(String::as_str);
        names
            .filter(|name| *name != "default")
            .map(|name| (name, self.documentation(name)))
            .collect()
    }

    fn documentation(&self, feature: &str) -> String {
        // A dependency may have the name of a feature.
        let lines = self
            .text
            .lines()
            .skip_while(|line| line.trim() != "[features]")
            .skip(1);
        let lines: Vec<_> = lines.take_while(|line| !line.starts_with('[')).collect();
        let declaration = lines.iter().rposition(|line| {
            line.split_once(" = ")
                .is_some_and(|(name, _)| name.trim() == feature)
        });
        let before = lines[..declaration.unwrap_or_default()]
            .iter()
            .rev()
            .map_while(|line| line.strip_prefix("## "));
        before
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest::parse(PathBuf::new(), text.to_owned()).expect("invalid manifest")
    }

    /// The documentation is read from the table of features, not from that of dependencies.
    #[test]
    fn feature_named_like_a_dependency_is_documented() {
        let text = "[package]\nname = \"a\"\n[features]\n## Halves.\nhalf = [\"dep:half\"]\n\n[dependencies]\nhalf = \"2\"\n";
        let manifest = Manifest::parse(PathBuf::new(), text.to_owned()).expect("invalid manifest");
        assert_eq!(manifest.features(), [("half", "Halves.".to_owned())]);
    }

    #[test]
    fn features_include_their_comments() {
        let text =
            "[package]\nname = \"a\"\n[features]\ndefault = []\n## One\n## line.\nb = []\nc = []\n";
        let manifest = manifest(text);
        assert_eq!(manifest.name(), "a");
        assert_eq!(
            manifest.features(),
            [("b", "One line.".to_owned()), ("c", String::new())]
        );
    }

    #[test]
    fn crate_without_features_has_none() {
        assert!(manifest("[package]\nname = \"a\"\n").features().is_empty());
    }

    #[test]
    fn text_that_describes_no_package_is_an_error() {
        assert!(Manifest::parse(PathBuf::new(), "[workspace]\n".to_owned()).is_err());
    }

    #[test]
    fn all_crates_are_found_by_name() {
        let names: Vec<_> = Manifest::all()
            .expect("failed to read the manifests")
            .iter()
            .map(|crate_| crate_.name().to_owned())
            .collect();
        assert!(
            names.contains(&"curium".to_owned()) && names.contains(&"curium-sys".to_owned()),
            "{names:?}"
        );
    }
}
