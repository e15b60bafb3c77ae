//! The test kernels: the results of the device are compared to those of the CPU.
#![cfg(not(miri))]

mod attention;
mod bfloat;
mod cluster;
mod fourier;
mod grid;
mod heap;
mod language;
mod network;
mod numbers;
mod order;
mod print;
mod products;
mod random;
mod sixteen_bits;
mod surface;
mod tensor;
mod texture;
mod warp;

use curium_driver::{Kernel, LaunchConfig, Library, Signature, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{Fused as _, TestDriver, TestResult, driver_test, kernels, on_driver};

fn kernel<S: Signature>(test: &TestDriver, ptx: &str, name: &str) -> Kernel<S> {
    let library = Library::from_ptx(test.driver(), ptx).expect("the PTX is valid");
    library.kernel(name).expect("the library has the kernel")
}

fn buffer<T: curium_memory::NoUninit>(stream: &Stream, values: &[T]) -> DeviceBuffer<T> {
    DeviceBuffer::from_slice(stream, values).expect("allocation failed")
}

fn values<T: curium_memory::AnyBitPattern>(buffer: &DeviceBuffer<T>) -> Vec<T> {
    buffer.to_vec().expect("read failed")
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Returns random numbers of both signs and many magnitudes.
fn floats(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(state) / f64::from(u32::MAX) - 0.5) as f32 * 200.0
    })
    .take(count)
    .collect()
}

/// Launches a kernel of a module with the given arguments.
macro_rules! launch {
    ($test:expr, $stream:expr, $ptx:ident :: $name:literal, $signature:ty, $config:expr, $arguments:expr) => {{
        let kernel = super::kernel::<$signature>($test, curium_tests::kernels::$ptx, $name);
        // SAFETY: the test passes buffers as long as the kernel's comment requires, and the counts
        // that the kernel compares its indices with.
        unsafe { kernel.launch($stream, $config, $arguments) }.expect("it launches");
    }};
}
use launch;

/// Returns random integers of all magnitudes.
fn integers(seed: u32, count: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state ^ state >> 15).wrapping_mul(0x2c1b_3c6d) ^ state >> 7
    })
    .take(count)
    .collect()
}

/// Asserts that two lists of numbers agree within a relative and an absolute error.
#[track_caller]
fn assert_near(found: &[f32], expected: &[f64], relative: f64, absolute: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let bound = expected.abs() * relative + absolute;
        assert!(
            (f64::from(*found) - expected).abs() <= bound,
            "{what} {at}: {found} {expected}"
        );
    }
}

/// Sizes around the ends of warps and blocks.
const COUNTS: [usize; 8] = [1, 31, 32, 33, 255, 256, 257, 5000];

#[driver_test]
fn saxpy_equals_a_fused_multiply_add_bit_for_bit(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let saxpy = kernel::<(f32, &[f32], &mut [f32], u32)>(test, kernels::SAXPY, "saxpy");
    for count in COUNTS {
        let left = floats(1, count);
        let right = floats(2, count);
        let x = buffer(&stream, &left);
        let mut y = buffer(&stream, &right);
        let config = LaunchConfig::for_elements(count);
        // SAFETY: `saxpy` guards its index with the length of both buffers.
        unsafe { saxpy.launch(&stream, config, (1.5, &x, &mut y, count as u32)) }?;
        let expected: Vec<_> = left
            .iter()
            .zip(&right)
            .map(|(x, y)| 1.5_f32.fused(*x, *y))
            .collect();
        assert_eq!(bits(&values(&y)), bits(&expected), "{count} elements");
        assert_eq!(values(&x), left, "the input is unchanged");
    }
    Ok(())
}

#[driver_test]
fn kernel_writes_no_element_past_its_count(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = kernel::<(&mut [u32], u32, u32)>(test, kernels::FILL, "fill");
    let mut target = buffer(&stream, &[1; 300]);
    // SAFETY: `fill` writes the first 257 words, which the buffer has.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(257),
            (&mut target, 2, 257),
        )
    }?;
    assert_eq!(values(&target), [[2; 257].as_slice(), &[1; 43]].concat());
    Ok(())
}

#[driver_test]
fn fill_index_gives_each_thread_its_own_index(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill_index = kernel::<(&mut [u32], u32)>(test, kernels::FILL, "fill_index");
    for block in [1, 7, 32, 100, 1024] {
        let mut target = buffer(&stream, &[u32::MAX; 5000]);
        let config = LaunchConfig::new(5000_u32.div_ceil(block), block);
        // SAFETY: `fill_index` guards its index with the length of the buffer.
        unsafe { fill_index.launch(&stream, config, (&mut target, 5000)) }?;
        assert_eq!(
            values(&target),
            (0..5000).collect::<Vec<u32>>(),
            "blocks of {block}"
        );
    }
    Ok(())
}

