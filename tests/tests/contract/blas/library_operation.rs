//! Operations of libraries on the simulator: ordered, captured and checked as kernels are.

use curium_driver::{Graph, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Fault, LibraryOperation, Operand, ReportKind};
use curium_sys::{CUresult, Function};
use curium_tests::on_simulator;

/// Enqueues an operation that adds 1 to each of `len` bytes at `address`.
fn increment(stream: &Stream, address: u64, len: usize) -> Result<(), CUresult> {
    let operand = Operand::read_write().with_run(address, len);
    let add = |operands: &mut [Vec<u8>]| operands[0].iter_mut().for_each(|byte| *byte += 1);
    // SAFETY: the tests keep the memory until the operation has run, or expect the simulator to find that they do not.
    unsafe { LibraryOperation::new("increment", [operand], add).enqueue(stream.as_raw()) }
}

fn quiet() -> Config {
    Config::new().with_checks(Checks::Quiet)
}

#[test]
fn operations_run_in_stream_order_and_count_as_launches() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3]).expect("memory suffices");
        let before = simulator.calls(Function::cuLaunchKernel);
        for _ in 0..3 {
            increment(&stream, buffer.as_pointer().as_raw() + 1, 2).expect("it is enqueued");
        }
        assert_eq!(buffer.to_vec().expect("it can be read"), [1, 5, 6]);
        assert_eq!(simulator.calls(Function::cuLaunchKernel), before + 3);
    });
}

#[test]
fn capture_makes_a_kernel_node_that_runs_at_each_launch() {
    on_simulator(Config::new(), |test, _| {
        let stream = test.stream();
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u8]).expect("memory suffices");
        stream.synchronize().expect("the copy succeeds");
        let address = buffer.as_pointer().as_raw();
        let graph = Graph::capture(&test.context(), |scope| {
            increment(scope, address, 1).expect("it is captured");
            Ok::<_, curium_driver::Error>(())
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        (0..2).for_each(|_| executable.launch(&stream).expect("it can be launched"));
        stream.synchronize().expect("the launches succeed");
        assert_eq!(buffer.to_vec().expect("it can be read"), [3]);
    });
}

#[test]
fn access_out_of_bounds_is_reported_with_the_operation_and_is_sticky() {
    on_simulator(quiet(), |test, simulator| {
        let stream = test.stream();
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 100).expect("memory suffices");
        let address = buffer.as_pointer().as_raw();
        increment(&stream, address + 96, 8).expect("it is enqueued");
        let error = stream.synchronize().expect_err("the operation fails");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
        assert_eq!(
            increment(&stream, address, 1),
            Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
        );
        let reports = simulator.reports();
        assert_eq!(
            (reports.len(), reports[0].kind),
            (1, ReportKind::IllegalAddress),
            "{reports:?}"
        );
        let text = reports[0].to_string();
        assert!(
            text.contains("`increment`") && text.contains("end of a 100-byte allocation"),
            "{text}"
        );
        simulator.reset_errors();
    });
}

#[test]
fn freed_memory_is_reported() {
    on_simulator(quiet(), |test, simulator| {
        let stream = test.stream();
        let freed = DeviceBuffer::<u8>::zeroed(&stream, 8).expect("memory suffices");
        let address = freed.as_pointer().as_raw();
        drop(freed);
        stream.synchronize().expect("the context works");
        increment(&stream, address, 8).expect("it is enqueued");
        stream.synchronize().expect_err("the operation fails");
        let text = simulator.reports()[0].to_string();
        assert!(text.contains("freed 8-byte allocation"), "{text}");
        simulator.reset_errors();
    });
}

#[test]
fn read_of_uninitialized_memory_is_reported() {
    on_simulator(
        quiet().with_uninitialized_checks(true),
        |test, simulator| {
            let stream = test.stream();
            let buffer = DeviceBuffer::<u8>::uninit(&stream, 8).expect("memory suffices");
            increment(&stream, buffer.as_pointer().as_raw(), 8).expect("it is enqueued");
            stream.synchronize().expect_err("the operation fails");
            assert_eq!(simulator.reports()[0].kind, ReportKind::Uninitialized);
            simulator.reset_errors();
        },
    );
}

#[test]
fn operations_on_two_streams_race_unless_their_bytes_are_apart() {
    on_simulator(quiet().with_race_checks(true), |test, simulator| {
        let (stream, other) = (test.stream(), test.stream());
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 64).expect("memory suffices");
        stream.synchronize().expect("the fill succeeds");
        let address = buffer.as_pointer().as_raw();
        increment(&stream, address, 16).expect("it is enqueued");
        increment(&other, address + 16, 16).expect("it is enqueued");
        test.context().synchronize().expect("they do not race");
        increment(&stream, address, 16).expect("it is enqueued");
        increment(&other, address + 8, 16).expect("it is enqueued");
        test.context().synchronize().expect_err("they race");
        let reports = simulator.reports();
        assert_eq!(reports[0].kind, ReportKind::StreamRace, "{reports:?}");
        assert!(
            reports[0].to_string().contains("increment"),
            "{}",
            reports[0]
        );
        simulator.reset_errors();
    });
}

#[test]
fn faults_of_launches_apply() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 8).expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_FAILED),
        );
        let address = buffer.as_pointer().as_raw();
        assert_eq!(
            increment(&stream, address, 8),
            Err(CUresult::CUDA_ERROR_LAUNCH_FAILED)
        );
        assert_eq!(increment(&stream, address, 8), Ok(()));
        stream.synchronize().expect("the second one runs");
    });
}

#[test]
fn stream_of_no_simulator_is_refused() {
    let operation = LibraryOperation::new("nothing", [], |_| {});
    let unknown = std::ptr::without_provenance_mut(0x1000);
    assert_eq!(
        // SAFETY: the operation accesses nothing.
        unsafe { operation.enqueue(unknown) },
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
}
