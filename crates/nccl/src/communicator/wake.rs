//! Waking tasks that wait for NCCL, which reports the state of its communicators, but does not notify.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use curium_driver::extend::contain;

/// The pause between queries of communicators.
const PAUSE: Duration = Duration::from_millis(1);

/// Wakes a task after a pause. One thread does so for all.
pub(super) fn later(waker: Waker) {
    static WAKERS: OnceLock<Mutex<Sender<Waker>>> = OnceLock::new();
    let wakers = WAKERS.get_or_init(|| {
        let (sender, receiver) = channel::<Waker>();
        thread::spawn(move || {
            while let Ok(first) = receiver.recv() {
                thread::sleep(PAUSE);
                // A waker is code of the executor: without its panics, the thread serves the other tasks.
                std::iter::once(first).chain(receiver.try_iter()).for_each(|waker| _ = contain(|| waker.wake()));
            }
        });
        Mutex::new(sender)
    });
    // The thread lives as long as the process.
    let _ = wakers.lock().unwrap_or_else(PoisonError::into_inner).send(waker);
}
