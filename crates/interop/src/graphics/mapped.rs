//! Mapped graphics resources.

use std::fmt;

use curium_driver::extend::release;
use curium_driver::sys::{CUarray, CUeglFrame, CUgraphicsResource, CUmipmappedArray};
use curium_driver::{Context, DevicePointer, Error, Result, Returned, Stream, call};

use super::GraphicsResource;

/// Graphics resources mapped for CUDA. Dropping it unmaps them in stream order.
///
/// Its pointers and arrays are valid until then. Enqueue the work that uses them on the same
/// stream, or wait for it.
#[must_use = "the resources are unmapped when this is dropped"]
pub struct MappedGraphics<'a> {
    resources: &'a mut [GraphicsResource],
    stream: Stream,
    is_mapped: bool,
}

impl GraphicsResource {
    /// Maps `resources` for work on `stream`, which is ordered after graphics calls issued before.
    ///
    /// CUDA: `cuGraphicsMapResources`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another driver; `CUDA_ERROR_ALREADY_MAPPED` if a
    /// resource is mapped.
    #[doc(alias = "cuGraphicsMapResources")]
    #[doc(alias = "cudaGraphicsMapResources")]
    pub fn map<'a>(resources: &'a mut [Self], stream: &Stream) -> Result<MappedGraphics<'a>> {
        for resource in &*resources {
            stream
                .driver()
                .check_same(resource.context().driver(), "GraphicsResource::map")?;
        }
        let operation = stream.enqueue_uncaptured("GraphicsResource::map")?;
        let mut raw = raw_handles(resources);
        let count = raw.len() as u32;
        let first = raw.as_mut_ptr();
        stream.context().entered(|driver| {
            // SAFETY: `first` points to `count` live resources, and the stream and its current
            // context are live.
            unsafe {
                call!(
                    driver,
                    cuGraphicsMapResources(count, first, operation.raw_stream())
                )
            }
        })?;
        Ok(MappedGraphics {
            resources,
            stream: stream.clone(),
            is_mapped: true,
        })
    }
}

impl MappedGraphics<'_> {
    /// Returns the address of the buffer at `index`, and its size in bytes.
    ///
    /// CUDA: `cuGraphicsResourceGetMappedPointer_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of range; `CUDA_ERROR_NOT_MAPPED_AS_POINTER` for an
    /// image.
    #[doc(alias = "cuGraphicsResourceGetMappedPointer")]
    pub fn pointer(&self, index: usize) -> Result<(DevicePointer<u8>, usize)> {
        let resource = self.raw("MappedGraphics::pointer", index)?;
        let mut address = 0;
        let mut bytes = 0;
        self.stream.context().entered(|driver| {
            // SAFETY: both pointers are valid for writes, and the resource is mapped.
            unsafe {
                call!(
                    driver,
                    cuGraphicsResourceGetMappedPointer_v2(
                        &raw mut address,
                        &raw mut bytes,
                        resource
                    )
                )
            }
        })?;
        Ok((DevicePointer::from_raw(address), bytes))
    }

    /// Returns the array of one layer and mipmap level of the image at `index`.
    ///
    /// CUDA: `cuGraphicsSubResourceGetMappedArray`.
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of range; `CUDA_ERROR_NOT_MAPPED_AS_ARRAY` for a buffer.
    #[doc(alias = "cuGraphicsSubResourceGetMappedArray")]
    pub fn array(&self, index: usize, layer: u32, level: u32) -> Result<CUarray> {
        let resource = self.raw("MappedGraphics::array", index)?;
        let mut array = std::ptr::null_mut();
        self.stream.context().entered(|driver| {
            // SAFETY: `array` is valid for writes, and the resource is mapped.
            unsafe {
                call!(
                    driver,
                    cuGraphicsSubResourceGetMappedArray(&raw mut array, resource, layer, level)
                )
            }
        })?;
        Ok(array)
    }

    /// Returns the mipmapped array of the image at `index`.
    ///
    /// CUDA: `cuGraphicsResourceGetMappedMipmappedArray`.
    ///
    /// # Errors
    ///
    /// As for [`MappedGraphics::array`].
    #[doc(alias = "cuGraphicsResourceGetMappedMipmappedArray")]
    pub fn mipmapped_array(&self, index: usize) -> Result<CUmipmappedArray> {
        let resource = self.raw("MappedGraphics::mipmapped_array", index)?;
        let mut array = std::ptr::null_mut();
        self.stream.context().entered(|driver| {
            // SAFETY: `array` is valid for writes, and the resource is mapped.
            unsafe {
                call!(
                    driver,
                    cuGraphicsResourceGetMappedMipmappedArray(&raw mut array, resource)
                )
            }
        })?;
        Ok(array)
    }

    /// Unmaps the resources and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuGraphicsUnmapResources`.
    ///
    /// # Errors
    ///
    /// Returns the mapping to the caller if the driver call fails.
    #[doc(alias = "cuGraphicsUnmapResources")]
    #[doc(alias = "cudaGraphicsUnmapResources")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unmap().map_err(|error| Returned::new(self, error))
    }

    fn raw(&self, operation: &'static str, index: usize) -> Result<CUgraphicsResource> {
        let count = self.resources.len();
        let resource = self.resources.get(index).ok_or_else(|| {
            Error::argument(
                operation,
                format!("resource index out of bounds ({index} of {count})"),
            )
        })?;
        Ok(resource.as_raw())
    }

    fn unmap(&mut self) -> Result<()> {
        let mut raw = raw_handles(self.resources);
        let count = raw.len() as u32;
        let first = raw.as_mut_ptr();
        let operation = self.stream.enqueue_release("MappedGraphics::close")?;
        self.stream.context().entered(|driver| {
            // SAFETY: `first` points to `count` mapped resources, and the stream and its current
            // context are live.
            unsafe {
                call!(
                    driver,
                    cuGraphicsUnmapResources(count, first, operation.raw_stream())
                )
            }
        })?;
        self.is_mapped = false;
        Ok(())
    }
}

impl GraphicsResource {
    /// Returns a frame of an EGL image, which is mapped for as long as it is registered.
    ///
    /// CUDA: `cuGraphicsResourceGetMappedEglFrame`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the resource is not an EGL image.
    #[doc(alias = "cuGraphicsResourceGetMappedEglFrame")]
    pub fn egl_frame(&self, index: u32, level: u32) -> Result<CUeglFrame> {
        mapped_egl_frame(self.context(), self.as_raw(), index, level)
    }
}

/// Returns a frame of a live EGL resource in `context`.
pub(super) fn mapped_egl_frame(
    context: &Context,
    resource: CUgraphicsResource,
    index: u32,
    level: u32,
) -> Result<CUeglFrame> {
    let mut frame = CUeglFrame::default();
    context.entered(|driver| {
        // SAFETY: `frame` is valid for writes, and the resource is live.
        unsafe {
            call!(
                driver,
                cuGraphicsResourceGetMappedEglFrame(&raw mut frame, resource, index, level)
            )
        }
    })?;
    Ok(frame)
}

fn raw_handles(resources: &[GraphicsResource]) -> Vec<CUgraphicsResource> {
    resources.iter().map(GraphicsResource::as_raw).collect()
}

impl fmt::Debug for MappedGraphics<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "MappedGraphics({:?} on {:?})",
            self.resources, self.stream
        )
    }
}

impl Drop for MappedGraphics<'_> {
    fn drop(&mut self) {
        if self.is_mapped {
            release(|| self.unmap());
        }
    }
}
