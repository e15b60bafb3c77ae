//! The source files of the workspace's crates.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use syn::Attribute;

/// The result of a test.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// A parsed file of a crate.
pub(crate) struct Source {
    /// The folder of the crate below `crates`.
    pub(crate) krate: String,
    pub(crate) syntax: syn::File,
}

/// Parses the source files of every crate that contain `text`: to parse them all takes seconds.
pub(crate) fn sources_with(text: &str) -> Result<Vec<Source>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut sources = Vec::new();
    for entry in fs::read_dir(&root)? {
        let folder = entry?.path();
        for file in rust_files(&folder.join("src"))? {
            let krate = folder.file_name().unwrap_or_default();
            let source = fs::read_to_string(&file)?;
            if source.contains(text) {
                sources.push(Source {
                    krate: krate.to_string_lossy().into_owned(),
                    syntax: syn::parse_file(&source)
                        .map_err(|error| format!("{}: {error}", file.display()))?,
                });
            }
        }
    }
    Ok(sources)
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns `true` for the attributes of a module of tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|name| name == "test")
    })
}
