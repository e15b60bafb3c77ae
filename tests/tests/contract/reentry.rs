//! User code that runs in the middle of an operation and uses the same object: an error, and no deadlock.

mod ordering;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use curium_driver::{DevicePointer, Function, Graph, Result, Stream, observe_calls};
use curium_memory::{
    Arena, CachingOptions, CachingResource, CachingStatistics, DeviceBuffer, Resource, Staging,
    StagingOptions, SyncAlloc,
};
use curium_tests::{During, Gate, TestDriver, assert_reentrant, on_driver};

/// The shared cell in which user code stores its result.
type Seen<T> = Arc<Mutex<Option<T>>>;

fn take<T>(seen: &Seen<T>) -> T {
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
        .expect("the user's code has run")
}

/// Runs a test that would not end if a thread waited for itself.
fn without_deadlock(test: impl FnOnce(&TestDriver) + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let testing = thread::spawn(move || {
        on_driver(test);
        done.send(()).unwrap_or_default();
    });
    if is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("a thread waits for itself");
    }
    testing.join().expect("the test succeeds");
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
        let cache = self
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(cache) = cache {
            let seen = (cache.allocate(stream, bytes, alignment), cache.statistics());
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
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

#[test]
fn upstream_that_allocates_from_its_cache_gets_an_error_and_the_statistics() {
    on_driver(|test| {
        let (stream, cell, seen) = (test.stream(), Seen::default(), Seen::default());
        let upstream = Circular {
            cache: Arc::clone(&cell),
            seen: Arc::clone(&seen),
        };
        let options = CachingOptions::new().with_cache(true);
        let cache = CachingResource::with_upstream(&test.context(), &options, upstream)
            .expect("a cache can be created");
        *cell.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache.clone());
        let buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, cache.clone())
            .expect("the outer one succeeds");
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
    });
}

#[test]
fn observer_that_allocates_from_a_growing_arena_gets_an_error() {
    on_driver(|test| {
        let (stream, seen) = (test.stream(), Seen::default());
        let arena = Arc::new(Arena::new(&test.context()).expect("an arena can be created"));
        let action = {
            let (arena, stream, seen) = (Arc::clone(&arena), stream.clone(), Arc::clone(&seen));
            move || {
                let nested = arena
                    .allocate(&stream, 1 << 20, 512)
                    .map(|_| arena.reserved_bytes());
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(nested);
            }
        };
        let guard = observe_calls(During::call_of(Function::cuMemCreate, action));
        let buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, Arc::clone(&arena))
            .expect("the outer one succeeds");
        drop(guard);
        assert_reentrant(take(&seen));
        assert!(arena.reserved_bytes() >= 1000);
        drop(buffer);
    });
}

#[test]
fn observer_that_changes_a_part_of_the_graph_around_it_gets_an_error() {
    on_driver(|test| {
        let context = test.context();
        let mut graph = Graph::new(&context).expect("a graph can be created");
        let child = Graph::new(&context).expect("a graph can be created");
        let node = graph.add_child(&[], &child).expect("the node can be added");
        let part = Mutex::new(graph.child(node).expect("the node has a graph"));
        let seen = Seen::default();
        let action = {
            let seen = Arc::clone(&seen);
            move || {
                let nested = part
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add_empty(&[])
                    .map(drop);
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(nested);
            }
        };
        let guard = observe_calls(During::call_of(Function::cuGraphAddEmptyNode, action));
        graph.add_empty(&[]).expect("the outer one succeeds");
        drop(guard);
        assert_reentrant(take(&seen));
    });
}

