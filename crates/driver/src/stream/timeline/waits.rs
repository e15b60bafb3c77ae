//! The tasks that wait for numbers of a timeline.
//!
//! A task registers under the lock of the list. If the list was not watched, the caller hands the
//! timeline to the background thread. That thread takes the tasks whose numbers are reached, wakes
//! them without the lock, and stops to watch only while it holds the lock and the list is empty. A
//! registered task is therefore always watched, and a task that registers after the write is taken
//! at the thread's next look. `tests` checks this with loom.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::base::sync::Mutex;

/// The waiting tasks of one timeline. `W` is the waker of a task.
pub(crate) struct Waits<W> {
    list: Mutex<List<W>>,
}

struct List<W> {
    waiting: BTreeMap<Key, Waiting<W>>,
    /// The number of the task that registered last.
    last: u64,
    /// `true` if the background thread watches the timeline, or is about to.
    is_watched: bool,
}

/// The key of a waiting task, in the order of the numbers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    pub(crate) sequence: u64,
    task: u64,
}

/// A waiting task.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<W> {
    pub(crate) waker: W,
    /// The time at which its mark was enqueued.
    pub(crate) enqueued: Instant,
    /// `true` if the driver calls back at the mark.
    pub(crate) has_callback: bool,
    /// `true` if the task may be woken shortly before the mark is expected, to spin.
    pub(crate) may_wake_early: bool,
}

/// The first of the waiting tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) enqueued: Instant,
    pub(crate) has_callback: bool,
    pub(crate) may_wake_early: bool,
}

/// The result of a registration.
pub(crate) struct Registered<W> {
    pub(crate) key: Key,
    /// `true` if the caller must hand the timeline to the background thread.
    pub(crate) begins: bool,
    /// The previous registration of the task, which the caller drops without a lock.
    pub(crate) replaced: Option<Waiting<W>>,
}

impl<W> Waits<W> {
    pub(crate) fn new() -> Self {
        Self {
            list: Mutex::new(List {
                waiting: BTreeMap::new(),
                last: 0,
                is_watched: false,
            }),
        }
    }

    /// Registers a task that waits for `sequence`. `key` is that of its previous registration, if
    /// any.
    pub(crate) fn register(
        &self,
        key: Option<Key>,
        sequence: u64,
        waiting: Waiting<W>,
    ) -> Registered<W> {
        let mut list = self.list.lock();
        let key = key.unwrap_or_else(|| {
            list.last += 1;
            Key {
                sequence,
                task: list.last,
            }
        });
        let replaced = list.waiting.insert(key, waiting);
        let begins = !std::mem::replace(&mut list.is_watched, true);
        Registered {
            key,
            begins,
            replaced,
        }
    }

    /// Removes a task. It is not woken afterwards, unless it was taken before.
    pub(crate) fn remove(&self, key: Key) -> Option<Waiting<W>> {
        self.list.lock().waiting.remove(&key)
    }

    /// Returns `true` if the task is registered, and not taken.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.list.lock().waiting.contains_key(&key)
    }

    /// Takes the tasks that wait for `reached` or a smaller number, in order.
    pub(crate) fn take_reached(&self, reached: u64) -> BTreeMap<Key, Waiting<W>> {
        let mut list = self.list.lock();
        match list.waiting.first_key_value() {
            Some((first, _)) if first.sequence <= reached => {}
            _ => return BTreeMap::new(),
        }
        let remaining = list.waiting.split_off(&Key {
            sequence: reached + 1,
            task: 0,
        });
        std::mem::replace(&mut list.waiting, remaining)
    }

    /// Takes all tasks.
    pub(crate) fn take_all(&self) -> BTreeMap<Key, Waiting<W>> {
        std::mem::take(&mut self.list.lock().waiting)
    }

    /// Takes all tasks of a timeline that cannot be watched.
    pub(crate) fn abandon(&self) -> BTreeMap<Key, Waiting<W>> {
        let mut list = self.list.lock();
        list.is_watched = false;
        std::mem::take(&mut list.waiting)
    }

    /// Takes the first task.
    pub(crate) fn take_first(&self) -> Option<Waiting<W>> {
        self.list
            .lock()
            .waiting
            .pop_first()
            .map(|(_, waiting)| waiting)
    }

    /// Returns the first task, or stops watching if there is none: the next registration then
    /// begins anew.
    pub(crate) fn head_or_end(&self) -> Option<Head> {
        let mut list = self.list.lock();
        match list.waiting.first_key_value() {
            Some((_, first)) => Some(Head {
                enqueued: first.enqueued,
                has_callback: first.has_callback,
                may_wake_early: first.may_wake_early,
            }),
            None => {
                list.is_watched = false;
                None
            }
        }
    }
}
