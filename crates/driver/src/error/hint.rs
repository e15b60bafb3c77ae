//! What a person can do about an error. The facts are checked before advice is given.

use std::borrow::Cow;
use std::path::Path;

use curium_sys::CUresult;

use crate::Driver;

/// Advice for a code that says something about the machine, whatever the call was.
#[inline]
pub(super) fn hint(driver: &Driver, code: CUresult) -> Option<Cow<'static, str>> {
    match code {
        CUresult::CUDA_ERROR_NO_DEVICE => Some(no_device()),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Some(Cow::Owned(format!(
            "the PTX was made by a newer CUDA than this driver's {0}: update the driver, or compile with an nvcc or NVRTC of CUDA {0} or older",
            driver.version()
        ))),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => Some(Cow::Borrowed(
            "the image holds neither code for this device's architecture nor PTX: compile to PTX as well",
        )),
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => Some(Cow::Borrowed(
            "the driver library and the kernel module are of different versions: reload the kernel module or reboot",
        )),
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            Some(Cow::Borrowed("this is the toolkit's stub: take its `stubs` folder off the library search path"))
        }
        _ => None,
    }
}

#[inline]
fn no_device() -> Cow<'static, str> {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(devices) => return Cow::Owned(format!("CUDA_VISIBLE_DEVICES is {devices:?} and may hide every device")),
        Err(std::env::VarError::NotUnicode(_)) => return Cow::Borrowed("CUDA_VISIBLE_DEVICES is not text"),
        Err(std::env::VarError::NotPresent) => {}
    }
    if cfg!(target_os = "linux") && !Path::new("/dev/nvidiactl").exists() && !Path::new("/dev/dxg").exists() {
        return Cow::Borrowed(
            "there is no /dev/nvidiactl: the kernel module is not loaded, or the container was started without a GPU",
        );
    }
    Cow::Borrowed("the driver is there, but it offers no GPU to this process")
}
