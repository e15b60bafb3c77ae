//! Names in the PTX: readable, and the same on every machine.
//!
//! Mangled names contain hashes of the paths of packages, so they would make the PTX of one source
//! differ between machines.

use std::collections::HashSet;

/// Names longer than this are cut.
const MAX_LENGTH: usize = 96;

/// Gives each symbol its name in the PTX.
#[derive(Default)]
pub(crate) struct Names {
    used: HashSet<String>,
}

impl Names {
    /// Reserves a name, which returns `false` if it is in use.
    pub(crate) fn reserve(&mut self, name: &str) -> bool {
        self.used.insert(name.to_owned())
    }

    /// Returns an unused name that resembles the path of `symbol`.
    pub(crate) fn assign(&mut self, symbol: &str) -> String {
        let name = identifier(&readable(symbol));
        let mut candidate = name.clone();
        let mut number = 1;
        while !self.used.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        candidate
    }
}

/// Returns the path of a symbol, as Rust writes it. Paths of modules begin with the name of the
/// module, as in the package.
pub(crate) fn readable(symbol: &str) -> String {
    let mut path = format!("{:#}", rustc_demangle::demangle(symbol));
    let source = format!("::{}::", crate::source::SOURCE);
    while let Some(end) = path.find(&source) {
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        let start = path[..end].trim_end_matches(is_part).len();
        path.replace_range(start..end + source.len(), "");
    }
    path
}

/// Returns an identifier of PTX with the letters and digits of a text.
fn identifier(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if name.len() >= MAX_LENGTH {
            break;
        }
    }
    let name = name.trim_end_matches('_');
    if name.is_empty() || name.starts_with(|character: char| character.is_ascii_digit()) {
        return format!("f_{name}");
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_unique() {
        let mut names = Names::default();
        assert!(names.reserve("saxpy"));
        assert_eq!(names.assign("_RNvCsbCbxG6a5M94_1k4pick"), "k_pick");
        assert_eq!(names.assign("_RNvCs000000000_1k4pick"), "k_pick_2");
        assert_eq!(names.assign("saxpy"), "saxpy_2");
        assert_eq!(names.assign("<[_]>::x"), "x");
        assert!(!names.reserve("k_pick"));
    }
}
