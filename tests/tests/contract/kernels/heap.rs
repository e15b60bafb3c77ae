//! Allocations of kernels from the device heap.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{buffer, launch, values};

/// Memory of the device heap outlives the kernel that took it.
#[driver_test]
fn device_heap_memory_outlives_its_kernel(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut rows = DeviceBuffer::<u64>::zeroed(&stream, 100)?;
    let mut sums = DeviceBuffer::<u32>::zeroed(&stream, 100)?;
    let config = LaunchConfig::new(2, 64);
    launch!(test, &stream, HEAP::"heap_keep", (&mut [u64], u32), config, (&mut rows, 100));
    let addresses = values(&rows);
    assert!(
        addresses
            .iter()
            .all(|address| *address != 0 && address % 16 == 0),
        "{addresses:x?}"
    );
    launch!(test, &stream, HEAP::"heap_read", (&[u64], &mut [u32], u32), config, (&rows, &mut sums, 100));
    let sum = |index: u32| index * (index * (index + 1) / 2);
    assert_eq!(values(&sums), (0..100).map(sum).collect::<Vec<_>>());
    launch!(test, &stream, HEAP::"heap_free", (&mut [u64], u32), config, (&mut rows, 100));
    assert_eq!(values(&rows), [0; 100]);
    Ok(())
}

#[driver_test]
fn device_heap_gives_no_more_than_it_has(test: &TestDriver) {
    let stream = test.stream();
    let mut got = buffer(&stream, &[7_u32; 2]);
    launch!(test, &stream, HEAP::"heap_limit", (u64, &mut [u32]), LaunchConfig::new(1, 1), (1 << 40, &mut got));
    assert_eq!(values(&got), [0, 1]);
}
