//! Initialization, devices, errors and symbols.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use curium_sim::{Config, Fault, FaultPlan, Simulator};
use curium_sys::{
    CUdevice_attribute, CUdriverProcAddressQueryResult as Status, CUresult, CudaVersion, Function,
};

use crate::support::{Fixture, cu, get, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

fn fresh(config: Config) -> (Simulator, curium_sys::Api) {
    let simulator = Simulator::new(config).expect("there is room for a simulator");
    let api = simulator.api();
    (simulator, api)
}

#[test]
fn calls_before_initialization_are_refused_but_for_a_few() {
    let (_simulator, api) = fresh(Config::new());
    let (mut count, mut context) = (0, ptr::null_mut());
    assert_eq!(
        cu!(api, cuDeviceGetCount(&raw mut count)),
        CUresult::CUDA_ERROR_NOT_INITIALIZED
    );
    let refused = cu!(api, cuCtxGetCurrent(&raw mut context));
    assert_eq!(refused, CUresult::CUDA_ERROR_NOT_INITIALIZED);
    assert_eq!(get!(api, cuDriverGetVersion(_)), 13050);
    assert_eq!(cu!(api, cuInit(1)), INVALID);
    ok!(api, cuInit(0));
    ok!(api, cuInit(0));
    assert_eq!(get!(api, cuDeviceGetCount(_)), 1);
}

#[test]
fn driver_without_devices_has_no_device() {
    let (_simulator, api) = fresh(Config::new().with_devices(0));
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_NO_DEVICE);
}

#[test]
fn functions_of_a_dropped_simulator_are_deinitialized() {
    let (simulator, api) = fresh(Config::new());
    ok!(api, cuInit(0));
    drop(simulator);
    // A later simulator reuses the slot only after all other slots.
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_DEINITIALIZED);
}

