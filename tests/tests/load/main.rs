//! The loader, with the simulator's `libcuda.so.1` and with libraries that it must reject.
#![cfg(all(target_os = "linux", not(miri)))]

mod cudarc;
mod described;
mod environment;
mod libraries_in_c;
mod nccl;
mod privileges;
#[path = "../../../crates/cli/src/simulator/libraries.rs"]
mod simulated_libraries;

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use curium_driver::{CudaVersion, Driver, Error, Function};
use curium_sys::load::{LoadError, Rejection};
use curium_sys::{Api, CUdriverProcAddressQueryResult, CUresult};
use curium_tests::{TestResult, in_fork, skip, uses_cuda};

/// The directory in which these tests build their libraries.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/load");

/// The simulator as a shared library, with the simulated libraries, built once.
static SIMULATOR: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(FOLDER).join("simulator");
    let mut cargo = cargo();
    cargo.args([
        "rustc",
        "--offline",
        "--package",
        "curium-sim-libraries",
        "--lib",
        "--features",
        "export",
    ]);
    // These tests run small kernels only, and the optimized simulator takes minutes to compile.
    for package in ["curium-ptx", "curium-sim"] {
        let unoptimized = format!("profile.dev.package.{package}.opt-level=0");
        cargo.args(["--config", &unoptimized]);
    }
    cargo
        .args(["--crate-type", "cdylib,staticlib"])
        .arg("--target-dir")
        .arg(&target);
    run(cargo.args(["--", "-C", "link-arg=-Wl,-soname,libcuda.so.1"]));
    let library = target.join("driver/libcuda.so.1");
    std::fs::create_dir_all(target.join("driver")).expect("failed to create a folder");
    std::fs::copy(target.join("debug/libcurium_sim_libraries.so"), &library)
        .expect("the library was built");
    simulated_libraries::create(&library).expect("the C compiler links libraries");
    library
});

/// The simulator with the symbols of CUDA 13.0 and no newer ones, linked as
/// `cargo xtask sim --cuda 13.0` does.
static OLD_SIMULATOR: LazyLock<PathBuf> = LazyLock::new(|| {
    let objects = SIMULATOR.with_file_name("../debug/libcurium_sim_libraries.a");
    let folder = folder("simulator_13_0");
    let old = Function::all().filter(|function| function.since() <= CudaVersion::new(13, 0));
    let exports: String = old.map(|function| format!("{function};\n")).collect();
    let script = folder.join("exports.map");
    let library = folder.join("libcuda.so.1");
    std::fs::write(&script, format!("{{ global:\n{exports}local: *; }};\n"))
        .expect("failed to write the file");
    let mut linker = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    linker
        .args([
            "-shared",
            "-Wl,-soname,libcuda.so.1",
            "-Wl,--gc-sections",
            "-o",
        ])
        .arg(&library);
    linker.arg(format!("-Wl,--version-script={}", script.display()));
    linker
        .arg("-Wl,--whole-archive")
        .arg(objects)
        .arg("-Wl,--no-whole-archive");
    run(linker.args([
        "-lgcc_s",
        "-lutil",
        "-lrt",
        "-lpthread",
        "-lm",
        "-ldl",
        "-lc",
    ]));
    library
});

/// The example that reports on its driver.
static REPORT: LazyLock<PathBuf> = LazyLock::new(|| example("report"));

/// Returns the path of an example, which is built next to these tests unless only they were built.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program is known");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("tests are in the folder of their profile");
    let program = profile.join("examples").join(name);
    if !program.exists() {
        let mut cargo = cargo();
        cargo.args([
            "build",
            "--offline",
            "--package",
            "curium-tests",
            "--example",
            name,
            "--target-dir",
        ]);
        cargo.arg(profile.parent().expect("profiles are in the target folder"));
        run(cargo.args(profile.ends_with("release").then_some("--release")));
    }
    program
}

/// Returns a Cargo command without the variables that Cargo sets for a test, which would rebuild
/// everything.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_cargos_own(&name.to_string_lossy()))
    {
        cargo.env_remove(name);
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo
}

fn is_cargos_own(name: &str) -> bool {
    name.starts_with("CARGO_") && name != "CARGO_HOME"
        || name == "CARGO"
        || name == "LD_LIBRARY_PATH"
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns a new directory for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(FOLDER).join(test);
    std::fs::create_dir_all(&folder).expect("failed to create a folder");
    folder
}

/// Builds a shared library at `path` from this source.
fn build(path: &Path, source: &str) {
    let text = path.with_extension("rs");
    std::fs::write(&text, source).expect("failed to write the file");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    run(rustc
        .args([
            "--crate-name",
            "library",
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-C",
            "opt-level=0",
            "-o",
        ])
        .args([path, &text]));
}

