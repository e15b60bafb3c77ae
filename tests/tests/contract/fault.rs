//! Injects a failure into every driver call of every operation. For every code, the error names the
//! call, nothing leaks or is freed twice, nothing panics, the context stack is unchanged, and the
//! same operation succeeds afterwards.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Call, Function, Result, observe_calls};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUcontext, CUresult, CudaVersion};
use curium_tests::{
    ContextStack, CreatedContext, TestDriver, TestResult, on_simulator, resume_panic, skip,
};
use parking_lot::Mutex;

use crate::neutrality::{STACKS, stacks};
use crate::operations::{self, Fixture, Made, Operation};

/// The injected codes: the most frequent ones, those that corrupt the context or the process, and
/// an undefined one.
const CODES: &[CUresult] = &[
    CUresult::CUDA_ERROR_INVALID_VALUE,
    CUresult::CUDA_ERROR_OUT_OF_MEMORY,
    CUresult::CUDA_ERROR_NOT_INITIALIZED,
    CUresult::CUDA_ERROR_DEINITIALIZED,
    CUresult::CUDA_ERROR_INVALID_CONTEXT,
    CUresult::CUDA_ERROR_INVALID_HANDLE,
    CUresult::CUDA_ERROR_NOT_SUPPORTED,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_SYSTEM_NOT_READY,
    CUresult::CUDA_ERROR_UNKNOWN,
    CUresult(65_000),
];

/// A failed call that an operation handles instead of returning its error.
struct Meaning {
    function: Function,
    /// The code it handles, or `None` for any.
    code: Option<CUresult>,
    /// The only operation that handles it, or `None` for all.
    operation: Option<&'static str>,
}

const CACHED_PINNED_BUFFERS: &str = crate::pinned_cache::operations::BUFFERS;

