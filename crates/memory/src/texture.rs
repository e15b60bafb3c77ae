//! Texture objects.

mod options;
mod view;

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::hazard::Operation;
use curium_driver::sys::{
    CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, CUresourceViewFormat, CUresourcetype, CUtexObject,
};
use curium_driver::{Argument, ByValue, Context, Driver, Error, Result, Returned, Stream, call};

pub use self::options::{AddressMode, FilterMode, TextureFlags, TextureOptions};
pub use self::view::TextureView;
use crate::array::{ArrayHandle, MipmappedHandle, Uses};
use crate::{Array, ArrayShape, DeviceBuffer, MipmappedArray, Texel, wait};

/// The kernel parameter type of a texture: `cudaTextureObject_t` in CUDA C++. Pass a `&`[`Texture`]
/// for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct TextureObject(CUtexObject);

/// A texture object, through which kernels read an array or a buffer by coordinates, with
/// filtering. It keeps the memory alive. Kernels accept a `&Texture` for a [`TextureObject`]. A
/// graph that uses the texture keeps it alive too.
pub struct Texture<T> {
    handle: Arc<TextureHandle>,
    source: Source<T>,
}

/// A texture of the driver.
struct TextureHandle {
    raw: CUtexObject,
    context: Context,
    /// The memory that the texture reads.
    source: Arc<dyn Kept>,
    flags: TextureFlags,
    /// `true` if a view changes the format of the elements.
    has_view_format: bool,
}

/// Memory that a texture reads and keeps alive.
trait Kept: Send + Sync {
    /// Waits on the host until every access has completed.
    fn synchronize(&self) -> Result<()>;
}

/// The source of a texture.
enum Source<T> {
    Array(Arc<Array<T>>),
    Mipmapped(Arc<MipmappedArray<T>>),
    Buffer(Arc<DeviceBuffer<T>>),
    Pitch2d(Arc<DeviceBuffer<T>>),
}

/// The memory that a texture reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TextureShape {
    /// A buffer, which kernels read by integer index.
    Linear,
    /// A two-dimensional region of a buffer.
    Pitch2d,
    /// An array, with or without mipmap levels.
    Array(ArrayShape),
}

/// A two-dimensional region of a buffer (`CU_RESOURCE_TYPE_PITCH2D`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pitch2d {
    /// The number of elements per row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// The distance between the starts of consecutive rows in bytes: a multiple of the device
    /// attribute `TEXTURE_PITCH_ALIGNMENT`.
    pub pitch_bytes: usize,
}

// SAFETY: it is a plain number for the device, and `Texture` keeps the object alive.
unsafe impl ByValue for TextureObject {}

impl<T: Texel> Texture<T> {
    /// Creates a texture of an array.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the options are not compatible with the array.
    #[doc(alias = "cuTexObjectCreate")]
    #[doc(alias = "cudaCreateTextureObject")]
    pub fn from_array(array: &Arc<Array<T>>, options: &TextureOptions) -> Result<Self> {
        Self::from_array_with_view(array, options, None)
    }