/// Builds a library that reports the driver version `version`, or the error `code`, and exports
/// only `cuInit` besides.
fn build_driver(path: &Path, code: u32, version: i32) {
    let source = format!(
        "#[unsafe(no_mangle)] pub extern \"C\" fn cuInit(_: u32) -> u32 {{ {code} }}
        #[unsafe(no_mangle)] pub unsafe extern \"C\" fn cuDriverGetVersion(version: *mut i32) -> u32 {{
            if {code} == 0 {{ unsafe {{ version.write({version}) }} }}
            {code}
        }}"
    );
    build(path, &source);
}

fn load(path: &Path) -> Result<Api, LoadError> {
    // SAFETY: the libraries of this file are the simulator, or have functions of the driver's
    // signatures only.
    unsafe { Api::load_from(path) }
}

/// Returns the reason why `path` does not load, and the message, which contains the path and a
/// hint.
fn rejection(path: &Path) -> (Rejection, String) {
    let error = load(path).expect_err("this file is not a driver");
    let text = error.to_string();
    assert!(
        text.starts_with("no CUDA driver could be loaded; tried\n  "),
        "{text}"
    );
    assert!(
        text.contains(&format!("\n  {}: ", path.display())),
        "{text}"
    );
    assert_eq!(
        text.matches(&path.display().to_string()).count(),
        1,
        "the path is named once: {text}"
    );
    assert!(text.contains("\nto fix it: "), "{text}");
    let [attempt] = *Box::<[_; 1]>::try_from(error.attempts).expect("one path was tried");
    assert_eq!(attempt.path, path);
    (attempt.rejection, text)
}

/// Returns the output of the program that reports on its driver, with only these variables that
/// name a driver.
fn report(variables: &[(&str, &Path)]) -> TestResult<Output> {
    Ok(report_command(variables).output()?)
}

/// Returns the command that runs the program that reports on its driver, with only these variables
/// that name a library.
fn report_command(variables: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(&*REPORT);
    command
        .env_remove("CURIUM_DRIVER_PATH")
        .env_remove("CURIUM_NCCL_PATH")
        .env_remove("LD_LIBRARY_PATH");
    command.envs(variables.iter().copied());
    command
}

#[track_caller]
fn assert_reports_saxpy(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    assert!(out.contains("saxpy: [12.0, 24.0, 36.0]"), "{out}{err}");
    out.into_owned()
}

#[track_caller]
fn assert_reports_error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[test]
fn absent_file_has_a_remedy() {
    let path = folder("absent").join("libcuda.so.1");
    let (rejection, text) = rejection(&path);
    assert!(
        matches!(rejection, Rejection::Unloadable { .. }),
        "{rejection:?}"
    );
    assert!(
        text.contains("No such file") && text.contains("install the NVIDIA driver"),
        "{text}"
    );
}

#[test]
fn file_without_a_library() -> TestResult {
    let folder = folder("no_library");
    for (name, bytes) in [
        ("text", b"hello".as_slice()),
        ("empty", b""),
        ("header", b"\x7fELF\x02\x01\x01"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes)?;
        let (rejection, text) = rejection(&path);
        assert!(
            matches!(rejection, Rejection::Unloadable { .. }),
            "{rejection:?}"
        );
        assert!(text.contains(name), "{text}");
    }
    Ok(())
}

#[test]
fn library_without_functions() {
    let path = folder("no_symbols").join("libcuda.so.1");
    build(
        &path,
        "#[unsafe(no_mangle)] pub extern \"C\" fn nothing() {}",
    );
    let (rejection, text) = rejection(&path);
    assert!(
        matches!(
            rejection,
            Rejection::OtherLibrary {
                missing: "cuInit",
                ..
            }
        ),
        "{rejection:?}"
    );
    assert!(
        text.contains("not the library of the CUDA driver (missing function cuInit)"),
        "{text}"
    );
}

#[test]
fn stub_is_an_error() {
    let path = folder("stub").join("libcuda.so");
    build_driver(&path, 34, 0);
    let (rejection, text) = rejection(&path);
    assert!(matches!(rejection, Rejection::Stub), "{rejection:?}");
    assert!(
        text.contains("stub library")
            && text.contains("`stubs` folder from the library search path"),
        "{text}"
    );
}

#[test]
fn outdated_driver_is_an_error() {
    let path = folder("old").join("libcuda.so.1");
    build_driver(&path, 0, 11040);
    let (rejection, text) = rejection(&path);
    assert!(
        matches!(rejection, Rejection::TooOld { found, .. } if found == CudaVersion::new(11, 4)),
        "{rejection:?}"
    );
    assert!(
        text.contains("too old (CUDA 11.4; CUDA 11.8 or newer is required)"),
        "{text}"
    );
    assert!(
        text.contains("to fix it: update the NVIDIA driver"),
        "{text}"
    );
}

