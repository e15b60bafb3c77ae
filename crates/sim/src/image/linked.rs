//! The image that a link creates: an ELF file that carries PTX.

use std::ffi::{CStr, c_char};

use crate::image::begins_with;

/// The first bytes: ELF of 64 bits in little-endian order, and a mark in the padding.
const IDENTITY: [u8; 16] = *b"\x7fELF\x02\x01\x01\x41\x08curium\0";

const HEADER_SIZE: usize = 64;

const SECTION_SIZE: usize = 64;

/// The table of names: none, `.ptx` and `.shstrtab`.
const NAMES: &[u8] = b"\0.ptx\0.shstrtab\0";

const MACHINE_CUDA: u16 = 190;

const TYPE_EXECUTABLE: u16 = 2;

const SECTION_DATA: u32 = 1;

const SECTION_STRINGS: u32 = 3;

/// Returns an image of `ptx`, whose text follows the header directly.
pub(crate) fn image(ptx: &str) -> Box<[u8]> {
    let names = HEADER_SIZE + ptx.len() + 1;
    let sections = (names + NAMES.len()).next_multiple_of(8);
    let mut image = header(sections);
    image.extend_from_slice(ptx.as_bytes());
    image.push(0);
    image.extend_from_slice(NAMES);
    image.resize(sections, 0);
    image.extend_from_slice(&[0; SECTION_SIZE]);
    image.extend(section(1, SECTION_DATA, HEADER_SIZE, ptx.len() + 1));
    image.extend(section(6, SECTION_STRINGS, names, NAMES.len()));
    image.into()
}

/// Returns the PTX in an image that [`image`] made; nothing in any other.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a whole binary.
pub(crate) unsafe fn text_in<'a>(image: *const u8) -> Option<&'a CStr> {
    // SAFETY: the caller guarantees the image, and the first NUL of the identity is its last byte.
    if !unsafe { begins_with(image, &IDENTITY) } {
        return None;
    }
    let text = image.wrapping_add(HEADER_SIZE).cast::<c_char>();
    // SAFETY: only this module creates images with this identity, and NUL-terminated text follows
    // their header.
    Some(unsafe { CStr::from_ptr(text) })
}

fn header(sections: usize) -> Vec<u8> {
    let mut header = IDENTITY.to_vec();
    header.extend(TYPE_EXECUTABLE.to_le_bytes());
    header.extend(MACHINE_CUDA.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    // No entry point and no segments.
    header.extend([0; 16]);
    header.extend((sections as u64).to_le_bytes());
    header.extend([0; 4]);
    for size in [HEADER_SIZE, 0, 0, SECTION_SIZE, 3, 2] {
        header.extend((size as u16).to_le_bytes());
    }
    header
}

fn section(name: u32, kind: u32, offset: usize, size: usize) -> Vec<u8> {
    let mut section = name.to_le_bytes().to_vec();
    section.extend(kind.to_le_bytes());
    section.extend([0; 16]);
    section.extend((offset as u64).to_le_bytes());
    section.extend((size as u64).to_le_bytes());
    section.resize(SECTION_SIZE, 0);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_contains_its_text() {
        let image = image(".version 7.8");
        // SAFETY: the image is whole.
        let text = unsafe { text_in(image.as_ptr()) };
        assert_eq!(text, Some(c".version 7.8"));
        // SAFETY: the text ends in NUL.
        assert_eq!(unsafe { text_in(c"\x7fELF".as_ptr().cast()) }, None);
    }
}
