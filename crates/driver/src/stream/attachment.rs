//! Values of higher layers that live as long as a stream.

use std::any::Any;

use super::Stream;
use super::raw::Ownership;
use crate::AsRawStream as _;

impl Stream {
    /// Returns the value of type `T` attached to this stream, creating it with `make` on first use.
    ///
    /// The value is dropped just before the stream is destroyed, or no longer borrowed. `make`
    /// receives a stream that does not keep this one alive, so the value may enqueue work, such as
    /// the record of an event, when it is dropped.
    ///
    /// # Safety
    ///
    /// No clone of the stream passed to `make` outlives the value.
    #[inline]
    pub unsafe fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce(Self) -> T) -> &T {
        let value = self.shared.attachments.get_or_add(|| {
            make(Self::with_ownership(
                self.context(),
                self.as_raw(),
                Ownership::Borrowed(None),
            ))
        });
        value
            .downcast_ref()
            .unwrap_or_else(|| unreachable!("values are found by their type"))
    }
}
