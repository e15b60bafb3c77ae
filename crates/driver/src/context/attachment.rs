//! Values of higher layers that live as long as a context.

use std::any::Any;
use std::sync::Arc;

use super::{Context, Owned};

impl Context {
    /// Returns the value of type `T` attached to this context, creating it with `make` on first
    /// use.
    ///
    /// The value is dropped just before the context ends. `make` receives a context that does not
    /// keep this one alive, so the value may contain objects created from it.
    ///
    /// # Safety
    ///
    /// - Nothing created from the context passed to `make` outlives the value.
    /// - The result is dropped before the last clone of this context.
    #[inline]
    pub unsafe fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce(Self) -> T) -> Arc<T> {
        let value = self.shared.attachments.get_or_add(|| {
            make(Self::new(
                self.as_raw(),
                self.device(),
                Owned::Borrowed { _owner: None },
            ))
        });
        Arc::clone(value)
            .downcast()
            .unwrap_or_else(|_| unreachable!("values are found by their type"))
    }
}