#[test]
fn simulators_are_independent() {
    let (first, second) = (Fixture::new(), Fixture::new());
    let stream = first.stream(0);
    assert_eq!(
        cu!(second.api, cuStreamSynchronize(stream)),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let memory = first.alloc(4);
    assert_eq!(cu!(second.api, cuMemFree_v2(memory)), INVALID);
    assert_eq!(second.simulator.live_handles().streams, 0);
}

#[test]
fn ordinals_and_attributes_out_of_range_are_refused() {
    let Fixture { api, .. } = &Fixture::new();
    let mut value = 0;
    assert_eq!(
        cu!(api, cuDeviceGet(&raw mut value, 1)),
        CUresult::CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(
        cu!(api, cuDeviceGet(&raw mut value, -1)),
        CUresult::CUDA_ERROR_INVALID_DEVICE
    );
    for number in [0, 148, 1000] {
        let code = cu!(
            api,
            cuDeviceGetAttribute(&raw mut value, CUdevice_attribute(number), 0)
        );
        assert_eq!(code, INVALID, "{number}");
    }
    let warp = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    assert_eq!(get!(api, cuDeviceGetAttribute(_, warp, 0)), 32);
}

#[test]
fn name_identifies_the_simulator_and_is_truncated_to_its_buffer() {
    let Fixture { api, .. } = &Fixture::new();
    let mut name = [1 as c_char; 64];
    ok!(api, cuDeviceGetName(name.as_mut_ptr(), 64, 0));
    // SAFETY: the function wrote NUL-terminated text.
    let text = unsafe { CStr::from_ptr(name.as_ptr()) }
        .to_string_lossy()
        .into_owned();
    assert!(text.contains("Simulator"), "{text}");
    let mut short = [1 as c_char; 8];
    ok!(api, cuDeviceGetName(short.as_mut_ptr(), 4, 0));
    assert_eq!(short[3..5], [0, 1]);
}

#[test]
fn devices_differ_by_uuid_and_bus() {
    let Fixture { api, .. } =
        &Fixture::with(Config::new().with_devices(2).with_memory_budget(1 << 20));
    let uuid = |device| get!(api, cuDeviceGetUuid_v2(_, device)).bytes;
    assert_ne!(uuid(0), uuid(1));
    assert_ne!(uuid(0), [0; 16]);
    let bus = |device| {
        let mut text = [0 as c_char; 16];
        ok!(api, cuDeviceGetPCIBusId(text.as_mut_ptr(), 16, device));
        text
    };
    assert_ne!(bus(0), bus(1));
    assert_eq!(get!(api, cuDeviceGetByPCIBusId(_, bus(1).as_ptr())), 1);
}

#[test]
fn error_names_are_those_of_the_constants() {
    let Fixture { api, .. } = &Fixture::new();
    let mut name = ptr::null();
    ok!(
        api,
        cuGetErrorName(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, &raw mut name)
    );
    assert_eq!(
        // SAFETY: the name is static text.
        unsafe { CStr::from_ptr(name) },
        c"CUDA_ERROR_ILLEGAL_ADDRESS"
    );
    assert_eq!(
        cu!(api, cuGetErrorName(CUresult(123_456), &raw mut name)),
        INVALID
    );
    assert!(name.is_null());
    let mut text = ptr::null();
    ok!(
        api,
        cuGetErrorString(CUresult::CUDA_ERROR_NOT_READY, &raw mut text)
    );
    assert!(!text.is_null());
}

#[test]
fn symbols_are_looked_up_by_base_name_and_version() {
    let (_simulator, api) = fresh(Config::new());
    let look_up = |name: &CStr, version| {
        let (mut address, mut status): (*mut c_void, Status) = (ptr::dangling_mut(), Status(9));
        let code = cu!(
            api,
            cuGetProcAddress_v2(name.as_ptr(), &raw mut address, version, 0, &raw mut status)
        );
        (code, address.cast_const(), status.0)
    };
    let ok = CUresult::CUDA_SUCCESS;
    for (version, function) in [
        (2000, Function::cuCtxCreate),
        (11040, Function::cuCtxCreate_v3),
        (12050, Function::cuCtxCreate_v4),
    ] {
        assert_eq!(
            look_up(c"cuCtxCreate", version),
            (ok, api.address(function), 0),
            "{version}"
        );
    }
    assert_eq!(look_up(c"cuNothing", 12000), (ok, ptr::null(), 1));
    assert_eq!(look_up(c"cuCtxCreate_v2", 12000), (ok, ptr::null(), 1));
    assert_eq!(look_up(c"cuMemAllocAsync", 11000), (ok, ptr::null(), 2));
    assert_eq!(
        look_up(c"cuInit", 13060).0,
        INVALID,
        "newer than the driver"
    );
    let mut address = ptr::null_mut();
    let missing = cu!(
        api,
        cuGetProcAddress(c"cuNothing".as_ptr(), &raw mut address, 12000, 0)
    );
    assert_eq!(missing, CUresult::CUDA_ERROR_NOT_FOUND);
}

#[test]
fn functions_newer_than_the_driver_or_left_out_are_missing() {
    let config = Config::new()
        .with_driver_version(CudaVersion::new(12, 0))
        .without(Function::cuMemAllocAsync);
    let (_simulator, api) = fresh(config);
    assert_eq!(get!(api, cuDriverGetVersion(_)), 12000);
    assert!(api.cuMemAllocAsync.is_none());
    assert!(api.cuCtxCreate_v4.is_none());
    let expected = Function::all()
        .filter(|function| function.since() > CudaVersion::new(12, 0))
        .count()
        + 1;
    assert_eq!(api.absent().count(), expected);
}

#[test]
fn function_that_is_not_implemented_is_not_supported_and_counted() {
    let fixture = Fixture::new();
    assert_eq!(
        cu!(fixture.api, cuGraphicsUnregisterResource(ptr::null_mut())),
        CUresult::CUDA_ERROR_NOT_SUPPORTED
    );
    assert_eq!(
        fixture.simulator.unsupported_calls(),
        [(Function::cuGraphicsUnregisterResource, 1)]
    );
    assert_eq!(
        fixture
            .simulator
            .calls(Function::cuGraphicsUnregisterResource),
        1
    );
}

#[test]
fn planned_fault_is_met_from_the_start() {
    let fault = Fault::on(Function::cuInit)
        .call(1)
        .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    let (simulator, api) = fresh(Config::new().with_faults(FaultPlan::new().with(fault)));
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    ok!(api, cuInit(0));
    simulator.inject(Fault::on(Function::cuInit).always());
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_UNKNOWN);
    simulator.clear_faults();
    ok!(api, cuInit(0));
}

#[test]
fn private_tables_are_not_offered() {
    let Fixture { api, .. } = &Fixture::new();
    let mut table = ptr::dangling();
    let id = curium_sys::CUuuid { bytes: [1; 16] };
    assert_eq!(
        cu!(api, cuGetExportTable(&raw mut table, &raw const id)),
        INVALID
    );
}
