//! [`CheckpointProcess`]: suspends another process and restores it. The simulator cannot checkpoint a process.
#![cfg(not(miri))]

#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use curium_driver::{CheckpointProcess, ProcessState};
#[cfg(target_os = "linux")]
use curium_memory::DeviceBuffer;
#[cfg(target_os = "linux")]
use curium_tests::{Peer, TestResult, in_two_processes, on_driver, uses_cuda};

#[test]
#[cfg(target_os = "linux")]
fn restored_process_continues() -> TestResult {
    if !uses_cuda() {
        return Ok(());
    }
    let name = "checkpoint::restored_process_continues";
    in_two_processes(name, checkpoints, is_checkpointed)?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn checkpoints(peer: &mut Peer) {
    on_driver(|test| {
        let driver = test.driver();
        let pid = i32::from_ne_bytes(peer.receive());
        let expect = |state| {
            assert_eq!(
                ProcessState::of(driver, pid).expect("the process uses the driver"),
                state
            );
        };
        let running = CheckpointProcess::running(driver, pid).expect("it runs");
        let locked = running
            .lock(Some(Duration::from_secs(20)))
            .expect("no work is pending");
        expect(ProcessState::Locked);
        let checkpointed = locked.checkpoint().expect("its memory has a location");
        expect(ProcessState::Checkpointed);
        let restored = checkpointed
            .restore(&[])
            .expect("the device is still there");
        expect(ProcessState::Locked);
        restored.unlock().expect("it can continue");
        expect(ProcessState::Running);
        peer.send(&[1]);
        assert_eq!(peer.receive(), [7; 64]);
    });
}

#[cfg(target_os = "linux")]
fn is_checkpointed(peer: &mut Peer) {
    on_driver(|test| {
        let buffer =
            DeviceBuffer::from_slice(&test.stream(), &[7_u8; 64]).expect("memory suffices");
        test.context().synchronize().expect("the context works");
        peer.send(&std::process::id().to_ne_bytes());
        assert_eq!(peer.receive(), [1]);
        peer.send(&buffer.to_vec().expect("the buffer has not moved"));
    });
}

pub(crate) mod operations {
    use curium_driver::{CheckpointProcess, ProcessState};

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
