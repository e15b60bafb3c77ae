//! External semaphores, on a simulator with hand-written functions in place of missing ones.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use curium_driver::{Context, Driver, Error, Graph, GraphExec, Stream};
use curium_interop::external::{ExternalSemaphore, ExternalSemaphoreKind};
use curium_sim::{Config, Simulator};
use curium_sys::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore, CUgraph, CUgraphExec, CUgraphNode, CUresult, CUstream,
};
use curium_tests::{Gate, TestResult, driver_test, resume_panic, skip, uses_cuda};
use parking_lot::Mutex;

use super::descriptor;

/// The names of the called functions, in order.
static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());

fn note(call: &'static str) -> CUresult {
    CALLS.lock().push(call);
    CUresult::CUDA_SUCCESS
}

fn calls() -> Vec<&'static str> {
    std::mem::take(&mut *CALLS.lock())
}

unsafe extern "C" fn import(
    output: *mut CUexternalSemaphore,
    _: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the caller passes a pointer that is valid for writes.
    unsafe { output.write(ptr::without_provenance_mut(0x100)) };
    note("import")
}

unsafe extern "C" fn signal(
    _: *const CUexternalSemaphore,
    params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    count: u32,
    _: CUstream,
) -> CUresult {
    // SAFETY: the caller passes the parameters of the kernel.
    let value = unsafe { (*params).params.fence.value };
    assert_eq!((count, value), (1, 7));
    note("signal")
}

unsafe extern "C" fn wait(
    _: *const CUexternalSemaphore,
    params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    count: u32,
    _: CUstream,
) -> CUresult {
    // SAFETY: the caller passes the parameters of the kernel.
    let value = unsafe { (*params).params.fence.value };
    assert_eq!((count, value), (1, 8));
    note("wait")
}

unsafe extern "C" fn destroy(semaphore: CUexternalSemaphore) -> CUresult {
    assert_eq!(semaphore.addr(), 0x100);
    note("destroy")
}

/// Adds an empty node in place of a signal node.
unsafe extern "C" fn add_signal(
    node: *mut CUgraphNode,
    graph: CUgraph,
    after: *const CUgraphNode,
    count: usize,
    _: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
) -> CUresult {
    let add = *ADD_EMPTY.lock();
    let add = add.expect("the driver of this test has it");
    // SAFETY: the caller passes valid node arguments.
    unsafe { add(node, graph, after, count) }
}

/// Accepts new parameters of a signal node.
unsafe extern "C" fn set_signal(
    _: CUgraphExec,
    _: CUgraphNode,
    _: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
) -> CUresult {
    CUresult::CUDA_SUCCESS
}

/// The simulator's function that adds an empty node.
static ADD_EMPTY: Mutex<Option<AddEmpty>> = Mutex::new(None);

type AddEmpty =
    unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> CUresult;

/// Serializes the tests of this file, which share the list of calls.
static TURN: Mutex<()> = Mutex::new(());

/// Returns a driver of the simulator with external semaphores.
fn driver(simulator: &Simulator) -> TestResult<Driver> {
    let mut api = simulator.api();
    *ADD_EMPTY.lock() = api.cuGraphAddEmptyNode;
    api.cuGraphAddExternalSemaphoresSignalNode = Some(add_signal);
    api.cuGraphExecExternalSemaphoresSignalNodeSetParams = Some(set_signal);
    api.cuImportExternalSemaphore = Some(import);
    api.cuSignalExternalSemaphoresAsync = Some(signal);
    api.cuWaitExternalSemaphoresAsync = Some(wait);
    api.cuDestroyExternalSemaphore = Some(destroy);
    // SAFETY: the functions are the simulator's, which outlives the driver, and those above.
    Ok(unsafe { Driver::from_api(api) }?)
}

/// Asserts that a dropped semaphore is destroyed only after the work on `stream`.
fn assert_outlives_work(stream: &Stream, semaphore: impl Send, gate: Gate) {
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| drop(semaphore));
        std::thread::sleep(Duration::from_millis(5));
        assert!(
            !calls().contains(&"destroy"),
            "work on {stream:?} still uses it"
        );
        gate.open();
        resume_panic(dropping.join());
    });
    assert_eq!(calls(), ["destroy"]);
}

/// Runs `test` in a context of the driver with hand-written semaphore functions, one test at a
/// time.
fn with_context(test: impl FnOnce(&Context) -> TestResult) -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let _turn = TURN.lock();
    let simulator = Simulator::new(Config::new())?;
    let driver = driver(&simulator)?;
    test(&driver.device(0)?.primary_context()?)
}

/// A semaphore dropped while streams and graphs use it ends after them.
#[driver_test(with_context)]
fn dropped_semaphore_outlives_its_uses(context: &Context) -> TestResult {
    let stream = context.stream()?;
    let other = context.stream()?;
    let semaphore = imported(context)?;
    let gate = Gate::on(&stream);
    semaphore.signal(&stream, 7)?;
    assert_outlives_work(&stream, semaphore, gate);
    let semaphore = imported(context)?;
    let gate = Gate::on(&other);
    semaphore.signal(&stream, 7)?;
    semaphore.wait(&other, 8)?;
    assert_eq!(calls(), ["import", "signal", "wait"]);
    assert_outlives_work(&other, semaphore, gate);
    // On any stream that the graph is launched on.
    let semaphore = Arc::new(imported(context)?);
    let gate = Gate::on(&other);
    let mut executable = signalling(context, &semaphore)?;
    executable.launch(&other)?;
    assert_outlives_work(&other, (semaphore, executable), gate);
    Ok(())
}

/// A semaphore of a graph dropped during a capture outlives its launches and keeps the capture
/// valid.
#[driver_test(with_context)]
fn graph_semaphore_dropped_in_a_capture_survives(context: &Context) -> TestResult {
    let stream = context.stream()?;
    let other = context.stream()?;
    let semaphore = Arc::new(imported(context)?);
    let mut executable = signalling(context, &semaphore)?;
    executable.launch(&stream)?;
    let gate = Gate::on(&other);
    executable.launch(&other)?;
    Graph::capture(context, |_| {
        assert_eq!(calls(), ["import"]);
        assert_outlives_work(&other, (semaphore, executable), gate);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// A semaphore set later on a node outlives the launches of its executable.
#[driver_test(with_context)]
fn replaced_node_semaphore_outlives_its_launches(context: &Context) -> TestResult {
    let stream = context.stream()?;
    let first = Arc::new(imported(context)?);
    let second = Arc::new(imported(context)?);
    let mut graph = Graph::new(context)?;
    let node = graph.add_semaphore_signal(&[], &[first.for_graph(7)])?;
    let mut executable = graph.instantiate()?;
    executable.set_semaphore_signal(node, &[second.for_graph(8)])?;
    drop((graph, calls()));
    let gate = Gate::on(&stream);
    executable.launch(&stream)?;
    drop(executable);
    assert_outlives_work(&stream, second, gate);
    drop(first);
    assert_eq!(calls(), ["destroy"]);
    Ok(())
}

fn imported(context: &Context) -> TestResult<ExternalSemaphore> {
    let semaphore =
        ExternalSemaphore::import_fd(context, descriptor()?, ExternalSemaphoreKind::Timeline);
    Ok(semaphore?)
}

/// Returns an executable graph that signals the semaphore.
fn signalling(context: &Context, semaphore: &Arc<ExternalSemaphore>) -> TestResult<GraphExec> {
    let mut graph = Graph::new(context)?;
    graph.add_semaphore_signal(&[], &[semaphore.for_graph(7)])?;
    Ok(graph.instantiate()?)
}
