//! What other layers keep with a context for as long as it lives.

use std::any::Any;
use std::sync::Arc;

use super::{Context, Owned};
use crate::lock::Mutex;

/// Values by their type, at most one of each.
#[derive(Default)]
pub(super) struct Attachments(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Context {
    /// The value of type `T` that is kept with this context: what `make` returned when it was asked for first. It is dropped when
    /// the context ends, just before.
    ///
    /// `make` gets a context that stands for this one without keeping it alive, so that what is made from it can be kept here.
    ///
    /// # Safety
    ///
    /// - Nothing that is made from the context given to `make` outlives the value.
    /// - The result is dropped before the last clone of this context is.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce(Self) -> T) -> Arc<T> {
        let mut attachments = self.shared.attachments.0.lock();
        if let Some(value) = attachments.iter().find_map(|value| Arc::clone(value).downcast().ok()) {
            return value;
        }
        let value = Arc::new(make(Self::new(self.as_raw(), self.device(), Owned::Borrowed { _owner: None })));
        attachments.push(Arc::clone(&value) as _);
        value
    }
}

impl Attachments {
    /// Drops the values. The context is still alive.
    #[inline]
    pub(super) fn clear(&self) {
        let attachments = std::mem::take(&mut *self.0.lock());
        drop(attachments);
    }
}
