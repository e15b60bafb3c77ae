//! Barriers that let all threads of a block read its memory.

use crate::block::Block;
use crate::shared::{Shared, SharedType};

/// Memory of a block that all of its threads can read between two barriers.
///
/// The trait is implemented for `&mut Shared<…>` and for tuples of up to four of them. `()` is no
/// memory.
///
/// # Safety
///
/// All threads of the block may read `view` from one barrier to the next, if none writes the memory
/// in between.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory of a block",
    label = "expected `&mut Shared<…>`, or a tuple of them"
)]
pub unsafe trait Synced: Sized {
    /// The view that all threads have, until the second barrier.
    type View<'v>;

    /// Returns the view.
    ///
    /// # Safety
    ///
    /// A barrier stands before the call, and after the last use of the view. The memory is borrowed
    /// for `'v`.
    #[doc(hidden)]
    unsafe fn view<'v>(self) -> Self::View<'v>;

    /// Lets all threads read the memory: a barrier, then `code` with a shared view, then another
    /// barrier (`__syncthreads`).
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// #[kernel]
    /// pub fn reverse(block: Block<256>, mut tile: Shared<[u32; 256]>, x: &[u32], mut y: PerThread<u32>) {
    ///     let start = block.index() * 256;
    ///     tile.fill(&block, |_, i| x.get(start + i).copied().unwrap_or(0));
    ///     tile.synced(&block, |tile| {
    ///         block.threads_with(&mut y, |t, y| {
    ///             if let Some(y) = y.first() {
    ///                 *y = tile[255 - t.index_in_block()];
    ///             }
    ///         });
    ///     });
    /// }
    /// ```
    #[doc(alias = "__syncthreads")]
    #[inline(always)]
    fn synced<const X: u32, const Y: u32, const Z: u32, R>(
        self,
        block: &Block<X, Y, Z>,
        code: impl for<'v> FnOnce(Self::View<'v>) -> R,
    ) -> R {
        block.barrier();
        // SAFETY: barriers stand before and after. `code` is called with a lifetime that it does
        // not know, so that neither its result nor what it captures keeps the view beyond the
        // second barrier.
        let result = code(unsafe { self.view() });
        block.barrier();
        result
    }
}

// SAFETY: the memory is borrowed mutably, so no thread writes it while the view exists.
unsafe impl<T: SharedType> Synced for &mut Shared<T> {
    type View<'v> = &'v T;

    #[inline(always)]
    unsafe fn view<'v>(self) -> &'v T {
        // SAFETY: any bytes are a `T`, and nobody writes them while they are borrowed.
        unsafe { &*self.as_ptr() }
    }
}

// SAFETY: there is no memory.
unsafe impl Synced for () {
    type View<'v> = ();

    #[inline(always)]
    unsafe fn view<'v>(self) -> Self::View<'v> {}
}

macro_rules! tuples {
    ($($memory:ident)*) => {
        // SAFETY: each part upholds the contract.
        unsafe impl<$($memory: Synced),*> Synced for ($($memory,)*) {
            type View<'v> = ($($memory::View<'v>,)*);

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            unsafe fn view<'v>(self) -> Self::View<'v> {
                let ($($memory,)*) = self;
                // SAFETY: the caller has a barrier before the call, and one after the last use of
                // the views.
                ($(unsafe { $memory.view() },)*)
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
