//! Interned names.

use std::collections::HashMap;
use std::ops::Range;

/// A name in a module, as a small id. [`Module::text`](super::Module::text) returns its spelling.
///
/// Equal names of one module have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub(super) u32);

/// The names of a module, each stored once.
#[derive(Clone, Default, Debug)]
pub(crate) struct Names {
    ids: HashMap<Box<str>, Name>,
    text: String,
    ranges: Vec<Range<usize>>,
}

impl Names {
    /// Returns the spelling of `name`.
    ///
    /// # Panics
    ///
    /// Panics if `name` is not one of this module's names.
    #[must_use]
    pub(crate) fn text(&self, name: Name) -> &str {
        &self.text[self.ranges[name.0 as usize].clone()]
    }

    /// Returns the id of `text`, if the module contains it.
    #[must_use]
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.ids.get(text).copied()
    }

    /// Returns the id of `text`, which is added if it is new. The source is shorter than 4 GiB, so
    /// an id always fits.
    pub(super) fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.ids.get(text) {
            return name;
        }
        let name = Name(
            u32::try_from(self.ranges.len())
                .expect("a source below 4 GiB has fewer than 2^32 names"),
        );
        let start = self.text.len();
        self.text.push_str(text);
        self.ranges.push(start..self.text.len());
        self.ids.insert(text.into(), name);
        name
    }
}
