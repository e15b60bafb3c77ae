//! Changes of single instructions.

use crate::module::Item;

/// The instructions that are left out, by their beginnings.
const REMOVED: &[&str] = &[
    "bar.arrive",
    "bar.sync",
    "bar.warp.sync",
    "barrier.arrive",
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "barrier.cta.arrive",
    "barrier.cta.sync",
    "barrier.sync",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_",
    "cp.async.commit_group",
    "cp.async.mbarrier.arrive",
    "cp.async.wait_",
    "fence.",
    "mbarrier.arrive",
    "mbarrier.init",
    "membar.",
    "wgmma.commit_group",
    "wgmma.fence",
    "wgmma.wait_group",
];

/// Instructions with a mask of lanes as the last operand.
const MASKED: &[&str] = &["shfl.sync", "vote.sync", "redux.sync", "match."];

/// The change that a mutant makes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Change {
    /// A barrier, a fence, an arrival or a wait is left out.
    Removed,
    /// A reduction by a barrier only has the condition of the own thread.
    OwnVote,
    /// The mask lacks lane 5.
    Mask,
    /// The operand with the lane of a shuffle is another one.
    Lane,
    /// An atomic operation is a load, an operation and a store; an ordered access is not ordered;
    /// an arrival expects no bytes.
    Weakened,
}

/// A change of one instruction.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// The index of the function in the module.
    pub(crate) item: usize,
    pub(crate) function: String,
    pub(crate) change: Change,
    pub(crate) instruction: String,
    /// The range in the text of the function that is replaced.
    range: std::ops::Range<usize>,
    replacement: String,
}

impl Mutant {
    pub(crate) fn opcode(&self) -> &str {
        self.instruction.split(' ').next().unwrap_or_default()
    }

    /// The position of the instruction in the text of the function.
    pub(crate) fn position(&self) -> usize {
        self.range.start
    }

    /// Returns the text of the changed function.
    pub(crate) fn text(&self, item: &Item<'_>) -> String {
        let before = &item.text[..self.range.start];
        let after = &item.text[self.range.end..];
        format!("{before}{}{after}", self.replacement)
    }
}

/// Returns the instructions and the labels of a function with their positions in its text. Labels
/// end with a colon.
pub(crate) fn instructions<'a>(item: &Item<'a>) -> Vec<(usize, &'a str)> {
    let mut instructions = Vec::new();
    let mut position = item.body.start;
    let text: &'a str = item.text;
    // Braces enclose inline assembly, and vectors within an instruction.
    for piece in text[item.body.clone()].split_inclusive([';', '\n']) {
        let start = position;
        position += piece.len();
        let trimmed = piece.trim_start_matches(|c: char| c.is_whitespace() || "{}".contains(c));
        let start = start + piece.len() - trimmed.len();
        if trimmed.starts_with("//") {
            continue;
        }
        // A label can precede an instruction, as in `WAIT: mbarrier.try_wait…`.
        if let Some(instruction) = trimmed.strip_suffix(';') {
            let label_end = instruction.rfind(": ").map_or(0, |colon| colon + 2);
            instructions.push((start + label_end, &instruction[label_end..]));
        } else if trimmed.trim_end().ends_with(':') {
            instructions.push((start, trimmed.trim_end()));
        } else if trimmed.starts_with("call") {
            // The operands of a call are on lines of their own.
            instructions.push((start, trimmed.trim_end()));
        }
    }
    instructions
}

/// Returns the mutants of a function.
pub(crate) fn mutants(index: usize, item: &Item<'_>) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (start, instruction) in instructions(item) {
        let (guard, code) = match instruction.starts_with('@') {
            true => instruction
                .split_once(char::is_whitespace)
                .unwrap_or_default(),
            false => ("", instruction),
        };
        let code = code.trim();
        for (change, replacement) in changes(code, guard) {
            mutants.push(Mutant {
                item: index,
                function: item.name.to_owned(),
                change,
                instruction: code.split_whitespace().collect::<Vec<_>>().join(" "),
                // With the semicolon.
                range: start..start + instruction.len() + 1,
                replacement,
            });
        }
    }
    mutants
}

