//! Features of the package with the kernels.

use std::collections::BTreeSet;
use std::env;

/// Returns `true` if cargo runs this build script with a feature of its package.
pub(crate) fn is_enabled(feature: &str) -> bool {
    let name = feature.to_uppercase().replace('-', "_");
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

/// Returns the features that a source names, as in `cfg(feature = "name")`.
pub(crate) fn named(source: &str) -> BTreeSet<&str> {
    let mut features = BTreeSet::new();
    for (start, word) in source.match_indices("feature") {
        let value = source[start + word.len()..].trim_start().strip_prefix('=');
        let name = value
            .and_then(|value| value.trim_start().strip_prefix('"'))
            .and_then(|value| value.split_once('"'));
        features.extend(name.map(|(name, _)| name));
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_features() {
        let source = "#![feature(x)]\n#[cfg(all(feature = \"a-b\", not(feature=\"c\")))]\nlet features = \"d\";";
        assert_eq!(named(source), BTreeSet::from(["a-b", "c"]));
    }
}
