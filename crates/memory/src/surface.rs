//! Surfaces: ways to read and write arrays by coordinates.

use std::fmt;
use std::sync::Arc;

use curium_driver::hazard::AccessGuard;
use curium_driver::sys::{CUresourcetype, CUsurfObject};
use curium_driver::{Argument, ByValue, Driver, Error, Result, Returned, call, release};

use crate::array::{ArrayHandle, Uses};
use crate::texture::{empty, expect_known};
use crate::{Array, ArrayFlags};

/// What a kernel takes for a surface: `cudaSurfaceObject_t` in CUDA C++. Pass a `&`[`Surface`] for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct SurfaceObject(CUsurfObject);

/// A way to read and write an array, which it keeps alive. Kernels take a `&Surface` for a [`SurfaceObject`], which counts as a write. The
/// graph of a capture that uses it keeps it, too.
pub struct Surface<T> {
    handle: Arc<SurfaceHandle>,
    array: Arc<Array<T>>,
}

/// The driver's surface.
struct SurfaceHandle {
    raw: CUsurfObject,
    uses: Arc<Uses>,
    /// What it is of.
    _array: Arc<ArrayHandle>,
}

// SAFETY: it is a number to the device, and `Surface` gives it out with what it stands for.
unsafe impl ByValue for SurfaceObject {}

impl<T> Surface<T> {
    /// A surface of an array that was made with [`ArrayFlags::SURFACE`].
    ///
    /// CUDA: `cuSurfObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for an array that was made without that flag.
    #[doc(alias = "cuSurfObjectCreate")]
    #[inline]
    pub fn new(array: &Arc<Array<T>>) -> Result<Self> {
        if !array.flags().contains(ArrayFlags::SURFACE) {
            return Err(Error::argument("Surface::new", format!("{array:?} was made without ArrayFlags::SURFACE")));
        }
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
        resource.res.array.hArray = array.as_raw();
        let raw = array.stream().context().entered(|driver| {
            let mut raw = 0;
            // SAFETY: both places are valid, the context is current, and the array is live, which the surface keeps.
            unsafe { call!(driver, cuSurfObjectCreate(&raw mut raw, &raw const resource) creates raw) }?;
            Ok(raw)
        })?;
        let handle = SurfaceHandle { raw, uses: Arc::clone(array.uses()), _array: Arc::clone(array.handle()) };
        Ok(Self { handle: Arc::new(handle), array: Arc::clone(array) })
    }

    /// The array.
    #[must_use]
    #[inline]
    pub fn array(&self) -> &Arc<Array<T>> {
        &self.array
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUsurfObject {
        self.handle.raw
    }

    /// Ends the surface, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for every use of its array.
    ///
    /// CUDA: `cuSurfObjectDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the surface back if a graph uses it, or if the driver refuses.
    #[doc(alias = "cuSurfObjectDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(self, Error::argument("Surface::close", "a graph uses the surface")));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }
}

impl SurfaceHandle {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        // Kernels that are running may still look at the surface.
        self.uses.synchronize()?;
        self.uses.stream().context().entered(|driver| {
            // SAFETY: the surface is live and idle, its context is current, and it is forgotten once it is destroyed.
            unsafe { call!(driver, cuSurfObjectDestroy(self.raw)) }
                .map_err(|error| error.about_handle("surface", self.raw, self.uses.stream().device().as_raw()))
        })?;
        self.raw = 0;
        Ok(())
    }
}

// SAFETY: `bind` has the stream wait for every use of the array, and later uses wait for this one, which `launched` notes. The surface is
// borrowed, and ends only when every use is done, those of graphs that keep it among them.
unsafe impl<T> Argument<SurfaceObject> for &Surface<T> {
    #[inline]
    unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> Result<SurfaceObject> {
        expect_known("surface", self.array.stream().context(), guard.stream())?;
        guard.keep(&self.handle);
        self.array.uses().before_write(guard)?;
        Ok(SurfaceObject(self.as_raw()))
    }

    #[inline]
    unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        self.array.uses().after_write(guard);
    }
}

impl<T> AsRef<Driver> for Surface<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.array.driver()
    }
}

impl<T> fmt::Debug for Surface<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Surface({:#x} of {:?})", self.as_raw(), self.array)
    }
}

impl Drop for SurfaceHandle {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            release(|| self.destroy());
        }
    }
}