#[test]
fn observer_that_sets_the_function_of_the_node_whose_function_is_being_set_gets_an_error() {
    on_driver(|test| {
        let counts = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let [outer, nested] = counts.each_ref().map(|count| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut child = Graph::new(&test.context()).expect("a graph can be created");
        let original = child.add_host(&[], || {}).expect("the node can be added");
        let mut graph = Graph::new(&test.context()).expect("a graph can be created");
        let node = graph.add_child(&[], &child).expect("the node can be added");
        let [mut part, same] = [(); 2].map(|()| graph.child(node).expect("the node has a graph"));
        let host = part
            .find(&child, &original)
            .expect("the embedded graph is a clone");
        let seen = Seen::default();
        let action = {
            let (seen, arguments) = (Arc::clone(&seen), Mutex::new(Some((same, nested))));
            move || {
                let arguments = arguments
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                let (mut same, nested) = arguments.expect("it is called once");
                *seen.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(same.set_host(host, nested));
            }
        };
        let guard = observe_calls(During::end_of(Function::cuGraphHostNodeSetParams, action));
        part.set_host(host, outer).expect("the outer one succeeds");
        drop(guard);
        assert_reentrant(take(&seen));
        let stream = test.stream();
        graph
            .instantiate()
            .and_then(|mut exec| exec.launch(&stream))
            .expect("it can be launched");
        stream.synchronize().expect("it runs");
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 0]);
    });
}

#[test]
fn staged_copy_runs_no_other_job_of_the_pool_that_it_is_called_from() {
    on_driver(|test| {
        let stream = test.stream();
        let options = StagingOptions::new()
            .with_threads(4)
            .with_buffer_bytes(1 << 18)
            .with_threshold(1 << 20);
        Staging::set_options(stream.context(), options).expect("the options are valid");
        let source = vec![3_u32; 1 << 20];
        let mut buffer =
            DeviceBuffer::<u32>::zeroed(&stream, source.len()).expect("memory suffices");
        let gate = Gate::on(&stream);
        buffer
            .as_slice_mut()
            .fill_on(&stream, 1)
            .expect("the stream works");
        let pool = rayon_core::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .expect("a thread can be started");
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
            copying.join().expect("the copy ran no other job");
        });
        assert!(has_run.into_inner() && buffer.to_vec().expect("the buffer can be read") == source);
    });
}

/// Makes an observer perform a staged copy to one of two leased buffers while the other is accessed and a launch waits
/// for that access.
fn copy_during_an_access(test: &TestDriver, is_first_accessed: bool) {
    let (own, launching) = (test.stream(), test.stream());
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 18)
        .with_threshold(1 << 18);
    Staging::set_options(own.context(), options).expect("the options are valid");
    let source = vec![3_u32; 1 << 19];
    let [mut first, mut second] =
        [(); 2].map(|()| DeviceBuffer::<u32>::zeroed(&own, source.len()).expect("memory suffices"));
    let graph = Graph::capture(&test.context(), |scope| {
        first.as_slice_mut().fill_on(scope, 7)?;
        second.as_slice_mut().fill_on(scope, 7)
    });
    let mut graph = graph
        .and_then(|graph| graph.instantiate())
        .expect("the graph is valid");
    let (mut accessed, copied) = if is_first_accessed {
        (first, second)
    } else {
        (second, first)
    };
    let (go, may_go) = mpsc::channel();
    let seen = Seen::default();
    let action = {
        let (seen, copied, go) = (Arc::clone(&seen), Mutex::new(copied), Mutex::new(go));
        move || {
            go.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .send(())
                .expect("the other thread listens");
            thread::sleep(Duration::from_millis(50));
            let mut copied = copied.lock().unwrap_or_else(PoisonError::into_inner);
            let nested = copied
                .copy_from_slice(&source)
                .and_then(|()| copied.to_vec())
                .map(|copy| copy == source);
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(nested);
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
            .as_slice_mut()
            .fill_on(&own, 5)
            .expect("the owner may write");
        drop(guard);
    });
    assert!(
        take(&seen).expect("the copy is made on this thread"),
        "the copy is complete"
    );
    assert!(
        accessed
            .to_vec()
            .expect("the buffer can be read")
            .iter()
            .all(|value| *value == 7),
        "the launch came last"
    );
}

#[test]
fn staged_copy_in_the_middle_of_an_access_does_not_wait_for_a_launch_that_waits_for_it() {
    without_deadlock(|test| {
        [true, false]
            .into_iter()
            .for_each(|is_first| copy_during_an_access(test, is_first));
    });
}
