//! The capture mode of threads.

use std::cell::Cell;

use curium_sys::CUstreamCaptureMode;

use crate::config::MAX_DRIVERS;
use crate::driver::context::stack::ThreadState;

/// The mode of one thread in one driver.
#[derive(Clone, Copy)]
struct Mode {
    /// The driver that it belongs to: a later one in the same slot starts anew.
    driver: u64,
    mode: CUstreamCaptureMode,
}

const INITIAL: Mode = Mode {
    driver: 0,
    mode: CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
};

thread_local! {
    static MODES: Cell<[Mode; MAX_DRIVERS]> = const { Cell::new([INITIAL; MAX_DRIVERS]) };
}

impl ThreadState {
    /// Sets the mode of the calling thread.
    pub(crate) fn set_capture_mode(&self, mode: CUstreamCaptureMode) {
        let mut modes = MODES.get();
        modes[self.slot] = Mode {
            driver: self.serial,
            mode,
        };
        MODES.set(modes);
    }

    /// Returns the mode of the calling thread.
    pub(crate) fn capture_mode(&self) -> CUstreamCaptureMode {
        let Mode { driver, mode } = MODES.get()[self.slot];
        if driver == self.serial {
            mode
        } else {
            INITIAL.mode
        }
    }
}
