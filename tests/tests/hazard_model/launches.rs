//! Graph launches among the accesses of the memory's owner, for every short program.
//!
//! One graph reads the memory and one writes it; both are captured before any step of the program. In every program,
//! each access and each launch is ordered after all conflicting ones.

use curium_driver::hazard::Accesses;
use curium_driver::{Error, Graph, GraphExec, Result, Stream};
use curium_tests::guard;

use super::driver::{Notes, Works};

const STREAMS: usize = 3;
const LONGEST: usize = if cfg!(debug_assertions) { 3 } else { 4 };

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Read,
    Write,
    /// A write of a part.
    Part,
    LaunchReader,
    LaunchWriter,
}

const KINDS: [Kind; 5] = [
    Kind::Read,
    Kind::Write,
    Kind::Part,
    Kind::LaunchReader,
    Kind::LaunchWriter,
];

impl Kind {
    fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Part | Self::LaunchWriter)
    }

    fn is_launch(self) -> bool {
        matches!(self, Self::LaunchReader | Self::LaunchWriter)
    }
}

type Step = (Kind, usize);

struct Run<'a> {
    notes: &'a Notes,
    streams: [Stream; STREAMS],
    accesses: Accesses,
    graphs: Option<[GraphExec; 2]>,
    /// The accesses so far, starting with the allocation: whether each writes, and its number.
    done: Vec<(bool, usize)>,
    /// A kind of access that is not recorded, as a negative control.
    forgotten: Option<Kind>,
}

impl<'a> Run<'a> {
    fn new(notes: &'a Notes, forgotten: Option<Kind>) -> Self {
        notes.clear();
        let streams = [(); STREAMS].map(|()| notes.stream());
        notes.work(&streams[0], 0);
        let accesses = Accesses::leasable(&streams[0]);
        Self {
            notes,
            streams,
            accesses,
            graphs: None,
            done: vec![(true, 0)],
            forgotten,
        }
    }

    fn capture(&mut self) -> Result<()> {
        let (context, accesses) = (self.notes.context(), &mut self.accesses);
        let reader = Graph::capture(context, |scope| {
            accesses.before_read(&mut guard(scope))?;
            accesses.after_read(&mut guard(scope));
            Ok::<_, Error>(())
        })?;
        let writer = Graph::capture(context, |scope| {
            accesses.before_write(&mut guard(scope))?;
            accesses.after_write(&mut guard(scope));
            Ok::<_, Error>(())
        })?;
        self.graphs = Some([reader.instantiate()?, writer.instantiate()?]);
        Ok(())
    }

    fn step(&mut self, (kind, stream): Step) -> std::result::Result<(), String> {
        let stream = self.streams[stream].clone();
        if self.forgotten != Some(kind) {
            self.before(kind, &stream)
                .map_err(|error| error.to_string())?;
        }
        let number = self.done.len();
        let past = self.notes.work(&stream, number);
        match kind {
            Kind::Read => self.accesses.after_read(&mut guard(&stream)),
            Kind::Write => self.accesses.after_write(&mut guard(&stream)),
            Kind::Part => self.accesses.after_partial_write(&mut guard(&stream)),
            Kind::LaunchReader | Kind::LaunchWriter => {}
        }
        let last = self
            .done
            .iter()
            .rposition(|(is_write, _)| *is_write)
            .unwrap_or_default();
        let conflicts = self.done[last..]
            .iter()
            .filter(|(is_write, _)| *is_write || kind.is_write());
        let missing = conflicts
            .fold(Works::default(), |all, (_, work)| {
                all.with(Works::one(*work))
            })
            .without(past);
        self.done.push((kind.is_write(), number));
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("{kind:?} does not come behind {missing:?}"))
        }
    }

    /// Makes the stream wait. A launch records itself immediately: the following work represents it.
    fn before(&mut self, kind: Kind, stream: &Stream) -> Result<()> {
        match (kind, &mut self.graphs) {
            (Kind::Read, _) => self.accesses.before_read(&mut guard(stream)),
            (Kind::Write | Kind::Part, _) => self.accesses.before_write(&mut guard(stream)),
            (Kind::LaunchReader, Some([reader, _])) => reader.launch(stream),
            (Kind::LaunchWriter, Some([_, writer])) => writer.launch(stream),
            (_, None) => Ok(()),
        }
    }
}

/// Runs every program of up to `longest` steps, captured before each step in turn; returns the number of programs, the
/// number of failures, and the first failure.
fn check_all(longest: usize, forgotten: Option<Kind>) -> (u64, u64, Option<String>) {
    let notes = Notes::new();
    let (mut programs, mut wrong, mut first) = (0, 0, None);
    each(&mut Vec::new(), longest, &mut |steps| {
        for captured in 0..steps.len() {
            if steps[..captured].iter().any(|(kind, _)| kind.is_launch()) {
                break;
            }
            let mut run = Run::new(&notes, forgotten);
            let result = steps.iter().enumerate().try_for_each(|(index, step)| {
                if index == captured {
                    run.capture().map_err(|error| error.to_string())?;
                }
                run.step(*step)
            });
            programs += 1;
            if let Err(broken) = result {
                wrong += 1;
                first.get_or_insert_with(|| {
                    format!("{broken}, captured before step {captured} of {steps:?}")
                });
            }
        }
    });
    (programs, wrong, first)
}

/// Calls `check` with every program up to a length, up to renaming of streams.
fn each(steps: &mut Vec<Step>, length: usize, check: &mut impl FnMut(&[Step])) {
    if !steps.is_empty() {
        check(steps);
    }
    if length == 0 {
        return;
    }
    let streams = steps.iter().map(|(_, stream)| *stream).max().unwrap_or(0) + 2;
    for kind in KINDS {
        for stream in 0..streams.min(STREAMS) {
            steps.push((kind, stream));
            each(steps, length - 1, check);
            steps.pop();
        }
    }
}

#[test]
fn every_short_program_with_launches_orders_all_that_conflict() {
    let (programs, wrong, first) = check_all(LONGEST, None);
    assert!(wrong == 0, "{wrong} of {programs} are wrong: {first:?}");
    assert!(programs > 1_000, "{programs} programs");
}

#[test]
fn model_finds_programs_that_forget_a_launch() {
    for kind in [Kind::LaunchReader, Kind::LaunchWriter, Kind::Write] {
        let (programs, wrong, _) = check_all(2, Some(kind));
        assert!(
            wrong > 3,
            "{wrong} of {programs} are wrong without the waits and notes of {kind:?}"
        );
    }
}
