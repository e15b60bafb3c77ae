//! Operations of libraries on the simulator: ordered, captured and checked as kernels are.

use curium_driver::AsRawStream as _;
use curium_driver::{Graph, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Fault, LibraryOperation, Operand, ReportKind, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, simulator_test};

/// Enqueues an operation that adds 1 to each of `len` bytes at `address`.
fn increment(stream: &Stream, address: u64, len: usize) -> Result<(), CUresult> {
    let operand = Operand::read_write().with_run(address, len);
    // SAFETY: the tests keep the memory until the operation has run, or expect the simulator to
    // find that they do not.
    unsafe {
        LibraryOperation::new("increment", [operand], |operands: &mut [Vec<u8>]| {
            operands[0].iter_mut().for_each(|byte| *byte += 1);
        })
        .enqueue(stream.as_raw())
    }
}

fn failure(code: CUresult) -> String {
    format!("the operation was not enqueued: {code:?}")
}

fn quiet() -> Config {
    Config::new().with_checks(Checks::Quiet)
}

/// Operations run in stream order and count as launches.
#[simulator_test]
fn operations_run_in_stream_order(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3])?;
    let before = simulator.calls(Function::cuLaunchKernel);
    for _ in 0..3 {
        increment(&stream, buffer.as_pointer().as_raw() + 1, 2).map_err(failure)?;
    }
    assert_eq!(buffer.to_vec()?, [1, 5, 6]);
    assert_eq!(simulator.calls(Function::cuLaunchKernel), before + 3);
    Ok(())
}

/// A capture makes a kernel node that runs at each launch.
#[simulator_test]
fn capture_adds_a_kernel_node(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u8])?;
    stream.synchronize()?;
    let address = buffer.as_pointer().as_raw();
    let graph = Graph::capture(&test.context(), |scope| {
        increment(scope, address, 1).expect("capture failed");
        Ok::<_, curium_driver::Error>(())
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    for _ in 0..2 {
        executable.launch(&stream)?;
    }
    stream.synchronize()?;
    assert_eq!(buffer.to_vec()?, [3]);
    Ok(())
}

/// Access out of bounds is reported with the operation and is sticky.
#[simulator_test(quiet())]
fn out_of_bounds_access_names_the_operation(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 100)?;
    let address = buffer.as_pointer().as_raw();
    increment(&stream, address + 96, 8).map_err(failure)?;
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
    Ok(())
}

#[simulator_test(quiet())]
fn freed_memory_is_reported(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let freed = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
    let address = freed.as_pointer().as_raw();
    drop(freed);
    stream.synchronize()?;
    increment(&stream, address, 8).map_err(failure)?;
    stream.synchronize().expect_err("the operation fails");
    let text = simulator.reports()[0].to_string();
    assert!(text.contains("freed 8-byte allocation"), "{text}");
    simulator.reset_errors();
    Ok(())
}

#[simulator_test(quiet().with_uninitialized_checks(true))]
fn uninitialized_read_is_reported(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::uninit(&stream, 8)?;
    increment(&stream, buffer.as_pointer().as_raw(), 8).map_err(failure)?;
    stream.synchronize().expect_err("the operation fails");
    assert_eq!(simulator.reports()[0].kind, ReportKind::Uninitialized);
    simulator.reset_errors();
    Ok(())
}

/// Operations on two streams race unless their bytes are apart.
#[simulator_test(quiet().with_race_checks(true))]
fn overlapping_operations_on_two_streams_race(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 64)?;
    stream.synchronize()?;
    let address = buffer.as_pointer().as_raw();
    increment(&stream, address, 16).map_err(failure)?;
    increment(&other, address + 16, 16).map_err(failure)?;
    test.context().synchronize()?;
    increment(&stream, address, 16).map_err(failure)?;
    increment(&other, address + 8, 16).map_err(failure)?;
    test.context().synchronize().expect_err("they race");
    let reports = simulator.reports();
    assert_eq!(reports[0].kind, ReportKind::StreamRace, "{reports:?}");
    assert!(
        reports[0].to_string().contains("increment"),
        "{}",
        reports[0]
    );
    simulator.reset_errors();
    Ok(())
}

#[simulator_test]
fn launch_faults_apply(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
    simulator
        .inject(Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    let address = buffer.as_pointer().as_raw();
    assert_eq!(
        increment(&stream, address, 8),
        Err(CUresult::CUDA_ERROR_LAUNCH_FAILED)
    );
    assert_eq!(increment(&stream, address, 8), Ok(()));
    stream.synchronize()?;
    Ok(())
}

#[test]
fn unknown_stream_is_refused() {
    let operation = LibraryOperation::new("nothing", [], |_| {});
    let unknown = std::ptr::without_provenance_mut(0x1000);
    assert_eq!(
        // SAFETY: the operation accesses nothing.
        unsafe { operation.enqueue(unknown) },
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
}
