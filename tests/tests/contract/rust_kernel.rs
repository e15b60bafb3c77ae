//! Launchers of kernels in Rust, with the other parts of Curium: streams, captures, graphs,
//! futures, observers, several devices, and every kind of buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use curium_driver::{
    Call, Context, Dimensions, Event, EventFlags, Function, Graph, LaunchAttributes, Library,
    Result, Stream, observe_calls,
};
use curium_kernel::host::{Blocks, RowMajor, Threads};
use curium_memory::{DeviceBox, DeviceBuffer, DeviceVec, MappedBuffer, UnifiedBuffer};
use curium_sim::{Config, Simulator};
use curium_test_kernels::Kernels;
use curium_test_kernels::launching::Line;
use curium_tests::{TestDriver, driver_test, on_driver, on_peers, on_simulator, simulator_test};

/// Runs a test with the kernels, unless the device is older than they are.
fn on_kernels(test: impl FnOnce(&TestDriver, &Kernels) -> Result<()>) {
    on_driver(|driver| run(driver, test));
}

fn run(driver: &TestDriver, test: impl FnOnce(&TestDriver, &Kernels) -> Result<()>) {
    let result = driver.driver().device(0).and_then(|device| {
        if device.compute_capability()?.major < 8 {
            return curium_tests::skip("the kernels are compiled for compute capability 8.0");
        }
        test(driver, &Kernels::load(&device)?)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

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

/// A graph is updated with new arguments: a number, another buffer, and a larger grid.
#[test]
fn graph_gets_new_arguments() {
    on_kernels(|test, kernels| {
        let context = test.context();
        let stream = test.stream();
        let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
        let graph = Graph::capture(&context, |stream| {
            kernels.saxpy.launch(stream, 3, 2.0, &x, &mut y)
        })?;
        assert_eq!(graph.nodes()?.len(), 1);
        let mut executable = graph.instantiate()?;
        executable.launch(&stream)?;
        assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);

        let other = DeviceBuffer::filled(&stream, 600, 1.0)?;
        let mut sum = DeviceBuffer::zeroed(&stream, 600)?;
        let changed = Graph::capture(&context, |stream| {
            kernels.saxpy.launch(stream, 600, 5.0, &other, &mut sum)
        })?;
        assert!(executable.update(&changed)?.is_done());
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        assert_eq!(sum.to_vec()?, [10.0; 600]);
        assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
        Ok(())
    });
}

/// Kernels of a capture depend on each other as their arguments require, also on forked streams.
#[test]
fn captured_nodes_are_ordered() {
    on_kernels(|test, kernels| {
        let context = test.context();
        let stream = test.stream();
        let x = DeviceBuffer::filled(&stream, 300, 1.0)?;
        let mut a = DeviceBuffer::zeroed(&stream, 300)?;
        let mut b = DeviceBuffer::zeroed(&stream, 300)?;
        let mut sum = DeviceBuffer::zeroed(&stream, 300)?;
        let graph = Graph::capture(&context, |stream| {
            kernels.saxpy.launch(stream, 300, 1.0, &x, &mut a)?;
            kernels.saxpy.launch(stream, 300, 2.0, &x, &mut b)?;
            kernels.add.launch(stream, 300, &a, &b, &mut sum)
        })?;
        let mut executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        assert_eq!(sum.to_vec()?, [6.0; 300]);
        Ok(())
    });
}

/// A graph leases the buffers of its launches: they outlive their owners, and direct launches are
/// ordered with the graph's.
#[test]
fn graphs_lease_the_buffers() {
    on_kernels(|test, kernels| {
        let context = test.context();
        let streams = [test.stream(), context.stream()?];
        let x = DeviceBuffer::filled(&streams[0], 1000, 1.0)?;
        let mut y = DeviceBuffer::zeroed(&streams[0], 1000)?;
        let graph = Graph::capture(&context, |stream| {
            kernels.saxpy.launch(stream, 1000, 1.0, &x, &mut y)
        })?;
        let mut executable = graph.instantiate()?;
        let two = DeviceBuffer::filled(&streams[1], 1000, 2.0)?;
        for _ in 0..5 {
            executable.launch(&streams[0])?;
            kernels.saxpy.launch(&streams[1], 1000, 1.0, &two, &mut y)?;
        }
        drop(graph);
        drop(x);
        executable.launch(&streams[1])?;
        assert_eq!(y.to_vec()?, [16.0; 1000]);
        Ok(())
    });
}

/// A launch is a host call that does not wait, and its stream has futures and events.
#[test]
fn streams_return_launch_futures() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let x = DeviceBuffer::filled(&stream, 5000, 3.0)?;
        let mut y = DeviceBuffer::zeroed(&stream, 5000)?;
        let event = Event::new(&test.context(), EventFlags::empty())?;
        pollster::block_on(async {
            kernels.saxpy.launch(&stream, 5000, 2.0, &x, &mut y)?;
            stream.completion().await?;
            kernels.saxpy.launch(&stream, 5000, 2.0, &x, &mut y)?;
            event.record(&stream)?;
            event.completion().await
        })?;
        assert_eq!(y.to_vec()?, [12.0; 5000]);
        Ok(())
    });
}

