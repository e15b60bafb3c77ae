//! Instructions with a definition: the operands, suffixes and types of their forms.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Context, Width, alternatives, type_list};
use crate::isa::{Definition, Form, OperandKind};
use crate::syntax::ast::Instruction;
use crate::syntax::error::Error;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::{Operand, RegisterId};
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

/// The types of an instruction, at most three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) first: ScalarType,
    pub(crate) second: Option<ScalarType>,
    third: Option<ScalarType>,
}

impl Types {
    /// Returns the types of a sequence, or `None` if it is empty or too long.
    fn collect(mut scalars: impl Iterator<Item = ScalarType>) -> Option<Self> {
        let types = Self {
            first: scalars.next()?,
            second: scalars.next(),
            third: scalars.next(),
        };
        scalars.next().is_none().then_some(types)
    }

    /// Returns the number of types.
    fn count(self) -> usize {
        1 + usize::from(self.second.is_some()) + usize::from(self.third.is_some())
    }
}

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

/// Returns the alternatives of types: `f32|f64.s32` is `f32.s32` and `f64.s32`.
fn parse_types(text: &str) -> Option<Vec<Types>> {
    let mut alternatives = Vec::new();
    for product in text.split(' ') {
        let mut combinations: Vec<Vec<ScalarType>> = vec![Vec::new()];
        for names in product.split('.') {
            let scalars = names
                .split('|')
                .map(ScalarType::from_name)
                .collect::<Option<Vec<_>>>()?;
            combinations = combinations
                .iter()
                .flat_map(|before| {
                    scalars
                        .iter()
                        .map(|scalar| [&before[..], &[*scalar]].concat())
                })
                .collect();
        }
        for scalars in combinations {
            alternatives.push(Types::collect(scalars.into_iter())?);
        }
    }
    Some(alternatives)
}

fn parse_suffixes(text: &str, opcode: Opcode) -> Option<Vec<Suffix>> {
    let mut suffixes = Vec::new();
    for word in text.split('.').skip(1) {
        let name = word.trim_end_matches(['{', '}']);
        let names = match name {
            "rnd" => "rn|rz|rm|rp",
            "irnd" => "rni|rzi|rmi|rpi",
            other => other,
        };
        let alternatives = names
            .split('|')
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

impl PartialEq for ParsedForm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Instruction {
    /// Finds the form of an instruction that has a definition.
    pub(in crate::syntax) fn with_form(self) -> Self {
        Self {
            form: self.find_form(),
            ..self
        }
    }

    fn find_form(&self) -> Option<&'static ParsedForm> {
        let types = self.form_types()?;
        parsed_forms(self).iter().find(|parsed| {
            parsed.types.contains(&types)
                && parsed.operands.len() == self.operands.len()
                && parsed.has_suffixes_of(self)
        })
    }

    /// Returns the types, or `None` if there are none or more than forms have.
    pub(crate) fn form_types(&self) -> Option<Types> {
        Types::collect(self.types())
    }
}

impl Context<'_> {
    /// Checks an instruction that has a definition.
    pub(super) fn defined(&self) -> Result<(), Error> {
        let types = self.instruction.form_types();
        if let (Some(parsed), Some(types)) = (self.instruction.form, types) {
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
        let form_types = forms.iter().flat_map(|parsed| &parsed.types);
        let min_count = form_types.clone().map(|types| types.count()).min();
        let mut first_types: Vec<ScalarType> = form_types.map(|types| types.first).collect();
        first_types.sort_unstable();
        first_types.dedup();
        match self.member(types.first().copied(), &first_types) {
            Ok(_) if min_count > Some(types.len()) => {
                self.error("the types of the result and of the source are required")
            }
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
            let scalar = kind.scalar(types.first, types.second);
            let width = if kind.may_be_wider() {
                Width::Relaxed
            } else {
                Width::Exact
            };
            match (kind, self.operand(index)) {
                (K::Byte, Operand::Integer(integer)) if integer.bits > 255 => {
                    return Err(self.operand_error(index, "a number from 0 to 255"));
                }
                (K::Constant, Operand::Integer(_)) | (K::Discardable, Operand::Sink) => {}
                (K::Constant, _) => return Err(self.operand_error(index, "an integer constant")),
                (K::Tested, _) => self.pair(index, scalar)?,
                (K::Predicates, Operand::Pair(first, second)) => {
                    self.predicates(index, first.iter().chain(second))?;
                }
                (K::Four, operand) => self.vector_of_four(index, operand, scalar)?,
                _ if index == 0 => self.destination(index, scalar, width)?,
                _ => self.source(index, scalar, width)?,
            }
        }
        Ok(())
    }

    /// Checks a pair of predicates, of which each may be discarded.
    fn predicates<'r>(
        &self,
        index: usize,
        mut registers: impl Iterator<Item = &'r RegisterId>,
    ) -> Result<(), Error> {
        if registers.all(|id| self.register(*id) == ScalarType::Pred) {
            return Ok(());
        }
        Err(self.operand_error(index, "a pair of predicate registers"))
    }

    /// Checks a vector of four sources.
    fn vector_of_four(
        &self,
        index: usize,
        operand: &Operand,
        scalar: ScalarType,
    ) -> Result<(), Error> {
        match operand {
            Operand::Vector(elements)
                if elements.len() == 4
                    && elements
                        .iter()
                        .all(|element| self.value_fits(element, scalar, Width::Exact)) =>
            {
                Ok(())
            }
            _ => Err(self.operand_error(
                index,
                format!("a vector of four registers for .{}", scalar.name()),
            )),
        }
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
                let words = form
                    .operands
                    .split(' ')
                    .filter(|word| !["m", "c"].contains(word));
                assert_eq!(
                    form.operand_kinds().count(),
                    words.count(),
                    "{definition} {form:?}"
                );
            }
        }
        assert!(parse_suffixes(".rn|frobnicate", Opcode::Mov).is_none());
        assert!(parse_types("f33").is_none());
        assert!(parse_types("f32|s33.f64").is_none());
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
                for types in &parsed.types {
                    let handler = match (parsed.form.run, types.second) {
                        (Run::Typed(handler), _) => handler(types.first),
                        (Run::Converting(handler), Some(from)) => handler(types.first, from),
                        _ => continue,
                    };
                    assert!(handler.is_some(), "{name} {types:?} {:?}", parsed.form);
                }
            }
        }
    }
}
