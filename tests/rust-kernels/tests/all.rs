//! The tests of the kernels, in one program: mutants run its tests with other code.
#![cfg(not(miri))]

mod algorithms;
mod common;
mod features;
mod kernels;
mod launch;
mod model;
mod mutants;
mod soundness;

/// The files in this folder are modules of this program; a file that is not would not be compiled.
#[test]
fn all_files_are_modules() -> std::io::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    // A bundle for a machine with a GPU has no sources.
    if !std::path::Path::new(folder).exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        assert!(
            module == "all" || include_str!("all.rs").contains(&format!("mod {module};")),
            "all.rs has no module {module}"
        );
    }
    Ok(())
}
