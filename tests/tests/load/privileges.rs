//! Set-uid programs: their environment is chosen by the caller, and selects no code that they load
//! and no file that they write.

use curium_tests::TestResult;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use curium_diagnostics::NvtxRange;
use curium_driver::{DiskCache, Driver};

use super::{SIMULATOR, build};

/// Names the simulator to a process that is started for the test.
const CHILD: &str = "CURIUM_TEST_PRIVILEGES";
/// The user that the processes are started by: nobody.
const USER: u32 = 65_534;

/// The variables that name a library that is loaded.
const LIBRARIES: [&str; 2] = ["CURIUM_DRIVER_PATH", "NVTX_INJECTION64_PATH"];
/// The variables that name a file or folder that is written.
const FILES: [&str; 4] = [
    "CURIUM_TRACE",
    "CURIUM_SIM_TRACE",
    "CURIUM_SIM_SUMMARY",
    "CURIUM_CACHE_PATH",
];

/// Performs every operation that reads one of the variables.
fn follow_everything(simulator: &Path) -> TestResult {
    drop(NvtxRange::new("range"));
    drop(Driver::load());
    drop(DiskCache::for_user());
    // SAFETY: the library is the simulator.
    let driver = unsafe { Driver::load_from(simulator) }?;
    driver.device(0)?;
    Ok(())
}

/// Makes `from` a file called `name` in `folder`, which everybody can read and run.
fn copy(from: &Path, folder: &Path, name: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::copy(from, &path).expect("copy failed");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
        .expect("the test owns the file");
    path
}

/// Builds a library that writes a file when it is loaded, and returns both.
fn library(folder: &Path, name: &str) -> [PathBuf; 2] {
    let [path, written] =
        ["so", "loaded"].map(|extension| folder.join(name).with_extension(extension));
    let source = format!(
        "extern \"C\" fn load() {{ std::fs::write({written:?}, \"\").expect(\"the folder is for everybody\") }}
        #[used] #[unsafe(link_section = \".init_array\")] static LOAD: extern \"C\" fn() = load;"
    );
    build(&path, &source);
    [path, written]
}

/// Runs this test in a process of another user, and returns the names of the variables that it
/// followed.
fn followed(program: &Path, simulator: &Path, folder: &Path) -> Vec<&'static str> {
    let libraries = LIBRARIES.map(|name| (name, library(folder, name)));
    let files = FILES.map(|name| (name, [folder.join(name), folder.join(name)]));
    let variables: Vec<_> = libraries.into_iter().chain(files).collect();
    let mut command = Command::new(program);
    command
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, simulator)
        .uid(USER)
        .gid(USER);
    command.envs(variables.iter().map(|(name, [value, _])| (name, value)));
    let output = command.output().expect("failed to start the program");
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    variables
        .iter()
        .filter(|(_, [_, written])| written.exists())
        .map(|(name, _)| *name)
        .collect()
}

const TEST: &str = "privileges::set_uid_ignores_path_variables";

#[test]
fn set_uid_ignores_path_variables() -> TestResult {
    if let Some(simulator) = std::env::var_os(CHILD) {
        follow_everything(Path::new(&simulator))?;
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("curium-privileges-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    if folder.metadata()?.uid() != 0 {
        std::fs::remove_dir(&folder)?;
        return curium_tests::skip(
            "only root can create a program that is set-user-ID for another user",
        );
    }
    let this = std::env::current_exe()?;
    let simulator = copy(&SIMULATOR, &folder, "libcuda.so.1", 0o755);
    let programs = [("plain", 0o755), ("raised", 0o4755)].map(|(name, mode)| {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).expect("failed to create a folder");
        let program = copy(&this, &folder, "program", mode);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))
            .expect("the test owns the folder");
        followed(&program, &simulator, &folder)
    });
    std::fs::remove_dir_all(&folder)?;
    let all: Vec<_> = LIBRARIES.into_iter().chain(FILES).collect();
    assert_eq!(
        programs,
        [all, Vec::new()],
        "the variables that a program followed, without and with raised privileges"
    );
    Ok(())
}
