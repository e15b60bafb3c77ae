//! The list of waiting tasks: its order, and every interleaving of tasks, the background thread and
//! the device.

use super::*;

fn waiting<W>(waker: W) -> Waiting<W> {
    Waiting {
        waker,
        enqueued: Instant::now(),
        has_callback: false,
        may_wake_early: false,
    }
}

#[cfg(not(loom))]
#[test]
fn reached_tasks_are_taken_in_order() {
    fn tasks(taken: BTreeMap<Key, Waiting<i32>>) -> Vec<i32> {
        taken.into_values().map(|waiting| waiting.waker).collect()
    }
    let waits = Waits::new();
    let mut keys = Vec::new();
    for (task, sequence) in [(0, 3), (1, 1), (2, 2), (3, 2), (4, 9)] {
        let registered = waits.register(None, sequence, waiting(task));
        assert_eq!(registered.begins, task == 0);
        keys.push(registered.key);
    }
    assert_eq!(tasks(waits.take_reached(0)), [0; 0]);
    assert_eq!(tasks(waits.take_reached(2)), [1, 2, 3]);
    assert!(!waits.contains(keys[1]) && waits.contains(keys[0]));
    let again = waits.register(Some(keys[0]), 3, waiting(5));
    assert_eq!(again.replaced.map(|replaced| replaced.waker), Some(0));
    assert!(waits.remove(keys[4]).is_some());
    assert!(waits.head_or_end().is_some());
    assert_eq!(tasks(waits.take_reached(100)), [5]);
    assert!(waits.head_or_end().is_none());
    assert!(waits.register(None, 101, waiting(6)).begins);
}

#[cfg(loom)]
mod model {
    use std::sync::Arc;

    use loom::sync::atomic::{AtomicU64, Ordering};
    use loom::thread;

    use super::*;

    /// The device's word, the waiting tasks, and the table of the background thread.
    struct Model {
        word: AtomicU64,
        waits: Waits<usize>,
        /// `true` while the timeline has an entry.
        table: Mutex<bool>,
        /// The number of wake-ups of each task.
        woken: Mutex<[u32; 2]>,
        mutation: Option<Mutation>,
    }

    /// A defect of the protocol that the model must find.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Mutation {
        /// The background thread removes the entry without the lock under which it saw that no task
        /// waits.
        EndsWithoutTheLock,
        /// A task does not hand over a timeline that is not watched.
        ForgetsToBegin,
    }

    impl Model {
        fn new(mutation: Option<Mutation>) -> Arc<Self> {
            Arc::new(Self {
                word: AtomicU64::new(0),
                waits: Waits::new(),
                table: Mutex::new(false),
                woken: Mutex::new([0; 2]),
                mutation,
            })
        }

        /// Polls a future: returns its key if it must wait.
        fn poll(&self, task: usize, sequence: u64) -> Option<Key> {
            if self.word.load(Ordering::Acquire) >= sequence {
                return None;
            }
            let registered = self.waits.register(None, sequence, waiting(task));
            if registered.begins && self.mutation != Some(Mutation::ForgetsToBegin) {
                *self.table.lock() = true;
            }
            Some(registered.key)
        }

        /// One look of the background thread.
        fn look(&self) {
            if !*self.table.lock() {
                return;
            }
            let taken = self.waits.take_reached(self.word.load(Ordering::Acquire));
            for waiting in taken.into_values() {
                self.woken.lock()[waiting.waker] += 1;
            }
            if self.mutation == Some(Mutation::EndsWithoutTheLock) {
                if self.waits.head_or_end().is_none() {
                    *self.table.lock() = false;
                }
                return;
            }
            let mut table = self.table.lock();
            if self.waits.head_or_end().is_none() {
                *table = false;
            }
        }
    }

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(model);
    }

    /// Two tasks wait for two numbers, which the device writes, while the background thread looks.
    /// The last look is after everything else, so that every task that waits must be woken.
    fn every_task_is_woken(mutation: Option<Mutation>) {
        check(move || {
            let model = Model::new(mutation);
            let second = {
                let model = Arc::clone(&model);
                thread::spawn(move || model.poll(1, 2))
            };
            let watcher = {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    model.look();
                    model.look();
                })
            };
            let first = model.poll(0, 1);
            model.word.store(1, Ordering::Release);
            model.word.store(2, Ordering::Release);
            let second = second.join().unwrap();
            watcher.join().unwrap();
            model.look();
            let woken = *model.woken.lock();
            assert_eq!(woken[0], u32::from(first.is_some()), "the first task");
            assert_eq!(woken[1], u32::from(second.is_some()), "the second task");
            assert!(!*model.table.lock(), "no task waits any more");
        });
    }

    #[test]
    fn registered_tasks_are_woken_once() {
        every_task_is_woken(None);
    }

    #[test]
    #[should_panic(expected = "task")]
    fn model_finds_an_end_without_the_lock() {
        every_task_is_woken(Some(Mutation::EndsWithoutTheLock));
    }

    #[test]
    #[should_panic(expected = "task")]
    fn model_finds_a_forgotten_begin() {
        every_task_is_woken(Some(Mutation::ForgetsToBegin));
    }

    /// A task that was removed is not woken afterwards.
    #[test]
    fn removed_task_is_not_woken() {
        check(|| {
            let model = Model::new(None);
            let watcher = {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    model.word.store(1, Ordering::Release);
                    model.look();
                })
            };
            let key = model.poll(0, 1);
            let is_removed = key.map(|key| model.waits.remove(key).is_some());
            watcher.join().unwrap();
            model.look();
            let woken = model.woken.lock()[0];
            assert_eq!(woken, u32::from(is_removed == Some(false)));
        });
    }
}
