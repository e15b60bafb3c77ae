//! The table of a kernel, which the device's build passes to the compiler of kernels and to the
//! host.

use crate::parameter::{Description, Word};
use crate::scope::Scope;

/// The version of the layout.
const VERSION: u32 = 1;

/// A description of a kernel with `N` parameters: a list of `u32` without padding or pointers.
///
/// The compiler of kernels reads the fields up to `words`. The host compares the whole table with
/// its own at compile time.
#[doc(hidden)]
#[repr(C)]
pub struct KernelTable<const N: usize> {
    version: u32,
    /// 0 for element-wise kernels, 1 for kernels of blocks, 2 of cooperative grids, and 3 of
    /// clusters.
    scope: u32,
    block: [u32; 3],
    cluster: [u32; 3],
    max_threads: u32,
    min_blocks: u32,
    /// The hash of the function's tokens.
    source: [u32; 2],
    count: u32,
    words: [[Word; 3]; N],
    kinds: [u32; N],
    extents: [[u32; 6]; N],
}

impl<const N: usize> KernelTable<N> {
    /// Creates the table of a kernel with these parameters.
    #[must_use]
    pub const fn new<S: Scope>(source: [u32; 2], parameters: [Description; N]) -> Self {
        let mut words = [[Word::ABSENT; 3]; N];
        let mut kinds = [0; N];
        let mut extents = [[0; 6]; N];
        let mut index = 0;
        let mut dynamic = 0;
        while index < N {
            let parameter = &parameters[index];
            words[index] = parameter.words;
            kinds[index] = parameter.kind as u32;
            extents[index] = parameter.extents();
            dynamic += parameter.is_dynamic_shared() as u32;
            index += 1;
        }
        assert!(
            dynamic <= 1,
            "a kernel has at most one `DynamicShared` or `TmaRing` parameter, because all of them would be the same memory"
        );
        Self {
            version: VERSION,
            scope: S::KIND,
            block: S::BLOCK,
            cluster: S::CLUSTER,
            max_threads: 0,
            min_blocks: 0,
            source,
            count: N as u32,
            words,
            kinds,
            extents,
        }
    }

    /// Returns the table as a list of numbers.
    #[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
    pub(crate) const fn as_words(&self) -> &[u32] {
        // SAFETY: the struct consists of `u32` only, and is `repr(C)`.
        unsafe {
            core::slice::from_raw_parts((&raw const *self).cast::<u32>(), size_of::<Self>() / 4)
        }
    }
}
