//! Fat binaries: images for several targets, of which those with PTX run here.

use std::io::Read as _;

use curium_format::fat_binary::{self, Compression, Entry, EntryKind};
use curium_sys::CUresult;

use crate::image::{Refusal, begins_with};

/// The maximum size of a decompressed image in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// Returns the bytes of a fat binary, or of the one that a record points to.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a whole binary or record.
pub(crate) unsafe fn bytes_at<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller guarantees the image, and the magic number holds no NUL.
    let is_record = unsafe { begins_with(image, &fat_binary::RECORD_MAGIC) };
    let binary = if is_record {
        // SAFETY: the pointer is the third member of a record: after the magic number and a
        // version.
        unsafe { image.wrapping_add(8).cast::<*const u8>().read_unaligned() }
    } else {
        image
    };
    if binary.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees the image or the binary of the record, and the magic number
    // holds no NUL.
    if !unsafe { begins_with(binary, &fat_binary::MAGIC) } {
        return None;
    }
    // SAFETY: a fat binary has a whole header.
    let header = unsafe { binary.cast::<[u8; fat_binary::HEADER_SIZE]>().read() };
    let size = fat_binary::size(&header).filter(|size| *size <= isize::MAX as usize)?;
    // SAFETY: the caller guarantees that the binary is complete, and its header contains its
    // length.
    Some(unsafe { std::slice::from_raw_parts(binary, size) })
}

/// Returns the best PTX for a device of this compute capability: the PTX of the highest target that
/// runs on it.
pub(crate) fn ptx_for(binary: &[u8], device: u32) -> Result<String, Refusal> {
    let entries: Result<Vec<Entry<'_>>, _> =
        fat_binary::entries(binary).and_then(Iterator::collect);
    let entries = entries.map_err(|_| damaged())?;
    let candidates = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Ptx && entry.target.runs_on(device));
    let best = candidates.max_by_key(|entry| entry.target).ok_or_else(|| {
        let held: Vec<String> = entries.iter().map(describe).collect();
        let log = format!("the fat binary has no PTX for the device (sm_{device}); it contains {}", held.join(", "));
        let hint = "the simulator runs PTX only (nvcc adds it with `-gencode arch=compute_75,code=compute_75`)";
        Refusal::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, &format!("{log}; {hint}"))
    })?;
    let mut text = contents(best).ok_or_else(damaged)?;
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

/// Returns the image without its compression; `None` if it is damaged.
fn contents(entry: &Entry<'_>) -> Option<Vec<u8>> {
    let limit = entry.decompressed_size;
    let size = usize::try_from(limit).ok().filter(|_| limit <= MAX_SIZE)?;
    let mut contents = match entry.compression {
        Compression::None => entry.payload.to_vec(),
        Compression::Lz4 => lz4_flex::block::decompress(entry.payload, size).ok()?,
        Compression::Zstd => {
            let mut contents = Vec::new();
            let decoder = ruzstd::decoding::StreamingDecoder::new(entry.payload).ok()?;
            decoder.take(limit).read_to_end(&mut contents).ok()?;
            contents
        }
        _ => return None,
    };
    if let Some(part) = entry.part {
        let start = usize::try_from(part.start).ok()?;
        let end = start.checked_add(usize::try_from(part.len).ok()?)?;
        contents = contents.get(start..end)?.to_vec();
    }
    Some(contents)
}

/// Returns the kind and the target, for a log.
fn describe(entry: &Entry<'_>) -> String {
    let kind = match entry.kind {
        EntryKind::Ptx => "PTX",
        EntryKind::Cubin => "machine code",
        EntryKind::LtoIr => "LTO IR",
        _ => "an image of an unknown kind",
    };
    format!("{kind} for {}", entry.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = include_bytes!("../../tests/images/plain.fatbin");
    const WITH_LZ4: &[u8] = include_bytes!("../../tests/images/lz4.fatbin");
    const WITH_ZSTD: &[u8] = include_bytes!("../../tests/images/zstd.fatbin");
    const COMPRESSED_TOGETHER: &[u8] = include_bytes!("../../tests/images/together.fatbin");
    const MACHINE: &[u8] = include_bytes!("../../tests/images/machine.fatbin");

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
                assert_eq!(target_in(binary, device).expect("no PTX"), target);
            }
            assert_eq!(
                target_in(binary, 120).expect("no PTX"),
                "sm_80",
                "families do not run elsewhere"
            );
            let refusal = ptx_for(binary, 70).expect_err("all targets are higher");
            assert_eq!(refusal.code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
        assert_eq!(target_in(COMPRESSED_TOGETHER, 89).expect("no PTX"), "sm_80");
        assert_eq!(target_in(COMPRESSED_TOGETHER, 90).expect("no PTX"), "sm_90");
    }

    #[test]
    fn machine_code_is_rejected_with_its_contents() {
        let refusal = ptx_for(MACHINE, 90).expect_err("there is no PTX");
        assert_eq!(refusal.code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        let expected = "has no PTX for the device (sm_90); it contains machine code for sm_75; ";
        assert!(refusal.log.contains(expected), "{}", refusal.log);
    }

    /// Decompresses images that are damaged anywhere: the result may be anything but a panic.
    #[test]
    fn damaged_images_cause_no_panic() {
        for binary in [PLAIN, WITH_LZ4, WITH_ZSTD, COMPRESSED_TOGETHER] {
            for end in 0..binary.len() {
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
