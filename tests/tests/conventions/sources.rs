//! The parsed sources of the crates.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, File, Meta};

/// A parsed source file of a crate.
pub(crate) struct Source {
    /// The folder of the crate, such as `driver`.
    pub(crate) package: String,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

/// Parses the sources of those crates whose folder `is_wanted`, without generated files. To parse
/// them all takes seconds.
pub(crate) fn parse_crates(
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Source>, Box<dyn Error>> {
    let mut sources = Vec::new();
    for (package, path) in files()? {
        if is_wanted(&package) {
            let text = fs::read_to_string(&path)?;
            let file =
                syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            sources.push(Source {
                package,
                path,
                file,
            });
        }
    }
    Ok(sources)
}

/// Returns the source files of all crates, without generated files, each with the folder of its
/// crate.
pub(crate) fn files() -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(crates)? {
        let folder = entry?.path();
        let package = folder.file_name().unwrap_or_default();
        let package = package.to_string_lossy().into_owned();
        add_files(&package, &folder.join("src"), &mut files)?;
    }
    Ok(files)
}

fn add_files(
    package: &str,
    folder: &Path,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "generated") {
                add_files(package, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem().is_some_and(|stem| stem != "tests")
        {
            files.push((package.to_owned(), path));
        }
    }
    Ok(())
}

/// Returns `true` if an item exists in tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|condition| condition.path().is_ident("test")),
        _ => false,
    })
}
