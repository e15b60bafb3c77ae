//! External memory, external semaphores and multicast objects: errors for invalid arguments and
//! missing support. The tests require no graphics library.

#[cfg(unix)]
mod image;
#[cfg(target_os = "linux")]
mod memory;
mod multicast;
#[cfg(unix)]
mod semaphore;

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use curium_driver::Error;
#[cfg(target_os = "linux")]
use curium_driver::{DeviceAttribute, DevicePointer};
#[cfg(unix)]
use curium_driver::{Driver, Function};
#[cfg(unix)]
use curium_interop::external::{
    ExternalMemory, ExternalMemoryKind, ExternalSemaphore, ExternalSemaphoreKind,
};
use curium_memory::multicast::{MulticastObject, MulticastOptions};
#[cfg(target_os = "linux")]
use curium_memory::{Resource, SyncAlloc, export_dma_buf};
#[cfg(unix)]
use curium_sim::{Config, Simulator};
#[cfg(unix)]
use curium_sys::CUresult;
#[cfg(target_os = "linux")]
use curium_tests::on_incomplete_simulator;
#[cfg(unix)]
use curium_tests::uses_cuda;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, skip};

#[cfg(unix)]
const UNSUPPORTED: Option<CUresult> = Some(CUresult::CUDA_ERROR_NOT_SUPPORTED);

#[cfg(unix)]
fn descriptor() -> TestResult<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

#[driver_test]
fn nothing_is_imported_or_bound_without_bytes(test: &TestDriver) -> TestResult {
    #[cfg(unix)]
    {
        let imported = ExternalMemory::import_fd(
            &test.context(),
            descriptor()?,
            ExternalMemoryKind::Opaque,
            0,
            false,
        );
        let error = imported.expect_err("no bytes");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    for options in [
        MulticastOptions::new(0, 1 << 21),
        MulticastOptions::new(2, 0),
    ] {
        let error = MulticastObject::new(test.driver(), &options).expect_err("nothing to bind");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("of {} devices", options.devices)),
            "{error}"
        );
    }
    Ok(())
}

/// Operations for other hardware are not supported on the simulator.
#[cfg(unix)]
#[test]
fn unsupported_operations_fail() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let memory = ExternalMemory::import_fd(
        &context,
        descriptor()?,
        ExternalMemoryKind::Opaque,
        4096,
        true,
    );
    let semaphore =
        ExternalSemaphore::import_fd(&context, descriptor()?, ExternalSemaphoreKind::Timeline);
    let multicast = MulticastObject::new(&driver, &MulticastOptions::new(2, 2 << 20));
    for (error, function) in [
        (
            memory.expect_err("there is no other interface"),
            Function::cuImportExternalMemory,
        ),
        (
            semaphore.expect_err("there is no other interface"),
            Function::cuImportExternalSemaphore,
        ),
        (
            multicast.expect_err("there is no switch"),
            Function::cuMulticastCreate,
        ),
    ] {
        assert_eq!(
            (error.code(), error.function()),
            (UNSUPPORTED, Some(function)),
            "{error}"
        );
    }
    assert_eq!(simulator.unsupported_calls().len(), 3);
    Ok(())
}

/// A device memory is exported for other devices if the device supports it.
#[cfg(target_os = "linux")]
#[test]
fn device_memory_is_exported() -> TestResult {
    fn check(test: &TestDriver) -> TestResult {
        let stream = test.stream();
        let bytes = 2 << 20;
        let error = export_dma_buf(&test.context(), DevicePointer::<u8>::from_raw(0), 0)
            .expect_err("no bytes");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let pointer = SyncAlloc.allocate(&stream, bytes, 256)?;
        let exported = export_dma_buf(&test.context(), pointer, bytes);
        let attribute = DeviceAttribute::DMA_BUF_SUPPORTED;
        let can = test.device().attribute(attribute)?;
        match exported {
            Ok(descriptor) => assert!(can && std::os::fd::AsRawFd::as_raw_fd(&descriptor) >= 0),
            Err(error) => {
                assert!(
                    !can || test.simulator().is_some() && error.code() == UNSUPPORTED,
                    "{error}"
                );
                assert!(
                    error
                        .to_string()
                        .contains(&format!("{bytes} bytes at {pointer:?}")),
                    "{error}"
                );
            }
        }
        // SAFETY: the memory was allocated from this resource with this size and alignment, and is
        // not in use.
        unsafe { SyncAlloc.deallocate(&stream, pointer, bytes, 256) }?;
        Ok(())
    }

    if uses_cuda() {
        on_driver(check)
    } else {
        on_incomplete_simulator(Config::new(), check)
    }
}

pub(crate) mod operations {
    #[cfg(unix)]
    use std::fs::File;
    #[cfg(unix)]
    use std::os::fd::OwnedFd;

    #[cfg(unix)]
    use curium_interop::external::{
        ExternalMemory, ExternalMemoryKind, ExternalSemaphore, ExternalSemaphoreKind,
    };
    #[cfg(target_os = "linux")]
    use curium_memory::export_dma_buf;
    use curium_memory::multicast::{MulticastObject, MulticastOptions};
    use curium_memory::virtual_memory::Granularity;

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[
        #[cfg(unix)]
        ("ExternalMemory::import_fd", |fixture| {
            made(ExternalMemory::import_fd(
                &fixture.context,
                descriptor(),
                ExternalMemoryKind::Opaque,
                4096,
                false,
            )?)
        }),
        #[cfg(unix)]
        ("ExternalSemaphore::import_fd", |fixture| {
            made(ExternalSemaphore::import_fd(
                &fixture.context,
                descriptor(),
                ExternalSemaphoreKind::Timeline,
            )?)
        }),
        ("MulticastOptions::granularity", |fixture| {
            made(multicast().granularity(&fixture.driver, Granularity::Minimum)?)
        }),
        ("MulticastObject::new", |fixture| {
            made(MulticastObject::new(&fixture.driver, &multicast())?)
        }),
        #[cfg(target_os = "linux")]
        ("dma_buf::export_dma_buf", |fixture| {
            made(export_dma_buf(
                &fixture.context,
                fixture.buffer.as_pointer(),
                fixture.buffer.byte_len(),
            )?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Solitary(SOLITARY) }

    /// Returns a file descriptor that is not device memory.
    #[cfg(unix)]
    fn descriptor() -> OwnedFd {
        File::open("/dev/null").expect("the system has it").into()
    }

    fn multicast() -> MulticastOptions {
        MulticastOptions::new(2, 2 << 20)
    }
}
