//! Look-up of kernels by name, with the nearest names in errors.

use std::ffi::{CStr, c_char};
use std::fmt::Write;

use curium_sys::{CUfunction, CUkernel, CUresult};

use crate::call;
use crate::image::declared::Declared;
use crate::{Driver, Error, Result};

/// The maximum number of names in an error.
const LISTED: usize = 5;

/// The names in the image, for the error of a look-up.
pub(crate) struct Candidates {
    kind: &'static str,
    names: Vec<String>,
}

impl Candidates {
    /// Returns the kernels reported by the driver, or else declared by the PTX.
    pub(crate) fn kernels(names: Result<Vec<String>>, declared: &Declared) -> Self {
        let entries = declared.entries.iter();
        Self {
            kind: "kernel",
            names: names.unwrap_or_else(|_| entries.map(|entry| entry.name.to_string()).collect()),
        }
    }

    /// Returns the global variables.
    pub(crate) fn variables(declared: &Declared) -> Self {
        Self {
            kind: "variable",
            names: declared.variables.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the global variables, for the look-up of a managed variable.
    pub(crate) fn managed_variables(declared: &Declared) -> Self {
        Self {
            kind: "managed variable",
            ..Self::variables(declared)
        }
    }

    /// Adds the nearest names to the error of a look-up of `name`.
    #[cold]
    pub(crate) fn explain(mut self, error: Error, name: &str) -> Error {
        error
            .about(format!("{} `{name}`", self.kind))
            .advised(|error| {
                if error.code != CUresult::CUDA_ERROR_NOT_FOUND || self.names.is_empty() {
                    return None;
                }
                if self.names.iter().any(|candidate| candidate == name) {
                    return Some(format!("`{name}` is not a {}", self.kind).into());
                }
                let count = self.names.len();
                self.names
                    .sort_by_cached_key(|candidate| (distance(name, candidate), candidate.clone()));
                self.names.truncate(LISTED);
                Some(sentence(self.kind, name, &self.names, count).into())
            })
    }
}

/// Returns the name of a library kernel.
pub(crate) fn kernel_name(driver: &Driver, kernel: CUkernel) -> Result<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: `name` is valid for writes, and the callers pass a live kernel of this driver.
    unsafe { call!(driver, cuKernelGetName(&raw mut name, kernel)) }?;
    // SAFETY: the driver returned a name that lives as long as the kernel.
    Ok(unsafe { owned_text(name) })
}

/// Returns the name of a module's function.
pub(crate) fn function_name(driver: &Driver, function: CUfunction) -> Result<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: `name` is valid for writes, and the callers pass a live function of this driver.
    unsafe { call!(driver, cuFuncGetName(&raw mut name, function)) }?;
    // SAFETY: the driver returned a name that lives as long as the function.
    Ok(unsafe { owned_text(name) })
}

/// Copies a C string.
///
/// # Safety
///
/// `text` is null or NUL-terminated, and is live.
unsafe fn owned_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller is responsible for the text, which is copied immediately.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn sentence(kind: &str, name: &str, nearest: &[String], count: usize) -> String {
    let mut sentence = if nearest.len() < count {
        format!("the nearest of its {count} {kind}s are")
    } else {
        "the image has".to_owned()
    };
    for (index, candidate) in nearest.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            sentence,
            "{} `{candidate}`",
            if index > 0 { "," } else { "" }
        );
    }
    if nearest
        .first()
        .is_some_and(|first| first.starts_with("_Z") && first.contains(name))
    {
        write!(
            sentence,
            ": C++ mangles names, unless the {kind} is declared `extern \"C\"`"
        )
        .unwrap_or_default();
    }
    sentence
}

/// Returns the edit distance of two names; a name that contains the other is considered near.
fn distance(name: &str, candidate: &str) -> usize {
    if candidate.contains(name) || name.contains(candidate) {
        return 0;
    }
    let candidate: Vec<char> = candidate.chars().collect();
    let mut row: Vec<usize> = (0..=candidate.len()).collect();
    for (index, letter) in name.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in candidate.iter().enumerate() {
            let changed = corner + usize::from(letter != *other);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_changed_letters() {
        assert_eq!(distance("saxpy", "saxpi"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("saxpy", "_Z5saxpyfPKfPfj"), 0);
        assert_eq!(distance("abc", "xyz"), 3);
    }

    #[test]
    fn names_are_listed_nearest_first_and_not_too_many() {
        fn names<const N: usize>(names: &[&str; N]) -> [String; N] {
            names.map(str::to_owned)
        }
        assert_eq!(
            sentence("kernel", "x", &names(&["a", "b"]), 2),
            "the image has `a`, `b`"
        );
        assert_eq!(
            sentence("kernel", "x", &names(&["a"]), 9),
            "the nearest of its 9 kernels are `a`"
        );
        let mangled = sentence("kernel", "fill", &names(&["_Z4fillPjjj"]), 1);
        assert!(mangled.contains("extern \"C\""), "{mangled}");
    }
}
