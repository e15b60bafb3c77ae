//! Code of users that runs in the middle of an operation and uses the same object: an error, and no deadlock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use curium_driver::{DevicePointer, Function, Graph, Result, Stream, observe_calls};
use curium_memory::{
    Arena, CachingOptions, CachingResource, CachingStatistics, DeviceBuffer, Resource, Staging, StagingOptions,
    SyncAlloc,
};
use curium_tests::{During, Gate, assert_reentrant, on_driver};

/// Where code of users leaves what it received.
type Seen<T> = Arc<Mutex<Option<T>>>;

fn take<T>(seen: &Seen<T>) -> T {
    seen.lock().unwrap_or_else(PoisonError::into_inner).take().expect("the user's code has run")
}

/// An upstream resource that allocates from the cache above it, and reads its figures.
struct Circular {
    cache: Seen<CachingResource>,
    seen: Seen<(Result<DevicePointer<u8>>, CachingStatistics)>,
}

// SAFETY: all memory is that of another resource.
unsafe impl Resource for Circular {
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(cache) = cache {
            let seen = (cache.allocate(stream, bytes, alignment), cache.statistics());
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        }
        SyncAlloc.allocate(stream, bytes, alignment)
    }

    unsafe fn deallocate(&self, stream: &Stream, at: DevicePointer<u8>, bytes: usize, alignment: usize) -> Result<()> {
        // SAFETY: the caller's promises are those of this resource.
        unsafe { SyncAlloc.deallocate(stream, at, bytes, alignment) }
    }
}

#[test]
fn upstream_that_allocates_from_its_cache_gets_an_error_and_the_figures() {
    on_driver(|test| {
        let (stream, cell, seen) = (test.stream(), Seen::default(), Seen::default());
        let upstream = Circular { cache: Arc::clone(&cell), seen: Arc::clone(&seen) };
        let options = CachingOptions::new().with_cache(true);
        let cache = CachingResource::with_upstream(&test.context(), &options, upstream).expect("a cache can be made");
        *cell.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache.clone());
        let buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, cache.clone()).expect("the outer one succeeds");
        let (nested, statistics) = take(&seen);
        drop(take(&cell));
        assert_reentrant(nested);
        assert_eq!((statistics.growths, statistics.reserved_bytes), (0, 0), "the growth is not over");
        assert_eq!(cache.statistics().growths, 1);
        drop(buffer);
    });
}

#[test]
fn observer_that_allocates_from_a_growing_arena_gets_an_error() {
    on_driver(|test| {
        let (stream, seen) = (test.stream(), Seen::default());
        let arena = Arc::new(Arena::new(&test.context()).expect("an arena can be made"));
        let action = {
            let (arena, stream, seen) = (Arc::clone(&arena), stream.clone(), Arc::clone(&seen));
            move || {
                let nested = arena.allocate(&stream, 1 << 20, 512).map(|_| arena.reserved_bytes());
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(nested);
            }
        };
        let guard = observe_calls(During::call_of(Function::cuMemCreate, action));
        let buffer =
            DeviceBuffer::<u8, _>::uninit_in(&stream, 1000, Arc::clone(&arena)).expect("the outer one succeeds");
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
        let mut graph = Graph::new(&context).expect("a graph can be made");
        let child = Graph::new(&context).expect("a graph can be made");
        let node = graph.add_child(&[], &child).expect("the node can be added");
        let part = Mutex::new(graph.child(node).expect("the node has a graph"));
        let seen = Seen::default();
        let action = {
            let seen = Arc::clone(&seen);
            move || {
                let nested = part.lock().unwrap_or_else(PoisonError::into_inner).add_empty(&[]).map(drop);
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
fn staged_copy_runs_no_other_job_of_the_pool_that_it_is_called_from() {
    on_driver(|test| {
        let stream = test.stream();
        let options = StagingOptions::new().with_lanes(4).with_block_bytes(1 << 16).with_threshold(1 << 20);
        Staging::set_options(stream.context(), options).expect("the options are valid");
        let source = vec![3_u32; 1 << 20];
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, source.len()).expect("memory suffices");
        let gate = Gate::on(&stream);
        buffer.as_slice_mut().fill_on(&stream, 1).expect("the stream works");
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
        let has_run = AtomicBool::new(false);
        thread::scope(|scope| {
            let copying = scope.spawn(|| {
                pool.scope(|jobs| {
                    jobs.spawn(|_| has_run.store(true, Ordering::Relaxed));
                    buffer.copy_from_slice(&source).expect("the lengths are equal");
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
