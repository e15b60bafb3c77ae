//! Compilation of the test kernels with every NVRTC. Their results are tested with the PTX of the
//! oldest version.

use crate::library::TestResult;
use std::path::{Path, PathBuf};

use curium_driver::{CudaVersion, Driver};
use curium_nvrtc::{Architecture, CompileOptions, Nvrtc, Program};
use curium_sim::{Config, DeviceModel, Simulator};

use crate::library::{compiled, with_nvrtc};

/// The prefix of a line in a kernel's source that adds NVRTC options.
const OPTIONS_LINE: &str = "// nvrtc: ";
/// The option that states the minimum compute capability of a kernel.
const ARCHITECTURE_OPTION: &str = "--gpu-architecture=compute_";

/// Compute capabilities, times ten, with a simulated device of each.
const DEVICES: [(u32, DeviceModel); 3] = [
    (75, DeviceModel::T4),
    (80, DeviceModel::A100),
    (90, DeviceModel::H100),
];

/// Returns the source files of the test kernels.
fn sources() -> TestResult<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let mut paths = Vec::new();
    for file in std::fs::read_dir(folder)? {
        paths.push(file?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    Ok(paths)
}

/// Compiles a file for a compute capability and loads it, unless it requires a newer one. Returns
/// the number of its kernels.
fn kernel_count(nvrtc: &Nvrtc, driver: &Driver, path: &Path, capability: u32) -> TestResult<usize> {
    let source = std::fs::read_to_string(path)?;
    let options = source
        .lines()
        .filter_map(|line| line.strip_prefix(OPTIONS_LINE))
        .flat_map(str::split_whitespace);
    let (needed, options): (Vec<&str>, Vec<_>) =
        options.partition(|option| option.starts_with(ARCHITECTURE_OPTION));
    let needed = match needed.first() {
        Some(option) => option[ARCHITECTURE_OPTION.len()..].parse()?,
        None => 0,
    };
    if capability < needed {
        return Ok(0);
    }
    let architecture = Architecture::new(capability / 10, capability % 10);
    let options = options.into_iter().fold(
        CompileOptions::new().with_architecture(architecture),
        CompileOptions::with_option,
    );
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("the file name is not UTF-8")?;
    let compiled = compiled(nvrtc, &Program::new(name, source), &options);
    let device = driver.device(0)?;
    let library = compiled
        .library(&device, &curium_driver::JitOptions::new())
        .unwrap_or_else(|error| panic!("{name} for {capability}: {error}"));
    let kernels = library
        .kernels()
        .unwrap_or_else(|error| panic!("{name} for {capability}: {error}"));
    Ok(kernels.len())
}

#[test]
fn test_set_compiles_and_loads() -> TestResult {
    with_nvrtc("test_set_compiles_and_loads", |nvrtc| {
        let mut counts = Vec::new();
        for (capability, model) in DEVICES {
            let config = Config::new()
                .with_driver_version(CudaVersion::NEWEST_KNOWN)
                .with_device_model(model);
            let simulator = Simulator::new(config)?;
            let driver = simulator.driver::<Driver>()?;
            let mut count = 0;
            for path in sources()? {
                count += kernel_count(nvrtc, &driver, &path, capability)?;
            }
            counts.push(count);
        }
        // Newer devices support more kernels.
        assert!(
            counts[0] >= 60 && counts.is_sorted_by(|fewer, more| fewer < more),
            "{counts:?}"
        );
        Ok(())
    })
}
