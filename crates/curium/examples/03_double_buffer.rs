//! Counts the bytes of a file that is larger than the device memory budget. Two pinned buffers
//! alternate, so that the next part is read from disk while the last one is copied and counted.
//!
//! `03_double_buffer FILE` counts the bytes of a file; without an argument it creates a file of 4
//! MiB.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use curium::memory::{LimitedResource, StreamOrdered, copy};
use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
/// The size in bytes of the part that is read, copied and counted at once.
const PART: usize = 256 << 10;
/// The device memory budget: two parts and the counts.
const BUDGET: usize = 2 * PART + 1024;

fn main() -> device::Outcome {
    let argument = std::env::args_os()
        .nth(1)
        .filter(|path| path != "--device")
        .map(PathBuf::from);
    let path = argument
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("curium-{}.bin", std::process::id())));
    if argument.is_none() {
        make_file(&path)?;
    }
    let counts = count(&path);
    let right = std::fs::read(&path).map(|bytes| count_on_host(&bytes));
    if argument.is_none() {
        std::fs::remove_file(&path)?;
    }
    let counts = counts?;
    assert_eq!(counts, right?);
    println!(
        "{} bytes are counted within {BUDGET} bytes of device memory",
        counts.iter().sum::<u32>()
    );
    Ok(())
}

/// Returns the number of times that each byte occurs in a file.
fn count(path: &Path) -> device::Outcome<Vec<u32>> {
    let context = device::driver()?.device(0)?.primary_context()?;
    let kernel = Library::from_ptx(context.driver(), KERNELS)?
        .kernel::<(&[u8], u32, &mut [u32])>("count_bytes")?;
    let streams = [context.stream()?, context.stream()?];
    let memory = LimitedResource::new(StreamOrdered, BUDGET);
    let mut counts = DeviceBuffer::zeroed_in(&streams[0], 256, &memory)?;
    let mut parts = [
        DeviceBuffer::zeroed_in(&streams[0], PART, &memory)?,
        DeviceBuffer::zeroed_in(&streams[1], PART, &memory)?,
    ];
    let mut idle = VecDeque::new();
    for _ in 0..2 {
        idle.push_back(PinnedBuffer::zeroed(&context, PART, PinnedFlags::empty())?);
    }
    let mut busy = VecDeque::new();

    let mut file = File::open(path)?;
    for turn in 0.. {
        // The buffer of the copy before the last is free again once that copy has completed.
        let mut host = match idle.pop_front() {
            Some(host) => host,
            None => busy
                .pop_front()
                .map(copy::Pending::wait)
                .expect("both are busy")?,
        };
        let bytes = read_part(&mut file, &mut host)?;
        if bytes == 0 {
            break;
        }
        let stream = &streams[turn % 2];
        let part = &mut parts[turn % 2];
        busy.push_back(copy::upload(stream, host, part)?);
        let n = bytes as u32;
        // SAFETY: `count_bytes` reads the first n bytes of the part, and adds to one of the 256
        // counts for each.
        unsafe {
            kernel.launch(
                stream,
                LaunchConfig::for_elements(bytes),
                (&*part, n, &mut counts),
            )
        }?;
    }
    Ok(counts.to_vec()?)
}

/// Fills the buffer from the file, up to the end of the file.
fn read_part(file: &mut File, part: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < part.len() {
        match file.read(&mut part[filled..])? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(filled)
}

fn make_file(path: &Path) -> io::Result<()> {
    let bytes: Vec<u8> = (0_u32..(4 << 20) + 12_345)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    File::create(path)?.write_all(&bytes)
}

fn count_on_host(bytes: &[u8]) -> Vec<u32> {
    let mut counts = vec![0; 256];
    bytes
        .iter()
        .for_each(|byte| counts[usize::from(*byte)] += 1);
    counts
}
