//! Checkpoint and restore of processes.

use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use curium_driver::sys::{
    CUcheckpointCheckpointArgs, CUcheckpointGpuPair, CUcheckpointLockArgs, CUcheckpointRestoreArgs,
    CUcheckpointUnlockArgs, CUprocessState, CUuuid,
};
use curium_driver::{Driver, Error, Result, call};

/// A process that uses CUDA, in the state `S`: [`Running`], [`Locked`] or [`Checkpointed`]. Each
/// operation is available in one state and returns the process in the next. If an operation fails,
/// [`ProcessState::of`] returns the state of the process.
///
/// The driver calls of a locked process block. A checkpointed process has its device memory in host
/// memory and uses no device, so tools such as CRIU can save it. Requires Linux and a driver for
/// CUDA 12.8. The simulator does not implement checkpoints of other processes.
///
/// ```no_run
/// use std::time::Duration;
///
/// use curium_diagnostics::CheckpointProcess;
/// use curium_driver::Driver;
///
/// let driver = Driver::load()?;
/// let process = CheckpointProcess::running(&driver, 1234)?;
/// let process = process.lock(Some(Duration::from_secs(10)))?.checkpoint()?;
/// // … the devices are free …
/// process.restore(&[])?.unlock()?;
/// # Ok::<(), curium_driver::Error>(())
/// ```
pub struct CheckpointProcess<S> {
    driver: Driver,
    pid: i32,
    _state: PhantomData<S>,
}

/// The state of a running process.
#[derive(Clone, Copy, Debug)]
pub enum Running {}

/// The state of a process whose driver calls block.
#[derive(Clone, Copy, Debug)]
pub enum Locked {}

/// The state of a process that uses no device.
#[derive(Clone, Copy, Debug)]
pub enum Checkpointed {}

/// The state of a process as reported by the driver.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProcessState {
    /// Running.
    Running,
    /// Locked: driver calls of the process block.
    Locked,
    /// Checkpointed: the process uses no device.
    Checkpointed,
    /// Failed: an earlier operation failed, and the process cannot continue.
    Failed,
    /// It is being checkpointed.
    Checkpointing,
    /// It is being restored.
    Restoring,
    /// A state defined by a newer driver.
    Unknown(u32),
}

impl CheckpointProcess<Running> {
    /// Returns the process `pid`, which must be running.
    ///
    /// CUDA: `cuCheckpointProcessGetState`, since 12.8.
    ///
    /// # Errors
    ///
    /// An argument error if the process is in another state.
    pub fn running(driver: &Driver, pid: i32) -> Result<Self> {
        Self::in_state(driver, pid, ProcessState::Running)
    }

    /// Blocks the driver calls of the process. Waits until calls in progress have returned, or
    /// until `timeout` has passed.
    ///
    /// CUDA: `cuCheckpointProcessLock`, since 12.8.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_READY` if the timeout passed; the process keeps running.
    #[doc(alias = "cuCheckpointProcessLock")]
    pub fn lock(self, timeout: Option<Duration>) -> Result<CheckpointProcess<Locked>> {
        let milliseconds = timeout.map_or(0, |timeout| {
            timeout.as_millis().clamp(1, u128::from(u32::MAX)) as u32
        });
        let mut arguments = CUcheckpointLockArgs {
            timeoutMs: milliseconds,
            ..CUcheckpointLockArgs::default()
        };
        // SAFETY: `arguments` is live during the call, and the driver checks the process.
        self.step(unsafe {
            call!(
                &self.driver,
                cuCheckpointProcessLock(self.pid, &raw mut arguments)
            )
        })
    }
}

impl CheckpointProcess<Locked> {
    /// Returns the process `pid`, which must be locked.
    ///
    /// CUDA: `cuCheckpointProcessGetState`, since 12.8.
    ///
    /// # Errors
    ///
    /// An argument error if the process is in another state.
    pub fn locked(driver: &Driver, pid: i32) -> Result<Self> {
        Self::in_state(driver, pid, ProcessState::Locked)
    }

