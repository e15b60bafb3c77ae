//! A hash of the names, sizes and times of all files in a folder.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The depth at which a tree of folders is considered endless: a symbolic link may lead back.
const MAX_DEPTH: u32 = 32;

/// Returns a hash that changes when a file below `folder` is added, removed or written; `None` if
/// the folder cannot be read. A folder that does not exist has no files.
pub(super) fn fingerprint(folder: &Path) -> Option<u128> {
    let mut entries = Vec::new();
    if folder.exists() {
        add_entries(folder, MAX_DEPTH, &mut entries)?;
    }
    entries.sort_unstable();
    Some(super::fingerprint::fingerprint(
        entries.iter().map(String::as_bytes),
    ))
}

fn add_entries(folder: &Path, depth: u32, entries: &mut Vec<String>) -> Option<()> {
    for entry in fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        let Ok(metadata) = fs::metadata(&path) else {
            // A symbolic link without a target.
            entries.push(format!("{}\n", path.display()));
            continue;
        };
        if metadata.is_dir() {
            add_entries(&path, depth.checked_sub(1)?, entries)?;
            continue;
        }
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        entries.push(format!(
            "{} {} {}\n",
            path.display(),
            metadata.len(),
            modified.as_nanos()
        ));
    }
    Some(())
}
