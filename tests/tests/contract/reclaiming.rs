//! [`Reclaiming`]: out-of-memory recovery, step by step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::{DevicePointer, Error, Function, Result, Stream};
use curium_memory::{
    CachingOptions, CachingResource, LimitedResource, Reclaiming, RecoveryStep,
    RecoveryStepStatistics, Resource, StreamOrdered, SyncAlloc,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, on_driver, on_simulator, simulator_test,
};
use parking_lot::Mutex;

const BUDGET: u64 = 64 << 20;
const MOST: usize = 40 << 20;

fn recovering(test: &TestDriver) -> TestResult<Reclaiming<CachingResource>> {
    let options = CachingOptions::new().with_cache(true);
    Ok(Reclaiming::new(CachingResource::with_options(
        &test.context(),
        &options,
    )?))
}

fn free(resource: &dyn Resource, stream: &Stream, pointer: DevicePointer<u8>, bytes: usize) {
    // SAFETY: the tests pass memory of this resource that only work on this stream uses.
    unsafe { resource.deallocate(stream, pointer, bytes, 256) }.expect("deallocation failed");
}

fn tried(statistics: RecoveryStepStatistics) -> (u64, u64, u64) {
    (statistics.tried, statistics.helped, statistics.failed)
}

/// Runs `test` with little device memory.
fn when_short(test: impl FnOnce(&TestDriver, &Simulator) -> TestResult) -> TestResult {
    on_simulator(Config::new().with_memory_budget(BUDGET), test)
}

/// Purging helps when the memory was freed but not joined.
#[simulator_test]
fn purge_recovers_freed_memory(test: &TestDriver, simulator: &Simulator) -> TestResult {
    // An upstream resource that fails once, as if another thread freed memory in between.
    simulator
        .inject(Fault::on(Function::cuMemAllocAsync).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    let resource = Reclaiming::new(StreamOrdered);
    let stream = test.stream();
    let pointer = resource.allocate(&stream, 100, 256)?;
    free(&resource, &stream, pointer, 100);
    let statistics = resource.statistics();
    assert_eq!(
        (tried(statistics.purge), tried(statistics.synchronize)),
        ((1, 1, 0), (0, 0, 0))
    );
    Ok(())
}

/// Synchronizing helps when other work holds the memory.
#[driver_test(when_short)]
fn synchronize_recovers_memory_in_use(test: &TestDriver, _: &Simulator) -> TestResult {
    let resource = recovering(test)?;
    let stream = test.stream();
    let other = test.stream();
    let pointer = resource.allocate(&stream, MOST, 256)?;
    let gate = Gate::on(&stream);
    free(&resource, &stream, pointer, MOST);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.open();
        });
        let again = resource
            .allocate(&other, MOST, 256)
            .expect("the work on the other stream ends");
        assert_eq!(again, pointer);
        free(&resource, &other, again, MOST);
    });
    let statistics = resource.statistics();
    assert_eq!(
        (tried(statistics.purge), tried(statistics.synchronize)),
        ((1, 0, 0), (1, 1, 0))
    );
    Ok(())
}

/// Trimming helps when the device's pool holds the memory.
#[driver_test(when_short)]
fn trim_recovers_pool_memory(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    // A pool that does not release its memory at a synchronization.
    let device = test.device().as_raw();
    let driver = test.driver();
    let mut pool = std::ptr::null_mut();
    let mut threshold = u64::MAX;
    let attribute = curium_sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: `pool` is valid for writes.
    unsafe { curium_driver::call!(driver, cuDeviceGetMemPool(&raw mut pool, device)) }?;
    // SAFETY: the pool is live, and the attribute is a 64-bit number.
    unsafe {
        curium_driver::call!(
            driver,
            cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast())
        )
    }?;
    let pointer = StreamOrdered.allocate(&stream, MOST, 256)?;
    free(&StreamOrdered, &stream, pointer, MOST);
    stream.synchronize()?;
    let resource = Reclaiming::new(SyncAlloc);
    let pointer = resource.allocate(&stream, MOST, 256)?;
    free(&resource, &stream, pointer, MOST);
    let statistics = resource.statistics();
    assert_eq!(
        (
            tried(statistics.purge),
            tried(statistics.synchronize),
            tried(statistics.trim)
        ),
        ((1, 0, 0), (1, 0, 0), (1, 1, 0))
    );
    assert_eq!(simulator.calls(Function::cuMemPoolTrimTo), 1);
    Ok(())
}

