//! Compares every form of arithmetic instructions, for edge-case and random operands, on a GPU and
//! on the simulator, with a reference that is independent of the simulator.
//!
//! With `CURIUM_TEST_DRIVER=cuda` the forms run on this machine's GPU; with
//! `CURIUM_INSTRUCTION_RECORD=FILE` the test also writes the results to that file, and the
//! differences from the reference to `FILE.differences`. On the simulator the results are also
//! compared with the record of a GPU in the repository. Block forms that the driver rejects are
//! listed in `FILE.left-out`. `CURIUM_INSTRUCTION_PTX=FOLDER` writes the modules, for `ptxas`.
#![cfg(not(miri))]

mod block;
mod form;
mod forms;
mod nan;
mod opcodes;
mod operands;
mod program;
mod record;
mod reference;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use curium_driver::Stream;
use curium_sim::{Config, DeviceModel};
use curium_tests::{TestDriver, TestResult, on_driver, on_simulator, uses_cuda};

use form::Form;
use forms::families;
use operands::operands;
use record::Record;

/// The number of wrong results printed for each form.
const SHOWN: usize = 8;

/// The outcome of all families: the mismatches, and the number of forms that ran.
struct Outcome {
    wrong: String,
    ran: usize,
}

/// Runs the forms of a range of compute capabilities, and passes each with its results to `also`.
fn run(
    test: &TestDriver,
    wanted: impl Fn(u32) -> bool,
    mut also: impl FnMut(&Form, &[u64]) -> String,
) -> TestResult<Outcome> {
    let stream: Stream = test.stream();
    let mut outcome = Outcome {
        wrong: String::new(),
        ran: 0,
    };
    for family in families() {
        let forms: Vec<&Form> = family
            .forms
            .iter()
            .filter(|form| wanted(form.architecture))
            .collect();
        let mut wrong = 0;
        program::run(&stream, &forms, |form, results| {
            let text = match results {
                Ok(_) if uses_cuda() && is_emulated(form) => String::new(),
                Ok(results) => disagreements(form, &results) + &also(form, &results),
                Err(error) => format!("{}: {error}\n", form.name),
            };
            wrong += usize::from(!text.is_empty());
            outcome.wrong += &text;
        });
        outcome.ran += forms.len();
        if wrong > 0 {
            writeln!(
                outcome.wrong,
                "{}: {wrong} of {} forms\n",
                family.name,
                forms.len()
            )?;
        }
    }
    Ok(outcome)
}

/// Returns the results of a form that differ from the reference.
fn disagreements(form: &Form, results: &[u64]) -> String {
    let cases = operands(form).into_iter().zip(results);
    let wrong: Vec<String> = cases
        .filter_map(|(sources, found)| {
            let expected = form.judge(sources, *found)?;
            Some(format!(
                "    {} -> {found:#x}, not {expected}\n",
                shown(form, &sources)
            ))
        })
        .collect();
    if wrong.is_empty() {
        return String::new();
    }
    format!(
        "{}: {} results\n{}",
        form.name,
        wrong.len(),
        wrong[..wrong.len().min(SHOWN)].concat()
    )
}

fn shown(form: &Form, sources: &[u64]) -> String {
    let sources: Vec<String> = sources[..form.sources.len()]
        .iter()
        .map(|bits| format!("{bits:#x}"))
        .collect();
    sources.join(", ")
}

/// Returns the results of the simulator that differ from those of a GPU.
fn differences(record: &Record, form: &Form, results: &[u64]) -> String {
    let mut text = String::new();
    if is_emulated(form) {
        return text;
    }
    for part in record.differing_parts(form, results) {
        let cases = operands(form);
        writeln!(
            text,
            "{}: results {part} to {} are not those of {}, among them\n    {} -> {:#x}",
            form.name,
            part + record::PART - 1,
            record.origin,
            shown(form, &cases[part]),
            results[part],
        )
        .expect("writing a string failed");
    }
    // The error bound of an approximation applies to either side.
    for (sources, found) in operands(form)
        .into_iter()
        .zip(record.values(form).unwrap_or_default())
    {
        if let Some(expected) = form.judge(sources, found) {
            let sources = shown(form, &sources);
            writeln!(
                text,
                "{}: {} gave {sources} -> {found:#x}, not {expected}",
                form.name, record.origin
            )
            .expect("writing a string failed");
        }
    }
    text
}

/// Returns `true` if the GPU's results are ignored: video instructions that an H200's driver
/// emulates differently from the PTX documentation.
fn is_emulated(form: &Form) -> bool {
    include_str!("emulated.txt")
        .lines()
        .any(|name| name == form.name)
}

/// Returns the recorded results of a GPU.
fn recorded() -> Record {
    Record::parse(include_str!("recorded.txt"))
}

#[test]
fn every_form_matches() -> TestResult {
    on_driver(|test| {
        let least = program::architecture(&test.device())?;
        let gpu_record = recorded();
        let mut record = Record::new(origin(test)?);
        let outcome = run(
            test,
            |needs| needs <= least,
            |form, results| {
                record.add(form, results);
                differences(&gpu_record, form, results)
            },
        )?;
        if let Some(path) = std::env::var_os("CURIUM_INSTRUCTION_RECORD").map(PathBuf::from) {
            fs::write(&path, record.to_text())?;
            fs::write(path.with_added_extension("differences"), &outcome.wrong)?;
        }
        assert!(outcome.wrong.is_empty(), "{}", outcome.wrong);
        assert!(outcome.ran > 1500, "only {} forms ran", outcome.ran);
        Ok(())
    })
}

fn origin(test: &TestDriver) -> TestResult<String> {
    let device = test.device().name()?;
    let version = test.driver().version();
    Ok(format!("{device}, driver for CUDA {version}"))
}

#[test]
fn newer_forms_match() -> TestResult {
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| {
            let outcome = run(test, |needs| needs > 90, |_, _| String::new())?;
            assert!(outcome.wrong.is_empty(), "{}", outcome.wrong);
            assert!(outcome.ran > 10, "only {} forms ran", outcome.ran);
            Ok(())
        },
    )
}

#[test]
fn form_names_are_unique() {
    let mut names = BTreeSet::new();
    for form in families().into_iter().flat_map(|family| family.forms) {
        assert!(
            names.insert(form.name.clone()),
            "two forms are called {}",
            form.name
        );
    }
}

#[test]
fn modules_for_the_assembler() -> TestResult {
    let Some(folder) = std::env::var_os("CURIUM_INSTRUCTION_PTX").map(PathBuf::from) else {
        return curium_tests::skip("`CURIUM_INSTRUCTION_PTX` is not set");
    };
    for family in families() {
        for form in &family.forms {
            let name: String = form
                .name
                .chars()
                .map(|character| {
                    if character.is_alphanumeric() {
                        character
                    } else {
                        '_'
                    }
                })
                .collect();
            fs::write(
                folder.join(name).with_extension("ptx"),
                program::module(&[form]),
            )?;
        }
    }
    Ok(())
}
