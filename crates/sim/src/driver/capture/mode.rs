//! The capture mode of threads.

use std::cell::Cell;

use curium_sys::{CUresult, CUstreamCaptureMode};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};
use crate::slot;

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
    static MODES: Cell<[Mode; slot::COUNT]> = const { Cell::new([INITIAL; slot::COUNT]) };
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuThreadExchangeStreamCaptureMode(
        &self,
        mode: Pointer<CUstreamCaptureMode>,
    ) -> Result {
        let new = mode.read()?;
        if new.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let old = self.capture_mode();
        let mut modes = MODES.get();
        modes[self.slot] = Mode {
            driver: self.serial,
            mode: new,
        };
        MODES.set(modes);
        mode.write(old)
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
