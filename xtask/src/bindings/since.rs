//! The CUDA version that introduced each function, derived from `cudaTypedefs.h` and its kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// ABI symbol to version, as in `("cuCtxCreate_v3", 11040)`.
pub(crate) type Since = BTreeMap<String, u32>;

/// The headers that date functions.
const TYPEDEFS: [&str; 5] = [
    "cudaTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaProfilerTypedefs.h",
    "cudaVDPAUTypedefs.h",
];

/// Determines the version of each of `functions` from the headers in `folder`.
///
/// `cudaTypedefs.h` names a function pointer type per *base* name and version (`PFN_cuCtxCreate_v11040`). The symbols of a
/// base name in order of their suffix (`cuCtxCreate`, `_v2`, `_v3`, …) take the versions in ascending order.
pub(crate) fn derive<'a>(folder: &Path, functions: impl Iterator<Item = &'a str>) -> Result<Since> {
    let texts = TYPEDEFS
        .map(|name| folder.join(name))
        .into_iter()
        .map(|path| std::fs::read_to_string(&path).with_context(|| path.display().to_string()));
    let text = texts.collect::<Result<String>>()?;
    let versions = versions(&text);
    let mut since = Since::new();
    for (base, symbols) in by_base(functions) {
        let dates = versions.get(base).cloned().unwrap_or_default();
        let names: Vec<_> = symbols.values().collect();
        ensure!(
            dates.len() == symbols.len(),
            "{}: {base} has the versions {dates:?}, but its symbols are {names:?}",
            folder.display()
        );
        since.extend(symbols.into_values().map(str::to_owned).zip(dates));
    }
    Ok(since)
}

/// Returns the versions of each base name. Per-thread default-stream variants (`_ptsz`, `_ptds`) are another date of the same symbol.
fn versions(text: &str) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut versions = BTreeMap::<_, BTreeSet<_>>::new();
    for name in text
        .split("(CUDAAPI *PFN_")
        .skip(1)
        .filter_map(|text| text.split(')').next())
    {
        let Some((base, version)) = name.rsplit_once("_v") else {
            continue;
        };
        if let Ok(version) = version.parse() {
            versions.entry(base).or_default().insert(version);
        }
    }
    versions
}

/// Returns the symbols of each base name by their suffix number.
fn by_base<'a>(
    functions: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, BTreeMap<u32, &'a str>> {
    let mut bases = BTreeMap::<_, BTreeMap<_, _>>::new();
    for name in functions {
        let (base, suffix) = split_suffix(name);
        bases.entry(base).or_default().insert(suffix, name);
    }
    bases
}

/// Splits `cuCtxCreate_v2` into `("cuCtxCreate", 2)`; a name without a suffix has the number 1.
pub(crate) fn split_suffix(name: &str) -> (&str, u32) {
    let split = name
        .rsplit_once("_v")
        .and_then(|(base, suffix)| Some((base, suffix.parse().ok()?)));
    split.unwrap_or((name, 1))
}
