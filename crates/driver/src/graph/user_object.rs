//! User objects, which graphs keep alive.

use std::fmt;

use curium_sys::CUuserObject;

use super::Graph;
use super::object_reference::ObjectReference;
use super::resource::Resource;
use super::tree::State;
use crate::base::release::release;
use crate::call;
use crate::{Driver, Error, Result};

/// A value that graphs can keep alive. It is dropped when this handle and its clones, every graph
/// that retains it, every executable graph instantiated from such a graph, and their launches are
/// gone.
///
/// It may be dropped on a driver thread. **It must not own objects of this crate**, since driver
/// calls fail there.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use std::sync::Arc;
///
/// use curium_driver::{Graph, UserObject};
///
/// let context = driver.device(0)?.primary_context()?;
/// let table = Arc::new([1, 2, 3]);
/// let mut graph = Graph::new(&context)?;
/// graph.retain_object(&UserObject::new(&driver, Arc::clone(&table))?)?;
/// assert_eq!(Arc::strong_count(&table), 2, "the graph keeps it");
/// drop(graph);
/// # while Arc::strong_count(&table) > 1 {}
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UserObject {
    reference: ObjectReference,
}

impl UserObject {
    /// Transfers ownership of `value` to the driver, which drops it when its last reference is
    /// released.
    ///
    /// CUDA: `cuUserObjectCreate`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver. The value is then dropped.
    #[doc(alias = "cuUserObjectCreate")]
    #[doc(alias = "cudaUserObjectCreate")]
    pub fn new<T: Send + 'static>(driver: &Driver, value: T) -> Result<Self> {
        Ok(Self {
            reference: ObjectReference::new(driver, Box::new(value))?.0,
        })
    }

    /// Returns the raw handle. It is valid for as long as this value exists.
    #[must_use]
    pub fn as_raw(&self) -> CUuserObject {
        self.reference.as_raw()
    }

    /// Adds `count` references to the object, for C code that keeps it. The caller must release
    /// them.
    ///
    /// CUDA: `cuUserObjectRetain`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `count` is 0.
    #[doc(alias = "cuUserObjectRetain")]
    #[doc(alias = "cudaUserObjectRetain")]
    pub fn retain_raw(&self, count: u32) -> Result<CUuserObject> {
        // SAFETY: the object is live.
        unsafe {
            call!(
                self.reference.driver(),
                cuUserObjectRetain(self.as_raw(), count)
            )
        }?;
        Ok(self.as_raw())
    }

    /// Releases `count` references that [`UserObject::retain_raw`] added.
    ///
    /// CUDA: `cuUserObjectRelease`.
    ///
    /// # Safety
    ///
    /// This many references were added and not released, and no code relies on them.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `count` is 0.
    #[doc(alias = "cuUserObjectRelease")]
    #[doc(alias = "cudaUserObjectRelease")]
    pub unsafe fn release_raw(&self, count: u32) -> Result<()> {
        // SAFETY: the object is live, and the caller is responsible for the references.
        unsafe {
            call!(
                self.reference.driver(),
                cuUserObjectRelease(self.as_raw(), count)
            )
        }
    }
}

impl Graph {
    /// Makes the graph, its clones, and executable graphs instantiated from now on keep the object
    /// alive.
    ///
    /// CUDA: `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the object belongs to another driver.
    #[doc(alias = "cuGraphRetainUserObject")]
    #[doc(alias = "cudaGraphRetainUserObject")]
    pub fn retain_object(&mut self, object: &UserObject) -> Result<()> {
        let operation = "Graph::retain_object";
        self.driver()
            .check_same(object.reference.driver(), operation)?;
        let mut state = self.tree.lock()?;
        self.retain_reference(&state, operation, &object.reference)?;
        *state.user_object_count(self.number, object.as_raw().addr()) += 1;
        Ok(())
    }

    /// Undoes one [`Graph::retain_object`] of this graph or of the graph that it was cloned from.
    /// Existing clones and executable graphs keep the object.
    ///
    /// CUDA: `cuGraphReleaseUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the graph does not retain the object, or if the object belongs to
    /// another driver.
    #[doc(alias = "cuGraphReleaseUserObject")]
    #[doc(alias = "cudaGraphReleaseUserObject")]
    pub fn release_object(&mut self, object: &UserObject) -> Result<()> {
        let operation = "Graph::release_object";
        self.driver()
            .check_same(object.reference.driver(), operation)?;
        let mut state = self.tree.lock()?;
        if *state.user_object_count(self.number, object.as_raw().addr()) == 0 {
            // The driver would succeed and release a reference that other code relies on.
            return Err(Error::argument(
                operation,
                format!("the graph does not retain {object:?}"),
            ));
        }
        self.release_reference(&state, operation, &object.reference)?;
        *state.user_object_count(self.number, object.as_raw().addr()) -= 1;
        Ok(())
    }

    /// Retains these objects and returns the graph.
    pub(super) fn retaining(
        self,
        operation: &'static str,
        objects: &[ObjectReference],
    ) -> Result<Self> {
        let retained = self.retain_references(&*self.tree.lock()?, operation, objects);
        retained.map(|()| self)
    }

    /// Retains all of these objects in the graph, or none.
    pub(super) fn retain_references(
        &self,
        state: &State,
        operation: &'static str,
        objects: &[ObjectReference],
    ) -> Result<()> {
        let mut retained = 0;
        let all = objects.iter().try_for_each(|object| {
            self.retain_reference(state, operation, object)?;
            retained += 1;
            Ok(())
        });
        if all.is_err() {
            let retained = objects.iter().take(retained);
            retained
                .for_each(|object| release(|| self.release_reference(state, operation, object)));
        }
        all
    }

    pub(super) fn retain_reference(
        &self,
        state: &State,
        operation: &'static str,
        object: &ObjectReference,
    ) -> Result<()> {
        let graph = state.graph(operation, self.number)?;
        let no_flags = 0;
        // SAFETY: the graph and the object are live and belong to this driver; the lock gives this
        // thread exclusive access to the graph.
        unsafe {
            call!(
                self.driver(),
                cuGraphRetainUserObject(graph, object.as_raw(), 1, no_flags)
            )
        }
    }

    pub(super) fn release_reference(
        &self,
        state: &State,
        operation: &'static str,
        object: &ObjectReference,
    ) -> Result<()> {
        let graph = state.graph(operation, self.number)?;
        // SAFETY: the graph and the object are live and belong to this driver; the lock gives this
        // thread exclusive access to the graph.
        unsafe {
            call!(
                self.driver(),
                cuGraphReleaseUserObject(graph, object.as_raw(), 1)
            )
        }
    }
}

impl Graph {
    /// Releases the objects of removed or updated nodes.
    pub(super) fn release_objects(
        &mut self,
        operation: &'static str,
        unused: &[Resource],
    ) -> Result<()> {
        for resource in unused {
            if let Resource::Object(object) = resource {
                self.release_reference(&*self.tree.lock()?, operation, object)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for UserObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserObject({:?})", self.reference)
    }
}
