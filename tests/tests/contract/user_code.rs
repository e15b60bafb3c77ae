//! User code that panics, blocks or forgets, and the work of others that goes on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::extend::{self, TaskWaker};
use curium_driver::hazard::Accesses;
use curium_driver::{
    Call, Event, EventFlags, Function, Graph, GraphExec, Result, Stream, observe_calls,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, resume_panic, simulator_test};
use parking_lot::Mutex;

/// The time limit of an expected event on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls `condition` until it is `true`.
fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(waker))
}

/// A waker that reports that it was woken, and then blocks until the sender is dropped.
struct Blocking {
    woken: AtomicBool,
    end: Mutex<mpsc::Receiver<()>>,
}

impl Blocking {
    fn new() -> (Arc<Self>, mpsc::Sender<()>) {
        let (sender, receiver) = mpsc::channel();
        let waker = Self {
            woken: AtomicBool::new(false),
            end: Mutex::new(receiver),
        };
        (Arc::new(waker), sender)
    }
}

impl Wake for Blocking {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let end = self.end.lock();
        // Ends when the sender is dropped.
        let _ = end.recv();
    }
}

/// Wakers that block, more than one at a time, delay neither other streams' futures nor those of
/// events.
#[driver_test]
fn blocked_wakers_do_not_stall_other_futures(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let mut blocked = Vec::new();
    for _ in 0..3 {
        let (waker, end) = Blocking::new();
        let mut future = stream.completion();
        assert!(poll_once(&mut future, &Waker::from(Arc::clone(&waker))).is_pending());
        blocked.push((waker, end, future));
    }
    gate.open();
    for (waker, _, _) in &blocked {
        assert!(eventually(|| waker.woken.load(Ordering::Acquire)));
    }
    let other = test.stream();
    let gate = Gate::on(&other);
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    event.record(&other)?;
    let of_event = event.completion();
    let of_stream = other.completion();
    let of_function = other.launch_host_function(|| 7)?;
    gate.open();
    pollster::block_on(of_event)?;
    pollster::block_on(of_stream)?;
    assert_eq!(pollster::block_on(of_function)?, 7);
    for (waker, end, mut future) in blocked {
        drop(end);
        let result = poll_once(&mut future, &Waker::from(waker));
        assert!(matches!(result, Poll::Ready(Ok(()))));
    }
    Ok(())
}

#[test]
fn task_is_woken_in_the_background() {
    let (waker, end) = Blocking::new();
    drop(end);
    extend::wake(TaskWaker::new(Waker::from(Arc::clone(&waker))));
    assert!(eventually(|| waker.woken.load(Ordering::Acquire)));
}

/// Panics when it is woken, cloned or dropped as often as it can.
struct PanicsWhenWoken(AtomicUsize);

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("this panic is part of the test")
    }
}

#[driver_test]
fn waker_that_panics_does_not_stop_other_futures(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let panicking = Arc::new(PanicsWhenWoken(AtomicUsize::new(0)));
    let gate = Gate::on(&stream);
    let mut future = stream.completion();
    let waker = Waker::from(Arc::clone(&panicking));
    assert!(poll_once(&mut future, &waker).is_pending());
    let other = stream.completion();
    gate.open();
    pollster::block_on(other)?;
    assert!(eventually(|| panicking.0.load(Ordering::Relaxed) == 1));
    assert!(poll_once(&mut future, &waker).is_ready());
    Ok(())
}

/// A value whose destructor panics.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("this panic is part of the test")
        }
    }
}