    /// Creates a texture of a part of an array, or with another element format, as described by
    /// `view`.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a view without levels or layers; `CUDA_ERROR_INVALID_VALUE` if the
    /// options or the view are not compatible with the array.
    pub fn from_array_with_view(
        array: &Arc<Array<T>>,
        options: &TextureOptions,
        view: Option<&TextureView>,
    ) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
        resource.res.array.hArray = array.as_raw();
        let options = options.within(array.shape());
        Self::create(
            array.uses().stream().context(),
            &resource,
            &options,
            view,
            Source::Array(Arc::clone(array)),
        )
    }

    /// Creates a texture of all levels of a mipmapped array, or of those of a view. Requires
    /// normalized coordinates.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a view without levels or layers; `CUDA_ERROR_INVALID_VALUE` if the
    /// options or the view are not compatible with the array.
    pub fn from_mipmapped_array(
        array: &Arc<MipmappedArray<T>>,
        options: &TextureOptions,
        view: Option<&TextureView>,
    ) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
        resource.res.mipmap.hMipmappedArray = array.as_raw();
        let options = options.within(array.shape());
        Self::create(
            array.uses().stream().context(),
            &resource,
            &options,
            view,
            Source::Mipmapped(Arc::clone(array)),
        )
    }

    /// Creates a one-dimensional texture of a buffer, which kernels read by integer index.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the buffer exceeds the maximum width of the device, or is
    /// misaligned.
    pub fn from_buffer(buffer: &Arc<DeviceBuffer<T>>, options: &TextureOptions) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_LINEAR);
        resource.res.linear.devPtr = buffer.as_pointer().as_raw();
        resource.res.linear.format = T::FORMAT.component;
        resource.res.linear.numChannels = T::FORMAT.channels;
        resource.res.linear.sizeInBytes = buffer.byte_len();
        Self::create(
            buffer.stream().context(),
            &resource,
            options,
            None,
            Source::Buffer(Arc::clone(buffer)),
        )
    }

    /// Creates a two-dimensional texture of a buffer.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds; `CUDA_ERROR_INVALID_VALUE` if the pitch or
    /// the address is misaligned.
    pub fn from_pitch2d(
        buffer: &Arc<DeviceBuffer<T>>,
        plane: Pitch2d,
        options: &TextureOptions,
    ) -> Result<Self> {
        let Pitch2d {
            width,
            height,
            pitch_bytes,
        } = plane;
        let row = width
            .checked_mul(size_of::<T>())
            .filter(|row| *row <= pitch_bytes && *row != 0);
        let end = row
            .zip(height.checked_sub(1))
            .and_then(|(row, rows)| rows.checked_mul(pitch_bytes)?.checked_add(row));
        if end.is_none_or(|end| end > buffer.byte_len()) {
            let bytes = buffer.byte_len();
            let reason = format!(
                "region out of bounds ({height} rows of {width} elements, pitch {pitch_bytes} bytes, buffer of {bytes} bytes)"
            );
            return Err(Error::argument("Texture::from_pitch2d", reason));
        }
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_PITCH2D);
        resource.res.pitch2D.devPtr = buffer.as_pointer().as_raw();
        resource.res.pitch2D.format = T::FORMAT.component;
        resource.res.pitch2D.numChannels = T::FORMAT.channels;
        resource.res.pitch2D.width = width;
        resource.res.pitch2D.height = height;
        resource.res.pitch2D.pitchInBytes = pitch_bytes;
        Self::create(
            buffer.stream().context(),
            &resource,
            options,
            None,
            Source::Pitch2d(Arc::clone(buffer)),
        )
    }
}

impl<T> Texture<T> {
    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUtexObject {
        self.handle.raw
    }

    /// Returns the memory that the texture reads.
    #[must_use]
    pub fn shape(&self) -> TextureShape {
        match &self.source {
            Source::Array(array) => TextureShape::Array(array.shape()),
            Source::Mipmapped(array) => TextureShape::Array(array.shape()),
            Source::Buffer(_) => TextureShape::Linear,
            Source::Pitch2d(_) => TextureShape::Pitch2d,
        }
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> TextureFlags {
        self.handle.flags
    }

    /// Returns `true` if a [`TextureView`] changes the format of the elements, so that they are not
    /// of type `T`.
    #[must_use]
    pub fn has_view_format(&self) -> bool {
        self.handle.has_view_format
    }

    /// Returns a number that textures and surfaces of the same array have in common, or `None` for
    /// a texture of a buffer.
    #[doc(hidden)]
    #[must_use]
    pub fn array_identity(&self) -> Option<usize> {
        self.source
            .uses()
            .map(|uses| Arc::as_ptr(uses).cast::<()>().addr())
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.handle.context.driver()
    }

    /// Queries the options of the texture.
    ///
    /// CUDA: `cuTexObjectGetTextureDesc`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuTexObjectGetTextureDesc")]
    pub fn options(&self) -> Result<TextureOptions> {
        let mut raw = CUDA_TEXTURE_DESC::default();
        self.handle.context.entered(|driver| {
            // SAFETY: `raw` is a valid pointer, the texture is live, and its context is current.
            unsafe {
                call!(
                    driver,
                    cuTexObjectGetTextureDesc(&raw mut raw, self.as_raw())
                )
            }
        })?;
        Ok(TextureOptions::from_raw(&raw))
    }

    /// Destroys the texture, as [`Drop`] does, and returns any error. Waits on the host until all
    /// accesses to its memory have completed.
    ///
    /// CUDA: `cuTexObjectDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the texture together with the error if a graph uses it or the driver fails.
    #[doc(alias = "cuTexObjectDestroy")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(
                self,
                Error::argument("Texture::close", "a graph uses the texture"),
            ));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }
}

impl<T: Texel> Texture<T> {
    fn create(
        context: &Context,
        resource: &CUDA_RESOURCE_DESC,
        options: &TextureOptions,
        view: Option<&TextureView>,
        source: Source<T>,
    ) -> Result<Self> {
        let flags = options.flags;
        let has_view_format =
            view.is_some_and(|view| view.format != CUresourceViewFormat::CU_RES_VIEW_FORMAT_NONE);
        let options = options.to_raw();
        let view = view.map(TextureView::to_raw).transpose()?;
        let view = view.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let raw = context.entered(|driver| {
            let mut raw = 0;
            // SAFETY: all pointers are valid or null, the context is current, and the texture keeps
            // the resource alive.
            unsafe { call!(driver, cuTexObjectCreate(&raw mut raw, resource, &raw const options, view) creates raw) }?;
            Ok(raw)
        })?;
        let handle = TextureHandle {
            raw,
            context: context.clone(),
            source: source.kept(),
            flags,
            has_view_format,
        };
        Ok(Self {
            handle: Arc::new(handle),
            source,
        })
    }
}

