//! Surface objects.

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::hazard::Operation;
use curium_driver::sys::{CUresourcetype, CUsurfObject};
use curium_driver::{Argument, ByValue, Driver, Error, Result, Returned, call};

use crate::array::{ArrayHandle, Uses};
use crate::texture::{check_known, empty};
use crate::{Array, ArrayFlags, wait};

/// The kernel parameter type of a surface: `cudaSurfaceObject_t` in CUDA C++. Pass a `&`[`Surface`]
/// for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct SurfaceObject(CUsurfObject);

/// A surface object, through which kernels read and write an array by coordinates. It keeps the
/// array alive. Kernels accept a `&Surface` for a [`SurfaceObject`]; the access counts as a write.
/// A graph that uses the surface keeps it alive too.
pub struct Surface<T> {
    handle: Arc<SurfaceHandle>,
    array: Arc<Array<T>>,
}

/// A surface of the driver.
struct SurfaceHandle {
    raw: CUsurfObject,
    uses: Arc<Uses>,
    /// The array of the surface.
    _array: Arc<ArrayHandle>,
}

// SAFETY: it is a plain number for the device, and `Surface` keeps the object alive.
unsafe impl ByValue for SurfaceObject {}

impl<T> Surface<T> {
    /// Creates a surface of an array that has the flag [`ArrayFlags::SURFACE`].
    ///
    /// CUDA: `cuSurfObjectCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if the array lacks that flag.
    #[doc(alias = "cuSurfObjectCreate")]
    pub fn new(array: &Arc<Array<T>>) -> Result<Self> {
        if !array.flags().contains(ArrayFlags::SURFACE) {
            return Err(Error::argument(
                "Surface::new",
                format!("missing flag `ArrayFlags::SURFACE` ({array:?})"),
            ));
        }
        let mut resource = empty(CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
        resource.res.array.hArray = array.as_raw();
        let raw = array.uses().stream().context().entered(|driver| {
            let mut raw = 0;
            // SAFETY: both pointers are valid, the context is current, and the surface keeps the
            // array alive.
            unsafe {
                call!(driver, cuSurfObjectCreate(&raw mut raw, &raw const resource) creates raw)
            }?;
            Ok(raw)
        })?;
        let handle = SurfaceHandle {
            raw,
            uses: Arc::clone(array.uses()),
            _array: Arc::clone(array.handle()),
        };
        Ok(Self {
            handle: Arc::new(handle),
            array: Arc::clone(array),
        })
    }

    /// Returns the array.
    #[must_use]
    pub fn array(&self) -> &Arc<Array<T>> {
        &self.array
    }

    /// Returns a number that textures and surfaces of the same array have in common.
    #[doc(hidden)]
    #[must_use]
    pub fn array_identity(&self) -> usize {
        Arc::as_ptr(self.array.uses()).cast::<()>().addr()
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUsurfObject {
        self.handle.raw
    }

    /// Destroys the surface, as [`Drop`] does, and returns any error. Waits on the host until all
    /// accesses to its array have completed.
    ///
    /// CUDA: `cuSurfObjectDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the surface together with the error if a graph uses it or the driver fails.
    #[doc(alias = "cuSurfObjectDestroy")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(
                self,
                Error::argument("Surface::close", "a graph uses the surface"),
            ));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }
}

impl SurfaceHandle {
    fn destroy(&mut self) -> Result<()> {
        // Running kernels may still use the object.
        self.uses.synchronize()?;
        self.uses.stream().context().entered(|driver| {
            // SAFETY: the surface is live and idle, its context is current, and it is not used
            // after this call.
            unsafe { call!(driver, cuSurfObjectDestroy(self.raw)) }.map_err(|error| {
                error.about_handle("surface", self.raw, self.uses.stream().device().as_raw())
            })
        })?;
        self.raw = 0;
        Ok(())
    }
}

// SAFETY: `bind` makes the stream wait for every access to the array, and later accesses wait for
// this one, which `launched` records. The surface is borrowed, and it is destroyed only after every
// access, including those of graphs that keep it.
unsafe impl<T> Argument<SurfaceObject> for &Surface<T> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<SurfaceObject> {
        check_known(
            "surface",
            self.array.uses().stream().context(),
            operation.stream(),
        )?;
        operation.keep(&self.handle);
        self.array.uses().before_write(operation)?;
        Ok(SurfaceObject(self.as_raw()))
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.array.uses().after_write(operation);
    }
}

impl<T> AsRef<Driver> for Surface<T> {
    fn as_ref(&self) -> &Driver {
        self.array.driver()
    }
}

impl<T> fmt::Debug for Surface<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Surface({:#x} of {:?})",
            self.as_raw(),
            self.array
        )
    }
}

impl Drop for SurfaceHandle {
    fn drop(&mut self) {
        if self.raw != 0 {
            let driver = self.uses.stream().driver().clone();
            release(|| wait::twice(&driver, || self.destroy()));
        }
    }
}
