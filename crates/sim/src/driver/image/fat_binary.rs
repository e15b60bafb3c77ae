//! Fat binaries: images for several targets, of which those with PTX run here.
//!
//! A header contains the length of all entries. Each entry has a header with the kind of its image, the target and the compression,
//! followed by the image.

use std::io::Read;

use curium_sys::CUresult;

use super::{Refusal, begins_with};

/// The magic number of a fat binary.
const MAGIC: u32 = 0xba55_ed50;
/// The magic number of the record in a program's data that points to a fat binary.
const RECORD: u32 = 0x4662_43b1;
const HEADER_SIZE: usize = 16;
/// The part of an entry's header that all of them have.
const ENTRY_SIZE: usize = 64;

const PTX: u16 = 1;
const MACHINE_CODE: u16 = 2;
const LTO_IR: u16 = 8;
/// Several images that were compressed together: a count and a header for each follow the entry's.
const TOGETHER: u16 = 0x100;
/// The header of each of them.
const PART_SIZE: usize = 80;

const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FAMILY_SPECIFIC: u64 = 0x20_0000;

/// The maximum size of a decompressed image in bytes.
const MOST: u64 = 1 << 30;

/// One image.
struct Entry<'a> {
    kind: u16,
    /// The compute capability times ten, and the binding of the image to it.
    target: (u32, Bound),
    flags: u64,
    payload: &'a [u8],
    /// The length after decompression; 0 if the image is not compressed.
    size: u64,
    /// The start and the length of the image, if it was compressed with others.
    part: Option<(u32, u64)>,
}

/// The devices that an image runs on, in increasing order of preference.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Bound {
    /// Devices of its compute capability and later ones.
    None,
    /// Later devices of its family.
    Family,
    /// Only devices of its compute capability.
    Architecture,
}

/// Returns the bytes of a fat binary, or of the one that a record points to.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a whole binary or record.
pub(super) unsafe fn bytes_at<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller guarantees the image, and the magic number holds no NUL.
    let is_record = unsafe { begins_with(image, &RECORD.to_le_bytes()) };
    let binary = if is_record {
        // SAFETY: the pointer is the third member of a record: after the magic number and a version.
        unsafe { image.wrapping_add(8).cast::<*const u8>().read_unaligned() }
    } else {
        image
    };
    if binary.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees the image or the binary of the record, and the magic number holds no NUL.
    if !unsafe { begins_with(binary, &MAGIC.to_le_bytes()) } {
        return None;
    }
    // SAFETY: a fat binary has a whole header.
    let header = unsafe { std::slice::from_raw_parts(binary, HEADER_SIZE) };
    let size = u64_at(header, 8)
        .and_then(|content| usize::try_from(content).ok())?
        .checked_add(HEADER_SIZE)?;
    // SAFETY: the caller guarantees that the binary is complete, and its header contains its length.
    (size <= isize::MAX as usize).then(|| unsafe { std::slice::from_raw_parts(binary, size) })
}

/// Returns the best PTX for a device of this compute capability: the PTX of the highest target that runs on it.
pub(super) fn ptx_for(binary: &[u8], device: u32) -> Result<String, Refusal> {
    let entries = entries(binary).ok_or_else(damaged)?;
    let fitting = entries
        .iter()
        .filter(|entry| entry.kind == PTX && entry.runs_on(device));
    let best = fitting.max_by_key(|entry| entry.target).ok_or_else(|| {
        let held: Vec<String> = entries.iter().map(Entry::describe).collect();
        let log = format!("the fat binary has no PTX for the device (sm_{device}); it contains {}", held.join(", "));
        let hint = "the simulator runs PTX only (nvcc adds it with `-gencode arch=compute_75,code=compute_75`)";
        Refusal::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, &format!("{log}; {hint}"))
    })?;
    let mut text = best.contents().ok_or_else(damaged)?;
    // Text ends with NUL, and may be padded.
    text.truncate(
        text.iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len()),
    );
    String::from_utf8(text).map_err(|_| damaged())
}

fn damaged() -> Refusal {
    Refusal::new(
        CUresult::CUDA_ERROR_INVALID_IMAGE,
        "the fat binary is damaged",
    )
}

/// Returns the entries, or `None` if lengths are inconsistent.
fn entries(binary: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut remaining = binary.get(usize::from(u16_at(binary, 6)?)..)?;
    let mut entries = Vec::new();
    while !remaining.is_empty() {
        let header = remaining
            .get(..u32_at(remaining, 4)? as usize)
            .filter(|header| header.len() >= ENTRY_SIZE)?;
        let end = header
            .len()
            .checked_add(usize::try_from(u64_at(remaining, 8)?).ok()?)?;
        let stored = remaining.get(header.len()..end)?;
        let compressed = u32_at(header, 16)? as usize;
        let payload = if compressed == 0 {
            stored
        } else {
            stored.get(..compressed)?
        };
        let entry = Entry::new(header, payload)?;
        if entry.kind == TOGETHER {
            entries.extend(entry.parts(header)?);
        } else {
            entries.push(entry);
        }
        remaining = &remaining[end..];
    }
    Some(entries)
}

impl<'a> Entry<'a> {
    fn new(header: &[u8], payload: &'a [u8]) -> Option<Self> {
        let kind = u16_at(header, 0)?;
        let flags = u64_at(header, 40)?;
        let target = (u32_at(header, 28)?, bound(flags));
        Some(Self {
            kind,
            target,
            flags,
            payload,
            size: u64_at(header, 56)?,
            part: None,
        })
    }

