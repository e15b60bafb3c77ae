//! Keys of cache entries.

use super::entry::checksum;

/// Everything that decides what an entry of a [`DiskCache`](super::DiskCache) holds.
///
/// Two keys are one if they have the same kind and the same parts in the same order, whatever the bytes of the parts are.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CacheKey {
    bytes: Vec<u8>,
}

impl CacheKey {
    /// Creates a key of a kind of entries, such as `ptx`, without parts.
    #[must_use]
    #[inline]
    pub fn new(kind: &str) -> Self {
        Self { bytes: Vec::new() }.with("kind", kind.as_bytes())
    }

    /// Returns a key of a kind of entries that are loaded as code without another check. No key of [`CacheKey::new`] equals it.
    ///
    /// # Safety
    ///
    /// - Only the unmodified output of a compiler or a linker is put under the key, and under keys that are made from it.
    #[must_use]
    #[inline]
    pub unsafe fn of_code(kind: &str) -> Self {
        Self { bytes: Vec::new() }.with("code", kind.as_bytes())
    }

    /// Adds a part.
    #[must_use]
    #[inline]
    pub fn with(mut self, name: &str, value: &[u8]) -> Self {
        for text in [name.as_bytes(), value] {
            // The lengths tell where a part ends, so that no two lists of parts have the same bytes.
            self.bytes.extend((text.len() as u64).to_le_bytes());
            self.bytes.extend(text);
        }
        self
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns a number that differs for almost all keys.
    #[inline]
    pub(super) fn digest(&self) -> u128 {
        const SEED: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = (1 << 88) + 0x13b;
        let mix = |digest: u128, byte: &u8| (digest ^ u128::from(*byte)).wrapping_mul(PRIME);
        self.bytes.iter().fold(SEED, mix) ^ u128::from(checksum(&[&self.bytes]))
    }
}