impl TextureHandle {
    fn destroy(&mut self) -> Result<()> {
        // Running kernels may still use the object.
        self.source.synchronize()?;
        self.context.entered(|driver| {
            // SAFETY: the texture is live and idle, its context is current, and it is not used
            // after this call.
            unsafe { call!(driver, cuTexObjectDestroy(self.raw)) }.map_err(|error| {
                error.about_handle("texture", self.raw, self.context.device().as_raw())
            })
        })?;
        self.raw = 0;
        Ok(())
    }
}

impl Kept for (Arc<Uses>, Arc<ArrayHandle>) {
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}

impl Kept for MipmappedHandle {
    fn synchronize(&self) -> Result<()> {
        self.uses().synchronize()
    }
}

impl<T: Texel> Kept for DeviceBuffer<T> {
    fn synchronize(&self) -> Result<()> {
        self.wait_for_uses()
    }
}

impl<T: Texel> Source<T> {
    /// Returns the memory for the texture to keep alive.
    fn kept(&self) -> Arc<dyn Kept> {
        match self {
            Self::Array(array) => {
                Arc::new((Arc::clone(array.uses()), Arc::clone(array.handle()))) as _
            }
            Self::Mipmapped(array) => Arc::clone(array.handle()) as _,
            Self::Buffer(buffer) | Self::Pitch2d(buffer) => Arc::clone(buffer) as _,
        }
    }
}

impl<T> Source<T> {
    fn uses(&self) -> Option<&Arc<Uses>> {
        match self {
            Self::Array(array) => Some(array.uses()),
            Self::Mipmapped(array) => Some(array.uses()),
            Self::Buffer(_) | Self::Pitch2d(_) => None,
        }
    }
}

// SAFETY: `bind` makes the stream wait for the last write of the memory, and later writers wait for
// this access, which `launched` records. The texture is borrowed, and it is destroyed only after
// every access, including those of graphs that keep it.
unsafe impl<T> Argument<TextureObject> for &Texture<T> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<TextureObject> {
        check_known("texture", &self.handle.context, operation.stream())?;
        operation.keep(&self.handle);
        match &self.source {
            Source::Buffer(buffer) | Source::Pitch2d(buffer) => {
                let mut buffer: &DeviceBuffer<T> = buffer;
                // SAFETY: `launched` records the access, and the buffer is not used in between.
                unsafe { Argument::<&[T]>::bind(&mut buffer, operation) }?;
            }
            source => source
                .uses()
                .map_or(Ok(()), |uses| uses.before_read(operation))?,
        }
        Ok(TextureObject(self.as_raw()))
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        match &self.source {
            Source::Buffer(buffer) | Source::Pitch2d(buffer) => {
                let mut buffer: &DeviceBuffer<T> = buffer;
                // SAFETY: the buffer was bound to this stream by `bind`.
                unsafe { Argument::<&[T]>::launched(&mut buffer, operation) };
            }
            source => source
                .uses()
                .into_iter()
                .for_each(|uses| uses.after_read(operation)),
        }
    }
}

impl<T> AsRef<Driver> for Texture<T> {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl<T> fmt::Debug for Texture<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Texture({:#x} of {})",
            self.as_raw(),
            std::any::type_name::<T>()
        )
    }
}

impl Drop for TextureHandle {
    fn drop(&mut self) {
        if self.raw != 0 {
            let driver = self.context.driver().clone();
            release(|| wait::twice(&driver, || self.destroy()));
        }
    }
}

/// Returns an error if a texture or surface of `context` cannot be used by kernels on `stream`:
/// texture and surface objects belong to a context.
pub(crate) fn check_known(what: &str, context: &Context, stream: &Stream) -> Result<()> {
    const OPERATION: &str = "kernel argument";
    stream.driver().check_same(context.driver(), OPERATION)?;
    if context.shares_objects_with(stream.context()) {
        return Ok(());
    }
    let reason = format!(
        "context mismatch (the {what} belongs to {context:?}, {stream:?} to {:?})",
        stream.context()
    );
    Err(Error::argument(OPERATION, reason))
}

/// Returns an empty resource descriptor of a type.
pub(crate) fn empty(kind: CUresourcetype) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC {
        resType: kind,
        ..CUDA_RESOURCE_DESC::default()
    }
}
