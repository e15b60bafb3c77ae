//! Instructions with a definition: the operands, suffixes and types of their forms.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Context, Width, alternatives, type_list};
use crate::isa::{Definition, Form, OperandKind};
use crate::syntax::ast::Instruction;
use crate::syntax::error::Error;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::Operand;
use crate::syntax::scalar::ScalarType;

/// The forms of each instruction, parsed.
static FORMS: LazyLock<HashMap<&'static str, Vec<ParsedForm>>> = LazyLock::new(|| {
    Definition::all()
        .map(|definition| {
            let forms = definition.forms.iter();
            let parsed = forms.filter_map(|form| ParsedForm::parse(definition, form));
            (definition.name, parsed.flatten().collect())
        })
        .collect()
});

/// A form with one of its alternative lists of suffixes.
#[derive(Debug)]
pub(crate) struct ParsedForm {
    pub(crate) form: &'static Form,
    pub(crate) operands: Vec<OperandKind>,
    /// The suffixes as written in the definition.
    text: &'static str,
    suffixes: Vec<Suffix>,
    types: Vec<Types>,
}

/// One or two types of an instruction.
type Types = (ScalarType, Option<ScalarType>);

#[derive(Debug)]
struct Suffix {
    /// The spellings, of which an instruction has one.
    alternatives: Vec<Modifier>,
    is_optional: bool,
}

impl ParsedForm {
    /// Returns the form with each list of suffixes, or `None` if the form is invalid.
    fn parse(definition: &'static Definition, form: &'static Form) -> Option<Vec<Self>> {
        let types = parse_types(form.types)?;
        let opcode = Opcode::Defined(definition);
        form.suffixes
            .split(' ')
            .map(|text| {
                Some(Self {
                    form,
                    operands: form.operand_kinds().collect(),
                    text,
                    suffixes: parse_suffixes(text, opcode)?,
                    types: types.clone(),
                })
            })
            .collect()
    }

    /// Returns `true` if an instruction has suffixes of the form.
    fn has_suffixes_of(&self, instruction: &Instruction) -> bool {
        let mut matched = 0;
        for suffix in &self.suffixes {
            let count = instruction
                .modifiers
                .iter()
                .filter(|modifier| suffix.alternatives.contains(modifier))
                .count();
            if count > 1 || count == 0 && !suffix.is_optional {
                return false;
            }
            matched += count;
        }
        let types = instruction.types().count();
        matched + types == instruction.modifiers.len()
    }

    /// Returns `true` if every list of suffixes of another form is one of this form.
    fn covers(&self, other: &Self) -> bool {
        let required = self.suffixes.iter().filter(|suffix| !suffix.is_optional);
        required.count() <= other.suffixes.len()
            && other
                .suffixes
                .iter()
                .all(|suffix| self.suffixes.iter().any(|own| own.covers(suffix)))
    }
}

impl Suffix {
    /// Returns `true` if this suffix may be written wherever another may.
    fn covers(&self, other: &Self) -> bool {
        let has_alternatives = other
            .alternatives
            .iter()
            .all(|modifier| self.alternatives.contains(modifier));
        has_alternatives && (self.is_optional || !other.is_optional)
    }
}

/// Returns the alternatives of types, such as `f32.s32 f64.s32`.
fn parse_types(text: &str) -> Option<Vec<Types>> {
    text.split(' ')
        .map(|names| match names.split_once('.') {
            Some((first, second)) => Some((
                ScalarType::from_name(first)?,
                Some(ScalarType::from_name(second)?),
            )),
            None => Some((ScalarType::from_name(names)?, None)),
        })
        .collect()
}

fn parse_suffixes(text: &str, opcode: Opcode) -> Option<Vec<Suffix>> {
    let mut suffixes = Vec::new();
    for word in text.split('.').skip(1) {
        let name = word.trim_end_matches(['{', '}']);
        let names: &[&str] = if name == "rnd" {
            &["rn", "rz", "rm", "rp"]
        } else {
            &[name]
        };
        let alternatives = names
            .iter()
            .map(|name| Modifier::parse(name, opcode))
            .collect::<Option<_>>()?;
        suffixes.push(Suffix {
            alternatives,
            is_optional: word.contains('}'),
        });
    }
    Some(suffixes)
}

/// Returns lists of suffixes, of which those that differ in `.ftz` only are joined.
fn with_optional_flushing(texts: &[&str]) -> impl Iterator<Item = String> {
    texts.iter().filter_map(|text| {
        if texts.contains(&format!("{text}.ftz").as_str()) {
            Some(format!("{text}{{.ftz}}"))
        } else if text
            .strip_suffix(".ftz")
            .is_some_and(|base| texts.contains(&base))
        {
            None
        } else {
            Some((*text).to_owned())
        }
    })
}

/// Returns the parsed forms of an instruction, or none without a definition.
fn parsed_forms(instruction: &Instruction) -> &'static [ParsedForm] {
    FORMS
        .get(instruction.opcode.name())
        .map_or(&[], Vec::as_slice)
}

impl Instruction {
    /// Returns the form of an instruction that has a definition.
    pub(crate) fn form(&self) -> Option<&'static ParsedForm> {
        let types = self.pair_of_types()?;
        parsed_forms(self).iter().find(|parsed| {
            parsed.types.contains(&types)
                && parsed.operands.len() == self.operands.len()
                && parsed.has_suffixes_of(self)
        })
    }

    /// Returns the types if there are one or two.
    pub(crate) fn pair_of_types(&self) -> Option<Types> {
        let mut types = self.types();
        let first = types.next()?;
        let second = types.next();
        types.next().is_none().then_some((first, second))
    }
}

