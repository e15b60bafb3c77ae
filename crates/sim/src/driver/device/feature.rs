//! Device queries beyond attributes.

use curium_sys::{CUarray_format, CUdevice, CUexecAffinityType, CUresult};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};

/// The maximum number of elements, and of bytes, of a texture over linear memory.
const MAX_ELEMENTS: usize = 1 << 30;
const MAX_BYTES: usize = 1 << 32;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    /// Returns no support: the multi-process service, which confining contexts requires, is not available.
    pub(crate) fn cuDeviceGetExecAffinitySupport(
        &self,
        supported: Pointer<i32>,
        _kind: CUexecAffinityType,
        device: CUdevice,
    ) -> Result {
        self.device(device)?;
        supported.write(0)
    }

    pub(crate) fn cuDeviceGetTexture1DLinearMaxWidth(
        &self,
        width: Pointer<usize>,
        format: CUarray_format,
        channels: u32,
        device: CUdevice,
    ) -> Result {
        let output = width.required()?;
        self.device(device)?;
        let bytes = format_size(format).filter(|_| matches!(channels, 1 | 2 | 4));
        let bytes = bytes.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)? * channels as usize;
        output.write(MAX_ELEMENTS.min(MAX_BYTES / bytes))
    }
}

/// Returns the bytes of one channel, for uncompressed formats.
fn format_size(format: CUarray_format) -> Option<usize> {
    match format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 | CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => {
            Some(1)
        }
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_HALF => Some(2),
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_FLOAT => Some(4),
        _ => None,
    }
}
