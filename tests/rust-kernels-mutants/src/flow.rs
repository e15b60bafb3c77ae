//! The control flow of a function, for barriers that separate no accesses.

use std::collections::{BTreeMap, BTreeSet};

use crate::module::Item;
use crate::mutant::{Change, Mutant, instructions};

/// Why the removal of a barrier changes nothing, for any kernel.
pub(crate) const NOTHING_FOLLOWS: &str = "no access to shared memory is reachable from the barrier, and no global memory is written before and accessed after it";
pub(crate) const REPEATED: &str =
    "no access to memory is between the barrier and the next or the previous one";
pub(crate) const NOTHING_PRECEDES: &str =
    "no path to the barrier accesses shared memory or writes global memory";

/// The instructions of a function, and which ones follow each.
pub(crate) struct Flow<'a> {
    /// A function that is not a kernel is called among accesses that are not known.
    is_kernel: bool,
    instructions: Vec<(usize, &'a str)>,
    successors: Vec<Vec<usize>>,
}

/// An access to memory that other threads can access.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Access {
    None,
    ReadGlobal,
    WriteGlobal,
    /// An access to shared memory, or an unknown one.
    Other,
}

impl<'a> Flow<'a> {
    pub(crate) fn parse(item: &Item<'a>) -> Self {
        let mut code = Vec::new();
        let mut labels = BTreeMap::new();
        for (start, instruction) in instructions(item) {
            // Labels of inline assembly do not begin with `$`; such loops do not leave their
            // braces.
            if let Some(label) = instruction.strip_suffix(':') {
                if label.starts_with('$') {
                    labels.insert(label, code.len());
                }
            } else {
                code.push((start, instruction));
            }
        }
        let mut successors = Vec::new();
        for (index, (_, instruction)) in code.iter().enumerate() {
            let mut next = Vec::new();
            let is_guarded = instruction.starts_with('@');
            let plain = without_guard(instruction);
            let opcode = plain.split_whitespace().next().unwrap_or_default();
            let target = plain
                .split_whitespace()
                .last()
                .and_then(|label| labels.get(label));
            if opcode.starts_with("bra") {
                next.extend(target);
            }
            let is_end = matches!(opcode, "ret" | "exit" | "trap")
                || (opcode.starts_with("bra") && target.is_some());
            if (is_guarded || !is_end) && index + 1 < code.len() {
                next.push(index + 1);
            }
            successors.push(next);
        }
        Self {
            is_kernel: item.is_kernel,
            instructions: code,
            successors,
        }
    }

