//! Peer access between devices.

use curium_driver::{AtomicOperation, Error};
use curium_sim::{Config, Simulator};
use curium_sys::{CUdevice_P2PAttribute, CUresult};
use curium_tests::{TestDriver, on_driver, on_peers, on_simulator};

#[test]
fn device_is_no_peer_of_itself() {
    on_driver(|test| {
        let device = test.device();
        assert!(
            !device
                .can_access_peer(&device)
                .expect("a device can be queried")
        );
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
    });
}

#[test]
fn peer_access_is_enabled_and_disabled_any_number_of_times() {
    on_peers(|_, first, second| {
        for _ in 0..2 {
            first
                .enable_peer_access(second)
                .expect("the devices are peers");
        }
        for _ in 0..2 {
            first
                .disable_peer_access(second)
                .expect("access was enabled");
        }
        first
            .enable_peer_access(second)
            .expect("access can be enabled again");
        first
            .disable_peer_access(second)
            .expect("access was enabled");
    });
}

#[test]
fn peer_link_matches_its_attributes() {
    on_peers(|_, first, second| {
        let link = first
            .device()
            .peer_link(second.device())
            .expect("the devices have a link");
        assert!(link.access);
        let attribute = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
        let raw = first
            .device()
            .peer_attribute(second.device(), attribute)
            .expect("the attribute is known");
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
    });
}

#[test]
fn topology_has_a_link_for_each_pair() {
    on_peers(|test, _, _| {
        let topology = test
            .driver()
            .topology()
            .expect("the devices can be queried");
        let count = test
            .driver()
            .device_count()
            .expect("the devices can be counted");
        assert_eq!(topology.devices().len(), count);
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            assert_eq!(topology.link(from, to).is_none(), from == to, "{from} {to}");
        }
        let table = topology.to_string();
        assert_eq!(table.lines().count(), 1 + count, "{table}");
        assert!(table.contains(&topology.devices()[1].pci_bus_id), "{table}");
    });
}

#[test]
fn topology_of_one_device_has_no_link() {
    on_simulator(Config::new(), |test, _| {
        let topology = test.driver().topology().expect("the device can be queried");
        assert_eq!((topology.devices().len(), topology.link(0, 0)), (1, None));
    });
}

#[test]
fn atomics_answer_for_each_operation_in_order() {
    let check = |test: &TestDriver| {
        let operations = [
            AtomicOperation::IntegerAdd,
            AtomicOperation::CompareAndSwap,
            AtomicOperation::FloatMax,
        ];
        let forms = test
            .device()
            .host_atomics(&operations)
            .expect("the device can be queried");
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
    };
    on_driver(check);
    on_peers(|_, first, second| {
        let operations = [AtomicOperation::IntegerAdd, AtomicOperation::Exchange];
        let forms = first
            .device()
            .peer_atomics(second.device(), &operations)
            .expect("the devices can be queried");
        assert_eq!(forms.len(), operations.len());
    });
}

#[test]
fn devices_of_different_drivers_are_no_peers() {
    on_simulator(Config::new(), |test, _| {
        let other = Simulator::new(Config::new()).expect("a simulator can be created");
        let driver = other
            .driver::<curium_driver::Driver>()
            .expect("the simulator initializes");
        let (here, there) = (test.device(), driver.device(0).expect("there is a device"));
        for error in [
            here.can_access_peer(&there).map(drop),
            here.peer_link(&there).map(drop),
            here.peer_atomics(&there, &[AtomicOperation::And]).map(drop),
        ] {
            let error = error.expect_err("handles of one driver are invalid in another");
            assert!(error.to_string().contains("different drivers"), "{error}");
        }
    });
}

pub(crate) mod operations {
    use curium_driver::AtomicOperation;
    use curium_sys::CUdevice_P2PAttribute;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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

    pub(crate) const SOLITARY: &[Operation] = &[
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
}
