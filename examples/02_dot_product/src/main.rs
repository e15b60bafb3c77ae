//! Reduction: the dot product of two vectors.
//!
//! Code of the block sees one value for all threads. What each thread computes stays in its
//! registers, until `block.sum` adds the values and gives the sum to all threads. The vector is 1,
//! 1/2, 1/3, …, so its product with itself approaches π²/6.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use curium::prelude::*;
use curium_kernel::host::Blocks;

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use curium_kernel::prelude::*;

    /// Adds the dot product of x and y to the total.
    #[kernel]
    pub fn dot(
        block: Block<256>,
        mut scratch: Scratch<f64>,
        x: &[f32],
        y: &[f32],
        total: &[Atomic<f64>],
    ) {
        // Neighboring threads read neighboring elements, and continue at a distance of all threads
        // of the grid.
        let own = block.threads(|t| {
            t.grid_stride(x.len())
                .map(|i| f64::from(x[i]) * f64::from(y[i]))
                .sum::<f64>()
        });
        let sum = block.sum(&own, &mut scratch);
        block.threads(|t| {
            if t.index_in_block() == 0 {
                total[0].fetch_add(t, sum, Relaxed);
            }
        });
    }
}
curium_kernel::include_kernels!("kernels");

fn dot(device: &Device, x: &[f32], y: &[f32]) -> curium::Result<f64> {
    let context = device.primary_context()?;
    let stream = context.stream()?;
    let kernels = Kernels::load(device)?;
    let x = DeviceBuffer::from_slice(&stream, x)?;
    let y = DeviceBuffer::from_slice(&stream, y)?;
    let mut total = DeviceBuffer::zeroed(&stream, 1)?;
    // As many blocks as the device runs at a time.
    let blocks = kernels.dot.suggested_blocks(&context, 0)?;
    kernels
        .dot
        .launch(&stream, Blocks::new(blocks), &x, &y, &mut total)?;
    Ok(total.to_vec()?[0])
}

/// Returns the sum of the first terms, which is that of the host.
fn run(device: &Device, len: u32) -> curium::Result<f64> {
    let x: Vec<f32> = (1..=len).map(|i| 1.0 / i as f32).collect();
    let product = dot(device, &x, &x)?;
    let expected: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
    assert!(
        (product - expected).abs() < 1e-9,
        "{product} is not {expected}"
    );
    println!("1 + 1/4 + 1/9 + … of {len} terms: {product:.7}");
    println!("π² / 6: {:.7}", std::f64::consts::PI.powi(2) / 6.0);
    Ok(product)
}

fn main() -> curium::Result<()> {
    run(&Device::first()?, 10_000_000)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_inverse_squares() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            let sum = run(&device, 5000)?;
            assert!((sum - 1.644_734_1).abs() < 1e-6, "{sum}");
            Ok(())
        })
    }

    /// The last block has no elements, and the vectors end within a block.
    #[test]
    fn vectors_of_any_length() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            for len in [1, 255, 257, 1000] {
                let x = vec![2.0; len];
                let y = vec![0.5; len];
                assert_eq!(dot(&device, &x, &y)?, len as f64);
            }
            Ok(())
        })
    }
}
