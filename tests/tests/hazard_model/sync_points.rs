//! Rule 5 as a state machine: two threads, each step of which is atomic for the driver or the
//! memory of the process.
//!
//! One thread enqueues accesses on a stream and records after each the number of sync points of the
//! stream. The other creates sync points: it increments the number, records the event, and stores
//! that its own stream has waited for it; then it decides for each recorded access whether a wait
//! is required, as a later access to the same memory would.

/// The order of the steps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// The order in `driver/src/hazard.rs`.
    Correct,
    /// An access records the number of sync points before its work is enqueued.
    RecordBeforeWork,
    /// A sync point is counted after it was recorded.
    CountAfterRecord,
}

/// The number of accesses and of sync points.
const ACCESSES: usize = 3;
const SYNC_POINTS: usize = 3;

#[derive(Clone, Default)]
struct State {
    /// The number of steps of each thread so far.
    steps: [usize; 2],
    /// The number of enqueued accesses.
    accesses: usize,
    /// The number of counted sync points.
    sync_points: u64,
    /// The number recorded by each access.
    recorded: Vec<u64>,
    /// The number of accesses ordered before the last recorded sync point.
    before: usize,
    /// The number of the sync point being created, and of the last one that was waited for.
    current: u64,
    waited: Option<u64>,
    /// The number of accesses covered by the wait.
    covered: usize,
}

/// Runs every interleaving and returns their number, or one that skips a required wait.
pub(crate) fn check(order: Order) -> Result<u64, String> {
    explore(&State::default(), order, &mut Vec::new())
}

fn explore(state: &State, order: Order, path: &mut Vec<usize>) -> Result<u64, String> {
    let lengths = [2 * ACCESSES, 3 * SYNC_POINTS];
    let mut interleavings = 0;
    for (thread, length) in lengths.into_iter().enumerate() {
        if state.steps[thread] == length {
            continue;
        }
        let mut next = state.clone();
        path.push(thread);
        next.step(thread, order);
        next.assert_safe()
            .map_err(|violation| format!("{violation} after the threads took turns as {path:?}"))?;
        interleavings += explore(&next, order, path)?;
        path.pop();
    }
    Ok(interleavings.max(1))
}

impl State {
    fn step(&mut self, thread: usize, order: Order) {
        let step = self.steps[thread];
        self.steps[thread] += 1;
        if thread == 0 {
            let is_record = (step % 2 == 1) != (order == Order::RecordBeforeWork);
            if is_record {
                self.recorded.push(self.sync_points);
            } else {
                self.accesses += 1;
            }
            return;
        }
        match (step % 3, order == Order::CountAfterRecord) {
            (0, false) | (1, true) => {
                self.sync_points += 1;
                self.current = self.sync_points;
            }
            (1, false) | (0, true) => self.before = self.accesses,
            _ => {
                self.waited = Some(self.current);
                self.covered = self.before;
            }
        }
    }

    /// Checks that every recorded access for which no wait is inserted is covered by an earlier
    /// wait.
    fn assert_safe(&self) -> Result<(), String> {
        for (number, sync_points_seen) in self.recorded.iter().enumerate().take(self.accesses) {
            let is_waited_for = self
                .waited
                .is_some_and(|sync_point| sync_point > *sync_points_seen);
            if is_waited_for && number >= self.covered {
                return Err(format!(
                    "access {number} is treated as covered by a wait that covers only {} accesses",
                    self.covered
                ));
            }
        }
        Ok(())
    }
}
