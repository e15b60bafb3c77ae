//! Name resolution within a function, by scope.

use std::collections::HashMap;

use super::ast::{BranchTargetsId, CallTargetsId, LabelId, PrototypeId, Register};
use super::name::{Name, Names};
use super::operand::{LocalId, RegisterId, Symbol};
use super::scalar::ScalarType;

/// The meaning of a name in a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binding {
    Register(RegisterId),
    Variable(LocalId),
    /// A variable of the module that is declared in a body.
    Symbol(Symbol),
    Label(LabelId),
    BranchTargets(BranchTargetsId),
    CallTargets(CallTargetsId),
    Prototype(PrototypeId),
}

/// A binding and the depth of the scope that it belongs to.
type Bound = Option<(Binding, usize)>;

/// The open scopes of a function.
///
/// The current bindings are one table by name. Each scope records the bindings that it replaced,
/// and closing the scope restores them. A lookup is therefore an index at any depth. Registers of
/// ranges such as `%r<42>` are created with their first use.
#[derive(Default)]
pub(super) struct Scopes {
    /// The current bindings, by name.
    bindings: Vec<Bound>,
    /// The replaced bindings of each open scope.
    replaced: Vec<Vec<(Name, Bound)>>,
    /// The current ranges by prefix, outermost first.
    ranges: HashMap<Name, Vec<Range>>,
    /// The prefixes in the order of declaration, with their depths.
    range_order: Vec<(Name, usize)>,
}

/// A range of registers, `prefix<count>`.
#[derive(Clone, Copy)]
struct Range {
    count: u32,
    scalar: ScalarType,
    vector: u8,
    depth: usize,
}

impl Scopes {
    /// Returns the number of open scopes.
    pub(super) fn depth(&self) -> usize {
        self.replaced.len()
    }

    /// Opens a scope.
    pub(super) fn open(&mut self) {
        self.replaced.push(Vec::new());
    }

    /// Closes the innermost scope.
    pub(super) fn close(&mut self) {
        let depth = self.depth();
        for (name, outer) in self.replaced.pop().into_iter().flatten().rev() {
            self.bindings[name.0 as usize] = outer;
        }
        while let Some(&(prefix, _)) = self.range_order.last().filter(|range| range.1 == depth) {
            self.range_order.pop();
            self.ranges.get_mut(&prefix).and_then(Vec::pop);
        }
    }

    /// Binds `name` in the innermost scope. Returns `false` if that scope already binds it.
    pub(super) fn bind(&mut self, name: Name, binding: Binding) -> bool {
        let depth = self.depth();
        if matches!(self.bound(name), Some((_, bound_depth)) if bound_depth == depth) {
            return false;
        }
        self.bind_at(name, binding, depth);
        true
    }

    /// Declares the registers `prefix0` to `prefix<count-1>` in the innermost scope. Returns
    /// `false` if the scope already has the prefix.
    pub(super) fn declare_range(
        &mut self,
        prefix: Name,
        count: u32,
        scalar: ScalarType,
        vector: u8,
    ) -> bool {
        let depth = self.depth();
        let ranges = self.ranges.entry(prefix).or_default();
        if ranges.last().is_some_and(|range| range.depth == depth) {
            return false;
        }
        ranges.push(Range {
            count,
            scalar,
            vector,
            depth,
        });
        self.range_order.push((prefix, depth));
        true
    }

    /// Returns `true` if `name` is in a range of the innermost scope.
    pub(super) fn is_in_range(&self, name: Name, names: &Names) -> bool {
        self.containing_range(names.text(name), names)
            .is_some_and(|range| range.depth == self.depth())
    }

    /// Resolves `name`. The first use of a register of a range adds it to `registers`.
    pub(super) fn resolve(
        &mut self,
        name: Name,
        names: &Names,
        registers: &mut Vec<Register>,
    ) -> Option<Binding> {
        let bound = self.bound(name);
        let deepest_range = self.range_order.last().map_or(0, |range| range.1);
        match bound {
            Some((binding, depth)) if depth >= deepest_range => return Some(binding),
            _ => {}
        }
        let range = self.containing_range(names.text(name), names);
        match (bound, range) {
            (Some((binding, depth)), Some(range)) if depth >= range.depth => Some(binding),
            (_, Some(range)) => {
                let id = RegisterId(u32::try_from(registers.len()).ok()?);
                registers.push(Register {
                    name,
                    scalar: range.scalar,
                    vector: range.vector,
                });
                // The register belongs to the scope of its range, which may be an outer one.
                self.bind_at(name, Binding::Register(id), range.depth);
                Some(Binding::Register(id))
            }
            (bound, None) => bound.map(|(binding, _)| binding),
        }
    }

    fn bound(&self, name: Name) -> Bound {
        self.bindings.get(name.0 as usize).copied().flatten()
    }

    fn bind_at(&mut self, name: Name, binding: Binding, depth: usize) {
        let index = name.0 as usize;
        if index >= self.bindings.len() {
            self.bindings.resize(index + 1, None);
        }
        let outer = self.bindings[index].replace((binding, depth));
        self.replaced[depth - 1].push((name, outer));
    }

    /// Returns the innermost range that contains `text`. Its prefix may itself end in digits.
    fn containing_range(&self, text: &str, names: &Names) -> Option<Range> {
        const MAX_DIGITS: usize = 10;
        let digits = text
            .bytes()
            .rev()
            .take(MAX_DIGITS)
            .take_while(u8::is_ascii_digit)
            .count();
        let candidates = (1..=digits).filter_map(|count| {
            let (prefix, index) = text.split_at(text.len() - count);
            if index.len() > 1 && index.starts_with('0') {
                return None;
            }
            let index: u32 = index.parse().ok()?;
            let ranges = self.ranges.get(&names.find(prefix)?)?;
            ranges
                .iter()
                .rev()
                .find(|range| index < range.count)
                .copied()
        });
        candidates.max_by_key(|range| range.depth)
    }
}
