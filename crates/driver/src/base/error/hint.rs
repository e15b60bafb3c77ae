//! Hints for result codes. A hint is given only if the facts support it.

use std::borrow::Cow;
use std::path::Path;

use curium_sys::CUresult;

use crate::Driver;

/// Returns the hint for a code whose cause does not depend on the call. The simulator's log has its
/// report.
pub(super) fn hint(
    driver: &Driver,
    code: CUresult,
    driver_log: Option<&str>,
) -> Option<Cow<'static, str>> {
    match code {
        CUresult::CUDA_ERROR_NO_DEVICE => Some(no_device()),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Some(Cow::Owned(format!(
            "the PTX was compiled by a newer CUDA than this driver's {0}: update the driver, compile with nvcc or NVRTC of CUDA {0} or older, or compile to a cubin for the device",
            driver.version()
        ))),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => Some(Cow::Borrowed(
            "the image has neither machine code for this device's architecture nor PTX: compile to PTX as well",
        )),
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => Some(Cow::Borrowed(
            "the versions of the driver library and the kernel module differ: reload the kernel module or reboot",
        )),
        CUresult::CUDA_ERROR_STUB_LIBRARY => Some(Cow::Borrowed(
            "this library is the toolkit's stub: remove its `stubs` folder from the library search path",
        )),
        // The log of a simulated driver says which limit was reached.
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT if driver_log.is_some() && driver.is_simulated() => None,
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => Some(Cow::Borrowed(
            "the system limits the time of kernels on a device that draws a desktop: split the work into shorter kernels, or use a device \
             without one; on Windows the limit is `TdrDelay` in the registry",
        )),
        _ if is_kernel_failure(code) && driver.is_simulated() => {
            driver_log.is_none().then_some(Cow::Borrowed(
                "the simulator's report names the kernel, the thread and the line: see stderr or `Simulator::reports`",
            ))
        }
        _ if is_kernel_failure(code)
            && std::env::var_os("CUDA_LAUNCH_BLOCKING").is_none_or(|value| value != "1") =>
        {
            Some(Cow::Borrowed(
                "to find the kernel, set CUDA_LAUNCH_BLOCKING=1, or use compute-sanitizer or the simulator",
            ))
        }
        _ => None,
    }
}

/// Returns `true` if `code` reports a failed kernel.
fn is_kernel_failure(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_ASSERT
    )
}

fn no_device() -> Cow<'static, str> {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(devices) => {
            return Cow::Owned(format!(
                "CUDA_VISIBLE_DEVICES is {devices:?}, which may hide every device"
            ));
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            return Cow::Borrowed("CUDA_VISIBLE_DEVICES is not UTF-8");
        }
        Err(std::env::VarError::NotPresent) => {}
    }
    if cfg!(target_os = "linux")
        && !Path::new("/dev/nvidiactl").exists()
        && !Path::new("/dev/dxg").exists()
    {
        return Cow::Borrowed(
            "/dev/nvidiactl does not exist: load the kernel module, or start the container with a GPU",
        );
    }
    Cow::Borrowed("the driver is loaded, but it exposes no GPU to this process")
}
