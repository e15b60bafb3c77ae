//! The kernels that are measured.
//!
//! A table of entries is a module of this folder, which [`all`] lists. [`SOURCES`] lists the files in CUDA C++.

mod algorithms;
mod features;

use crate::Result;
use crate::bench::Bench;
use crate::report::Row;

/// A kernel.
pub(crate) struct Entry {
    /// The name of the kernel in CUDA C++, which is also that of the row.
    pub(crate) name: &'static str,
    /// The file in CUDA C++.
    pub(crate) source: &'static str,
    /// Calls [`Bench::compare`] with the arguments of both kernels.
    pub(crate) run: fn(&Bench, &Entry) -> Result<Row>,
}

/// The files in CUDA C++.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("algorithms.cu", include_str!("../../cuda/algorithms.cu")),
    ("attention.cu", include_str!("../../cuda/attention.cu")),
    ("features.cu", include_str!("../../cuda/features.cu")),
];

/// Returns all entries, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    [algorithms::ENTRIES, features::ENTRIES]
        .into_iter()
        .flatten()
}
