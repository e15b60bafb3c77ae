use curium_driver::{Result, Stream};
use curium_kernel::U32x4;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_test_kernels::Kernels;

use super::{integers, noise};
use crate::common::on_device;

/// Sorts by the digits of `shifts`.
fn sort(kernels: &Kernels, stream: &Stream, keys: &[u32], shifts: &[u32]) -> Result<Vec<u32>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let parts = keys.len().div_ceil(4096);
    let grid = Blocks::new(parts as u32);
    let mut from = DeviceBuffer::from_slice(stream, keys)?;
    let mut to = DeviceBuffer::uninit(stream, keys.len())?;
    for shift in shifts {
        let mut counts = DeviceBuffer::uninit(stream, 256 * parts)?;
        kernels
            .radix_count
            .launch(stream, grid, &from, *shift, &mut counts)?;
        let counts: Vec<U32x4> = counts
            .to_vec()?
            .chunks(4)
            .map(|c| U32x4::new(c[0], c[1], c[2], c[3]))
            .collect();
        let counts = DeviceBuffer::from_slice(stream, &counts)?;
        let count_parts = counts.len().div_ceil(1024);
        let mut states = DeviceBuffer::zeroed(stream, count_parts)?;
        let mut positions = DeviceBuffer::uninit(stream, counts.len())?;
        kernels.prefix_sum.launch(
            stream,
            Blocks::new(count_parts as u32),
            &counts,
            &mut states,
            &mut positions,
        )?;
        let positions: Vec<u32> = positions
            .to_vec()?
            .into_iter()
            .flat_map(|p| [p.x, p.y, p.z, p.w])
            .collect();
        let positions = DeviceBuffer::from_slice(stream, &positions)?;
        kernels
            .radix_scatter
            .launch(stream, grid, &from, *shift, &positions, &mut to)?;
        std::mem::swap(&mut from, &mut to);
    }
    from.to_vec()
}

#[test]
fn radix_sort() -> Result<()> {
    on_device(|kernels, stream| {
        for len in [0, 1, 255, 4095, 4096, 4097, 9000] {
            let mut keys = integers(len, 17);
            let sorted = sort(kernels, stream, &keys, &[0, 8, 16, 24])?;
            keys.sort_unstable();
            assert_eq!(sorted, keys);
        }
        Ok(())
    })
}

/// A pass leaves keys with the same digit in their order. Few digits, so that many keys are ranked
/// behind others.
#[test]
fn a_pass_is_stable() -> Result<()> {
    let keys: Vec<u32> = integers(5000, 18)
        .into_iter()
        .enumerate()
        .map(|(i, key)| ((i as u32) << 8) | (key % 3))
        .collect();
    let mut expected = keys.clone();
    expected.sort_by_key(|key| key % 256);
    on_device(|kernels, stream| {
        assert_eq!(sort(kernels, stream, &keys, &[0])?, expected);
        Ok(())
    })
}

/// Rows with equal numbers, ascending rows (every number is selected first), and rows with fewer
/// than 32 numbers.
#[test]
fn top_k() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns) in [(1, 1), (3, 31), (2, 32), (9, 33), (9, 500)] {
            let mut x = noise(rows * columns, 19);
            for (row, x) in x.chunks_mut(columns).enumerate() {
                for (column, x) in x.iter_mut().enumerate() {
                    match row {
                        1 => *x = (*x * 10.0).round(),
                        2 => *x = column as f32 - 100.0,
                        _ => {}
                    }
                }
            }
            let device_x = DeviceBuffer::from_slice(stream, &x)?;
            let mut values = DeviceBuffer::uninit(stream, 32 * rows)?;
            let mut indices = DeviceBuffer::uninit(stream, 32 * rows)?;
            kernels.top_k.launch(
                stream,
                Blocks::new(rows.div_ceil(8) as u32),
                RowMajor::new(&device_x, rows, columns),
                &mut values,
                &mut indices,
            )?;
            let values = values.to_vec()?;
            let indices = indices.to_vec()?;
            for (row, x) in x.chunks(columns).enumerate() {
                let mut order: Vec<usize> = (0..columns).collect();
                order.sort_by(|a, b| x[*b].total_cmp(&x[*a]).then(a.cmp(b)));
                for k in 0..32 {
                    let (value, index) = match order.get(k) {
                        Some(index) => (x[*index], *index as u32),
                        None => (f32::NEG_INFINITY, u32::MAX),
                    };
                    assert_eq!(
                        values[32 * row + k],
                        value,
                        "row {row} of {rows} × {columns}"
                    );
                    assert_eq!(indices[32 * row + k], index);
                }
            }
        }
        Ok(())
    })
}
