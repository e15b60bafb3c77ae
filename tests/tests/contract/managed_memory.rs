//! Managed memory of several devices, and prefetches of which one fails.

use std::sync::OnceLock;

use curium_driver::{Driver, Function};
use curium_memory::{MemoryLocation, UnifiedBuffer, unified};
use curium_sim::{Config, Fault};
use curium_sys::{Api, CUdevice, CUdevice_attribute, CUresult, CudaVersion};
use curium_tests::on_simulator;

#[test]
fn range_whose_prefetch_was_enqueued_before_another_failed_is_in_use() {
    on_simulator(Config::new().with_driver_version(CudaVersion::new(12, 8)), |test, simulator| {
        let (first_stream, second_stream, stream) = (test.stream(), test.stream(), test.stream());
        let first = UnifiedBuffer::<u8>::zeroed(&first_stream, 4096).expect("memory suffices");
        let second = UnifiedBuffer::<u8>::zeroed(&second_stream, 4096).expect("memory suffices");
        let fault = Fault::on(Function::cuMemPrefetchAsync_v2).call(2);
        simulator.inject(fault.returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let ranges = [(first.as_slice(), MemoryLocation::Host), (second.as_slice(), MemoryLocation::Host)];
        unified::prefetch(&stream, &ranges).expect_err("the second prefetch fails");
        // Each waits for its own stream, and the first for the one that it is used on.
        test.assert_calls(Function::cuStreamSynchronize, 1, || drop(second));
        test.assert_calls(Function::cuStreamSynchronize, 2, || drop(first));
    });
}

/// The simulator's own function behind [`not_concurrent_on_device_1`].
static DEVICE_ATTRIBUTE: OnceLock<Api> = OnceLock::new();

/// `cuDeviceGetAttribute` of a system whose second device does not let the host use managed memory meanwhile.
unsafe extern "C" fn not_concurrent_on_device_1(
    value: *mut i32,
    attribute: CUdevice_attribute,
    device: CUdevice,
) -> CUresult {
    let api = DEVICE_ATTRIBUTE.get().expect("the test sets it");
    let function = api.cuDeviceGetAttribute.expect("the simulator has it");
    // SAFETY: the caller's arguments are passed on.
    let code = unsafe { function(value, attribute, device) };
    if attribute == CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS && device == 1 {
        // SAFETY: the caller passes a place for the answer.
        unsafe { value.write(0) };
    }
    code
}

#[test]
fn host_may_use_managed_memory_only_if_every_device_allows_it() {
    on_simulator(Config::new().with_devices(2), |_, simulator| {
        let mut api = simulator.api();
        DEVICE_ATTRIBUTE.set(simulator.api()).map_err(drop).expect("one test sets it");
        api.cuDeviceGetAttribute = Some(not_concurrent_on_device_1);
        // SAFETY: the functions are the simulator's, which outlives the driver, and one that answers as a driver may.
        let driver = unsafe { Driver::from_api(api) }.expect("the simulator initializes");
        let stream = driver.device(0).and_then(|device| device.primary_context()?.stream()).expect("there is a device");
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        for error in [buffer.host().map(drop), buffer.host_mut().map(drop)] {
            let error = error.expect_err("the other device may work");
            assert!(error.to_string().contains("copy it"), "{error}");
        }
        assert_eq!(buffer.as_slice().to_vec().expect("the buffer can be read"), [0; 4]);
    });
}
