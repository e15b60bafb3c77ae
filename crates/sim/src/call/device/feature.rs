//! Device queries beyond attributes.

use curium_sys::{CUarray_format, CUdevice, CUexecAffinityType, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::object::array::format;
use crate::result::Result;

/// The maximum number of elements, and of bytes, of a texture over linear memory.
const MAX_ELEMENTS: usize = 1 << 30;

const MAX_BYTES: usize = 1 << 32;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Returns no support: the multi-process service, which confining contexts requires, is not
    /// available.
    pub(crate) fn cuDeviceGetExecAffinitySupport(
        &self,
        supported: Pointer<i32>,
        _kind: CUexecAffinityType,
        device: CUdevice,
    ) -> Result {
        let output = supported.required()?;
        self.devices().device(device)?;
        output.write(0)
    }

    pub(crate) fn cuDeviceGetTexture1DLinearMaxWidth(
        &self,
        width: Pointer<usize>,
        format: CUarray_format,
        channels: u32,
        device: CUdevice,
    ) -> Result {
        let output = width.required()?;
        let bytes = element_size(format, channels).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        self.devices().device(device)?;
        output.write(MAX_ELEMENTS.min(MAX_BYTES / bytes))
    }
}

/// Returns the bytes of an element of a format with a number of channels.
fn element_size(format: CUarray_format, channels: u32) -> Option<usize> {
    if !format::has_channels(format, channels) {
        return None;
    }
    match format::fixed_layout(format) {
        Some(layout) => Some(layout.bytes),
        None => Some(format::channel_size(format)? * channels as usize),
    }
}
