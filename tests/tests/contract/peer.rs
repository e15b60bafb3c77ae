//! Peer access between devices.

use curium_driver::{AtomicOperation, Context, Error};
use curium_sim::{Config, Simulator};
use curium_sys::{CUdevice_P2PAttribute, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, on_peers, simulator_test};

#[driver_test]
fn device_is_not_its_own_peer(test: &TestDriver) -> TestResult {
    let device = test.device();
    assert!(!device.can_access_peer(&device)?);
    let error = device.peer_link(&device).expect_err("there is no link");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
    let context = test.context();
    let error = context
        .enable_peer_access(&context)
        .expect_err("a context needs no access to itself");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
    );
    assert!(
        error.to_string().contains("device 0 to device 0"),
        "{error}"
    );
    Ok(())
}

/// A peer access is enabled and disabled any number of times.
#[driver_test(on_peers)]
fn peer_access_is_toggled_repeatedly(
    _: &TestDriver,
    first: &Context,
    second: &Context,
) -> TestResult {
    for _ in 0..2 {
        first.enable_peer_access(second)?;
    }
    for _ in 0..2 {
        first.disable_peer_access(second)?;
    }
    first.enable_peer_access(second)?;
    first.disable_peer_access(second)?;
    Ok(())
}

#[driver_test(on_peers)]
fn peer_link_matches_its_attributes(
    _: &TestDriver,
    first: &Context,
    second: &Context,
) -> TestResult {
    let link = first.device().peer_link(second.device())?;
    assert!(link.access);
    let attribute = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    let raw = first.device().peer_attribute(second.device(), attribute)?;
    assert_eq!(link.all_atomics, raw != 0);
    let error = first
        .device()
        .peer_attribute(second.device(), CUdevice_P2PAttribute(99));
    let error = error.expect_err("there is no such attribute");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(
        error
            .to_string()
            .contains("attribute 99 of devices 0 and 1"),
        "{error}"
    );
    Ok(())
}

#[driver_test(on_peers)]
fn topology_has_a_link_for_each_pair(test: &TestDriver, _: &Context, _: &Context) -> TestResult {
    let topology = test.driver().topology()?;
    let count = test.driver().device_count()?;
    assert_eq!(topology.devices().len(), count);
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        assert_eq!(topology.link(from, to).is_none(), from == to, "{from} {to}");
    }
    let table = topology.to_string();
    assert_eq!(table.lines().count(), 1 + count, "{table}");
    assert!(table.contains(&topology.devices()[1].pci_bus_id), "{table}");
    Ok(())
}

#[simulator_test]
fn single_device_topology_has_no_link(test: &TestDriver, _: &Simulator) -> TestResult {
    let topology = test.driver().topology()?;
    assert_eq!((topology.devices().len(), topology.link(0, 0)), (1, None));
    Ok(())
}

#[test]
fn atomics_answer_in_order() -> TestResult {
    fn check(test: &TestDriver) -> TestResult {
        let operations = [
            AtomicOperation::IntegerAdd,
            AtomicOperation::CompareAndSwap,
            AtomicOperation::FloatMax,
        ];
        let forms = test.device().host_atomics(&operations)?;
        assert_eq!(forms.len(), operations.len());
        let error = test
            .device()
            .host_atomics(&[])
            .expect_err("nothing was queried");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let device = test.device();
        let error = device
            .peer_atomics(&device, &operations)
            .expect_err("a device is not a peer of itself");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
        Ok(())
    }

    on_driver(check)?;
    on_peers(|_, first, second| -> TestResult {
        let operations = [AtomicOperation::IntegerAdd, AtomicOperation::Exchange];
        let forms = first.device().peer_atomics(second.device(), &operations)?;
        assert_eq!(forms.len(), operations.len());
        Ok(())
    })?;
    Ok(())
}

#[simulator_test]
fn devices_from_different_drivers_are_no_peers(test: &TestDriver, _: &Simulator) -> TestResult {
    let other = Simulator::new(Config::new())?;
    let driver = other.driver::<curium_driver::Driver>()?;
    let first = test.device();
    let second = driver.device(0)?;
    for error in [
        first.can_access_peer(&second).map(drop),
        first.peer_link(&second).map(drop),
        first
            .peer_atomics(&second, &[AtomicOperation::And])
            .map(drop),
    ] {
        let error = error.expect_err("handles of one driver are invalid in another");
        assert!(error.to_string().contains("different drivers"), "{error}");
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::AtomicOperation;
    use curium_sys::CUdevice_P2PAttribute;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Driver::topology", |fixture| {
            made(fixture.driver.topology()?)
        }),
        ("Device::can_access_peer", |fixture| {
            made(fixture.device.can_access_peer(&fixture.device)?)
        }),
        ("Device::host_atomics", |fixture| {
            made(fixture.device.host_atomics(&[AtomicOperation::And])?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("Device::fabric_cluster_uuid", |fixture| {
            made(fixture.device.fabric_cluster_uuid()?)
        }),
        ("Device::cliques", |fixture| made(fixture.device.cliques()?)),
        ("Device::clique_count", |fixture| {
            made(fixture.device.clique_count()?)
        }),
        ("Device::peer_attribute", |fixture| {
            let attribute = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
            made(
                fixture
                    .device
                    .peer_attribute(&fixture.driver.device(1)?, attribute)?,
            )
        }),
        ("Device::peer_link", |fixture| {
            made(fixture.device.peer_link(&fixture.driver.device(1)?)?)
        }),
        ("Device::peer_atomics", |fixture| {
            made(
                fixture
                    .device
                    .peer_atomics(&fixture.driver.device(1)?, &[AtomicOperation::And])?,
            )
        }),
        ("Context::enable_peer_access", |fixture| {
            let peer = fixture.driver.device(1)?.primary_context()?;
            made(fixture.context.enable_peer_access(&peer)?)
        }),
        ("Context::disable_peer_access", |fixture| {
            let peer = fixture.driver.device(1)?.primary_context()?;
            fixture.context.enable_peer_access(&peer)?;
            made(fixture.context.disable_peer_access(&peer)?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
