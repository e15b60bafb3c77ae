//! Programs that access two allocations on three streams, and the conditions on each access.

use std::fmt;

use curium_driver::Stream;
use curium_driver::hazard::Accesses;
use curium_tests::guard;

use super::driver::{Notes, Works, index};

const STREAMS: usize = 3;
const PIECES: usize = 2;

/// A kind of access to an allocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    Read,
    Write,
    /// The deallocation, which waits like a write. A new allocation on the stream replaces it.
    Free,
}

/// One access on one stream.
#[derive(Clone, Copy)]
struct Step {
    what: Use,
    piece: usize,
    stream: usize,
}

/// A sequence of accesses.
pub(crate) struct Program<'a>(&'a [Step]);

/// An allocation with the state of the model.
struct Piece {
    accesses: Accesses,
    /// The accesses since its allocation, which is the first.
    uses: Vec<Done>,
}

/// A performed access.
struct Done {
    what: Use,
    stream: usize,
    number: usize,
}

/// One run of a program.
struct Run<'a> {
    notes: &'a Notes,
    streams: [Stream; STREAMS],
    pieces: Vec<Piece>,
    /// The number of work items.
    works: usize,
    /// For each pair of streams, the number of items of the second that the first has waited for.
    waited: [[usize; STREAMS]; STREAMS],
    /// A kind of access without recorded waits, as a negative control.
    forgotten: Option<Use>,
    calls: u64,
}

impl Program<'_> {
    /// Calls `check` with every program of `length` accesses, up to renaming of streams and allocations.
    pub(crate) fn each(length: usize, mut check: impl FnMut(&Program<'_>)) {
        extend(&mut Vec::new(), length, &mut check);
    }

    /// Runs the program with the `failing`-th record or wait failing, and returns the number of calls, or the
    /// violation.
    pub(crate) fn run(&self, notes: &Notes, failing: Option<u64>) -> Result<u64, String> {
        let mut run = Run::new(notes, None);
        notes.fail(failing.unwrap_or_default());
        for step in self.0 {
            run.step(*step, failing.is_some())?;
        }
        Ok(run.calls)
    }

    /// Runs the program without the ordering of one kind of access.
    pub(crate) fn run_forgetting(&self, notes: &Notes, what: Use) -> Result<(), String> {
        let mut run = Run::new(notes, Some(what));
        self.0.iter().try_for_each(|step| run.step(*step, false))
    }
}

