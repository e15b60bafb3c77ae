//! The inputs of the page: the list of functions, and the sources of the crates.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bindings;
use crate::version::Version;

/// A source file: its path in the workspace, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) file: syn::File,
}

/// Returns every function of the driver with the version that introduced it.
pub(crate) fn functions() -> Result<BTreeMap<String, Version>> {
    bindings::functions()
}

/// Returns the sources of the crates that wrap the driver.
pub(crate) fn library_sources() -> Result<Vec<Source>> {
    let mut all = Vec::new();
    for package in ["driver", "memory", "interop", "diagnostics"] {
        all.extend(sources(&format!("crates/{package}/src"))?);
    }
    Ok(all)
}

/// Returns the sources of the simulator's C functions.
pub(crate) fn simulator_sources() -> Result<Vec<Source>> {
    let mut all = sources("crates/sim/src/call")?;
    let path = "crates/sim/src/call.rs";
    all.push(parse(path, &crate::root().join(path))?);
    Ok(all)
}

/// Returns the Rust files below `folder`, in the order of their names.
fn sources(folder: &str) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    let path = crate::root().join(folder);
    let mut entries = fs::read_dir(&path)
        .with_context(|| folder.to_owned())?
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            files.extend(sources(&name)?);
        } else if name.ends_with(".rs") {
            files.push(parse(&name, &entry.path())?);
        }
    }
    Ok(files)
}

fn parse(name: &str, path: &Path) -> Result<Source> {
    let text = fs::read_to_string(path).with_context(|| name.to_owned())?;
    Ok(Source {
        path: name.to_owned(),
        file: syn::parse_file(&text).with_context(|| name.to_owned())?,
    })
}
