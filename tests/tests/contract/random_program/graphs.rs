//! Graphs that use the allocations of a random program and outlive them.

use std::collections::HashMap;
use std::ops::Range;

use curium_driver::{Context, Graph, GraphExec, Stream};

use curium_tests::TestResult;

use super::Piece;

/// The graphs of a program.
#[derive(Default)]
pub(super) struct Graphs {
    copies: Vec<Copy>,
    /// The content of dropped allocations that graphs still use, updated when a graph writes them.
    left: HashMap<u64, Vec<u32>>,
    launches: usize,
}

/// A graph that copies a part of an allocation to the same place in another, optionally followed by
/// a fill.
struct Copy {
    executable: GraphExec,
    source: u64,
    target: u64,
    range: Range<usize>,
    then: Option<u32>,
}

impl Graphs {
    /// Returns the number of graph launches.
    pub(super) fn launches(&self) -> usize {
        self.launches
    }

    /// Returns `true` if a graph uses the allocation.
    pub(super) fn use_piece(&self, number: u64) -> bool {
        self.copies
            .iter()
            .any(|copy| copy.source == number || copy.target == number)
    }

    /// Records the content of an allocation that is about to be dropped.
    pub(super) fn keep(&mut self, number: u64, model: &[u32]) {
        if self.use_piece(number) {
            self.left.insert(number, model.to_vec());
        }
    }

    /// Captures a copy of a part of an allocation to the same place in another and, on a forked
    /// stream, an optional fill.
    pub(super) fn capture(
        &mut self,
        context: &Context,
        source: &mut Piece,
        target: &mut Piece,
        range: Range<usize>,
        then: Option<u32>,
    ) -> TestResult {
        // Drops the oldest graph.
        if self.copies.len() == 3 {
            self.copies.remove(0);
        }
        let graph = Graph::capture(context, |scope| {
            let one = scope.fork()?;
            let other = scope.fork()?;
            let from = source.memory.view();
            let from = from.slice(range.clone())?;
            target
                .memory
                .view_mut()
                .slice_mut(range.clone())?
                .on_mut(&one)
                .copy_from_device(&from)?;
            let mut part = source.memory.view_mut();
            let mut part = part.slice_mut(range.clone())?;
            then.map_or(Ok(()), |value| part.on_mut(&other).fill(value))
        });
        let executable = graph.and_then(|graph| graph.instantiate())?;
        self.copies.push(Copy {
            executable,
            source: source.number,
            target: target.number,
            range,
            then,
        });
        Ok(())
    }

    /// Drops one graph, if there is any, even while it runs.
    pub(super) fn end(&mut self, which: usize) {
        if !self.copies.is_empty() {
            self.copies.swap_remove(which % self.copies.len());
        }
    }

    /// Launches one graph, if there is any, and updates the expected content.
    pub(super) fn launch(
        &mut self,
        which: usize,
        stream: &Stream,
        pieces: &mut [Piece],
    ) -> TestResult {
        if self.copies.is_empty() {
            return Ok(());
        }
        let index = which % self.copies.len();
        let Copy {
            executable,
            source,
            target,
            range,
            then,
        } = &mut self.copies[index];
        executable.launch(stream)?;
        self.launches += 1;
        let mut model_of = |number: u64, change: &mut dyn FnMut(&mut [u32])| {
            let live = pieces
                .iter_mut()
                .find(|piece| piece.number == number)
                .map(|piece| &mut piece.model);
            let model = live
                .or_else(|| self.left.get_mut(&number))
                .expect("the piece is or was present");
            change(&mut model[range.clone()]);
        };
        let mut values = Vec::new();
        model_of(*source, &mut |model| {
            values = model.to_vec();
            if let Some(value) = then {
                model.fill(*value);
            }
        });
        model_of(*target, &mut |model| model.copy_from_slice(&values));
        Ok(())
    }
}
