//! The kernels that the book quotes, on the simulator with all checks.
#![cfg(not(miri))]

use curium_driver::{Device, Driver, Library, Result, Stream};
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_test_book::Kernels;

/// Runs a body for several orders of execution, with all checks.
fn on_device(body: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    for seed in 0..3 {
        curium_sim::test_with(Config::new().with_seed(seed), |device: Device| {
            let stream = device.primary_context()?.stream()?;
            body(&Kernels::load(&device)?, &stream)
        })?;
    }
    Ok(())
}

#[test]
fn blocks_in_reverse() -> Result<()> {
    let x: Vec<u32> = (0..512).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 512)?;
        kernels
            .reverse
            .launch(stream, Blocks::new(2), &device_x, &mut y)?;
        let expected: Vec<u32> = (0..256).rev().chain((256..512).rev()).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn large_elements_are_counted() -> Result<()> {
    let x: Vec<f32> = (0..300_u16).map(f32::from).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut counts = DeviceBuffer::uninit(stream, 2)?;
        kernels
            .count_large
            .launch(stream, Blocks::new(2), 199.5, &device_x, &mut counts)?;
        assert_eq!(counts.to_vec()?, [56, 44]);
        Ok(())
    })
}

#[test]
fn neighbors_in_a_warp() -> Result<()> {
    let x: Vec<f32> = (0..256_u16).map(|i| f32::from(i * i % 97)).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 256)?;
        kernels
            .smooth
            .launch(stream, Blocks::new(1), &device_x, &mut y)?;
        let mean = |i: usize| {
            let below = if i.is_multiple_of(32) { i } else { i - 1 };
            let above = if i % 32 == 31 { i } else { i + 1 };
            (x[below] + x[i] + x[above]) / 3.0
        };
        let expected: Vec<f32> = (0..256).map(mean).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn filter_of_five_weights() -> Result<()> {
    let x: Vec<f32> = (0..100_u16).map(f32::from).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 96)?;
        let weights = [0.5, 0.0, 0.25, 0.0, 0.25];
        kernels
            .filter
            .launch(stream, 96, weights, &device_x, &mut y)?;
        let expected: Vec<f32> = (0..96_u16).map(|i| f32::from(i) + 1.5).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn transposed_matrix() -> Result<()> {
    let (rows, columns) = (40, 50);
    let x: Vec<f32> = (0..2000_u16).map(f32::from).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.transpose.launch(
            stream,
            Blocks::new((2, 2)),
            RowMajor::new(&device_x, rows, columns),
            RowMajor::new(&mut y, columns, rows),
        )?;
        let element = |i: usize| x[i % rows * columns + i / rows];
        let expected: Vec<f32> = (0..rows * columns).map(element).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn softmax_of_rows() -> Result<()> {
    let (rows, columns) = (3, 300);
    let x: Vec<f32> = (0..900_u16).map(|i| f32::from(i % 37) / 8.0).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.softmax.launch(
            stream,
            Blocks::new(rows as u32 + 1),
            RowMajor::new(&device_x, rows, columns),
            RowMajor::new(&mut y, rows, columns),
        )?;
        for (x, y) in x.chunks(columns).zip(y.to_vec()?.chunks(columns)) {
            let weights: Vec<f32> = x.iter().map(|x| x.exp()).collect();
            let total: f32 = weights.iter().sum();
            for (weight, y) in weights.iter().zip(y) {
                assert!((weight / total - y).abs() < 1e-6, "{} {y}", weight / total);
            }
        }
        Ok(())
    })
}

#[test]
fn generic_sums() -> Result<()> {
    let x: Vec<i32> = (0..200).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut sum = DeviceBuffer::uninit(stream, 2)?;
        let mut squares = DeviceBuffer::uninit(stream, 2)?;
        kernels.sums_of_integers.launch(
            stream,
            Blocks::new(2),
            &device_x,
            &mut sum,
            &mut squares,
        )?;
        let (first, second) = x.split_at(128);
        let square = |x: &[i32]| x.iter().map(|x| x * x).sum::<i32>();
        assert_eq!(
            sum.to_vec()?,
            [first.iter().sum(), second.iter().sum::<i32>()]
        );
        assert_eq!(squares.to_vec()?, [square(first), square(second)]);
        Ok(())
    })
}

#[test]
fn inline_ptx() -> Result<()> {
    let x = [0b1100, 0b1010, 0b1001, 1, 2, 4, u32::MAX, 0, 7];
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 3)?;
        kernels.vote.launch(stream, 3, &device_x, &mut y)?;
        assert_eq!(y.to_vec()?, [0b1000, 0, 7]);
        Ok(())
    })
}

