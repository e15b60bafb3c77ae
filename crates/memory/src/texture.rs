//! Textures: ways to read arrays and memory, by coordinates and with filters.

mod options;
mod view;

use std::fmt;
use std::sync::Arc;

use curium_driver::hazard::AccessGuard;
use curium_driver::sys::{CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, CUresourcetype, CUtexObject};
use curium_driver::{Argument, ByValue, Context, Driver, Error, Result, Returned, Stream, call, release};

pub use self::options::{AddressMode, FilterMode, TextureFlags, TextureOptions};
pub use self::view::TextureView;
use crate::array::{ArrayHandle, MipmappedHandle, Uses};
use crate::{Array, DeviceBuffer, MipmappedArray, Texel};

/// What a kernel takes for a texture: `cudaTextureObject_t` in CUDA C++. Pass a `&`[`Texture`] for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct TextureObject(CUtexObject);

/// A way to read an array or a buffer, which it keeps alive. Kernels take a `&Texture` for a [`TextureObject`]. The graph of a capture that
/// uses it keeps it, too.
pub struct Texture<T> {
    handle: Arc<TextureHandle>,
    source: Source<T>,
}

/// The driver's texture.
struct TextureHandle {
    raw: CUtexObject,
    context: Context,
    /// What it is of.
    source: Arc<dyn Kept>,
}

/// What the driver's texture is of.
trait Kept: Send + Sync {
    /// Waits on the host until every use of it is done.
    fn synchronize(&self) -> Result<()>;
}

/// What is read.
enum Source<T> {
    Array(Arc<Array<T>>),
    Mipmapped(Arc<MipmappedArray<T>>),
    Buffer(Arc<DeviceBuffer<T>>),
}

/// Rows of a buffer as a plane that a texture reads.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TexturePlane {
    /// The elements of a row.
    pub width: usize,
    /// The rows.
    pub height: usize,
    /// The bytes from the beginning of one row to that of the next: a multiple of the device's
    /// `CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`.
    pub pitch_bytes: usize,
}

// SAFETY: it is a number to the device, and `Texture` gives it out with what it stands for.
unsafe impl ByValue for TextureObject {}

impl<T: Texel> Texture<T> {
    /// A texture of an array.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for options that the array cannot be read with.
    #[doc(alias = "cuTexObjectCreate")]
    #[inline]
    pub fn of_array(array: &Arc<Array<T>>, options: &TextureOptions) -> Result<Self> {
        Self::of_array_view(array, options, None)
    }

