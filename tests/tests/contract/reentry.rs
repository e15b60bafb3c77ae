//! User code that runs in the middle of an operation and uses the same object: an error, and no
//! deadlock.

mod ordering;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use curium_driver::{DevicePointer, Function, Graph, Result, Stream, observe_calls};
use curium_memory::{
    Arena, CachingOptions, CachingResource, CachingStatistics, DeviceBuffer, Resource, Staging,
    StagingOptions, SyncAlloc,
};
use curium_tests::{
    During, Gate, TestDriver, TestResult, assert_reentrant, driver_test, on_driver, resume_panic,
};
use parking_lot::Mutex;

/// The shared cell in which user code stores its result.
type Seen<T> = Arc<Mutex<Option<T>>>;

fn take<T>(seen: &Seen<T>) -> T {
    seen.lock().take().expect("the user's code has run")
}

/// Runs a test that would not end if a thread waited for itself.
fn without_deadlock(test: impl FnOnce(&TestDriver) -> TestResult + Send + 'static) -> TestResult {
    let (done, is_done) = mpsc::channel();
    let testing = thread::spawn(move || {
        let outcome = on_driver(test);
        // After the timeout, nobody receives it.
        let _ = done.send(());
        outcome
    });
    if is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("a thread waits for itself");
    }
    resume_panic(testing.join())
}

/// An upstream resource that allocates from the cache above it and queries its statistics.
struct Circular {
    cache: Seen<CachingResource>,
    seen: Seen<(Result<DevicePointer<u8>>, CachingStatistics)>,
}

// SAFETY: all memory is that of another resource.
unsafe impl Resource for Circular {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let cache = self.cache.lock().clone();
        if let Some(cache) = cache {
            let seen = (cache.allocate(stream, bytes, alignment), cache.statistics());
            *self.seen.lock() = Some(seen);
        }
        SyncAlloc.allocate(stream, bytes, alignment)
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        at: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the preconditions are the caller's, as for this resource.
        unsafe { SyncAlloc.deallocate(stream, at, bytes, alignment) }
    }
}

/// A upstream that allocates from its cache gets an error and the statistics.
#[driver_test]
fn upstream_reentering_its_cache_gets_an_error(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cell = Seen::default();
    let seen = Seen::default();
    let upstream = Circular {
        cache: Arc::clone(&cell),
        seen: Arc::clone(&seen),
    };
    let options = CachingOptions::new().with_cache(true);
    let cache = CachingResource::with_upstream(&test.context(), &options, upstream)?;
    *cell.lock() = Some(cache.clone());
    let buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, cache.clone())?;
    let (nested, statistics) = take(&seen);
    drop(take(&cell));
    assert_reentrant(nested);
    assert_eq!(
        (statistics.growths, statistics.reserved_bytes),
        (0, 0),
        "the growth is not over"
    );
    assert_eq!(cache.statistics().growths, 1);
    drop(buffer);
    Ok(())
}

/// An observer that allocates from a growing arena gets an error.
#[driver_test]
fn observer_reentering_an_arena_gets_an_error(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let seen = Seen::default();
    let arena = Arc::new(Arena::new(&test.context())?);
    let action = {
        let arena = Arc::clone(&arena);
        let stream = stream.clone();
        let seen = Arc::clone(&seen);
        move || {
            let nested = arena
                .allocate(&stream, 1 << 20, 512)
                .map(|_| arena.reserved_bytes());
            *seen.lock() = Some(nested);
        }
    };
    let guard = observe_calls(During::call_of(Function::cuMemCreate, action));
    let buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, Arc::clone(&arena))?;
    drop(guard);
    assert_reentrant(take(&seen));
    assert!(arena.reserved_bytes() >= 1000);
    drop(buffer);
    Ok(())
}

/// An observer that changes a part of the graph around it gets an error.
#[driver_test]
fn observer_changing_its_graph_gets_an_error(test: &TestDriver) -> TestResult {
    let context = test.context();
    let mut graph = Graph::new(&context)?;
    let child = Graph::new(&context)?;
    let node = graph.add_child(&[], &child)?;
    let part = Mutex::new(graph.child(node)?);
    let seen = Seen::default();
    let action = {
        let seen = Arc::clone(&seen);
        move || {
            let nested = part.lock().add_empty(&[]).map(drop);
            *seen.lock() = Some(nested);
        }
    };
    let guard = observe_calls(During::call_of(Function::cuGraphAddEmptyNode, action));
    graph.add_empty(&[])?;
    drop(guard);
    assert_reentrant(take(&seen));
    Ok(())
}

