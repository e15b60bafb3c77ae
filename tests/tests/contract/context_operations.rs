//! The public operations of devices and contexts that call the driver, except those of the primary context.

use curium_driver::{
    AtomicOperation, CacheConfig, Context, ContextFlags, ContextOptions, DeviceAttribute, Event, EventFlags,
    GreenContextOptions, Limit, Multiprocessors, RawContext, RdmaScope, Result, SharedMemoryConfig, SplitFlags,
};
use curium_sys::CUarray_format;

use crate::operations::{Fixture, Operation, boxed, made};

/// The operations supported by every driver from CUDA 13.0 on, with one device.
pub(crate) const OPERATIONS: &[Operation] = &[
    ("Driver::device_by_pci_bus_id", |fixture| {
        made(fixture.driver.device_by_pci_bus_id(&fixture.device.pci_bus_id()?)?)
    }),
    ("Driver::device_by_uuid", |fixture| made(fixture.driver.device_by_uuid(fixture.device.uuid()?)?)),
    ("Driver::topology", |fixture| made(fixture.driver.topology()?)),
    ("Device::can_access_peer", |fixture| made(fixture.device.can_access_peer(&fixture.device)?)),
    ("Device::host_atomics", |fixture| made(fixture.device.host_atomics(&[AtomicOperation::And])?)),
    ("Device::supports_affinity", |fixture| made(fixture.device.supports_affinity()?)),
    ("Device::linear_texture_width", |fixture| {
        made(fixture.device.linear_texture_width(CUarray_format::CU_AD_FORMAT_FLOAT, 1)?)
    }),
    ("Device::attribute, typed", |fixture| made(fixture.device.attribute(DeviceAttribute::WARP_SIZE)?)),
    ("Device::on_notification", |fixture| made(fixture.device.on_notification(|_| {})?)),
    ("NotificationListener::close", |fixture| {
        fixture.device.on_notification(|_| {})?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("Device::primary_state", |fixture| made(fixture.device.primary_state()?)),
    ("Device::set_primary_flags", |fixture| made(fixture.device.set_primary_flags(ContextFlags::empty())?)),
    ("Device::create_context", |fixture| made(fixture.device.create_context(ContextOptions::new())?)),
    ("Device::multiprocessors", |fixture| made(fixture.device.multiprocessors()?)),
    ("Multiprocessors::parts_of", |fixture| made(fixture.device.multiprocessors()?.parts_of(16, SplitFlags::empty())?)),
    ("Multiprocessors::split", |fixture| made(part(fixture)?)),
    ("Device::green_context", |fixture| made(green(fixture)?)),
    ("Context::multiprocessors", |fixture| made(fixture.context.multiprocessors()?)),
    ("Context::multiprocessors, green", |fixture| made(green(fixture)?.multiprocessors()?)),
    ("Context::stream, green", |fixture| made(green(fixture)?.stream()?)),
    ("Stream::green_context_raw", |fixture| made(fixture.context.stream()?.green_context_raw()?)),
    ("Context::green_id", |fixture| made(green(fixture)?.green_id()?)),
    ("Context::id", |fixture| made(fixture.context.id()?)),
    ("Context::api_version", |fixture| made(fixture.context.api_version()?)),
    ("Context::flags", |fixture| made(fixture.context.flags()?)),
    ("Context::set_flags", |fixture| made(fixture.context.set_flags(ContextFlags::empty())?)),
    ("Context::cache_config", |fixture| made(fixture.context.cache_config()?)),
    ("Context::set_cache_config", |fixture| made(fixture.context.set_cache_config(CacheConfig::NoPreference)?)),
    ("Context::shared_memory_config", |fixture| made(fixture.context.shared_memory_config()?)),
    ("Context::set_shared_memory_config", |fixture| {
        made(fixture.context.set_shared_memory_config(SharedMemoryConfig::Default)?)
    }),
    ("Context::stream_priorities", |fixture| made(fixture.context.stream_priorities()?)),
    ("Context::affinity", |fixture| made(fixture.context.affinity()?)),
    ("Context::reset_persisting_l2", |fixture| made(fixture.context.reset_persisting_l2()?)),
    ("Context::flush_rdma_writes", |fixture| made(fixture.context.flush_rdma_writes(RdmaScope::Owner)?)),
    ("Context::limit", |fixture| made(fixture.context.limit(Limit::StackSize)?)),
    ("Context::set_limit", |fixture| made(fixture.context.set_limit(Limit::L2FetchGranularity, 64)?)),
    ("Context::record_event", |fixture| {
        let event = Event::new(&fixture.context, EventFlags::empty())?;
        made(fixture.context.record_event(&event)?)
    }),
    ("Context::wait_event", |fixture| {
        let event = Event::new(&fixture.context, EventFlags::empty())?;
        made(fixture.context.wait_event(&event)?)
    }),
    ("Context::record_event, green", |fixture| {
        let context = green(fixture)?;
        let event = Event::new(&context, EventFlags::empty())?;
        context.record_event(&event)?;
        made(context.wait_event(&event)?)
    }),
    ("Context::is_current", |fixture| made(fixture.context.is_current()?)),
    ("Context::current_raw", |fixture| made(Context::current_raw(&fixture.driver)?)),
    ("Context::current", |fixture| {
        // SAFETY: the current context outlives the operation.
        made(unsafe { Context::current(&fixture.driver) }?)
    }),
    ("Context::scoped", |fixture| made(fixture.context.scoped(|| ())?)),
    ("Context::from_raw", |fixture| {
        let raw = RawContext::Borrowed(fixture.context.as_raw());
        // SAFETY: the fixture keeps the context.
        made(unsafe { Context::from_raw(&fixture.driver, raw) }?)
    }),
    ("Context::into_raw", |fixture| {
        let raw = fixture.device.create_context(ContextOptions::new())?.into_raw().expect("nobody else has it");
        // SAFETY: `into_raw` released ownership of the context, and it has no other owner.
        let taken = unsafe { Context::from_raw(&fixture.driver, raw) };
        if taken.is_err() {
            // SAFETY: the failed attempt did not change the context.
            drop(unsafe { Context::from_raw(&fixture.driver, raw) });
        }
        made(taken?)
    }),
    ("Context::from_raw_with_owner", |fixture| {
        let owner = fixture.context.clone();
        // SAFETY: `owner` is the context.
        made(unsafe { Context::from_raw_with_owner(&fixture.driver, owner.as_raw(), owner) }?)
    }),
];

fn part(fixture: &Fixture) -> Result<Multiprocessors> {
    let split = fixture.device.multiprocessors()?.split(1, 16, SplitFlags::empty())?;
    Ok(split.parts.into_iter().next().expect("a split gives a part"))
}

fn green(fixture: &Fixture) -> Result<Context> {
    fixture.device.green_context(GreenContextOptions::new(part(fixture)?))
}
