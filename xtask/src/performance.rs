//! `cargo xtask performance`: writes the tables of `docs/performance.md` from the measurements in
//! `docs/data`.
//!
//! A table follows a comment that names its file, its columns, and its rows with their texts:
//!
//! ```text
//! <!-- table: copy.tsv | operation | C | Curium | Curium / C
//! pageable/4096: copy of 4 KiB from an ordinary slice
//! -->
//! ```
//!
//! and ends at `<!-- end of table -->`. The first line of each file of measurements records where
//! and when they were measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::stale;

/// The page with the tables.
const PAGE: &str = "docs/performance.md";

/// The folder of measurements.
const DATA: &str = "docs/data";

/// The measurements of `curium bench`.
const BENCH: &str = "bench.tsv";

const TABLE: &str = "<!-- table: ";
const END_OF_ROWS: &str = "-->";
const END_OF_TABLE: &str = "<!-- end of table -->";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare the page with the expected text instead of writing it.
    #[arg(long)]
    check: bool,
    /// First replace the measurements of `curium bench` by those of this file, the output of
    /// `curium bench --json`.
    #[arg(
        long,
        value_name = "FILE",
        requires = "measured",
        conflicts_with = "check"
    )]
    bench: Option<PathBuf>,
    /// Where and when the file was measured, such as "H200, driver 580.159, 2026-11-29".
    #[arg(long, value_name = "TEXT", requires = "bench")]
    measured: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    if let (Some(file), Some(measured)) = (&options.bench, &options.measured) {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        fs::write(root.join(DATA).join(BENCH), bench_table(&text, measured)?)?;
    }
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path).context(PAGE)?;
    let files = BTreeMap::from([(path, with_tables(&page, &root.join(DATA))?)]);
    if options.check {
        return stale::check(&files, "cargo xtask performance");
    }
    stale::write(&files)
}

/// The output of `curium bench --json`, as far as it is used.
#[derive(Deserialize)]
struct Bench {
    simulated: bool,
    comparisons: Vec<Comparison>,
}

#[derive(Deserialize)]
struct Comparison {
    id: String,
    unit: String,
    c: Spread,
    curium: Spread,
    ratio: Spread,
    note: Option<String>,
}

#[derive(Deserialize)]
struct Spread {
    median: f64,
    low_quartile: f64,
    high_quartile: f64,
}

/// Returns the measurements of `curium bench` as a table.
fn bench_table(json: &str, measured: &str) -> Result<String> {
    let bench: Bench = serde_json::from_str(json)?;
    ensure!(!bench.simulated, "these are times of the simulator");
    let mut table = format!("# {measured}\nid\tC\tCurium\tCurium / C\tnote\n");
    for comparison in &bench.comparisons {
        let Comparison {
            id,
            unit,
            c,
            curium,
            ratio,
            note,
        } = comparison;
        let note = note.as_deref().unwrap_or_default();
        let c = c.format(unit);
        let curium = curium.format(unit);
        let ratio = ratio.format("");
        writeln!(table, "{id}\t{c}\t{curium}\t{ratio}\t{note}")?;
    }
    Ok(table)
}

impl Spread {
    /// Formats the median with its unit, and the quartiles in brackets.
    fn format(&self, unit: &str) -> String {
        let digits = match self.median {
            median if median >= 100.0 => 0,
            median if median >= 10.0 => 1,
            median if median >= 0.1 => 2,
            _ => 3,
        };
        let Self {
            median,
            low_quartile,
            high_quartile,
        } = self;
        let space = if unit.is_empty() { "" } else { " " };
        format!("{median:.digits$}{space}{unit} [{low_quartile:.digits$} {high_quartile:.digits$}]")
    }
}