/// Reclaimers are called by priority until the allocation succeeds.
#[driver_test(when_short)]
fn reclaimers_are_called_by_priority(test: &TestDriver, _: &Simulator) -> TestResult {
    let resource = Arc::new(recovering(test)?);
    let stream = test.stream();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let held = Arc::new(Mutex::new(vec![resource.allocate(&stream, MOST, 256)?]));
    let register = |priority, frees: bool| {
        let asked = Arc::clone(&asked);
        let held = Arc::clone(&held);
        let stream = stream.clone();
        let inner = resource.inner().clone();
        resource.register(priority, move |bytes| {
            asked.lock().push((priority, bytes));
            if !frees {
                return 0;
            }
            let blocks = std::mem::take(&mut *held.lock());
            blocks
                .iter()
                .for_each(|pointer| free(&inner, &stream, *pointer, MOST));
            blocks.len() * MOST
        })
    };
    let _guards = [
        register(1, true),
        register(5, false),
        register(3, false),
        register(-2, true),
    ];
    drop(register(9, false));
    let pointer = resource.allocate(&stream, MOST, 256)?;
    free(&*resource, &stream, pointer, MOST);
    let asked = asked.lock().clone();
    assert_eq!(asked, [(5, MOST), (3, MOST), (1, MOST)]);
    assert_eq!(tried(resource.statistics().reclaim), (1, 1, 0));
    Ok(())
}

#[driver_test(when_short)]
fn failing_step_is_skipped_and_reported(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = recovering(test)?;
    let stream = test.stream();
    let pointer = resource.allocate(&stream, MOST, 256)?;
    for function in [Function::cuCtxSynchronize_v2, Function::cuMemPoolTrimTo] {
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
    }
    let error = resource
        .allocate(&stream, MOST, 256)
        .expect_err("there is no memory");
    let Error::OutOfMemory(figures) = &error else {
        panic!("{error:?} has no figures")
    };
    let attempts: Vec<_> = figures
        .attempts
        .iter()
        .map(|attempt| (attempt.what, attempt.error.is_some()))
        .collect();
    assert_eq!(
        attempts,
        [
            ("purging", false),
            ("synchronizing", true),
            ("trimming", true)
        ]
    );
    assert!(error.is_out_of_memory(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("; tried: purging, synchronizing (cuCtxSynchronize_v2: "),
        "{text}"
    );
    let statistics = resource.statistics();
    assert_eq!(
        (
            tried(statistics.purge),
            tried(statistics.synchronize),
            tried(statistics.trim)
        ),
        ((1, 0, 0), (1, 0, 1), (1, 0, 1))
    );
    free(&resource, &stream, pointer, MOST);
    Ok(())
}

#[driver_test(when_short)]
fn failing_step_does_not_keep_the_next_from_helping(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = Arc::new(recovering(test)?);
    let stream = test.stream();
    let pointer = resource.allocate(&stream, MOST, 256)?;
    simulator.inject(
        Fault::on(Function::cuCtxSynchronize_v2).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
    );
    let inner = resource.inner().clone();
    let on = stream.clone();
    let _guard = resource.register(0, move |_| {
        free(&inner, &on, pointer, MOST);
        MOST
    });
    let again = resource.allocate(&stream, MOST, 256)?;
    free(&*resource, &stream, again, MOST);
    assert_eq!(tried(resource.statistics().synchronize), (1, 0, 1));
    assert_eq!(tried(resource.statistics().reclaim), (1, 1, 0));
    Ok(())
}

/// An upstream resource that is out of memory until one recovery step was tried, and of which one
/// step fails.
struct Stubborn {
    helps: RecoveryStep,
    fails: Option<RecoveryStep>,
    tried: Mutex<Vec<RecoveryStep>>,
}

impl Stubborn {
    fn does(&self, step: RecoveryStep) -> Result<()> {
        self.tried.lock().push(step);
        let is_failing = self.fails == Some(step)
            || self.fails == Some(RecoveryStep::Reclaim) && self.has_begun_to_reclaim();
        if is_failing {
            Err(Error::argument("Stubborn", format!("{step:?} fails")))
        } else {
            Ok(())
        }
    }

    /// Returns `true` if the last step has begun, which repeats the others once.
    fn has_begun_to_reclaim(&self) -> bool {
        self.tried.lock().len() > 3
    }

    fn has_memory(&self) -> bool {
        match self.helps {
            RecoveryStep::Reclaim => self.has_begun_to_reclaim(),
            helps => self.tried.lock().contains(&helps),
        }
    }
}

// SAFETY: all memory is that of the driver's pool.
unsafe impl Resource for Stubborn {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        if self.has_memory() {
            StreamOrdered.allocate(stream, bytes, alignment)
        } else {
            LimitedResource::new(StreamOrdered, 1).allocate(stream, bytes, alignment)
        }
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the preconditions are the caller's.
        unsafe { StreamOrdered.deallocate(stream, pointer, bytes, alignment) }
    }

    fn purge(&self) -> Result<()> {
        self.does(RecoveryStep::Purge)
    }

    fn synchronize(&self, _: &Stream) -> Result<()> {
        self.does(RecoveryStep::Synchronize)
    }

    fn trim(&self, _: &Stream, _: usize) -> Result<()> {
        self.does(RecoveryStep::Trim)
    }
}

