//! Digests: the outcomes of a log without the texts of its calls, which the seed determines.
//!
//! The first line is `digest`. Each other line is a sequence: its number, a hash of the texts of
//! its calls, and their outcomes, which are separated by spaces. A number and an asterisk before an
//! outcome repeat it. `=` stands for success.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::log::{self, Entry, Log};

/// The log to digest.
#[derive(clap::Args)]
pub(crate) struct Digest {
    /// The log of a GPU.
    log: PathBuf,
    /// The digest to write.
    digest: PathBuf,
}

const FIRST_LINE: &str = "digest";
const SUCCESS: &str = "SUCCESS";
const SHORT_SUCCESS: &str = "=";

impl Digest {
    /// Writes the digest.
    pub(crate) fn run(&self) -> Result<()> {
        let mut text = format!("{FIRST_LINE}\n");
        for (number, entries) in log::read(&self.log)? {
            text += &format!("{number} {:x}", hash(&entries));
            for run in entries.chunk_by(|entry, next| entry.outcome == next.outcome) {
                let outcome = if run[0].outcome == SUCCESS {
                    SHORT_SUCCESS
                } else {
                    &run[0].outcome
                };
                text += &match run.len() {
                    1 => format!(" {outcome}"),
                    length => format!(" {length}*{outcome}"),
                };
            }
            text.push('\n');
        }
        fs::write(&self.digest, text).with_context(|| self.digest.display().to_string())
    }
}

/// Returns `true` if a file is a digest.
pub(crate) fn is_digest(path: &Path) -> Result<bool> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line)?;
    Ok(line.trim_end() == FIRST_LINE)
}

/// Reads a digest as a log with the texts of another one of the same sequences.
pub(crate) fn read(path: &Path, texts: &Log) -> Result<Log> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut log: Log = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split(' ');
        let number: u64 = fields.next().context("a sequence has a number")?.parse()?;
        let digest = u64::from_str_radix(fields.next().context("a sequence has a hash")?, 16)?;
        let mut outcomes = Vec::new();
        for field in fields {
            let (count, outcome) = field.split_once('*').unwrap_or(("1", field));
            let outcome = if outcome == SHORT_SUCCESS {
                SUCCESS
            } else {
                outcome
            };
            outcomes.extend(vec![outcome.to_owned(); count.parse()?]);
        }
        let Some(entries) = texts.get(&number) else {
            continue;
        };
        let calls = entries
            .get(..outcomes.len())
            .with_context(|| format!("sequence {number} has fewer calls than in the digest"))?;
        ensure!(
            hash(calls) == digest,
            "sequence {number} has other calls than in the digest, which must be recorded again"
        );
        let executed = calls.iter().zip(outcomes).map(|(call, outcome)| Entry {
            text: call.text.clone(),
            notes: call.notes.clone(),
            outcome,
        });
        log.insert(number, executed.collect());
    }
    Ok(log)
}

/// Returns a hash of the texts of calls (FNV-1a), which is the same on every machine.
fn hash(entries: &[Entry]) -> u64 {
    entries
        .iter()
        .flat_map(|entry| entry.text.bytes().chain(*b"\n"))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
