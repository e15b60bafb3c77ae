//! Required ISA versions and architectures of instructions, suffixes and special registers.
//!
//! The tables of instructions and of special registers have a column of requirements. This file has
//! the requirements of suffixes that apply to any instruction. Everything else is older than the
//! simulated devices, or accepted in every module.
//!
//! A requirement is `VERSION TARGET: FORMS`. Without a target, it applies to the version only. A
//! target such as `sm_90a` requires an architecture-specific or family-specific target of that
//! generation, and `sm_100a/110a` one of either. A form is a set of suffixes in any order, or `|p`,
//! a vector of results with a predicate. Without forms, the requirement applies to every form of
//! the instruction.

use std::collections::HashMap;
use std::sync::LazyLock;

use curium_format::{PtxVersion, Target, TargetVariant};

use super::Context;
use crate::syntax::ast::{Instruction, Module};
use crate::syntax::error::Error;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::Operand;
use crate::syntax::special::SpecialRegister;

/// The requirements of suffixes, with any instruction.
const SUFFIXES: &[&str] = &[
    "6.0 sm_70: .acq_rel .acquire .relaxed .release .sc .weak",
    "6.3 sm_75: .b1 .s4 .u4",
    "7.0 sm_80: .NaN .bf16 .bf16x2 .relu .tf32",
    "7.2 sm_86: .xorsign",
    "7.4 sm_70: .L1::evict_first .L1::evict_last .L1::evict_normal .L1::evict_unchanged .L1::no_allocate",
    "7.4 sm_75: .L2::128B .L2::64B",
    "7.4 sm_80: .L2::256B .L2::cache_hint .L2::evict_first .L2::evict_last .L2::evict_normal .L2::evict_unchanged",
    "7.8 sm_90: .cluster .shared::cluster",
    "8.2 sm_70: .mmio",
    "8.3: .param::entry",
    "8.3 sm_70: .b128",
    "8.4 sm_89: .e4m3 .e5m2",
    "8.6: .e2m1x2 .e2m3x2 .e3m2x2",
    "8.6 sm_100: .cp_mask .cta_group::1 .cta_group::2 .im2col::w .im2col::w::128 .tile::gather4 .tile::scatter4",
    "9.1: .volatile.local",
];

/// Every requirement.
static REQUIREMENTS: LazyLock<Vec<Requirement>> = LazyLock::new(|| {
    let suffixes = SUFFIXES
        .iter()
        .filter_map(|row| Requirement::parse_row(None, row));
    let instructions = Opcode::all().flat_map(|opcode| {
        opcode
            .requirements()
            .iter()
            .filter_map(move |row| Requirement::parse_row(Some(opcode), row))
    });
    let registers = SpecialRegister::REQUIREMENTS
        .iter()
        .filter_map(|&(register, name, row)| {
            let minimum = Minimum::parse(row)?;
            Some(vec![Requirement {
                name: name.into(),
                subject: Subject::Register(register),
                minimum,
            }])
        });
    suffixes
        .chain(instructions)
        .chain(registers)
        .flatten()
        .collect()
});

/// The minimum version and architecture of a subject.
#[derive(Debug)]
struct Requirement {
    /// The subject's name in error messages. It is empty for an instruction.
    name: String,
    subject: Subject,
    minimum: Minimum,
}

#[derive(Debug)]
enum Subject {
    /// An instruction, or any, with all of the suffixes.
    Form(Option<Opcode>, Vec<Modifier>),
    /// An instruction with a vector of results and a predicate.
    Pair(Opcode),
    Register(SpecialRegister),
}

#[derive(Clone, Copy, Debug)]
struct Minimum {
    version: PtxVersion,
    /// The architecture; 0 for any.
    architecture: u32,
    /// `true` if the target must be specific to that generation.
    is_specific: bool,
    /// An architecture of another generation to which the target may be specific.
    alternative: Option<u32>,
}

/// The requirements that a module does not meet.
#[derive(Default)]
pub(in crate::syntax) struct Unmet {
    forms: HashMap<Option<Opcode>, Vec<&'static Requirement>>,
    registers: Vec<&'static Requirement>,
}

impl Minimum {
    fn parse(text: &str) -> Option<Self> {
        let (version, target) = text.split_once(" sm_").unwrap_or((text, "0"));
        let (target, alternative) = match target.split_once('/') {
            Some((target, other)) => (target, Some(other.strip_suffix('a')?.parse().ok()?)),
            None => (target, None),
        };
        let (architecture, is_specific) = target
            .strip_suffix('a')
            .map_or((target, false), |target| (target, true));
        Some(Self {
            version: PtxVersion::parse(version)?,
            architecture: architecture.parse().ok()?,
            is_specific,
            alternative,
        })
    }

    fn is_met(self, module: &Module) -> bool {
        let Target {
            architecture,
            variant,
        } = module.target;
        let has_architecture = if self.is_specific {
            let generations = [Some(self.architecture), self.alternative];
            let is_generation = generations
                .into_iter()
                .flatten()
                .any(|other| architecture / 10 == other / 10);
            variant != TargetVariant::Baseline && is_generation
        } else {
            architecture >= self.architecture
        };
        module.version >= self.version && has_architecture
    }
}

