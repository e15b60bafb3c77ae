//! Values that graphs keep alive.

use std::any::Any;
use std::sync::Arc;

use crate::base::contain::contain;

/// The key of an object that a capture keeps: its kind, and its handle or address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Key {
    Kernel(usize),
    Event(usize),
    HostFunction(usize),
    Shared(usize),
}

/// A value that a graph keeps alive. The destructor of another crate's type is user code: its panic
/// is caught, because the graph drops other values as well, and may itself be dropped by a panic.
#[derive(Clone)]
pub(crate) struct KeptValue(
    /// `None` while it is dropped.
    Option<Arc<dyn Any + Send + Sync>>,
);

impl KeptValue {
    pub(crate) fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(value))
    }

    /// Returns an address that is unique for as long as the value exists.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |value| Arc::as_ptr(value).addr())
    }

    /// Returns the value if it is a `T`.
    pub(crate) fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl Drop for KeptValue {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            contain(|| drop(value));
        }
    }
}
