//! Attributes of kernels, of libraries and of modules.
#![cfg(not(miri))]

use curium_driver::{CacheConfig, Carveout, Device, Error, Kernel, Library, Module, Untyped};
use curium_sim::Config;
use curium_sys::{CUdevice_attribute, CUfunction_attribute, CUresult};
use curium_tests::{TestDriver, kernels, on_driver, on_simulator};

fn reduce(test: &TestDriver) -> [Kernel<Untyped>; 3] {
    let context = test.context();
    let library = Library::from_ptx(&context, kernels::REDUCE).expect("the PTX is right");
    let of_library = library.untyped_kernel("reduce_sum_f32").expect("the library has the kernel");
    let module = Module::from_ptx(&context, kernels::REDUCE).expect("the PTX is right");
    let in_context = of_library.in_context(&context).expect("the library can be loaded");
    [of_library, module.untyped_kernel("reduce_sum_f32").expect("the module has the kernel"), in_context]
}

fn limit(device: &Device, attribute: CUdevice_attribute) -> usize {
    device.attribute(attribute).expect("the limit is known").try_into().expect("a limit is positive")
}

#[test]
fn attributes_tell_what_the_kernel_takes() {
    on_driver(|test| {
        let device = test.device();
        let capability = device.compute_capability().expect("the device has one");
        for kernel in reduce(test) {
            let most = limit(&device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
            let threads = kernel.max_threads_per_block(&device).expect("it is known") as usize;
            assert!((32..=most).contains(&threads), "{threads}");
            assert!((1..=255).contains(&kernel.registers(&device).expect("it is known")));
            assert!(kernel.static_shared_bytes(&device).expect("it is known") > 0, "reduce has shared memory");
            assert!(kernel.binary_version(&device).expect("it is known") <= capability);
            assert!(kernel.ptx_version(&device).expect("it is known") <= capability);
            assert_eq!(kernel.preferred_carveout(&device).expect("it is known"), Carveout::Default);
            assert_eq!(kernel.required_cluster(&device).expect("it is known"), None);
            assert!(!kernel.cluster_size_must_be_set(&device).expect("it is known"));
            kernel.constant_bytes(&device).expect("it is known");
            kernel.local_bytes(&device).expect("it is known");
        }
    });
}

#[test]
fn attributes_that_are_set_are_read_back() {
    on_driver(|test| {
        let device = test.device();
        let most = limit(&device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        for kernel in reduce(test) {
            let dynamic = most - kernel.static_shared_bytes(&device).expect("it is known");
            kernel.set_max_dynamic_shared_bytes(&device, dynamic as u32).expect("a block can have so much");
            assert_eq!(kernel.max_dynamic_shared_bytes(&device).expect("it is known"), dynamic);
            let error = kernel.set_max_dynamic_shared_bytes(&device, dynamic as u32 + 1).expect_err("this is too much");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
            assert!(error.to_string().contains("kernel `reduce_sum_f32`"), "{error}");
            kernel.set_preferred_carveout(&device, Carveout::Percent(50)).expect("half is shared");
            assert_eq!(kernel.preferred_carveout(&device).expect("it is known"), Carveout::Percent(50));
            kernel.set_preferred_carveout(&device, Carveout::Percent(101)).expect_err("this is more than all");
            kernel.set_cache_config(&device, CacheConfig::PreferL1).expect("kernels have a preference");
        }
    });
}

#[test]
fn attribute_that_the_driver_does_not_know_is_an_error_that_names_it() {
    on_driver(|test| {
        for kernel in reduce(test) {
            let error = kernel.attribute(&test.device(), CUfunction_attribute(9999)).expect_err("there is none");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
            assert!(error.to_string().contains("attribute 9999 of kernel `reduce_sum_f32`"), "{error}");
        }
    });
}

#[test]
fn kernel_of_a_module_has_no_attributes_on_another_device() {
    on_simulator(Config::new().with_devices(2), |test, _| {
        let other = test.driver().device(1).expect("there are two devices");
        let [of_library, of_module, in_context] = reduce(test);
        of_library.registers(&other).expect("a library is on all devices");
        for kernel in [of_module, in_context] {
            let error = kernel.registers(&other).expect_err("the kernel is on the first device");
            assert!(matches!(error, Error::Argument(_)), "{error}");
            let error = kernel.set_cache_config(&other, CacheConfig::PreferL1).expect_err("as above");
            assert!(error.to_string().contains("is on device 0, not 1"), "{error}");
        }
    });
}