/// Launches on the stream that used the buffers last are one driver call each; an empty grid makes
/// none.
#[test]
fn launch_is_one_call() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let x = DeviceBuffer::filled(&stream, 300, 1.0)?;
        let mut y = DeviceBuffer::zeroed(&stream, 300)?;
        kernels.saxpy.launch(&stream, 300, 1.0, &x, &mut y)?;
        let launches = Arc::new(AtomicUsize::new(0));
        let others = Arc::new(AtomicUsize::new(0));
        let counters = [Arc::clone(&launches), Arc::clone(&others)];
        let thread = thread::current().id();
        let guard = observe_calls(move |call: &Call<'_>| {
            if thread::current().id() != thread {
                return;
            }
            let is_launch = matches!(
                call.function,
                Function::cuLaunchKernel | Function::cuLaunchKernelEx
            );
            counters[usize::from(!is_launch)].fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..3 {
            kernels.saxpy.launch(&stream, 300, 1.0, &x, &mut y)?;
        }
        kernels.saxpy.launch(&stream, Threads(0), 1.0, &x, &mut y)?;
        drop(guard);
        assert_eq!(launches.load(Ordering::Relaxed), 3);
        assert_eq!(others.load(Ordering::Relaxed), 0);
        assert_eq!(y.to_vec()?, [4.0; 300]);
        Ok(())
    });
}

/// The code that was loaded once runs on each device, with its buffers and streams, also from
/// several threads.
#[driver_test(on_peers)]
fn kernels_run_on_several_devices(test: &TestDriver, first: &Context, second: &Context) {
    run(test, |_, kernels| {
        let mut sums = Vec::new();
        for context in [first, second] {
            let stream = context.stream()?;
            let x = DeviceBuffer::filled(&stream, 100, 2.0)?;
            let mut y = DeviceBuffer::zeroed(&stream, 100)?;
            let kernels = kernels.clone();
            let worker = thread::spawn(move || -> Result<Vec<f32>> {
                for _ in 0..4 {
                    kernels.saxpy.launch(&stream, 100, 1.0, &x, &mut y)?;
                }
                y.to_vec()
            });
            sums.push(worker.join());
        }
        for sum in sums {
            assert_eq!(sum.expect("the thread does not panic")?, [8.0; 100]);
        }
        // A buffer of the other device is accessed through peer access.
        let streams = [first.stream()?, second.stream()?];
        let x = DeviceBuffer::filled(&streams[0], 100, 2.0)?;
        let mut y = DeviceBuffer::zeroed(&streams[1], 100)?;
        let launch = kernels.saxpy.launch(&streams[1], 100, 1.0, &x, &mut y);
        if launch.is_ok() {
            assert_eq!(y.to_vec()?, [2.0; 100]);
        } else {
            assert_error(launch, &["peer"]);
        }
        Ok(())
    });
}

/// Every kind of buffer is an input and an output, and one buffer may be two inputs.
#[test]
fn all_buffers_are_arguments() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let values = [1.0_f32, 2.0, 3.0, 4.0];
        let buffer = DeviceBuffer::from_slice(&stream, &values)?;
        let mut unified = UnifiedBuffer::zeroed(&stream, 4)?;
        let mut mapped = MappedBuffer::zeroed(&stream, 4)?;
        let mut one = DeviceBox::new(&stream, 0.0)?;
        kernels
            .add
            .launch(&stream, 4, &buffer, &buffer, &mut unified)?;
        kernels
            .add
            .launch(&stream, 4, &unified, &buffer, &mut mapped)?;
        kernels
            .add
            .launch(&stream, 1, &mapped, &unified, &mut one)?;
        stream.synchronize()?;
        let mut output = DeviceBuffer::zeroed(&stream, 4)?;
        kernels
            .saxpy
            .launch(&stream, 4, 1.0, &mapped, &mut output)?;
        assert_eq!(output.to_vec()?, [3.0, 6.0, 9.0, 12.0]);
        assert_eq!(one.get()?, 5.0);
        Ok(())
    });
}

