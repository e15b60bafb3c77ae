//! Host views of device-accessible memory.

use std::fmt;
use std::ops::{Deref, DerefMut};

use curium_driver::hazard::HostAccess;

use crate::host_attachment::HostAttachment;

/// A view of elements for the host to read. While it exists, launching a graph that writes them is
/// an error.
///
/// Returned by [`MappedBuffer::host_view`](crate::MappedBuffer::host_view) and
/// [`UnifiedBuffer::host_view`](crate::UnifiedBuffer::host_view).
#[must_use = "graphs that write the memory cannot be launched until the view is dropped"]
pub struct HostView<'a, T> {
    elements: &'a [T],
    _access: HostAccess,
}

/// A view of elements for the host to read and write. While it exists, launching a graph that
/// accesses them is an error.
///
/// Returned by [`MappedBuffer::host_view_mut`](crate::MappedBuffer::host_view_mut) and
/// [`UnifiedBuffer::host_view_mut`](crate::UnifiedBuffer::host_view_mut).
#[must_use = "graphs that use the memory cannot be launched until the view is dropped"]
pub struct HostViewMut<'a, T> {
    elements: &'a mut [T],
    _access: Option<HostAccess>,
    /// The attachment, whose end is that of the access.
    _attachment: Option<HostAttachment<'a>>,
}

impl<'a, T> HostView<'a, T> {
    /// Creates a view. The caller acquired `access` first and then waited for all writes.
    pub(crate) fn new(elements: &'a [T], access: HostAccess) -> Self {
        Self {
            elements,
            _access: access,
        }
    }
}

impl<'a, T> HostViewMut<'a, T> {
    /// Creates a view. The caller acquired `access` first and then waited for all accesses.
    pub(crate) fn new(elements: &'a mut [T], access: HostAccess) -> Self {
        Self::ending(elements, Some(access), None)
    }

    /// Creates a view of memory that ends an access, or the attachment of the memory to the host.
    pub(crate) fn ending(
        elements: &'a mut [T],
        access: Option<HostAccess>,
        attachment: Option<HostAttachment<'a>>,
    ) -> Self {
        Self {
            elements,
            _access: access,
            _attachment: attachment,
        }
    }
}

impl<T> Deref for HostView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> Deref for HostViewMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> DerefMut for HostViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T: fmt::Debug> fmt::Debug for HostView<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for HostViewMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
