//! Programs that access two allocations on three streams, and the conditions on each access.

use std::fmt;

use curium_driver::AsRawStream as _;
use curium_driver::Stream;
use curium_driver::hazard::Accesses;
use curium_tests::begin;

use super::driver::{RecordingDriver, WorkSet, index};

const STREAMS: usize = 3;
const ALLOCATIONS: usize = 2;

/// A kind of access to an allocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// The deallocation, which waits like a write. A new allocation on the stream replaces it.
    Free,
}

/// One access on one stream.
#[derive(Clone, Copy)]
struct Step {
    kind: AccessKind,
    allocation: usize,
    stream: usize,
}

/// A sequence of accesses.
pub(crate) struct Program<'a>(&'a [Step]);

/// An allocation with the state of the model.
struct Allocation {
    accesses: Accesses,
    /// The accesses since its allocation, which is the first.
    history: Vec<Access>,
}

/// A performed access.
struct Access {
    kind: AccessKind,
    stream: usize,
    number: usize,
}

/// One run of a program.
struct Run<'a> {
    driver: &'a RecordingDriver,
    streams: [Stream; STREAMS],
    allocations: Vec<Allocation>,
    /// The number of work items.
    works: usize,
    /// For each pair of streams, the number of items of the second that the first has waited for.
    waited: [[usize; STREAMS]; STREAMS],
    /// A kind of access without recorded waits, as a negative control.
    forgotten: Option<AccessKind>,
    calls: u64,
}

impl Program<'_> {
    /// Calls `check` with every program of `length` accesses, up to renaming of streams and
    /// allocations.
    pub(crate) fn each(length: usize, mut check: impl FnMut(&Program<'_>)) {
        extend(&mut Vec::new(), length, &mut check);
    }

    /// Runs the program with the `failing`-th record or wait failing, and returns the number of
    /// calls, or the violation.
    pub(crate) fn run(
        &self,
        driver: &RecordingDriver,
        failing: Option<u64>,
    ) -> Result<u64, String> {
        let mut run = Run::new(driver, None);
        driver.fail(failing.unwrap_or_default());
        for step in self.0 {
            run.step(*step, failing.is_some())?;
        }
        Ok(run.calls)
    }

    /// Runs the program without the ordering of one kind of access.
    pub(crate) fn run_forgetting(
        &self,
        driver: &RecordingDriver,
        kind: AccessKind,
    ) -> Result<(), String> {
        let mut run = Run::new(driver, Some(kind));
        self.0.iter().try_for_each(|step| run.step(*step, false))
    }
}

