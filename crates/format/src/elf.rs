//! ELF, the format of cubins: detection of truncated files, and the names of variables.

use crate::{Error, number, position};

/// The first bytes of an ELF file.
pub const MAGIC: [u8; 4] = *b"\x7fELF";
/// The class of 64-bit addresses, and little-endian byte order.
const CLASS_64_LITTLE: [u8; 2] = [2, 1];
/// `EM_CUDA`.
pub(crate) const MACHINE_CUDA: u64 = 190;

pub(crate) const HEADER_SIZE: usize = 64;
/// The size of an entry of the section header table.
const SECTION_SIZE: usize = 64;
/// The size of an entry of the program header table.
const SEGMENT_SIZE: usize = 56;
/// The size of an entry of the symbol table.
const SYMBOL_SIZE: usize = 24;

/// The type of a symbol table, `SHT_SYMTAB`.
const SECTION_SYMBOLS: u64 = 2;
/// Types of sections that have no bytes in the file: `SHT_NOBITS`, and NVIDIA's types for
/// uninitialized variables, local memory, shared memory and reserved shared memory.
const SECTIONS_WITHOUT_BYTES: [u64; 5] = [8, 0x7000_0007, 0x7000_0009, 0x7000_000a, 0x7000_0015];
/// The type of a symbol of a variable, `STT_OBJECT`.
const SYMBOL_OBJECT: u8 = 1;

/// The section of a symbol that is not defined in the file, `SHN_UNDEF`.
const UNDEFINED: u64 = 0;

/// Returns `true` if `bytes` begin like an ELF file.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns an error unless `bytes`, which begin like ELF, are a complete cubin.
///
/// # Errors
///
/// The problem, if the file is truncated, is for another machine, or has parts out of bounds.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    let header: &[u8; HEADER_SIZE] = bytes
        .first_chunk()
        .ok_or(Error::ShortCubin { len: bytes.len() })?;
    if header[4..6] != CLASS_64_LITTLE {
        return Err(Error::ElfClass);
    }
    let machine = field::<2>(header, 0x12);
    if machine != MACHINE_CUDA {
        return Err(Error::ElfMachine { machine });
    }
    let segments = Table {
        name: "program headers",
        offset: field::<8>(header, 0x20),
        entry_size: field::<2>(header, 0x36),
        count: field::<2>(header, 0x38),
    };
    for segment in segments.entries::<SEGMENT_SIZE>(bytes)? {
        check_range(
            bytes,
            "a segment",
            field::<8>(segment, 0x08),
            field::<8>(segment, 0x20),
        )?;
    }
    let sections = Table {
        name: "section headers",
        offset: field::<8>(header, 0x28),
        entry_size: field::<2>(header, 0x3a),
        count: field::<2>(header, 0x3c),
    };
    for section in sections.entries::<SECTION_SIZE>(bytes)? {
        if !SECTIONS_WITHOUT_BYTES.contains(&field::<4>(section, 0x04)) {
            check_range(
                bytes,
                "a section",
                field::<8>(section, 0x18),
                field::<8>(section, 0x20),
            )?;
        }
    }
    Ok(())
}

/// Returns the names of the variables in the symbol table of a cubin, in its order. A damaged file
/// has none.
pub fn variables(file: &[u8]) -> impl Iterator<Item = &str> {
    let symbols = SymbolTable::read(file).unwrap_or_default();
    symbols
        .entries
        .iter()
        .filter(|symbol| symbol[4] & 0xf == SYMBOL_OBJECT)
        // Newer cubins refer to reserved shared memory by objects without a section.
        .filter(|symbol| field::<2>(*symbol, 6) != UNDEFINED)
        .filter_map(move |symbol| symbols.name(symbol))
}

/// A header table.
struct Table {
    name: &'static str,
    offset: u64,
    entry_size: u64,
    count: u64,
}

impl Table {
    fn entries<'a, const N: usize>(&self, bytes: &'a [u8]) -> Result<&'a [[u8; N]], Error> {
        let expected = N as u64;
        if self.count > 0 && self.entry_size != expected {
            return Err(Error::CubinTable {
                table: self.name,
                size: self.entry_size,
                expected,
            });
        }
        let table = check_range(bytes, self.name, self.offset, self.count * expected)?;
        Ok(table.as_chunks().0)
    }
}

/// The symbol table of an ELF file.
#[derive(Clone, Copy, Default)]
struct SymbolTable<'a> {
    entries: &'a [[u8; SYMBOL_SIZE]],
    /// The names, each of which ends with a NUL.
    names: &'a [u8],
}

impl<'a> SymbolTable<'a> {
    /// Returns `None` if the file is damaged or has no symbol table.
    fn read(file: &'a [u8]) -> Option<Self> {
        let sections = file
            .get(position::<8>(file, 0x28)?..)?
            .as_chunks::<SECTION_SIZE>()
            .0;
        let count = position::<2>(file, 0x3c)?;
        let sections = sections.get(..count.min(sections.len()))?;
        let table = sections
            .iter()
            .find(|section| field::<4>(*section, 0x04) == SECTION_SYMBOLS)?;
        let names = sections.get(position::<4>(table, 0x28)?)?;
        Some(Self {
            entries: contents(file, table)?.as_chunks().0,
            names: contents(file, names)?,
        })
    }

    fn name(&self, symbol: &[u8; SYMBOL_SIZE]) -> Option<&'a str> {
        let start = position::<4>(symbol, 0)?;
        let name = self.names.get(start..)?.split(|byte| *byte == 0).next()?;
        core::str::from_utf8(name).ok()
    }
}

/// Returns the contents of a section, if in bounds.
fn contents<'a>(file: &'a [u8], section: &[u8; SECTION_SIZE]) -> Option<&'a [u8]> {
    let start = position::<8>(section, 0x18)?;
    let len = position::<8>(section, 0x20)?;
    file.get(start..)?.get(..len)
}

/// Returns the `length` bytes at `offset`, if they are within the file.
fn check_range<'a>(
    bytes: &'a [u8],
    part: &'static str,
    offset: u64,
    length: u64,
) -> Result<&'a [u8], Error> {
    let start = usize::try_from(offset).ok();
    let len = usize::try_from(length).ok();
    start
        .and_then(|start| bytes.get(start..))
        .and_then(|bytes| bytes.get(..len?))
        .ok_or(Error::CubinRange {
            len: bytes.len(),
            part,
            offset,
            length,
        })
}

/// Returns a field of a header of fixed size, which contains it.
fn field<const N: usize>(header: &[u8], offset: usize) -> u64 {
    number::<N>(header, offset).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_for_another_machine_is_no_cubin() {
        let mut program = [0; 128];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[0x12] = 62;
        assert_eq!(check(&program), Err(Error::ElfMachine { machine: 62 }));
        program[4] = 1;
        assert_eq!(check(&program), Err(Error::ElfClass));
    }

    #[test]
    fn sizes_that_overflow_are_outside() {
        for (offset, length) in [(u64::MAX, 2), (4, u64::MAX), (4, 5), (9, 0)] {
            assert!(check_range(&[0; 8], "a section", offset, length).is_err());
        }
        assert_eq!(check_range(&[7; 8], "a section", 4, 4), Ok(&[7; 4][..]));
    }
}