/// Appends `length` steps to `steps`. A stream or allocation is one that was used or the next unused one: others differ
/// only in their names.
fn extend(steps: &mut Vec<Step>, length: usize, check: &mut impl FnMut(&Program<'_>)) {
    if length == 0 {
        return check(&Program(steps));
    }
    // Both allocations are made on the first stream.
    let streams = steps.iter().map(|step| step.stream).max().unwrap_or(0) + 2;
    let pieces = steps.iter().map(|step| step.piece + 2).max().unwrap_or(1);
    for what in [Use::Read, Use::Write, Use::Free] {
        for piece in 0..pieces.min(PIECES) {
            for stream in 0..streams.min(STREAMS) {
                steps.push(Step {
                    what,
                    piece,
                    stream,
                });
                extend(steps, length - 1, check);
                steps.pop();
            }
        }
    }
}

impl<'a> Run<'a> {
    fn new(notes: &'a Notes, forgotten: Option<Use>) -> Self {
        notes.clear();
        let streams = [(); STREAMS].map(|()| notes.stream());
        let mut run = Self {
            notes,
            streams,
            pieces: Vec::new(),
            works: 0,
            waited: Default::default(),
            forgotten,
            calls: 0,
        };
        for _ in 0..PIECES {
            let piece = run.allocate(0);
            run.pieces.push(piece);
        }
        run
    }

    fn allocate(&mut self, stream: usize) -> Piece {
        let (number, _) = self.work(stream);
        let accesses = Accesses::allocated(&self.streams[stream]);
        Piece {
            accesses,
            uses: vec![Done {
                what: Use::Write,
                stream,
                number,
            }],
        }
    }

    fn work(&mut self, stream: usize) -> (usize, Works) {
        let number = self.works;
        self.works += 1;
        (number, self.notes.work(&self.streams[stream], number))
    }

    fn step(&mut self, step: Step, may_fail: bool) -> Result<(), String> {
        let Step {
            what,
            piece,
            stream,
        } = step;
        let needed = self.needed(step);
        let outcome = match what {
            _ if self.forgotten == Some(what) => Ok(()),
            Use::Read => self.pieces[piece]
                .accesses
                .before_read(&mut guard(&self.streams[stream])),
            Use::Write | Use::Free => self.pieces[piece]
                .accesses
                .before_write(&mut guard(&self.streams[stream])),
        };
        self.check_waits(stream, &needed, outcome.is_err())?;
        if let Err(error) = outcome {
            return if may_fail {
                Ok(())
            } else {
                Err(error.to_string())
            };
        }
        self.put(step)
    }

    /// Returns the streams with conflicting accesses for which the stream of this step has not waited.
    fn needed(&self, step: Step) -> Vec<usize> {
        let conflicts = self.pieces[step.piece].conflicts(step.what);
        let mut streams: Vec<_> = conflicts
            .filter(|done| {
                done.stream != step.stream && self.waited[step.stream][done.stream] <= done.number
            })
            .map(|done| done.stream)
            .collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Checks that only this stream waited, only for streams it must wait for, and once for each.
    fn check_waits(
        &mut self,
        stream: usize,
        needed: &[usize],
        has_failed: bool,
    ) -> Result<(), String> {
        let (waits, records) = self.notes.take_waits();
        self.calls += (waits.len() + records) as u64 + u64::from(has_failed);
        let position = |raw: usize| {
            self.streams
                .iter()
                .position(|stream| index(stream.as_raw()) == raw)
        };
        let mut others = Vec::new();
        for (waiting, other) in &waits {
            let (waiting, other) = (
                position(*waiting),
                position(*other).ok_or("an event of no stream was waited for")?,
            );
            if waiting != Some(stream) || others.contains(&other) || !needed.contains(&other) {
                return Err(format!(
                    "stream {waiting:?} waited for stream {other}, and must wait for {needed:?} only"
                ));
            }
            others.push(other);
        }
        if !has_failed && records != waits.len() {
            return Err(format!(
                "{records} events were recorded for {} waits",
                waits.len()
            ));
        }
        others
            .iter()
            .for_each(|other| self.waited[stream][*other] = self.works);
        Ok(())
    }

    /// Enqueues the work on its stream, and checks that it is ordered after all conflicting accesses.
    fn put(&mut self, step: Step) -> Result<(), String> {
        let Step {
            what,
            piece,
            stream,
        } = step;
        let (number, past) = self.work(stream);
        let conflicts = self.pieces[piece].conflicts(what);
        let missing = conflicts
            .fold(Works::default(), |all, done| {
                all.with(Works::one(done.number))
            })
            .without(past);
        if !missing.is_empty() {
            return Err(format!(
                "work {number}, a {what:?} on stream {stream}, does not come behind {missing:?}"
            ));
        }
        match what {
            Use::Read => self.pieces[piece]
                .accesses
                .after_read(&mut guard(&self.streams[stream])),
            Use::Write => self.pieces[piece]
                .accesses
                .after_write(&mut guard(&self.streams[stream])),
            Use::Free => self.pieces[piece] = self.allocate(stream),
        }
        if what != Use::Free {
            self.pieces[piece].uses.push(Done {
                what,
                stream,
                number,
            });
        }
        Ok(())
    }
}

impl Piece {
    /// Returns the accesses that conflict with one of this kind: for a read the last write, otherwise the last write
    /// and all later reads.
    fn conflicts(&self, what: Use) -> impl Iterator<Item = &Done> {
        let last = self
            .uses
            .iter()
            .rposition(|done| done.what == Use::Write)
            .unwrap_or_default();
        self.uses[last..]
            .iter()
            .filter(move |done| what != Use::Read || done.what == Use::Write)
    }
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step {
            what,
            piece,
            stream,
        } in self.0
        {
            writeln!(formatter, "{what:?} of piece {piece} on stream {stream}")?;
        }
        Ok(())
    }
}
