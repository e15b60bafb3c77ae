//! Values of higher layers that live as long as an object.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

/// A value that is shared with its users.
pub(crate) type Attached = Arc<dyn Any + Send + Sync>;

/// Values by type, at most one of each. Lookup takes no lock.
#[derive(Default)]
pub(crate) struct Attachments {
    first: Link,
    /// Locked while a value is added.
    adding: Mutex<()>,
}

/// The next value of the list, which only grows while the object lives.
type Link = OnceLock<Box<Attachment>>;

struct Attachment {
    value: Attached,
    next: Link,
}

impl Attachments {
    /// Drops the values. The object is still alive.
    #[inline]
    pub(crate) fn clear(&mut self) {
        drop(self.first.take());
    }

    /// Returns the value of type `T`, creating it with `make` on first use.
    #[inline]
    pub(crate) fn get_or_add<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &Attached {
        self.find::<T>().unwrap_or_else(|| self.add(make))
    }

    #[inline]
    fn find<T: Any + Send + Sync>(&self) -> Option<&Attached> {
        let mut link = &self.first;
        while let Some(attachment) = link.get() {
            if attachment.value.is::<T>() {
                return Some(&attachment.value);
            }
            link = &attachment.next;
        }
        None
    }

    /// Adds a value, unless another thread has added one in the meantime.
    #[cold]
    fn add<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &Attached {
        let _adding = self.adding.lock();
        if let Some(value) = self.find::<T>() {
            return value;
        }
        let value = Arc::new(make());
        let mut link = &self.first;
        while let Some(attachment) = link.get() {
            link = &attachment.next;
        }
        let attachment = link.get_or_init(|| {
            Box::new(Attachment {
                value,
                next: Link::new(),
            })
        });
        &attachment.value
    }
}
