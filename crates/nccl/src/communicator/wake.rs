//! Waking tasks that wait for NCCL, which reports the state of its communicators, but does not
//! notify.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use curium_driver::emit_event;
use curium_driver::extend::{self, TaskWaker};
use parking_lot::Mutex;

/// The pause between queries of communicators.
const PAUSE: Duration = Duration::from_millis(1);

/// Wakes a task after a pause. One thread does so for all.
pub(super) fn later(waker: Waker) {
    static WAKERS: OnceLock<Mutex<Sender<TaskWaker>>> = OnceLock::new();
    let wakers = WAKERS.get_or_init(|| {
        let (sender, receiver) = channel::<TaskWaker>();
        let started = thread::Builder::new()
            .name("curium-nccl-wake".to_owned())
            .spawn(move || wake_all(&receiver));
        if let Err(error) = started {
            emit_event!(WARN, %error, "no thread can be started; tasks that wait for NCCL poll without a pause");
        }
        Mutex::new(sender)
    });
    let sent = wakers.lock().send(TaskWaker::new(waker));
    // The thread lives as long as the process, unless it could not be started.
    if let Err(SendError(waker)) = sent {
        waker.wake();
    }
}

/// Wakes the tasks that are received, each after a pause.
fn wake_all(receiver: &Receiver<TaskWaker>) {
    while let Ok(first) = receiver.recv() {
        thread::sleep(PAUSE);
        // A waker that blocks delays neither this thread nor the other tasks.
        extend::wake(first);
        receiver.try_iter().for_each(extend::wake);
    }
}
