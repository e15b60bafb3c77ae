//! User objects, which graphs keep alive.

use std::fmt;

use curium_sys::CUuserObject;

use super::Graph;
use super::kept::Resource;
use super::object_reference::ObjectReference;
use super::tree::State;
use crate::base::release::release;
use crate::call;
use crate::{Driver, Error, Result};

/// A value that graphs can keep: it is dropped when this handle and its clones are gone, and with them every graph that retains it,
/// every executable made of such a graph, and every launch of those.
///
/// A thread of the driver may drop it. **It must not own anything of this crate**, since no call of the driver works there.
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
    /// Hands `value` to the driver, which drops it when nobody needs it any more.
    ///
    /// CUDA: `cuUserObjectCreate`.
    ///
    /// # Errors
    ///
    /// An error of the driver. The value is dropped then.
    #[doc(alias = "cuUserObjectCreate")]
    #[inline]
    pub fn new<T: Send + 'static>(driver: &Driver, value: T) -> Result<Self> {
        Ok(Self { reference: ObjectReference::new(driver, Box::new(value))?.0 })
    }

    /// Returns the driver's handle of this object. It is valid for as long as this value exists.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUuserObject {
        self.reference.as_raw()
    }

    /// Adds `count` references to the object, which are the caller's to release: what code in C needs that keeps it.
    ///
    /// CUDA: `cuUserObjectRetain`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `count` is 0.
    #[doc(alias = "cuUserObjectRetain")]
    #[inline]
    pub fn retain_raw(&self, count: u32) -> Result<CUuserObject> {
        // SAFETY: the object is live.
        unsafe { call!(self.reference.driver(), cuUserObjectRetain(self.as_raw(), count)) }?;
        Ok(self.as_raw())
    }

    /// Takes away `count` references that [`UserObject::retain_raw`] added.
    ///
    /// CUDA: `cuUserObjectRelease`.
    ///
    /// # Safety
    ///
    /// As many references were added and not taken away, and nobody relies on them.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `count` is 0.
    #[doc(alias = "cuUserObjectRelease")]
    #[inline]
    pub unsafe fn release_raw(&self, count: u32) -> Result<()> {
        // SAFETY: the object is live, and the caller is responsible for the references.
        unsafe { call!(self.reference.driver(), cuUserObjectRelease(self.as_raw(), count)) }
    }
}

impl Graph {
    /// Makes the graph, its clones, and what is instantiated of them from now on keep the object alive.
    ///
    /// CUDA: `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the object is of another driver.
    #[doc(alias = "cuGraphRetainUserObject")]
    #[inline]
    pub fn retain_object(&mut self, object: &UserObject) -> Result<()> {
        let operation = "Graph::retain_object";
        self.driver().expect_same(object.reference.driver(), operation)?;
        let mut state = self.tree.lock()?;
        self.retain_reference(&state, operation, &object.reference)?;
        *state.retained(self.number, object.as_raw().addr()) += 1;
        Ok(())
    }

    /// Takes back one [`Graph::retain_object`] of this graph, or of the one that it is a clone of. Clones and executables that were made
    /// before keep the object.
    ///
    /// CUDA: `cuGraphReleaseUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the graph does not retain the object, or if that is of another driver.
    #[doc(alias = "cuGraphReleaseUserObject")]
    #[inline]
    pub fn release_object(&mut self, object: &UserObject) -> Result<()> {
        let operation = "Graph::release_object";
        self.driver().expect_same(object.reference.driver(), operation)?;
        let mut state = self.tree.lock()?;
        if *state.retained(self.number, object.as_raw().addr()) == 0 {
            // The driver would succeed, and take away a reference that somebody else relies on.
            return Err(Error::argument(operation, format!("the graph does not retain {object:?}")));
        }
        self.release_reference(&state, operation, &object.reference)?;
        *state.retained(self.number, object.as_raw().addr()) -= 1;
        Ok(())
    }

    /// Returns the graph once it retains these.
    #[inline]
    pub(super) fn retaining(self, operation: &'static str, objects: &[ObjectReference]) -> Result<Self> {
        let retained = self.retain_references(&*self.tree.lock()?, operation, objects);
        retained.map(|()| self)
    }

    /// Retains all of these objects in the graph, or none.
    #[inline]
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
            retained.for_each(|object| release(|| self.release_reference(state, operation, object)));
        }
        all
    }

    #[inline]
    pub(super) fn retain_reference(
        &self,
        state: &State,
        operation: &'static str,
        object: &ObjectReference,
    ) -> Result<()> {
        let (graph, no_flags) = (state.graph(operation, self.number)?, 0);
        // SAFETY: the graph and the object are live and belong to this driver; the lock keeps other threads out of the graph.
        unsafe { call!(self.driver(), cuGraphRetainUserObject(graph, object.as_raw(), 1, no_flags)) }
    }

    #[inline]
    pub(super) fn release_reference(
        &self,
        state: &State,
        operation: &'static str,
        object: &ObjectReference,
    ) -> Result<()> {
        let graph = state.graph(operation, self.number)?;
        // SAFETY: the graph and the object are live and belong to this driver; the lock keeps other threads out of the graph.
        unsafe { call!(self.driver(), cuGraphReleaseUserObject(graph, object.as_raw(), 1)) }
    }
}

impl Graph {
    /// Ends what the graph keeps for nodes that are gone or changed.
    #[inline]
    pub(super) fn let_go(&mut self, operation: &'static str, unused: &[Resource]) -> Result<()> {
        unused.iter().try_for_each(|resource| match resource {
            Resource::Object(object) => self.release_reference(&*self.tree.lock()?, operation, object),
            _ => Ok(()),
        })
    }
}

impl fmt::Debug for UserObject {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserObject({:?})", self.reference)
    }
}