const MEANINGS: &[Meaning] = &[
    // The operation has completed; the failure to pop the context is reported, see `release`.
    Meaning {
        function: Function::cuCtxPopCurrent_v2,
        code: None,
        operation: None,
    },
    // The copy or fill is retried with a context current: see `memory/src/enqueue.rs`.
    Meaning {
        function: Function::cuMemcpyHtoDAsync_v2,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpyDtoHAsync_v2,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpyDtoDAsync_v2,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD8Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD16Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD32Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD2D8Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD2D16Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemsetD2D32Async,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpyAsync,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpy2DAsync_v2,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpy3DAsync_v2,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuMemcpyWithAttributesAsync,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    // The kernel has no more parameters.
    Meaning {
        function: Function::cuFuncGetParamInfo,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    Meaning {
        function: Function::cuKernelGetParamInfo,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: None,
    },
    // The driver does not support the attribute yet.
    Meaning {
        function: Function::cuDeviceGetAttribute,
        code: Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        operation: Some("Driver::topology"),
    },
    // An error of earlier work on the stream, unrelated to the freed memory.
    Meaning {
        function: Function::cuStreamSynchronize,
        code: None,
        operation: Some("SyncAlloc::allocate and SyncAlloc::deallocate"),
    },
    Meaning {
        function: Function::cuStreamSynchronize,
        code: None,
        operation: Some("Managed::allocate and Managed::deallocate"),
    },
    Meaning {
        function: Function::cuStreamSynchronize,
        code: None,
        operation: Some("Pinned::allocate and Pinned::deallocate"),
    },
    Meaning {
        function: Function::cuStreamSynchronize,
        code: None,
        operation: Some("Arena::deallocate"),
    },
    Meaning {
        function: Function::cuStreamSynchronize,
        code: None,
        operation: Some("Arena::trim"),
    },
    // A stream that cannot be queried is synchronized.
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some("SyncAlloc::allocate and SyncAlloc::deallocate"),
    },
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some("Managed::allocate and Managed::deallocate"),
    },
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some("Pinned::allocate and Pinned::deallocate"),
    },
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some("Arena::deallocate"),
    },
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some("Arena::trim"),
    },
    // Teardown takes place in any case, in the mode that the thread has.
    in_thread_mode("SyncAlloc::allocate and SyncAlloc::deallocate"),
    in_thread_mode("Managed::allocate and Managed::deallocate"),
    in_thread_mode("Pinned::allocate and Pinned::deallocate"),
    in_thread_mode("Pending::is_finished"),
    // The memory of other streams stays with them, see `CachingStatistics::deferrals`.
    in_thread_mode("CachingResource::allocate"),
    // A buffer that a cache has no memory for is allocated from the driver.
    Meaning {
        function: Function::cuCtxGetCurrent,
        code: Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    Meaning {
        function: Function::cuCtxPushCurrent_v2,
        code: Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    Meaning {
        function: Function::cuMemHostAlloc,
        code: Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    Meaning {
        function: Function::cuMemHostGetDevicePointer_v2,
        code: Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    Meaning {
        function: Function::cuStreamSynchronize,
        code: Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    Meaning {
        function: Function::cuStreamQuery,
        code: None,
        operation: Some(CACHED_PINNED_BUFFERS),
    },
    in_thread_mode(CACHED_PINNED_BUFFERS),
    // The number of waits depends on those of earlier runs on the streams.
    Meaning {
        function: Function::cuEventRecord,
        code: None,
        operation: Some("GraphExec::launch, of leased memory"),
    },
    Meaning {
        function: Function::cuStreamIsCapturing,
        code: None,
        operation: Some("GraphExec::launch, of leased memory"),
    },
    Meaning {
        function: Function::cuStreamWaitEvent,
        code: None,
        operation: Some("GraphExec::launch, of leased memory"),
    },
];

/// An operation that takes place although the capture mode cannot be changed.
const fn in_thread_mode(operation: &'static str) -> Meaning {
    Meaning {
        function: Function::cuThreadExchangeStreamCaptureMode,
        code: None,
        operation: Some(operation),
    }
}

/// The failing call: the `call`-th of `function`.
#[derive(Clone, Copy, Debug)]
struct Failing {
    function: Function,
    call: u64,
    code: CUresult,
}

/// The calls of an operation without injected failures.
struct Calls {
    /// Each function with its number of calls.
    calls: Vec<(Function, u64)>,
    /// The calls that fail without injection, because the operation queries optional state.
    failed: Vec<(Function, CUresult)>,
}

/// The result of the failures injected into one operation.
#[derive(Default)]
struct Tally {
    pairs: BTreeSet<(Function, u32)>,
    runs: usize,
    /// The operations for which an assertion failed.
    failed: Vec<&'static str>,
}

/// The driver of a sweep, with the calls that failed on this thread.
struct Sweep<'a> {
    test: &'a TestDriver,
    simulator: &'a Simulator,
    /// A context other than the fixture's.
    other: CUcontext,
    failed: &'a Mutex<Vec<(Function, CUresult)>>,
}

impl Meaning {
    fn applies_to(&self, operation: &str, failing: Failing) -> bool {
        self.function == failing.function
            && self.code.is_none_or(|code| code == failing.code)
            && self
                .operation
                .is_none_or(|own_tally| own_tally == operation)
    }
}

impl Sweep<'_> {
    /// Makes each call of `operation` fail with each code, for each context stack.
    fn run(&self, operation: Operation, tally: &mut Tally) {
        for stack in 0..STACKS {
            let mut fixture = Fixture::new(self.test);
            let cold = self.count_calls(operation, &mut fixture, stack);
            let warm = self.count_calls(operation, &mut fixture, stack);
            for (function, count) in cold
                .calls
                .iter()
                .copied()
                .filter(|call| is_reported(operation.0, call.0))
            {
                let again = warm
                    .calls
                    .iter()
                    .find(|call| call.0 == function)
                    .map_or(0, |call| call.1);
                for (call, code) in failures(count) {
                    let failing = Failing {
                        function,
                        call,
                        code,
                    };
                    self.leaving_nothing(failing, || {
                        // Only the first use of a fixture makes such a call, and may leave an
                        // object in it.
                        let mut new = (call > again).then(|| Fixture::new(self.test));
                        let fixture = new.as_mut().unwrap_or(&mut fixture);
                        self.fail(operation, fixture, failing, (stack, &cold.failed));
                    });
                    tally.pairs.insert((function, code.0));
                    tally.runs += 1;
                }
                operation.1(&mut fixture)
                    .map(drop)
                    .unwrap_or_else(|error| panic!("{} again: {error}", operation.0));
            }
        }
    }

    /// Asserts that `run` leaves the number of live objects unchanged once its stream-ordered
    /// deallocations have run.
    fn leaving_nothing(&self, failing: Failing, run: impl FnOnce()) {
        let before = self.simulator.live_handles();
        run();
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.simulator.live_handles() != before && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(self.simulator.live_handles(), before, "{failing:?}");
    }

    /// Returns the functions that `operation` calls, each with its number of calls, without those
    /// that destroy its result.
    fn count_calls(
        &self,
        (name, operation): Operation,
        fixture: &mut Fixture,
        stack: usize,
    ) -> Calls {
        let (current, contexts) = &stacks(fixture.context.as_raw(), self.other)[stack];
        let stack = ContextStack::push(self.test.driver(), contexts);
        take(self.failed);
        let before: Vec<_> = Function::all()
            .map(|function| self.simulator.calls(function))
            .collect();
        let outcome =
            operation(fixture).unwrap_or_else(|error| panic!("{name} with {current}: {error}"));
        let calls = Function::all()
            .zip(before)
            .map(|(function, before)| (function, self.simulator.calls(function) - before));
        let calls = calls.filter(|(_, calls)| *calls > 0).collect();
        drop(outcome);
        stack.assert_unchanged(name);
        Calls {
            calls,
            failed: take(self.failed),
        }
    }

    /// Makes one call fail during `operation`, and checks the effects.
    fn fail(
        &self,
        (name, operation): Operation,
        fixture: &mut Fixture,
        failing: Failing,
        (stack, usual): (usize, &[(Function, CUresult)]),
    ) {
        let (current, contexts) = &stacks(fixture.context.as_raw(), self.other)[stack];
        let stack = ContextStack::push(self.test.driver(), contexts);
        take(self.failed);
        self.simulator.inject(
            Fault::on(failing.function)
                .call(failing.call)
                .returns(failing.code),
        );
        let result = operation(fixture);
        self.simulator.clear_faults();
        let failed = take(self.failed)
            .into_iter()
            .filter(|call| !usual.contains(call))
            .collect::<Vec<_>>();
        let subject = format!("{name} with {current}, {failing:?}");
        assert_reported(&subject, name, failing, result, &failed);
        if failing.function == Function::cuCtxPopCurrent_v2 {
            stack.clear();
        } else {
            stack.assert_unchanged(&subject);
        }
        let later = take(self.failed);
        assert!(
            later.is_empty(),
            "{subject}: calls of dropped objects failed: {later:?}"
        );
    }
}

/// Asserts that the error names the failed call and that no other call failed: nothing was freed
/// twice or used after its destruction.
fn assert_reported(
    subject: &str,
    name: &str,
    failing: Failing,
    result: Result<Made>,
    failed: &[(Function, CUresult)],
) {
    let Failing { function, code, .. } = failing;
    if MEANINGS
        .iter()
        .any(|meaning| meaning.applies_to(name, failing))
    {
        return;
    }
    assert!(
        failed.contains(&(function, code)),
        "{subject}: the function was not called"
    );
    let others: Vec<_> = failed
        .iter()
        .filter(|call| **call != (function, code))
        .collect();
    assert!(others.is_empty(), "{subject}: {others:?} failed as well");
    let Err(error) = result else {
        panic!("{subject}: no error was reported")
    };
    assert_eq!(
        (error.function(), error.code()),
        (Some(function), Some(code)),
        "{subject}: {error}"
    );
    let text = error.to_string();
    assert!(
        text.contains(function.name()) && text.contains(&code.0.to_string()),
        "{subject}: {error}"
    );
}

/// Returns the calls of `count` that fail, with their codes: all of a few, otherwise the first two
/// and the last.
fn failures(count: u64) -> impl Iterator<Item = (u64, CUresult)> {
    let calls = if count <= 4 {
        (1..=count).collect()
    } else {
        vec![1, 2, count]
    };
    calls
        .into_iter()
        .flat_map(|call| CODES.iter().map(move |code| (call, *code)))
}

/// Returns `true` if a failure of `function` is reported during `operation`: not if it only formats
/// an error message, and not if it destroys a handle that the operation drops, which is reported
/// with the drop, see `release`.
fn is_reported(operation: &str, function: Function) -> bool {
    let ends = [
        Function::cuCtxDestroy_v2,
        Function::cuGreenCtxDestroy,
        Function::cuDeviceUnregisterAsyncNotification,
        Function::cuDevicePrimaryCtxRelease_v2,
        Function::cuStreamDestroy_v2,
        Function::cuEventDestroy_v2,
        Function::cuLinkDestroy,
        Function::cuMemFreeAsync,
        Function::cuMemFreeHost,
        Function::cuMemUnmap,
        Function::cuMemRelease,
        Function::cuMemAddressFree,
        Function::cuMemPoolDestroy,
        Function::cuArrayDestroy,
        Function::cuMipmappedArrayDestroy,
        Function::cuTexObjectDestroy,
        Function::cuSurfObjectDestroy,
        Function::cuIpcCloseMemHandle,
        Function::cuDestroyExternalMemory,
        Function::cuDestroyExternalSemaphore,
        Function::cuLibraryUnload,
        Function::cuLogsUnregisterCallback,
        Function::cuModuleUnload,
        Function::cuProfilerStop,
        Function::cuGraphDestroy,
        Function::cuGraphExecDestroy,
        Function::cuUserObjectRelease,
    ];
    let log = [Function::cuLogsCurrent, Function::cuLogsDumpToMemory];
    let reads_log =
        log.contains(&function) && !operation.contains("Log") && !operation.contains("::log");
    let names = [Function::cuGetErrorName, Function::cuGetErrorString];
    // The handle of a vector's memory is released once the memory is mapped; likewise the graph of
    // an executable.
    let dropped = [
        ("DeviceVec::close", Function::cuMemRelease),
        ("GraphExec::close", Function::cuGraphDestroy),
    ];
    let is_dropped = dropped.contains(&(operation, function));
    let is_close = operation.ends_with("::close") && !is_dropped;
    !reads_log && !names.contains(&function) && (!ends.contains(&function) || is_close)
}

fn take(failed: &Mutex<Vec<(Function, CUresult)>>) -> Vec<(Function, CUresult)> {
    std::mem::take(&mut *failed.lock())
}

/// Runs `sweep` with the list of the calls that fail on this thread.
fn watching<T>(sweep: impl FnOnce(&Mutex<Vec<(Function, CUresult)>>) -> T) -> T {
    let failed = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&failed);
    let own_tally = thread::current().id();
    let words = [Function::cuGetErrorName, Function::cuGetErrorString];
    let _guard = observe_calls(move |call: &Call<'_>| {
        if call.code != CUresult::CUDA_SUCCESS
            && thread::current().id() == own_tally
            && !words.contains(&call.function)
        {
            list.lock().push((call.function, call.code));
        }
    });
    sweep(&failed)
}