    /// Returns the reason if the mutant lacks a barrier that separates no accesses.
    pub(crate) fn equivalence(&self, mutant: &Mutant) -> Option<&'static str> {
        let has_table = self
            .instructions
            .iter()
            .any(|(_, code)| without_guard(code).starts_with("brx"));
        if !self.is_kernel
            || !is_barrier(mutant.opcode())
            || mutant.change != Change::Removed
            || has_table
        {
            return None;
        }
        let barrier = self.index(mutant)?;
        let predecessors = self.predecessors();
        if !mutant.opcode().starts_with("bar.warp")
            && (self.is_repeated(&self.successors, barrier)
                || self.is_repeated(&predecessors, barrier))
        {
            return Some(REPEATED);
        }
        let before = self.accesses(&predecessors, barrier);
        let after = self.accesses(&self.successors, barrier);
        let is_written_before = before.contains(&Access::WriteGlobal);
        let is_accessed_after =
            after.contains(&Access::ReadGlobal) || after.contains(&Access::WriteGlobal);
        if !before.contains(&Access::Other) && !is_written_before {
            Some(NOTHING_PRECEDES)
        } else if !after.contains(&Access::Other) && !(is_written_before && is_accessed_after) {
            Some(NOTHING_FOLLOWS)
        } else {
            None
        }
    }

    /// Returns `true` if the mutant lacks a barrier, and an operation across which the race
    /// detector compares no accesses is between it and another barrier of the block.
    pub(crate) fn is_beside_ordering(&self, mutant: &Mutant) -> bool {
        if mutant.change != Change::Removed || !is_barrier(mutant.opcode()) {
            return false;
        }
        let Some(barrier) = self.index(mutant) else {
            return false;
        };
        let predecessors = self.predecessors();
        self.reaches_ordering(&self.successors, barrier)
            || self.reaches_ordering(&predecessors, barrier)
    }

    /// Returns `true` if no access is between a barrier and the next ones along `edges`.
    fn is_repeated(&self, edges: &[Vec<usize>], start: usize) -> bool {
        let mut visited = BTreeSet::new();
        let mut pending = edges[start].clone();
        while let Some(index) = pending.pop() {
            let code = without_guard(self.instructions[index].1);
            if access(code) != Access::None {
                return false;
            }
            if !is_barrier_of_block(code) && visited.insert(index) {
                pending.extend(&edges[index]);
            }
        }
        true
    }

    /// Returns `true` if `edges` lead to an ordering operation without another barrier of the block
    /// between.
    fn reaches_ordering(&self, edges: &[Vec<usize>], start: usize) -> bool {
        let mut visited = BTreeSet::new();
        let mut pending = edges[start].clone();
        while let Some(index) = pending.pop() {
            let code = without_guard(self.instructions[index].1);
            if is_ordering(code) {
                return true;
            }
            if !is_barrier_of_block(code) && visited.insert(index) {
                pending.extend(&edges[index]);
            }
        }
        false
    }

    /// Returns the index of the changed instruction.
    fn index(&self, mutant: &Mutant) -> Option<usize> {
        self.instructions
            .iter()
            .position(|(start, _)| *start == mutant.position())
    }

    fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.successors.len()];
        for (index, successors) in self.successors.iter().enumerate() {
            for successor in successors {
                predecessors[*successor].push(index);
            }
        }
        predecessors
    }

    /// Returns the accesses of all instructions that can be reached by `edges`.
    fn accesses(&self, edges: &[Vec<usize>], start: usize) -> Vec<Access> {
        let mut visited = BTreeSet::new();
        let mut pending = edges[start].clone();
        let mut accesses = Vec::new();
        while let Some(index) = pending.pop() {
            if visited.insert(index) {
                accesses.push(access(self.instructions[index].1));
                pending.extend(&edges[index]);
            }
        }
        accesses
    }
}

/// Returns `true` for fences, ordered accesses, operations of an `mbarrier`, and copies and
/// products whose accesses are not recorded.
fn is_ordering(code: &str) -> bool {
    let opcode = code.split_whitespace().next().unwrap_or_default();
    ["fence.", "mbarrier.", "cp.async.", "wgmma."]
        .iter()
        .any(|name| opcode.starts_with(name))
        || opcode.contains(".relaxed.")
}

fn is_barrier_of_block(code: &str) -> bool {
    is_barrier(code) && !code.starts_with("bar.warp")
}

fn is_barrier(opcode: &str) -> bool {
    ["bar.sync", "bar.warp.sync", "barrier.cta.sync"]
        .iter()
        .any(|barrier| opcode.starts_with(barrier))
}

fn without_guard(instruction: &str) -> &str {
    match instruction.starts_with('@') {
        true => instruction
            .split_once(char::is_whitespace)
            .map_or("", |(_, code)| code.trim_start()),
        false => instruction,
    }
}

fn access(instruction: &str) -> Access {
    let code = without_guard(instruction);
    let opcode = code.split_whitespace().next().unwrap_or_default();
    let parts: Vec<&str> = opcode.split('.').collect();
    let is_of = |space| parts.contains(&space);
    match parts[0] {
        "ld" | "st" if is_of("param") || is_of("local") || is_of("const") => Access::None,
        "ld" | "ldu" if is_of("global") => Access::ReadGlobal,
        "st" | "red" | "atom" if is_of("global") => Access::WriteGlobal,
        // A failed assertion ends the launch.
        "call" if code.contains("__assertfail") || code.contains("panic_with_message") => {
            Access::None
        }
        "ld" | "ldu" | "st" | "red" | "atom" | "call" | "cp" | "ldmatrix" | "stmatrix"
        | "mbarrier" | "wgmma" | "multimem" => Access::Other,
        _ => Access::None,
    }
}
