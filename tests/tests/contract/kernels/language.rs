//! Language features of CUDA C++.

use curium_driver::{Kernel, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_sys::CUdevice_attribute;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_driver};

use super::{buffer, integers, kernel, launch, values};

type BarrierKernel = Kernel<(&'static mut [u32], &'static mut [u32], &'static mut [u32])>;

#[test]
fn recursion_returns() -> TestResult {
    fn fibonacci(n: u32) -> u32 {
        if n < 2 {
            n
        } else {
            fibonacci(n - 1) + fibonacci(n - 2)
        }
    }
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 100)?;
        launch!(test, &stream, LANGUAGE::"recursion", (&mut [u32], u32), LaunchConfig::new(2, 64), (&mut output, 100));
        assert_eq!(
            values(&output),
            (0..100)
                .map(|index| fibonacci(index % 15))
                .collect::<Vec<_>>()
        );
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn each_thread_calls_the_function_that_it_picked(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input: Vec<i32> = (-50..50).collect();
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<i32>::zeroed(&stream, 100)?;
    launch!(test, &stream, LANGUAGE::"function_pointers", (&[i32], &mut [i32], u32), LaunchConfig::for_elements(100),
            (&source, &mut output, 100));
    let each = |(index, value): (usize, &i32)| [value + 7, value - 7, value * 7][index % 3];
    assert_eq!(
        values(&output),
        input.iter().enumerate().map(each).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn switch_takes_every_case() -> TestResult {
    let each = |value: u32| match value % 8 {
        0 => value + 1,
        1 => value.wrapping_mul(3) ^ 0x55,
        2 => value ^ 0x55,
        3 => !value,
        4 => value / 3,
        5 => value << 2,
        6 => value.wrapping_sub(100).wrapping_add(7),
        _ => value.wrapping_add(7),
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let input = integers(1, 300);
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 300)?;
        launch!(test, &stream, LANGUAGE::"many_cases", (&[u32], &mut [u32], u32), LaunchConfig::for_elements(300),
            (&source, &mut output, 300));
        assert_eq!(
            values(&output),
            input.into_iter().map(each).collect::<Vec<_>>()
        );
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn lists_on_the_device_heap_are_built_and_freed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, 100)?;
    for _ in 0..3 {
        launch!(test, &stream, LANGUAGE::"device_heap", (&mut [u32], u32), LaunchConfig::new(2, 64),
                (&mut output, 100));
        assert_eq!(
            values(&output),
            (0..100)
                .map(|index| index * (index + 1) / 2)
                .collect::<Vec<_>>()
        );
    }
    Ok(())
}

#[driver_test]
fn trees_are_walked_with_a_stack_per_thread(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let present: Vec<u8> = integers(2, 40 * 127)
        .into_iter()
        .map(|value| u8::from(value % 4 != 0))
        .collect();
    fn height(tree: &[u8], node: usize) -> u32 {
        if node >= tree.len() || tree[node] == 0 {
            return 0;
        }
        1 + height(tree, 2 * node + 1).max(height(tree, 2 * node + 2))
    }
    let source = buffer(&stream, &present);
    let mut heights = DeviceBuffer::<u32>::zeroed(&stream, 40)?;
    launch!(test, &stream, LANGUAGE::"tree_height", (&[u8], &mut [u32], u32, u32), LaunchConfig::for_elements(40),
            (&source, &mut heights, 127, 40));
    assert_eq!(
        values(&heights),
        present
            .chunks(127)
            .map(|tree| height(tree, 0))
            .collect::<Vec<_>>()
    );
    Ok(())
}

/// The last block to finish adds the results of all blocks.
#[driver_test]
fn last_block_adds_all_results(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input = integers(3, 10_000);
    let source = buffer(&stream, &input);
    let expected = input
        .iter()
        .fold(0_u32, |sum, value| sum.wrapping_add(*value));
    let kernel = kernel::<(&[u32], &mut [u32], u32)>(test, kernels::LANGUAGE, "last_block");
    for blocks in [1, 7, 64] {
        let mut result = buffer(&stream, &[0_u32]);
        // SAFETY: `last_block` reads 10,000 words, writes one, and has at most 64 blocks.
        unsafe {
            kernel.launch(
                &stream,
                LaunchConfig::new(blocks, 64),
                (&source, &mut result, 10_000),
            )
        }?;
        assert_eq!(values(&result), [expected], "{blocks} blocks");
    }
    Ok(())
}

#[driver_test]
fn lock_is_taken_by_every_thread_in_turn(test: &TestDriver) {
    let stream = test.stream();
    let mut lock = buffer(&stream, &[0_u32]);
    let mut counter = buffer(&stream, &[0_u32]);
    launch!(test, &stream, LANGUAGE::"spin_lock", (&mut [u32], &mut [u32]), LaunchConfig::new(5, 96),
            (&mut lock, &mut counter));
    assert_eq!((values(&lock), values(&counter)), (vec![0], vec![480]));
}

/// Runs the grid barrier with `blocks` blocks of 64 threads, and checks the value that each thread
/// reads after it.
fn assert_barrier_holds(test: &TestDriver, kernel: &BarrierKernel, blocks: u32) -> TestResult {
    let stream = test.stream();
    let config = LaunchConfig::new(blocks, 64);
    let threads = blocks * 64;
    let mut arrived = buffer(&stream, &[0_u32]);
    let mut written = DeviceBuffer::<u32>::zeroed(&stream, threads as usize)?;
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, threads as usize)?;
    let arguments = (&mut arrived, &mut written, &mut output);
    // SAFETY: the buffers have a word for each thread, and the launch is cooperative: all blocks
    // are resident.
    unsafe { kernel.launch_cooperative(&stream, config, arguments) }?;
    assert_eq!(
        values(&output),
        (0..threads)
            .map(|index| (index + 64) % threads * 3)
            .collect::<Vec<u32>>()
    );
    Ok(())
}

#[driver_test]
fn grid_barrier_holds_every_block_until_all_are_there(test: &TestDriver) -> TestResult {
    assert_barrier_holds(test, &kernel(test, kernels::LANGUAGE, "grid_barrier"), 8)?;
    Ok(())
}

/// A grid barrier holds as many blocks as the device takes at once.
#[driver_test]
fn grid_barrier_holds_all_resident_blocks(test: &TestDriver) -> TestResult {
    let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let multiprocessors = test.device().attribute(multiprocessors)?;
    let kernel: BarrierKernel = kernel(test, kernels::LANGUAGE, "grid_barrier");
    let each = kernel.max_active_blocks(&test.context(), 64, 0)?;
    assert_barrier_holds(test, &kernel, each * u32::try_from(multiprocessors)?)?;
    Ok(())
}
