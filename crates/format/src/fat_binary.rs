//! Fat binaries: a header, followed by images for several architectures, each with its own header.

use core::iter::FusedIterator;

use crate::{Error, Target, TargetVariant, elf, number, position};

/// The first bytes of a fat binary.
pub const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// The first bytes of the record in a program's data that points to a fat binary.
pub const RECORD_MAGIC: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();
/// The size of the header of a fat binary in bytes. It contains the length of the rest.
pub const HEADER_SIZE: usize = 16;

/// The part of an entry's header that all of them have.
const ENTRY_HEADER_SIZE: usize = 64;
/// The header of each of several images that were compressed together.
const PART_HEADER_SIZE: usize = 80;

const KIND_PTX: u64 = 1;
const KIND_CUBIN: u64 = 2;
const KIND_LTO_IR: u64 = 8;
/// Several images that were compressed together: a count and a header for each follow the entry's.
const KIND_TOGETHER: u64 = 0x100;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// The flags of all compressions.
const FLAGS_COMPRESSED: u64 = 0xe000;
const FLAG_ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

/// An image in a fat binary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The kind of the image.
    pub kind: EntryKind,
    /// The devices that the image is for.
    pub target: Target,
    /// The compression of the payload.
    pub compression: Compression,
    /// The stored bytes.
    pub payload: &'a [u8],
    /// The length of the payload after decompression, in bytes. Meaningless without compression.
    pub decompressed_size: u64,
    /// The range of the image in the decompressed payload, if it was compressed together with
    /// others.
    pub part: Option<Part>,
}

/// The kind of an [`Entry`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EntryKind {
    /// PTX text, with a NUL at its end.
    Ptx,
    /// A cubin.
    Cubin,
    /// LTO IR, which only linkers read.
    LtoIr,
    /// Another kind.
    Other,
}

/// The compression of an [`Entry`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Compression {
    /// The payload is the image.
    None,
    /// A block of LZ4.
    Lz4,
    /// A frame of Zstandard.
    Zstd,
    /// Another compression.
    Other,
}

/// A range of bytes in a decompressed payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    /// The offset in bytes.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
}

/// Returns `true` if `bytes` begin like a fat binary.
#[must_use]
pub fn is_fat_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns `true` if `bytes` begin like the record that points to a fat binary.
#[must_use]
pub fn is_record(bytes: &[u8]) -> bool {
    bytes.starts_with(&RECORD_MAGIC)
}

/// Returns the size of a fat binary with this header, including the header.
#[must_use]
pub fn size(header: &[u8; HEADER_SIZE]) -> Option<usize> {
    position::<2>(header, 6)?.checked_add(position::<8>(header, 8)?)
}

/// Returns an error unless `bytes`, which begin like a fat binary, are a complete one with complete
/// cubins.
///
/// # Errors
///
/// The problem, if the binary is truncated or damaged.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    for entry in entries(bytes)? {
        let entry = entry?;
        if entry.kind == EntryKind::Cubin && entry.compression == Compression::None {
            elf::check(entry.payload)?;
        }
    }
    Ok(())
}

/// Returns the images of a fat binary. The iterator ends after the first error.
///
/// # Errors
///
/// The problem of the header.
pub fn entries(bytes: &[u8]) -> Result<Entries<'_>, Error> {
    let header: &[u8; HEADER_SIZE] = bytes
        .first_chunk()
        .ok_or(Error::ShortFatBinary { len: bytes.len() })?;
    let header_size = number::<2>(header, 6).unwrap_or_default();
    if header_size < HEADER_SIZE as u64 {
        return Err(Error::FatBinaryHeader {
            header: header_size,
        });
    }
    let content = size(header).and_then(|end| bytes.get(position::<2>(header, 6)?..end));
    Ok(Entries {
        remaining: content.ok_or(Error::TruncatedFatBinary {
            len: bytes.len(),
            header: header_size,
            content: number::<8>(header, 8).unwrap_or_default(),
        })?,
        together: None,
    })
}

/// An iterator over the images of a fat binary.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    remaining: &'a [u8],
    /// The images of the last entry that have not been returned, if it has several.
    together: Option<Together<'a>>,
}

/// Images that were compressed together.
#[derive(Clone, Debug)]
struct Together<'a> {
    entry: Entry<'a>,
    headers: core::slice::Iter<'a, [u8; PART_HEADER_SIZE]>,
}

