//! Chunks of views.

use std::iter::FusedIterator;

use super::{DeviceView, DeviceViewMut};

/// An iterator over chunks of a slice. Returned by
/// [`DeviceSlice::chunks`](super::DeviceSlice::chunks).
#[derive(Debug)]
pub struct DeviceChunks<'a, T> {
    remaining: DeviceView<'a, T>,
    len: usize,
}

/// An iterator over mutable chunks of a slice. Returned by
/// [`DeviceSlice::chunks_mut`](super::DeviceSlice::chunks_mut).
#[derive(Debug)]
pub struct DeviceChunksMut<'a, T> {
    remaining: Option<DeviceViewMut<'a, T>>,
    len: usize,
}

impl<'a, T> DeviceChunks<'a, T> {
    /// Creates an iterator. `len` must not be 0.
    pub(super) fn new(remaining: DeviceView<'a, T>, len: usize) -> Self {
        Self { remaining, len }
    }
}

impl<'a, T> DeviceChunksMut<'a, T> {
    /// Creates an iterator. `len` must not be 0.
    pub(super) fn new(remaining: DeviceViewMut<'a, T>, len: usize) -> Self {
        Self {
            remaining: Some(remaining),
            len,
        }
    }
}

impl<'a, T> Iterator for DeviceChunks<'a, T> {
    type Item = DeviceView<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.is_empty() {
            return None;
        }
        let middle = self.len.min(self.remaining.len());
        let (part, remaining) = self.remaining.halves(middle);
        self.remaining = remaining;
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.remaining.len().div_ceil(self.len);
        (count, Some(count))
    }
}

impl<'a, T> Iterator for DeviceChunksMut<'a, T> {
    type Item = DeviceViewMut<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let remaining = self
            .remaining
            .take()
            .filter(|remaining| !remaining.is_empty())?;
        let middle = self.len.min(remaining.len());
        let (part, remaining) = remaining.halves(middle);
        self.remaining = Some(remaining);
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self
            .remaining
            .as_ref()
            .map_or(0, |remaining| remaining.len())
            .div_ceil(self.len);
        (count, Some(count))
    }
}

impl<T> ExactSizeIterator for DeviceChunks<'_, T> {}
impl<T> ExactSizeIterator for DeviceChunksMut<'_, T> {}
impl<T> FusedIterator for DeviceChunks<'_, T> {}
impl<T> FusedIterator for DeviceChunksMut<'_, T> {}