#[test]
fn inline_ptx_of_a_warp() -> Result<()> {
    let x: Vec<u32> = (0..64).map(|i| i % 5).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 64)?;
        kernels
            .count_equal
            .launch(stream, Blocks::new(1), &device_x, &mut y)?;
        let count = |i: usize| {
            let warp = &x[i / 32 * 32..][..32];
            warp.iter().filter(|other| **other == x[i]).count() as u32
        };
        let expected: Vec<u32> = (0..64).map(count).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn elements_of_an_own_type() -> Result<()> {
    let x: Vec<f32> = (0..128_u16).map(|i| f32::from(i % 50) - 10.0).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut result = DeviceBuffer::uninit(stream, 2)?;
        kernels
            .extents
            .launch(stream, Blocks::new(2), &device_x, &mut result)?;
        let result: Vec<[f32; 2]> = result
            .to_vec()?
            .iter()
            .map(|extent| [extent.low, extent.high])
            .collect();
        assert_eq!(result, [[-10.0, 39.0], [-10.0, 39.0]]);
        Ok(())
    })
}

/// Returns the long text of the only report, without the lines and the instructions of the PTX,
/// which depend on the compiler.
fn report_text(simulator: &Simulator) -> String {
    let reports = simulator.reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let text = format!("{:#}", reports[0]);
    let lines = text.lines().filter(|line| !line.starts_with("    PTX "));
    let text = lines.collect::<Vec<_>>().join("\n");
    let parts = text.split(", PTX line ");
    let parts = parts.enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.trim_start_matches(|character: char| character.is_ascii_digit()),
    });
    parts.collect()
}

/// A race of a kernel in Rust names the source lines of both accesses. The kernel lacks its
/// barrier.
#[test]
fn report_of_a_missing_barrier() -> Result<()> {
    let simulator =
        Simulator::new(Config::new().with_race_checks(true)).expect("the simulator starts");
    let device = simulator
        .driver::<Driver>()
        .expect("it has a driver")
        .device(0)?;
    let stream = device.primary_context()?.stream()?;
    let ptx = include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_80.ptx"));
    let (before, kernel) = ptx
        .split_once(".entry reverse(")
        .expect("the kernel is compiled");
    let ptx = format!(
        "{before}.entry reverse({}",
        kernel.replacen("bar.sync", "//", 1)
    );
    let library = Library::from_ptx(&device, &ptx)?;
    // SAFETY: the library has the kernels of this package, and the simulator ends the one without
    // its barrier at the race.
    let kernels = unsafe { Kernels::from_library(&library) }?;
    let x = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    let mut y = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    kernels
        .reverse
        .launch(&stream, Blocks::new(1), &x, &mut y)?;
    y.to_vec().expect_err("the threads race");
    let text = report_text(&simulator);
    let write = "kernel `reverse`: race with block (0, 0, 0), thread (127, 0, 0): 4-byte write at 0x200 in \
         `curium_test_book_curium_entry_reverse_CURIUM_SHARED_0 + 512`, block (0, 0, 0), thread (128, 0, 0), src/lib.rs:20:10
    at curium-kernel-";
    let call = "
    inlined at src/lib.rs:20:10
       20 | tile.fill(&block, |_, i| x.get(first + i).copied().unwrap_or(0));
  the other thread read at src/lib.rs:24:22 in `curium_test_book::reverse::{closure#1}::{closure#0}`
       24 | *y = tile[255 - t.index_in_block()];
    inlined at curium-kernel-";
    assert!(text.starts_with(write) && text.contains(call), "{text}");
    Ok(())
}

/// The book shows the report of a failed assertion.
#[test]
fn report_of_a_failed_assertion() -> Result<()> {
    let simulator = Simulator::new(Config::new()).expect("the simulator starts");
    let device = simulator
        .driver::<Driver>()
        .expect("it has a driver")
        .device(0)?;
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(&device)?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0, -1.0])?;
    let mut y = DeviceBuffer::uninit(&stream, 2)?;
    kernels.roots.launch(&stream, 2, &x, &mut y)?;
    let error = y.to_vec().expect_err("the second number is negative");
    let report = "kernel `roots`: assertion failed: `a negative number`, block (0, 0, 0), thread (1, 0, 0), src/lib.rs:237:9";
    let reports = simulator.reports();
    assert!(reports[0].to_string().starts_with(report), "{reports:?}");
    let source = "
      237 | assert!(x >= 0.0, \"a negative number\");";
    assert_eq!(report_text(&simulator), format!("{report}{source}"));
    let line = "      237 | assert!(x >= 0.0, \"a negative number\");";
    assert!(include_str!("../../../docs/book/src/kernels-debugging.md").contains(line));
    let chapter = include_str!("../../../docs/book/src/kernels-debugging.md");
    assert!(chapter.contains(report));
    let message = "device-side assert triggered (CUDA_ERROR_ASSERT = 710)";
    assert!(error.to_string().contains(message), "{error}");
    assert!(chapter.contains(message));
    Ok(())
}
