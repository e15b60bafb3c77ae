//! Occupancy of kernels.
#![cfg(not(miri))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{
    Kernel, LaunchAttributes, LaunchConfig, Library, Module, OccupancyFlags, Untyped,
};
use curium_memory::DeviceBuffer;
use curium_sys::CUdevice_attribute;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, skip};

fn fills(test: &TestDriver) -> TestResult<[Kernel<Untyped>; 2]> {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    Ok([
        library.untyped_kernel("fill"),
        module.untyped_kernel("fill"),
    ]
    .map(|kernel| kernel.expect("the code has it")))
}

/// Active blocks shrink with the block and its shared memory.
#[driver_test]
fn occupancy_shrinks_with_block_and_shared_memory(test: &TestDriver) -> TestResult {
    let context = test.context();
    for fill in fills(test)? {
        let blocks = |block, shared| -> TestResult<_> {
            Ok(fill.max_active_blocks(&context, block, shared)?)
        };
        assert!(blocks(32, 0)? > blocks(1024, 0)?);
        assert!(blocks(1024, 0)? >= 1);
        assert!(blocks(128, 48 * 1024)? < blocks(128, 0)?);
        let flags = OccupancyFlags::DISABLE_CACHING_OVERRIDE;
        let with_flags = fill.max_active_blocks_with_flags(&context, 128, 0, flags);
        assert_eq!(with_flags?, blocks(128, 0)?);
        let available = fill.available_dynamic_shared_bytes(&context, 2, 128)?;
        assert!(blocks(128, available)? >= 2, "{available}");
    }
    Ok(())
}

#[driver_test]
fn suggested_size_fills_the_device(test: &TestDriver) -> TestResult {
    let context = test.context();
    let device = test.device();
    let multiprocessors =
        device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let multiprocessors = multiprocessors? as u32;
    for fill in fills(test)? {
        let size = fill.suggested_size(&context, 0, 0)?;
        assert!(
            size.min_grid >= multiprocessors && size.min_grid % multiprocessors == 0,
            "{size:?}"
        );
        assert!((32..=1024).contains(&size.block), "{size:?}");
        let limited = fill.suggested_size(&context, 0, 64)?;
        assert!(limited.block <= 64, "{limited:?}");
    }
    Ok(())
}

/// Shared memory of a suggested size may depend on the block.
#[driver_test]
fn suggested_shared_memory_may_depend_on_block(test: &TestDriver) -> TestResult {
    let context = test.context();
    for fill in fills(test)? {
        // With 256 bytes per thread, 192 threads are the maximum within 48 KiB.
        let size = fill.suggested_size_with(
            &context,
            |block| block as usize * 256,
            0,
            OccupancyFlags::empty(),
        )?;
        assert!((32..=192).contains(&size.block), "{size:?}");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            fill.suggested_size_with(
                &context,
                |_| std::panic::panic_any("this panic is part of the test"),
                0,
                OccupancyFlags::empty(),
            )
        }));
        assert!(outcome.is_err(), "the panic propagates");
    }
    Ok(())
}

#[driver_test]
fn suggested_configuration_covers_every_element(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let config = fill.suggested_config(stream.context(), 3000)?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 3000)?;
    // SAFETY: `fill` writes the first 3000 words, which the buffer has.
    unsafe { fill.launch(&stream, config, (&mut buffer, 5, 3000)) }?;
    assert_eq!(buffer.to_vec()?, [5; 3000]);
    Ok(())
}

#[driver_test]
fn launch_clusters_are_counted(test: &TestDriver) -> TestResult {
    let context = test.context();
    if test.device().compute_capability()?.major < 9 {
        return skip("needs compute capability 9.0");
    }
    for fill in fills(test)? {
        let config = LaunchConfig::new(64, 128);
        let attributes = LaunchAttributes::new().with_cluster(2);
        let largest = fill.max_cluster_size(&context, config, &LaunchAttributes::new());
        assert!(largest? >= 2);
        assert!(fill.active_clusters(&context, config, &attributes)? > 0);
        let attributes = LaunchAttributes::new().with_cluster(64);
        fill.active_clusters(&context, config, &attributes)
            .expect_err("no device has such clusters");
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig, OccupancyFlags};

    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::max_active_blocks", |fixture| {
            made(fixture.fill.max_active_blocks(&fixture.context, 128, 0)?)
        }),
        ("Kernel::max_active_blocks_with_flags", |fixture| {
            let flags = OccupancyFlags::empty();
            made(
                fixture
                    .fill
                    .max_active_blocks_with_flags(&fixture.context, 128, 0, flags)?,
            )
        }),
        ("Kernel::available_dynamic_shared_bytes", |fixture| {
            made(
                fixture
                    .fill
                    .available_dynamic_shared_bytes(&fixture.context, 1, 128)?,
            )
        }),
        ("Kernel::suggested_size", |fixture| {
            made(fixture.fill.suggested_size(&fixture.context, 0, 0)?)
        }),
        ("Kernel::suggested_size_with", |fixture| {
            let flags = OccupancyFlags::empty();
            made(
                fixture
                    .fill
                    .suggested_size_with(&fixture.context, |_| 0, 0, flags)?,
            )
        }),
        ("Kernel::max_cluster_size", |fixture| {
            let config = LaunchConfig::new(8, 32);
            let attributes = LaunchAttributes::new();
            made(
                fixture
                    .fill
                    .max_cluster_size(&fixture.context, config, &attributes)?,
            )
        }),
        ("Kernel::active_clusters", |fixture| {
            let config = LaunchConfig::new(8, 32);
            let attributes = LaunchAttributes::new().with_cluster(2);
            made(
                fixture
                    .fill
                    .active_clusters(&fixture.context, config, &attributes)?,
            )
        }),
        ("Kernel::suggested_config", |fixture| {
            made(fixture.fill.suggested_config(&fixture.context, LEN)?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Common(OPERATIONS) }
}
