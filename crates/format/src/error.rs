//! Problems of malformed input.

use core::fmt;

/// The problem of an input that is truncated, damaged or not supported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A cubin is shorter than its header.
    ShortCubin {
        /// The length of the file in bytes.
        len: usize,
    },
    /// An ELF file does not have 64-bit addresses in little-endian order.
    ElfClass,
    /// An ELF file is for another machine.
    ElfMachine {
        /// The machine in its header.
        machine: u64,
    },
    /// A header table of a cubin has entries of an unknown size.
    CubinTable {
        /// The name of the table.
        table: &'static str,
        /// The size of an entry in bytes.
        size: u64,
        /// The size that the format requires.
        expected: u64,
    },
    /// A part of a cubin is out of bounds.
    CubinRange {
        /// The length of the file in bytes.
        len: usize,
        /// The name of the part.
        part: &'static str,
        /// The offset of the part in bytes.
        offset: u64,
        /// The length of the part in bytes.
        length: u64,
    },
    /// A fat binary is shorter than its header.
    ShortFatBinary {
        /// The length of the binary in bytes.
        len: usize,
    },
    /// The header of a fat binary is too short.
    FatBinaryHeader {
        /// The length that the header states, in bytes.
        header: u64,
    },
    /// A fat binary is shorter than its header states.
    TruncatedFatBinary {
        /// The length of the binary in bytes.
        len: usize,
        /// The length of the header in bytes.
        header: u64,
        /// The length of the content that the header states, in bytes.
        content: u64,
    },
    /// The header of an image in a fat binary is truncated, or contradicts itself.
    FatBinaryEntry {
        /// The number of bytes from the header to the end of the fat binary.
        remaining: usize,
    },
    /// Tile IR is shorter than its header.
    ShortTileIr {
        /// The length of the bytecode.
        len: usize,
    },
    /// The declaration of a parameter in PTX cannot be read.
    Parameter,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ShortCubin { len } => write!(
                formatter,
                "truncated cubin ({len} bytes, the header has {})",
                crate::elf::HEADER_SIZE
            ),
            Self::ElfClass => {
                formatter.write_str("unsupported ELF file (not 64-bit little-endian)")
            }
            Self::ElfMachine { machine } => write!(
                formatter,
                "unsupported ELF file (machine {machine}, a cubin has {})",
                crate::elf::MACHINE_CUDA
            ),
            Self::CubinTable {
                table,
                size,
                expected,
            } => write!(
                formatter,
                "damaged cubin ({table} of {size} bytes, expected {expected})"
            ),
            Self::CubinRange {
                len,
                part,
                offset,
                length,
            } => write!(
                formatter,
                "truncated or damaged cubin ({len} bytes, {part} of {length} bytes at offset {offset})"
            ),
            Self::ShortFatBinary { len } => {
                write!(formatter, "truncated or damaged fat binary ({len} bytes)")
            }
            Self::FatBinaryHeader { header } => write!(
                formatter,
                "damaged fat binary (header of {header} bytes, expected {})",
                crate::fat_binary::HEADER_SIZE
            ),
            Self::TruncatedFatBinary {
                len,
                header,
                content,
            } => write!(
                formatter,
                "truncated fat binary ({len} bytes, header of {header} bytes, content of {content} bytes)"
            ),
            Self::FatBinaryEntry { remaining } => write!(
                formatter,
                "truncated or damaged image in the fat binary ({remaining} bytes before the end)"
            ),
            Self::ShortTileIr { len } => write!(
                formatter,
                "truncated Tile IR ({len} bytes, the header has {})",
                crate::tile_ir::HEADER_SIZE
            ),
            Self::Parameter => {
                formatter.write_str("the declaration of a PTX parameter cannot be read")
            }
        }
    }
}

impl core::error::Error for Error {}
