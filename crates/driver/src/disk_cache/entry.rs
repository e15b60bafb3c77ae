//! The format of an entry: a header, the key, the contents.

/// The first bytes of an entry, ending with the format version.
const MAGIC: [u8; 8] = *b"curium\x001";
/// The magic number, the lengths of key and contents, and a checksum of both.
const HEADER: usize = 32;

/// The reason why an entry cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// The entry is valid but belongs to another key.
    OtherKey,
    /// The entry is damaged, or the file is not an entry.
    Broken,
}

/// Encodes an entry with `contents` under `key`.
pub(super) fn encode(key: &[u8], contents: &[u8]) -> Vec<u8> {
    let key_len = key.len() as u64;
    let len = contents.len() as u64;
    let mut entry = Vec::with_capacity(HEADER + key.len() + contents.len());
    entry.extend(MAGIC);
    for number in [key_len, len, checksum(&[key, contents])] {
        entry.extend(number.to_le_bytes());
    }
    entry.extend(key);
    entry.extend(contents);
    entry
}

/// Returns the contents of an entry if it is valid and belongs to `key`.
pub(super) fn decode<'a>(entry: &'a [u8], key: &[u8]) -> Result<&'a [u8], Fault> {
    let (header, body) = entry.split_at_checked(HEADER).ok_or(Fault::Broken)?;
    let (magic, numbers) = header.split_at(MAGIC.len());
    let [key_len, len, sum] = numbers.as_chunks::<8>().0 else {
        return Err(Fault::Broken);
    };
    let (entry_key, contents) = usize::try_from(u64::from_le_bytes(*key_len))
        .ok()
        .and_then(|key_len| body.split_at_checked(key_len))
        .ok_or(Fault::Broken)?;
    if magic != MAGIC
        || contents.len() as u64 != u64::from_le_bytes(*len)
        || checksum(&[entry_key, contents]) != u64::from_le_bytes(*sum)
    {
        return Err(Fault::Broken);
    }
    if entry_key == key {
        Ok(contents)
    } else {
        Err(Fault::OtherKey)
    }
}

/// Computes a checksum that detects damage by a disk or a crash. Words are mixed by multiplication
/// and rotation; the last word of each part is padded with zeros, and the length of the part
/// follows.
pub(super) fn checksum(parts: &[&[u8]]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = PRIME;
    for part in parts {
        let (words, remainder) = part.as_chunks::<8>();
        let mut last = [0; 8];
        last[..remainder.len()].copy_from_slice(remainder);
        for word in words.iter().chain([&last]) {
            sum = (sum ^ u64::from_le_bytes(*word))
                .wrapping_mul(PRIME)
                .rotate_left(29);
        }
        sum = (sum ^ part.len() as u64)
            .wrapping_mul(PRIME)
            .rotate_left(29);
    }
    (sum ^ sum >> 32).wrapping_mul(PRIME)
}
