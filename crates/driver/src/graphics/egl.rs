//! EGL images and fences.

use curium_sys::{EGLImageKHR, EGLSyncKHR};

use super::{GraphicsFlags, GraphicsResource};
use crate::call;
use crate::{Context, Event, EventFlags, Result};

impl GraphicsResource {
    /// Registers an image of EGL. It is mapped by the driver for as long as it is registered, and [`GraphicsResource::map`] is not for it.
    ///
    /// What a texture of OpenGL held before the image was made of it need not be shared: a texture that has the image as its target
    /// (`glEGLImageTargetTexture2DOES`) shares all its texels.
    ///
    /// CUDA: `cuGraphicsEGLRegisterImage`.
    ///
    /// # Safety
    ///
    /// The image lives for as long as the result, and whoever else uses it is synchronized with CUDA.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if there is no such image.
    #[doc(alias = "cuGraphicsEGLRegisterImage")]
    #[inline]
    pub unsafe fn from_egl_image(context: &Context, image: EGLImageKHR, flags: GraphicsFlags) -> Result<Self> {
        let resource = Self::registered(context, |driver, place| {
            // SAFETY: `place` is valid for writes, the context is current, and the caller is responsible for the image.
            unsafe { call!(driver, cuGraphicsEGLRegisterImage(place, image, flags.bits()) creates *place) }
        });
        resource.map_err(|error| error.about(format!("image {image:?} of EGL")))
    }
}

impl Event {
    /// Returns an event that is reached when a fence of EGL is. It can be waited for and queried, and not recorded. Drivers for graphics
    /// cards of their own do not have it; those of systems on a chip do.
    ///
    /// CUDA: `cuEventCreateFromEGLSync`.
    ///
    /// # Safety
    ///
    /// `sync` is a live fence of EGL, and stays so until this event has been reached.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if the driver does not have it; an error of the driver.
    #[doc(alias = "cuEventCreateFromEGLSync")]
    #[inline]
    pub unsafe fn from_egl_sync(context: &Context, sync: EGLSyncKHR, flags: EventFlags) -> Result<Self> {
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, the context is current, and the caller is responsible for the fence.
            unsafe { call!(driver, cuEventCreateFromEGLSync(&raw mut raw, sync, flags.bits()) creates raw) }?;
            Ok(raw)
        })?;
        // SAFETY: the driver has just made the event in this context, and nobody else has its handle.
        Ok(unsafe { Self::from_raw(context, raw) })
    }
}
