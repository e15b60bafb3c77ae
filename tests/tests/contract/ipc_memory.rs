//! [`IpcMemory`]: device memory shared between processes. On the simulator, each simulator represents a process.

use curium_driver::AsRawStream as _;
use curium_driver::Function;
use curium_sim::Simulator;

#[cfg(target_os = "linux")]
use curium_driver::call;
#[cfg(target_os = "linux")]
use curium_interop::IpcMemory;
use curium_interop::IpcMemoryHandle;
use curium_memory::DeviceBuffer;
use curium_memory::{Resource, SyncAlloc};
#[cfg(target_os = "linux")]
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
#[cfg(target_os = "linux")]
use curium_tests::on_simulator;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

const INVALID: Option<CUresult> = Some(CUresult::CUDA_ERROR_INVALID_VALUE);

/// Memory of another process is opened by its name and closed once.
#[cfg(target_os = "linux")]
#[simulator_test]
fn ipc_memory_is_opened_and_closed_once(owner: &TestDriver, _: &Simulator) -> TestResult {
    on_simulator(Config::new(), |other, simulator| -> TestResult {
        let stream = owner.stream();
        let pointer = SyncAlloc.allocate(&stream, 256, 256)?;
        // SAFETY: the memory has these bytes, for use on this stream.
        unsafe {
            call!(
                owner.driver(),
                cuMemsetD8Async(pointer.as_raw(), 4, 256, stream.as_raw())
            )
        }?;
        stream.synchronize()?;
        let name = IpcMemoryHandle::of(&owner.context(), pointer.wrapping_add(7))?;
        let name = IpcMemoryHandle::from_bytes(name.to_bytes());
        let memory = IpcMemory::open(&other.context(), name)?;
        let mut bytes = [0_u8; 256];
        let peer_stream = other.stream();
        let to = bytes.as_mut_ptr().cast();
        let from = memory.as_pointer().as_raw();
        // SAFETY: both sides have these bytes, and the stream is synchronized.
        unsafe {
            call!(
                other.driver(),
                cuMemcpyDtoHAsync_v2(to, from, 256, peer_stream.as_raw())
            )
        }?;
        peer_stream.synchronize()?;
        assert_eq!(bytes, [4; 256]);
        simulator.inject(
            Fault::on(Function::cuIpcCloseMemHandle).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (memory, error) = memory
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuIpcCloseMemHandle));
        other.assert_calls(Function::cuIpcCloseMemHandle, 1, || drop(memory));
        // SAFETY: the memory was allocated from this resource with this size and alignment, and is
        // not in use.
        unsafe { SyncAlloc.deallocate(&stream, pointer, 256, 256) }?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(target_os = "linux")]
#[driver_test]
fn own_ipc_memory_is_not_opened(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let context = test.context();
    let pointer = SyncAlloc.allocate(&stream, 256, 256)?;
    let name = IpcMemoryHandle::of(&context, pointer)?;
    let error = IpcMemory::open(&context, name).expect_err("the memory belongs to this process");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    // SAFETY: the memory was allocated from this resource with this size and alignment, and is not
    // in use.
    unsafe { SyncAlloc.deallocate(&stream, pointer, 256, 256) }?;
    Ok(())
}

/// Memory that was allocated in stream order has no name.
#[driver_test]
fn stream_ordered_memory_has_no_ipc_handle(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::<u8>::zeroed(&test.stream(), 64)?;
    let error = IpcMemoryHandle::of(&test.context(), buffer.as_pointer())
        .expect_err("the memory is from a pool");
    assert_eq!(
        (error.code(), error.function()),
        (INVALID, Some(Function::cuIpcGetMemHandle))
    );
    assert!(
        error
            .to_string()
            .contains(&format!("{:?}", buffer.as_pointer())),
        "{error}"
    );
    Ok(())
}

#[cfg(target_os = "linux")]
pub(crate) mod operations {
    use curium_driver::Result;
    use curium_interop::{IpcMemory, IpcMemoryHandle};
    use curium_memory::SyncAlloc;

    use crate::operations::{Block, Fixture, Operation, Operations, OtherProcess, block, made};

    const OPERATIONS: &[Operation] = &[("IpcMemoryHandle::of", |fixture| {
        let memory = block(&fixture.stream, SyncAlloc)?;
        let name = IpcMemoryHandle::of(&fixture.context, memory.pointer)?;
        made((memory, name))
    })];

    #[cfg(all(target_os = "linux", not(miri)))]
    inventory::submit! { Operations::Common(OPERATIONS) }

    const SHARED: &[Operation] = &[
        ("IpcMemory::open", |fixture| made(open_ipc(fixture)?)),
        ("IpcMemory::close", |fixture| {
            let (memory, owner) = open_ipc(fixture)?;
            memory.close()?;
            made(owner)
        }),
    ];

    #[cfg(all(target_os = "linux", not(miri)))]
    inventory::submit! { Operations::Shared(SHARED) }

    fn open_ipc(fixture: &Fixture) -> Result<(IpcMemory, (Block<SyncAlloc>, OtherProcess))> {
        let owner = OtherProcess::new(fixture)?;
        let theirs = block(&owner.stream, SyncAlloc)?;
        let name = IpcMemoryHandle::of(owner.stream.context(), theirs.pointer)?;
        Ok((IpcMemory::open(&fixture.context, name)?, (theirs, owner)))
    }
}