    /// Copies the device memory of the process to the host and releases its devices. Waits until
    /// this is complete.
    ///
    /// CUDA: `cuCheckpointProcessCheckpoint`, since 12.8.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCheckpointProcessCheckpoint")]
    pub fn checkpoint(self) -> Result<CheckpointProcess<Checkpointed>> {
        let mut arguments = CUcheckpointCheckpointArgs::default();
        // SAFETY: `arguments` is live during the call, and the driver checks the process.
        self.step(unsafe {
            call!(
                &self.driver,
                cuCheckpointProcessCheckpoint(self.pid, &raw mut arguments)
            )
        })
    }

    /// Unlocks the process.
    ///
    /// CUDA: `cuCheckpointProcessUnlock`, since 12.8.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCheckpointProcessUnlock")]
    pub fn unlock(self) -> Result<CheckpointProcess<Running>> {
        let mut arguments = CUcheckpointUnlockArgs::default();
        // SAFETY: `arguments` is live during the call, and the driver checks the process.
        self.step(unsafe {
            call!(
                &self.driver,
                cuCheckpointProcessUnlock(self.pid, &raw mut arguments)
            )
        })
    }
}

impl CheckpointProcess<Checkpointed> {
    /// Returns the process `pid`, which must be checkpointed.
    ///
    /// CUDA: `cuCheckpointProcessGetState`, since 12.8.
    ///
    /// # Errors
    ///
    /// An argument error if the process is in another state.
    pub fn checkpointed(driver: &Driver, pid: i32) -> Result<Self> {
        Self::in_state(driver, pid, ProcessState::Checkpointed)
    }

    /// Restores the process on its devices, and waits until this is complete. `devices` contains
    /// pairs of device UUIDs: the process continues on the second device of a pair instead of the
    /// first. If it is empty, each device is restored on itself.
    ///
    /// CUDA: `cuCheckpointProcessRestore`, since 12.8; with pairs since 13.0.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCheckpointProcessRestore")]
    pub fn restore(self, devices: &[([u8; 16], [u8; 16])]) -> Result<CheckpointProcess<Locked>> {
        let mut pairs: Vec<CUcheckpointGpuPair> =
            devices.iter().map(|(old, new)| pair(*old, *new)).collect();
        let mut arguments = CUcheckpointRestoreArgs::default();
        if !pairs.is_empty() {
            arguments.gpuPairs = pairs.as_mut_ptr();
            arguments.gpuPairsCount = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        }
        // SAFETY: `arguments` and the pairs that it points to are live during the call, and the
        // driver checks the process.
        self.step(unsafe {
            call!(
                &self.driver,
                cuCheckpointProcessRestore(self.pid, &raw mut arguments)
            )
        })
    }

    /// Returns the thread of the process that [`CheckpointProcess::restore`] runs on. Tools that
    /// resume a process must let this thread run.
    ///
    /// CUDA: `cuCheckpointProcessGetRestoreThreadId`, since 12.8.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCheckpointProcessGetRestoreThreadId")]
    pub fn restore_thread(&self) -> Result<i32> {
        let mut thread: c_int = 0;
        // SAFETY: `thread` is valid for writes.
        unsafe {
            call!(
                &self.driver,
                cuCheckpointProcessGetRestoreThreadId(self.pid, &raw mut thread)
            )
        }?;
        Ok(thread)
    }
}

