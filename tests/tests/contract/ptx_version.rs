//! The PTX versions of every CUDA version that Curium supports.

use std::error::Error;
use std::fs;

use curium_driver::{CudaVersion, Driver, Library, PtxVersion};
use curium_sim::{Config, Simulator};
use curium_sys::CUresult;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Returns the CUDA versions whose headers the bindings are checked with, oldest first.
fn supported_versions() -> Result<Vec<CudaVersion>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/cuda-versions.toml");
    let text = fs::read_to_string(path)?;
    let mut versions = Vec::new();
    for entry in text
        .split("[[")
        .filter_map(|entry| entry.strip_prefix("cuda]]"))
    {
        let version = entry
            .lines()
            .find_map(|line| line.strip_prefix("version = "))
            .ok_or("no version in the entry")?;
        let (major, minor) = version
            .trim_matches('"')
            .split_once('.')
            .ok_or("no dot in the version")?;
        versions.push(CudaVersion::new(major.parse()?, minor.parse()?));
    }
    Ok(versions)
}

/// Loads an empty kernel in PTX of this version.
fn load(driver: &Driver, ptx: PtxVersion) -> curium_driver::Result<()> {
    let text = format!(
        ".version {ptx}\n.target sm_75\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n"
    );
    // Drivers before 12.0 have no libraries.
    match driver.version() < CudaVersion::new(12, 0) {
        true => {
            let context = driver.device(0)?.primary_context()?;
            curium_driver::Module::from_ptx(&context, &text).map(drop)
        }
        false => Library::from_ptx(driver, &text).map(drop),
    }
}

/// The simulated driver of each CUDA version accepts its newest PTX and rejects the next, and the
/// error names the CUDA version that it needs.
#[test]
fn newest_ptx_per_cuda_version() -> Result {
    let versions = supported_versions()?;
    assert_eq!(versions.last(), Some(&CudaVersion::NEWEST_KNOWN));
    for version in versions {
        let newest = version
            .newest_ptx()
            .ok_or_else(|| format!("the PTX version of CUDA {version} is missing"))?;
        let simulator = Simulator::new(Config::new().with_driver_version(version))?;
        let driver = simulator.driver::<Driver>()?;
        load(&driver, newest)?;
        let newer = PtxVersion::new(newest.major, newest.minor + 1);
        let Err(error) = load(&driver, newer) else {
            return Err(format!("CUDA {version} accepts PTX {newer}").into());
        };
        let code = error.code();
        assert_eq!(code, Some(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
        let needed = match newer.first_cuda() {
            Some(needed) => format!("CUDA {needed} or newer"),
            None => "a CUDA newer than".to_owned(),
        };
        assert!(error.to_string().contains(&needed), "{error}");
    }
    Ok(())
}