/// A stream of a capture, which outlives the capture.
struct Outliving(&'static Stream);

impl Outliving {
    fn new(stream: &Stream) -> Self {
        Self(Box::leak(Box::new(stream.clone())))
    }

    /// Drops the stream.
    ///
    /// # Safety
    ///
    /// It is not borrowed any more.
    unsafe fn end(self) {
        // SAFETY: the reference came from a `Box`, and the caller guarantees that it is the last
        // one.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.0).cast_mut()) });
    }
}

/// A thread that holds an access operation of a capture cannot wait for itself at the end of the
/// capture.
#[driver_test]
fn guard_that_outlives_a_capture_closure_is_an_error(test: &TestDriver) -> TestResult {
    let mut retained = None;
    let captured = Graph::capture(&test.context(), |scope| -> Result<()> {
        let stream = Outliving::new(scope);
        retained = Some((stream.0.enqueue("test")?, stream));
        Ok(())
    });
    let error = captured.map(drop).expect_err("the operation is alive");
    assert!(error.to_string().contains("`Operation`"), "{error}");

    let (mut operation, stream) = retained.ok_or("the closure was not called")?;
    let accesses = Accesses::leasable(&test.stream());
    let error = accesses
        .before_write(&mut operation)
        .expect_err("the capture has ended");
    assert!(error.to_string().contains("has ended"), "{error}");
    drop(operation);
    // SAFETY: the operation is dropped.
    unsafe { stream.end() };

    let graph = Graph::capture(&test.context(), |_| Ok::<_, curium_driver::Error>(()))?;
    assert!(graph.nodes()?.is_empty());
    Ok(())
}

/// Forgetting the operation, or panicking while it is alive, ends the capture for the same reason.
#[driver_test]
fn forgotten_guard_does_not_hang_its_own_thread(test: &TestDriver) -> TestResult {
    for panics in [false, true] {
        let mut retained = None;
        let captured = catch_unwind(AssertUnwindSafe(|| {
            Graph::capture(&test.context(), |scope| -> Result<()> {
                let stream = Outliving::new(scope);
                std::mem::forget(stream.0.enqueue("test")?);
                retained = Some(stream);
                assert!(!panics, "this panic is part of the test");
                Ok(())
            })
        }));
        assert_eq!(captured.is_err(), panics);
        assert!(!matches!(captured, Ok(Ok(_))), "the operation is forgotten");
        // SAFETY: the operation is forgotten, and nothing else borrows the stream.
        unsafe { retained.ok_or("the closure was not called")?.end() };
    }
    Ok(())
}

/// `release` is for destructors, and is safe: it permits waits in a capture closure, and no work
/// that the graph would miss.
#[driver_test]
fn release_enqueues_no_work_beside_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u8>::zeroed(&stream, 16)?;
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let owned = DeviceBuffer::<u8>::zeroed(&stream, 16)?;
    let mut refused = Vec::new();
    let graph = Graph::capture(&test.context(), |_| -> Result<()> {
        extend::release(|| {
            refused.push(buffer.fill(1));
            refused.push(event.record(&stream));
            refused.push(test.context().record_event(&event));
            refused.push(stream.launch_host_function(|| ()).map(drop));
            stream.synchronize()
        });
        // The memory is freed at once, and the graph misses nothing.
        drop(owned);
        Ok(())
    });
    graph?;
    assert_eq!(refused.len(), 4);
    for result in refused {
        let error = result.expect_err("the graph would miss it");
        assert!(error.function().is_none(), "{error}");
    }
    assert_eq!(buffer.to_vec()?, [0; 16]);
    Ok(())
}

/// Returns an executable graph with one node.
fn executable(test: &TestDriver) -> Result<GraphExec> {
    let mut graph = Graph::new(&test.context())?;
    graph.add_host(&[], || ())?;
    graph.instantiate()
}

/// Runs `action`, and returns `true` once an executable graph of the test's driver has been
/// destroyed.
fn destroys_graph(test: &TestDriver, action: impl FnOnce()) -> bool {
    let driver = test.driver().clone();
    let is_destroyed = Arc::new(AtomicBool::new(false));
    let destroyed = Arc::clone(&is_destroyed);
    let _observer = observe_calls(move |call: &Call<'_>| {
        if call.function == Function::cuGraphExecDestroy
            && call.code == CUresult::CUDA_SUCCESS
            && call.driver.check_same(&driver, "a test").is_ok()
        {
            destroyed.store(true, Ordering::Release);
        }
    });
    action();
    eventually(|| is_destroyed.load(Ordering::Acquire))
}

/// The driver permits no call in a host function, so the executable graph is destroyed on another
/// thread.
#[driver_test]
fn graph_dropped_in_a_host_function_is_destroyed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let owned = executable(test)?;
    assert!(destroys_graph(test, || {
        let dropped = stream
            .launch_host_function(move || drop(owned))
            .expect("the stream is live");
        pollster::block_on(dropped).expect("the function runs");
    }));
    Ok(())
}

/// The same for the destructor of a value that a graph owns.
#[driver_test]
fn graph_owned_by_a_host_node_is_destroyed(test: &TestDriver) -> TestResult {
    let owned = Mutex::new(executable(test)?);
    let mut graph = Graph::new(&test.context())?;
    graph.add_host(&[], move || drop(owned.lock()))?;
    assert!(destroys_graph(test, || drop(graph)));
    Ok(())
}

/// A future is resolved when a queued closure panics in its destructor.
///
/// The context fails before the function runs; the destructor of what it owns panics, and the
/// future is resolved nevertheless.
#[simulator_test]
fn future_resolves_despite_a_destructor_panic(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    test.may_leak();
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let owned = PanicsWhenDropped;
    let future = stream.launch_host_function(move || std::mem::forget(owned))?;
    simulator.inject(
        Fault::on(Function::cuEventQuery)
            .always()
            .returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    let (sender, receiver) = mpsc::channel();
    let waiting = thread::spawn(move || sender.send(pollster::block_on(future).is_err()));
    let is_error = receiver.recv_timeout(PATIENCE)?;
    assert!(is_error);
    resume_panic(waiting.join())?;
    gate.open();
    Ok(())
}
