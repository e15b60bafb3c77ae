//! Graphics resources of OpenGL and EGL.

mod egl;
mod egl_stream;
mod gl;
mod mapped;

use std::fmt;

use bitflags::bitflags;
use curium_driver::extend::{Handle, release};
use curium_driver::sys::{
    CUgraphicsMapResourceFlags, CUgraphicsRegisterFlags, CUgraphicsResource, CUgraphicsResource_st,
};
use curium_driver::{Context, Driver, Result, Returned, call};

pub use self::egl::event_from_egl_sync;
pub use self::egl_stream::{EglConsumer, EglFrame, EglLocation, EglProducer};
pub use self::gl::GlDevices;
pub use self::mapped::MappedGraphics;

/// A buffer or image of a graphics API, registered with CUDA. Dropping it unregisters the resource.
///
/// While it is [mapped](GraphicsResource::map), CUDA may access its memory and the graphics API
/// must not. Vulkan memory is shared as external memory instead. The simulator does not implement
/// graphics interoperability.
pub struct GraphicsResource {
    raw: Handle<CUgraphicsResource_st>,
    context: Context,
}

bitflags! {
    /// Flags for registering a resource.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct GraphicsFlags: u32 {
        /// CUDA only reads the resource.
        const READ_ONLY = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY.0;
        /// CUDA overwrites the whole resource and reads nothing.
        const WRITE_DISCARD = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD.0;
        /// CUDA binds the resource to surface references.
        const SURFACE_LOAD_STORE = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST.0;
        /// CUDA performs texture gather operations on the resource.
        const TEXTURE_GATHER = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

/// The access of CUDA to a mapped resource.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum GraphicsAccess {
    /// CUDA reads and writes.
    #[default]
    ReadWrite,
    /// CUDA only reads.
    ReadOnly,
    /// CUDA overwrites the whole resource and reads nothing.
    WriteDiscard,
}

impl GraphicsResource {
    /// Returns the raw handle. It is valid for as long as this value exists.
    #[must_use]
    pub fn as_raw(&self) -> CUgraphicsResource {
        self.raw.raw()
    }

    /// Returns the context that the resource is registered in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Sets how CUDA accesses the resource the next time that it is mapped.
    ///
    /// CUDA: `cuGraphicsResourceSetMapFlags_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ALREADY_MAPPED` if the resource is mapped.
    #[doc(alias = "cuGraphicsResourceSetMapFlags")]
    pub fn set_access(&self, access: GraphicsAccess) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the resource is live, and its context is current.
            unsafe {
                call!(
                    driver,
                    cuGraphicsResourceSetMapFlags_v2(self.as_raw(), access.as_raw())
                )
            }
        })
    }

    /// Unregisters the resource and returns any error, instead of only reporting it as [`Drop`]
    /// does.
    ///
    /// CUDA: `cuGraphicsUnregisterResource`.
    ///
    /// # Errors
    ///
    /// Returns the resource to the caller if the driver call fails.
    #[doc(alias = "cuGraphicsUnregisterResource")]
    #[doc(alias = "cudaGraphicsUnregisterResource")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unregister()
            .map_err(|error| Returned::new(self, error))
    }

    /// Registers a resource with `register` while `context` is current.
    fn registered(
        context: &Context,
        register: impl FnOnce(&Driver, &mut CUgraphicsResource) -> Result<()>,
    ) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        context.entered(|driver| register(driver, &mut raw))?;
        Ok(Self {
            raw: Handle::new(raw),
            context: context.clone(),
        })
    }

    fn unregister(&mut self) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the resource is live, no other code has its handle, its context is current,
            // and it is not used again once it is unregistered.
            unsafe { call!(driver, cuGraphicsUnregisterResource(self.raw.raw())) }
        })?;
        self.raw.clear();
        Ok(())
    }
}

impl GraphicsAccess {
    const fn as_raw(self) -> u32 {
        match self {
            Self::ReadWrite => CUgraphicsMapResourceFlags::CU_GRAPHICS_MAP_RESOURCE_FLAGS_NONE.0,
            Self::ReadOnly => {
                CUgraphicsMapResourceFlags::CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY.0
            }
            Self::WriteDiscard => {
                CUgraphicsMapResourceFlags::CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD.0
            }
        }
    }
}

impl fmt::Debug for GraphicsResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GraphicsResource({:?})", self.raw)
    }
}

impl Drop for GraphicsResource {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.unregister());
        }
    }
}

#[cfg(test)]
mod tests;
