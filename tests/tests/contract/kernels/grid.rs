//! Stencils and matrices, bit for bit: no contraction, and sums in the order of the CPU.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{bits, buffer, floats, integers, launch, values};

#[driver_test]
fn transposed_matrix_equals_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for (width, height) in [(1, 1), (32, 32), (33, 31), (100, 70)] {
        let input = floats(1, width * height);
        let source = buffer(&stream, &input);
        let mut target = DeviceBuffer::<f32>::zeroed(&stream, width * height)?;
        let config = LaunchConfig::new(
            (width.div_ceil(32) as u32, height.div_ceil(32) as u32),
            (32, 8),
        );
        launch!(test, &stream, GRID::"transpose", (&[f32], &mut [f32], u32, u32), config,
                (&source, &mut target, width as u32, height as u32));
        let expected: Vec<f32> = (0..width * height)
            .map(|index| input[index % height * width + index / height])
            .collect();
        assert_eq!(values(&target), expected, "{width}×{height}");
    }
    Ok(())
}

#[test]
fn blur_repeats_the_border() -> TestResult {
    let weights = [
        0.0625_f32, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625,
    ];
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let width = 37_i32;
        let height = 21_i32;
        let input = floats(2, (width * height) as usize);
        let source = buffer(&stream, &input);
        let mut target = DeviceBuffer::<f32>::zeroed(&stream, input.len())?;
        launch!(test, &stream, GRID::"blur", (&[f32], &mut [f32], i32, i32), LaunchConfig::new((3, 3), (16, 8)),
            (&source, &mut target, width, height));
        let pixel = |at: i32| {
            let x = at % width;
            let y = at / width;
            (0..9).fold(0.0_f32, |sum, weight| {
                let from_x = (x + weight % 3 - 1).clamp(0, width - 1);
                let from_y = (y + weight / 3 - 1).clamp(0, height - 1);
                sum + weights[weight as usize] * input[(from_y * width + from_x) as usize]
            })
        };
        let expected: Vec<f32> = (0..width * height).map(pixel).collect();
        assert_eq!(bits(&values(&target)), bits(&expected));
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn heat_spreads_as_on_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut now: Vec<f64> = floats(3, 300).into_iter().map(f64::from).collect();
    let mut before = buffer(&stream, &now);
    let mut after = DeviceBuffer::<f64>::zeroed(&stream, 300)?;
    for _ in 0..10 {
        launch!(test, &stream, GRID::"heat", (&[f64], &mut [f64], u32, f64), LaunchConfig::for_elements(300),
                (&before, &mut after, 300, 0.2));
        std::mem::swap(&mut before, &mut after);
        let change = |index: usize| {
            let inside = index > 0 && index < 299;
            if inside {
                now[index - 1] - 2.0 * now[index] + now[index + 1]
            } else {
                0.0
            }
        };
        now = (0..300)
            .map(|index| now[index] + 0.2 * change(index))
            .collect();
    }
    assert_eq!(values(&before), now);
    Ok(())
}

#[driver_test]
fn life_goes_on_as_on_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let width = 50_usize;
    let height = 30_usize;
    let mut now: Vec<u8> = integers(4, width * height)
        .into_iter()
        .map(|value| u8::from(value % 3 == 0))
        .collect();
    let mut before = buffer(&stream, &now);
    let mut after = DeviceBuffer::<u8>::zeroed(&stream, now.len())?;
    for _ in 0..5 {
        launch!(test, &stream, GRID::"life", (&[u8], &mut [u8], u32, u32), LaunchConfig::new((4, 4), (16, 8)),
                (&before, &mut after, width as u32, height as u32));
        std::mem::swap(&mut before, &mut after);
        let cell = |at: usize| {
            let around = (0..9).filter(|neighbor| *neighbor != 4).map(|neighbor| {
                let x = at % width + neighbor % 3 + width - 1;
                let y = at / width + neighbor / 3 + height - 1;
                now[y % height * width + x % width]
            });
            let around: u8 = around.sum();
            u8::from(around == 3 || now[at] == 1 && around == 2)
        };
        now = (0..width * height).map(cell).collect();
    }
    assert_eq!(values(&before), now);
    assert!(now.contains(&1), "an object is live");
    Ok(())
}

/// A product of matrix and vector sums in the order of the lanes.
#[driver_test]
fn matrix_vector_product_sums_in_lane_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let rows = 10;
    let columns = 77;
    let matrix = floats(5, rows * columns);
    let vector = floats(6, columns);
    let a = buffer(&stream, &matrix);
    let b = buffer(&stream, &vector);
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, rows)?;
    launch!(test, &stream, GRID::"matrix_vector", (&[f32], &[f32], &mut [f32], u32, u32), LaunchConfig::new(3, 128),
            (&a, &b, &mut result, rows as u32, columns as u32));
    let row = |row: usize| {
        let lane = |lane: usize| {
            (lane..columns)
                .step_by(32)
                .fold(0.0, |sum, at| sum + matrix[row * columns + at] * vector[at])
        };
        let mut lanes: Vec<f32> = (0..32).map(lane).collect();
        for offset in [16, 8, 4, 2, 1] {
            lanes = (0..32)
                .map(|lane| lanes[lane] + lanes[lane ^ offset])
                .collect();
        }
        lanes[0]
    };
    assert_eq!(
        bits(&values(&result)),
        bits(&(0..rows).map(row).collect::<Vec<_>>())
    );
    Ok(())
}

#[driver_test]
fn bodies_attract_each_other_as_on_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let count = 150;
    let positions = floats(7, 4 * count);
    let source = buffer(&stream, &positions);
    let mut forces = DeviceBuffer::<f32>::zeroed(&stream, 4 * count)?;
    launch!(test, &stream, GRID::"bodies", (&[f32], &mut [f32], u32), LaunchConfig::new(3, 64),
            (&source, &mut forces, count as u32));
    let mut padded = positions.clone();
    padded.resize(4 * count.next_multiple_of(64), 0.0);
    let force = |at: usize| {
        let mine = &positions[4 * at..];
        let mut sum = [0.0_f32; 4];
        for other in padded.chunks(4) {
            let [x, y, z] = [other[0] - mine[0], other[1] - mine[1], other[2] - mine[2]];
            let square = x * x + y * y + z * z + 0.01;
            let scale = other[3] / (square * square.sqrt());
            sum = [
                sum[0] + x * scale,
                sum[1] + y * scale,
                sum[2] + z * scale,
                0.0,
            ];
        }
        sum
    };
    let expected: Vec<f32> = (0..count).flat_map(force).collect();
    assert_eq!(bits(&values(&forces)), bits(&expected));
    Ok(())
}
