use curium_driver::Result;
use curium_kernel::host::Blocks;

use super::{assert_close, download, noise, output, upload};
use crate::common::on_device;

/// Rows without elements, short rows, and rows with more elements than a warp has lanes.
#[test]
fn spmv() -> Result<()> {
    on_device(|kernels, stream| {
        for rows in [0, 1, 7, 8, 9, 50] {
            let width = 300;
            let mut random = fastrand::Rng::with_seed(5);
            let mut row_starts = vec![0_u32];
            let mut columns = Vec::new();
            for row in 0..rows {
                let count = [0, 1, 31, 32, 33, 100][row % 6];
                columns.extend((0..count).map(|_| random.u32(..width)));
                row_starts.push(columns.len() as u32);
            }
            let values = noise(columns.len(), 6);
            let x = noise(width as usize, 7);
            let device_starts = upload(stream, &row_starts)?;
            let device_columns = upload(stream, &columns)?;
            let device_values = upload(stream, &values)?;
            let device_x = upload(stream, &x)?;
            let mut y = output(stream, rows)?;
            kernels.spmv.launch(
                stream,
                Blocks::new(rows.div_ceil(8) as u32),
                device_starts.slice(..rows + 1)?,
                device_columns.slice(..columns.len())?,
                device_values.slice(..values.len())?,
                device_x.slice(..x.len())?,
                y.slice_mut(..rows)?,
            )?;
            let expected: Vec<f32> = row_starts
                .windows(2)
                .map(|bounds| {
                    (bounds[0] as usize..bounds[1] as usize)
                        .map(|i| values[i] * x[columns[i] as usize])
                        .sum()
                })
                .collect();
            assert_close(&download(&y, rows)?, &expected, 1e-5);
        }
        Ok(())
    })
}
