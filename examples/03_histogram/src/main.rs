//! Histogram: how often each letter occurs in a text.
//!
//! Many threads count at the same places, so they count atomically. Each block has counters of its
//! own in shared memory, whose atomic operations are fast, and adds them to the result once. The
//! scope of the counters is in their type: `Counters` are atomic for the block, and `Atomic` in a
//! buffer for the device.
//!
//! `cargo run --release -p curium-example-histogram -- FILE` counts the letters of a file, and
//! without one those of this program.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use curium::prelude::*;
use curium_kernel::host::Blocks;

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use curium_kernel::prelude::*;

    /// Counts the values of the bytes.
    #[kernel]
    pub fn histogram(
        block: Block<256>,
        mut bins: Counters<256>,
        data: &[u8],
        total: &[Atomic<u32>],
    ) {
        // Each thread writes the counters that it owns: here one.
        bins.fill(&block, |_, _| 0);
        // A barrier; all threads access all counters, atomically; a barrier.
        bins.synced(&block, |bins| {
            block.threads(|t| {
                for i in t.grid_stride(data.len()) {
                    bins[usize::from(data[i])].fetch_add(t, 1, Relaxed);
                }
            });
        });
        // Each thread has `&mut` access to the counters that it owns.
        block.threads_with(&mut bins, |t, bins| {
            for (value, bin) in bins {
                total[value].fetch_add(t, *bin.get_mut(), Relaxed);
            }
        });
    }
}
curium_kernel::include_kernels!("kernels");

fn histogram(device: &Device, data: &[u8]) -> curium::Result<Vec<u32>> {
    let context = device.primary_context()?;
    let stream = context.stream()?;
    let kernels = Kernels::load(device)?;
    let data = DeviceBuffer::from_slice(&stream, data)?;
    let mut total = DeviceBuffer::zeroed(&stream, 256)?;
    let blocks = kernels.histogram.suggested_blocks(&context, 0)?;
    // A block is worth its counters if each of its threads has several bytes.
    let blocks = blocks.min(data.len().div_ceil(4096) as u32);
    kernels
        .histogram
        .launch(&stream, Blocks::new(blocks), &data, &mut total)?;
    total.to_vec()
}

fn run(device: &Device, text: &[u8]) -> curium::Result<Vec<u32>> {
    let counts = histogram(device, text)?;
    let letters =
        |letter: u8| counts[usize::from(letter)] + counts[usize::from(letter.to_ascii_uppercase())];
    let most = (b'a'..=b'z').map(letters).max().unwrap_or(0).max(1);
    for letter in b'a'..=b'z' {
        let count = letters(letter);
        let bar = "█".repeat((60 * u64::from(count)).div_ceil(u64::from(most)) as usize);
        println!("{} {count:7} {bar}", char::from(letter));
    }
    Ok(counts)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => include_bytes!("main.rs").to_vec(),
    };
    run(&Device::first()?, &text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_a_text() -> curium::Result<()> {
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(200);
        curium_sim::test(|device: Device| {
            let counts = run(&device, text.as_bytes())?;
            let mut expected = vec![0; 256];
            for byte in text.bytes() {
                expected[usize::from(byte)] += 1;
            }
            assert_eq!(counts, expected);
            Ok(())
        })
    }
}
