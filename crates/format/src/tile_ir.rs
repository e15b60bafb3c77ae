//! Tile IR: bytecode of the CUDA Tile programming model, which the driver compiles.

use crate::Error;

/// The first bytes of Tile IR.
pub const MAGIC: [u8; 8] = *b"\x7fTileIR\0";
/// The magic number and the version: major and minor have one byte each, the patch version has two.
pub(crate) const HEADER_SIZE: usize = 12;

/// Returns `true` if `bytes` begin like Tile IR.
#[must_use]
pub fn is_tile_ir(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns an error unless `bytes`, which begin like Tile IR, are complete bytecode.
///
/// # Errors
///
/// The problem, if the bytecode is truncated.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    // The header is followed at least by the end marker, a zero byte.
    if bytes.len() <= HEADER_SIZE {
        return Err(Error::ShortTileIr { len: bytes.len() });
    }
    Ok(())
}