#[test]
fn driver_without_a_version() {
    let path = folder("no_version").join("libcuda.so.1");
    build_driver(&path, 999, 0);
    let (rejection, text) = rejection(&path);
    assert!(
        matches!(rejection, Rejection::NoVersion { code: 999, .. }),
        "{rejection:?}"
    );
    assert!(text.contains("failed (code 999)"), "{text}");
}

/// A missing function is an error only when it is called.
#[test]
fn incomplete_driver_loads() -> TestResult {
    let path = folder("few").join("libcuda.so.1");
    build_driver(&path, 0, 12040);
    let api = load(&path)?;
    assert!(api.has(Function::cuInit) && !api.has(Function::cuDeviceGetCount));
    assert_eq!(api.absent().count(), Function::COUNT - 2);
    // SAFETY: the two functions of the library have CUDA's signatures.
    let driver = unsafe { Driver::load_from(&path) }?;
    let error = driver
        .device_count()
        .expect_err("the library lacks the function");
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the driver for CUDA 12.4 lacks cuDeviceGetCount, which CUDA 2.0 introduced"
    );
    let newer = driver.missing(Function::cuCtxCreate_v4);
    assert_eq!(
        newer.to_string(),
        "cuCtxCreate_v4 needs a driver for CUDA 12.5 or newer, and this one is for CUDA 12.4"
    );
    Ok(())
}

#[test]
fn named_library_is_used() -> TestResult {
    let out = assert_reports_saxpy(&report(&[("CURIUM_DRIVER_PATH", &SIMULATOR)])?);
    assert!(out.to_lowercase().contains("simulat"), "{out}");
    Ok(())
}

#[test]
fn library_in_a_folder_is_used() -> TestResult {
    let folder = SIMULATOR.parent().ok_or("no parent folder")?;
    assert_reports_saxpy(&report(&[("CURIUM_DRIVER_PATH", folder)])?);
    Ok(())
}

#[test]
fn system_library_is_used() -> TestResult {
    let folder = SIMULATOR.parent().ok_or("no parent folder")?;
    assert_reports_saxpy(&report(&[("LD_LIBRARY_PATH", folder)])?);
    let empty = Path::new("");
    assert_reports_saxpy(&report(&[
        ("LD_LIBRARY_PATH", folder),
        ("CURIUM_DRIVER_PATH", empty),
    ])?);
    Ok(())
}

#[test]
fn variable_names_the_library() -> TestResult {
    let path = folder("only").join("absent.so");
    let simulator = SIMULATOR.parent().ok_or("no parent folder")?;
    let text = assert_reports_error(&report(&[
        ("CURIUM_DRIVER_PATH", &path),
        ("LD_LIBRARY_PATH", simulator),
    ])?);
    assert_eq!(text.matches("\n  ").count(), 1, "{text}");
    assert!(text.contains("absent.so"), "{text}");
    Ok(())
}

/// A folder in a variable is tried with both names of the library.
#[test]
fn variable_names_a_folder() -> TestResult {
    let folder = folder("both");
    build_driver(&folder.join("libcuda.so"), 34, 0);
    let text = assert_reports_error(&report(&[("CURIUM_DRIVER_PATH", &folder)])?);
    let first = folder.join("libcuda.so.1");
    let second = folder.join("libcuda.so");
    let positions = [first, second].map(|path| text.find(&format!("\n  {}: ", path.display())));
    assert!(
        positions[0].ok_or("no first name")? < positions[1].ok_or("no second name")?,
        "{text}"
    );
    assert!(text.contains("stub library"), "{text}");
    Ok(())
}

#[test]
fn missing_driver_names_the_paths() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let folder = folder("stub_only");
    build_driver(&folder.join("libcuda.so.1"), 34, 0);
    // The stub hides a driver that the system's loader would find, except under the other names.
    std::fs::copy(folder.join("libcuda.so.1"), folder.join("libcuda.so"))?;
    let text = assert_reports_error(&report(&[("LD_LIBRARY_PATH", &folder)])?);
    assert!(
        text.contains("\n  libcuda.so.1: the CUDA toolkit's stub library"),
        "{text}"
    );
    assert!(text.contains("\n  libcuda.so: "), "{text}");
    assert!(text.contains("/usr/lib/wsl/lib/libcuda.so.1"), "{text}");
    Ok(())
}

#[test]
fn newer_functions_are_missing() -> TestResult {
    let path = folder("version_13_0").join("libcuda.so.1");
    build_driver(&path, 0, 13000);
    let driver = report(&[("CURIUM_DRIVER_PATH", &path)])?;
    let out = String::from_utf8_lossy(&driver.stdout);
    assert!(out.contains("driver: CUDA 13.0\n"), "{out}");
    let newer: Vec<_> = Function::all()
        .filter(|function| function.since() > CudaVersion::new(13, 0))
        .collect();
    assert!(newer.len() >= 43, "{}", newer.len());
    for function in newer {
        let since = function.since();
        let line = format!(
            "missing: {function} needs a driver for CUDA {since} or newer, and this one is for CUDA 13.0\n"
        );
        assert!(out.contains(&line), "{line}{out}");
    }
    Ok(())
}

