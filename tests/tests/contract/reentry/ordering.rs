//! Call observers whose thread is making a stream wait for other accesses, and holds locks for that.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use curium_driver::{Function, Graph, GraphExec, Stream, observe_calls};
use curium_memory::{DeviceBuffer, MappedBuffer, Staging, StagingOptions};
use curium_sim::Fault;
use curium_sys::CUresult;
use curium_tests::{During, Gate, TestDriver};

use super::{Seen, take, without_deadlock};

/// A graph that fills a buffer and copies it to another one.
struct Leasing {
    owned: DeviceBuffer<u32>,
    target: DeviceBuffer<u32>,
    exec: GraphExec,
}

impl Leasing {
    fn new(test: &TestDriver, stream: &Stream) -> Self {
        let [mut owned, mut target] =
            [(); 2].map(|()| DeviceBuffer::<u32>::zeroed(stream, 64).expect("memory suffices"));
        let graph = Graph::capture(&test.context(), |scope| {
            owned.as_slice_mut().fill_on(scope, 7)?;
            target.as_slice_mut().copy_from_device_on(scope, &owned)
        });
        let exec = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        Self {
            owned,
            target,
            exec,
        }
    }

    fn values(&self) -> Vec<u32> {
        self.target.to_vec().expect("the launches end")
    }
}

#[test]
fn owner_of_leased_memory_is_dropped_during_the_launch_that_waits_for_it() {
    without_deadlock(|test| {
        let (own, launching) = (test.stream(), test.stream());
        let Leasing {
            owned,
            target,
            mut exec,
        } = Leasing::new(test, &own);
        let owned = Mutex::new(Some(owned));
        let action = move || {
            drop(
                owned
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take()
                    .expect("it is called once"),
            );
        };
        // The launch waits for the work of the other stream.
        let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
        exec.launch(&launching).expect("the graph keeps the memory");
        drop(guard);
        exec.launch(&launching).expect("the graph keeps the memory");
        launching.synchronize().expect("the graph runs");
        assert_eq!(target.to_vec().expect("the launches end"), [7; 64]);
    });
}

#[test]
fn view_of_the_host_ends_during_the_launch_that_waits_for_it() {
    without_deadlock(|test| {
        let (own, launching) = (test.stream(), test.stream());
        let viewed = MappedBuffer::from_slice(&own, &[1_u32; 64]).expect("memory suffices");
        // The launch waits for the memory of the view only.
        let mut target = DeviceBuffer::<u32>::zeroed(&launching, 64).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            target.as_slice_mut().copy_from_device_on(scope, &viewed)
        });
        let mut exec = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        let viewed: &'static MappedBuffer<u32> = Box::leak(Box::new(viewed));
        let view = Mutex::new(Some(viewed.host_view().expect("nothing writes it")));
        let has_run = Seen::default();
        let action = {
            let has_run = Arc::clone(&has_run);
            move || {
                let view = view
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take()
                    .expect("it is called once");
                *has_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(view[0]);
            }
        };
        let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
        exec.launch(&launching)
            .expect("the graph only reads what the host reads");
        drop(guard);
        assert_eq!(take(&has_run), 1);
        // SAFETY: the reference to the leaked box was in the observer, which no longer exists.
        let mut viewed = unsafe { Box::from_raw(std::ptr::from_ref(viewed).cast_mut()) };
        viewed
            .host_view_mut()
            .expect("no other view exists")
            .fill(2);
        exec.launch(&launching).expect("no view exists");
        assert_eq!(target.to_vec().expect("the launches end"), [2; 64]);
    });
}

