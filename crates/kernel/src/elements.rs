//! The elements of a thread.

use core::marker::PhantomData;

use crate::address::Address;
use crate::block::ThreadCodeOnly;
use crate::thread::Thread;

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
    /// The `len` elements at `start` are valid for `'a`, and only this value accesses those with
    /// the indices `first`, `first + step`, …
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

    /// Returns the elements that a thread of a grid along x owns: every one whose index modulo the
    /// number of threads is that of the thread.
    ///
    /// # Safety
    ///
    /// The `len` elements at `start` are valid for `'a`, and only this value and those of other
    /// threads access them.
    #[inline(always)]
    pub(crate) unsafe fn in_grid(start: *mut T, len: usize, thread: &Thread) -> Self {
        let first = thread.index_in_grid();
        let step = thread.threads_in_grid();
        // SAFETY: the caller guarantees the elements, and other threads have other indices.
        unsafe { Self::new(start, len, first, step, false) }
    }

    /// Returns the first element of the thread, unless it has none: the only one, if there are at
    /// most as many elements as threads.
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
            0
        };
        ElementsIter {
            start: self.start,
            len: self.len,
            index: self.first,
            step: self.step,
            rounds,
            is_constant: self.is_constant,
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
    /// The number of rounds, if the length is a constant.
    rounds: usize,
    is_constant: bool,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: ThreadCodeOnly,
}

impl<T> ElementsIter<'_, T> {
    /// Returns the next index of the thread. It is in bounds.
    #[inline(always)]
    fn next_index(&mut self) -> Option<usize> {
        let index = self.index;
        // Both are constants or neither is.
        let is_multiple = self.is_constant && self.len.is_multiple_of(self.step);
        if self.is_constant {
            // A constant number of rounds, so that loops are unrolled. The last one can be out of
            // bounds.
            self.rounds = self.rounds.checked_sub(1)?;
        }
        if !is_multiple && index >= self.len {
            return None;
        }
        // SAFETY: the index is in bounds of memory and the step at most 2⁴², so the sum does not
        // overflow.
        self.index = unsafe { index.unchecked_add(self.step) };
        Some(index)
    }
}

impl<'a, T> Iterator for ElementsIter<'a, T> {
    type Item = (usize, &'a mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next_index()?;
        // SAFETY: the index is in bounds, belongs to the thread, and is returned once.
        Some((index, unsafe { self.start.get_mut(index) }))
    }

    /// Without an `Option` of a reference, which is null for the compiler: it does not infer that
    /// an address of shared memory is not.
    #[inline(always)]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut code: F) -> B {
        let mut result = init;
        while let Some(index) = self.next_index() {
            // SAFETY: the index is in bounds, belongs to the thread, and is returned once.
            result = code(result, (index, unsafe { self.start.get_mut(index) }));
        }
        result
    }
}
