//! Keys of cache entries.

use super::entry::checksum;

/// The key of an entry in a [`DiskCache`](super::DiskCache): everything that determines its
/// contents.
///
/// Two keys are equal if they have the same kind and the same parts in the same order. The bytes of
/// a part are arbitrary.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CacheKey {
    bytes: Vec<u8>,
}

impl CacheKey {
    /// Creates a key without parts. `kind` names the kind of entry, such as `ptx`.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self { bytes: Vec::new() }.with("kind", kind.as_bytes())
    }

    /// Creates a key for entries that are loaded as code without further checks. No key created
    /// with [`CacheKey::new`] equals it.
    ///
    /// # Safety
    ///
    /// - Only unmodified output of a compiler or linker is stored under the key, or under keys
    ///   derived from it.
    #[must_use]
    pub unsafe fn for_code(kind: &str) -> Self {
        Self { bytes: Vec::new() }.with("code", kind.as_bytes())
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, name: &str, value: &[u8]) -> Self {
        for text in [name.as_bytes(), value] {
            // The length delimits the part, so that different lists of parts have different bytes.
            self.bytes.extend((text.len() as u64).to_le_bytes());
            self.bytes.extend(text);
        }
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns a digest of the key.
    pub(super) fn digest(&self) -> u128 {
        const SEED: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = (1 << 88) + 0x13b;
        let digest = self.bytes.iter().fold(SEED, |digest, byte| {
            (digest ^ u128::from(*byte)).wrapping_mul(PRIME)
        });
        digest ^ u128::from(checksum(&[&self.bytes]))
    }
}
