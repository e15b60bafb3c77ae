//! Copies by TMA and barriers in shared memory.

use curium_driver::{Device, Result};
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_test_kernels_hopper::Kernels;

use super::on_device;

#[test]
fn transpose_by_boxes() -> Result<()> {
    let (rows, columns) = (40, 72);
    let x: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::zeroed(stream, x.len())?;
        kernels.transpose.launch(
            stream,
            Blocks::new((2, 3)),
            RowMajor::new(&device_x, rows, columns),
            RowMajor::new(&mut y, columns, rows),
        )?;
        let y = y.to_vec()?;
        for row in 0..rows {
            for column in 0..columns {
                assert_eq!(y[column * rows + row], x[row * columns + column]);
            }
        }
        Ok(())
    })
}

/// Boxes begin before the first row and column, and end beyond the last.
#[test]
fn stencil_with_a_halo() -> Result<()> {
    let (rows, columns) = (37_usize, 44_usize);
    let x: Vec<f32> = (0..rows * columns).map(|i| (i * 7 % 32) as f32).collect();
    let element = |row: usize, column: usize| {
        // The indices are one more than those of the element.
        if (1..=rows).contains(&row) && (1..=columns).contains(&column) {
            x[(row - 1) * columns + column - 1]
        } else {
            0.0
        }
    };
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, x.len())?;
        kernels.blur.launch(
            stream,
            Blocks::new((2, 3)),
            RowMajor::new(&device_x, rows, columns),
            RowMajor::new(&mut y, rows, columns),
        )?;
        for (index, y) in y.to_vec()?.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let sum: f32 = (0..9).map(|i| element(row + i / 3, column + i % 3)).sum();
            assert_eq!(*y, sum / 9.0, "{row}, {column}");
        }
        Ok(())
    })
}

/// Fewer, as many and more steps than stages, and a second use of the ring.
#[test]
fn ring_of_tiles() -> Result<()> {
    let (rows, columns) = (100, 92);
    let x: Vec<u32> = (0..rows * columns).map(|i| (i * i % 1001) as u32).collect();
    let sums: Vec<u32> = x.chunks(columns).map(|row| row.iter().sum()).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        for (stages, rounds) in [(2, 1), (3, 2), (6, 2), (8, 3)] {
            let mut y = DeviceBuffer::uninit(stream, rows)?;
            kernels.row_sums.launch(
                stream,
                Blocks::new(2),
                stages,
                RowMajor::new(&device_x, rows, columns),
                rounds,
                &mut y,
            )?;
            let expected: Vec<u32> = sums.iter().map(|sum| sum * rounds).collect();
            assert_eq!(y.to_vec()?, expected, "{stages} stages");
        }
        Ok(())
    })
}

#[test]
fn elements_of_swizzled_tiles() -> Result<()> {
    let a: Vec<u16> = (0..64 * 128).collect();
    let b: Vec<u16> = (0..64 * 128).map(|i| i * 3 % 1000).collect();
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut y = DeviceBuffer::uninit(stream, a.len())?;
        kernels.add_swizzled.launch(
            stream,
            Blocks::new((2, 2)),
            2,
            RowMajor::new(&device_a, 64, 128),
            RowMajor::new(&device_b, 64, 128),
            RowMajor::new(&mut y, 64, 128),
        )?;
        let expected: Vec<u16> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn work_before_the_wait() -> Result<()> {
    let x: Vec<u32> = (0..128).map(|i| i * 37 % 101).collect();
    let mut expected = x.clone();
    for _ in 0..5 {
        let previous = expected.clone();
        for (i, own) in expected.iter_mut().enumerate() {
            let next = i / 64 * 64 + (i + 2) % 64;
            *own = previous[next] + previous[i].count_ones();
        }
    }
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, x.len())?;
        kernels
            .split_barrier
            .launch(stream, Blocks::new(2), &device_x, 5, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

/// Errors name the kernel, the parameter and the problem.
#[test]
fn wrong_tensors_are_errors() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::<u32>::zeroed(&stream, 60)?;
        let mut y = DeviceBuffer::<u32>::zeroed(&stream, 6)?;
        let cases = [
            (2, RowMajor::new(&x, 6, 10), ["row_sums", "`x`", "40 bytes"]),
            (
                2,
                RowMajor::new(&x, 7, 8),
                ["row_sums", "`x`", "60 elements"],
            ),
            (
                1,
                RowMajor::new(&x, 5, 12),
                ["row_sums", "`ring`", "at least two"],
            ),
            (
                1000,
                RowMajor::new(&x, 5, 12),
                ["row_sums", "shared memory", "bytes"],
            ),
        ];
        for (stages, x, parts) in cases {
            let launch = kernels
                .row_sums
                .launch(&stream, Blocks::new(1), stages, x, 1, &mut y);
            let text = match launch {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            };
            for part in parts {
                assert!(text.contains(part), "{text} without {part}");
            }
        }
        Ok(())
    })
}
