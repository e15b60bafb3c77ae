//! Graph launches among the accesses of the memory's owner, for every short program.
//!
//! One graph reads the memory and one writes it; both are captured before any step of the program.
//! In every program, each access and each launch is ordered after all conflicting ones.

use curium_driver::hazard::Accesses;
use curium_driver::{Error, Graph, GraphExec, Result, Stream};
use curium_tests::begin;

use super::driver::{RecordingDriver, WorkSet};

const STREAMS: usize = 3;
const MAX_LENGTH: usize = if cfg!(debug_assertions) { 3 } else { 4 };

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
    driver: &'a RecordingDriver,
    streams: [Stream; STREAMS],
    accesses: Accesses,
    graphs: Option<[GraphExec; 2]>,
    /// The accesses so far, starting with the allocation: `true` for a write, and the number.
    performed: Vec<(bool, usize)>,
    /// A kind of access that is not recorded, as a negative control.
    forgotten: Option<Kind>,
}

impl<'a> Run<'a> {
    fn new(driver: &'a RecordingDriver, forgotten: Option<Kind>) -> Self {
        driver.clear();
        let streams = [(); STREAMS].map(|()| driver.stream());
        driver.work(&streams[0], 0);
        let accesses = Accesses::leasable(&streams[0]);
        Self {
            driver,
            streams,
            accesses,
            graphs: None,
            performed: vec![(true, 0)],
            forgotten,
        }
    }

    fn capture(&mut self) -> Result<()> {
        let context = self.driver.context();
        let accesses = &mut self.accesses;
        let reader = Graph::capture(context, |scope| {
            accesses.before_read(&mut begin(scope))?;
            accesses.after_read(&mut begin(scope));
            Ok::<_, Error>(())
        })?;
        let writer = Graph::capture(context, |scope| {
            accesses.before_write(&mut begin(scope))?;
            accesses.after_write(&mut begin(scope));
            Ok::<_, Error>(())
        })?;
        self.graphs = Some([reader.instantiate()?, writer.instantiate()?]);
        Ok(())
    }

    fn step(&mut self, step: Step) -> std::result::Result<(), String> {
        let (kind, stream) = step;
        let stream = self.streams[stream].clone();
        if self.forgotten != Some(kind) {
            self.before(kind, &stream)
                .map_err(|error| error.to_string())?;
        }
        let number = self.performed.len();
        let past = self.driver.work(&stream, number);
        match kind {
            Kind::Read => self.accesses.after_read(&mut begin(&stream)),
            Kind::Write => self.accesses.after_write(&mut begin(&stream)),
            Kind::Part => self.accesses.after_partial_write(&mut begin(&stream)),
            Kind::LaunchReader | Kind::LaunchWriter => {}
        }
        let last = self
            .performed
            .iter()
            .rposition(|(is_write, _)| *is_write)
            .unwrap_or_default();
        let conflicts = self.performed[last..]
            .iter()
            .filter(|(is_write, _)| *is_write || kind.is_write());
        let missing = conflicts
            .fold(WorkSet::default(), |all, (_, work)| {
                all.with(WorkSet::one(*work))
            })
            .without(past);
        self.performed.push((kind.is_write(), number));
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("{kind:?} is not ordered after {missing:?}"))
        }
    }

    /// Makes the stream wait. A launch records itself immediately: the following work represents
    /// it.
    fn before(&mut self, kind: Kind, stream: &Stream) -> Result<()> {
        match (kind, &mut self.graphs) {
            (Kind::Read, _) => self.accesses.before_read(&mut begin(stream)),
            (Kind::Write | Kind::Part, _) => self.accesses.before_write(&mut begin(stream)),
            (Kind::LaunchReader, Some([reader, _])) => reader.launch(stream),
            (Kind::LaunchWriter, Some([_, writer])) => writer.launch(stream),
            (_, None) => Ok(()),
        }
    }
}

/// Runs every program of up to `max_length` steps, captured before each step in turn; returns the
/// number of programs, the number of failures, and the first failure.
fn check_all(max_length: usize, forgotten: Option<Kind>) -> (u64, u64, Option<String>) {
    let driver = RecordingDriver::new();
    let mut programs = 0;
    let mut violations = 0;
    let mut first = None;
    each(&mut Vec::new(), max_length, &mut |steps| {
        for captured in 0..steps.len() {
            if steps[..captured].iter().any(|(kind, _)| kind.is_launch()) {
                break;
            }
            let mut run = Run::new(&driver, forgotten);
            let result = steps.iter().enumerate().try_for_each(|(index, step)| {
                if index == captured {
                    run.capture().map_err(|error| error.to_string())?;
                }
                run.step(*step)
            });
            programs += 1;
            if let Err(violation) = result {
                violations += 1;
                first.get_or_insert_with(|| {
                    format!("{violation}, captured before step {captured} of {steps:?}")
                });
            }
        }
    });
    (programs, violations, first)
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
fn launch_programs_are_ordered() {
    let (programs, violations, first) = check_all(MAX_LENGTH, None);
    assert!(
        violations == 0,
        "{violations} of {programs} are wrong: {first:?}"
    );
    assert!(programs > 1_000, "{programs} programs");
}

#[test]
fn forgotten_launch_is_detected() {
    for kind in [Kind::LaunchReader, Kind::LaunchWriter, Kind::Write] {
        let (programs, violations, _) = check_all(2, Some(kind));
        assert!(
            violations > 3,
            "{violations} of {programs} are wrong without the waits and records of {kind:?}"
        );
    }
}