fn sweep(operation: Operation, config: Config, tally: &mut Tally) {
    on_simulator(config, |test, simulator| {
        let other = CreatedContext::new(&test.device());
        watching(|failed| {
            Sweep {
                test,
                simulator,
                other: other.as_raw(),
                failed,
            }
            .run(operation, tally);
        });
    });
}

/// Every call that fails is reported and nothing leaks.
#[test]
fn failing_calls_are_reported() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let newest = Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
    let newer = operations::newer()
        .into_iter()
        .map(|operation| (operation, newest.clone()));
    let operations: Vec<_> = operations::all()
        .into_iter()
        .map(|entry| (entry, Config::new()))
        .chain(newer)
        .collect();
    let tally = Mutex::new(Tally::default());
    let worker = || {
        while let Some((operation, config)) = operations.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut own_tally = Tally::default();
            let swept = catch_unwind(AssertUnwindSafe(|| {
                sweep(*operation, config.clone(), &mut own_tally);
            }));
            let mut all = tally.lock();
            all.runs += own_tally.runs;
            all.pairs.extend(own_tally.pairs);
            all.failed.extend(swept.err().map(|_| operation.0));
        }
    };
    thread::scope(|scope| {
        [(); 2]
            .map(|()| scope.spawn(worker))
            .map(|thread| resume_panic(thread.join()))
    });
    let Tally {
        pairs,
        runs,
        failed,
    } = tally.into_inner();
    let functions = pairs
        .iter()
        .map(|pair| pair.0)
        .collect::<BTreeSet<_>>()
        .len();
    // Written directly to standard error, because the harness captures the output of tests that
    // pass.
    let line = format!(
        "fault sweep: {} pairs of a function and an error ({functions} functions, {} errors) in {runs} runs of {} operations, {:.1} s\n",
        pairs.len(),
        CODES.len(),
        operations.len(),
        started.elapsed().as_secs_f64(),
    );
    std::io::stderr().write_all(line.as_bytes())?;
    assert!(
        failed.is_empty(),
        "the sweep failed for {failed:?}; the reasons are printed above"
    );
    assert!(pairs.len() > 1_000 && runs > 5_000, "{line}");
    Ok(())
}
