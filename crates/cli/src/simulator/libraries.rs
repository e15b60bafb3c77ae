//! The simulated libraries beside the simulator's library, which contains them: a process has one
//! simulator.
//!
//! A library whose symbols have versions at NVIDIA is a small library that depends on the
//! simulator's and defines the version, without which the system's loader warns. NCCL and CUPTI,
//! whose symbols have none, are links.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The sonames of CUDA 11, 12 and 13, which are the versions of the symbols, too.
const VERSIONED: [&str; 10] = [
    "libcublas.so.11",
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublasLt.so.11",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcufft.so.10",
    "libcufft.so.11",
    "libcufft.so.12",
    "libcurand.so.10",
];
/// The links to the simulator's library. Halide loads the driver as `libcuda.so`, and linkers
/// search for it under that name.
const LINKS: [&str; 4] = ["libcuda.so", "libcupti.so.13", "libnccl.so", "libnccl.so.2"];

/// Creates the libraries beside the simulator's library, in place of older ones.
///
/// # Errors
///
/// Returns an error if a file cannot be written or the C compiler cannot link a library.
pub(crate) fn create(simulator: &Path) -> io::Result<()> {
    for name in VERSIONED {
        create_versioned(simulator, name)?;
    }
    for name in LINKS {
        let link = simulator.with_file_name(name);
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        std::os::unix::fs::symlink("libcuda.so.1", link)?;
    }
    Ok(())
}

fn create_versioned(simulator: &Path, name: &str) -> io::Result<()> {
    let path = simulator.with_file_name(name);
    // Running programs keep the file that they mapped.
    let new = path.with_extension("new");
    let script = path.with_extension("map");
    fs::write(&script, format!("{name} {{ }};\n"))?;
    let mut linker = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    linker
        .args(["-shared", "-nostdlib", "-x", "c", "/dev/null"])
        .args(["-x", "none", "-Wl,--no-as-needed"])
        .arg(simulator)
        .args(["-Wl,-rpath,$ORIGIN", &format!("-Wl,-soname,{name}")])
        .arg(format!("-Wl,--version-script={}", script.display()))
        .arg("-o")
        .arg(&new);
    let output = linker.output()?;
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{name}: {problem}")));
    }
    fs::remove_file(script)?;
    fs::rename(new, path)
}
