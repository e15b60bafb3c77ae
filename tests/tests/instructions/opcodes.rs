//! Checks the table of opcodes and their tests: it is complete, and every listed test exists and
//! uses the opcode.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use curium_tests::{skip, uses_cuda};

use crate::block;
use crate::forms::families;

/// One opcode per line, followed by a tab and its tests, separated by spaces.
const TABLE: &str = include_str!("opcodes.txt");

fn read(path: impl AsRef<Path>) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table() -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = TABLE
        .lines()
        .skip(1)
        .map(|line| line.split_once('\t').expect("a row has a tab"));
    rows.map(|(opcode, tests)| (opcode, tests.split(' ').collect()))
        .collect()
}

/// Returns the source file of a test.
fn file(path: &str) -> PathBuf {
    let folder = if path.contains('/') {
        "tests/tests"
    } else {
        "crates/ptx/src/exec/tests"
    };
    Path::new(folder).join(path).with_extension("rs")
}

#[test]
fn table_has_every_opcode_once() {
    let rows: BTreeSet<String> = table().keys().map(|opcode| (*opcode).to_owned()).collect();
    let opcodes: BTreeSet<String> = curium_ptx::syntax::instructions()
        .map(|(name, _)| name.to_owned())
        .collect();
    let missing: Vec<_> = opcodes.difference(&rows).collect();
    let unknown: Vec<_> = rows.difference(&opcodes).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "opcodes.txt lacks {missing:?}, and has {unknown:?}, which the simulator lacks"
    );
    assert_eq!(
        TABLE.lines().count() - 1,
        rows.len(),
        "an opcode has two rows"
    );
}

#[test]
fn listed_tests_use_their_opcode() {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let forms: BTreeSet<String> = families()
        .into_iter()
        .flat_map(|family| family.forms)
        .filter_map(|form| form.name.split(['.', ' ']).next().map(str::to_owned))
        .collect();
    let blocks = block::forms();
    let blocks: BTreeSet<&str> = blocks
        .iter()
        .filter_map(|form| form.spelling().split('.').next())
        .collect();
    for (opcode, tests) in table() {
        for test in tests {
            match test {
                "forms" => assert!(forms.contains(opcode), "no form of {opcode}"),
                "block" => assert!(
                    blocks.contains(opcode),
                    "no kernel of a block uses {opcode}"
                ),
                _ => {
                    let (path, name) = test
                        .split_once("::")
                        .unwrap_or_else(|| panic!("{test} is not a test"));
                    let text = read(file(path));
                    assert!(
                        text.contains(&format!("fn {name}(")),
                        "there is no test {test}"
                    );
                    let kernels = path.contains('/');
                    assert!(
                        kernels || text.contains(opcode),
                        "{test} does not contain {opcode}"
                    );
                }
            }
        }
    }
}
