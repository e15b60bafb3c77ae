//! Drivers that are older than NVRTC, on the simulator.

use std::sync::mpsc;

use curium_driver::sys::CUresult;
use curium_driver::{Call, CudaVersion, Driver, Function, observe_calls};
use curium_nvrtc::{Architecture, Compile as _, CompileOptions, Error};
use curium_sim::{Config, Simulator};

use crate::library::{TestResult, nvrtc};

const SOURCE: &str = "extern \"C\" __global__ void k() {}";
const OLD: CudaVersion = CudaVersion::new(12, 4);
/// The version of one test alone, by which the observer recognizes its driver.
const OBSERVED: CudaVersion = CudaVersion::new(12, 3);

/// A driver loads the cubin. The simulated one rejects it, because it runs no machine code, and the
/// PTX like a real driver.
#[test]
fn older_driver_gets_a_cubin() -> TestResult {
    let Some(nvrtc) = nvrtc("older_driver_gets_a_cubin") else {
        return Ok(());
    };
    let driver = Simulator::new(Config::new().with_driver_version(OBSERVED))?.driver::<Driver>()?;
    let device = driver.device(0)?;
    let architecture = nvrtc.architecture_for(&device)?;
    if nvrtc.version() <= OBSERVED {
        assert_eq!(architecture, Architecture::new(9, 0));
        device.compile_with(&nvrtc, SOURCE, &CompileOptions::new())?;
        return Ok(());
    }
    assert_eq!(architecture, Architecture::new(9, 0).real());
    let (sender, codes) = mpsc::channel();
    let guard = observe_calls(move |call: &Call<'_>| {
        if call.driver.version() == OBSERVED && call.code != CUresult::CUDA_SUCCESS {
            // The receiver outlives the guard.
            let _ = sender.send((call.function, call.code));
        }
    });
    let Err(Error::Driver(error)) = device.compile_with(&nvrtc, SOURCE, &CompileOptions::new())
    else {
        return Err("the simulator loads no cubin, and this driver no newer PTX".into());
    };
    drop(guard);
    // The driver loads a library of PTX before it compiles it, and fails when a kernel is looked
    // up.
    let expected = [
        (
            Function::cuLibraryLoadData,
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
        ),
        (
            Function::cuLibraryGetKernel,
            CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        ),
    ];
    let failed: Vec<_> = codes.try_iter().collect();
    assert_eq!(failed, expected, "first the cubin, then the PTX");
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("NVRTC of CUDA 12.3 or older"), "{error}");
    Ok(())
}

/// The output for a real architecture contains PTX, which the simulator runs.
#[test]
fn real_architecture_is_simulated() -> TestResult {
    let Some(nvrtc) = nvrtc("real_architecture_is_simulated") else {
        return Ok(());
    };
    let config = Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    let options = CompileOptions::new().with_architecture(Architecture::new(8, 0).real());
    let program = driver.device(0)?.compile_with(&nvrtc, SOURCE, &options)?;
    assert!(program.program().cubin().is_ok());
    program.kernel::<()>("k")?;
    Ok(())
}

/// PTX on request is an error that names the remedy.
#[test]
fn rejected_ptx_has_a_hint() -> TestResult {
    let Some(nvrtc) = nvrtc("rejected_ptx_has_a_hint") else {
        return Ok(());
    };
    if nvrtc.version() <= OLD {
        return Ok(());
    }
    let driver = Simulator::new(Config::new().with_driver_version(OLD))?.driver::<Driver>()?;
    let options = CompileOptions::new().with_architecture(Architecture::new(9, 0));
    let result = driver.device(0)?.compile_with(&nvrtc, SOURCE, &options);
    let error = result.err().ok_or("newer PTX was accepted")?.to_string();
    assert!(
        error.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        "{error}"
    );
    assert!(error.contains("`Nvrtc::architecture_for`"), "{error}");
    Ok(())
}
