//! Platforms and device models: what devices can do follows their attributes, and errors advise.
#![cfg(not(miri))]

use curium_driver::{
    DeviceAttribute, DevicePointer, Function, Kernel, LaunchConfig, Library, MemoryHandleTypes,
};
use curium_memory::virtual_memory::{Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    DeviceBuffer, MappedBuffer, MemoryAccess, MemoryLocation, MemoryPool, PinnedBuffer,
    PinnedFlags, PoolOptions, UnifiedBuffer,
};
use curium_sim::{Checks, Config, DeviceModel, Fault, Platform, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, kernels, on_simulator, simulator_test};

const MODELS: [DeviceModel; 7] = [
    DeviceModel::T4,
    DeviceModel::A100,
    DeviceModel::Orin,
    DeviceModel::H100,
    DeviceModel::GH200,
    DeviceModel::B200,
    DeviceModel::GB10,
];

/// The models and platforms without concurrent managed access.
const BY_TURNS: [(DeviceModel, Platform); 4] = [
    (DeviceModel::Orin, Platform::Linux),
    (DeviceModel::H100, Platform::Windows),
    (DeviceModel::H100, Platform::Wsl),
    (DeviceModel::GB10, Platform::Windows),
];

fn config(model: DeviceModel, platform: Platform) -> Config {
    Config::new()
        .with_device_model(model)
        .with_platform(platform)
        .with_checks(Checks::Quiet)
}

fn has(test: &TestDriver, attribute: DeviceAttribute<bool>) -> bool {
    test.device()
        .attribute(attribute)
        .expect("a device has this attribute")
}

type Fill = Kernel<(DevicePointer<u32>, u32, u32)>;

fn fill(test: &TestDriver) -> TestResult<Fill> {
    Ok(Library::from_ptx(test.driver(), kernels::FILL)
        .and_then(|library| library.kernel("fill"))?)
}

/// Models differ in how they share memory with the host.
#[test]
fn models_share_host_memory() {
    for (model, expected) in [
        (DeviceModel::Orin, [true, false, false, false]),
        (DeviceModel::H100, [false, true, false, false]),
        (DeviceModel::GH200, [false, true, true, true]),
        (DeviceModel::GB10, [true, true, true, false]),
    ] {
        on_simulator(config(model, Platform::Linux), |test, _| {
            let attributes = [
                DeviceAttribute::INTEGRATED,
                DeviceAttribute::CONCURRENT_MANAGED_ACCESS,
                DeviceAttribute::PAGEABLE_MEMORY_ACCESS,
                DeviceAttribute::HOST_NATIVE_ATOMIC_SUPPORTED,
            ]
            .map(|attribute| has(test, attribute));
            let [integrated, concurrent, pageable, atomic] = expected;
            assert_eq!(
                attributes,
                [
                    integrated,
                    concurrent,
                    pageable && cfg!(target_os = "linux"),
                    atomic
                ],
                "{model:?}"
            );
        });
    }
}

