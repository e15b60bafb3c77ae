//! Stencil: two chemicals diffuse and react (the Gray-Scott model), and form a pattern like that of
//! a coral.
//!
//! A new value depends on the neighbors of the old one, so a step reads one buffer and writes
//! another. `Matrix` is a buffer that nobody writes during the launch, and `PerBlockTile` divides
//! the other among blocks, and each tile among the threads of its block. The launches are ordered
//! by the buffers that they use, and the host waits only for the picture.
//!
//! `cargo run --release -p curium-example-stencil` writes `pattern.pgm`, which image viewers show.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use curium::prelude::*;
use curium_kernel::F32x2;
use curium_kernel::host::{Blocks, RowMajor};

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use curium_kernel::prelude::*;

    /// How fast the first chemical is fed, and the second one removed.
    #[derive(Clone, Copy, ByValue)]
    #[repr(C)]
    pub struct Rates {
        pub feed: f32,
        pub kill: f32,
    }

    /// A step of the Gray-Scott model. Opposite edges are neighbors.
    #[kernel]
    pub fn step(
        block: Block<32, 8>,
        rates: Rates,
        now: Matrix<F32x2>,
        mut next: PerBlockTile<F32x2, 8, 32>,
    ) {
        next.for_each(&block, |position, next| {
            let (row, column) = (position.row, position.column);
            let above = if row == 0 { now.rows() } else { row } - 1;
            let below = if row + 1 == now.rows() { 0 } else { row + 1 };
            let left = if column == 0 { now.columns() } else { column } - 1;
            let right = if column + 1 == now.columns() {
                0
            } else {
                column + 1
            };

            let center = now[(row, column)];
            let sides =
                now[(above, column)] + now[(below, column)] + now[(row, left)] + now[(row, right)];
            let corners =
                now[(above, left)] + now[(above, right)] + now[(below, left)] + now[(below, right)];
            let spread = sides * 0.2 + corners * 0.05 - center;

            let reaction = center.x * center.y * center.y;
            *next = F32x2::new(
                center.x + spread.x - reaction + rates.feed * (1.0 - center.x),
                center.y + 0.5 * spread.y + reaction - (rates.feed + rates.kill) * center.y,
            );
        });
    }
}
curium_kernel::include_kernels!("kernels");

use kernels::Rates;

const CORAL: Rates = Rates {
    feed: 0.0545,
    kill: 0.062,
};

/// Returns the concentrations after a number of steps.
fn react(device: &Device, size: usize, steps: usize) -> curium::Result<Vec<F32x2>> {
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(device)?;
    let mut now = DeviceBuffer::from_slice(&stream, &drop_in_the_middle(size))?;
    let mut next = DeviceBuffer::uninit(&stream, size * size)?;
    let blocks = ((size as u32).div_ceil(32), (size as u32).div_ceil(8));
    for _ in 0..steps {
        kernels.step.launch(
            &stream,
            Blocks::new(blocks),
            CORAL,
            RowMajor::new(&now, size, size),
            RowMajor::new(&mut next, size, size),
        )?;
        std::mem::swap(&mut now, &mut next);
    }
    now.to_vec()
}

/// Returns the first chemical, with a drop of the second one.
fn drop_in_the_middle(size: usize) -> Vec<F32x2> {
    let is_in_drop = |i: usize| i.abs_diff(size / 2) <= size / 10;
    (0..size * size)
        .map(|i| {
            if is_in_drop(i / size) && is_in_drop(i % size) {
                F32x2::new(0.5, 0.25)
            } else {
                F32x2::new(1.0, 0.0)
            }
        })
        .collect()
}

/// Returns the concentrations after a step, computed by the host in the same order.
fn step_on_host(now: &[F32x2], size: usize) -> Vec<F32x2> {
    let element = |i: usize| {
        let neighbor = |down: usize, right: usize| {
            now[(i / size + down) % size * size + (i % size + right) % size]
        };
        let last = size - 1;
        let sides = neighbor(last, 0) + neighbor(1, 0) + neighbor(0, last) + neighbor(0, 1);
        let corners = neighbor(last, last) + neighbor(last, 1) + neighbor(1, last) + neighbor(1, 1);
        let spread = sides * 0.2 + corners * 0.05 - now[i];
        let reaction = now[i].x * now[i].y * now[i].y;
        F32x2::new(
            now[i].x + spread.x - reaction + CORAL.feed * (1.0 - now[i].x),
            now[i].y + 0.5 * spread.y + reaction - (CORAL.feed + CORAL.kill) * now[i].y,
        )
    };
    (0..size * size).map(element).collect()
}

/// Checks that the device computes the same as the host: kernels in Rust round as the host does.
fn verify(device: &Device) -> curium::Result<()> {
    let (size, steps) = (40, 6);
    let mut expected = drop_in_the_middle(size);
    for _ in 0..steps {
        expected = step_on_host(&expected, size);
    }
    assert_eq!(react(device, size, steps)?, expected);
    Ok(())
}

/// Returns the brightness of each pixel: dark where the second chemical is.
fn brightness(concentrations: &[F32x2]) -> Vec<u8> {
    let gray = |x: &F32x2| (255.0 * (1.0 - 2.5 * x.y).clamp(0.0, 1.0)) as u8;
    concentrations.iter().map(gray).collect()
}

/// Prints a picture in characters, with one for `scale` columns and `2 * scale` rows.
fn print(pixels: &[u8], size: usize, scale: usize) {
    for row in pixels.chunks(size).step_by(2 * scale) {
        let line: String = row
            .iter()
            .step_by(scale)
            .map(|pixel| ['█', '▓', '▒', '░', ' '][usize::from(*pixel) * 5 / 256])
            .collect();
        println!("{line}");
    }
}

fn run(device: &Device, size: usize, steps: usize) -> curium::Result<Vec<u8>> {
    verify(device)?;
    let pixels = brightness(&react(device, size, steps)?);
    print(&pixels, size, size / 64);
    Ok(pixels)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size = 512;
    let pixels = run(&Device::first()?, size, 8000)?;
    let mut file = format!("P5 {size} {size} 255\n").into_bytes();
    file.extend(pixels);
    std::fs::write("pattern.pgm", file)?;
    println!("wrote pattern.pgm");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_spreads() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            let pixels = run(&device, 64, 20)?;
            assert!(pixels[32 * 64 + 32] < 200, "{}", pixels[32 * 64 + 32]);
            assert_eq!(pixels[0], 255);
            Ok(())
        })
    }
}
