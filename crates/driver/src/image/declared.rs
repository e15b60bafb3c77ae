//! Declarations of an image that the driver cannot report.

use curium_sys::Function;

use super::ptx::{self, Entry};
use super::{Image, ImageKind, number};
use crate::Driver;

/// Declarations of an image that the driver cannot report.
#[derive(Clone, Default)]
pub(crate) struct Declared {
    /// The kernels of PTX text, if the driver lacks the function that reports parameters.
    pub(crate) entries: Box<[Entry]>,
    /// The names of global variables, which no driver reports; empty for a fatbin.
    pub(crate) variables: Box<[Box<str>]>,
}

impl Declared {
    /// Reads the declarations of `image`. `function` is the driver function that reports the parameters of its kernels.
    pub(crate) fn by(image: &Image<'_>, driver: &Driver, function: Function) -> Self {
        let entries = match image.as_ptx() {
            Some(text) if !driver.has(function) => ptx::entries(text),
            _ => Box::default(),
        };
        let variables = match (image.as_ptx(), image.kind) {
            (Some(text), _) => ptx::variables(text),
            (None, ImageKind::Cubin) => symbols(&image.bytes).unwrap_or_default().into(),
            (None, _) => Box::default(),
        };
        Self { entries, variables }
    }
}

/// The size of an entry of the section header table.
const SECTION_SIZE: usize = 64;

/// Returns the contents of a section, if in bounds.
fn contents<'a>(file: &'a [u8], section: &[u8; SECTION_SIZE]) -> Option<&'a [u8]> {
    let start = index(number::<8>(section, 0x18)?)?;
    let len = index(number::<8>(section, 0x20)?)?;
    file.get(start..)?.get(..len)
}

/// Returns the names of the data objects in the symbol table of an ELF file; `None` if the file is damaged.
fn symbols(file: &[u8]) -> Option<Vec<Box<str>>> {
    const SYMBOL_SIZE: usize = 24;
    const SYMBOLS: u64 = 2;
    const OBJECT: u8 = 1;
    let sections: Vec<&[u8; SECTION_SIZE]> = file
        .get(index(number::<8>(file, 0x28)?)?..)?
        .as_chunks::<SECTION_SIZE>()
        .0
        .iter()
        .take(index(number::<2>(file, 0x3c)?)?)
        .collect();
    let table = *sections
        .iter()
        .find(|section| number::<4>(**section, 0x04) == Some(SYMBOLS))?;
    let names = contents(file, sections.get(index(number::<4>(table, 0x28)?)?)?)?;
    let objects = contents(file, table)?
        .as_chunks::<SYMBOL_SIZE>()
        .0
        .iter()
        .filter(|symbol| symbol[4] & 0xf == OBJECT);
    Some(
        objects
            .filter_map(|symbol| symbol_name(symbol, names))
            .collect(),
    )
}

/// Returns the name of a symbol of the table, whose names `names` contains.
fn symbol_name(symbol: &[u8], names: &[u8]) -> Option<Box<str>> {
    let start = index(number::<4>(symbol, 0)?)?;
    let name = names.get(start..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(name).ok().map(Box::from)
}

fn index(value: u64) -> Option<usize> {
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../tests/images/bump.sm_75.cubin");

    #[test]
    fn cubin_data_objects_are_variables() {
        let names = symbols(CUBIN).expect("the cubin is whole");
        assert_eq!(names, ["counter".into(), "table".into(), "factor".into()]);
    }

    #[test]
    fn damaged_cubin_is_read_without_panic() {
        // Miri takes minutes for every position.
        let step = if cfg!(miri) { 101 } else { 1 };
        for length in (0..CUBIN.len()).step_by(step) {
            drop(symbols(&CUBIN[..length]));
        }
        for position in (0..CUBIN.len()).step_by(step) {
            let mut damaged = CUBIN.to_vec();
            damaged[position] = 0xff;
            drop(symbols(&damaged));
        }
    }
}