/// A file of measurements.
struct Measurements {
    file: String,
    /// Where and when they were made.
    measured: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Measurements {
    fn read(folder: &Path, file: &str) -> Result<Self> {
        let text = fs::read_to_string(folder.join(file)).with_context(|| file.to_owned())?;
        Self::parse(file, &text)
    }

    fn parse(file: &str, text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let measured = lines
            .next()
            .and_then(|line| line.strip_prefix("# "))
            .with_context(|| format!("{file}: the first line must say where and when this was measured, as `# H200, …`"))?
            .to_owned();
        let mut cells = lines.map(|line| line.split('\t').map(str::to_owned).collect());
        let columns = cells
            .next()
            .with_context(|| format!("{file} has no columns"))?;
        let file = file.to_owned();
        Ok(Self {
            file,
            measured,
            columns,
            rows: cells.collect(),
        })
    }

    /// Returns a cell without its quartiles or standard error.
    fn cell(&self, id: &str, column: &str) -> Result<&str> {
        let file = &self.file;
        let row = self
            .rows
            .iter()
            .find(|row| row[0] == id)
            .with_context(|| format!("{file} has no row {id}"))?;
        let position = self
            .columns
            .iter()
            .position(|name| name == column)
            .with_context(|| {
                format!(
                    "{file} has no column {column}: it has {}",
                    self.columns.join(", ")
                )
            })?;
        let text = row
            .get(position)
            .with_context(|| format!("{file}: row {id} has no cell {column}"))?;
        let end = text.find(['[', '±']).unwrap_or(text.len());
        Ok(text[..end].trim_end())
    }
}

/// Returns the page with new tables.
fn with_tables(page: &str, data: &Path) -> Result<String> {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(text, "{line}")?;
        let Some(head) = line.strip_prefix(TABLE) else {
            continue;
        };
        let mut names = head.split(" | ").map(str::trim);
        let file = names.next().unwrap_or_default();
        let measurements = Measurements::read(data, file)?;
        let columns: Vec<_> = names.collect();
        let mut rows = Vec::new();
        for line in lines.by_ref() {
            writeln!(text, "{line}")?;
            if line == END_OF_ROWS {
                break;
            }
            let row = line.split_once(": ");
            rows.push(row.with_context(|| format!("{PAGE}: expected `id: text`, found `{line}`"))?);
        }
        write_table(&mut text, &measurements, &columns, &rows)?;
        writeln!(text, "{END_OF_TABLE}")?;
        if !lines.any(|line| line == END_OF_TABLE) {
            bail!("{PAGE}: the table of {file} has no `{END_OF_TABLE}`");
        }
    }
    Ok(text)
}

fn write_table(
    text: &mut String,
    measurements: &Measurements,
    columns: &[&str],
    rows: &[(&str, &str)],
) -> Result<()> {
    let (first, others) = columns
        .split_first()
        .with_context(|| format!("{PAGE}: the table of {} has no columns", measurements.file))?;
    writeln!(text, "\n| {first} | {} |", others.join(" | "))?;
    writeln!(text, "|---|{}", "---:|".repeat(others.len()))?;
    for (id, description) in rows {
        write!(text, "| {description} |")?;
        for column in others {
            write!(text, " {} |", measurements.cell(id, column)?)?;
        }
        writeln!(text)?;
    }
    let Measurements { file, measured, .. } = measurements;
    writeln!(
        text,
        "\n{measured}. All rows, with quartiles: [{file}](data/{file}).\n"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str =
        "# H200, 2026-11-29\nid\tC\tCurium / C\na/1\t2.5 ns [2.4 2.6]\t1.01 ± 0.02\n";

    #[test]
    fn cells_have_no_quartiles() -> Result<()> {
        let measurements = Measurements::parse("a.tsv", DATA)?;
        assert_eq!(measurements.cell("a/1", "C")?, "2.5 ns");
        assert_eq!(measurements.cell("a/1", "Curium / C")?, "1.01");
        Ok(())
    }

    #[test]
    fn unknown_rows_columns_and_origins_are_errors() -> Result<()> {
        let measurements = Measurements::parse("a.tsv", DATA)?;
        let error = measurements
            .cell("a/2", "C")
            .expect_err("there is no such row");
        assert_eq!(error.to_string(), "a.tsv has no row a/2");
        let error = measurements
            .cell("a/1", "D")
            .expect_err("there is no such column");
        assert_eq!(
            error.to_string(),
            "a.tsv has no column D: it has id, C, Curium / C"
        );
        assert!(Measurements::parse("a.tsv", "id\tC\n").is_err());
        Ok(())
    }

    #[test]
    fn tables_are_replaced_and_nothing_else() -> Result<()> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("a.tsv"), DATA)?;
        let page = "before\n<!-- table: a.tsv | operation | C\na/1: a launch\n-->\nold\n<!-- end of table -->\nafter\n";
        let expected = "before\n<!-- table: a.tsv | operation | C\na/1: a launch\n-->\n\n| operation | C |\n|---|---:|\n\
             | a launch | 2.5 ns |\n\nH200, 2026-11-29. All rows, with quartiles: [a.tsv](data/a.tsv).\n\n<!-- end of table -->\nafter\n";
        assert_eq!(with_tables(page, folder.path())?, expected);
        assert_eq!(with_tables(expected, folder.path())?, expected);
        Ok(())
    }

    #[test]
    fn times_of_the_simulator_are_refused() {
        assert!(bench_table(r#"{"simulated": true, "comparisons": []}"#, "here").is_err());
    }
}
