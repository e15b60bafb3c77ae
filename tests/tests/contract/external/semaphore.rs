//! Semaphores of another interface, on a simulator with functions made by hand in place of those that it lacks.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curium_driver::{Driver, Stream};
use curium_memory::external::{ExternalSemaphore, ExternalSemaphoreKind};
use curium_sim::{Config, Simulator};
use curium_sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore, CUresult, CUstream,
};
use curium_tests::{Gate, uses_cuda};

use super::descriptor;

/// What was called, in order.
static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());

fn note(call: &'static str) -> CUresult {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    CUresult::CUDA_SUCCESS
}

fn calls() -> Vec<&'static str> {
    std::mem::take(&mut *CALLS.lock().unwrap_or_else(PoisonError::into_inner))
}

unsafe extern "C" fn import(
    place: *mut CUexternalSemaphore,
    _: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the caller passes a valid place.
    unsafe { place.write(ptr::without_provenance_mut(0x100)) };
    note("import")
}

unsafe extern "C" fn signal(
    _: *const CUexternalSemaphore,
    params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    count: u32,
    _: CUstream,
) -> CUresult {
    // SAFETY: the caller passes as many parameters as it says.
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
    // SAFETY: the caller passes as many parameters as it says.
    let value = unsafe { (*params).params.fence.value };
    assert_eq!((count, value), (1, 8));
    note("wait")
}

unsafe extern "C" fn destroy(semaphore: CUexternalSemaphore) -> CUresult {
    assert_eq!(semaphore.addr(), 0x100);
    note("destroy")
}

/// The simulator with another interface beside it.
fn driver(simulator: &Simulator) -> Driver {
    let mut api = simulator.api();
    api.cuImportExternalSemaphore = Some(import);
    api.cuSignalExternalSemaphoresAsync = Some(signal);
    api.cuWaitExternalSemaphoresAsync = Some(wait);
    api.cuDestroyExternalSemaphore = Some(destroy);
    // SAFETY: the functions are the simulator's, which outlives the driver, and those above.
    unsafe { Driver::from_api(api) }.expect("the simulator initialises")
}

/// Asserts that the semaphore, which is dropped, ends only when the work on `stream` has.
fn assert_outlives_work(stream: &Stream, semaphore: impl Send, gate: Gate) {
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| drop(semaphore));
        std::thread::sleep(Duration::from_millis(5));
        assert!(!calls().contains(&"destroy"), "work on {stream:?} still uses it");
        gate.open();
        dropping.join().expect("it ends");
    });
    assert_eq!(calls(), ["destroy"]);
}

#[test]
fn semaphore_dropped_while_streams_and_graphs_use_it_ends_after_them() {
    if uses_cuda() {
        return;
    }
    let simulator = Simulator::new(Config::new()).expect("a simulator can be made");
    let driver = driver(&simulator);
    let context = driver.device(0).and_then(|device| device.primary_context()).expect("there is a device");
    let (stream, other) = (context.stream().expect("a stream"), context.stream().expect("a stream"));
    let imported = || {
        let semaphore = ExternalSemaphore::import_fd(&context, descriptor(), ExternalSemaphoreKind::Timeline);
        semaphore.expect("it is imported")
    };
    let (semaphore, gate) = (imported(), Gate::on(&stream));
    semaphore.signal(&stream, 7).expect("the stream takes it");
    assert_outlives_work(&stream, semaphore, gate);
    let (semaphore, gate) = (imported(), Gate::on(&other));
    semaphore.signal(&stream, 7).expect("the stream takes it");
    semaphore.wait(&other, 8).expect("the stream takes it");
    assert_eq!(calls(), ["import", "signal", "wait"]);
    assert_outlives_work(&other, semaphore, gate);
    // Whatever stream a graph with it is launched on.
    let (semaphore, gate) = (Arc::new(imported()), Gate::on(&other));
    drop(semaphore.for_graph(7));
    assert_outlives_work(&other, semaphore, gate);
}