#[test]
fn executable_graph_that_is_dropped_during_a_launch_of_another_leaves_its_memory_usable() {
    without_deadlock(|test| {
        let (own, launching) = (test.stream(), test.stream());
        let mut leasing = Leasing::new(test, &own);
        let other = Graph::capture(&test.context(), |scope| {
            leasing.owned.as_slice_mut().fill_on(scope, 9)
        });
        let mut other = other
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        other.launch(&launching).expect("it can be launched");
        let other = Mutex::new(Some(other));
        let action = move || {
            drop(
                other
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take()
                    .expect("it is called once"),
            );
        };
        let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
        leasing.exec.launch(&own).expect("it can be launched");
        drop(guard);
        assert_eq!(leasing.values(), [7; 64]);
    });
}

#[test]
fn large_copy_of_an_observer_is_not_staged_while_its_thread_orders_an_access_to_the_memory() {
    without_deadlock(|test| {
        let (own, other) = (test.stream(), test.stream());
        let options = StagingOptions::new()
            .with_threads(4)
            .with_buffer_bytes(1 << 18)
            .with_threshold(1 << 18);
        Staging::set_options(own.context(), options).expect("the options are valid");
        let source = Arc::new(
            DeviceBuffer::from_slice(&own, &vec![3_u32; 1 << 18]).expect("memory suffices"),
        );
        let mut target = DeviceBuffer::<u32>::zeroed(&other, 1 << 18).expect("memory suffices");
        let seen = Seen::default();
        // A worker of a thread pool makes its staged copies on other threads only.
        let pool = rayon_core::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .expect("a thread can be started");
        pool.install(|| {
            let (source_of_observer, seen) =
                (Mutex::new(Some(Arc::clone(&source))), Arc::clone(&seen));
            let guard = observe_calls(During::call_of(Function::cuEventRecord, move || {
                let source = source_of_observer
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                *seen.lock().unwrap_or_else(PoisonError::into_inner) =
                    source.map(|source| source.to_vec());
            }));
            target
                .as_slice_mut()
                .copy_from_device_on(&other, &*source)
                .expect("the streams work");
            drop(guard);
        });
        let copied = take(&seen).expect("the stream of the memory needs no order");
        assert!(copied.iter().all(|value| *value == 3));
        assert!(
            target
                .to_vec()
                .expect("it can be read")
                .iter()
                .all(|value| *value == 3)
        );
    });
}

#[test]
fn access_of_an_observer_that_cannot_be_recorded_is_waited_for_even_if_a_wait_fails() {
    without_deadlock(|test| {
        let (own, other) = (test.stream(), test.stream());
        let source =
            Arc::new(DeviceBuffer::from_slice(&own, &[3_u32; 64]).expect("memory suffices"));
        let copied = DeviceBuffer::<u32>::zeroed(&own, 64).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(&other, 64).expect("memory suffices");
        own.synchronize().expect("the fills succeed");
        if let Some(simulator) = test.simulator() {
            simulator.inject(
                Fault::on(Function::cuStreamSynchronize)
                    .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
            );
        }
        let seen = Seen::default();
        let action = {
            let (used, seen) = (
                Mutex::new(Some((Arc::clone(&source), copied, own.clone()))),
                Arc::clone(&seen),
            );
            move || {
                let used = used.lock().unwrap_or_else(PoisonError::into_inner).take();
                let (source, mut copied, own) = used.expect("it is called once");
                let gate = Gate::on(&own);
                let opening = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(50));
                    gate.open();
                });
                // Needs no order on this stream. The record would need a lock that this thread holds.
                let made = copied.as_slice_mut().copy_from_device_on(&own, &*source);
                let is_over = own.is_finished();
                opening.join().expect("the thread does not panic");
                *seen.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some((made, is_over, copied));
            }
        };
        let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
        target
            .as_slice_mut()
            .copy_from_device_on(&other, &*source)
            .expect("the streams work");
        drop(guard);
        let (made, is_over, copied) = take(&seen);
        made.expect("the copy needs no wait");
        assert!(
            is_over.expect("the stream works"),
            "a later write of the source would not wait for the copy"
        );
        assert_eq!(copied.to_vec().expect("it can be read"), [3; 64]);
    });
}