#[driver_test]
fn vector_add_equals_the_cpu_with_any_grid(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let vector_add =
        kernel::<(&[f32], &[f32], &mut [f32], u32)>(test, kernels::VECTOR_ADD, "vector_add");
    let left = floats(3, 3000);
    let right = floats(4, 3000);
    let expected: Vec<_> = left
        .iter()
        .zip(&right)
        .map(|(left, right)| left + right)
        .collect();
    let left = buffer(&stream, &left);
    let right = buffer(&stream, &right);
    for grid in [1, 5, 12, 40] {
        let mut sum = DeviceBuffer::zeroed(&stream, 3000)?;
        let config = LaunchConfig::new(grid, 96);
        // SAFETY: `vector_add` guards its index with the length of all buffers.
        unsafe { vector_add.launch(&stream, config, (&left, &right, &mut sum, 3000)) }?;
        assert_eq!(bits(&values(&sum)), bits(&expected), "{grid} blocks");
    }
    Ok(())
}

#[driver_test]
fn same_buffer_is_read_through_two_arguments(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let vector_add =
        kernel::<(&[f32], &[f32], &mut [f32], u32)>(test, kernels::VECTOR_ADD, "vector_add");
    let source = buffer(&stream, &[1.0, 2.0, 4.0]);
    let mut sum = DeviceBuffer::zeroed(&test.stream(), 3)?;
    // SAFETY: `vector_add` guards its index with the length of all buffers.
    unsafe {
        vector_add.launch(
            &test.stream(),
            LaunchConfig::new(1, 32),
            (&source, &source, &mut sum, 3),
        )
    }?;
    drop(source);
    assert_eq!(values(&sum), [2.0, 4.0, 8.0]);
    Ok(())
}

#[driver_test]
fn reductions_equal_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let sum = kernel::<(&[u32], &mut [u32], u32)>(test, kernels::REDUCE, "reduce_sum_u32");
    let maximum = kernel::<(&[i32], &mut [i32], u32)>(test, kernels::REDUCE, "reduce_max_i32");
    for count in COUNTS {
        let input: Vec<u32> = (0..count as u32)
            .map(|index| index.wrapping_mul(2_654_435_761))
            .collect();
        let signed: Vec<i32> = input
            .iter()
            .map(|value| value.cast_signed() | i32::MIN)
            .collect();
        let config = LaunchConfig::new(7, 128);
        let source = buffer(&stream, &input);
        let mut result = buffer(&stream, &[0]);
        // SAFETY: the kernel guards its index with the length of the input and writes one word.
        unsafe { sum.launch(&stream, config, (&source, &mut result, count as u32)) }?;
        assert_eq!(
            values(&result),
            [input
                .iter()
                .fold(0, |sum, value| u32::wrapping_add(sum, *value))]
        );
        let source = buffer(&stream, &signed);
        let mut result = buffer(&stream, &[i32::MIN]);
        // SAFETY: the kernel guards its index with the length of the input and writes one word.
        unsafe { maximum.launch(&stream, config, (&source, &mut result, count as u32)) }?;
        assert_eq!(
            values(&result),
            [signed.iter().copied().max().ok_or("no element")?]
        );
    }
    Ok(())
}

#[driver_test]
fn float_sum_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let sum = kernel::<(&[f32], &mut [f32], u32)>(test, kernels::REDUCE, "reduce_sum_f32");
    let input = floats(5, 5000);
    let source = buffer(&stream, &input);
    let mut result = buffer(&stream, &[0.0]);
    // SAFETY: the kernel guards its index with the length of the input and writes one word.
    unsafe {
        sum.launch(
            &stream,
            LaunchConfig::new(4, 256),
            (&source, &mut result, 5000),
        )
    }?;
    let expected: f64 = input.iter().copied().map(f64::from).sum();
    // The order of the atomic additions is unspecified: each may be off by half a unit in the last
    // place.
    let bound: f64 = input
        .iter()
        .map(|value| f64::from(value.abs()))
        .sum::<f64>()
        * f64::from(f32::EPSILON)
        * 16.0;
    let found = f64::from(values(&result)[0]);
    assert!((found - expected).abs() <= bound, "{found} {expected}");
    Ok(())
}

