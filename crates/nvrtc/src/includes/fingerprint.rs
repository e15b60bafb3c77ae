//! A hash of file contents.

/// Computes the 128-bit FNV-1a hash, which is the same on every machine and for every version of
/// this program. It need not be collision-resistant against attacks: only the user can write to the
/// cache.
pub(super) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = parts.into_iter().flatten();
    bytes.fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_the_published_function() {
        assert_eq!(
            fingerprint([b"".as_slice()]),
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        );
        assert_eq!(
            fingerprint([b"a".as_slice()]),
            0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964
        );
        assert_eq!(
            fingerprint([b"foo".as_slice(), b"bar"]),
            fingerprint([b"foobar".as_slice()])
        );
    }
}
