//! Packages whose library or program is not built for tests.

use std::error::Error;
use std::fs;
use std::path::Path;

/// Returns `true` if a source file in `folder` contains a unit test.
fn has_unit_tests(folder: &Path) -> Result<bool, Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let has_tests = if path.is_dir() {
            has_unit_tests(&path)?
        } else {
            path.extension().is_some_and(|extension| extension == "rs")
                && fs::read_to_string(&path)?.contains("#[test]")
        };
        if has_tests {
            return Ok(true);
        }
    }
    Ok(false)
}

/// With `test = false`, cargo compiles no unit tests and runs none.
#[test]
fn untested_packages_have_no_unit_tests() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut untested = 0;
    for parent in ["crates", "examples", "tests"] {
        for entry in fs::read_dir(root.join(parent))? {
            let folder = entry?.path();
            let manifest = folder.join("Cargo.toml");
            if !manifest.exists() || !fs::read_to_string(manifest)?.contains("\ntest = false\n") {
                continue;
            }
            untested += 1;
            assert!(
                !has_unit_tests(&folder.join("src"))?,
                "{} has unit tests that do not run",
                folder.display()
            );
        }
    }
    assert!(untested > 0, "no manifest was read");
    Ok(())
}
