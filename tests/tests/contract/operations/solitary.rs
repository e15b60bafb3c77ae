//! The operations that require a simulator of their own: those after which no call succeeds, those that a simulator
//! does not support, and those with driver calls on other threads, which no sweep can count. The test checks for leaks,
//! not for success.

use std::num::NonZero;

use curium_driver::{
    AttachMode, CheckpointProcess, DevicePointer, Error, Event, EventFlags, Graph, HostFunctionWait, IpcEventHandle,
    Module, Partition, ProcessState, Result, Trace,
};
#[cfg(unix)]
use curium_driver::{CoreDump, CoreDumpFlags, CoreDumpListener};
#[cfg(target_os = "linux")]
use curium_memory::export_dma_buf;
use curium_memory::{DeviceVec, UnifiedBuffer};
use curium_sys::CUdevice_P2PAttribute;

use super::{Fixture, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Device::reset_primary_context", |fixture| {
        // Of another device where there is one: memory of the fixture's pools would outlive the context, and leak.
        let devices = fixture.device.driver().devices()?;
        let last = devices.last().unwrap_or(&fixture.device);
        // SAFETY: the objects created in the context are only dropped.
        made(unsafe { last.reset_primary_context() }?)
    }),
    ("Device::luid", |fixture| made(fixture.device.luid()?)),
    ("Device::fabric_cluster_uuid", |fixture| made(fixture.device.fabric_cluster_uuid()?)),
    ("Device::cliques", |fixture| made(fixture.device.cliques()?)),
    ("Device::clique_count", |fixture| made(fixture.device.clique_count()?)),
    ("Device::work_queue_config", |fixture| made(fixture.device.work_queue_config()?)),
    ("Context::work_queue_config", |fixture| made(fixture.context.work_queue_config()?)),
    ("Context::work_queue", |fixture| made(fixture.context.work_queue()?)),
    ("Stream::multiprocessors", |fixture| made(fixture.stream.multiprocessors()?)),
    ("Multiprocessors::split_into", |fixture| {
        made(fixture.device.multiprocessors()?.split_into(&[Partition::default()])?)
    }),
    ("Stream::attach_managed", |fixture| {
        let address = DevicePointer::from_raw(fixture.value_address().as_raw());
        // SAFETY: no work uses the values.
        made(unsafe { fixture.stream.attach_managed(address, 0, AttachMode::Global) }?)
    }),
    ("Stream::launch_host_function", |fixture| made(pollster::block_on(fixture.stream.launch_host_function(|| 3)?)?)),
    ("Stream::launch_host_function_with", |fixture| {
        let done = fixture.stream.launch_host_function_with(HostFunctionWait::Block, || 3)?;
        made(pollster::block_on(done)?)
    }),
    ("Graph::capture_into, of work that fails", |fixture| {
        let mut graph = Graph::new(&fixture.context)?;
        let failed = graph.capture_into(&[], |scope| {
            fixture.buffer.as_slice_mut().fill_on(scope, 3)?;
            Err(Error::argument("work", "fails as it should"))
        });
        made((failed.err(), graph))
    }),
    ("Trace::on_stream and Trace::write", |fixture| {
        let trace = Trace::start();
        trace.on_stream(&fixture.stream, "nothing", || Ok(()))?;
        trace.write(std::io::sink()).expect("a sink takes everything");
        made(())
    }),
    ("Module::from_fat_binary_record", |fixture| {
        // SAFETY: the simulator rejects null and does not dereference it.
        made(unsafe { Module::from_fat_binary_record(&fixture.context, std::ptr::null()) }?)
    }),
    ("Event::ipc_handle", |fixture| made(shared_event(fixture)?.ipc_handle()?)),
    ("Event::open_ipc", |fixture| {
        let handle = IpcEventHandle::from_bytes([1; 64]);
        made(Event::open_ipc(&fixture.context, handle)?)
    }),
    ("CheckpointProcess::running", |fixture| made(CheckpointProcess::running(&fixture.driver, 1)?)),
    ("CheckpointProcess::locked", |fixture| made(CheckpointProcess::locked(&fixture.driver, 1)?)),
    ("CheckpointProcess::checkpointed", |fixture| made(CheckpointProcess::checkpointed(&fixture.driver, 1)?)),
    ("ProcessState::of", |fixture| made(ProcessState::of(&fixture.driver, 1)?)),
    #[cfg(unix)]
    ("CoreDump::is_enabled", |fixture| made(dump(fixture).is_enabled()?)),
    #[cfg(unix)]
    ("CoreDump::set_enabled", |fixture| made(dump(fixture).set_enabled(false)?)),
    #[cfg(unix)]
    ("CoreDump::triggers_host", |fixture| made(dump(fixture).triggers_host()?)),
    #[cfg(unix)]
    ("CoreDump::set_triggers_host", |fixture| made(dump(fixture).set_triggers_host(true)?)),
    #[cfg(unix)]
    ("CoreDump::is_user_triggered", |fixture| made(dump(fixture).is_user_triggered()?)),
    #[cfg(unix)]
    ("CoreDump::set_user_triggered", |fixture| made(dump(fixture).set_user_triggered(false)?)),
    #[cfg(unix)]
    ("CoreDump::file", |fixture| made(dump(fixture).file()?)),
    #[cfg(unix)]
    ("CoreDump::set_file", |fixture| made(dump(fixture).set_file("core")?)),
    #[cfg(unix)]
    ("CoreDump::pipe", |fixture| made(dump(fixture).pipe()?)),
    #[cfg(unix)]
    ("CoreDump::set_pipe", |fixture| made(dump(fixture).set_pipe("pipe")?)),
    #[cfg(unix)]
    ("CoreDump::flags", |fixture| made(dump(fixture).flags()?)),
    #[cfg(unix)]
    ("CoreDump::set_flags", |fixture| made(dump(fixture).set_flags(CoreDumpFlags::empty())?)),
    #[cfg(unix)]
    ("CoreDumpListener::on_start", |fixture| made(CoreDumpListener::on_start(&fixture.driver, |_| {})?)),
    #[cfg(unix)]
    ("CoreDumpListener::on_completion", |fixture| made(CoreDumpListener::on_completion(&fixture.driver, |_| {})?)),
    #[cfg(unix)]
    ("CoreDumpListener::close", |fixture| {
        let listener = CoreDumpListener::on_start(&fixture.driver, |_| {})?;
        listener.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("Device::peer_attribute", |fixture| {
        let attribute = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
        made(fixture.device.peer_attribute(&fixture.driver.device(1)?, attribute)?)
    }),
    ("Device::peer_link", |fixture| made(fixture.device.peer_link(&fixture.driver.device(1)?)?)),
    ("Device::peer_atomics", |fixture| {
        made(fixture.device.peer_atomics(&fixture.driver.device(1)?, &[curium_driver::AtomicOperation::And])?)
    }),
    ("Context::enable_peer_access", |fixture| {
        let peer = fixture.driver.device(1)?.primary_context()?;
        made(fixture.context.enable_peer_access(&peer)?)
    }),
    #[cfg(target_os = "linux")]
    ("dma_buf::export_dma_buf", |fixture| {
        made(export_dma_buf(&fixture.context, fixture.buffer.as_pointer(), fixture.buffer.byte_len())?)
    }),
    // Requires a driver newer than that of the other operations.
    ("UnifiedBuffer::locations", |fixture| {
        let buffer = UnifiedBuffer::<u32>::zeroed(&fixture.stream, 4)?;
        made(buffer.locations(.., NonZero::<usize>::MIN)?)
    }),
    ("DeviceVec::enable_access", |fixture| {
        let mut vector = DeviceVec::from_slice(&fixture.stream, &[1_u32])?;
        vector.enable_access(&fixture.driver.device(1)?)?;
        made(vector)
    }),
    ("Context::disable_peer_access", |fixture| {
        let peer = fixture.driver.device(1)?.primary_context()?;
        fixture.context.enable_peer_access(&peer)?;
        made(fixture.context.disable_peer_access(&peer)?)
    }),
];

/// Returns the core dump settings of the fixture's context.
#[cfg(unix)]
fn dump(fixture: &Fixture) -> CoreDump {
    CoreDump::of_context(&fixture.context)
}

fn shared_event(fixture: &Fixture) -> Result<Event> {
    Event::new(&fixture.context, EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING)
}
