//! Finding kernels by name, and what to say if there is none of the name.

use std::ffi::{CStr, CString, c_char};
use std::fmt::Write;

use curium_sys::{CUfunction, CUkernel, CUresult};

use crate::call;
use crate::image::ptx::Entry;
use crate::{Driver, Error, Result};

/// How many names an error lists.
const LISTED: usize = 5;

/// A name as C reads it.
#[inline]
pub(crate) fn c_name(operation: &'static str, name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::argument(operation, format!("the name {name:?} has a NUL in it")))
}

/// The names that there are, for the error of a look-up.
pub(crate) struct Candidates(pub(crate) Vec<String>);

impl Candidates {
    /// The names from the driver if it tells them, else from PTX.
    #[inline]
    pub(crate) fn new(names: Result<Vec<String>>, entries: &[Entry]) -> Self {
        Self(names.unwrap_or_else(|_| entries.iter().map(|entry| entry.name.to_string()).collect()))
    }

    /// Adds to the error of a look-up of `name` the names that are nearest to it.
    #[cold]
    #[inline]
    pub(crate) fn explain(mut self, error: Error, name: &str) -> Error {
        error.about(format!("kernel `{name}`")).advised(|error| {
            if error.code != CUresult::CUDA_ERROR_NOT_FOUND || self.0.is_empty() {
                return None;
            }
            let count = self.0.len();
            self.0.sort_by_cached_key(|candidate| (distance(name, candidate), candidate.clone()));
            self.0.truncate(LISTED);
            Some(sentence(name, &self.0, count).into())
        })
    }
}

/// The name of a library's kernel, from the driver.
#[inline]
pub(crate) fn kernel_name(driver: &Driver, kernel: CUkernel) -> Result<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: `name` is a valid place for the answer, and the callers pass a live kernel of this driver.
    unsafe { call!(driver, cuKernelGetName(&raw mut name, kernel)) }?;
    // SAFETY: the driver answered with a name that lives as long as the kernel.
    Ok(unsafe { owned_text(name) })
}

/// The name of a module's function, from the driver.
#[inline]
pub(crate) fn function_name(driver: &Driver, function: CUfunction) -> Result<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: `name` is a valid place for the answer, and the callers pass a live function of this driver.
    unsafe { call!(driver, cuFuncGetName(&raw mut name, function)) }?;
    // SAFETY: the driver answered with a name that lives as long as the function.
    Ok(unsafe { owned_text(name) })
}

/// # Safety
///
/// `text` is null or ends in a NUL, and is live.
#[inline]
unsafe fn owned_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the text, which is copied at once.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[inline]
fn sentence(name: &str, nearest: &[String], count: usize) -> String {
    let mut sentence = if nearest.len() < count {
        format!("of its {count} kernels the nearest are")
    } else {
        "the image has".to_owned()
    };
    for (index, candidate) in nearest.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(sentence, "{} `{candidate}`", if index > 0 { "," } else { "" });
    }
    if nearest.first().is_some_and(|first| first.starts_with("_Z") && first.contains(name)) {
        sentence.push_str("; C++ changes names unless the kernel is declared `extern \"C\"`");
    }
    sentence
}

/// How many letters must be changed, put in or taken out; a name within another is near.
#[inline]
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
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(sentence("x", &names(&["a", "b"]), 2), "the image has `a`, `b`");
        assert_eq!(sentence("x", &names(&["a"]), 9), "of its 9 kernels the nearest are `a`");
        let mangled = sentence("fill", &names(&["_Z4fillPjjj"]), 1);
        assert!(mangled.contains("extern \"C\""), "{mangled}");
    }
}