/// Returns the changes of an instruction, with their code. `guard` is a predicate such as `@%p1`,
/// or empty.
fn changes(code: &str, guard: &str) -> Vec<(Change, String)> {
    let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let mut changes = Vec::new();
    if name.starts_with("mbarrier.arrive.expect_tx") {
        let [state, barrier, _bytes] = &operands[..] else {
            panic!("{code}: unknown operands");
        };
        let name = name.replace(".expect_tx", "");
        changes.push((
            Change::Weakened,
            format!("{guard} {name} {state}, {barrier};"),
        ));
    }
    if REMOVED.iter().any(|removed| name.starts_with(removed)) {
        assert!(
            !name.starts_with("mbarrier.arrive") || operands[0] == "_",
            "{code}: the state of the barrier is used"
        );
        changes.push((Change::Removed, String::new()));
        return changes;
    }
    if name.starts_with("mbarrier.try_wait") || name.starts_with("mbarrier.test_wait") {
        let target = operands[0];
        return vec![(
            Change::Removed,
            format!("{guard} setp.eq.u32 {target}, 0, 0;"),
        )];
    }
    if name.starts_with("barrier.cta.red") || name.starts_with("bar.red") {
        let [target, .., condition] = &operands[..] else {
            panic!("{code}: unknown operands");
        };
        let own = if name.ends_with(".pred") {
            format!("{guard} mov.pred {target}, {condition};")
        } else {
            format!("{guard} selp.u32 {target}, 1, 0, {condition};")
        };
        return vec![(Change::OwnVote, own)];
    }
    if MASKED.iter().any(|masked| name.starts_with(masked)) {
        let (mask, others) = operands.split_last().expect("split returns an operand");
        assert!(
            matches!(*mask, "-1" | "0xffffffff" | "0xFFFFFFFF"),
            "{code}: the mask is not constant"
        );
        // All bits except that of lane 5.
        changes.push((
            Change::Mask,
            format!("{guard} {name} {}, 0xffffffdf;", others.join(", ")),
        ));
    }
    if name.starts_with("shfl.sync") {
        changes.push((Change::Lane, another_lane(code, name, &operands, guard)));
    }
    let parts: Vec<&str> = name.split('.').collect();
    match parts[0] {
        "atom" | "red" => {
            changes.push((Change::Weakened, weakened(code, &parts, &operands, guard)));
        }
        "ld" | "st" if parts.iter().any(|part| is_ordering(part)) => {
            let plain: Vec<&str> = parts
                .iter()
                .copied()
                .filter(|part| !is_ordering(part) && !is_scope(part))
                .collect();
            let operands = operands.join(", ");
            changes.push((
                Change::Weakened,
                format!("{guard} {} {operands};", plain.join(".")),
            ));
        }
        _ => {}
    }
    changes
}

/// Returns a shuffle from another lane.
fn another_lane(code: &str, name: &str, operands: &[&str], guard: &str) -> String {
    let [target, value, lane, clamp, mask] = operands else {
        panic!("{code}: unknown operands");
    };
    match lane.parse::<u32>() {
        Ok(lane) => {
            // The own value, or that of lane 1.
            let other = u32::from(lane == 0);
            format!("{guard} {name} {target}, {value}, {other}, {clamp}, {mask};")
        }
        Err(_) => format!(
            "{{ .reg .b32 other; xor.b32 other, {lane}, 1; {guard} {name} {target}, {value}, other, {clamp}, {mask}; }}"
        ),
    }
}

fn is_ordering(part: &str) -> bool {
    matches!(part, "relaxed" | "acquire" | "release" | "acq_rel" | "sc")
}

fn is_scope(part: &str) -> bool {
    matches!(part, "cta" | "cluster" | "gpu" | "sys")
}

/// Returns a load, an operation and a store instead of an atomic instruction.
fn weakened(code: &str, parts: &[&str], operands: &[&str], guard: &str) -> String {
    let ty = parts.last().copied().unwrap_or_default();
    let operation = parts
        .iter()
        .find(|part| {
            matches!(
                **part,
                "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas"
            )
        })
        .unwrap_or_else(|| panic!("{code}: unknown operation"));
    let space = parts
        .iter()
        .find(|part| part.starts_with("shared") || **part == "global")
        .map(|space| format!(".{space}"))
        .unwrap_or_default();
    let (target, operands) = if parts[0] == "atom" {
        (Some(operands[0]), &operands[1..])
    } else {
        (None, operands)
    };
    let address = operands[0];
    let value = operands[1];
    let update = match *operation {
        "exch" => format!("mov.{ty} new, {value};"),
        "cas" => format!(
            "setp.eq.{ty} equal, old, {value}; selp.{ty} new, {}, old, equal;",
            operands[2]
        ),
        _ => format!("{operation}.{ty} new, old, {value};"),
    };
    let result = match target {
        Some(target) if target != "_" => format!("{guard} mov.{ty} {target}, old;"),
        _ => String::new(),
    };
    format!(
        "{{ .reg .pred equal; .reg .{ty} old, new; {guard} ld{space}.{ty} old, {address}; {update} {guard} st{space}.{ty} {address}, new; {result} }}"
    )
}
