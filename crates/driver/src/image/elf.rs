//! ELF, the format of a cubin: detection of truncated files.

use std::ops::Range;

use super::number;

const MAGIC: &[u8] = b"\x7fELF";
/// The class of 64-bit addresses, and little-endian byte order.
const CLASS_64_LITTLE: [u8; 2] = [2, 1];
/// `EM_CUDA`.
const MACHINE_CUDA: u64 = 190;

const HEADER_SIZE: usize = 64;
const SECTION_SIZE: u64 = 64;
const SEGMENT_SIZE: u64 = 56;

/// Types of sections that have no bytes in the file: `SHT_NOBITS`, and NVIDIA's types for uninitialized variables,
/// local memory, shared memory and reserved shared memory.
const SECTIONS_WITHOUT_BYTES: [u64; 5] = [8, 0x7000_0007, 0x7000_0009, 0x7000_000a, 0x7000_0015];

pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns an error unless `bytes`, which start like ELF, are a complete cubin.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() < HEADER_SIZE {
        return Err(format!(
            "truncated cubin ({} bytes, the header has {HEADER_SIZE})",
            bytes.len()
        ));
    }
    if bytes[4..6] != CLASS_64_LITTLE {
        return Err("unsupported ELF file (not 64-bit little-endian)".to_owned());
    }
    let machine = field::<2>(bytes, 0x12)?;
    if machine != MACHINE_CUDA {
        return Err(format!(
            "unsupported ELF file (machine {machine}, a cubin has {MACHINE_CUDA})"
        ));
    }
    check_segments(bytes)?;
    check_sections(bytes)
}

fn check_segments(bytes: &[u8]) -> Result<(), String> {
    let offset = field::<8>(bytes, 0x20)?;
    let count = field::<2>(bytes, 0x38)?;
    for header in table(
        bytes,
        "program headers",
        offset,
        count,
        field::<2>(bytes, 0x36)?,
        SEGMENT_SIZE,
    )? {
        within(
            bytes,
            "a segment",
            field::<8>(header, 0x08)?,
            field::<8>(header, 0x20)?,
        )?;
    }
    Ok(())
}

fn check_sections(bytes: &[u8]) -> Result<(), String> {
    let offset = field::<8>(bytes, 0x28)?;
    let count = field::<2>(bytes, 0x3c)?;
    for header in table(
        bytes,
        "section headers",
        offset,
        count,
        field::<2>(bytes, 0x3a)?,
        SECTION_SIZE,
    )? {
        if !SECTIONS_WITHOUT_BYTES.contains(&field::<4>(header, 0x04)?) {
            within(
                bytes,
                "a section",
                field::<8>(header, 0x18)?,
                field::<8>(header, 0x20)?,
            )?;
        }
    }
    Ok(())
}

/// Returns the entries of a header table.
fn table<'a>(
    bytes: &'a [u8],
    what: &str,
    offset: u64,
    count: u64,
    size: u64,
    expected: u64,
) -> Result<std::slice::ChunksExact<'a, u8>, String> {
    if count > 0 && size != expected {
        return Err(format!(
            "damaged cubin ({what} of {size} bytes, expected {expected})"
        ));
    }
    let range = within(bytes, what, offset, count * expected)?;
    // The header sizes are small constants.
    Ok(bytes[range].chunks_exact(expected as usize))
}

/// Returns the range of `length` bytes at `offset`, if it is within the file.
fn within(bytes: &[u8], what: &str, offset: u64, length: u64) -> Result<Range<usize>, String> {
    let start = usize::try_from(offset);
    let end = offset.checked_add(length).map(usize::try_from);
    match (start, end) {
        (Ok(start), Some(Ok(end))) if end <= bytes.len() => Ok(start..end),
        _ => Err(format!(
            "truncated or damaged cubin ({} bytes, {what} of {length} bytes at offset {offset})",
            bytes.len()
        )),
    }
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Result<u64, String> {
    number::<N>(bytes, offset)
        .ok_or_else(|| format!("truncated cubin (in a header of {} bytes)", bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_for_another_machine_is_no_cubin() {
        let mut program = vec![0; 128];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[0x12] = 62;
        assert_eq!(
            check(&program),
            Err("unsupported ELF file (machine 62, a cubin has 190)".to_owned())
        );
        program[4] = 1;
        assert_eq!(
            check(&program),
            Err("unsupported ELF file (not 64-bit little-endian)".to_owned())
        );
    }

    #[test]
    fn sizes_that_overflow_are_outside() {
        assert!(within(&[0; 8], "a section", u64::MAX, 2).is_err());
        assert!(within(&[0; 8], "a section", 4, u64::MAX).is_err());
        assert_eq!(within(&[0; 8], "a section", 4, 4), Ok(4..8));
        assert!(within(&[0; 8], "a section", 4, 5).is_err());
    }
}
