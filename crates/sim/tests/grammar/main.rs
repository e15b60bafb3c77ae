//! Comparison of the front end with NVIDIA's assembler.
//!
//! `forms.txt` and `forms_sm_100a.txt` contain forms with the assembler's answers.
//! `CURIUM_PTXAS=PATH` also compares random forms with the assembler at `PATH`;
//! `cargo xtask grammar` downloads one and does so. `CURIUM_GRAMMAR_SEED` and
//! `CURIUM_GRAMMAR_FORMS` set the seed and the number of random forms. `differences.txt` lists the
//! forms on which the two differ, with reasons. Forms that both accept are run on the simulator.
#![cfg(not(miri))]

mod assembler;
mod generator;
mod run;

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Declarations of a module and instructions of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    /// The declarations before the kernel.
    declared: String,
    /// The body of the kernel.
    body: String,
}

/// Registers and parameters that every form may use.
const REGISTERS: &str = ".reg .pred %p<8>, p, q; .reg .b8 %c<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; \
.reg .f32 %f<16>; .reg .f64 %e<8>; .reg .v2 .u32 v; .reg .v4 .u32 w; .reg .v2 .f32 vf; .reg .v4 .f32 wf; .reg .v2 .u64 vd; \
.reg .v2 .b16 vh; .reg .v4 .b8 vb;";

/// Returns a module of forms, each on separate lines: declarations first, then a kernel with a line
/// for each body.
fn module(forms: &[&Form], target: &str, version: &str) -> String {
    let declared: Vec<&str> = forms.iter().map(|form| &form.declared[..]).collect();
    let bodies: Vec<String> = forms
        .iter()
        .map(|form| format!("{{ {} }}", form.body))
        .collect();
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n{}\n.visible .entry main(.param .u64 P)\n{{\n{REGISTERS}\n\
         ld.param.u64 %d0, [P];\n{}\nret;\n}}\n",
        declared.join("\n"),
        bodies.join("\n")
    )
}

/// Returns the front end's error for a form, if any.
fn refusal(form: &Form, target: &str, version: &str) -> Option<String> {
    curium_sim::check_ptx(&module(&[form], target, version))
        .err()
        .map(|error| error.to_string())
}

/// Returns the forms that are known to differ.
fn known_differences() -> BTreeSet<&'static str> {
    include_str!("differences.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect()
}

/// Returns `true` if a form is known to differ: it is in the list, or the assembler refuses it and
/// it contains all parts of a pattern in the list.
fn is_known_difference(line: &str, is_accepted: bool, differences: &BTreeSet<&str>) -> bool {
    let sign = if is_accepted { "+~ " } else { "-~ " };
    differences.contains(line)
        || differences
            .iter()
            .filter_map(|difference| difference.strip_prefix(sign))
            .any(|pattern| matches(line, pattern))
}

/// Returns `true` if a line contains the parts of a pattern, which `*` separates, in their order.
fn matches(line: &str, pattern: &str) -> bool {
    let mut remaining = line;
    for part in pattern.split('*') {
        let Some((_, after)) = remaining.split_once(part) else {
            return false;
        };
        remaining = after;
    }
    true
}

/// Returns the form as a line of `forms.txt`, without the answer.
fn line(form: &Form) -> String {
    format!("{} ## {}", form.declared, form.body)
}

/// Describes a difference.
fn difference(
    form: &Form,
    target: &str,
    version: &str,
    is_accepted: bool,
    differences: &BTreeSet<&str>,
) -> Option<String> {
    let refusal = refusal(form, target, version);
    if refusal.is_none() == is_accepted
        || is_known_difference(&line(form), is_accepted, differences)
    {
        return None;
    }
    let answer = if is_accepted { "accepts" } else { "refuses" };
    let line = line(form);
    Some(format!(
        "the assembler {answer} for {target}: {line}\n    {}\n",
        refusal.unwrap_or("accepted here".into())
    ))
}

/// Forms with the assembler's answers for a target.
struct FormFile {
    text: &'static str,
    target: &'static str,
    version: &'static str,
}

const FILES: [FormFile; 2] = [
    FormFile {
        text: include_str!("forms.txt"),
        target: "sm_90",
        version: "8.8",
    },
    FormFile {
        text: include_str!("forms_sm_100a.txt"),
        target: "sm_100a",
        version: "9.2",
    },
];

impl FormFile {
    /// Returns the forms that the assembler accepts, or those that it refuses.
    fn forms(&self, are_accepted: bool) -> impl Iterator<Item = Form> {
        let sign = if are_accepted { '+' } else { '-' };
        let lines = self.text.lines();
        lines
            .filter_map(move |line| line.strip_prefix(sign))
            .map(|form| {
                let (declared, body) = form
                    .trim_start()
                    .split_once("##")
                    .expect("a form has both parts");
                Form {
                    declared: declared.trim().into(),
                    body: body.trim().into(),
                }
            })
    }
}

#[test]
fn forms_match_the_assembler() {
    let differences = known_differences();
    let mut wrong = Vec::new();
    for file in FILES {
        for accepted in [true, false] {
            wrong.extend(file.forms(accepted).filter_map(|form| {
                difference(&form, file.target, file.version, accepted, &differences)
            }));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} forms differ\n{}",
        wrong.len(),
        wrong.concat()
    );
}

#[test]
fn accepted_forms_run() {
    let differences = known_differences();
    let mut problems = Vec::new();
    for file in FILES {
        let forms = file.forms(true);
        // Forms that are refused here do not run.
        let accepted = forms.filter(|form| !is_known_difference(&line(form), true, &differences));
        problems.extend(accepted.filter_map(|form| run::problem(&form, file.target, file.version)));
    }
    assert!(
        problems.is_empty(),
        "{} forms do not run\n{}",
        problems.len(),
        problems.concat()
    );
}

/// Returns the number in an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_forms_match() {
    let Some(assembler) = std::env::var_os("CURIUM_PTXAS").map(PathBuf::from) else {
        return;
    };
    let seed = variable("CURIUM_GRAMMAR_SEED").unwrap_or(1);
    let count = variable("CURIUM_GRAMMAR_FORMS").unwrap_or(600);
    let differences = known_differences();
    let mut wrong = Vec::new();
    let mut random = generator::Random(seed);
    let targets = generator::TARGETS
        .iter()
        .filter(|target| assembler::knows(&assembler, target, "8.8"));
    for (index, target) in targets
        .cycle()
        .take(count as usize / assembler::BATCH)
        .enumerate()
    {
        let forms: Vec<Form> = (0..assembler::BATCH)
            .map(|_| generator::form(&mut random))
            .collect();
        let accepted = assembler::accepted(&assembler, &forms, target, "8.8", index);
        for (form, accepted) in forms.iter().zip(accepted) {
            let differs = difference(form, target, "8.8", accepted, &differences);
            let runs = accepted && refusal(form, target, "8.8").is_none();
            wrong.extend(differs.or_else(|| {
                if runs {
                    run::problem(form, target, "8.8")
                } else {
                    None
                }
            }));
        }
    }
    wrong.sort_unstable();
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} forms differ or do not run\n{}",
        wrong.len(),
        wrong.concat()
    );
}
