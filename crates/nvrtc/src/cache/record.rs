//! Serialization of compiled programs.

use crate::{CompiledProgram, Program, diagnostic};

/// Writes numbers and texts consecutively.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

/// Reads the output of a [`Writer`]; its methods return `None` for other data.
struct Reader<'a>(&'a [u8]);

impl Writer {
    fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn write_text(&mut self, text: &str) {
        self.data(text.as_bytes());
    }

    fn texts<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T>) {
        let texts: Vec<T> = texts.into_iter().collect();
        self.number(texts.len() as u64);
        texts.iter().for_each(|text| self.write_text(text.as_ref()));
    }

    fn data(&mut self, data: &[u8]) {
        self.number(data.len() as u64);
        self.bytes.extend(data);
    }

    fn option(&mut self, data: Option<&[u8]>) {
        self.number(u64::from(data.is_some()));
        self.data(data.unwrap_or_default());
    }
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn data(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (data, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(data)
    }

    fn read_text(&mut self) -> Option<String> {
        String::from_utf8(self.data()?.to_vec()).ok()
    }

    /// Reads an optional output. The inner `None` means that the output does not exist.
    fn option(&mut self) -> Option<Option<Vec<u8>>> {
        let is_some = self.number()? == 1;
        let data = self.data()?;
        Some(is_some.then(|| data.to_vec()))
    }
}

/// Serializes the outputs of `compiled` and its log, which determine the rest.
pub(super) fn write(compiled: &CompiledProgram) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.write_text(&compiled.log);
    writer.option(compiled.ptx.as_deref().map(str::as_bytes));
    for output in [
        &compiled.cubin,
        &compiled.lto_ir,
        &compiled.optix_ir,
        &compiled.tile_ir,
    ] {
        writer.option(output.as_deref());
    }
    writer.texts(
        compiled
            .lowered_names
            .iter()
            .flat_map(|(name, lowered)| [name, lowered]),
    );
    writer.bytes
}

/// Deserializes an entry of [`write()`] for `program`.
pub(super) fn read(record: &[u8], program: &Program) -> Option<CompiledProgram> {
    let mut reader = Reader(record);
    let log = reader.read_text()?;
    let diagnostics = diagnostic::parse(&log, program);
    let mut compiled = CompiledProgram::new(&program.name, log, diagnostics);
    compiled.ptx = reader.option()?.map(String::from_utf8).transpose().ok()?;
    compiled.cubin = reader.option()?;
    compiled.lto_ir = reader.option()?;
    compiled.optix_ir = reader.option()?;
    compiled.tile_ir = reader.option()?;
    for _ in 0..reader.number()? / 2 {
        compiled
            .lowered_names
            .push((reader.read_text()?, reader.read_text()?));
    }
    reader.0.is_empty().then_some(compiled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_parsed_as_written() {
        let log = "k.cu(1): warning #177-D: variable \"x\" was declared but never referenced\n"
            .to_owned();
        let program = Program::new("k.cu", "int x;");
        let mut compiled =
            CompiledProgram::new("k.cu", log.clone(), diagnostic::parse(&log, &program));
        compiled.ptx = Some(".version 7.8".to_owned());
        compiled.cubin = Some(vec![0, 1, 2]);
        compiled.optix_ir = Some(Vec::new());
        compiled
            .lowered_names
            .push(("k<int>".to_owned(), "_Z1kIiEvv".to_owned()));
        assert_eq!(read(&write(&compiled), &program), Some(compiled));
    }

    #[test]
    fn record_that_was_cut_or_has_more_is_none() {
        let program = Program::new("k.cu", "");
        let record = write(&CompiledProgram::new("k.cu", "log".to_owned(), Vec::new()));
        for end in 0..record.len() {
            assert_eq!(
                read(&record[..end], &program),
                None,
                "{end} bytes of {}",
                record.len()
            );
        }
        assert_eq!(read(&[record.as_slice(), &[0]].concat(), &program), None);
    }
}
