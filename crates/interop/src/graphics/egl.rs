//! EGL images and fences.

use curium_driver::sys::{EGLImageKHR, EGLSyncKHR};
use curium_driver::{Context, Event, EventFlags, Result, call};

use super::{GraphicsFlags, GraphicsResource};

impl GraphicsResource {
    /// Registers an EGL image. It stays mapped for as long as it is registered; do not call
    /// [`GraphicsResource::map`] for it.
    ///
    /// An OpenGL texture that the image was created from need not share its previous contents. A
    /// texture that is specified by the image (`glEGLImageTargetTexture2DOES`) shares all texels.
    ///
    /// CUDA: `cuGraphicsEGLRegisterImage`.
    ///
    /// # Safety
    ///
    /// The image outlives the result, and all other uses of it are synchronized with CUDA.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the image does not exist.
    #[doc(alias = "cuGraphicsEGLRegisterImage")]
    pub unsafe fn from_egl_image(
        context: &Context,
        image: EGLImageKHR,
        flags: GraphicsFlags,
    ) -> Result<Self> {
        let resource = Self::registered(context, |driver, place| {
            // SAFETY: `place` is valid for writes, the context is current, and the caller is
            // responsible for the image.
            unsafe {
                call!(driver, cuGraphicsEGLRegisterImage(place, image, flags.bits()) creates *place)
            }
        });
        resource.map_err(|error| error.about(format!("image {image:?} of EGL")))
    }
}

/// Creates an event that completes when an EGL fence is signaled. It can be waited for and queried,
/// but not recorded. Only drivers for integrated GPUs (SoCs) support it.
///
/// CUDA: `cuEventCreateFromEGLSync`.
///
/// # Safety
///
/// `sync` is an EGL fence that is live until the event has completed.
///
/// # Errors
///
/// [`Error::Missing`](curium_driver::Error::Missing) if the driver lacks the function; any error
/// returned by the driver.
#[doc(alias = "cuEventCreateFromEGLSync")]
pub unsafe fn event_from_egl_sync(
    context: &Context,
    sync: EGLSyncKHR,
    flags: EventFlags,
) -> Result<Event> {
    let raw = context.entered(|driver| {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes, the context is current, and the caller is responsible
        // for the fence.
        unsafe {
            call!(driver, cuEventCreateFromEGLSync(&raw mut raw, sync, flags.bits()) creates raw)
        }?;
        Ok(raw)
    })?;
    // SAFETY: the driver has just created the event in this context, and no other code has its
    // handle.
    Ok(unsafe { Event::from_raw(context, raw) })
}
