//! Cubins and fat binaries with damage that a driver does not expect.

/// The size of an ELF header, and of a section header, in bytes.
const HEADER: usize = 64;
/// The size of a symbol in bytes.
const SYMBOL: usize = 24;
/// The type of a symbol table section.
const SYMBOLS: u64 = 2;
/// A fat binary from the compiler: a header, followed by entries with a header each.
const FAT_BINARY: &[u8] = include_bytes!("../../../crates/driver/tests/images/bump.fatbin");
const FAT_HEADER: usize = 16;
const ENTRY_HEADER: usize = 64;

/// A seeded random number generator.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// Returns a number that is unlikely to be valid in a field.
    fn odd(&mut self) -> u64 {
        let any = self.next();
        [
            0,
            1,
            any & 0xff,
            any & 0xffff,
            any,
            u64::MAX,
            u64::MAX >> 1,
            1 << 63,
            0xfff1,
            1 << 32,
        ][self.below(10)]
    }
}

/// Returns one of `cubins` with the damage of number `index`; every second one is wrapped in a fat
/// binary for an architecture such as 90.
pub(crate) fn damaged(cubins: &[Vec<u8>], architecture: u32, index: u64) -> Vec<u8> {
    let mut numbers = Numbers(fastrand::Rng::with_seed(index));
    let mut image = cubins[numbers.below(cubins.len())].clone();
    match index % 8 {
        0..4 => damage_symbol(&mut image, &mut numbers),
        4 => damage_section(&mut image, &mut numbers),
        5 => damage_bytes(&mut image, &mut numbers),
        6 => damage_word(&mut image, &mut numbers),
        _ => image.truncate(numbers.below(image.len())),
    }
    if index / 8 % 2 == 1 {
        image = fat_binary(&image, architecture);
        if index / 16 % 4 == 3 {
            let offset = numbers.below(FAT_HEADER + ENTRY_HEADER);
            image[offset] ^= 1 << numbers.below(8);
        }
    }
    image
}

/// Overwrites the section, the value or the size of one symbol.
fn damage_symbol(image: &mut [u8], numbers: &mut Numbers) {
    let Some((start, length)) = symbols(image) else {
        return;
    };
    let symbol = start + SYMBOL * numbers.below(length / SYMBOL);
    let (offset, size) = [(6, 2), (8, 8), (16, 8)][numbers.below(3)];
    write(image, symbol + offset, size, numbers.odd());
}

/// Overwrites a field of one section header.
fn damage_section(image: &mut [u8], numbers: &mut Numbers) {
    let section =
        number(image, 0x28, 8) as usize + HEADER * numbers.below(number(image, 0x3c, 2) as usize);
    let (offset, size) = [
        (0, 4),
        (4, 4),
        (0x18, 8),
        (0x20, 8),
        (0x28, 4),
        (0x2c, 4),
        (0x38, 8),
    ][numbers.below(7)];
    write(image, section + offset, size, numbers.odd());
}

/// Changes up to four bytes anywhere.
fn damage_bytes(image: &mut [u8], numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let offset = numbers.below(image.len());
        image[offset] = numbers.next() as u8;
    }
}

/// Overwrites an aligned 4-byte word.
fn damage_word(image: &mut [u8], numbers: &mut Numbers) {
    let offset = numbers.below(image.len() / 4) * 4;
    write(image, offset, 4, numbers.odd());
}

/// Returns the offset and the size of the symbol table of an ELF file.
fn symbols(image: &[u8]) -> Option<(usize, usize)> {
    let table = number(image, 0x28, 8) as usize;
    let count = number(image, 0x3c, 2) as usize;
    let mut sections = (0..count).map(|index| table + HEADER * index);
    let section = sections.find(|section| number(image, section + 4, 4) == SYMBOLS)?;
    Some((
        number(image, section + 0x18, 8) as usize,
        number(image, section + 0x20, 8) as usize,
    ))
}

/// Returns a fat binary that contains only `cubin`.
pub(crate) fn fat_binary(cubin: &[u8], architecture: u32) -> Vec<u8> {
    let padded = cubin.len().next_multiple_of(8);
    let mut image = FAT_BINARY[..FAT_HEADER + ENTRY_HEADER].to_vec();
    write(&mut image, 8, 8, (ENTRY_HEADER + padded) as u64);
    let entry = FAT_HEADER;
    write(&mut image, entry, 2, 2);
    write(&mut image, entry + 4, 4, ENTRY_HEADER as u64);
    write(&mut image, entry + 8, 8, padded as u64);
    write(&mut image, entry + 16, 4, 0);
    write(&mut image, entry + 28, 4, u64::from(architecture));
    image.extend(cubin);
    image.resize(FAT_HEADER + ENTRY_HEADER + padded, 0);
    image
}

/// Returns the little-endian number of `size` bytes at `at`, or 0 past the end of the image.
fn number(image: &[u8], at: usize, size: usize) -> u64 {
    let bytes = image.get(at..at + size).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn write(image: &mut [u8], at: usize, size: usize, value: u64) {
    if let Some(place) = image.get_mut(at..at + size) {
        place.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}
