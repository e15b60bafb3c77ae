//! Overlaps copies and kernels: while one stream computes, the other copies.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::time::Instant;

use curium::memory::copy;
use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const CHUNKS: u32 = 8;
const CHUNK: u32 = 1 << 14;
const STEPS: u32 = 50;

type Step = Kernel<(&'static mut [u32], u32, u32)>;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let step: Step = Library::from_ptx(context.driver(), KERNELS)?.kernel("step")?;
    for streams in [1, 2] {
        let begin = Instant::now();
        run(&context, &step, streams)?;
        println!(
            "{CHUNKS} chunks on {streams} streams: {:.1?}",
            begin.elapsed()
        );
    }
    Ok(())
}

/// Copies each chunk to the device, runs the kernel on it and copies it back, round-robin on
/// `streams` streams.
fn run(context: &Context, step: &Step, streams: usize) -> device::Outcome {
    let streams = (0..streams)
        .map(|_| context.stream())
        .collect::<Result<Vec<_>, _>>()?;
    let mut pending = Vec::new();
    for (chunk, stream) in (0..CHUNKS).zip(streams.iter().cycle()) {
        let numbers: Vec<u32> = (0..CHUNK).map(|i| chunk * CHUNK + i).collect();
        let host = PinnedBuffer::from_slice(context, &numbers, PinnedFlags::empty())?;
        let mut data = DeviceBuffer::uninit(stream, numbers.len())?;
        let upload = copy::upload(stream, host, &mut data)?;
        // SAFETY: `step` writes the first CHUNK elements, which `data` has.
        unsafe {
            step.launch(
                stream,
                LaunchConfig::for_elements(CHUNK as usize),
                (&mut data, CHUNK, STEPS),
            )
        }?;
        let result = PinnedBuffer::zeroed(context, numbers.len(), PinnedFlags::empty())?;
        let download = copy::download(stream, &data, result)?;
        // The host continues with the next chunk without waiting. `data` is freed in stream order.
        pending.push((chunk, upload, download));
    }
    for (chunk, upload, download) in pending {
        let source = upload.wait()?;
        let result = download.wait()?;
        let expected = source
            .iter()
            .map(|number| (0..STEPS).fold(*number, |value, _| next(value)));
        assert!(result.iter().copied().eq(expected), "chunk {chunk}");
    }
    Ok(())
}

fn next(value: u32) -> u32 {
    value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