impl<S> CheckpointProcess<S> {
    /// Returns the process identifier.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn in_state(driver: &Driver, pid: i32, expected: ProcessState) -> Result<Self> {
        let state = ProcessState::of(driver, pid)?;
        if state != expected {
            let reason = format!("process {pid} is {state}, and not {expected}");
            return Err(Error::argument("CheckpointProcess", reason));
        }
        Ok(Self {
            driver: driver.clone(),
            pid,
            _state: PhantomData,
        })
    }

    /// Returns the process in its next state if the operation succeeded.
    fn step<N>(&self, result: Result<()>) -> Result<CheckpointProcess<N>> {
        let driver = self.driver.clone();
        let pid = self.pid;
        result.map_err(|error| error.about(format!("process {pid}")))?;
        Ok(CheckpointProcess {
            driver,
            pid,
            _state: PhantomData,
        })
    }
}

impl ProcessState {
    /// Returns the state of the process `pid`.
    ///
    /// CUDA: `cuCheckpointProcessGetState`, since 12.8.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the process does not exist or does not use CUDA.
    #[doc(alias = "cuCheckpointProcessGetState")]
    pub fn of(driver: &Driver, pid: i32) -> Result<Self> {
        let mut state = CUprocessState::CU_PROCESS_STATE_RUNNING;
        // SAFETY: `state` is valid for writes.
        let result = unsafe { call!(driver, cuCheckpointProcessGetState(pid, &raw mut state)) };
        result.map_err(|error| error.about(format!("process {pid}")))?;
        Ok(match state {
            CUprocessState::CU_PROCESS_STATE_RUNNING => Self::Running,
            CUprocessState::CU_PROCESS_STATE_LOCKED => Self::Locked,
            CUprocessState::CU_PROCESS_STATE_CHECKPOINTED => Self::Checkpointed,
            CUprocessState::CU_PROCESS_STATE_FAILED => Self::Failed,
            CUprocessState::CU_PROCESS_STATE_CHECKPOINTING => Self::Checkpointing,
            CUprocessState::CU_PROCESS_STATE_RESTORING => Self::Restoring,
            CUprocessState(other) => Self::Unknown(other),
        })
    }
}

impl fmt::Display for ProcessState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Running => "running",
            Self::Locked => "locked",
            Self::Checkpointed => "checkpointed",
            Self::Failed => "failed",
            Self::Checkpointing => "being checkpointed",
            Self::Restoring => "being restored",
            Self::Unknown(state) => return write!(formatter, "in the unknown state {state}"),
        })
    }
}

impl<S> fmt::Debug for CheckpointProcess<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CheckpointProcess({})", self.pid)
    }
}

fn pair(old: [u8; 16], new: [u8; 16]) -> CUcheckpointGpuPair {
    CUcheckpointGpuPair {
        oldUuid: uuid(old),
        newUuid: uuid(new),
    }
}