/// A vector that grows is an argument of the length that it has.
#[test]
fn growing_vectors_are_arguments() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let mut numbers = DeviceVec::with_max_len(&stream, 1000)?;
        numbers.extend_from_slice(&[1.0; 100])?;
        let x = DeviceBuffer::filled(&stream, 200, 1.0)?;
        kernels
            .saxpy
            .launch(&stream, numbers.len(), 1.0, &x, &mut numbers)?;
        numbers.extend_from_slice(&[5.0; 100])?;
        kernels
            .saxpy
            .launch(&stream, numbers.len(), 1.0, &x, &mut numbers)?;
        let mut output = DeviceBuffer::zeroed(&stream, 200)?;
        kernels
            .saxpy
            .launch(&stream, 200, 1.0, &numbers, &mut output)?;
        let output = output.to_vec()?;
        assert_eq!(output[..100], [3.0; 100]);
        assert_eq!(output[100..], [6.0; 100]);
        Ok(())
    });
}

/// Grids that a device cannot have are errors: of the launcher, or of the driver with its limit.
#[test]
fn too_large_grids_are_errors() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let x = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let mut y = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
        let threads = (1 << 31) * 256;
        let launch = kernels.saxpy.launch(&stream, threads, 1.0, &x, &mut y);
        assert_error(launch, &["saxpy", "more than a grid can have"]);
        for (grid, reason) in [
            ((1, 1 << 16, 1), "the device supports"),
            ((1 << 31, 1, 1), "more than 2^31 rows or columns"),
        ] {
            let launch = kernels.transpose.launch(
                &stream,
                Blocks::from(Dimensions::from(grid)),
                RowMajor::new(&x, 3, 4),
                RowMajor::new(&mut y, 4, 3),
            );
            assert_error(launch, &["transpose", reason]);
        }
        // Nothing was launched.
        kernels.saxpy.launch(&stream, 12, 1.0, &x, &mut y)?;
        assert_eq!(y.to_vec()?, [0.0; 12]);
        Ok(())
    });
}

/// An empty grid, and an empty view.
#[test]
fn empty_launches_do_nothing() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let numbers = DeviceBuffer::<f32>::zeroed(&stream, 1)?;
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, 1)?;
        let x = numbers.slice(..0)?;
        let mut y = output.slice_mut(..0)?;
        kernels.saxpy.launch(&stream, 0, 1.0, x, &mut y)?;
        kernels.saxpy.launch(&stream, 100, 1.0, x, &mut y)?;
        let mut total = DeviceBuffer::<f32>::zeroed(&stream, 1)?;
        kernels
            .block_sum
            .launch(&stream, Blocks::new(0), x, &mut total)?;
        kernels
            .block_sum
            .launch(&stream, Blocks::new(2), x, &mut total)?;
        assert_eq!(total.to_vec()?, [0.0]);
        // Arguments are checked although nothing is launched.
        let matrix = RowMajor::new(x, 3, 3);
        let launch =
            kernels
                .transpose
                .launch(&stream, Blocks::new((0, 1)), matrix, RowMajor::new(y, 0, 0));
        assert_error(launch, &["transpose", "`x`", "0 elements"]);
        Ok(())
    });
}

/// Lengths and indices have 64 bits.
#[simulator_test(Config::new().with_memory_budget(20 << 30))]
fn lengths_above_u32_arrive_whole(test: &TestDriver, _: &Simulator) {
    run(test, |test, kernels| {
        let stream = test.stream();
        let len = (1 << 32) + 5;
        let mut x = DeviceBuffer::<u8>::uninit(&stream, len)?;
        x.slice_mut(len - 3..)?.copy_from_slice(&[7, 8, 9])?;
        let mut y = DeviceBuffer::zeroed(&stream, 4)?;
        let rows = RowMajor::new(x.slice(..(1 << 32) + 4)?, 4, (1 << 30) + 1);
        kernels.lengths.launch(&stream, 4, &x, rows, &mut y)?;
        assert_eq!(y.to_vec()?, [(1 << 32) + 5, 4, (1 << 30) + 1, 9]);
        let row = RowMajor::new(&x, 1, len);
        let launch = kernels.lengths.launch(&stream, 4, &x, row, &mut y);
        assert_error(launch, &["lengths", "`rows`", "at most 4294967295"]);
        Ok(())
    });
}

/// Attributes are passed on: a priority, and a cluster size where the device has clusters.
#[test]
fn attributes_are_passed_on() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let x = DeviceBuffer::filled(&stream, 1024, 0.5)?;
        let mut total = DeviceBuffer::zeroed(&stream, 1)?;
        let mut attributes = LaunchAttributes::new().with_priority(0);
        if test.driver().device(0)?.compute_capability()?.major >= 9 {
            attributes = attributes.with_cluster((2, 1, 1));
        }
        kernels
            .block_sum
            .launch_with(&stream, Blocks::new(2), &attributes, &x, &mut total)?;
        assert_eq!(total.to_vec()?, [512.0]);
        Ok(())
    });
}