/// Appends `length` steps to `steps`. A stream or allocation is one that was used or the next
/// unused one: others differ only in their names.
fn extend(steps: &mut Vec<Step>, length: usize, check: &mut impl FnMut(&Program<'_>)) {
    if length == 0 {
        return check(&Program(steps));
    }
    // Both allocations are on the first stream.
    let streams = steps.iter().map(|step| step.stream).max().unwrap_or(0) + 2;
    let allocations = steps
        .iter()
        .map(|step| step.allocation + 2)
        .max()
        .unwrap_or(1);
    for kind in [AccessKind::Read, AccessKind::Write, AccessKind::Free] {
        for allocation in 0..allocations.min(ALLOCATIONS) {
            for stream in 0..streams.min(STREAMS) {
                steps.push(Step {
                    kind,
                    allocation,
                    stream,
                });
                extend(steps, length - 1, check);
                steps.pop();
            }
        }
    }
}

impl<'a> Run<'a> {
    fn new(driver: &'a RecordingDriver, forgotten: Option<AccessKind>) -> Self {
        driver.clear();
        let streams = [(); STREAMS].map(|()| driver.stream());
        let mut run = Self {
            driver,
            streams,
            allocations: Vec::new(),
            works: 0,
            waited: Default::default(),
            forgotten,
            calls: 0,
        };
        for _ in 0..ALLOCATIONS {
            let allocation = run.allocate(0);
            run.allocations.push(allocation);
        }
        run
    }

    fn allocate(&mut self, stream: usize) -> Allocation {
        let (number, _) = self.work(stream);
        let accesses = Accesses::allocated(&self.streams[stream]);
        Allocation {
            accesses,
            history: vec![Access {
                kind: AccessKind::Write,
                stream,
                number,
            }],
        }
    }

    fn work(&mut self, stream: usize) -> (usize, WorkSet) {
        let number = self.works;
        self.works += 1;
        (number, self.driver.work(&self.streams[stream], number))
    }

    fn step(&mut self, step: Step, may_fail: bool) -> Result<(), String> {
        let Step {
            kind,
            allocation,
            stream,
        } = step;
        let needed = self.needed(step);
        let outcome = match kind {
            _ if self.forgotten == Some(kind) => Ok(()),
            AccessKind::Read => self.allocations[allocation]
                .accesses
                .before_read(&mut begin(&self.streams[stream])),
            AccessKind::Write | AccessKind::Free => self.allocations[allocation]
                .accesses
                .before_write(&mut begin(&self.streams[stream])),
        };
        self.check_waits(stream, &needed, outcome.is_err())?;
        if let Err(error) = outcome {
            return if may_fail {
                Ok(())
            } else {
                Err(error.to_string())
            };
        }
        self.enqueue(step)
    }

    /// Returns the streams with conflicting accesses for which the stream of this step has not
    /// waited.
    fn needed(&self, step: Step) -> Vec<usize> {
        let conflicts = self.allocations[step.allocation].conflicts(step.kind);
        let mut streams: Vec<_> = conflicts
            .filter(|access| {
                access.stream != step.stream
                    && self.waited[step.stream][access.stream] <= access.number
            })
            .map(|access| access.stream)
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
        let (waits, records) = self.driver.take_waits();
        self.calls += (waits.len() + records) as u64 + u64::from(has_failed);
        let mut others = Vec::new();
        for (waiting, other) in &waits {
            let waiting = self.stream_with_index(*waiting);
            let other = self
                .stream_with_index(*other)
                .ok_or("no stream of the event")?;
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
        for other in others {
            self.waited[stream][other] = self.works;
        }
        Ok(())
    }

    /// Returns the number of the stream with this index in the driver's records.
    fn stream_with_index(&self, raw: usize) -> Option<usize> {
        self.streams
            .iter()
            .position(|stream| index(stream.as_raw()) == raw)
    }

    /// Enqueues the work on its stream, and checks that it is ordered after all conflicting
    /// accesses.
    fn enqueue(&mut self, step: Step) -> Result<(), String> {
        let Step {
            kind,
            allocation,
            stream,
        } = step;
        let (number, past) = self.work(stream);
        let conflicts = self.allocations[allocation].conflicts(kind);
        let missing = conflicts
            .fold(WorkSet::default(), |all, access| {
                all.with(WorkSet::one(access.number))
            })
            .without(past);
        if !missing.is_empty() {
            return Err(format!(
                "work {number}, a {kind:?} on stream {stream}, is not ordered after {missing:?}"
            ));
        }
        match kind {
            AccessKind::Read => self.allocations[allocation]
                .accesses
                .after_read(&mut begin(&self.streams[stream])),
            AccessKind::Write => self.allocations[allocation]
                .accesses
                .after_write(&mut begin(&self.streams[stream])),
            AccessKind::Free => self.allocations[allocation] = self.allocate(stream),
        }
        if kind != AccessKind::Free {
            self.allocations[allocation].history.push(Access {
                kind,
                stream,
                number,
            });
        }
        Ok(())
    }
}

impl Allocation {
    /// Returns the accesses that conflict with one of this kind: for a read the last write,
    /// otherwise the last write and all later reads.
    fn conflicts(&self, kind: AccessKind) -> impl Iterator<Item = &Access> {
        let last = self
            .history
            .iter()
            .rposition(|access| access.kind == AccessKind::Write)
            .unwrap_or_default();
        self.history[last..]
            .iter()
            .filter(move |access| kind != AccessKind::Read || access.kind == AccessKind::Write)
    }
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step {
            kind,
            allocation,
            stream,
        } in self.0
        {
            writeln!(
                formatter,
                "{kind:?} of allocation {allocation} on stream {stream}"
            )?;
        }
        Ok(())
    }
}
