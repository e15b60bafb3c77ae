//! [`IpcMemory`]: device memory shared between processes. On the simulator, each simulator represents a process.

use curium_driver::Function;
#[cfg(target_os = "linux")]
use curium_driver::call;
use curium_memory::{DeviceBuffer, IpcMemoryHandle};
#[cfg(target_os = "linux")]
use curium_memory::{IpcMemory, Resource, SyncAlloc};
#[cfg(target_os = "linux")]
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::on_driver;
#[cfg(target_os = "linux")]
use curium_tests::on_simulator;

const INVALID: Option<CUresult> = Some(CUresult::CUDA_ERROR_INVALID_VALUE);

#[cfg(target_os = "linux")]
#[test]
fn memory_of_another_process_is_opened_by_its_name_and_closed_once() {
    on_simulator(Config::new(), |owner, _| {
        on_simulator(Config::new(), |other, simulator| {
            let stream = owner.stream();
            let pointer = SyncAlloc
                .allocate(&stream, 256, 256)
                .expect("memory suffices");
            // SAFETY: the memory has these bytes, for use on this stream.
            unsafe {
                call!(
                    owner.driver(),
                    cuMemsetD8Async(pointer.as_raw(), 4, 256, stream.as_raw())
                )
            }
            .expect("the memory can be filled");
            stream.synchronize().expect("the stream works");
            let name = IpcMemoryHandle::of(&owner.context(), pointer.wrapping_add(7))
                .expect("the memory has a name");
            let name = IpcMemoryHandle::from_bytes(name.to_bytes());
            let memory = IpcMemory::open(&other.context(), name).expect("the memory can be opened");
            let (mut bytes, there) = ([0_u8; 256], other.stream());
            let (to, from) = (bytes.as_mut_ptr().cast(), memory.as_pointer().as_raw());
            // SAFETY: both sides have these bytes, and the stream is synchronized.
            unsafe {
                call!(
                    other.driver(),
                    cuMemcpyDtoHAsync_v2(to, from, 256, there.as_raw())
                )
            }
            .expect("the memory can be read");
            there.synchronize().expect("the stream works");
            assert_eq!(bytes, [4; 256]);
            simulator.inject(
                Fault::on(Function::cuIpcCloseMemHandle)
                    .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
            );
            let (memory, error) = memory
                .close()
                .expect_err("the injected fault occurs")
                .into_parts();
            assert_eq!(error.function(), Some(Function::cuIpcCloseMemHandle));
            other.assert_calls(Function::cuIpcCloseMemHandle, 1, || drop(memory));
            // SAFETY: the memory was allocated from this resource with this size and alignment, and is not in use.
            unsafe { SyncAlloc.deallocate(&stream, pointer, 256, 256) }
                .expect("the memory can be freed");
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_the_same_process_is_not_opened() {
    on_driver(|test| {
        let (stream, context) = (test.stream(), test.context());
        let pointer = SyncAlloc
            .allocate(&stream, 256, 256)
            .expect("memory suffices");
        let name = IpcMemoryHandle::of(&context, pointer).expect("the memory has a name");
        let error =
            IpcMemory::open(&context, name).expect_err("the memory belongs to this process");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
        // SAFETY: the memory was allocated from this resource with this size and alignment, and is not in use.
        unsafe { SyncAlloc.deallocate(&stream, pointer, 256, 256) }
            .expect("the memory can be freed");
    });
}

#[test]
fn memory_that_was_allocated_in_stream_order_has_no_name() {
    on_driver(|test| {
        let buffer = DeviceBuffer::<u8>::zeroed(&test.stream(), 64).expect("memory suffices");
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
    });
}

#[cfg(target_os = "linux")]
pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{IpcMemory, IpcMemoryHandle, SyncAlloc};

    use crate::operations::{Block, Fixture, Operation, OtherProcess, block, made};

    pub(crate) const OPERATIONS: &[Operation] = &[("IpcMemoryHandle::of", |fixture| {
        let memory = block(&fixture.stream, SyncAlloc)?;
        let name = IpcMemoryHandle::of(&fixture.context, memory.pointer)?;
        made((memory, name))
    })];

    pub(crate) const SHARED: &[Operation] = &[
        ("IpcMemory::open", |fixture| made(open_ipc(fixture)?)),
        ("IpcMemory::close", |fixture| {
            let (memory, owner) = open_ipc(fixture)?;
            memory.close()?;
            made(owner)
        }),
    ];

    fn open_ipc(fixture: &Fixture) -> Result<(IpcMemory, (Block<SyncAlloc>, OtherProcess))> {
        let owner = OtherProcess::new(fixture)?;
        let theirs = block(&owner.stream, SyncAlloc).expect("the other process has memory");
        let name = IpcMemoryHandle::of(owner.stream.context(), theirs.pointer)
            .expect("the memory has a name");
        Ok((IpcMemory::open(&fixture.context, name)?, (theirs, owner)))
    }
}
