//! Packages whose library or program is not built for tests.

use std::error::Error;
use std::fs;
use std::path::Path;

/// Returns `true` if a source file in `folder` contains one of `texts`.
fn contains(folder: &Path, texts: &[&str]) -> Result<bool, Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_found = if path.is_dir() {
            contains(&path, texts)?
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path)?;
            texts.iter().any(|text| source.contains(text))
        } else {
            false
        };
        if is_found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// With `test = false` and `doctest = false`, cargo compiles no unit tests and no examples of
/// documentation. The unit tests of some libraries are programs of the package `tests/units`.
#[test]
fn untested_packages_have_no_tests() -> Result<(), Box<dyn Error>> {
    const KINDS: [(&str, &[&str]); 2] = [
        ("\ntest = false\n", &["#[test]"]),
        ("\ndoctest = false\n", &["/// ```", "//! ```"]),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let units = fs::read_to_string(root.join("tests/units/Cargo.toml"))?;
    let mut untested = [0; KINDS.len()];
    for parent in ["crates", "examples", "tests"] {
        for entry in fs::read_dir(root.join(parent))? {
            let folder = entry?.path();
            let manifest = folder.join("Cargo.toml");
            if !manifest.exists() {
                continue;
            }
            let manifest = fs::read_to_string(manifest)?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let is_in_units = units.contains(&format!("path = \"../../crates/{name}/src/lib.rs\""));
            for (count, (setting, tests)) in untested.iter_mut().zip(KINDS) {
                if manifest.contains(setting) {
                    *count += 1;
                    let is_run = setting == "\ntest = false\n" && is_in_units;
                    assert!(
                        is_run || !contains(&folder.join("src"), tests)?,
                        "{}: tests do not run, because of `{}`",
                        folder.display(),
                        setting.trim()
                    );
                }
            }
        }
    }
    assert!(untested.iter().all(|count| *count > 0), "{untested:?}");
    Ok(())
}