    /// A texture of an array that is seen as another format, or of some of its layers.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a view of no level or no layer; `CUDA_ERROR_INVALID_VALUE` for options or a view that the array cannot be read
    /// with.
    #[inline]
    pub fn of_array_view(array: &Arc<Array<T>>, options: &TextureOptions, view: Option<&TextureView>) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
        resource.res.array.hArray = array.as_raw();
        let options = options.within(array.shape());
        Self::create(array.stream().context(), &resource, &options, view, Source::Array(Arc::clone(array)))
    }

    /// A texture of all levels of a mipmapped array, or of those of a view.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a view of no level or no layer; `CUDA_ERROR_INVALID_VALUE` for options or a view that the array cannot be read
    /// with: it wants normalised coordinates.
    #[inline]
    pub fn of_mipmapped(
        array: &Arc<MipmappedArray<T>>,
        options: &TextureOptions,
        view: Option<&TextureView>,
    ) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
        resource.res.mipmap.hMipmappedArray = array.as_raw();
        let options = options.within(array.shape());
        Self::create(array.stream().context(), &resource, &options, view, Source::Mipmapped(Arc::clone(array)))
    }

    /// A texture of a buffer, read by index.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a buffer that is longer than the device allows, or not aligned for textures.
    #[inline]
    pub fn of_buffer(buffer: &Arc<DeviceBuffer<T>>, options: &TextureOptions) -> Result<Self> {
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_LINEAR);
        resource.res.linear.devPtr = buffer.as_pointer().as_raw();
        resource.res.linear.format = T::FORMAT.component;
        resource.res.linear.numChannels = T::FORMAT.channels;
        resource.res.linear.sizeInBytes = buffer.byte_len();
        Self::create(buffer.stream().context(), &resource, options, None, Source::Buffer(Arc::clone(buffer)))
    }

    /// A texture of rows of a buffer, read as a plane.
    ///
    /// CUDA: `cuTexObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if the plane is not in the buffer; `CUDA_ERROR_INVALID_VALUE` for a pitch or an address that is not aligned for
    /// textures.
    #[inline]
    pub fn of_plane(buffer: &Arc<DeviceBuffer<T>>, plane: TexturePlane, options: &TextureOptions) -> Result<Self> {
        let TexturePlane { width, height, pitch_bytes } = plane;
        let row = width.checked_mul(size_of::<T>()).filter(|row| *row <= pitch_bytes && *row != 0);
        let end =
            row.zip(height.checked_sub(1)).and_then(|(row, rows)| rows.checked_mul(pitch_bytes)?.checked_add(row));
        if end.is_none_or(|end| end > buffer.byte_len()) {
            let bytes = buffer.byte_len();
            let reason =
                format!("{height} rows of {width} elements, {pitch_bytes} bytes apart, in a buffer of {bytes} bytes");
            return Err(Error::argument("Texture::of_plane", reason));
        }
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_PITCH2D);
        resource.res.pitch2D.devPtr = buffer.as_pointer().as_raw();
        resource.res.pitch2D.format = T::FORMAT.component;
        resource.res.pitch2D.numChannels = T::FORMAT.channels;
        resource.res.pitch2D.width = width;
        resource.res.pitch2D.height = height;
        resource.res.pitch2D.pitchInBytes = pitch_bytes;
        Self::create(buffer.stream().context(), &resource, options, None, Source::Buffer(Arc::clone(buffer)))
    }
}

impl<T> Texture<T> {
    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUtexObject {
        self.handle.raw
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.handle.context.driver()
    }

    /// How the texture is read, as the driver knows it.
    ///
    /// CUDA: `cuTexObjectGetTextureDesc`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuTexObjectGetTextureDesc")]
    #[inline]
    pub fn options(&self) -> Result<TextureOptions> {
        let mut raw = CUDA_TEXTURE_DESC::default();
        self.handle.context.entered(|driver| {
            // SAFETY: `raw` is a valid place, the texture is live, and its context is current.
            unsafe { call!(driver, cuTexObjectGetTextureDesc(&raw mut raw, self.as_raw())) }
        })?;
        Ok(TextureOptions::from_raw(&raw))
    }

    /// Ends the texture, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for every use of what it is of.
    ///
    /// CUDA: `cuTexObjectDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the texture back if a graph uses it, or if the driver refuses.
    #[doc(alias = "cuTexObjectDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(self, Error::argument("Texture::close", "a graph uses the texture")));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }
}

impl<T: Texel> Texture<T> {
    #[inline]
    fn create(
        context: &Context,
        resource: &CUDA_RESOURCE_DESC,
        options: &TextureOptions,
        view: Option<&TextureView>,
        source: Source<T>,
    ) -> Result<Self> {
        let (options, view) = (options.to_raw(), view.map(TextureView::to_raw).transpose()?);
        let view = view.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let raw = context.entered(|driver| {
            let mut raw = 0;
            // SAFETY: all places are valid or null, the context is current, and the resource is live, which the texture keeps.
            unsafe { call!(driver, cuTexObjectCreate(&raw mut raw, resource, &raw const options, view) creates raw) }?;
            Ok(raw)
        })?;
        let handle = TextureHandle { raw, context: context.clone(), source: source.kept() };
        Ok(Self { handle: Arc::new(handle), source })
    }
}

