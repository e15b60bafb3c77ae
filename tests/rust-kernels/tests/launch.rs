//! Launches: errors, streams, captures, views and attributes.

use curium_driver::{Device, Driver, Graph, LaunchAttributes, Result};
use curium_kernel::host::{Blocks, RowMajor, Threads};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel, Simulator};
use curium_test_kernels::Kernels;

#[track_caller]
fn assert_error<T>(result: Result<T>, parts: &[&str]) {
    let Err(error) = result else {
        panic!("no error, expected {parts:?}")
    };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text} without {part}");
    }
}

/// Errors name the kernel, the parameter and the value.
#[test]
fn wrong_sizes_are_errors() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let mut y = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let launch = kernels.transpose.launch(
            &stream,
            Blocks::new((1, 1)),
            RowMajor::new(&x, 3, 5),
            RowMajor::new(&mut y, 4, 3),
        );
        assert_error(
            launch,
            &["transpose", "`x`", "3 rows of 5 columns", "12 elements"],
        );
        let huge = RowMajor::new(&x, usize::MAX, usize::MAX);
        let launch = kernels.transpose.launch(
            &stream,
            Blocks::new((1, 1)),
            huge,
            RowMajor::new(&mut y, 4, 3),
        );
        assert_error(launch, &["`x`", "12 elements"]);
        let launch = kernels
            .saxpy
            .launch(&stream, Threads(usize::MAX), 1.0, &x, &mut y);
        assert_error(launch, &["saxpy", "threads are more than a grid can have"]);
        let mut rows = DeviceBuffer::<f32>::zeroed(&stream, 65)?;
        let half = DeviceBuffer::<u16>::zeroed(&stream, 64)?;
        let words = DeviceBuffer::<u32>::zeroed(&stream, 32)?;
        let launch = kernels.attention.launch(
            &stream,
            Blocks::new(1),
            &words,
            &words,
            &half,
            1.0,
            &mut rows,
        );
        assert_error(launch, &["attention", "`out`", "65 elements", "64 columns"]);
        Ok(())
    })
}

/// A grid in which blocks would share elements of an output.
#[test]
fn wrong_grids_are_errors() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
        let mut y = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
        assert_error(
            kernels
                .reverse
                .launch(&stream, Blocks::new((1, 2)), &x, &mut y),
            &["reverse", "`y`", "along x", "1×2×1"],
        );
        let matrix = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let launch = kernels.transpose.launch(
            &stream,
            Blocks::new((1, 1, 2)),
            RowMajor::new(&matrix, 3, 4),
            RowMajor::new(&mut output, 4, 3),
        );
        assert_error(launch, &["transpose", "`y`", "along x and y", "1×1×2"]);
        Ok(())
    })
}

/// Rows and columns of tiles are numbered with 32 bits.
#[test]
fn grid_of_too_many_rows() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let mut y = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let launch = kernels.stencil.launch(
            &stream,
            Blocks::new((1 << 28, 1)),
            RowMajor::new(&x, 3, 4),
            0.5,
            RowMajor::new(&mut y, 3, 4),
        );
        assert_error(
            launch,
            &["stencil", "`y`", "tiles of 8 rows and 32 columns", "2^31"],
        );
        Ok(())
    })
}

/// A slice is never null, also of an empty buffer.
#[test]
fn empty_views_are_not_null() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let data = DeviceBuffer::<u8>::zeroed(&stream, 1)?;
        let mut bins = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
        let empty = data.slice(1..1)?;
        kernels
            .histogram
            .launch(&stream, Blocks::new(2), empty, &mut bins)?;
        assert_eq!(bins.to_vec()?, [0; 256]);
        Ok(())
    })
}

/// Attributes that let later work start early are refused; others are passed on.
#[test]
fn attributes() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
        let overlapping = LaunchAttributes::new().with_programmatic_stream_serialization(true);
        assert_error(
            kernels
                .saxpy
                .launch_with(&stream, 3, &overlapping, 2.0, &x, &mut y),
            &["saxpy", "concurrently"],
        );
        let priority = LaunchAttributes::new().with_priority(0);
        kernels
            .saxpy
            .launch_with(&stream, 3, &priority, 2.0, &x, &mut y)?;
        assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
        Ok(())
    })
}

