//! Copies whose stores bypass the CPU's caches.

/// Copies `source` to `target`, which the device reads next. The stores bypass the caches on
/// x86-64: the device reads memory that is modified in the cache of a core at half the speed.
///
/// # Panics
///
/// Panics if the lengths differ.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn copy_past_cache(target: &mut [u8], source: &[u8]) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    assert_eq!(
        target.len(),
        source.len(),
        "the lengths of a slot and its tile"
    );
    // SAFETY: every pattern of bits is valid for bytes and for vectors of integers.
    let (head, vectors, tail) = unsafe { target.align_to_mut::<__m128i>() };
    let (first, rest) = source.split_at(head.len());
    let (chunks, last) = rest.as_chunks::<16>();
    head.copy_from_slice(first);
    for (vector, chunk) in vectors.iter_mut().zip(chunks) {
        // SAFETY: 16 bytes can be read from the chunk, at any alignment.
        let value = unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) };
        // SAFETY: the vector is valid for writes and aligned. The fence below orders the store
        // before any access by another thread or the device.
        unsafe { _mm_stream_si128(vector, value) };
    }
    tail.copy_from_slice(last);
    // SAFETY: x86-64 has this instruction.
    unsafe { _mm_sfence() };
}

/// Copies `source` to `target`.
///
/// # Panics
///
/// Panics if the lengths differ.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) fn copy_past_cache(target: &mut [u8], source: &[u8]) {
    target.copy_from_slice(source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_at_any_alignment() {
        let source: Vec<u8> = (0..300_u32).map(|byte| (byte * 7) as u8).collect();
        let step = if cfg!(miri) { 3 } else { 1 };
        for from in (0..4).step_by(step) {
            for to in (0..17).step_by(step) {
                for length in [0, 1, 15, 16, 17, 31, 64, 200] {
                    let mut target = [0xAA; 300];
                    copy_past_cache(&mut target[to..to + length], &source[from..from + length]);
                    assert_eq!(target[to..to + length], source[from..from + length]);
                    assert!(
                        target[..to]
                            .iter()
                            .chain(&target[to + length..])
                            .all(|byte| *byte == 0xAA)
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "length")]
    fn lengths_that_differ_panic() {
        copy_past_cache(&mut [0; 32], &[0; 33]);
    }
}
