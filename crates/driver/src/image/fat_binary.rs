//! Fatbins: a header, followed by images for several architectures, each with its own header.

use super::{elf, number};

const MAGIC: u32 = 0xba55_ed50;
/// The magic number of the wrapper in a program's data, which points to the fatbin.
const WRAPPER_MAGIC: u32 = 0x4662_43b1;

const HEADER_SIZE: usize = 16;
const ENTRY_HEADER_SIZE: usize = 64;

const ENTRY_ELF: u64 = 2;
const ENTRY_IS_COMPRESSED: u64 = 0xe000;

pub(super) fn is_fat_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

pub(super) fn is_wrapper(bytes: &[u8]) -> bool {
    bytes.starts_with(&WRAPPER_MAGIC.to_le_bytes())
}

/// Returns an error unless `bytes`, which start like a fatbin, are a complete one.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let (Some(header), Some(content)) = (number::<2>(bytes, 6), number::<8>(bytes, 8)) else {
        return Err(format!(
            "truncated or damaged fat binary ({} bytes)",
            bytes.len()
        ));
    };
    if header < HEADER_SIZE as u64 {
        return Err(format!(
            "damaged fat binary (header of {header} bytes, expected {HEADER_SIZE})"
        ));
    }
    let end = header
        .checked_add(content)
        .and_then(|end| usize::try_from(end).ok());
    let end = end.filter(|end| *end <= bytes.len()).ok_or_else(|| {
        format!(
            "truncated fat binary ({} bytes, header of {header} bytes, content of {content} bytes)",
            bytes.len()
        )
    })?;
    // The header is no longer than the file, whose length is a `usize`.
    let mut entries = &bytes[header as usize..end];
    while !entries.is_empty() {
        let size = check_entry(entries)?;
        entries = &entries[size..];
    }
    Ok(())
}

/// Returns the size of the first of `entries`, including its header.
fn check_entry(entries: &[u8]) -> Result<usize, String> {
    let Some(Entry {
        header,
        end,
        is_elf,
    }) = Entry::read(entries)
    else {
        return Err(format!(
            "truncated or damaged image in the fat binary ({} bytes before the end)",
            entries.len()
        ));
    };
    if is_elf {
        elf::check(&entries[header..end])?;
    }
    Ok(end)
}

/// The extent of an image in a fat binary.
struct Entry {
    /// The size of the header.
    header: usize,
    /// The size of the header and the image.
    end: usize,
    /// `true` if the image is an uncompressed cubin.
    is_elf: bool,
}

impl Entry {
    /// Reads the header of the first of `entries`; `None` if it is truncated or inconsistent.
    fn read(entries: &[u8]) -> Option<Self> {
        let kind = number::<2>(entries, 0)?;
        let header = usize::try_from(number::<4>(entries, 4)?).ok()?;
        let padded = usize::try_from(number::<8>(entries, 8)?).ok()?;
        let compressed = usize::try_from(number::<4>(entries, 16)?).ok()?;
        let flags = number::<8>(entries, 40)?;
        let end = header.checked_add(padded)?;
        if end > entries.len() || header < ENTRY_HEADER_SIZE || compressed > padded {
            return None;
        }
        Some(Self {
            header,
            end,
            is_elf: kind == ENTRY_ELF && flags & ENTRY_IS_COMPRESSED == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_within_a_fat_binary_is_checked_as_well() {
        let whole = include_bytes!("../../tests/images/bump.fatbin");
        assert_eq!(check(whole), Ok(()));
        let mut damaged = whole.to_vec();
        // The offset of the section headers of the cubin in the first entry.
        damaged[HEADER_SIZE + ENTRY_HEADER_SIZE + 0x28 + 3] = 0xff;
        let error = check(&damaged).expect_err("the section headers are elsewhere");
        assert!(error.contains("section headers"), "{error}");
    }

    #[test]
    fn entry_that_claims_more_than_there_is_is_refused() {
        let mut damaged = include_bytes!("../../tests/images/bump.fatbin").to_vec();
        damaged[HEADER_SIZE + 8 + 6] = 1;
        assert!(check(&damaged).is_err());
        let mut damaged = include_bytes!("../../tests/images/bump.compressed.fatbin").to_vec();
        damaged[HEADER_SIZE + 16 + 3] = 1;
        assert!(
            check(&damaged).is_err(),
            "more compressed bytes than the image has"
        );
    }

    #[test]
    fn empty_fat_binary_is_whole() {
        let mut empty = MAGIC.to_le_bytes().to_vec();
        empty.extend([1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(check(&empty), Ok(()));
    }
}
