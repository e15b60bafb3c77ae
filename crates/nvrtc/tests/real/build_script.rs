//! Compilation in build scripts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library::{TestResult, nvrtc, with_nvrtc};
use curium_nvrtc::{Architecture, CompileOptions, build};

#[test]
fn build_script_output() -> TestResult {
    const ROLE: &str = "CURIUM_TEST_BUILD_SCRIPT";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/saxpy.cu");
    if std::env::var_os(ROLE).is_some() {
        let ptx = build::compile(&source, &CompileOptions::new());
        assert!(std::fs::read_to_string(ptx)?.contains(".entry saxpy"));
        let options = CompileOptions::new().with_architecture(Architecture::new(8, 0).real());
        let cubin = build::compile(&source, &options);
        assert!(std::fs::read(cubin)?.starts_with(b"\x7fELF"));
        return Ok(());
    }
    with_nvrtc("build_script_output", |_| {
        let folder = tempfile::tempdir()?;
        let mut child = Command::new(std::env::current_exe()?);
        child.args([
            "--exact",
            "build_script::build_script_output",
            "--nocapture",
        ]);
        let output = child
            .env(ROLE, "child")
            .env("OUT_DIR", folder.path())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("cargo::rerun-if-changed="),
            "{text}"
        );
        let names = ["saxpy.ptx", "saxpy.cubin"].map(|name| folder.path().join(name).exists());
        assert_eq!(names, [true, true]);
        Ok(())
    })
}

/// A header with a syntax error must not leave the PTX of the previous build.
#[test]
fn build_script_names_headers() -> TestResult {
    const ROLE: &str = "CURIUM_TEST_BUILD_SCRIPT_HEADERS";
    const NAME: &str = "build_script_names_headers";
    if let Some(package) = std::env::var_os(ROLE) {
        let package = Path::new(&package);
        let options = CompileOptions::new().with_include_path(package.join("include"));
        build::try_compile(&package.join("kernels/k.cu"), &options)?;
        return Ok(());
    }
    if nvrtc(NAME).is_none() {
        return Ok(());
    }
    let package = tempfile::tempdir()?;
    for (file, text) in [
        ("kernels/k.cu", "#include \"k.h\"\n#include <deep.h>\n"),
        ("kernels/k.h", "#if 0\n#include \"late.h\"\n#endif\n"),
        ("include/deep.h", "extern \"C\" __global__ void k() {}\n"),
        ("target/out/k.ptx", ""),
    ] {
        let path = package.path().join(file);
        std::fs::create_dir_all(path.parent().ok_or("no parent folder")?)?;
        std::fs::write(path, text)?;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", &format!("build_script::{NAME}"), "--nocapture"])
        .env(ROLE, package.path())
        .env("OUT_DIR", package.path().join("target/out"));
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{text}");
    let watched: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .map(PathBuf::from)
        .collect();
    let expected = [
        "include",
        "include/deep.h",
        "kernels",
        "kernels/k.cu",
        "kernels/k.h",
    ];
    assert_eq!(
        watched,
        expected.map(|path| package.path().join(path)).into()
    );
    // The script also names them if the compilation fails.
    std::fs::write(package.path().join("kernels/k.h"), ")(")?;
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(
        !output.status.success() && text.contains("kernels/k.h"),
        "{text}"
    );
    Ok(())
}
