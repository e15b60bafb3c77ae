//! Graphs that use pieces of memory, and outlive them.

use std::collections::HashMap;
use std::ops::Range;

use curium_driver::{Context, Graph, GraphExec, Stream};

use super::Piece;

/// The graphs of a program.
#[derive(Default)]
pub(super) struct Graphs {
    copies: Vec<Copy>,
    /// What pieces that graphs use held when they were dropped, or hold since a graph wrote them.
    left: HashMap<u64, Vec<u32>>,
    launches: usize,
}

/// A graph that copies a part of a piece to the same place of another.
struct Copy {
    executable: GraphExec,
    source: u64,
    target: u64,
    range: Range<usize>,
}

impl Graphs {
    /// How often graphs were launched.
    pub(super) fn launches(&self) -> usize {
        self.launches
    }

    /// Whether a graph uses a piece.
    pub(super) fn use_piece(&self, number: u64) -> bool {
        self.copies.iter().any(|copy| copy.source == number || copy.target == number)
    }

    /// Remembers what a piece holds that is about to be dropped.
    pub(super) fn keep(&mut self, number: u64, model: &[u32]) {
        if self.use_piece(number) {
            self.left.insert(number, model.to_vec());
        }
    }

    /// Makes a graph, if both pieces can be leased; the target comes back.
    pub(super) fn capture(&mut self, context: &Context, source: &Piece, target: Piece, range: Range<usize>) -> Piece {
        let mut target = target;
        if range.is_empty() || !source.memory.is_leasable() || !target.memory.is_leasable() {
            return target;
        }
        // The oldest ends.
        if self.copies.len() == 3 {
            self.copies.remove(0);
        }
        let graph = Graph::capture(context, |scope| {
            let from = source.memory.view().slice(range.clone())?;
            target.memory.view_mut().slice(range.clone())?.copy_from_device_on(scope, &from)
        });
        let executable = graph.and_then(|graph| graph.instantiate()).expect("the copy can be captured");
        self.copies.push(Copy { executable, source: source.number, target: target.number, range });
        target
    }

    /// Launches one, if there is any: it copies what the source holds by then.
    pub(super) fn launch(&mut self, which: usize, stream: &Stream, pieces: &mut [Piece]) {
        if self.copies.is_empty() {
            return;
        }
        let at = which % self.copies.len();
        let Copy { executable, source, target, range } = &mut self.copies[at];
        executable.launch(stream).expect("everything is still there");
        self.launches += 1;
        let live = pieces.iter().find(|piece| piece.number == *source).map(|piece| &piece.model);
        let model = live.or_else(|| self.left.get(source)).expect("the source is or was there");
        let values = model[range.clone()].to_vec();
        let live = pieces.iter_mut().find(|piece| piece.number == *target).map(|piece| &mut piece.model);
        let model = live.or_else(|| self.left.get_mut(target)).expect("the target is or was there");
        model[range.clone()].copy_from_slice(&values);
    }
}