fn uuid(bytes: [u8; 16]) -> CUuuid {
    CUuuid {
        bytes: bytes.map(|byte| std::ffi::c_char::from_ne_bytes([byte])),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use curium_driver::sys::CUresult;

    use super::*;
    use crate::stub_api;

    /// The only process of the stub driver, and the UUIDs passed to the last restore.
    static STATE: AtomicU32 = AtomicU32::new(0);
    static RESTORED_TO: AtomicU32 = AtomicU32::new(0);
    const PID: i32 = 77;

    fn step(pid: i32, from: CUprocessState, to: CUprocessState) -> CUresult {
        let step = STATE.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire);
        if pid == PID && step.is_ok() {
            CUresult::CUDA_SUCCESS
        } else {
            CUresult::CUDA_ERROR_ILLEGAL_STATE
        }
    }

    fn driver() -> Driver {
        unsafe extern "C" fn state(pid: c_int, output: *mut CUprocessState) -> CUresult {
            if pid != PID {
                return CUresult::CUDA_ERROR_INVALID_VALUE;
            }
            // SAFETY: the wrapper under test passes a pointer that is valid for writes.
            unsafe { output.write(CUprocessState(STATE.load(Ordering::Acquire))) };
            CUresult::CUDA_SUCCESS
        }
        unsafe extern "C" fn lock(pid: c_int, arguments: *mut CUcheckpointLockArgs) -> CUresult {
            // SAFETY: the wrapper under test passes valid arguments.
            let milliseconds = unsafe { (*arguments).timeoutMs };
            if milliseconds == 1 {
                return CUresult::CUDA_ERROR_NOT_READY;
            }
            step(
                pid,
                CUprocessState::CU_PROCESS_STATE_RUNNING,
                CUprocessState::CU_PROCESS_STATE_LOCKED,
            )
        }
        unsafe extern "C" fn checkpoint(
            pid: c_int,
            _: *mut CUcheckpointCheckpointArgs,
        ) -> CUresult {
            step(
                pid,
                CUprocessState::CU_PROCESS_STATE_LOCKED,
                CUprocessState::CU_PROCESS_STATE_CHECKPOINTED,
            )
        }
        unsafe extern "C" fn restore(
            pid: c_int,
            arguments: *mut CUcheckpointRestoreArgs,
        ) -> CUresult {
            // SAFETY: the wrapper under test passes valid arguments.
            let arguments = unsafe { *arguments };
            if arguments.gpuPairsCount == 1 {
                // SAFETY: the wrapper under test passes an array of that many pairs.
                let pair = unsafe { *arguments.gpuPairs };
                RESTORED_TO.store(
                    u32::from(pair.newUuid.bytes[15].to_ne_bytes()[0]),
                    Ordering::Release,
                );
            }
            step(
                pid,
                CUprocessState::CU_PROCESS_STATE_CHECKPOINTED,
                CUprocessState::CU_PROCESS_STATE_LOCKED,
            )
        }
        unsafe extern "C" fn unlock(pid: c_int, _: *mut CUcheckpointUnlockArgs) -> CUresult {
            step(
                pid,
                CUprocessState::CU_PROCESS_STATE_LOCKED,
                CUprocessState::CU_PROCESS_STATE_RUNNING,
            )
        }
        let mut api = stub_api::api();
        api.cuCheckpointProcessGetState = Some(state);
        api.cuCheckpointProcessLock = Some(lock);
        api.cuCheckpointProcessCheckpoint = Some(checkpoint);
        api.cuCheckpointProcessRestore = Some(restore);
        api.cuCheckpointProcessUnlock = Some(unlock);
        stub_api::driver(api)
    }

    /// One test, since there is one process.
    #[test]
    fn process_passes_through_its_states_and_back() {
        let driver = driver();
        let error = CheckpointProcess::locked(&driver, PID).expect_err("the process is running");
        assert_eq!(
            error.to_string(),
            "CheckpointProcess: process 77 is running, and not locked"
        );
        let error = ProcessState::of(&driver, 1).expect_err("there is no such process");
        assert!(error.to_string().contains("process 1"), "{error}");

        let process = CheckpointProcess::running(&driver, PID).expect("the process is running");
        let error = process
            .lock(Some(Duration::from_micros(1)))
            .expect_err("the time is rounded up, and too short");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_READY));

        let process =
            CheckpointProcess::running(&driver, PID).expect("the process is still running");
        let process = process.lock(None).expect("lock failed");
        let process = process.checkpoint().expect("checkpoint failed");
        assert_eq!(
            ProcessState::of(&driver, PID).expect("a state"),
            ProcessState::Checkpointed
        );
        assert!(
            process
                .restore_thread()
                .expect_err("the function is missing")
                .function()
                .is_some()
        );
        let process = process
            .restore(&[([1; 16], [9; 16])])
            .expect("restore failed");
        assert_eq!(RESTORED_TO.load(Ordering::Acquire), 9);
        process.unlock().expect("unlock failed");
        assert_eq!(
            ProcessState::of(&driver, PID).expect("a state"),
            ProcessState::Running
        );

        STATE.store(99, Ordering::Release);
        assert_eq!(
            ProcessState::of(&driver, PID).expect("a state"),
            ProcessState::Unknown(99)
        );
    }
}
