//! Libraries in C, for tests of what Curium shares with C programs.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::Library;

/// Compiles a library with the system's C compiler, and loads it. Returns `None` if there is no
/// compiler.
///
/// # Panics
///
/// The compiler reports an error or a warning.
#[must_use]
pub fn c_library(source: &str) -> Option<Library> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let target = std::env::temp_dir().join(format!("curium-{}-{number}.so", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        "-",
    ]);
    compiler
        .arg("-o")
        .arg(&target)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = compiler.spawn().ok()?;
    let mut input = running.stdin.take().expect("the input is piped");
    input
        .write_all(source.as_bytes())
        .expect("the compiler reads its input");
    drop(input);
    let output = running.wait_with_output().expect("the compiler ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // SAFETY: the libraries of these tests have no initializers.
    let library = unsafe { Library::new(&target) }.expect("the library was built");
    std::fs::remove_file(&target).expect("failed to remove the library");
    Some(library)
}