impl<'a> Entries<'a> {
    /// Reads the next entry; `None` if it is truncated or inconsistent.
    fn read(&mut self) -> Option<Entry<'a>> {
        let bytes = self.remaining;
        let header = bytes.get(..position::<4>(bytes, 4)?)?;
        if header.len() < ENTRY_HEADER_SIZE {
            return None;
        }
        let end = header.len().checked_add(position::<8>(header, 8)?)?;
        let padded = bytes.get(header.len()..end)?;
        let payload = match position::<4>(header, 16)? {
            0 => padded,
            compressed => padded.get(..compressed)?,
        };
        let entry = Entry::read(header, payload)?;
        self.remaining = bytes.get(end..)?;
        if number::<2>(header, 0) == Some(KIND_TOGETHER) {
            let count = position::<4>(header, ENTRY_HEADER_SIZE)?;
            let headers = header.get(ENTRY_HEADER_SIZE + 8..)?.as_chunks().0;
            self.together = Some(Together {
                entry,
                headers: headers.get(..count)?.iter(),
            });
        }
        Some(entry)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(together) = &mut self.together {
                match together.headers.next() {
                    Some(header) => return Some(Ok(together.entry.with_part(header))),
                    None => self.together = None,
                }
            }
            let remaining = self.remaining.len();
            if remaining == 0 {
                return None;
            }
            match self.read() {
                Some(_) if self.together.is_some() => {}
                Some(entry) => return Some(Ok(entry)),
                None => {
                    self.remaining = &[];
                    return Some(Err(Error::FatBinaryEntry { remaining }));
                }
            }
        }
    }
}

impl FusedIterator for Entries<'_> {}

impl<'a> Entry<'a> {
    fn read(header: &[u8], payload: &'a [u8]) -> Option<Self> {
        Some(Self {
            kind: EntryKind::from_raw(number::<2>(header, 0)?),
            target: target(header)?,
            compression: Compression::from_flags(number::<8>(header, 40)?),
            payload,
            decompressed_size: number::<8>(header, 56)?,
            part: None,
        })
    }

    /// Returns the image with this header, which was compressed together with others as this entry.
    fn with_part(self, header: &[u8; PART_HEADER_SIZE]) -> Self {
        Self {
            kind: EntryKind::from_raw(number::<2>(header, 0).unwrap_or_default()),
            target: target(header).unwrap_or(self.target),
            part: Some(Part {
                start: number::<4>(header, 4).unwrap_or_default(),
                len: number::<8>(header, 8).unwrap_or_default(),
            }),
            ..self
        }
    }
}

impl EntryKind {
    fn from_raw(kind: u64) -> Self {
        match kind {
            KIND_PTX => Self::Ptx,
            KIND_CUBIN => Self::Cubin,
            KIND_LTO_IR => Self::LtoIr,
            _ => Self::Other,
        }
    }
}

impl Compression {
    fn from_flags(flags: u64) -> Self {
        if flags & FLAG_ZSTD != 0 {
            Self::Zstd
        } else if flags & FLAG_LZ4 != 0 {
            Self::Lz4
        } else if flags & FLAGS_COMPRESSED != 0 {
            Self::Other
        } else {
            Self::None
        }
    }
}

/// Returns the target in the header of an image.
fn target(header: &[u8]) -> Option<Target> {
    let flags = number::<8>(header, 40)?;
    let variant = if flags & FLAG_ARCHITECTURE_SPECIFIC != 0 {
        TargetVariant::Architecture
    } else if flags & FLAG_FAMILY_SPECIFIC != 0 {
        TargetVariant::Family
    } else {
        TargetVariant::Baseline
    };
    Some(Target {
        architecture: u32::try_from(number::<4>(header, 28)?).ok()?,
        variant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fat_binary_is_whole() {
        let mut empty = [0; HEADER_SIZE];
        empty[..4].copy_from_slice(&MAGIC);
        empty[6] = HEADER_SIZE as u8;
        assert_eq!(check(&empty), Ok(()));
        assert_eq!(size(&empty), Some(HEADER_SIZE));
        empty[6] = 15;
        assert_eq!(check(&empty), Err(Error::FatBinaryHeader { header: 15 }));
    }
}