/// An observer that sets the function of the node whose function is being set gets an error.
#[driver_test]
fn observer_changing_the_same_node_gets_an_error(test: &TestDriver) -> TestResult {
    let counts = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let [outer, nested] = counts.each_ref().map(|count| {
        let count = Arc::clone(count);
        move || {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut child = Graph::new(&test.context())?;
    let original = child.add_host(&[], || {})?;
    let mut graph = Graph::new(&test.context())?;
    let node = graph.add_child(&[], &child)?;
    let mut part = graph.child(node)?;
    let same = graph.child(node)?;
    let host = part.find(&child, &original)?;
    let seen = Seen::default();
    let action = {
        let seen = Arc::clone(&seen);
        let arguments = Mutex::new(Some((same, nested)));
        move || {
            let arguments = arguments.lock().take();
            let (mut same, nested) = arguments.expect("called twice");
            *seen.lock() = Some(same.set_host(host, nested));
        }
    };
    let guard = observe_calls(During::end_of(Function::cuGraphHostNodeSetParams, action));
    part.set_host(host, outer)?;
    drop(guard);
    assert_reentrant(take(&seen));
    let stream = test.stream();
    graph
        .instantiate()
        .and_then(|mut exec| exec.launch(&stream))?;
    stream.synchronize()?;
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 0]);
    Ok(())
}

/// A staged copy runs no other job of the pool that it is called from.
#[driver_test]
fn staged_copy_runs_no_other_pool_job(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 18)
        .with_threshold(1 << 20);
    Staging::set_options(stream.context(), options)?;
    let source = vec![3_u32; 1 << 20];
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, source.len())?;
    let gate = Gate::on(&stream);
    buffer.on_mut(&stream).fill(1)?;
    let pool = rayon_core::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()?;
    let has_run = AtomicBool::new(false);
    thread::scope(|scope| {
        let copying = scope.spawn(|| {
            pool.scope(|jobs| {
                jobs.spawn(|_| has_run.store(true, Ordering::Relaxed));
                buffer
                    .copy_from_slice(&source)
                    .expect("the lengths are equal");
                assert!(!has_run.load(Ordering::Relaxed), "the copy ran another job");
            });
        });
        thread::sleep(Duration::from_millis(50));
        gate.open();
        resume_panic(copying.join());
    });
    assert!(has_run.into_inner() && buffer.to_vec()? == source);
    Ok(())
}

/// Makes an observer perform a staged copy to one of two leased buffers while the other is accessed
/// and a launch waits for that access.
fn copy_during_an_access(test: &TestDriver, is_first_accessed: bool) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 18)
        .with_threshold(1 << 18);
    Staging::set_options(origin.context(), options)?;
    let source = vec![3_u32; 1 << 19];
    let mut first = DeviceBuffer::<u32>::zeroed(&origin, source.len())?;
    let mut second = DeviceBuffer::<u32>::zeroed(&origin, source.len())?;
    let graph = Graph::capture(&test.context(), |scope| {
        first.on_mut(scope).fill(7)?;
        second.on_mut(scope).fill(7)
    });
    let mut graph = graph?.instantiate()?;
    let (mut accessed, copied) = if is_first_accessed {
        (first, second)
    } else {
        (second, first)
    };
    let (go, may_go) = mpsc::channel();
    let seen = Seen::default();
    let action = {
        let seen = Arc::clone(&seen);
        let copied = Mutex::new(copied);
        let go = Mutex::new(go);
        move || {
            go.lock().send(()).expect("the other thread listens");
            thread::sleep(Duration::from_millis(50));
            let mut copied = copied.lock();
            let nested = copied
                .copy_from_slice(&source)
                .and_then(|()| copied.to_vec())
                .map(|copy| copy == source);
            *seen.lock() = Some(nested);
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            may_go.recv().expect("the observer sends");
            graph.launch(&launching).expect("the access ends");
            launching.synchronize().expect("the graph runs");
        });
        let guard = observe_calls(During::call_of(Function::cuMemsetD32Async, action));
        accessed
            .on_mut(&origin)
            .fill(5)
            .expect("the owner may write");
        drop(guard);
    });
    assert!(take(&seen)?, "the copy is complete");
    assert!(
        accessed.to_vec()?.iter().all(|value| *value == 7),
        "the launch came last"
    );
    Ok(())
}

/// A staged copy in the middle of an access does not wait for a launch that waits for it.
#[driver_test(without_deadlock)]
fn staged_copy_does_not_deadlock_with_a_launch(test: &TestDriver) -> TestResult {
    for is_first_accessed in [true, false] {
        copy_during_an_access(test, is_first_accessed)?;
    }
    Ok(())
}
