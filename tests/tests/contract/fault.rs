//! Whichever call of the driver fails: the error names it, nothing leaks, nothing panics, the context stack is as it was, and the
//! same operation works afterwards.

use curium_driver::Function;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{ContextStack, on_simulator};

use crate::neutrality::with_each_stack;
use crate::operations::{self, Fixture, Made, Operation};

/// A code that no operation treats in its own way.
const CODE: CUresult = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;

/// The functions that `operation` calls, each with how often, without those that end what it made.
fn calls_of(simulator: &Simulator, operation: impl FnOnce() -> Made) -> Vec<(Function, u64)> {
    let before: Vec<_> = Function::all().map(|function| simulator.calls(function)).collect();
    let made = operation();
    let called = Function::all().zip(before).map(|(function, before)| (function, simulator.calls(function) - before));
    let called = called.filter(|(_, calls)| *calls > 0).collect();
    drop(made);
    called
}

/// Lets one call of `function` fail during `operation`, and checks what comes of it.
fn sweep_one(simulator: &Simulator, fixture: &mut Fixture, (name, operation): Operation, fault: (Function, u64)) {
    let (function, call) = fault;
    simulator.inject(Fault::on(function).call(call).returns(CODE));
    let result = operation(fixture);
    simulator.clear_faults();
    match result {
        // The operation has done what it is there for; that the context could not be left is reported, see `release`.
        Ok(made) if function == Function::cuCtxPopCurrent_v2 => drop(made),
        Ok(_) => panic!("{name}: call {call} of {function} failed, and nobody was told"),
        Err(error) => {
            assert_eq!((error.function(), error.code()), (Some(function), Some(CODE)), "{name}: {error}");
            assert!(error.to_string().contains(function.name()), "{name}: {error}");
        }
    }
}

/// How many handles are live once frees that were put on streams have run.
fn settled(simulator: &Simulator, expected: u64) -> u64 {
    for _ in 0..2000 {
        if simulator.live_handles().total() == expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    simulator.live_handles().total()
}

#[test]
fn every_call_that_fails_is_reported_and_nothing_leaks() {
    on_simulator(Config::new(), |test, simulator| {
        let context = test.context();
        let mut swept = 0;
        with_each_stack(test, &context, |current, contexts| {
            for (name, operation) in operations::all() {
                let stack = ContextStack::push(test.driver(), contexts);
                let mut fixture = Fixture::new(test);
                let calls = calls_of(simulator, || {
                    operation(&mut fixture).unwrap_or_else(|error| panic!("{name} with {current}: {error}"))
                });
                stack.assert_unchanged();
                // What is dropped within the operation has no caller to tell: see `release`.
                let told = |function| !is_end(name, function) && !names_errors(name, function);
                for (function, count) in calls.into_iter().filter(|(function, _)| told(*function)) {
                    for call in 1..=count {
                        let live = simulator.live_handles();
                        let mut fixture = Fixture::new(test);
                        let stack = ContextStack::push(test.driver(), contexts);
                        sweep_one(simulator, &mut fixture, (name, operation), (function, call));
                        if function == Function::cuCtxPopCurrent_v2 {
                            stack.clear();
                        } else {
                            stack.assert_unchanged();
                        }
                        operation(&mut fixture).map(drop).unwrap_or_else(|error| panic!("{name} again: {error}"));
                        drop(fixture);
                        let left = settled(simulator, live.total());
                        assert_eq!(left, live.total(), "{name}, {function} failed: {}", simulator.live_handles());
                        swept += 1;
                    }
                }
            }
        });
        assert!(swept > 200, "the sweep reached {swept} calls only");
    });
}

/// Whether `function` ends a handle that `operation` only dropped.
fn is_end(operation: &str, function: Function) -> bool {
    let ends = [
        Function::cuCtxDestroy_v2,
        Function::cuGreenCtxDestroy,
        Function::cuDeviceUnregisterAsyncNotification,
        Function::cuDevicePrimaryCtxRelease_v2,
        Function::cuStreamDestroy_v2,
        Function::cuEventDestroy_v2,
        Function::cuMemFreeAsync,
        Function::cuMemFreeHost,
        Function::cuLibraryUnload,
        Function::cuLogsUnregisterCallback,
        Function::cuModuleUnload,
        Function::cuProfilerStop,
    ];
    ends.contains(&function) && !operation.ends_with("::close")
}

/// Whether `function` only gives an error its words within `operation`.
fn names_errors(operation: &str, function: Function) -> bool {
    let reads_log = function == Function::cuLogsDumpToMemory && !operation.starts_with("LogReader");
    reads_log || [Function::cuGetErrorName, Function::cuGetErrorString].contains(&function)
}
