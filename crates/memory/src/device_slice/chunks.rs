//! Chunks of views.

use std::iter::FusedIterator;

use curium_driver::{Error, Result};

use super::{DeviceSlice, DeviceSliceMut};

/// An iterator over chunks of a view. Returned by [`DeviceSlice::chunks`].
#[derive(Debug)]
pub struct DeviceChunks<'a, T> {
    remaining: DeviceSlice<'a, T>,
    len: usize,
}

/// An iterator over mutable chunks of a view. Returned by [`DeviceSliceMut::chunks`].
#[derive(Debug)]
pub struct DeviceChunksMut<'a, T> {
    remaining: Option<DeviceSliceMut<'a, T>>,
    len: usize,
}

impl<'a, T> DeviceChunks<'a, T> {
    pub(super) fn new(remaining: DeviceSlice<'a, T>, len: usize) -> Result<Self> {
        not_zero("DeviceSlice::chunks", len)?;
        Ok(Self { remaining, len })
    }
}

impl<'a, T> DeviceChunksMut<'a, T> {
    pub(super) fn new(remaining: DeviceSliceMut<'a, T>, len: usize) -> Result<Self> {
        not_zero("DeviceSliceMut::chunks", len)?;
        Ok(Self {
            remaining: Some(remaining),
            len,
        })
    }
}

impl<'a, T> Iterator for DeviceChunks<'a, T> {
    type Item = DeviceSlice<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.is_empty() {
            return None;
        }
        // `middle` is within the view.
        let (part, remaining) = self
            .remaining
            .split_at(self.len.min(self.remaining.len()))
            .ok()?;
        self.remaining = remaining;
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.remaining.len().div_ceil(self.len);
        (count, Some(count))
    }
}

impl<'a, T> Iterator for DeviceChunksMut<'a, T> {
    type Item = DeviceSliceMut<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let remaining = self
            .remaining
            .take()
            .filter(|remaining| !remaining.is_empty())?;
        let middle = self.len.min(remaining.len());
        // `middle` is within the view.
        let (part, remaining) = remaining.split_at(middle).ok()?;
        self.remaining = Some(remaining);
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self
            .remaining
            .as_ref()
            .map_or(0, DeviceSliceMut::len)
            .div_ceil(self.len);
        (count, Some(count))
    }
}

impl<T> ExactSizeIterator for DeviceChunks<'_, T> {}
impl<T> ExactSizeIterator for DeviceChunksMut<'_, T> {}
impl<T> FusedIterator for DeviceChunks<'_, T> {}
impl<T> FusedIterator for DeviceChunksMut<'_, T> {}

#[inline]
fn not_zero(operation: &'static str, len: usize) -> Result<()> {
    if len == 0 {
        Err(Error::argument(operation, "zero chunk length"))
    } else {
        Ok(())
    }
}