#[test]
fn oldest_driver_runs_a_kernel() -> TestResult {
    let output = report(&[
        ("CURIUM_DRIVER_PATH", &SIMULATOR),
        ("CURIUM_SIM_DRIVER_VERSION", Path::new("11.8")),
    ])?;
    let out = assert_reports_saxpy(&output);
    assert!(out.contains("driver: CUDA 11.8\n"), "{out}");
    Ok(())
}

#[test]
fn old_driver_lacks_functions() -> TestResult {
    let version = Path::new("13.0");
    let output = report(&[
        ("CURIUM_DRIVER_PATH", &OLD_SIMULATOR),
        ("CURIUM_SIM_DRIVER_VERSION", version),
    ])?;
    let out = assert_reports_saxpy(&output);
    assert!(out.contains("driver: CUDA 13.0\n"), "{out}");
    let newer: Vec<_> = Function::all()
        .filter(|function| function.since() > CudaVersion::new(13, 0))
        .collect();
    for function in &newer {
        let since = function.since();
        assert!(
            out.contains(&format!(
                "missing: {function} needs a driver for CUDA {since} or newer"
            )),
            "{function}: {out}"
        );
    }
    assert_eq!(
        out.matches("missing: ").count(),
        newer.len(),
        "nothing else is missing: {out}"
    );
    Ok(())
}

/// Returns the address of `cuInit` from `cuGetProcAddress` instead of the dynamic linker.
fn found_init(api: &Api) -> TestResult<*mut c_void> {
    let look_up = api.cuGetProcAddress_v2.ok_or("no `cuGetProcAddress_v2`")?;
    let mut address = std::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult(u32::MAX);
    // SAFETY: the name is NUL-terminated, and both addresses are valid for writes.
    let code = unsafe {
        look_up(
            c"cuInit".as_ptr(),
            &raw mut address,
            12_000,
            0,
            &raw mut status,
        )
    };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    assert_eq!(
        status,
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
    );
    Ok(address)
}

#[test]
fn resolved_function_is_exported() -> TestResult {
    let api = load(&SIMULATOR)?;
    assert_eq!(
        found_init(&api)?.cast_const(),
        api.address(Function::cuInit)
    );
    Ok(())
}

#[test]
fn forked_child_is_uninitialized() -> TestResult {
    let init = load(&SIMULATOR)?.cuInit.ok_or("no `cuInit`")?;
    // SAFETY: `cuInit` accepts 0.
    assert_eq!(unsafe { init(0) }, CUresult::CUDA_SUCCESS);
    in_fork(|| {
        // SAFETY: `cuInit` accepts 0; the library returns an error if it is unusable in a child.
        assert_eq!(unsafe { init(0) }, CUresult::CUDA_ERROR_NOT_INITIALIZED);
    });
    Ok(())
}

#[test]
fn forked_child_functions_fail() -> TestResult {
    type Count = unsafe extern "C" fn(*mut i32) -> CUresult;

    let api = load(&SIMULATOR)?;
    // SAFETY: this is `cuInit`, which takes no flags.
    let code = unsafe { api.cuInit.ok_or("no `cuInit`")?(0) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    let find = api.cuGetProcAddress_v2.ok_or("no `cuGetProcAddress_v2`")?;
    let mut address = std::ptr::null_mut();
    // SAFETY: the name is NUL-terminated, the address is valid for writes, and the status is
    // optional.
    let code = unsafe {
        find(
            c"cuDeviceGetCount".as_ptr(),
            &raw mut address,
            12000,
            0,
            std::ptr::null_mut(),
        )
    };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    // SAFETY: the returned function has this signature.
    let asked_for = unsafe { std::mem::transmute::<*mut c_void, Count>(address) };
    let symbol = api.cuDeviceGetCount.ok_or("no `cuDeviceGetCount`")?;
    let count = |function: Count| {
        let mut count = -1;
        // SAFETY: the address is valid for writes.
        (unsafe { function(&raw mut count) }, count)
    };
    assert_eq!(
        [count(asked_for), count(symbol)],
        [(CUresult::CUDA_SUCCESS, 1); 2]
    );
    in_fork(|| {
        let refused = (CUresult::CUDA_ERROR_NOT_INITIALIZED, -1);
        assert_eq!([count(asked_for), count(symbol)], [refused; 2]);
    });
    assert_eq!(
        [count(asked_for), count(symbol)],
        [(CUresult::CUDA_SUCCESS, 1); 2],
        "the parent continues"
    );
    Ok(())
}
