//! The facts and the findings as JSON.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::bytes::read_file;
use crate::doctor::environment::Environment;
use crate::doctor::finding::Finding;
use crate::doctor::report::Report;

/// The JSON schema of `--json`.
const SCHEMA: &str = include_str!("../../schema/doctor.schema.json");

/// The maximum size of a saved environment in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The version of the schema.
const VERSION: u32 = 1;

/// The options for other programs and other machines.
#[derive(clap::Args)]
pub(super) struct Exchange {
    /// Print the findings as JSON (see --schema)
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of --json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Save the facts about this machine to a file, to examine them elsewhere
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Examine the machine that --save recorded
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "save"])]
    from: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    works: bool,
    findings: &'a [Finding],
}

impl Exchange {
    /// Returns the schema, if it is to be printed instead of findings.
    pub(super) fn schema(&self) -> Option<&'static str> {
        self.schema.then_some(SCHEMA)
    }

    /// Returns the machine to examine, unless it is this one.
    pub(super) fn saved(&self) -> Result<Option<Environment>> {
        self.from.as_deref().map(read).transpose()
    }

    /// Saves the machine, if that is requested.
    pub(super) fn save(&self, environment: &Environment) -> Result<()> {
        self.save
            .as_deref()
            .map_or(Ok(()), |path| save(environment, path))
    }

    /// Prints the findings as JSON, if that is requested. Returns `false` otherwise.
    pub(super) fn print(&self, report: &Report, out: &mut impl Write) -> Result<bool> {
        if self.json {
            let document = Document {
                schema: VERSION,
                works: report.works(),
                findings: report.findings(),
            };
            serde_json::to_writer_pretty(&mut *out, &document).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Ok(self.json)
    }
}

fn save(environment: &Environment, path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(environment)?;
    fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}

fn read(path: &Path) -> Result<Environment> {
    let text = read_file(path, MAX_FILE)
        .with_context(|| format!("{} could not be read", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a file of `curium doctor --save`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::environment::{Access, Entry, Failure, Start};

    #[test]
    fn saved_machine_is_read_again() {
        let mut environment = Environment {
            system: "linux".to_owned(),
            ..Environment::default()
        };
        environment
            .files
            .insert("/dev/nvidia0".to_owned(), Entry::Node(Access::Forbidden));
        environment.start = Some(Start::Failed(Failure {
            code: 100,
            text: "no device".to_owned(),
        }));
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let path = folder.path().join("machine.json");
        save(&environment, &path).expect("the folder is writable");
        let read = read(&path).expect("read failed");
        assert_eq!(read.files, environment.files);
        assert_eq!(read.start_failure().map(|failure| failure.code), Some(100));
    }
}
