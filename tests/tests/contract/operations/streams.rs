//! The operations on streams and events other than the basic ones. Host functions and traces are missing: their driver
//! calls happen on other threads and in drops, which no sweep can count. They have tests of their own.

use curium_driver::{
    AccessPolicyWindow, DevicePointer, Event, EventFlags, EventPool, MemoryOperation, MemorySyncDomain,
    MemorySyncDomainMap, RecordFlags, Stream, StreamOptions, StreamPool, SynchronizationPolicy, WaitCondition,
};
use curium_sys::CUstreamAttrID;

use super::{Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Stream::completion", |fixture| made(pollster::block_on(fixture.stream.completion())?)),
    ("Stream::is_capturing", |fixture| made(fixture.stream.is_capturing()?)),
    ("Stream::id", |fixture| made(fixture.stream.id()?)),
    ("Stream::flags", |fixture| made(fixture.stream.flags()?)),
    ("Stream::priority", |fixture| made(fixture.stream.priority()?)),
    ("Stream::context_raw", |fixture| made(fixture.stream.context_raw()?)),
    ("Stream::contexts_raw", |fixture| made(fixture.stream.contexts_raw()?)),
    ("Stream::device_raw", |fixture| made(fixture.stream.device_raw()?)),
    ("Stream::access_policy_window", |fixture| made(fixture.stream.access_policy_window()?)),
    ("Stream::set_access_policy_window", |fixture| {
        let window = AccessPolicyWindow::persisting(DevicePointer::from_raw(0), 0);
        made(fixture.stream.set_access_policy_window(window)?)
    }),
    ("Stream::synchronization_policy", |fixture| made(fixture.stream.synchronization_policy()?)),
    ("Stream::set_synchronization_policy", |fixture| {
        made(fixture.stream.set_synchronization_policy(SynchronizationPolicy::Spin)?)
    }),
    ("Stream::memory_sync_domain", |fixture| made(fixture.stream.memory_sync_domain()?)),
    ("Stream::set_memory_sync_domain", |fixture| {
        made(fixture.stream.set_memory_sync_domain(MemorySyncDomain::Default)?)
    }),
    ("Stream::memory_sync_domain_map", |fixture| made(fixture.stream.memory_sync_domain_map()?)),
    ("Stream::set_memory_sync_domain_map", |fixture| {
        made(fixture.stream.set_memory_sync_domain_map(MemorySyncDomainMap { default: 0, remote: 0 })?)
    }),
    ("Stream::copy_attributes_from", |fixture| made(fixture.stream.copy_attributes_from(&fixture.other)?)),
    ("Stream::raw_attribute", |fixture| {
        let attribute = CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
        fixture.stream.raw_attribute(attribute).map(|_| super::boxed(()))
    }),
    ("Stream::write_value_u32", |fixture| {
        // SAFETY: the address is that of the pinned values, which outlive the work.
        made(unsafe { fixture.stream.write_value_u32(fixture.value_address(), 1) }?)
    }),
    ("Stream::write_value_u64", |fixture| {
        // SAFETY: as above; pinned memory is aligned to more than 8, and there are 16 values of 4 bytes.
        made(unsafe { fixture.stream.write_value_u64(fixture.value_address().cast(), 1) }?)
    }),
    ("Stream::wait_value_u32", |fixture| {
        // SAFETY: as above; the comparison holds for every value.
        made(unsafe { fixture.stream.wait_value_u32(fixture.value_address(), WaitCondition::Nor, 0xf000_0000) }?)
    }),
    ("Stream::wait_value_u64", |fixture| {
        let address = fixture.value_address().cast();
        // SAFETY: as above.
        made(unsafe { fixture.stream.wait_value_u64(address, WaitCondition::Nor, 0xf000_0000_0000_0000) }?)
    }),
    ("Stream::batch_memory_operations", |fixture| {
        let address = fixture.value_address();
        let operations =
            [MemoryOperation::WriteU32(address, 3), MemoryOperation::WaitU32(address, WaitCondition::Equal, 3)];
        // SAFETY: as above, and the stream waits for a value that was written.
        made(unsafe { fixture.stream.batch_memory_operations(&operations) }?)
    }),
    ("Stream::set_priority", |fixture| made(fixture.stream.set_priority(0)?)),
    ("Stream::set_raw_attribute", |fixture| {
        let attribute = CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        let value = fixture.stream.raw_attribute(attribute)?;
        // SAFETY: the value has the type of this attribute.
        made(unsafe { fixture.stream.set_raw_attribute(attribute, &value) }?)
    }),
    ("Stream::into_raw", |fixture| {
        let raw = fixture.context.stream()?.into_raw()?;
        // SAFETY: the handle is live and has no other owner.
        made(unsafe { Stream::from_raw(&fixture.context, raw) })
    }),
    ("HandlePool::trim", |fixture| {
        let streams = StreamPool::new(&fixture.context, StreamOptions::new());
        let events = EventPool::new(&fixture.context, EventFlags::empty());
        drop((streams.take()?, events.take()?));
        streams.trim();
        events.trim();
        made(())
    }),
    ("HandlePool::take and Event::create and Stream::create", |fixture| {
        let streams = StreamPool::new(&fixture.context, StreamOptions::new());
        made((streams.take()?, EventPool::new(&fixture.context, EventFlags::empty()).take()?))
    }),
    ("Event::record_with_flags", |fixture| {
        made(fixture.event.record_with_flags(&fixture.other, RecordFlags::empty())?)
    }),
    ("Event::completion", |fixture| made(pollster::block_on(fixture.event.completion())?)),
    ("Event::into_raw", |fixture| {
        let event = Event::new(&fixture.context, EventFlags::empty())?;
        let raw = event.into_raw()?;
        // SAFETY: the handle is live and has no other owner.
        made(unsafe { Event::from_raw(&fixture.context, raw) })
    }),
];
