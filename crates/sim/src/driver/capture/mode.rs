//! The capture mode of threads.

use std::cell::Cell;

use curium_sys::CUstreamCaptureMode;

use crate::config::MAX_DRIVERS;
use crate::driver::Driver;

/// The mode of one thread in one driver.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// The driver that it belongs to: a later one in the same slot starts anew.
    pub(crate) driver: u64,
    pub(crate) mode: CUstreamCaptureMode,
}

const INITIAL: Mode = Mode {
    driver: 0,
    mode: CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
};

thread_local! {
    pub(crate) static MODES: Cell<[Mode; MAX_DRIVERS]> = const { Cell::new([INITIAL; MAX_DRIVERS]) };
}

impl Driver {
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
