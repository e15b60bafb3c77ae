//! Source lines of instructions, from the `.loc` directives of a module.

use std::sync::Arc;

use crate::exec::check::source::{Entry, EntryKind, SourceMap, SourcePosition};
use crate::syntax::{self, Module};

/// Returns the source lines of a module's instructions.
pub(super) fn source_map(module: &Module) -> SourceMap {
    let mut entries = Vec::new();
    for function in module.functions.iter().filter(|one| one.is_defined()) {
        entries.push(Entry {
            ptx_line: function.span.line,
            kind: EntryKind::Function(module.text(function.name).into()),
        });
        for location in &function.locations {
            let name = location
                .function
                .and_then(|label| module.debug_strings.get(label));
            entries.push(Entry {
                ptx_line: location.ptx_line,
                kind: EntryKind::Location {
                    position: position(location.position),
                    function: name.unwrap_or_default().into(),
                    inlined_at: location.inlined_at.map(position),
                },
            });
        }
    }
    let files = module
        .files
        .iter()
        .map(|file| (file.index, file.path.as_str().into()));
    SourceMap::new(Arc::clone(&module.source), files, entries)
}

fn position(position: syntax::SourcePosition) -> SourcePosition {
    let syntax::SourcePosition { file, line, column } = position;
    SourcePosition { file, line, column }
}
