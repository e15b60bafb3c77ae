//! Fresh memory that is filled with [`POISON`] and uses no physical memory before it is written.
//!
//! The pages of a small file of [`POISON`] are mapped repeatedly as private copies: reads access
//! the file, and the first write to a page copies it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::host_pointer::POISON;
use crate::memory::mapping::{Mapping, file_in_memory, page_size};

/// The minimum size for mapping. Smaller memory is filled, which takes no longer.
const LEAST: u64 = 1 << 20;
/// The size of the file: a larger one takes longer to create, and a smaller one is mapped more
/// often.
const SIZE: u64 = 8 << 20;

/// Returns the file, which is created on first use, or `None` if the system refuses it.
fn file() -> Option<&'static OwnedFd> {
    static FILE: OnceLock<Option<OwnedFd>> = OnceLock::new();
    FILE.get_or_init(|| filled_file().ok()).as_ref()
}

fn filled_file() -> io::Result<OwnedFd> {
    let file = File::from(file_in_memory(SIZE)?);
    let block = vec![POISON; 1 << 16];
    (0..SIZE)
        .step_by(block.len())
        .try_for_each(|offset| file.write_all_at(&block, offset))?;
    Ok(file.into())
}

/// Returns the offsets of the pages that [`cover`] maps for `size` bytes from `offset` on, or
/// `None` if the memory is too small.
pub(super) fn pages(offset: u64, size: u64) -> Option<std::ops::Range<u64>> {
    let page = page_size();
    let pages = offset.next_multiple_of(page)..(offset + size) / page * page;
    (size >= LEAST).then_some(pages)
}

/// Replaces pages of a mapping by pages of [`POISON`]. The caller must own the pages. Returns
/// `false` after a failure, when some of them may have been replaced.
pub(super) fn cover(mapping: &Mapping, pages: std::ops::Range<u64>) -> bool {
    let Some(file) = file() else { return false };
    pages.clone().step_by(SIZE as usize).all(|offset| {
        let size = SIZE.min(pages.end - offset);
        mapping
            .replace_by_copy(mapping.address() + offset, size, file)
            .is_ok()
    })
}