impl Context<'_> {
    /// Checks an instruction that has a definition.
    pub(super) fn defined(&self) -> Result<(), Error> {
        let types = self.instruction.pair_of_types();
        if let (Some(parsed), Some(types)) = (self.instruction.form(), types) {
            return self.form_operands(parsed, types);
        }
        let forms = parsed_forms(self.instruction);
        let typed: Vec<&ParsedForm> = forms
            .iter()
            .filter(|parsed| types.is_some_and(|types| parsed.types.contains(&types)))
            .collect();
        if typed.is_empty() {
            return Err(self.unsupported_types(forms));
        }
        let counts: Vec<usize> = typed
            .iter()
            .filter(|parsed| parsed.has_suffixes_of(self.instruction))
            .map(|parsed| parsed.operands.len())
            .collect();
        match (counts.iter().min(), counts.iter().max()) {
            (Some(min), Some(max)) => self.count(*min..=*max),
            _ => Err(self.unsupported_suffixes(&typed)),
        }
    }

    fn unsupported_types(&self, forms: &[ParsedForm]) -> Error {
        let types: Vec<ScalarType> = self.instruction.types().collect();
        let mut first_types: Vec<ScalarType> = Vec::new();
        for scalar in forms
            .iter()
            .flat_map(|parsed| &parsed.types)
            .map(|types| types.0)
        {
            if !first_types.contains(&scalar) {
                first_types.push(scalar);
            }
        }
        first_types.sort_unstable();
        match self.member(types.first().copied(), &first_types) {
            Ok(_) => self.error(format!(
                "unsupported combination of types ({})",
                type_list(&types)
            )),
            Err(error) => error,
        }
    }

    /// Creates the error for suffixes that no form has. It lists the forms that no other covers.
    fn unsupported_suffixes(&self, forms: &[&ParsedForm]) -> Error {
        let types: String = self
            .instruction
            .types()
            .map(|scalar| format!(".{}", scalar.name()))
            .collect();
        let mut texts: Vec<&str> = Vec::new();
        for parsed in forms {
            let is_covered = forms
                .iter()
                .any(|other| other.text != parsed.text && other.covers(parsed));
            if !is_covered && !texts.contains(&parsed.text) {
                texts.push(parsed.text);
            }
        }
        let opcode = self.instruction.opcode;
        let expected = alternatives(
            with_optional_flushing(&texts).map(|text| format!("'{opcode}{text}{types}'")),
        );
        self.error(format!("unsupported suffixes (expected {expected})"))
    }

    fn form_operands(&self, parsed: &ParsedForm, types: Types) -> Result<(), Error> {
        use OperandKind as K;
        for (index, kind) in parsed.operands.iter().enumerate() {
            let scalar = kind.scalar(types.0, types.1);
            match (kind, self.operand(index)) {
                (K::Byte, Operand::Integer(integer)) if integer.bits > 255 => {
                    return Err(self.operand_error(index, "a number from 0 to 255"));
                }
                (K::Constant, Operand::Integer(_)) | (K::Discardable, Operand::Sink) => {}
                (K::Constant, _) => return Err(self.operand_error(index, "an integer constant")),
                (K::Tested, _) => self.pair(index, scalar)?,
                _ if index == 0 => self.destination(index, scalar, Width::Exact)?,
                _ => self.source(index, scalar, Width::Exact)?,
            }
        }
        Ok(())
    }

    /// Checks a result, which may be discarded, with a predicate.
    fn pair(&self, index: usize, scalar: ScalarType) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Pair(first, Some(_))
                if first.is_none_or(|id| self.register_fits(id, scalar, Width::Exact)) =>
            {
                Ok(())
            }
            _ => Err(self.operand_error(
                index,
                format!("a register for .{} and a predicate", scalar.name()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Run;

    #[test]
    fn every_form_is_valid() {
        for definition in Definition::all() {
            for form in definition.forms {
                let parsed = ParsedForm::parse(definition, form);
                assert!(parsed.is_some(), "{definition} {form:?}");
                let words = form.operands.split(' ').filter(|word| *word != "m");
                assert_eq!(
                    form.operand_kinds().count(),
                    words.count(),
                    "{definition} {form:?}"
                );
            }
        }
        assert!(parse_suffixes(".frobnicate", Opcode::Mov).is_none());
        assert!(parse_types("f33").is_none());
    }

    /// A form after one that covers it would have no effect.
    #[test]
    fn every_form_is_reached() {
        for (name, forms) in FORMS.iter() {
            for (index, parsed) in forms.iter().enumerate() {
                let is_hidden = forms[..index].iter().any(|earlier| {
                    earlier.operands.len() == parsed.operands.len()
                        && earlier.covers(parsed)
                        && parsed
                            .types
                            .iter()
                            .all(|types| earlier.types.contains(types))
                });
                assert!(!is_hidden, "{name} {:?}", parsed.form);
            }
        }
    }

    /// The types of a form are those of its handlers.
    #[test]
    fn types_have_handlers() {
        for (name, forms) in FORMS.iter() {
            for parsed in forms {
                let Run::Typed(handler) = parsed.form.run else {
                    continue;
                };
                for types in &parsed.types {
                    assert!(handler(types.0).is_some(), "{name} {:?}", parsed.form);
                }
            }
        }
    }
}