/// Each step helps whichever fails before it or itself.
#[test]
fn recovery_tolerates_failures() -> TestResult {
    const STEPS: [RecoveryStep; 4] = [
        RecoveryStep::Purge,
        RecoveryStep::Synchronize,
        RecoveryStep::Trim,
        RecoveryStep::Reclaim,
    ];
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        for (helps, fails) in (0..4).flat_map(|helps| (0..5).map(move |fails| (helps, fails))) {
            let source = Stubborn {
                helps: STEPS[helps],
                fails: STEPS.get(fails).copied(),
                tried: Mutex::default(),
            };
            let resource = Reclaiming::new(source);
            let _guard = resource.register(0, |bytes| bytes);
            // The device's pool is trimmed too, even if trimming the upstream resource fails.
            let pointer = test.assert_calls(
                Function::cuMemPoolTrimTo,
                [0, 0, 1, 2][helps],
                || -> TestResult<_> { Ok(resource.allocate(&stream, 100, 256)?) },
            )?;
            free(&resource, &stream, pointer, 100);
            let statistics = resource.statistics();
            let counted = [
                statistics.purge,
                statistics.synchronize,
                statistics.trim,
                statistics.reclaim,
            ]
            .map(tried);
            for (step, counted) in counted.into_iter().enumerate() {
                let is_reached = step <= helps;
                // The last step repeats the others, and therefore fails if one of them fails.
                let has_failed = is_reached && (step == fails || (step == 3 && fails < 3));
                let expected = (
                    u64::from(is_reached),
                    u64::from(step == helps),
                    u64::from(has_failed),
                );
                assert_eq!(
                    counted, expected,
                    "{:?} when {:?} helps and {fails} fails",
                    STEPS[step], STEPS[helps]
                );
            }
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn panicking_reclaimer_leaves_recovery_usable(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = Stubborn {
        helps: RecoveryStep::Reclaim,
        fails: None,
        tried: Mutex::default(),
    };
    let resource = Reclaiming::new(source);
    let guard = resource.register(0, |_| panic!("this panic is part of the test"));
    let attempt = || resource.allocate(&stream, 100, 256).map(|_| ());
    assert!(
        catch_unwind(AssertUnwindSafe(attempt)).is_err(),
        "the panic propagates"
    );
    drop(guard);
    resource.inner().tried.lock().clear();
    let _guard = resource.register(0, |bytes| bytes);
    let pointer = resource.allocate(&stream, 100, 256)?;
    free(&resource, &stream, pointer, 100);
    Ok(())
}

#[driver_test(when_short)]
fn unusable_context_ends_recovery(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = recovering(test)?;
    let stream = test.stream();
    let pointer = resource.allocate(&stream, MOST, 256)?;
    simulator.inject(
        Fault::on(Function::cuCtxSynchronize_v2).returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    let error = resource
        .allocate(&stream, MOST, 256)
        .expect_err("the context is lost");
    assert!(error.is_sticky(), "{error}");
    assert_eq!(tried(resource.statistics().synchronize), (1, 0, 1));
    assert_eq!(resource.statistics().trim.tried, 0);
    free(&resource, &stream, pointer, MOST);
    Ok(())
}

/// A reclaimer that allocates does not start another recovery.
#[driver_test(when_short)]
fn reclaimer_allocation_starts_no_recovery(test: &TestDriver, _: &Simulator) -> TestResult {
    let resource = Arc::new(recovering(test)?);
    let stream = test.stream();
    let pointer = resource.allocate(&stream, MOST, 256)?;
    let calls = Arc::new(AtomicUsize::new(0));
    let weak = Arc::downgrade(&resource);
    let on = stream.clone();
    let count = Arc::clone(&calls);
    let _guard = resource.register(0, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let resource = weak.upgrade().expect("the resource is querying its source");
        resource
            .allocate(&on, MOST, 256)
            .expect_err("there is no memory");
        1
    });
    resource
        .allocate(&stream, MOST, 256)
        .expect_err("there is no memory");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    free(&*resource, &stream, pointer, MOST);
    Ok(())
}

#[driver_test]
fn other_errors_and_success_start_no_recovery(test: &TestDriver) -> TestResult {
    let resource = Reclaiming::new(StreamOrdered);
    let stream = test.stream();
    let pointer = resource.allocate(&stream, 100, 256)?;
    free(&resource, &stream, pointer, 100);
    resource
        .allocate(&stream, 0, 256)
        .expect_err("the request is refused");
    assert_eq!(
        resource.statistics(),
        curium_memory::RecoveryStatistics::default()
    );
    let total = test.device().total_memory()?;
    let error = resource
        .allocate(&stream, total * 2, 256)
        .expect_err("no device holds twice its memory");
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(tried(resource.statistics().trim), (1, 0, 0));
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::{Reclaiming, StreamOrdered};

    use crate::operations::{Operation, Operations, allocate_and_free, upkeep};

    const SOLITARY: &[Operation] = &[
        (
            "Reclaiming::allocate and Reclaiming::deallocate",
            |fixture| allocate_and_free(fixture, Reclaiming::new(StreamOrdered)),
        ),
        (
            "Reclaiming::trim and Reclaiming::synchronize and Reclaiming::purge",
            |fixture| upkeep(fixture, Reclaiming::new(StreamOrdered)),
        ),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
