//! Tile IR: bytecode of the Tile programming model, which the driver compiles.

const MAGIC: &[u8] = b"\x7fTileIR\0";
/// The magic number, and the version: one byte for each of its first two parts, two for the third.
const HEADER_SIZE: usize = 12;

#[inline]
pub(super) fn is_tile_ir(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns why `bytes`, which begin like Tile IR, are no whole bytecode.
#[inline]
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    // At least the mark of the end, a zero, follows the header.
    if bytes.len() <= HEADER_SIZE {
        return Err(format!("the Tile IR is cut off: it has {} bytes, and its header {HEADER_SIZE}", bytes.len()));
    }
    Ok(())
}