#[driver_test]
fn matmul_equals_the_cpu_bit_for_bit(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let matmul =
        kernel::<(&[f32], &[f32], &mut [f32], u32, u32, u32)>(test, kernels::MATMUL, "matmul");
    for (rows, depth, columns) in [(1, 1, 1), (16, 16, 16), (17, 5, 33), (40, 50, 30)] {
        let left = floats(6, rows * depth);
        let right = floats(7, depth * columns);
        let mut product = DeviceBuffer::zeroed(&stream, rows * columns)?;
        let grid = (columns.div_ceil(16) as u32, rows.div_ceil(16) as u32);
        let a = buffer(&stream, &left);
        let b = buffer(&stream, &right);
        let arguments = (
            &a,
            &b,
            &mut product,
            rows as u32,
            depth as u32,
            columns as u32,
        );
        // SAFETY: `matmul` guards its indices with the sizes, which are those of the buffers.
        unsafe { matmul.launch(&stream, LaunchConfig::new(grid, (16, 16)), arguments) }?;
        let element = |at: usize| {
            let row = at / columns;
            let column = at % columns;
            (0..depth).fold(0.0_f32, |sum, k| {
                left[row * depth + k].fused(right[k * columns + column], sum)
            })
        };
        let expected: Vec<_> = (0..rows * columns).map(element).collect();
        assert_eq!(
            bits(&values(&product)),
            bits(&expected),
            "{rows}×{depth}×{columns}"
        );
    }
    Ok(())
}

#[driver_test]
fn histogram_equals_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let histogram = kernel::<(&[u8], &mut [u32], u32)>(test, kernels::HISTOGRAM, "histogram");
    let data: Vec<u8> = (0..20_000_u32)
        .map(|index| (index * index / 7) as u8)
        .collect();
    let mut expected = [0_u32; 256];
    data.iter()
        .for_each(|byte| expected[usize::from(*byte)] += 1);
    let source = buffer(&stream, &data);
    for (grid, block) in [(1, 32), (8, 256), (3, 100)] {
        let mut bins = DeviceBuffer::zeroed(&stream, 256)?;
        let config = LaunchConfig::new(grid, block);
        // SAFETY: `histogram` guards its index with the length of the data and writes 256 words.
        unsafe { histogram.launch(&stream, config, (&source, &mut bins, 20_000)) }?;
        assert_eq!(values(&bins), expected, "{grid} blocks of {block}");
    }
    Ok(())
}

#[test]
fn mandelbrot_equals_the_cpu() -> TestResult {
    type Mandelbrot<'a> = (&'a mut [u32], u32, u32, f64, f64, f64, u32);
    let width = 40_u32;
    let height = 24_u32;
    let scale = 0.07_f64;
    let limit = 60_u32;
    let escape = |column: u32, row: u32| {
        let c_x = -0.5 + (f64::from(column) - 0.5 * f64::from(width)) * scale;
        let c_y = 0.0 - (f64::from(row) - 0.5 * f64::from(height)) * scale;
        let mut x = 0.0_f64;
        let mut y = 0.0_f64;
        let mut count = 0;
        while count < limit && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + c_x, 2.0 * (x * y) + c_y);
            count += 1;
        }
        count
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mandelbrot = kernel::<Mandelbrot>(test, kernels::MANDELBROT, "mandelbrot");
        let mut counts = DeviceBuffer::zeroed(&stream, (width * height) as usize)?;
        let config = LaunchConfig::new((width.div_ceil(16), height.div_ceil(8)), (16, 8));
        let arguments = (&mut counts, width, height, -0.5, 0.0, scale, limit);
        // SAFETY: `mandelbrot` guards its indices with the width and the height, whose product is
        // the buffer's length.
        unsafe { mandelbrot.launch(&stream, config, arguments) }?;
        let expected: Vec<_> = (0..width * height)
            .map(|index| escape(index % width, index / width))
            .collect();
        assert!(
            expected.contains(&limit) && expected.contains(&2),
            "the picture has an inside and an outside"
        );
        assert_eq!(values(&counts), expected);
        Ok(())
    })?;
    Ok(())
}

/// A kernel that writes is waited for by a kernel on another stream that reads.
#[driver_test]
fn reader_waits_for_a_writer_on_another_stream(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let fill_index = kernel::<(&mut [u32], u32)>(test, kernels::FILL, "fill_index");
    let sum = kernel::<(&[u32], &mut [u32], u32)>(test, kernels::REDUCE, "reduce_sum_u32");
    for _ in 0..5 {
        let mut data = buffer(&first, &[0; 4096]);
        let mut result = buffer(&second, &[0]);
        // SAFETY: `fill_index` guards its index with the length of the buffer.
        unsafe { fill_index.launch(&first, LaunchConfig::for_elements(4096), (&mut data, 4096)) }?;
        // SAFETY: the kernel guards its index with the length of the input and writes one word.
        unsafe {
            sum.launch(
                &second,
                LaunchConfig::new(4, 128),
                (&data, &mut result, 4096),
            )
        }?;
        drop(data);
        assert_eq!(values(&result), [4096 * 4095 / 2]);
    }
    Ok(())
}
