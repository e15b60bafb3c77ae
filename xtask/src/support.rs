//! `cargo xtask support`: generates `docs/support.md`, the support table of driver functions, and
//! `docs/instructions.md`, the PTX instructions of the simulator.

mod area;
mod instructions;
mod page;
mod reasons;
mod scan;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

use self::area::Area;
use self::reasons::{Reasons, Section};
use self::scan::Wrapping;
use crate::bindings::split_suffix;
use crate::stale;
use crate::version::Version;

const PAGE: &str = "docs/support.md";
/// The page of PTX instructions.
const INSTRUCTIONS: &str = "docs/instructions.md";
const REASONS: &str = "docs/not-wrapped.md";
/// The functions that tests called on a GPU, one per line, as written by `run.sh` of the bundle.
const GPU_TESTED: &str = "xtask/gpu-tested.txt";

/// The minimum percentage of wrapped functions among the live ones outside of graphs and memory.
const LEAST_SHARE: usize = 95;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare the pages with the expected text instead of writing them.
    #[arg(long)]
    check: bool,
}

/// The facts about one function.
#[derive(Debug)]
struct Function {
    name: String,
    since: Version,
    area: Area,
    status: Status,
    is_simulated: bool,
    is_tested: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Status {
    /// Wrapped by these public items of the libraries.
    Wrapped(Vec<Wrapping>),
    /// Superseded by a newer form, which exists in every driver that has this one.
    Superseded(String),
    /// Not wrapped, for a documented reason.
    Left(Section, String),
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let functions = functions()?;
    let files = BTreeMap::from([
        (crate::root().join(PAGE), page::render(&functions)),
        (crate::root().join(INSTRUCTIONS), instructions::page()?),
    ]);
    if options.check {
        stale::check(&files, "cargo xtask support")?;
    } else {
        stale::write(&files)?;
    }
    for area in Area::ALL {
        let (wrapped, live) = share(&functions, area);
        println!("{area}: {wrapped} of {live} live functions are wrapped");
    }
    let (wrapped, live) = share(&functions, Area::Driver);
    ensure!(
        wrapped * 100 >= live * LEAST_SHARE,
        "fewer than {LEAST_SHARE} % of the driver's functions are wrapped"
    );
    Ok(())
}

/// Returns the number of wrapped functions of an area, and of all its live functions.
fn share(functions: &[Function], area: Area) -> (usize, usize) {
    let live = functions
        .iter()
        .filter(|function| function.area == area && function.is_live());
    let wrapped = live
        .clone()
        .filter(|function| matches!(function.status, Status::Wrapped(_)));
    (wrapped.count(), live.count())
}

/// Returns every function in the order of the list. Fails if a function is neither wrapped nor has
/// a reason, or both.
fn functions() -> Result<Vec<Function>> {
    let since = sources::functions()?;
    let names: BTreeSet<_> = since.keys().cloned().collect();
    let wrapped = scan::wrapped(&sources::library_sources()?, &names)?;
    let simulated = scan::simulated(&sources::simulator_sources()?)?;
    let tested = gpu_tested(&names)?;
    let reasons = reasons(&names, &wrapped)?;
    let mut unexplained = Vec::new();
    let mut functions = Vec::new();
    for (name, since) in since {
        let status = status(&name, &names, &wrapped, &reasons);
        let Some(status) = status else {
            unexplained.push(name);
            continue;
        };
        let is_simulated = simulated.contains(&name);
        let is_tested = tested.contains(&name);
        functions.push(Function {
            area: Area::from_name(&name),
            name,
            since,
            status,
            is_simulated,
            is_tested,
        });
    }
    ensure!(
        unexplained.is_empty(),
        "neither wrapped nor in {REASONS}: {}\nwrap them, or add them there with the reason",
        unexplained.join(", ")
    );
    Ok(functions)
}

fn reasons(names: &BTreeSet<String>, wrapped: &BTreeMap<String, Vec<Wrapping>>) -> Result<Reasons> {
    let path = crate::root().join(REASONS);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let reasons = Reasons::parse(&text).context(REASONS)?;
    let wrapped: BTreeSet<_> = wrapped.keys().cloned().collect();
    let stale = reasons.stale(names, &wrapped);
    if !stale.is_empty() {
        bail!("{REASONS} is stale:\n{}", stale.join("\n"));
    }
    Ok(reasons)
}

fn status(
    name: &str,
    names: &BTreeSet<String>,
    wrapped: &BTreeMap<String, Vec<Wrapping>>,
    reasons: &Reasons,
) -> Option<Status> {
    if let Some(wrappings) = wrapped.get(name) {
        return Some(Status::Wrapped(wrappings.clone()));
    }
    if let Some(newer) = newer(name, names) {
        return Some(Status::Superseded(newer));
    }
    reasons
        .find(name)
        .map(|(section, reason)| Status::Left(section, reason.to_owned()))
}

/// Returns the newest form of the function, if it is a different one.
fn newer(name: &str, names: &BTreeSet<String>) -> Option<String> {
    let (base, number) = split_suffix(name);
    let forms = names.iter().map(|other| (split_suffix(other), other));
    let newer = forms.filter(|((other, later), _)| *other == base && *later > number);
    newer
        .max_by_key(|((_, number), _)| *number)
        .map(|(_, other)| other.clone())
}

fn gpu_tested(names: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let path = crate::root().join(GPU_TESTED);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let tested: BTreeSet<_> = lines.map(str::to_owned).collect();
    let unknown: Vec<_> = tested.difference(names).cloned().collect();
    ensure!(
        unknown.is_empty(),
        "{GPU_TESTED} names no function of the driver: {}",
        unknown.join(", ")
    );
    Ok(tested)
}

impl Function {
    /// Returns `true` if a new program has a use for the function.
    fn is_live(&self) -> bool {
        match &self.status {
            Status::Wrapped(_) => true,
            Status::Superseded(_) => false,
            Status::Left(section, _) => *section != Section::Retired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn newest_function_form_is_found() {
        let names = names(&[
            "cuCtxCreate",
            "cuCtxCreate_v2",
            "cuCtxCreate_v4",
            "cuCtxCreateOther",
        ]);
        assert_eq!(
            newer("cuCtxCreate", &names).as_deref(),
            Some("cuCtxCreate_v4")
        );
        assert_eq!(newer("cuCtxCreate_v4", &names), None);
    }

    /// A function needs a wrapper, a newer form or a reason.
    #[test]
    fn unlisted_function_has_no_status() {
        let reasons = Reasons::parse("").expect("invalid reasons");
        let names = names(&["cuOld", "cuOld_v2"]);
        assert_eq!(
            status("cuOld", &names, &BTreeMap::new(), &reasons),
            Some(Status::Superseded("cuOld_v2".to_owned()))
        );
        assert_eq!(status("cuOld_v2", &names, &BTreeMap::new(), &reasons), None);
    }
}
