//! The kernels, functions and variables of a PTX module.

use std::collections::{BTreeMap, BTreeSet};

/// A PTX module, split at its functions and variables.
pub(crate) struct Module<'a> {
    /// The directives at the start.
    header: String,
    pub(crate) items: Vec<Item<'a>>,
}

/// A kernel, a function, a declaration or a variable.
pub(crate) struct Item<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_kernel: bool,
    /// The text without comments before it.
    pub(crate) text: &'a str,
    /// The range of the instructions in the text. Empty for variables and declarations.
    pub(crate) body: std::ops::Range<usize>,
    /// The indices of the items with the names that the text contains.
    references: BTreeSet<usize>,
}

impl<'a> Module<'a> {
    pub(crate) fn parse(ptx: &'a str) -> Self {
        let mut header = String::new();
        let mut items = Vec::new();
        let mut start = None;
        let mut depth = 0;
        let mut position = 0;
        for line in ptx.split_inclusive('\n') {
            let line_start = position;
            position += line.len();
            let code = line.trim_end();
            if start.is_none() {
                if code.is_empty() || code.starts_with("//") {
                    continue;
                }
                let directives = [".version", ".target", ".address_size", ".file"];
                if directives.iter().any(|name| code.starts_with(name)) {
                    header.push_str(line);
                    continue;
                }
            }
            let start_of_item = *start.get_or_insert(line_start);
            if !code.trim_start().starts_with("//") {
                depth += code.matches('{').count();
                depth -= code.matches('}').count();
            }
            if depth == 0 && code.ends_with([';', '}']) {
                items.push(Item::parse(&ptx[start_of_item..position]));
                start = None;
            }
        }
        let mut module = Self { header, items };
        module.resolve();
        module
    }

    /// Finds the items that each item names.
    fn resolve(&mut self) {
        let mut indices: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, item) in self.items.iter().enumerate() {
            indices.entry(item.name).or_default().push(index);
        }
        for item in &mut self.items {
            for word in item.text.split(|c: char| !is_name(c)) {
                item.references
                    .extend(indices.get(word).into_iter().flatten());
            }
        }
    }

    pub(crate) fn kernels(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let kernels = self.items.iter().enumerate();
        kernels
            .filter(|(_, item)| item.is_kernel)
            .map(|(index, item)| (index, item.name))
    }

    /// Returns the items that the code of `kernels` uses, with the kernels.
    pub(crate) fn reachable(&self, kernels: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut reachable = BTreeSet::new();
        let mut pending: Vec<usize> = kernels.iter().copied().collect();
        while let Some(index) = pending.pop() {
            if reachable.insert(index) {
                pending.extend(&self.items[index].references);
            }
        }
        reachable
    }

    /// Returns the text of the module with the code of `kernels` only, and a trap in the others.
    ///
    /// `replaced` is an item and its text instead.
    pub(crate) fn text(
        &self,
        kernels: &BTreeSet<usize>,
        replaced: Option<(usize, &str)>,
    ) -> String {
        let reachable = self.reachable(kernels);
        let mut text = self.header.clone();
        for (index, item) in self.items.iter().enumerate() {
            if reachable.contains(&index) {
                match replaced {
                    Some((replaced, replacement)) if replaced == index => {
                        text.push_str(replacement);
                    }
                    _ => text.push_str(item.text),
                }
            } else if item.is_kernel {
                text.push_str(&item.text[..item.body.start]);
                text.push_str("\ntrap;\n}\n");
            }
        }
        text
    }
}

impl<'a> Item<'a> {
    fn parse(text: &'a str) -> Self {
        let is_kernel = text.contains(".entry ");
        let is_function = is_kernel || text.contains(".func");
        let body = match (text.find("\n{"), text.rfind('}')) {
            (Some(open), Some(close)) if is_function => open + 2..close,
            _ => 0..0,
        };
        let name = if is_function {
            function_name(text, is_kernel)
        } else {
            variable_name(text)
        };
        Self {
            name,
            is_kernel,
            text,
            body,
            references: BTreeSet::new(),
        }
    }
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the name in `.visible .entry name(` or `.func (.param .b32 result) name(`.
fn function_name(text: &str, is_kernel: bool) -> &str {
    let keyword = if is_kernel { ".entry " } else { ".func" };
    let (_, after) = text.split_once(keyword).unwrap_or_default();
    let after = match after.trim_start().strip_prefix('(') {
        Some(result) => result.split_once(')').unwrap_or_default().1,
        None => after,
    };
    let after = after.trim_start();
    &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())]
}

/// Returns the name in `.global .align 4 .b8 name[8] = {…};`.
fn variable_name(text: &str) -> &str {
    let end = text.find(['[', '=', ';']).unwrap_or(text.len());
    text[..end].split_whitespace().last().unwrap_or_default()
}
