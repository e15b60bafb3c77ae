//! Textures and surfaces as kernels access them.

use curium_ptx::exec::{Channel, Element, Image};
use curium_sys::CUarray_format;

use crate::object::array::{Array, Shape};

impl Array {
    pub(crate) fn image(&self) -> Image {
        Image {
            base: self.base,
            width: self.shape.width as u32,
            height: self.shape.rows() as u32,
            depth: self.shape.layers() as u32,
            pitch: self.shape.pitch() as u64,
        }
    }
}

impl Shape {
    pub(crate) fn as_element(&self) -> Option<Element> {
        Some(Element {
            channel: format_channel(self.format)?,
            channels: self.channels,
        })
    }
}

pub(crate) fn format_channel(format: CUarray_format) -> Option<Channel> {
    Some(match format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 => Channel::U8,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => Channel::I8,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16 => Channel::U16,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT16 => Channel::I16,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 => Channel::U32,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => Channel::I32,
        CUarray_format::CU_AD_FORMAT_HALF => Channel::F16,
        CUarray_format::CU_AD_FORMAT_FLOAT => Channel::F32,
        _ => return None,
    })
}
