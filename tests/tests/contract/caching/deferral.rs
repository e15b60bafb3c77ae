//! Memory that stays with the stream that freed it, because no event could be recorded or queried.

use curium_driver::{Function, Stream};
use curium_memory::{CachingResource, Resource};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, on_simulator, simulator_test};

use super::block::Block;
use super::caching;
use super::graph::captured;

/// Each block is a segment of its own.
const BYTES: usize = 32 << 20;

fn fails(function: Function) -> Fault {
    Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY)
}

/// Allocates one block for each stream, in different segments, and frees them. Returns the address
/// of the last.
fn use_and_free(resource: &CachingResource, streams: &[&Stream]) -> u64 {
    let blocks: Vec<_> = streams
        .iter()
        .map(|stream| Block::new(resource, stream, BYTES))
        .collect();
    blocks.last().expect("no block").address()
}

/// A stream that cannot be queried keeps others from no memory.
#[test]
fn failed_query_blocks_no_stream() -> TestResult {
    for function in [Function::cuStreamQuery, Function::cuStreamIsCapturing] {
        on_simulator(Config::new(), |test, simulator| -> TestResult {
            let resource = caching(test)?;
            let other = test.stream();
            let streams = [test.stream(), test.stream()];
            use_and_free(&resource, &[&streams[0], &streams[1]]);
            simulator.inject(fails(function));
            let first = Block::new(&resource, &other, BYTES);
            let statistics = resource.statistics();
            assert_eq!(
                (statistics.growths, statistics.deferrals),
                (2, 1),
                "the memory of one stream is available"
            );
            let second = Block::new(&resource, &other, BYTES);
            assert_ne!(first.address(), second.address());
            let statistics = resource.statistics();
            assert_eq!(
                (statistics.growths, statistics.deferrals),
                (2, 1),
                "the other stream can be queried again"
            );
            Ok(())
        })?;
    }
    Ok(())
}

/// Memory whose event was not recorded is available to others later.
#[simulator_test]
fn memory_is_shared_later_if_its_event_fails(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let gate = Gate::on(&stream);
    let address = use_and_free(&resource, &[&stream]);
    simulator.inject(fails(Function::cuEventRecord));
    let while_pending = Block::new(&resource, &other, BYTES);
    assert_ne!(
        while_pending.address(),
        address,
        "the work has not completed"
    );
    // The next search records the event, which completes with the work.
    resource.purge()?;
    let elsewhere = Block::new(&resource, &other, BYTES);
    assert_ne!(
        elsewhere.address(),
        address,
        "the work has still not completed"
    );
    gate.open();
    stream.synchronize()?;
    assert_eq!(Block::new(&resource, &other, BYTES).address(), address);
    assert_eq!(resource.statistics().deferrals, 1);
    Ok(())
}

/// A refused event is reported by purge and by trim which does its work.
#[simulator_test]
fn refused_event_is_reported_by_purge_and_trim(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = caching(test)?;
    let streams = [test.stream(), test.stream()];
    use_and_free(&resource, &[&streams[0], &streams[1]]);
    simulator.inject(fails(Function::cuStreamQuery));
    let error = resource.purge().expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(Function::cuStreamQuery), "{error}");
    use_and_free(&resource, &[&streams[0], &streams[1]]);
    simulator.inject(fails(Function::cuStreamQuery));
    resource
        .trim(&streams[0], 0)
        .expect_err("the injected fault occurs");
    assert_eq!(
        resource.statistics().reserved_bytes,
        32 << 20,
        "the other stream's memory is given back"
    );
    resource.trim(&streams[0], 0)?;
    assert_eq!(resource.statistics().reserved_bytes, 0);
    Ok(())
}

/// Memory before a completed event is available although a later event cannot be queried.
#[simulator_test]
fn earlier_event_frees_memory_despite_failed_query(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let gate = Gate::on(&stream);
    // The one in the middle keeps the others from coalescing.
    let [first, _middle, second] = [(); 3].map(|()| Block::new(&resource, &stream, BYTES));
    let address = first.address();
    for block in [first, second] {
        drop(block);
        resource.purge()?;
    }
    gate.open();
    stream.synchronize()?;
    simulator.inject(fails(Function::cuEventQuery).call(2));
    assert_eq!(Block::new(&resource, &other, BYTES).address(), address);
    assert_eq!(resource.statistics().growths, 3);
    Ok(())
}

/// Memory freed in a capture is available to others after it.
#[driver_test]
fn memory_freed_in_a_capture_is_shared_after_it(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let mut address = 0;
    let graph = captured(&stream, || {
        address = use_and_free(&resource, &[&stream]);
        assert_ne!(
            Block::new(&resource, &other, BYTES).address(),
            address,
            "the stream is being captured"
        );
    })?;
    assert_eq!(resource.statistics().deferrals, 1);
    let held = Block::new(&resource, &other, BYTES);
    assert_eq!(
        Block::new(&resource, &other, BYTES).address(),
        address,
        "{:#x} is in use",
        held.address()
    );
    assert_eq!(resource.statistics().growths, 2);
    // SAFETY: the graph is live, and not used afterwards.
    unsafe { curium_driver::call!(stream.driver(), cuGraphDestroy(graph)) }?;
    Ok(())
}

#[simulator_test]
fn failed_synchronization_leaks_no_memory(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let address = use_and_free(&resource, &[&stream]);
    let synchronize = [Function::cuCtxSynchronize, Function::cuCtxSynchronize_v2];
    synchronize
        .into_iter()
        .for_each(|function| simulator.inject(fails(function)));
    resource
        .synchronize(&stream)
        .expect_err("the injected fault occurs");
    assert_eq!(Block::new(&resource, &other, BYTES).address(), address);
    Ok(())
}
