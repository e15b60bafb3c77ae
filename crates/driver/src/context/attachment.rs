//! Values of higher layers that live as long as a context.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Context, Owned};

/// Values by type, at most one of each. Lookup takes no lock.
#[derive(Default)]
pub(super) struct Attachments {
    first: Link,
    /// Locked while a value is added.
    adding: Mutex<()>,
}

/// The next value of the list, which only grows while the context lives.
type Link = OnceLock<Box<Attachment>>;

struct Attachment {
    value: Arc<dyn Any + Send + Sync>,
    next: Link,
}

impl Context {
    /// Returns the value of type `T` attached to this context, creating it with `make` on first use.
    ///
    /// The value is dropped just before the context ends. `make` receives a context that does not keep this one alive,
    /// so the value may contain objects created from it.
    ///
    /// # Safety
    ///
    /// - Nothing created from the context passed to `make` outlives the value.
    /// - The result is dropped before the last clone of this context.
    #[inline]
    pub unsafe fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce(Self) -> T) -> Arc<T> {
        let attachments = &self.shared.attachments;
        attachments.find().unwrap_or_else(|| {
            attachments.add(|| {
                make(Self::new(
                    self.as_raw(),
                    self.device(),
                    Owned::Borrowed { _owner: None },
                ))
            })
        })
    }
}

impl Attachments {
    /// Drops the values. The context is still alive.
    #[inline]
    pub(super) fn clear(&mut self) {
        drop(self.first.take());
    }

    #[inline]
    fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let mut link = &self.first;
        while let Some(attachment) = link.get() {
            if attachment.value.is::<T>() {
                return Arc::clone(&attachment.value).downcast().ok();
            }
            link = &attachment.next;
        }
        None
    }

    /// Adds a value, unless another thread has added one in the meantime.
    #[cold]
    fn add<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let _adding = self.adding.lock();
        if let Some(value) = self.find() {
            return value;
        }
        let value = Arc::new(make());
        let mut link = &self.first;
        while let Some(attachment) = link.get() {
            link = &attachment.next;
        }
        link.get_or_init(|| {
            Box::new(Attachment {
                value: Arc::clone(&value) as _,
                next: Link::new(),
            })
        });
        value
    }
}