/// A kernel uses pageable memory where the device has access to it.
#[test]
fn kernel_uses_pageable_memory() -> TestResult {
    for model in [DeviceModel::H100, DeviceModel::GH200, DeviceModel::GB10] {
        on_simulator(
            config(model, Platform::Linux),
            |test, simulator| -> TestResult {
                let fill = fill(test)?;
                let stream = test.stream();
                let mut host = vec![0_u32; 1000];
                let address = host.as_mut_ptr().expose_provenance() as u64;
                let arguments = (DevicePointer::from_raw(address), 7, 1000);
                // SAFETY: the memory is live and not used by the host until the stream has been
                // waited for.
                unsafe { fill.launch(&stream, LaunchConfig::for_elements(1000), arguments) }?;
                let result = stream.synchronize();
                if has(test, DeviceAttribute::PAGEABLE_MEMORY_ACCESS) {
                    result?;
                    assert_eq!(host, [7; 1000], "{model:?}");
                } else {
                    let error = result.expect_err("the device has no such address");
                    assert_eq!(
                        error.code(),
                        Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
                        "{model:?}"
                    );
                    simulator.reset_errors();
                }
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// An address that the host lacks too is illegal with access to pageable memory.
#[simulator_test(config(DeviceModel::GH200, Platform::Linux))]
fn unmapped_host_address_is_illegal(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let arguments = (DevicePointer::from_raw(4096), 7, 1);
    // SAFETY: nothing is at this address, which the simulator notices.
    unsafe { fill.launch(&stream, LaunchConfig::for_elements(1), arguments) }?;
    let error = stream.synchronize().expect_err("nothing is there");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    simulator.reset_errors();
    Ok(())
}

/// Managed memory is used by turns without concurrent access.
#[test]
fn managed_memory_alternates() -> TestResult {
    for (model, platform) in BY_TURNS {
        on_simulator(config(model, platform), |test, _| -> TestResult {
            assert!(
                !has(test, DeviceAttribute::CONCURRENT_MANAGED_ACCESS),
                "{model:?} {platform:?}"
            );
            let stream = test.stream();
            let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 8)?;
            let error = buffer
                .host_view()
                .map(drop)
                .expect_err("the device may work");
            assert!(
                error.to_string().contains("no concurrent managed access"),
                "{error}"
            );
            buffer.host_view_mut()?.fill(3);
            let device = MemoryLocation::from(&test.device());
            let error = buffer
                .prefetch(&stream, .., device)
                .expect_err("the device does not support prefetches");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
            assert!(error.to_string().contains("omit the prefetch"), "{error}");
            assert_eq!(buffer.to_vec()?, [3; 8]);
            Ok(())
        })?;
    }
    Ok(())
}

/// The setting of concurrent access cannot exceed the platform and the model.
#[test]
fn concurrent_access_is_limited() {
    for (model, platform) in BY_TURNS {
        let config = config(model, platform).with_concurrent_managed_access(true);
        on_simulator(config, |test, _| {
            assert!(!has(test, DeviceAttribute::CONCURRENT_MANAGED_ACCESS));
        });
    }
}

/// Devices on Windows are not peers and the error has a hint.
#[test]
fn windows_devices_are_not_peers() -> TestResult {
    for platform in [Platform::Windows, Platform::Wsl] {
        on_simulator(
            config(DeviceModel::H100, platform).with_devices(2),
            |test, _| -> TestResult {
                let first = test.device();
                let second = test.driver().device(1)?;
                assert!(!first.can_access_peer(&second)?);
                assert!(!first.peer_link(&second)?.access);
                let peer = second.primary_context()?;
                let error = test
                    .context()
                    .enable_peer_access(&peer)
                    .expect_err("the devices are not peers");
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
                );
                assert!(
                    error.to_string().contains("Device::can_access_peer"),
                    "{error}"
                );
                let pool = MemoryPool::new(&first)?;
                let error = pool
                    .set_access(&second, MemoryAccess::ReadWrite)
                    .expect_err("the devices are not peers");
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
                    "{error}"
                );
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Time limit of kernels is one of Windows and its error advises.
#[test]
fn time_limit_error_has_a_hint() {
    for (platform, limited) in [
        (Platform::Linux, false),
        (Platform::Windows, true),
        (Platform::Wsl, true),
    ] {
        on_simulator(config(DeviceModel::H100, platform), |test, simulator| {
            assert_eq!(
                has(test, DeviceAttribute::KERNEL_EXEC_TIMEOUT),
                limited,
                "{platform:?}"
            );
            let stream = test.stream();
            let fault = Fault::on(Function::cuStreamSynchronize);
            simulator.inject(fault.returns(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT));
            let error = stream.synchronize().expect_err("the fault is returned");
            assert!(error.to_string().contains("split the work"), "{error}");
        });
    }
}

/// File descriptors of memory exist if the attribute is set.
#[test]
fn file_descriptors_are_supported() -> TestResult {
    for platform in [Platform::Linux, Platform::Windows, Platform::Wsl] {
        on_simulator(
            config(DeviceModel::H100, platform),
            |test, _| -> TestResult {
                let can = has(
                    test,
                    DeviceAttribute::HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                );
                assert_eq!(
                    can,
                    platform == Platform::Linux && cfg!(target_os = "linux"),
                    "{platform:?}"
                );
                let types = MemoryHandleTypes::POSIX_FILE_DESCRIPTOR;
                let plain = PhysicalOptions::new(&test.device());
                let bytes = plain.granularity(test.driver(), Granularity::Minimum)?;
                let memory = PhysicalMemory::with_options(
                    test.driver(),
                    bytes,
                    &plain.with_handle_types(types),
                );
                let pool = MemoryPool::with_options(
                    test.driver(),
                    &PoolOptions::new(&test.device()).with_handle_types(types),
                );
                for error in [memory.map(drop), pool.map(drop)] {
                    let code = error.err().and_then(|error| error.code());
                    assert_eq!(
                        code,
                        (!can).then_some(CUresult::CUDA_ERROR_NOT_SUPPORTED),
                        "{platform:?}"
                    );
                }
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Buffers of each kind work on every model and platform.
#[test]
fn buffers_work_on_every_model() -> TestResult {
    for model in MODELS {
        for platform in [Platform::Linux, Platform::Windows, Platform::Wsl] {
            on_simulator(config(model, platform), |test, _| -> TestResult {
                assert!(
                    has(test, DeviceAttribute::MEMORY_POOLS_SUPPORTED),
                    "{model:?} {platform:?}"
                );
                let context = test.context();
                let stream = test.stream();
                let pinned =
                    PinnedBuffer::from_slice(&context, &[1_u32, 2, 3], PinnedFlags::empty())?;
                let buffer = DeviceBuffer::from_slice(&stream, &pinned)?;
                assert_eq!(buffer.to_vec()?, [1, 2, 3]);
                let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 3)?;
                let mut unified = UnifiedBuffer::<u32>::zeroed(&stream, 3)?;
                unified.fill(5)?;
                assert_eq!(unified.host_view_mut()?[..], [5; 3]);
                mapped.host_view_mut()?.fill(6);
                assert_eq!(mapped.host_view()?[..], [6; 3]);
                Ok(())
            })?;
        }
    }
    Ok(())
}