    /// Returns the images that were compressed together as this one.
    fn parts(&self, header: &[u8]) -> Option<Vec<Self>> {
        let count = u32_at(header, ENTRY_SIZE)? as usize;
        let headers = header.get(ENTRY_SIZE + 8..)?.as_chunks::<PART_SIZE>().0;
        headers
            .get(..count)?
            .iter()
            .map(|header| {
                let part = Some((u32_at(header, 4)?, u64_at(header, 8)?));
                let target = (u32_at(header, 28)?, bound(u64_at(header, 40)?));
                Some(Self {
                    kind: u16_at(header, 0)?,
                    target,
                    part,
                    ..*self
                })
            })
            .collect()
    }

    fn runs_on(&self, device: u32) -> bool {
        match self.target {
            (target, Bound::None) => target <= device,
            (target, Bound::Family) => target <= device && target / 10 == device / 10,
            (target, Bound::Architecture) => target == device,
        }
    }

    /// Returns the image without its compression.
    fn contents(&self) -> Option<Vec<u8>> {
        let size = usize::try_from(self.size)
            .ok()
            .filter(|_| self.size <= MOST)?;
        let all = if self.flags & ZSTD != 0 {
            let mut contents = Vec::new();
            let decoder = ruzstd::decoding::StreamingDecoder::new(self.payload).ok()?;
            decoder.take(self.size).read_to_end(&mut contents).ok()?;
            contents
        } else if self.flags & LZ4 != 0 {
            lz4_flex::block::decompress(self.payload, size).ok()?
        } else {
            self.payload.to_vec()
        };
        let Some((start, length)) = self.part else {
            return Some(all);
        };
        let start = start as usize;
        all.get(start..start.checked_add(usize::try_from(length).ok()?)?)
            .map(<[u8]>::to_vec)
    }

    /// Returns the kind and the target, for a log.
    fn describe(&self) -> String {
        let (target, bound) = self.target;
        let kind = match self.kind {
            PTX => "PTX",
            MACHINE_CODE => "machine code",
            LTO_IR => "LTO IR",
            _ => "an image of an unknown kind",
        };
        let suffix = match bound {
            Bound::None => "",
            Bound::Family => "f",
            Bound::Architecture => "a",
        };
        format!("{kind} for sm_{target}{suffix}")
    }
}

fn bound(flags: u64) -> Bound {
    if flags & ARCHITECTURE_SPECIFIC != 0 {
        Bound::Architecture
    } else if flags & FAMILY_SPECIFIC != 0 {
        Bound::Family
    } else {
        Bound::None
    }
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = include_bytes!("../../../tests/images/plain.fatbin");
    const WITH_LZ4: &[u8] = include_bytes!("../../../tests/images/lz4.fatbin");
    const WITH_ZSTD: &[u8] = include_bytes!("../../../tests/images/zstd.fatbin");
    const COMPRESSED_TOGETHER: &[u8] = include_bytes!("../../../tests/images/together.fatbin");
    const MACHINE: &[u8] = include_bytes!("../../../tests/images/machine.fatbin");

    fn target_in(binary: &[u8], device: u32) -> Result<String, Refusal> {
        let text = ptx_for(binary, device)?;
        assert!(text.contains(".entry add("), "{text}");
        let target = text
            .lines()
            .find_map(|line| line.strip_prefix(".target "))
            .expect("PTX has a target");
        Ok(target.to_owned())
    }

    #[test]
    fn highest_supported_target_is_selected() {
        for binary in [PLAIN, WITH_LZ4, WITH_ZSTD] {
            for (device, target) in [
                (75, "sm_75"),
                (89, "sm_80"),
                (90, "sm_90a"),
                (100, "sm_100f"),
                (103, "sm_100f"),
            ] {
                assert_eq!(target_in(binary, device).expect("there is PTX"), target);
            }
            assert_eq!(
                target_in(binary, 120).expect("there is PTX"),
                "sm_80",
                "families do not run elsewhere"
            );
            let refusal = ptx_for(binary, 70).expect_err("all targets are higher");
            assert_eq!(refusal.code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
        assert_eq!(
            target_in(COMPRESSED_TOGETHER, 89).expect("there is PTX"),
            "sm_80"
        );
        assert_eq!(
            target_in(COMPRESSED_TOGETHER, 90).expect("there is PTX"),
            "sm_90"
        );
    }

    #[test]
    fn machine_code_is_rejected_with_its_contents() {
        let refusal = ptx_for(MACHINE, 90).expect_err("there is no PTX");
        assert_eq!(refusal.code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        let expected = "has no PTX for the device (sm_90); it contains machine code for sm_75; ";
        assert!(refusal.log.contains(expected), "{}", refusal.log);
    }

    #[test]
    fn damaged_images_are_not_read_past_the_end() {
        for binary in [PLAIN, WITH_LZ4, WITH_ZSTD, COMPRESSED_TOGETHER] {
            for end in 0..binary.len() {
                // The result may be anything but a panic.
                _ = ptx_for(&binary[..end], 90);
            }
            for position in 0..binary.len() {
                let mut damaged = binary.to_vec();
                damaged[position] ^= 0xff;
                _ = ptx_for(&damaged, 90);
            }
        }
    }
}
