//! The symbols that the inputs of a link share.

use std::collections::HashMap;

use curium_format::ptx::Linkage;
use curium_ptx::syntax::Module;

/// The definition of each symbol that other inputs see.
#[derive(Default)]
pub(super) struct Symbols(HashMap<String, Definition>);

/// The definition that counts so far.
struct Definition {
    linkage: Linkage,
    /// The size of a variable in bytes, and 0 for a function.
    size: u64,
    /// The name of the input.
    file: String,
    /// The number of the input.
    index: usize,
}

impl Symbols {
    /// Adds the definitions of an input. Fails with the linker's message, and changes nothing, if they contradict those of other inputs.
    pub(super) fn add(&mut self, module: &Module, index: usize, file: &str) -> Result<(), String> {
        let added: Vec<(&str, Definition)> = definitions(module)
            .map(|(name, linkage, size)| {
                (
                    name,
                    Definition {
                        linkage,
                        size,
                        file: file.to_owned(),
                        index,
                    },
                )
            })
            .collect();
        for (name, new) in &added {
            if let Some(first) = self.0.get(*name) {
                first.check(new, name)?;
            }
        }
        for (name, new) in added {
            match self.0.get_mut(name) {
                Some(first) if new.replaces(first) => *first = new,
                Some(_) => {}
                None => drop(self.0.insert(name.to_owned(), new)),
            }
        }
        Ok(())
    }

    /// Returns `true` if an input has the definition of `name` that counts.
    pub(super) fn is_from(&self, name: &str, index: usize) -> bool {
        self.0
            .get(name)
            .is_some_and(|definition| definition.index == index)
    }
}

/// Returns name, linkage and size of what a module defines for others.
fn definitions(module: &Module) -> impl Iterator<Item = (&str, Linkage, u64)> {
    let functions = module
        .functions
        .iter()
        .filter(|function| function.is_defined());
    let functions = functions.map(|function| (function.name, function.linkage, 0));
    let variables = module
        .variables
        .iter()
        .map(|variable| (variable.name, variable.linkage, variable.size));
    let shared =
        |linkage: Linkage| matches!(linkage, Linkage::Visible | Linkage::Weak | Linkage::Common);
    let all = functions
        .chain(variables)
        .filter(move |(_, linkage, _)| shared(*linkage));
    all.map(|(name, linkage, size)| (module.text(name), linkage, size))
}

impl Definition {
    /// Fails if the linker refuses `new` beside this definition.
    fn check(&self, new: &Self, name: &str) -> Result<(), String> {
        let first = &self.file;
        let second = &new.file;
        match (self.linkage, new.linkage) {
            (Linkage::Visible, Linkage::Visible) => Err(format!(
                "Multiple definition of '{name}' in '{second}', first defined in '{first}'"
            )),
            (Linkage::Weak, Linkage::Weak) if self.size != new.size => Err(format!(
                "Size doesn't match for '{name}' in '{second}', first specified in '{first}'"
            )),
            (Linkage::Common, Linkage::Visible | Linkage::Weak) if self.size > new.size => {
                Err(format!(
                    "Common symbol '{name}' in file '{first}' has larger size than initialization"
                ))
            }
            (Linkage::Visible | Linkage::Weak, Linkage::Common) if self.size < new.size => {
                Err(format!(
                    "Common symbol '{name}' in file '{second}' has larger size than initialization"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if this definition counts instead of an earlier one: a visible one before a weak one, any other before a common
    /// one, and the largest common one.
    fn replaces(&self, first: &Self) -> bool {
        match (self.linkage, first.linkage) {
            (Linkage::Common, Linkage::Common) => self.size > first.size,
            (Linkage::Common, _) | (Linkage::Weak, Linkage::Weak | Linkage::Visible) => false,
            _ => true,
        }
    }
}