impl TextureHandle {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        // Kernels that are running may still look at the texture.
        self.source.synchronize()?;
        self.context.entered(|driver| {
            // SAFETY: the texture is live and idle, its context is current, and it is forgotten once it is destroyed.
            unsafe { call!(driver, cuTexObjectDestroy(self.raw)) }
                .map_err(|error| error.about_handle("texture", self.raw, self.context.device().as_raw()))
        })?;
        self.raw = 0;
        Ok(())
    }
}

impl Kept for (Arc<Uses>, Arc<ArrayHandle>) {
    #[inline]
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}

impl Kept for MipmappedHandle {
    #[inline]
    fn synchronize(&self) -> Result<()> {
        self.uses().synchronize()
    }
}

impl<T: Texel> Kept for DeviceBuffer<T> {
    #[inline]
    fn synchronize(&self) -> Result<()> {
        self.wait_for_uses()
    }
}

impl<T: Texel> Source<T> {
    /// What the driver's texture needs.
    #[inline]
    fn kept(&self) -> Arc<dyn Kept> {
        match self {
            Self::Array(array) => Arc::new((Arc::clone(array.uses()), Arc::clone(array.handle()))) as _,
            Self::Mipmapped(array) => Arc::clone(array.handle()) as _,
            Self::Buffer(buffer) => Arc::clone(buffer) as _,
        }
    }
}

impl<T> Source<T> {
    #[inline]
    fn uses(&self) -> Option<&Arc<Uses>> {
        match self {
            Self::Array(array) => Some(array.uses()),
            Self::Mipmapped(array) => Some(array.uses()),
            Self::Buffer(_) => None,
        }
    }
}

// SAFETY: `bind` has the stream wait for the last write of what the texture is of, and a later writer waits for this use, which
// `launched` notes. The texture is borrowed, and ends only when every use is done, those of graphs that keep it among them.
unsafe impl<T> Argument<TextureObject> for &Texture<T> {
    #[inline]
    unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> Result<TextureObject> {
        expect_known("texture", &self.handle.context, guard.stream())?;
        guard.keep(&self.handle);
        match &self.source {
            Source::Buffer(buffer) => {
                let mut buffer: &DeviceBuffer<T> = buffer;
                // SAFETY: `launched` notes the use, and nothing is done with the buffer in between.
                unsafe { Argument::<&[T]>::bind(&mut buffer, guard) }?;
            }
            source => source.uses().map_or(Ok(()), |uses| uses.before_read(guard))?,
        }
        Ok(TextureObject(self.as_raw()))
    }

    #[inline]
    unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        match &self.source {
            Source::Buffer(buffer) => {
                let mut buffer: &DeviceBuffer<T> = buffer;
                // SAFETY: the buffer was bound to this stream by `bind`.
                unsafe { Argument::<&[T]>::launched(&mut buffer, guard) };
            }
            source => source.uses().into_iter().for_each(|uses| uses.after_read(guard)),
        }
    }
}

impl<T> AsRef<Driver> for Texture<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl<T> fmt::Debug for Texture<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Texture({:#x} of {})", self.as_raw(), std::any::type_name::<T>())
    }
}

impl Drop for TextureHandle {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            release(|| self.destroy());
        }
    }
}

/// An error unless the name of a texture or a surface of `context` means the same to kernels on `stream`: each context has a table of its
/// own.
#[inline]
pub(crate) fn expect_known(what: &str, context: &Context, stream: &Stream) -> Result<()> {
    const OPERATION: &str = "kernel argument";
    stream.driver().expect_same(context.driver(), OPERATION)?;
    if context.shares_objects_with(stream.context()) {
        return Ok(());
    }
    let reason =
        format!("the {what} is of {context:?}, and {stream:?} of {:?}, which does not know it", stream.context());
    Err(Error::argument(OPERATION, reason))
}

/// The description of a resource of a type, to be filled in.
#[inline]
pub(crate) fn empty(kind: CUresourcetype) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC { resType: kind, ..CUDA_RESOURCE_DESC::default() }
}
