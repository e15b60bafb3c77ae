//! Reads the logs of sequences.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The sequences of a log, by their numbers.
pub(crate) type Log = BTreeMap<u64, Vec<Entry>>;

/// A call and its outcome.
pub(crate) struct Entry {
    pub(crate) text: String,
    /// The unusual arguments and states of the call; empty for a valid one.
    pub(crate) notes: String,
    /// The code, or `crash`, `hang`, `skipped` or `absent`.
    pub(crate) outcome: String,
}

impl Entry {
    /// Returns the name of the function.
    pub(crate) fn function(&self) -> &str {
        self.text
            .split_once('(')
            .map_or(&self.text, |(name, _)| name)
    }

    /// Returns `true` if the function returned.
    pub(crate) fn has_code(&self) -> bool {
        !["crash", "hang", "skipped", "absent"].contains(&self.outcome.as_str())
    }

    /// Returns `true` if the process ended in the call.
    pub(crate) fn ends_process(&self) -> bool {
        ["crash", "hang"].contains(&self.outcome.as_str())
    }

    /// Returns `true` if the device failed.
    pub(crate) fn ends_device(&self) -> bool {
        STICKY.contains(&self.outcome.as_str())
    }
}

/// The codes after which every call of the process fails.
const STICKY: &[&str] = &[
    "ASSERT",
    "HARDWARE_STACK_ERROR",
    "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION",
    "INVALID_ADDRESS_SPACE",
    "INVALID_PC",
    "LAUNCH_FAILED",
    "LAUNCH_TIMEOUT",
    "MISALIGNED_ADDRESS",
];

/// Reads a log.
pub(crate) fn read(path: &Path) -> Result<Log> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let mut log = Log::new();
    let mut number = 0;
    for line in String::from_utf8_lossy(&text).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            ["sequence", sequence] => {
                number = sequence.parse()?;
                log.insert(number, Vec::new());
            }
            [_, text, notes, outcome] => {
                let entry = Entry {
                    text: (*text).to_owned(),
                    notes: (*notes).to_owned(),
                    outcome: (*outcome).to_owned(),
                };
                log.entry(number).or_default().push(entry);
            }
            _ => {}
        }
    }
    Ok(log)
}
