//! OpenGL buffers and images.

use curium_driver::sys::CUGLDeviceList;
use curium_driver::{Context, Device, Driver, Result, call};

use super::{GraphicsFlags, GraphicsResource};

/// The devices of an OpenGL context to return.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum GlDevices {
    /// All devices of the context.
    All,
    /// The devices that render the current frame.
    CurrentFrame,
    /// The devices that render the next frame.
    NextFrame,
}

impl GraphicsResource {
    /// Registers an OpenGL buffer object.
    ///
    /// CUDA: `cuGraphicsGLRegisterBuffer`.
    ///
    /// # Safety
    ///
    /// - An OpenGL context is current on this thread, shares objects with the context of `buffer`,
    ///   and is rendered by this device.
    /// - The buffer outlives the result, and OpenGL does not access it while it is mapped.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the buffer does not exist; `CUDA_ERROR_OPERATING_SYSTEM` if
    /// the OpenGL context does not support CUDA interoperability.
    #[doc(alias = "cuGraphicsGLRegisterBuffer")]
    #[doc(alias = "cudaGraphicsGLRegisterBuffer")]
    pub unsafe fn from_gl_buffer(
        context: &Context,
        buffer: u32,
        flags: GraphicsFlags,
    ) -> Result<Self> {
        let resource = Self::registered(context, |driver, place| {
            // SAFETY: `place` is valid for writes, the context is current, and the caller is
            // responsible for the buffer.
            unsafe {
                call!(driver, cuGraphicsGLRegisterBuffer(place, buffer, flags.bits()) creates *place)
            }
        });
        resource.map_err(|error| error.about(format!("buffer {buffer} of OpenGL")))
    }

    /// Registers an OpenGL texture or renderbuffer. `target` is its kind, such as `GL_TEXTURE_2D`.
    ///
    /// CUDA: `cuGraphicsGLRegisterImage`.
    ///
    /// # Safety
    ///
    /// As for [`GraphicsResource::from_gl_buffer`].
    ///
    /// # Errors
    ///
    /// As for [`GraphicsResource::from_gl_buffer`]; `CUDA_ERROR_INVALID_VALUE` for a format that
    /// CUDA does not support.
    #[doc(alias = "cuGraphicsGLRegisterImage")]
    #[doc(alias = "cudaGraphicsGLRegisterImage")]
    pub unsafe fn from_gl_image(
        context: &Context,
        image: u32,
        target: u32,
        flags: GraphicsFlags,
    ) -> Result<Self> {
        let resource = Self::registered(context, |driver, place| {
            // SAFETY: `place` is valid for writes, the context is current, and the caller is
            // responsible for the image.
            unsafe {
                call!(driver, cuGraphicsGLRegisterImage(place, image, target, flags.bits()) creates *place)
            }
        });
        resource
            .map_err(|error| error.about(format!("image {image} of OpenGL, target {target:#x}")))
    }
}

impl GlDevices {
    /// Returns these devices of the OpenGL context that is current on this thread.
    ///
    /// CUDA: `cuGLGetDevices_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NO_DEVICE` if there is none; `CUDA_ERROR_INVALID_GRAPHICS_CONTEXT` if no OpenGL
    /// context is current.
    #[doc(alias = "cuGLGetDevices")]
    pub fn query(self, driver: &Driver) -> Result<Vec<Device>> {
        let mut devices = vec![0; driver.device_count()?];
        let mut count = 0;
        let room = devices.len() as u32;
        let first = devices.as_mut_ptr();
        // SAFETY: `count` is valid for writes, and `first` for writes of as many devices as exist.
        unsafe {
            call!(
                driver,
                cuGLGetDevices_v2(&raw mut count, first, room, self.as_raw())
            )
        }?;
        devices.truncate(count as usize);
        Ok(devices
            .into_iter()
            .map(|raw| Device::from_raw(driver, raw))
            .collect())
    }

    const fn as_raw(self) -> CUGLDeviceList {
        match self {
            Self::All => CUGLDeviceList::CU_GL_DEVICE_LIST_ALL,
            Self::CurrentFrame => CUGLDeviceList::CU_GL_DEVICE_LIST_CURRENT_FRAME,
            Self::NextFrame => CUGLDeviceList::CU_GL_DEVICE_LIST_NEXT_FRAME,
        }
    }
}
