//! `cargo xtask sim`: the simulated driver as the library that programs load.

use std::fs;

use anyhow::{Context as _, Result};

use crate::cargo;

/// Builds the shared library. Its name inside the file is the driver's, so that a program linked to the driver takes it.
const BUILD: &[&str] =
    &["rustc", "-p", "curium-sim", "--lib", "--release", "--features", "export", "--crate-type", "cdylib"];
const COMPILER: &[&str] = &["-C", "link-arg=-Wl,-soname,libcuda.so.1"];

pub(crate) fn run() -> Result<()> {
    let built = cargo::build(BUILD, COMPILER)?;
    let library = built.iter().find(|artifact| artifact.file.extension().is_some_and(|extension| extension == "so"));
    let library = library.context("cargo built no shared library")?;
    let folder = cargo::target_folder()?.join("sim");
    fs::create_dir_all(&folder)?;
    let path = folder.join("libcuda.so.1");
    fs::copy(&library.file, &path).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}
