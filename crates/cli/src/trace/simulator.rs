//! Where the simulator's library is.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The name that programs load their driver by.
const NAME: &str = "libcuda.so.1";

/// The simulator's library: the one that is named, or the one beside this program.
pub(super) fn library(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => {
            let program = env::current_exe().context("this program does not know where it is")?;
            let found = beside(&program).into_iter().find(|path| path.is_file());
            found.context("the simulator's libcuda.so.1 is not beside this program: build it with `cargo xtask sim`, or name it with --simulator")?
        }
    };
    ensure!(path.is_file(), "there is no file {}", path.display());
    let name = path.file_name();
    ensure!(name.is_some_and(|name| name == NAME), "programs load {NAME}, and {} has another name", path.display());
    Ok(std::path::absolute(path)?)
}

/// The places beside a program: its own folder, and `sim` there and above, as in cargo's folder of what it builds.
fn beside(program: &Path) -> Vec<PathBuf> {
    let folders = program.ancestors().skip(1).take(2);
    folders.flat_map(|folder| [folder.join("sim").join(NAME), folder.join(NAME)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_looked_for_where_cargo_builds() {
        let places = beside(Path::new("/project/target/release/curium"));
        assert!(places.contains(&PathBuf::from("/project/target/sim/libcuda.so.1")), "{places:?}");
        assert!(places.contains(&PathBuf::from("/project/target/release/libcuda.so.1")), "{places:?}");
    }

    #[test]
    fn library_of_another_name_is_refused() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = library(Some(&manifest)).expect_err("this is no driver").to_string();
        assert!(error.contains("has another name"), "{error}");
    }
}
