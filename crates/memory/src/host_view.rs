//! Views of the host that keep graphs from being launched.

use std::fmt;
use std::ops::{Deref, DerefMut};

use curium_driver::hazard::HostAccess;

/// Elements as the host sees them, borrowed to be read. While it exists, launching a graph that writes them is an error.
#[must_use = "the memory is the graph's again when this is dropped"]
pub struct HostView<'a, T> {
    elements: &'a [T],
    _access: HostAccess,
}

/// Elements as the host sees them, borrowed to be written. While it exists, launching a graph that uses them is an error.
#[must_use = "the memory is the graph's again when this is dropped"]
pub struct HostViewMut<'a, T> {
    elements: &'a mut [T],
    _access: HostAccess,
}

impl<'a, T> HostView<'a, T> {
    /// What work that writes was waited for after `access` was taken.
    #[inline]
    pub(crate) fn new(elements: &'a [T], access: HostAccess) -> Self {
        Self { elements, _access: access }
    }
}

impl<'a, T> HostViewMut<'a, T> {
    /// What work that uses them was waited for after `access` was taken.
    #[inline]
    pub(crate) fn new(elements: &'a mut [T], access: HostAccess) -> Self {
        Self { elements, _access: access }
    }
}

impl<T> Deref for HostView<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> Deref for HostViewMut<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> DerefMut for HostViewMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T: fmt::Debug> fmt::Debug for HostView<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for HostViewMut<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