impl Requirement {
    /// Returns the requirements of a row, or `None` if the row is invalid.
    fn parse_row(opcode: Option<Opcode>, row: &str) -> Option<Vec<Self>> {
        let (minimum, forms) = row.split_once(": ").unwrap_or((row, ""));
        let minimum = Minimum::parse(minimum)?;
        forms
            .split(' ')
            .map(|form| Self::parse_form(opcode, form, minimum))
            .collect()
    }

    fn parse_form(opcode: Option<Opcode>, form: &str, minimum: Minimum) -> Option<Self> {
        let subject = if form == "|p" {
            Subject::Pair(opcode?)
        } else {
            let mut modifiers = Vec::new();
            if !form.is_empty() {
                for word in form.strip_prefix('.')?.split('.') {
                    // The opcode changes the meaning of a suffix only for comparisons, which have
                    // no row.
                    modifiers.push(Modifier::parse(word, opcode.unwrap_or(Opcode::Mov))?);
                }
            }
            Subject::Form(opcode, modifiers)
        };
        Some(Self {
            name: form.into(),
            subject,
            minimum,
        })
    }

    /// Returns `true` if an instruction with the subject's opcode uses the subject.
    fn concerns(&self, instruction: &Instruction) -> bool {
        match &self.subject {
            Subject::Form(_, modifiers) => modifiers
                .iter()
                .all(|modifier| instruction.modifiers.contains(modifier)),
            Subject::Pair(_) => {
                matches!(instruction.operands.first(), Some(Operand::VectorPair(..)))
            }
            Subject::Register(register) => {
                instruction.operands.contains(&Operand::Special(*register))
            }
        }
    }
}

impl Unmet {
    /// Returns the requirements that a module with this header does not meet.
    pub(in crate::syntax) fn for_module(module: &Module) -> Self {
        let mut unmet = Self::default();
        for requirement in REQUIREMENTS
            .iter()
            .filter(|requirement| !requirement.minimum.is_met(module))
        {
            match requirement.subject {
                Subject::Form(opcode, _) => {
                    unmet.forms.entry(opcode).or_default().push(requirement);
                }
                Subject::Pair(opcode) => unmet
                    .forms
                    .entry(Some(opcode))
                    .or_default()
                    .push(requirement),
                Subject::Register(_) => unmet.registers.push(requirement),
            }
        }
        unmet
    }

    /// Returns the highest unmet requirement of an instruction. A module that meets it also meets
    /// the others.
    fn highest(&self, instruction: &Instruction) -> Option<&'static Requirement> {
        let forms = [None, Some(instruction.opcode)]
            .into_iter()
            .filter_map(|opcode| self.forms.get(&opcode))
            .flatten();
        let has_special = instruction
            .operands
            .iter()
            .any(|operand| matches!(operand, Operand::Special(_)));
        let registers: &[&'static Requirement] = if has_special { &self.registers } else { &[] };
        let used = forms
            .chain(registers)
            .filter(|requirement| requirement.concerns(instruction));
        used.copied().max_by_key(|requirement| {
            (
                requirement.minimum.version,
                requirement.minimum.architecture,
            )
        })
    }
}

impl Context<'_> {
    /// Checks the instruction against the module's version and target.
    pub(super) fn requirements(&self) -> Result<(), Error> {
        let Some(Requirement { name, minimum, .. }) = self.unmet.highest(self.instruction) else {
            return Ok(());
        };
        let Module {
            version, target, ..
        } = self.module;
        let requires = if name.is_empty() {
            "requires".into()
        } else {
            format!("'{name}' requires")
        };
        if *version < minimum.version {
            return Err(self.error(format!(
                "{requires} PTX ISA version {} or later (found '.version {version}')",
                minimum.version
            )));
        }
        let range = match minimum.alternative {
            Some(other) => format!("a or sm_{other}a"),
            None if minimum.is_specific => "a".into(),
            None => " or higher".into(),
        };
        Err(self.error(format!(
            "{requires} target sm_{}{range} (found '.target {target}')",
            minimum.architecture
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_valid() {
        for row in SUFFIXES {
            assert!(Requirement::parse_row(None, row).is_some(), "{row}");
        }
        for opcode in Opcode::all() {
            for row in opcode.requirements() {
                assert!(
                    Requirement::parse_row(Some(opcode), row).is_some(),
                    "{opcode} {row}"
                );
            }
        }
        for (_, name, row) in SpecialRegister::REQUIREMENTS {
            assert!(Minimum::parse(row).is_some(), "{name} {row}");
        }
        for row in [
            "",
            "7",
            "7.x",
            "7.0 sm_x",
            "7.0 sm_80: bf16",
            "7.0: .frobnicate",
        ] {
            assert!(
                Requirement::parse_row(Some(Opcode::Ld), row).is_none(),
                "{row}"
            );
        }
    }
}
