//! Attributes of [`Stream`].

use curium_driver::{
    AccessPolicyWindow, AccessProperty, DevicePointer, MemorySyncDomain, MemorySyncDomainMap,
    Stream, StreamFlags, StreamOptions, SynchronizationPolicy,
};
use curium_sim::Simulator;
use curium_sys::{CUresult, CUstreamAttrID};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

#[driver_test]
fn stream_returns_its_id_flags_and_device(test: &TestDriver) -> TestResult {
    let context = test.context();
    let first = test.stream();
    let second = test.stream();
    assert_ne!(first.id()?, second.id()?);
    assert_eq!(first.flags()?, StreamFlags::NON_BLOCKING);
    let blocking = Stream::new(
        &context,
        StreamOptions::new().with_flags(StreamFlags::empty()),
    );
    assert_eq!(blocking?.flags()?, StreamFlags::empty());
    assert_eq!(first.device().as_raw(), test.device().as_raw());
    Ok(())
}

#[driver_test]
fn excessive_priority_is_clamped(test: &TestDriver) {
    let priority = |priority| {
        let stream = Stream::new(
            &test.context(),
            StreamOptions::new().with_priority(priority),
        );
        stream
            .expect("the driver clamps")
            .priority()
            .expect("a priority")
    };
    let greatest = priority(i32::MIN);
    let least = priority(i32::MAX);
    assert_eq!(priority(0), 0);
    assert_eq!(least, 0);
    assert!(greatest <= least);
    assert_eq!(priority(greatest), greatest);
}

#[driver_test]
fn attribute_is_read_back_as_set(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    stream.set_synchronization_policy(SynchronizationPolicy::Block)?;
    assert_eq!(
        stream.synchronization_policy()?,
        SynchronizationPolicy::Block
    );
    stream.set_memory_sync_domain(MemorySyncDomain::Remote)?;
    assert_eq!(stream.memory_sync_domain()?, MemorySyncDomain::Remote);
    let map = MemorySyncDomainMap {
        default: 0,
        remote: 0,
    };
    stream.set_memory_sync_domain_map(map)?;
    assert_eq!(stream.memory_sync_domain_map()?, map);
    Ok(())
}

#[simulator_test]
fn access_policy_window_is_read_back_and_checked(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let window =
        AccessPolicyWindow::persisting(DevicePointer::from_raw(0x1000), 4096).with_hit_ratio(0.5);
    stream.set_access_policy_window(window)?;
    assert_eq!(stream.access_policy_window()?, window);
    let twice = window.with_hit_ratio(2.0);
    let kept = window.with_properties(AccessProperty::Persisting, AccessProperty::Persisting);
    for wrong in [twice, kept] {
        let error = stream
            .set_access_policy_window(wrong)
            .expect_err("the window is not valid");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    assert_eq!(stream.access_policy_window()?, window);
    Ok(())
}

#[driver_test]
fn attributes_are_copied_between_streams(test: &TestDriver) -> TestResult {
    let from = test.stream();
    let to = test.stream();
    from.set_synchronization_policy(SynchronizationPolicy::Yield)?;
    to.copy_attributes_from(&from)?;
    assert_eq!(to.synchronization_policy()?, SynchronizationPolicy::Yield);
    Ok(())
}

/// An attribute that no stream has is an error that names it.
#[driver_test]
fn unknown_stream_attribute_is_named(test: &TestDriver) {
    let error = test
        .stream()
        .raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    let error = error
        .map(|_| ())
        .expect_err("streams have no such attribute");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(error.to_string().contains("attribute 2"), "{error}");
}

pub(crate) mod operations {
    use curium_driver::{
        AccessPolicyWindow, DevicePointer, MemorySyncDomain, MemorySyncDomainMap,
        SynchronizationPolicy,
    };
    use curium_sys::CUstreamAttrID;

    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Stream::id", |fixture| made(fixture.stream.id()?)),
        ("Stream::flags", |fixture| made(fixture.stream.flags()?)),
        ("Stream::priority", |fixture| {
            made(fixture.stream.priority()?)
        }),
        ("Stream::access_policy_window", |fixture| {
            made(fixture.stream.access_policy_window()?)
        }),
        ("Stream::set_access_policy_window", |fixture| {
            let window = AccessPolicyWindow::persisting(DevicePointer::from_raw(0), 0);
            made(fixture.stream.set_access_policy_window(window)?)
        }),
        ("Stream::synchronization_policy", |fixture| {
            made(fixture.stream.synchronization_policy()?)
        }),
        ("Stream::set_synchronization_policy", |fixture| {
            made(
                fixture
                    .stream
                    .set_synchronization_policy(SynchronizationPolicy::Spin)?,
            )
        }),
        ("Stream::memory_sync_domain", |fixture| {
            made(fixture.stream.memory_sync_domain()?)
        }),
        ("Stream::set_memory_sync_domain", |fixture| {
            made(
                fixture
                    .stream
                    .set_memory_sync_domain(MemorySyncDomain::Default)?,
            )
        }),
        ("Stream::memory_sync_domain_map", |fixture| {
            made(fixture.stream.memory_sync_domain_map()?)
        }),
        ("Stream::set_memory_sync_domain_map", |fixture| {
            made(
                fixture
                    .stream
                    .set_memory_sync_domain_map(MemorySyncDomainMap {
                        default: 0,
                        remote: 0,
                    })?,
            )
        }),
        ("Stream::copy_attributes_from", |fixture| {
            made(fixture.stream.copy_attributes_from(&fixture.other)?)
        }),
        ("Stream::raw_attribute", |fixture| {
            let attribute = CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
            fixture.stream.raw_attribute(attribute).map(|_| boxed(()))
        }),
        ("Stream::set_priority", |fixture| {
            made(fixture.stream.set_priority(0)?)
        }),
        ("Stream::set_raw_attribute", |fixture| {
            let attribute = CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
            let value = fixture.stream.raw_attribute(attribute)?;
            // SAFETY: the value has the type of this attribute.
            made(unsafe { fixture.stream.set_raw_attribute(attribute, &value) }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
