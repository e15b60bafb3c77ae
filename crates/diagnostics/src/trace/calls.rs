//! Recorded calls and spans. Each thread has lists of its own, so that recording threads do not
//! wait for each other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use curium_driver::Function;
use curium_driver::extend::thread_number;
use curium_driver::sys::CUresult;
use parking_lot::Mutex;

/// The recorded calls and spans of all threads.
pub(super) struct Calls {
    identity: u64,
    call_quota: Quota,
    #[cfg(feature = "tracing")]
    span_quota: Quota,
    /// The lists of each thread, by its number.
    threads: Mutex<BTreeMap<u64, Arc<Thread>>>,
}

/// The lists of one thread.
struct Thread {
    name: String,
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    calls: List<CallRecord>,
    spans: List<SpanRecord>,
}

/// A list whose length is limited by a quota of all threads.
struct List<T> {
    records: Vec<T>,
    /// The length that the quota allows.
    allowed: usize,
    dropped: u64,
}

/// The number of records that all threads may still add.
struct Quota {
    remaining: AtomicUsize,
}

/// A call, with its time since the trace began in nanoseconds.
pub(super) struct CallRecord {
    pub(super) function: Function,
    pub(super) code: CUresult,
    pub(super) started: u64,
    pub(super) duration: u64,
}

/// A `tracing` span that was exited, with its time since the trace began in nanoseconds.
pub(super) struct SpanRecord {
    pub(super) name: &'static str,
    pub(super) started: u64,
    pub(super) duration: u64,
}

/// The records of one thread.
pub(super) struct ThreadRecords {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) calls: Vec<CallRecord>,
    pub(super) spans: Vec<SpanRecord>,
    pub(super) calls_dropped: u64,
}

/// The number of records by which the length of a list is extended, so that threads rarely write to
/// the quota.
const BATCH: usize = 1024;

thread_local! {
    /// The lists of this thread in the trace that it recorded to last.
    static LATEST: RefCell<Option<Latest>> = const { RefCell::new(None) };
}

struct Latest {
    /// The identity of the trace.
    identity: u64,
    thread: Arc<Thread>,
}

impl Calls {
    /// Creates lists for at most `capacity` calls, and as many spans.
    pub(super) fn new(capacity: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            identity: NEXT.fetch_add(1, Ordering::Relaxed),
            call_quota: Quota::new(capacity),
            #[cfg(feature = "tracing")]
            span_quota: Quota::new(capacity),
            threads: Mutex::default(),
        }
    }

    /// Adds a call of this thread.
    pub(super) fn add_call(&self, call: CallRecord) {
        self.with_lists(|lists| lists.calls.push(call, &self.call_quota));
    }

    /// Adds a span of this thread.
    #[cfg(feature = "tracing")]
    pub(super) fn add_span(&self, span: SpanRecord) {
        self.with_lists(|lists| lists.spans.push(span, &self.span_quota));
    }

    /// Takes the records of all threads.
    pub(super) fn take(&self) -> Vec<ThreadRecords> {
        let threads = std::mem::take(&mut *self.threads.lock());
        threads
            .into_iter()
            .map(|(number, thread)| {
                let lists = std::mem::take(&mut *thread.lists.lock());
                ThreadRecords {
                    number,
                    name: thread.name.clone(),
                    calls: lists.calls.records,
                    spans: lists.spans.records,
                    calls_dropped: lists.calls.dropped,
                }
            })
            .collect()
    }

    /// Returns the number of recorded calls.
    pub(super) fn len(&self) -> usize {
        let threads = self.threads.lock();
        threads
            .values()
            .map(|thread| thread.lists.lock().calls.records.len())
            .sum()
    }

    #[inline]
    fn with_lists(&self, add: impl FnOnce(&mut Lists)) {
        let mut add = Some(add);
        let added = LATEST.try_with(|latest| {
            let mut latest = latest.borrow_mut();
            let thread = match &*latest {
                Some(latest) if latest.identity == self.identity => &latest.thread,
                _ => {
                    let thread = self.thread();
                    let identity = self.identity;
                    &latest.insert(Latest { identity, thread }).thread
                }
            };
            if let Some(add) = add.take() {
                add(&mut thread.lists.lock());
            }
        });
        // The thread is exiting.
        if added.is_err()
            && let Some(add) = add
        {
            add(&mut self.thread().lists.lock());
        }
    }

    /// Returns the lists of this thread.
    #[cold]
    fn thread(&self) -> Arc<Thread> {
        let mut threads = self.threads.lock();
        let thread = threads.entry(thread_number()).or_insert_with(|| {
            Arc::new(Thread {
                name: thread::current().name().unwrap_or("thread").to_owned(),
                lists: Mutex::default(),
            })
        });
        Arc::clone(thread)
    }
}

impl<T> List<T> {
    #[inline]
    fn push(&mut self, record: T, quota: &Quota) {
        if self.records.len() == self.allowed {
            self.allowed += quota.take();
            if self.records.len() == self.allowed {
                self.dropped += 1;
                return;
            }
        }
        self.records.push(record);
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            allowed: 0,
            dropped: 0,
        }
    }
}

impl Quota {
    fn new(capacity: usize) -> Self {
        Self {
            remaining: AtomicUsize::new(capacity),
        }
    }

    /// Takes the right to add a number of records, which is 0 if none is left.
    #[cold]
    fn take(&self) -> usize {
        let taken =
            self.remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                    Some(remaining - remaining.min(BATCH))
                });
        taken.unwrap_or_else(|remaining| remaining).min(BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(started: u64) -> CallRecord {
        CallRecord {
            function: Function::cuInit,
            code: CUresult::CUDA_SUCCESS,
            started,
            duration: 1,
        }
    }

    /// Threads that record at the same time lose no call, and share the capacity.
    #[test]
    fn threads_share_the_capacity() {
        const THREADS: u64 = 4;
        const CALLS: u64 = if cfg!(miri) { 30 } else { 3_000 };
        let all = (THREADS * CALLS) as usize;
        for (capacity, recorded) in [(usize::MAX, all), (all / 5, all / 5), (0, 0)] {
            let calls = Calls::new(capacity);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| (0..CALLS).for_each(|time| calls.add_call(call(time))));
                }
            });
            assert_eq!(calls.len(), recorded);
            let threads = calls.take();
            let dropped: u64 = threads.iter().map(|thread| thread.calls_dropped).sum();
            assert_eq!(dropped, THREADS * CALLS - recorded as u64);
            assert_eq!(threads.len() as u64, THREADS);
            for thread in threads {
                assert!(thread.calls.is_sorted_by_key(|call| call.started));
            }
        }
    }

    /// A thread that records to two traces in turn adds to the lists that it has.
    #[test]
    fn alternating_traces_keep_their_lists() {
        let traces = [Calls::new(10), Calls::new(10)];
        for round in 0..3 {
            for trace in &traces {
                trace.add_call(call(round));
            }
        }
        for trace in traces {
            let threads = trace.take();
            assert_eq!(threads.len(), 1);
            assert_eq!(threads[0].calls.len(), 3);
        }
    }
}