/// Writes the last number of a [`Line`].
const CORNER: &str = ".version 7.0
.target sm_75
.address_size 64
.visible .entry corner(.param .align 8 .b8 line[16], .param .u64 y)
{
    .reg .b64 %y;
    .reg .f32 %x;
    ld.param.u64 %y, [y];
    ld.param.f32 %x, [line+12];
    st.global.f32 [%y], %x;
    ret;
}
";

curium_driver::kernels! {
    /// A kernel in PTX.
    struct Lines {
        fn corner(line: Line, y: &mut [f32]);
    }
}

/// Kernels in Rust and in PTX take one struct by value, and one buffer.
#[test]
fn untyped_kernels_share_types() {
    on_kernels(|test, kernels| {
        let stream = test.stream();
        let lines = Lines::from_library(&Library::from_ptx(test.driver(), CORNER)?)?;
        let line = Line {
            slope: 2.0,
            offset: 1.0,
            corner: curium_kernel::F32x2::new(8.0, 9.0),
        };
        let mut y = DeviceBuffer::zeroed(&stream, 3)?;
        // SAFETY: the kernel writes the first element.
        unsafe {
            lines.corner.launch(
                &stream,
                curium_driver::LaunchConfig::new(1, 1),
                (line, &mut y),
            )
        }?;
        kernels.add_line.launch(&stream, 3, line, &mut y)?;
        assert_eq!(y.to_vec()?, [10.0, 3.0, 5.0]);
        Ok(())
    });
}

/// A stream of another driver, and a buffer of another driver.
#[simulator_test]
fn other_drivers_are_errors(test: &TestDriver, _: &Simulator) {
    run(test, |test, kernels| {
        let other = Simulator::new(Config::new()).expect("the simulator starts");
        let driver: curium_driver::Driver = other.driver()?;
        let foreign: Stream = driver.device(0)?.primary_context()?.stream()?;
        let stream = test.stream();
        let x = DeviceBuffer::filled(&stream, 3, 1.0)?;
        let mut y = DeviceBuffer::zeroed(&foreign, 3)?;
        assert!(kernels.saxpy.launch(&foreign, 3, 1.0, &x, &mut y).is_err());
        assert!(kernels.saxpy.launch(&stream, 3, 1.0, &x, &mut y).is_err());
        assert_eq!(y.to_vec()?, [0.0; 3]);
        Ok(())
    });
}

/// The oldest driver has no libraries; the code is loaded as modules.
#[test]
fn oldest_driver_runs_kernels() {
    let oldest = curium_driver::CudaVersion::OLDEST_SUPPORTED;
    on_simulator(Config::new().with_driver_version(oldest), |test, _| {
        run(test, |test, kernels| {
            let stream = test.stream();
            let x = DeviceBuffer::filled(&stream, 300, 1.0)?;
            let mut y = DeviceBuffer::zeroed(&stream, 300)?;
            kernels.saxpy.launch(&stream, 300, 2.0, &x, &mut y)?;
            let blocks = kernels.block_sum.suggested_blocks(&test.context(), 0)?;
            let mut total = DeviceBuffer::zeroed(&stream, 1)?;
            let grid = Blocks::new(blocks.min(4));
            kernels.block_sum.launch(&stream, grid, &y, &mut total)?;
            assert_eq!(total.to_vec()?, [600.0]);
            Ok(())
        });
    });
}

/// Launchers call functions of the driver crate, whose names they have here.
pub(crate) mod operations {
    use curium_driver::LaunchAttributes;
    use curium_kernel::host::Threads;
    use curium_test_kernels_small::Kernels;

    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Library::from_ptx", |fixture| {
            made(Kernels::load(&fixture.device)?)
        }),
        ("Kernel::launch", |fixture| {
            let kernels = Kernels::load(&fixture.device)?;
            made(
                kernels
                    .indices
                    .launch(&fixture.other, LEN, &mut fixture.buffer)?,
            )
        }),
        ("Kernel::launch_with", |fixture| {
            let kernels = Kernels::load(&fixture.device)?;
            made(kernels.indices.launch_with(
                &fixture.other,
                Threads(LEN),
                &LaunchAttributes::new().with_priority(0),
                &mut fixture.buffer,
            )?)
        }),
        ("Kernel::max_active_blocks", |fixture| {
            let kernels = Kernels::load(&fixture.device)?;
            made(kernels.indices.suggested_blocks(&fixture.context, 0)?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Common(OPERATIONS) }
}
