//! Tile IR: bytecode of the CUDA Tile programming model, which the driver compiles.

const MAGIC: &[u8] = b"\x7fTileIR\0";
/// The magic number and the version: major and minor have one byte each, the patch version has two.
const HEADER_SIZE: usize = 12;

pub(super) fn is_tile_ir(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns an error unless `bytes`, which start like Tile IR, are complete bytecode.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    // The header is followed at least by the end marker, a zero byte.
    if bytes.len() <= HEADER_SIZE {
        return Err(format!(
            "truncated Tile IR ({} bytes, the header has {HEADER_SIZE})",
            bytes.len()
        ));
    }
    Ok(())
}
