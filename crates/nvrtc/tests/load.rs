//! Errors of loading NVRTC and nvJitLink.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use curium_driver::sys::load::{LoadError, Rejection};
use curium_nvrtc::{Error, NvJitLink, Nvrtc};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn load_error(path: &Path) -> Box<LoadError> {
    // SAFETY: none of the files named in these tests exports a function of NVRTC.
    match unsafe { Nvrtc::load_from(path) } {
        Err(Error::Load(error)) => error,
        other => panic!("{} must not load: {other:?}", path.display()),
    }
}

#[test]
fn missing_file_is_named() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("libnvrtc.so.12");
    let error = load_error(&path);
    assert_eq!(error.attempts.len(), 1);
    assert!(
        matches!(error.attempts[0].rejection, Rejection::Unloadable { .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("CURIUM_NVRTC_PATH"), "{text}");
    assert!(
        text.contains("`pip install nvidia-cuda-nvrtc` or `pip install nvidia-cuda-nvrtc-cu12`"),
        "{text}"
    );
    assert_eq!(
        text.matches(&path.display().to_string()).count(),
        1,
        "{text}"
    );
    Ok(())
}

#[test]
fn other_file_is_rejected() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("libnvrtc.so.12");
    fs::write(&path, "not a library")?;
    assert!(matches!(
        load_error(&path).attempts[0].rejection,
        Rejection::Unloadable { .. }
    ));
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn other_library_is_rejected() {
    let error = load_error(Path::new("libc.so.6"));
    let Rejection::OtherLibrary {
        library: "NVRTC",
        missing: "nvrtcCompileProgram",
    } = error.attempts[0].rejection
    else {
        panic!("{error}")
    };
}

#[test]
fn only_chosen_folder_is_searched() -> TestResult {
    // The environment must not be changed while other threads run, so this test runs itself in a
    // child process.
    const ROLE: &str = "CURIUM_TEST_NVRTC_ROLE";
    if std::env::var_os(ROLE).is_some() {
        let Err(Error::Load(error)) = Nvrtc::load() else {
            panic!("an empty folder holds no NVRTC")
        };
        let folder =
            std::env::var_os("CURIUM_NVRTC_PATH").ok_or("`CURIUM_NVRTC_PATH` is not set")?;
        assert!(
            error
                .attempts
                .iter()
                .all(|attempt| attempt.path.parent() == Some(Path::new(&folder))),
            "{error}"
        );
        assert_eq!(error.attempts.len(), 3, "{error}");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut child = Command::new(std::env::current_exe()?);
    child
        .args(["--exact", "only_chosen_folder_is_searched"])
        .env(ROLE, "child");
    let output = child.env("CURIUM_NVRTC_PATH", folder.path()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    Ok(())
}

#[test]
fn python_environment_is_searched() -> TestResult {
    const ROLE: &str = "CURIUM_TEST_NVRTC_PYTHON";
    if std::env::var_os(ROLE).is_some() {
        let Err(Error::Load(error)) = Nvrtc::load() else {
            panic!("the file is no library")
        };
        let environment = std::env::var_os("VIRTUAL_ENV").ok_or("`VIRTUAL_ENV` is not set")?;
        assert!(
            error
                .attempts
                .iter()
                .any(|attempt| attempt.path.starts_with(&environment)),
            "{error}"
        );
        assert!(error.to_string().contains("not found in"), "{error}");
        return Ok(());
    }
    let environment = tempfile::tempdir()?;
    let packages = environment
        .path()
        .join("lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib");
    fs::create_dir_all(&packages)?;
    fs::write(packages.join("libnvrtc.so.12"), "not a library")?;
    let mut child = Command::new(std::env::current_exe()?);
    child
        .args(["--exact", "python_environment_is_searched"])
        .env(ROLE, "child");
    child
        .env_remove("CURIUM_NVRTC_PATH")
        .env("VIRTUAL_ENV", environment.path());
    let output = child.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    Ok(())
}

#[test]
fn missing_linker_is_named() {
    let path = Path::new("/nowhere/libnvJitLink.so.12");
    // SAFETY: the file does not exist.
    let error = unsafe { NvJitLink::load_from(path) }
        .expect_err("there is no such file")
        .to_string();
    assert!(
        error.contains("no nvJitLink could be loaded") && error.contains("CURIUM_NVJITLINK_PATH"),
        "{error}"
    );
}
