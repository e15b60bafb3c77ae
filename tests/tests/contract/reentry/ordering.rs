//! Call observers whose thread is making a stream wait for other accesses, and holds locks for
//! that.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use curium_driver::{Function, Graph, GraphExec, Stream, observe_calls};
use curium_memory::{DeviceBuffer, MappedBuffer, Staging, StagingOptions};
use curium_sim::Fault;
use curium_sys::CUresult;
use curium_tests::{During, Gate, TestDriver, TestResult, driver_test, resume_panic};
use parking_lot::Mutex;

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
            [(); 2].map(|()| DeviceBuffer::<u32>::zeroed(stream, 64).expect("allocation failed"));
        let graph = Graph::capture(&test.context(), |scope| {
            owned.on_mut(scope).fill(7)?;
            target.on_mut(scope).copy_from_device(&owned)
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

/// An owner of leased memory is dropped during the launch that waits for it.
#[driver_test(without_deadlock)]
fn leased_owner_drops_during_its_launch(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let Leasing {
        owned,
        target,
        mut exec,
    } = Leasing::new(test, &origin);
    let owned = Mutex::new(Some(owned));
    // The launch waits for the work of the other stream.
    let guard = observe_calls(During::call_of(Function::cuEventRecord, move || {
        drop(owned.lock().take().expect("called twice"));
    }));
    exec.launch(&launching)?;
    drop(guard);
    exec.launch(&launching)?;
    launching.synchronize()?;
    assert_eq!(target.to_vec()?, [7; 64]);
    Ok(())
}

/// A view of the host ends during the launch that waits for it.
#[driver_test(without_deadlock)]
fn host_view_ends_during_its_launch(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let viewed = MappedBuffer::from_slice(&origin, &[1_u32; 64])?;
    // The launch waits for the memory of the view only.
    let mut target = DeviceBuffer::<u32>::zeroed(&launching, 64)?;
    let graph = Graph::capture(&test.context(), |scope| {
        target.on_mut(scope).copy_from_device(&viewed)
    });
    let mut exec = graph.and_then(|graph| graph.instantiate())?;
    let viewed: &'static MappedBuffer<u32> = Box::leak(Box::new(viewed));
    let view = Mutex::new(Some(viewed.host_view()?));
    let has_run = Seen::default();
    let action = {
        let has_run = Arc::clone(&has_run);
        move || {
            let view = view.lock().take().expect("called twice");
            *has_run.lock() = Some(view[0]);
        }
    };
    let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
    exec.launch(&launching)?;
    drop(guard);
    assert_eq!(take(&has_run), 1);
    // SAFETY: the reference to the leaked box was in the observer, which no longer exists.
    let mut viewed = unsafe { Box::from_raw(std::ptr::from_ref(viewed).cast_mut()) };
    viewed.host_view_mut()?.fill(2);
    exec.launch(&launching)?;
    assert_eq!(target.to_vec()?, [2; 64]);
    Ok(())
}

/// An executable graph that is dropped during a launch of another leaves its memory usable.
#[driver_test(without_deadlock)]
fn executable_drops_during_another_launch(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let mut leasing = Leasing::new(test, &origin);
    let other = Graph::capture(&test.context(), |scope| leasing.owned.on_mut(scope).fill(9));
    let mut other = other.and_then(|graph| graph.instantiate())?;
    other.launch(&launching)?;
    let other = Mutex::new(Some(other));
    let guard = observe_calls(During::call_of(Function::cuEventRecord, move || {
        drop(other.lock().take().expect("called twice"));
    }));
    leasing.exec.launch(&origin)?;
    drop(guard);
    assert_eq!(leasing.values(), [7; 64]);
    Ok(())
}

/// A large copy of an observer is not staged while its thread orders an access to the memory.
#[driver_test(without_deadlock)]
fn observer_copy_in_an_access_is_not_staged(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let other = test.stream();
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 18)
        .with_threshold(1 << 18);
    Staging::set_options(origin.context(), options)?;
    let source = Arc::new(DeviceBuffer::from_slice(&origin, &vec![3_u32; 1 << 18])?);
    let mut target = DeviceBuffer::<u32>::zeroed(&other, 1 << 18)?;
    let seen = Seen::default();
    // A worker of a thread pool makes its staged copies on other threads only.
    let pool = rayon_core::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()?;
    pool.install(|| {
        let source_of_observer = Mutex::new(Some(Arc::clone(&source)));
        let seen = Arc::clone(&seen);
        let guard = observe_calls(During::call_of(Function::cuEventRecord, move || {
            let source = source_of_observer.lock().take();
            *seen.lock() = source.map(|source| source.to_vec());
        }));
        target
            .on_mut(&other)
            .copy_from_device(&*source)
            .expect("the streams work");
        drop(guard);
    });
    let copied = take(&seen)?;
    assert!(copied.iter().all(|value| *value == 3));
    assert!(target.to_vec()?.iter().all(|value| *value == 3));
    Ok(())
}

/// Access of an observer that cannot be recorded is waited for even if a wait fails.
#[driver_test(without_deadlock)]
fn unrecorded_observer_access_is_waited_for(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let other = test.stream();
    let source = Arc::new(DeviceBuffer::from_slice(&origin, &[3_u32; 64])?);
    let copied = DeviceBuffer::<u32>::zeroed(&origin, 64)?;
    let mut target = DeviceBuffer::<u32>::zeroed(&other, 64)?;
    origin.synchronize()?;
    if let Some(simulator) = test.simulator() {
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
        );
    }
    let seen = Seen::default();
    let action = {
        let used = Mutex::new(Some((Arc::clone(&source), copied, origin.clone())));
        let seen = Arc::clone(&seen);
        move || {
            let used = used.lock().take();
            let (source, mut copied, origin) = used.expect("called twice");
            let gate = Gate::on(&origin);
            let opening = thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                gate.open();
            });
            // Needs no order on this stream. The record would need a lock that this thread holds.
            let outcome = copied.on_mut(&origin).copy_from_device(&*source);
            let is_over = origin.is_finished();
            resume_panic(opening.join());
            *seen.lock() = Some((outcome, is_over, copied));
        }
    };
    let guard = observe_calls(During::call_of(Function::cuEventRecord, action));
    target.on_mut(&other).copy_from_device(&*source)?;
    drop(guard);
    let (outcome, is_over, copied) = take(&seen);
    outcome?;
    assert!(
        is_over?,
        "a later write of the source would not wait for the copy"
    );
    assert_eq!(copied.to_vec()?, [3; 64]);
    Ok(())
}
