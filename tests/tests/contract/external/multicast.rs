//! Multicast objects, on a simulator with hand-written functions in place of missing ones.

use std::sync::OnceLock;

use curium_driver::{Device, Driver, Error};
use curium_memory::multicast::{MulticastObject, MulticastOptions};
use curium_memory::{AddressRange, MemoryAccess, PhysicalMemory};
use curium_sim::{Config, Simulator};
use curium_sys::{
    Api, CUdevice, CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle,
    CUmemLocationType, CUmulticastObjectProp, CUresult,
};
use curium_tests::{TestResult, skip, uses_cuda};
use parking_lot::Mutex;

static SIMULATED: OnceLock<Api> = OnceLock::new();
/// The names of the called functions, in order.
static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());

const BYTES: usize = 2 << 20;

fn note(call: &'static str) -> CUresult {
    CALLS.lock().push(call);
    CUresult::CUDA_SUCCESS
}

fn calls() -> Vec<&'static str> {
    std::mem::take(&mut *CALLS.lock())
}

/// Creates simulated physical memory in place of the multicast object: the driver uses one handle
/// type for both.
unsafe extern "C" fn create(
    output: *mut CUmemGenericAllocationHandle,
    properties: *const CUmulticastObjectProp,
) -> CUresult {
    // SAFETY: the caller passes valid properties.
    let bytes = unsafe { (*properties).size };
    let mut memory = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        ..CUmemAllocationProp::default()
    };
    memory.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let allocate = SIMULATED
        .get()
        .and_then(|api| api.cuMemCreate)
        .expect("the simulator has it");
    note("create");
    // SAFETY: both addresses are valid for writes.
    unsafe { allocate(output, bytes, &raw const memory, 0) }
}

unsafe extern "C" fn add_device(_: CUmemGenericAllocationHandle, _: CUdevice) -> CUresult {
    note("add device")
}

unsafe extern "C" fn bind(
    _: CUmemGenericAllocationHandle,
    _: CUdevice,
    offset: usize,
    _: CUmemGenericAllocationHandle,
    from: usize,
    bytes: usize,
    _: u64,
) -> CUresult {
    assert_eq!((offset, from, bytes), (BYTES, 0, BYTES));
    note("bind")
}

unsafe extern "C" fn unbind(
    _: CUmemGenericAllocationHandle,
    _: CUdevice,
    offset: usize,
    bytes: usize,
) -> CUresult {
    assert_eq!((offset, bytes), (BYTES, BYTES));
    note("unbind")
}

unsafe extern "C" fn release(handle: CUmemGenericAllocationHandle) -> CUresult {
    note("release");
    let release = SIMULATED
        .get()
        .and_then(|api| api.cuMemRelease)
        .expect("the simulator has it");
    // SAFETY: the caller passes ownership of the handle.
    unsafe { release(handle) }
}

/// Returns a driver of the simulator with multicast functions.
fn driver(simulator: &Simulator) -> TestResult<Driver> {
    let mut api = simulator.api();
    assert!(SIMULATED.set(api.clone()).is_ok(), "one test uses this");
    api.cuMulticastCreate = Some(create);
    api.cuMulticastAddDevice = Some(add_device);
    api.cuMulticastBindMem_v2 = Some(bind);
    api.cuMulticastUnbind = Some(unbind);
    api.cuMemRelease = Some(release);
    // SAFETY: the functions are the simulator's, which outlives the driver, and those above.
    Ok(unsafe { Driver::from_api(api) }?)
}

fn foreign_device(simulator: &Simulator) -> TestResult<Device> {
    let driver = simulator.driver::<Driver>()?;
    Ok(driver.device(0)?)
}

/// An object is mapped as memory is and outlives its bindings and mappings.
#[test]
fn object_outlives_its_mappings() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(Config::new())?;
    let driver = driver(&simulator)?;
    let device = driver.device(0)?;
    let options = MulticastOptions::new(1, 2 * BYTES);
    let object = MulticastObject::new(&driver, &options)?;
    object.add_device(&device)?;
    let memory = PhysicalMemory::new(&device, BYTES)?;
    let error = object
        .bind(&device, BYTES + 1, &memory)
        .expect_err("it is too long")
        .to_string();
    assert!(
        error.contains("2097152 bytes at offset 2097153 do not fit into 4194304 bytes"),
        "{error}"
    );
    let other = Simulator::new(Config::new())?;
    let error = object
        .bind(&foreign_device(&other)?, BYTES, &memory)
        .expect_err("it belongs to another driver");
    assert!(
        matches!(error, Error::Argument(_)) && error.to_string().contains("MulticastObject::bind"),
        "{error}"
    );
    let binding = object.bind(&device, BYTES, &memory)?;
    let range = AddressRange::reserve(&driver, 2 * BYTES)?;
    let mapping = range.map(0, object.as_memory())?;
    mapping.set_access(&device, MemoryAccess::ReadWrite)?;
    assert_eq!(calls(), ["create", "add device", "bind"]);
    let (object, error) = object
        .close()
        .expect_err("it is bound and mapped")
        .into_parts();
    assert!(error.to_string().contains("2 other owners"), "{error}");
    drop((memory, object, mapping, range));
    assert_eq!(
        calls(),
        [""; 0],
        "the binding keeps the memory and the object"
    );
    drop(binding);
    assert_eq!(calls(), ["unbind", "release", "release"]);
    drop((device, driver));
    assert!(
        simulator.live_handles().is_empty(),
        "{}",
        simulator.live_handles()
    );
    Ok(())
}
