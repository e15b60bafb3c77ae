//! The elements of a thread.

use core::marker::PhantomData;

use crate::address::Address;
use crate::block::ThreadCodeOnly;

/// The elements of an array that a thread owns: every `threads`-th one from its own index on.
pub struct Elements<'a, T> {
    start: Address<T>,
    len: usize,
    first: usize,
    step: usize,
    /// `true` if the length is a constant, so that loops can have a constant number of rounds.
    is_constant: bool,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: ThreadCodeOnly,
}

impl<'a, T> Elements<'a, T> {
    /// # Safety
    ///
    /// The `len` elements at `start` are valid for `'a`, and only this value accesses those with the indices `first`, `first + step`, …
    #[inline(always)]
    pub(crate) unsafe fn new(
        start: *mut T,
        len: usize,
        first: usize,
        step: usize,
        is_constant: bool,
    ) -> Self {
        Self {
            start: Address(start),
            len,
            first,
            step,
            is_constant,
            _elements: PhantomData,
            _not_sync: ThreadCodeOnly::NEW,
        }
    }

    /// Returns the first element of the thread, unless it has none: the only one, if there are at most as many elements as threads.
    #[inline(always)]
    #[must_use]
    pub fn first(self) -> Option<&'a mut T> {
        if self.first >= self.len {
            return None;
        }
        // SAFETY: the index is in bounds and belongs to the thread.
        Some(unsafe { self.start.get_mut(self.first) })
    }

    /// Returns the elements of the thread with their indices.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> ElementsIter<'_, T> {
        self.elements()
    }

    #[inline(always)]
    fn elements<'b>(&self) -> ElementsIter<'b, T> {
        let rounds = if self.is_constant {
            self.len.div_ceil(self.step)
        } else {
            self.len.saturating_sub(self.first).div_ceil(self.step)
        };
        ElementsIter {
            start: self.start,
            len: self.len,
            index: self.first,
            step: self.step,
            rounds,
            is_checked: self.is_constant && !self.len.is_multiple_of(self.step),
            _elements: PhantomData,
            _not_sync: ThreadCodeOnly::NEW,
        }
    }
}

impl<'a, T> IntoIterator for Elements<'a, T> {
    type Item = (usize, &'a mut T);
    type IntoIter = ElementsIter<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> ElementsIter<'a, T> {
        self.elements()
    }
}

/// An iterator over the elements of a thread, with their indices.
pub struct ElementsIter<'a, T> {
    start: Address<T>,
    len: usize,
    index: usize,
    step: usize,
    rounds: usize,
    /// `true` if the last round can be out of bounds.
    is_checked: bool,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: ThreadCodeOnly,
}

impl<'a, T> Iterator for ElementsIter<'a, T> {
    type Item = (usize, &'a mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rounds == 0 {
            return None;
        }
        self.rounds -= 1;
        let index = self.index;
        // The step is at most 2⁴², so the sum does not overflow before the end of memory.
        self.index = index.wrapping_add(self.step);
        if self.is_checked && index >= self.len {
            return None;
        }
        // SAFETY: the index is in bounds, belongs to the thread, and is returned once.
        Some((index, unsafe { self.start.get_mut(index) }))
    }
}
