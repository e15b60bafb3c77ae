//! Masks of the undefined bytes of a register.

/// Returns the mask of the first `bytes` bytes.
pub(crate) fn low(bytes: u32) -> u8 {
    if bytes >= 8 {
        u8::MAX
    } else {
        (1 << bytes) - 1
    }
}

/// Returns the bits of undefined bytes.
pub(crate) fn spread(bytes: u8) -> u64 {
    (0..8)
        .filter(|byte| bytes >> byte & 1 == 1)
        .fold(0, |bits, byte| bits | 0xff << (8 * byte))
}

/// Returns the bytes that contain undefined bits.
fn gather(bits: u64) -> u64 {
    (0..8)
        .filter(|byte| bits >> (8 * byte) & 0xff != 0)
        .fold(0, |bytes, byte| bytes | 1 << byte)
}

/// Returns the undefined bytes of a register of `size` bytes after a shift.
pub(crate) fn shift(bytes: u8, size: u32, amount: u64, left: bool, signed: bool) -> u64 {
    let width = size * 8;
    let bits = spread(bytes);
    let amount = (amount as u32).min(width);
    if left {
        return gather(bits.checked_shl(amount).unwrap_or(0));
    }
    let is_top_undefined = signed && bits >> (width - 1) & 1 == 1;
    let filled = if is_top_undefined && width < 64 {
        bits | u64::MAX << width
    } else {
        bits
    };
    let shifted = if is_top_undefined {
        filled.cast_signed() >> amount.min(63)
    } else {
        filled.checked_shr(amount).unwrap_or(0).cast_signed()
    };
    gather(shifted.cast_unsigned())
}
