//! `cargo xtask bindings check`: compares every CUDA version with the generated parts of `crates`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use comfy_table::{CellAlignment, Table, presets};

use super::allowed::{Allowed, Verdict};
use super::difference::compare;
use super::header::{Clang, Header};
use super::surface::Surface;
use super::{generate, libraries, matrix};
use crate::package::Pins;
use crate::stale;
use crate::version::{Release, Version};

/// The command that fixes a stale file.
const REPAIR: &str = "cargo xtask bindings generate";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Check this version only, such as 12.4 (repeatable).
    #[arg(long, value_name = "VERSION")]
    cuda: Vec<Version>,
    /// Check a toolkit's cuda.h instead of the pinned ones.
    #[arg(long, value_name = "PATH", conflicts_with = "cuda")]
    header: Option<PathBuf>,
    /// Read the generated files from this folder instead of `crates/sys/src/generated`.
    #[arg(long, value_name = "FOLDER")]
    generated: Option<PathBuf>,
}

/// One row of the table.
struct Row {
    version: Version,
    functions: usize,
    records: usize,
    constants: usize,
    verdict: Verdict,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = options.generated.clone().unwrap_or_else(generate::folder);
    let clang = Clang::pinned()?;
    let pins = Pins::read()?;
    let headers = match &options.header {
        Some(path) => matrix::one(&clang, path)?,
        None => matrix::parse(&clang, &pins, &options.cuda)?,
    };
    let rows = compare_all(&headers, &folder)?;
    println!("{}", table(&rows));
    let mut reasons = reasons(rows);
    if options.header.is_none()
        && let Err(error) = stale::check(&generate::render(&pins, &headers, &folder)?, REPAIR)
    {
        reasons.push(error.to_string());
    }
    if options.header.is_none() && options.generated.is_none() {
        reasons.extend(libraries::check(&clang, &pins, &options.cuda, REPAIR)?);
    }
    if reasons.is_empty() {
        return Ok(());
    }
    bail!("the bindings do not hold:\n{}", reasons.join("\n"));
}

fn compare_all(headers: &BTreeMap<Version, Header>, folder: &Path) -> Result<Vec<Row>> {
    let (ours, versions) = Surface::read_generated(folder)?;
    let allowed = Allowed::read(&crate::root().join("xtask/allowed-differences.toml"))?;
    let judge =
        |release, theirs| allowed.judge(release, compare(release, theirs, &ours, &versions));
    let rows = headers.iter().map(|(version, header)| {
        let theirs = &header.surface;
        Row {
            version: *version,
            functions: theirs.functions.len(),
            records: theirs.records.len(),
            constants: theirs.constants.len(),
            verdict: judge(Release::cuda(*version), theirs),
        }
    });
    Ok(rows.collect())
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "CUDA",
        "functions",
        "structs",
        "constants",
        "differences allowed",
        "not allowed",
    ]);
    for row in rows {
        let numbers = [
            row.functions,
            row.records,
            row.constants,
            row.verdict.allowed,
            row.verdict.not_allowed.len(),
        ];
        table.add_row(
            std::iter::once(row.version.to_string())
                .chain(numbers.map(|number| number.to_string())),
        );
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Returns a line for each error.
fn reasons(rows: Vec<Row>) -> Vec<String> {
    let verdicts = rows.into_iter().map(|row| row.verdict);
    verdicts
        .flat_map(|verdict| {
            let differences = verdict
                .not_allowed
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>();
            differences.into_iter().chain(verdict.stale)
        })
        .collect()
}