/// The occupancy suggests a grid.
#[test]
fn suggested_grid() -> Result<()> {
    curium_sim::test(|device: Device| {
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let kernels = Kernels::load(&device)?;
        assert_eq!(kernels.block_sum.kernel().name(), "block_sum");
        let blocks = kernels.block_sum.suggested_blocks(&context, 0)?;
        let resident = kernels
            .block_sum
            .kernel()
            .max_active_blocks(&context, 256, 0)?;
        assert!(
            blocks > resident && blocks % resident == 0,
            "{blocks}, {resident}"
        );
        let x = DeviceBuffer::from_slice(&stream, &[0.5; 3000])?;
        let mut total = DeviceBuffer::zeroed(&stream, 1)?;
        kernels
            .block_sum
            .launch(&stream, Blocks::new(blocks.min(16)), &x, &mut total)?;
        assert_eq!(total.to_vec()?, [1500.0]);
        Ok(())
    })
}

/// The kernels were compiled for compute capability 8.0.
#[test]
fn older_device_is_an_error() -> Result<()> {
    let config = Config::new().with_device_model(DeviceModel::T4);
    curium_sim::test_with(config, |device: Device| {
        assert_error(
            Kernels::load(&device),
            &["Kernels::load", "sm_80", "compute capability 7.5"],
        );
    });
    Ok(())
}

/// Parts of one buffer are different arguments.
#[test]
fn views_are_arguments() -> Result<()> {
    curium_sim::test(|device: Device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Kernels::load(&device)?;
        let mut buffer = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0])?;
        let (x, mut y) = buffer.split_at_mut(3)?;
        kernels.saxpy.launch(&stream, 3, 2.0, &x, &mut y)?;
        kernels.saxpy.launch(&stream, 3, 1.0, x.view(), y)?;
        assert_eq!(buffer.to_vec()?, [1.0, 2.0, 3.0, 13.0, 26.0, 39.0]);
        Ok(())
    })
}

/// Launches on two streams that use one buffer are ordered.
#[test]
fn streams_are_ordered() -> Result<()> {
    for seed in 0..5 {
        curium_sim::test_with(
            Config::new().with_seed(seed),
            |device: Device| -> Result<()> {
                let context = device.primary_context()?;
                let streams = [context.stream()?, context.stream()?];
                let kernels = Kernels::load(&device)?;
                let x = DeviceBuffer::from_slice(&streams[0], &[1.0; 100])?;
                let mut y = DeviceBuffer::zeroed(&streams[0], 100)?;
                for i in 0..10 {
                    kernels
                        .saxpy
                        .launch(&streams[i % 2], 100, 1.0, &x, &mut y)?;
                }
                assert_eq!(y.to_vec()?, [10.0; 100]);
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// A captured launch becomes a node of a graph.
#[test]
fn launches_are_captured() -> Result<()> {
    curium_sim::test(|device: Device| {
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let kernels = Kernels::load(&device)?;
        let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
        let graph = Graph::capture(&context, |stream| {
            kernels.saxpy.launch(stream, 3, 2.0, &x, &mut y)
        })?;
        let mut executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        assert_eq!(y.to_vec()?, [14.0, 28.0, 42.0]);
        Ok(())
    })
}

/// An index out of bounds ends the launch with an error. Nothing outside of the buffer is read.
#[test]
fn panic_is_a_launch_error() -> Result<()> {
    let simulator =
        Simulator::new(Config::new().with_race_checks(true)).expect("the simulator starts");
    let device = simulator
        .driver::<Driver>()
        .expect("it has a driver")
        .device(0)?;
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(&device)?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
    kernels.saxpy.launch(&stream, 3, 2.0, &x, &mut y)?;
    assert!(y.to_vec().is_err());
    let reports: Vec<String> = simulator
        .reports()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        reports
            .iter()
            .any(|report| report.contains("saxpy") && report.contains("thread (2, 0, 0)")),
        "{reports:?}"
    );
    Ok(())
}
