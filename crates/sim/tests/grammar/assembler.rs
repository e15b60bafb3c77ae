//! NVIDIA's assembler.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::{Form, module};

/// The number of forms in a module. The assembler reports all invalid forms of a module, unless it
/// cannot parse one.
pub(super) const BATCH: usize = 50;

/// Returns for each form whether the assembler accepts it.
pub(super) fn accepted(
    assembler: &Path,
    forms: &[Form],
    target: &str,
    version: &str,
    number: usize,
) -> Vec<bool> {
    let folder =
        std::env::temp_dir().join(format!("curium-grammar-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    let mut pending: Vec<usize> = (0..forms.len()).collect();
    let mut refused = BTreeSet::new();
    loop {
        let chosen: Vec<&Form> = pending.iter().map(|index| &forms[*index]).collect();
        let lines = match assemble(assembler, &folder, &chosen, target, version) {
            Answer::Accepted => break,
            Answer::Refused(lines) => lines,
        };
        // Each line is a declaration or a body. Lines before the declarations are the header.
        let named_forms: BTreeSet<usize> = lines
            .into_iter()
            .filter_map(|line| form_at(line, chosen.len()))
            .collect();
        if named_forms.is_empty() {
            // The assembler does not name the form, so each is assembled separately.
            for index in pending {
                let answer = assemble(assembler, &folder, &[&forms[index]], target, version);
                if !matches!(answer, Answer::Accepted) {
                    refused.insert(index);
                }
            }
            break;
        }
        refused.extend(named_forms.iter().map(|index| pending[*index]));
        pending.retain(|index| !refused.contains(index));
        if pending.is_empty() {
            break;
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder was made here");
    (0..forms.len())
        .map(|index| !refused.contains(&index))
        .collect()
}

/// Returns `true` if the assembler supports a target.
pub(super) fn knows(assembler: &Path, target: &str, version: &str) -> bool {
    let form = Form {
        declared: String::new(),
        body: String::new(),
    };
    accepted(assembler, &[form], target, version, 0) == [true]
}

/// The assembler's answer for a module.
enum Answer {
    Accepted,
    /// Refused, with the lines in the messages.
    Refused(Vec<usize>),
}

fn assemble(
    assembler: &Path,
    folder: &Path,
    forms: &[&Form],
    target: &str,
    version: &str,
) -> Answer {
    let source = folder.join("forms.ptx");
    std::fs::write(&source, module(forms, target, version)).expect("the folder is writable");
    let mut command = Command::new(assembler);
    command
        .arg(format!("--gpu-name={target}"))
        .arg("-O0")
        .arg("-o")
        .arg(folder.join("forms.cubin"))
        .arg(&source);
    let output = command.output().expect("failed to start ptxas");
    if output.status.success() {
        return Answer::Accepted;
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let errors = text
        .lines()
        .filter(|line| line.contains("error") || line.contains("fatal"));
    // Lines of the functions that the assembler substitutes for instructions are ignored.
    Answer::Refused(errors.filter_map(line_number).collect())
}

/// Returns the line of the module that an error names.
fn line_number(error: &str) -> Option<usize> {
    let (_, location) = error.split_once("forms.ptx, line ")?;
    location.split(';').next()?.trim().parse().ok()
}

/// Returns the form that contains a line of the module.
fn form_at(line: usize, forms: usize) -> Option<usize> {
    const HEADER: usize = 3;
    const BETWEEN: usize = 4;
    let line = line.checked_sub(HEADER + 1)?;
    if line < forms {
        return Some(line);
    }
    line.checked_sub(forms + BETWEEN)
        .filter(|index| *index < forms)
}
