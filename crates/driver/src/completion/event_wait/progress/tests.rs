//! The stages of a wait, and every interleaving of a task and the background thread.

use super::*;

#[cfg(not(loom))]
#[test]
fn early_wake_happens_once() {
    let progress = Progress::<u32, ()>::new();
    assert_eq!(progress.state(), State::Woken);
    assert_eq!(progress.take_early(), None, "no task is registered");
    let first = progress.register(1, true);
    assert!(first.is_ok_and(|registered| registered.begins && registered.replaced.is_none()));
    let again = progress.register(2, true);
    assert!(again.is_ok_and(|registered| !registered.begins && registered.replaced == Some(1)));
    assert_eq!(progress.take_early(), Some(2));
    assert_eq!(progress.state(), State::Woken);
    let late = progress.register(3, true);
    assert!(late.is_ok_and(|registered| registered.begins));
    assert_eq!(progress.take_early(), None, "the task was woken early");
    assert_eq!(progress.end(()), Some(3));
    assert_eq!(progress.register(4, true).err(), Some(4));
    assert_eq!(progress.state(), State::Ended(Some(())));
    assert_eq!(progress.state(), State::Ended(None));
}

#[cfg(not(loom))]
#[test]
fn task_that_does_not_spin_is_not_woken_early() {
    let progress = Progress::<u32, ()>::new();
    assert!(progress.register(1, false).is_ok());
    assert_eq!(progress.take_early(), None);
    assert_eq!(progress.state(), State::Registered);
}

#[cfg(loom)]
mod model {
    use std::sync::Arc;

    use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use loom::thread;

    use super::*;

    /// A wait, the event, and the table of the background thread.
    struct Model {
        progress: Progress<(), ()>,
        /// `true` once the event has completed.
        event: AtomicBool,
        /// The entries: those that were added, and the one that is in the table.
        table: Mutex<Table>,
        wakes: AtomicU32,
        mutation: Option<Mutation>,
    }

    #[derive(Default)]
    struct Table {
        added: u32,
        current: Option<u32>,
    }

    /// A defect of the protocol that the model must find.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Mutation {
        /// The second entry of a task has the number of the first.
        ReusesTheEntry,
        /// A task that was woken early does not add another entry.
        ForgetsToBegin,
        /// A query that has finished its entry removes whichever entry is in the table.
        RemovesAnyEntry,
        /// A task that registers after the end waits for a wake-up.
        IgnoresTheEnd,
        /// The query that finds the end does not wake the task.
        LosesTheWaker,
    }

    impl Model {
        fn new(mutation: Option<Mutation>) -> Arc<Self> {
            Arc::new(Self {
                progress: Progress::new(),
                event: AtomicBool::new(false),
                table: Mutex::new(Table::default()),
                wakes: AtomicU32::new(0),
                mutation,
            })
        }

        /// Polls the future; returns `true` if it is ready.
        fn poll(&self, is_first: bool) -> bool {
            match self.progress.state() {
                State::Ended(_) => return true,
                State::Woken if self.event.load(Ordering::Acquire) => return true,
                State::Woken | State::Registered => {}
            }
            match self.progress.register((), true) {
                Err(()) => self.mutation != Some(Mutation::IgnoresTheEnd),
                Ok(registered) => {
                    if registered.begins
                        && (is_first || self.mutation != Some(Mutation::ForgetsToBegin))
                    {
                        let mut table = self.table.lock();
                        if table.added == 0 || self.mutation != Some(Mutation::ReusesTheEntry) {
                            table.added += 1;
                        }
                        table.current = Some(table.added);
                    }
                    false
                }
            }
        }

        /// Queries the entry, and wakes the task early if the event has not completed.
        fn query(&self) {
            let Some(entry) = self.table.lock().current else {
                return;
            };
            let waker = if self.event.load(Ordering::Acquire) {
                let waker = self.progress.end(());
                Some(waker.filter(|()| self.mutation != Some(Mutation::LosesTheWaker)))
            } else {
                self.progress.take_early().map(Some)
            };
            let Some(waker) = waker else {
                return;
            };
            if waker.is_some() {
                self.wakes.fetch_add(1, Ordering::AcqRel);
            }
            let mut table = self.table.lock();
            if table.current == Some(entry) || self.mutation == Some(Mutation::RemovesAnyEntry) {
                table.current = None;
            }
        }
    }

    /// A task polls once more whenever it is woken. The last query comes after everything else, so
    /// the task must have been woken since its last poll, or be ready.
    ///
    /// With a callback of the driver, the entry is added before the first poll.
    fn task_is_woken(mutation: Option<Mutation>) {
        for has_callback in [false, true] {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = builder.preemption_bound.or(Some(3));
            builder.check(move || task_waits(mutation, has_callback));
        }
    }

    fn task_waits(mutation: Option<Mutation>, has_callback: bool) {
        let model = Model::new(mutation);
        if has_callback {
            model.progress.begin();
            *model.table.lock() = Table {
                added: 1,
                current: Some(1),
            };
        }
        let watcher = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.query();
                model.query();
            })
        };
        let device = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.event.store(true, Ordering::Release))
        };
        let mut is_ready = model.poll(true);
        let mut seen = 0;
        if !is_ready && model.wakes.load(Ordering::Acquire) > 0 {
            seen = 1;
            is_ready = model.poll(false);
        }
        device.join().unwrap();
        watcher.join().unwrap();
        if !is_ready && model.wakes.load(Ordering::Acquire) > seen {
            seen = model.wakes.load(Ordering::Acquire);
            is_ready = model.poll(false);
        }
        model.query();
        let is_woken = model.wakes.load(Ordering::Acquire) > seen;
        assert!(is_ready || is_woken, "the task waits forever");
        if !is_ready {
            assert!(model.poll(false), "the event has completed");
        }
    }

    #[test]
    fn task_is_woken_after_its_last_poll() {
        task_is_woken(None);
    }

    #[test]
    #[should_panic(expected = "the task waits forever")]
    fn model_finds_a_reused_entry() {
        task_is_woken(Some(Mutation::ReusesTheEntry));
    }

    #[test]
    #[should_panic(expected = "the task waits forever")]
    fn model_finds_a_missing_entry() {
        task_is_woken(Some(Mutation::ForgetsToBegin));
    }

    #[test]
    #[should_panic(expected = "the task waits forever")]
    fn model_finds_a_removed_new_entry() {
        task_is_woken(Some(Mutation::RemovesAnyEntry));
    }

    #[test]
    #[should_panic(expected = "the task waits forever")]
    fn model_finds_an_ignored_end() {
        task_is_woken(Some(Mutation::IgnoresTheEnd));
    }

    #[test]
    #[should_panic(expected = "the task waits forever")]
    fn model_finds_a_lost_waker() {
        task_is_woken(Some(Mutation::LosesTheWaker));
    }
}
