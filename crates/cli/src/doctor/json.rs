//! The machine and the findings as JSON, which requires the feature `full`.

#[cfg(feature = "full")]
pub(super) use self::full::{print, read, save};
#[cfg(not(feature = "full"))]
pub(super) use self::refused::{print, read, save};

#[cfg(feature = "full")]
mod full {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use anyhow::{Context as _, Result};
    use serde::Serialize;

    use crate::doctor::environment::Environment;
    use crate::doctor::finding::Finding;
    use crate::doctor::report::Report;

    /// The version of the schema.
    const SCHEMA: u32 = 1;

    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        works: bool,
        findings: &'a [Finding],
    }

    /// Prints the findings.
    pub(in crate::doctor) fn print(report: &Report, out: &mut impl Write) -> Result<()> {
        let document = Document { schema: SCHEMA, works: report.works(), findings: report.findings() };
        serde_json::to_writer_pretty(&mut *out, &document)?;
        Ok(writeln!(out)?)
    }

    /// Saves a machine to a file.
    pub(in crate::doctor) fn save(environment: &Environment, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(environment)?;
        fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
    }

    /// Reads the machine that [`save`] saved.
    pub(in crate::doctor) fn read(path: &Path) -> Result<Environment> {
        let text = fs::read(path).with_context(|| format!("{} could not be read", path.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{} is not a file of `curium doctor --save`", path.display()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::doctor::environment::{Access, Entry, Failure, Start};

        #[test]
        fn saved_machine_is_read_again() {
            let mut environment = Environment { system: "linux".to_owned(), ..Environment::default() };
            environment.files.insert("/dev/nvidia0".to_owned(), Entry::Node(Access::Forbidden));
            environment.start = Some(Start::Failed(Failure { code: 100, text: "no device".to_owned() }));
            let folder = tempfile::tempdir().expect("a folder can be created");
            let path = folder.path().join("machine.json");
            save(&environment, &path).expect("the folder is writable");
            let read = read(&path).expect("it was just saved");
            assert_eq!(read.files, environment.files);
            assert_eq!(read.start_failure().map(|failure| failure.code), Some(100));
        }
    }
}

#[cfg(not(feature = "full"))]
mod refused {
    use std::io::Write;
    use std::path::Path;

    use anyhow::Result;

    use crate::doctor::environment::Environment;
    use crate::doctor::report::Report;
    use crate::not_in_this_build;

    pub(in crate::doctor) fn print(_: &Report, _: &mut impl Write) -> Result<()> {
        Err(not_in_this_build("doctor --json"))
    }

    pub(in crate::doctor) fn save(_: &Environment, _: &Path) -> Result<()> {
        Err(not_in_this_build("doctor --save"))
    }

    pub(in crate::doctor) fn read(_: &Path) -> Result<Environment> {
        Err(not_in_this_build("doctor --from"))
    }
}
