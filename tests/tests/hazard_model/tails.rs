//! Rule 5 as a state machine: two threads, each step of which is one that the driver or the memory of the process makes at once.
//!
//! One thread puts uses on a stream and notes after each how many tails the stream has. The other makes tails: it counts one, has it
//! recorded, and remembers that its own stream has waited for it; then it asks of each use that was noted by then whether it must wait
//! for it, as a later use of the same memory would.

/// In which order the steps are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// As `driver/src/hazard.rs` does.
    AsWritten,
    /// A use notes the count of tails before its work is on the stream.
    NoteBeforeWork,
    /// A tail is counted after it was recorded.
    CountAfterRecord,
}

/// The number of uses and tails.
const USES: usize = 3;
const TAILS: usize = 3;

#[derive(Clone, Default)]
struct State {
    /// The number of steps each thread has taken.
    steps: [usize; 2],
    /// The number of uses that are on the stream.
    uses: usize,
    /// The number of tails that are counted.
    tails: u64,
    /// What each use has noted, in the order of the uses.
    notes: Vec<u64>,
    /// Of the last tail that was recorded, how many uses come before it.
    before: usize,
    /// The number of the tail that is being made, and of the last that was waited for.
    current: u64,
    waited: Option<u64>,
    /// The number of uses that come before what was waited for.
    covered: usize,
}

/// Tries every interleaving and gives how many there are, or one after which a use is taken for waited for that is not.
pub(crate) fn check(order: Order) -> Result<u64, String> {
    explore(&State::default(), order, &mut Vec::new())
}

fn explore(state: &State, order: Order, path: &mut Vec<usize>) -> Result<u64, String> {
    let lengths = [2 * USES, 3 * TAILS];
    let mut interleavings = 0;
    for (thread, length) in lengths.into_iter().enumerate() {
        if state.steps[thread] == length {
            continue;
        }
        let mut next = state.clone();
        path.push(thread);
        next.step(thread, order);
        next.assert_safe().map_err(|broken| format!("{broken} after the threads took turns as {path:?}"))?;
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
            let is_note = (step % 2 == 1) != (order == Order::NoteBeforeWork);
            if is_note {
                self.notes.push(self.tails);
            } else {
                self.uses += 1;
            }
            return;
        }
        match (step % 3, order == Order::CountAfterRecord) {
            (0, false) | (1, true) => {
                self.tails += 1;
                self.current = self.tails;
            }
            (1, false) | (0, true) => self.before = self.uses,
            _ => {
                self.waited = Some(self.current);
                self.covered = self.before;
            }
        }
    }

    /// Returns a use whose work is on the stream, that was noted, and that is taken for waited for comes before what was waited for.
    fn assert_safe(&self) -> Result<(), String> {
        for (number, note) in self.notes.iter().enumerate().take(self.uses) {
            let is_waited_for = self.waited.is_some_and(|tail| tail > *note);
            if is_waited_for && number >= self.covered {
                return Err(format!("use {number} is taken for waited for, of {} that are", self.covered));
            }
        }
        Ok(())
    }
}
