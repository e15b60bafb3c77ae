//! Barriers are necessary: without one of them, the simulator reports a race, or the result is wrong.
#![cfg(not(miri))]
#![allow(unsafe_code, reason = "the mutants are not the code of the kernels")]

use curium_driver::{Device, Library, Result, Stream};
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Simulator};
use curium_test_kernels::Kernels;

const PTX: &str = include_str!("../src/kernels.sm_80.ptx");

/// A kernel, and a launch that returns `true` if the result is right.
struct Case {
    name: &'static str,
    run: fn(&Kernels, &Stream) -> Result<bool>,
    /// The barriers, in the order of the PTX, without which the kernel is still right.
    redundant: &'static [usize],
}

/// The last barrier of `synced` separates reads from later writes. These kernels end there, or only write other memory.
const CASES: [Case; 6] = [
    Case {
        name: "reverse",
        run: reverse,
        redundant: &[1],
    },
    Case {
        name: "transpose",
        run: transpose,
        redundant: &[1],
    },
    Case {
        name: "histogram",
        run: histogram,
        redundant: &[],
    },
    Case {
        name: "matmul",
        run: matmul,
        redundant: &[],
    },
    Case {
        name: "block_sum",
        run: block_sum,
        redundant: &[],
    },
    Case {
        name: "scan",
        run: scan,
        redundant: &[],
    },
];

fn reverse(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let x: Vec<u32> = (0..256).collect();
    let device_x = DeviceBuffer::from_slice(stream, &x)?;
    let mut y = DeviceBuffer::zeroed(stream, 256)?;
    kernels
        .reverse
        .launch(stream, Blocks::new(1), &device_x, &mut y)?;
    let mut y = y.to_vec()?;
    y.reverse();
    Ok(y == x)
}

fn transpose(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let x: Vec<f32> = (0..1024_u16).map(f32::from).collect();
    let device_x = DeviceBuffer::from_slice(stream, &x)?;
    let mut y = DeviceBuffer::zeroed(stream, 1024)?;
    let matrix = RowMajor::new(&device_x, 32, 32);
    kernels.transpose.launch(
        stream,
        Blocks::new((1, 1)),
        matrix,
        RowMajor::new(&mut y, 32, 32),
    )?;
    let y = y.to_vec()?;
    Ok((0..1024).all(|i| y[i] == x[i % 32 * 32 + i / 32]))
}

fn histogram(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let data: Vec<u8> = (0..2000_u32).map(|i| (i * i % 251) as u8).collect();
    let device_data = DeviceBuffer::from_slice(stream, &data)?;
    let mut total = DeviceBuffer::zeroed(stream, 256)?;
    kernels
        .histogram
        .launch(stream, Blocks::new(1), &device_data, &mut total)?;
    let mut expected = vec![0_u32; 256];
    for byte in data {
        expected[usize::from(byte)] += 1;
    }
    Ok(total.to_vec()? == expected)
}

fn matmul(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let x: Vec<f32> = (0..64 * 64_u16).map(|i| f32::from(i % 7)).collect();
    let device_x = DeviceBuffer::from_slice(stream, &x)?;
    let mut y = DeviceBuffer::zeroed(stream, 64 * 64)?;
    let matrix = RowMajor::new(&device_x, 64, 64);
    kernels.matmul.launch(
        stream,
        Blocks::new((1, 1)),
        matrix,
        matrix,
        RowMajor::new(&mut y, 64, 64),
    )?;
    let y = y.to_vec()?;
    let element = |i: usize| {
        (0..64)
            .map(|k| x[i / 64 * 64 + k] * x[k * 64 + i % 64])
            .sum::<f32>()
    };
    Ok((0..64 * 64).all(|i| y[i] == element(i)))
}

fn block_sum(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let x: Vec<f32> = (0..1000_u16).map(|i| f32::from(i % 7)).collect();
    let device_x = DeviceBuffer::from_slice(stream, &x)?;
    let mut total = DeviceBuffer::zeroed(stream, 1)?;
    kernels
        .block_sum
        .launch(stream, Blocks::new(1), &device_x, &mut total)?;
    Ok(total.to_vec()? == [x.iter().sum::<f32>()])
}

fn scan(kernels: &Kernels, stream: &Stream) -> Result<bool> {
    let x: Vec<u32> = (0..1024).map(|i| i * 7 % 13).collect();
    let device_x = DeviceBuffer::from_slice(stream, &x)?;
    let mut sums = DeviceBuffer::zeroed(stream, 1024)?;
    let mut totals = DeviceBuffer::zeroed(stream, 1)?;
    kernels
        .scan
        .launch(stream, Blocks::new(1), &device_x, &mut sums, &mut totals)?;
    let mut sum = 0;
    let mut expected = Vec::new();
    for x in &x {
        expected.push(sum);
        sum += x;
    }
    Ok(sums.to_vec()? == expected && totals.to_vec()? == [sum])
}

/// Returns the byte ranges of the barriers of a kernel.
fn barriers(name: &str) -> Vec<(usize, usize)> {
    let entry = PTX
        .find(&format!(".entry {name}("))
        .unwrap_or_else(|| panic!("the PTX has no {name}"));
    let end = PTX[entry..]
        .find("\n}")
        .map_or(PTX.len(), |end| entry + end);
    let mut ranges = Vec::new();
    let mut position = entry;
    for line in PTX[entry..end].split_inclusive('\n') {
        let code = line.trim();
        if code.starts_with("bar.sync") || code.starts_with("barrier.sync") {
            ranges.push((position, position + line.len()));
        }
        position += line.len();
    }
    ranges
}

/// Returns `true` if the code computes the right result without a report.
fn is_right(ptx: &str, case: &Case) -> Result<bool> {
    for seed in 0..3 {
        let config = Config::new()
            .with_seed(seed)
            .with_race_checks(true)
            .with_uninitialized_checks(true)
            .with_checks(Checks::Quiet);
        let simulator = Simulator::new(config).expect("the simulator starts");
        let device: Device = simulator.driver().expect("it has a device");
        let library = Library::from_ptx(&device, ptx)?;
        // SAFETY: a wrong mutant is stopped by the simulator, and only reads and writes its buffers.
        let kernels = unsafe { Kernels::from_library(&library) }?;
        let stream = device.primary_context()?.stream()?;
        let is_equal = (case.run)(&kernels, &stream).unwrap_or(false);
        if !is_equal || !simulator.reports().is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Each barrier is removed in turn.
#[test]
fn barriers_are_necessary() -> Result<()> {
    for case in &CASES {
        assert!(is_right(PTX, case)?, "{} without a change", case.name);
        assert!(
            !barriers(case.name).is_empty(),
            "{} has no barrier",
            case.name
        );
        let mut redundant = Vec::new();
        for (index, (start, end)) in barriers(case.name).into_iter().enumerate() {
            let mutant = format!("{}{}", &PTX[..start], &PTX[end..]);
            if is_right(&mutant, case)? {
                redundant.push(index);
            }
        }
        assert_eq!(redundant, case.redundant, "{}", case.name);
    }
    Ok(())
}
