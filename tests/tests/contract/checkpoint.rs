//! [`CheckpointProcess`]: suspends another process and restores it. The simulator cannot checkpoint a process.
#![cfg(not(miri))]

#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use curium_diagnostics::{CheckpointProcess, ProcessState};
#[cfg(target_os = "linux")]
use curium_memory::DeviceBuffer;
#[cfg(target_os = "linux")]
use curium_tests::{Peer, TestResult, in_two_processes, on_driver, skip, uses_cuda};

#[test]
#[cfg(target_os = "linux")]
fn restored_process_continues() -> TestResult {
    if !uses_cuda() {
        return skip("needs a GPU");
    }
    in_two_processes(checkpoints, is_checkpointed)
}

#[cfg(target_os = "linux")]
fn checkpoints(peer: &mut Peer) -> TestResult {
    on_driver(|test| {
        let driver = test.driver();
        let pid = i32::from_ne_bytes(peer.receive());
        let running = CheckpointProcess::running(driver, pid)?;
        let locked = running.lock(Some(Duration::from_secs(20)))?;
        assert_eq!(ProcessState::of(driver, pid)?, ProcessState::Locked);
        let checkpointed = locked.checkpoint()?;
        assert_eq!(ProcessState::of(driver, pid)?, ProcessState::Checkpointed);
        let restored = checkpointed.restore(&[])?;
        assert_eq!(ProcessState::of(driver, pid)?, ProcessState::Locked);
        restored.unlock()?;
        assert_eq!(ProcessState::of(driver, pid)?, ProcessState::Running);
        peer.send(&[1]);
        assert_eq!(peer.receive(), [7; 64]);
        Ok(())
    })
}

#[cfg(target_os = "linux")]
fn is_checkpointed(peer: &mut Peer) -> TestResult {
    on_driver(|test| {
        let buffer = DeviceBuffer::from_slice(&test.stream(), &[7_u8; 64])?;
        test.context().synchronize()?;
        peer.send(&std::process::id().to_ne_bytes());
        assert_eq!(peer.receive(), [1]);
        peer.send(&buffer.to_vec()?);
        Ok(())
    })
}

pub(crate) mod operations {
    use curium_diagnostics::{CheckpointProcess, ProcessState};

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[
        ("CheckpointProcess::running", |fixture| {
            made(CheckpointProcess::running(&fixture.driver, 1)?)
        }),
        ("CheckpointProcess::locked", |fixture| {
            made(CheckpointProcess::locked(&fixture.driver, 1)?)
        }),
        ("CheckpointProcess::checkpointed", |fixture| {
            made(CheckpointProcess::checkpointed(&fixture.driver, 1)?)
        }),
        ("ProcessState::of", |fixture| {
            made(ProcessState::of(&fixture.driver, 1)?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Solitary(SOLITARY) }
}
