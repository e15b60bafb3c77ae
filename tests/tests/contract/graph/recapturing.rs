//! Graphs whose work is captured again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use curium_driver::{CaptureScope, ConditionalKind, Error, Function, Graph, Result};
use curium_memory::{DeviceBuffer, MemoryPool};
use curium_sim::{Config, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, simulator_test};

use super::keeping::await_last;
use super::refusing::assert_refused;
use super::{LEN, graph, run, words, zeroes};

type Words = DeviceBuffer<u32>;

/// The words of the error of every use of a graph whose recapture has failed.
const UNDEFINED: &str = "a recapture of the graph has failed";

/// Runs the test where the driver has the function.
fn on_driver_with_recapture(test: impl FnOnce(&TestDriver) -> TestResult) -> TestResult {
    on_driver(|driver| {
        if driver.driver().has(Function::cuStreamBeginRecaptureToGraph) {
            test(driver)?;
        }
        Ok(())
    })
}

fn fill(scope: &CaptureScope, buffer: &mut Words, value: u32) -> Result<()> {
    buffer.on_mut(scope).fill(value)
}

fn copy(scope: &CaptureScope, target: &mut Words, source: &Words) -> Result<()> {
    target.on_mut(scope).copy_from_device(source)
}

/// Returns the graph of a fill of `x` and a copy of it to `y`.
fn fill_and_copy(test: &TestDriver, x: &mut Words, y: &mut Words) -> TestResult<Graph> {
    let captured = Graph::capture(&test.context(), |scope| {
        fill(scope, x, 3)?;
        copy(scope, y, x)
    });
    Ok(captured?)
}

/// A recaptured graph updates an executable to other buffers and values.
#[driver_test(on_driver_with_recapture)]
fn recaptured_graph_updates_its_executable(test: &TestDriver) -> TestResult {
    let [mut x, mut y, mut other, mut z] = [(); 4].map(|()| zeroes(test));
    let mut graph = fill_and_copy(test, &mut x, &mut y)?;
    let nodes = graph.nodes()?;
    let mut exec = graph.instantiate()?;
    recapture_with(&mut graph, &mut other, &mut z)?;
    assert_eq!(graph.nodes()?, nodes, "the nodes are the same");
    run(test, &mut exec)?;
    assert_eq!(
        [&x, &y, &z].map(words),
        [vec![3; LEN], vec![3; LEN], vec![0; LEN]],
        "the executable graph is unchanged"
    );
    assert!(exec.update(&graph)?.is_done());
    // The memory is leased: it is there when its owner is gone, and the launch is an access to it.
    drop((graph, other));
    run(test, &mut exec)?;
    assert_eq!([&x, &z].map(words), [[3; LEN], [5; LEN]]);
    Ok(())
}

/// Captures a fill of `x` by another value, and a copy of it to `y`.
fn recapture_with(graph: &mut Graph, x: &mut Words, y: &mut Words) -> TestResult {
    let captured = graph.recapture(|scope| {
        fill(scope, x, 5)?;
        copy(scope, y, x)
    });
    captured?;
    Ok(())
}

#[driver_test(on_driver_with_recapture)]
fn recapture_releases_previous_memory(test: &TestDriver) -> TestResult {
    let [mut x, mut y, mut other] = [(); 3].map(|()| zeroes(test));
    let pool = MemoryPool::default_for(&test.device())?;
    let used = || -> TestResult<_> { Ok(pool.statistics()?.used) };
    let mut graph = fill_and_copy(test, &mut x, &mut y)?;
    recapture_with(&mut graph, &mut other, &mut y)?;
    let before = used()?;
    let stream = x.stream().clone();
    drop(x);
    stream.synchronize()?;
    let after = used()?;
    assert!(
        after < before,
        "nothing keeps the memory: {after} of {before} bytes are in use"
    );
    drop(other);
    assert_eq!(used()?, after, "the graph keeps the memory");
    Ok(())
}

/// A recapture releases the functions of the work before.
#[driver_test(on_driver_with_recapture)]
fn recapture_releases_previous_functions(test: &TestDriver) -> TestResult {
    let first = Arc::new(());
    let second = Arc::new(());
    let host = |scope: &CaptureScope, value: &Arc<()>| {
        let value = Arc::clone(value);
        scope.add_host(scope, move || drop(Arc::clone(&value)))
    };
    let mut graph = Graph::capture(&test.context(), |scope| host(scope, &first))?;
    graph.recapture(|scope| host(scope, &second))?;
    await_last(&first);
    assert_eq!(
        Arc::strong_count(&second),
        2,
        "the graph keeps the new function"
    );
    let mut exec = graph.instantiate()?;
    graph.recapture(|scope| host(scope, &first))?;
    run(test, &mut exec)?;
    assert_eq!(
        Arc::strong_count(&second),
        2,
        "the executable keeps its function"
    );
    drop((graph, exec));
    await_last(&first);
    await_last(&second);
    Ok(())
}

/// A recapture of other operations fails and leaves the graph unusable.
#[driver_test(on_driver_with_recapture)]
fn mismatched_recapture_poisons_the_graph(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let other = zeroes(test);
    type Work = fn(&CaptureScope, &mut Words, &mut Words, &Words) -> Result<()>;
    let works: [(&str, Work); 4] = [
        ("missing operation", |scope, x, _, _| fill(scope, x, 3)),
        ("further operation", |scope, x, y, _| {
            fill(scope, x, 3)?;
            copy(scope, y, x)?;
            fill(scope, x, 4)
        }),
        ("other operation", |scope, x, y, _| {
            fill(scope, x, 3)?;
            fill(scope, y, 3)
        }),
        ("other dependency", |scope, x, y, other| {
            let branch = scope.fork()?;
            fill(scope, x, 3)?;
            y.on_mut(&branch).copy_from_device(other)
        }),
    ];
    for (difference, work) in works {
        let mut graph = fill_and_copy(test, &mut x, &mut y)?;
        let mut exec = graph.instantiate()?;
        let error = graph
            .recapture(|scope| work(scope, &mut x, &mut y, &other))
            .expect_err(difference);
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE),
            "{difference}: {error}"
        );
        assert_refused(test, UNDEFINED, || graph.nodes());
        assert_refused(test, UNDEFINED, || graph.recapture(|_| Ok::<_, Error>(())));
        run(test, &mut exec)?;
    }
    Ok(())
}

/// A failure or a panic of recaptured work leaves the graph unusable.
#[driver_test(on_driver_with_recapture)]
fn failed_recapture_poisons_the_graph(test: &TestDriver) -> TestResult {
    let [mut x, mut y] = [(); 2].map(|()| zeroes(test));
    let mut graph = fill_and_copy(test, &mut x, &mut y)?;
    let failed = graph.recapture(|_| Err(Error::argument("work", "part of the test")));
    assert!(
        failed
            .expect_err("the work fails")
            .to_string()
            .starts_with("work: ")
    );
    assert_refused(test, UNDEFINED, || graph.instantiate());
    let mut graph = fill_and_copy(test, &mut x, &mut y)?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        graph.recapture::<Error>(|_| panic!("part of the test"))
    }));
    assert!(panicked.is_err());
    assert_refused(test, UNDEFINED, || graph.nodes());
    Ok(())
}

/// A recaptured allocation keeps its address and must keep its size.
#[driver_test(on_driver_with_recapture)]
fn recaptured_allocation_keeps_its_address(test: &TestDriver) -> TestResult {
    let mut target = zeroes(test);
    let mut address = None;
    let mut work = |scope: &CaptureScope, value: u32, len: usize| {
        let buffer = DeviceBuffer::filled(scope, len, value)?;
        let first_address = *address.get_or_insert(buffer.as_pointer());
        assert!(
            len != LEN || first_address == buffer.as_pointer(),
            "the address is the same"
        );
        target.on_mut(scope).copy_from_device(&buffer.slice(..LEN)?)
    };
    let mut graph = Graph::capture(&test.context(), |scope| work(scope, 1, LEN))?;
    let mut exec = graph.instantiate()?;
    graph.recapture(|scope| work(scope, 2, LEN))?;
    assert!(exec.update(&graph)?.is_done());
    let error = graph
        .recapture(|scope| work(scope, 3, 2 * LEN))
        .expect_err("the size differs");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE),
        "{error}"
    );
    run(test, &mut exec)?;
    assert_eq!(words(&target), [2; LEN]);
    Ok(())
}

#[driver_test(on_driver_with_recapture)]
fn child_graph_is_not_recaptured(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let condition = graph.condition(None)?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::If)?;
    assert_refused(test, "part of another graph", || {
        node.bodies[0].recapture(|_| Ok::<_, Error>(()))
    });
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 2)))]
fn recapture_names_the_driver_that_it_needs(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut graph = graph(test);
    assert_refused(test, "13.3", || {
        graph.recapture::<Error>(|_| panic!("the work must not begin"))
    });
    assert!(graph.nodes()?.is_empty());
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Graph;

    use crate::operations::{Fixture, Operation, Operations, made};

    const SOLITARY: &[Operation] = &[("Graph::recapture", |fixture| {
        let Fixture {
            context, buffer, ..
        } = fixture;
        let mut graph = Graph::capture(context, |scope| buffer.on_mut(scope).fill(3))?;
        graph.recapture(|scope| buffer.on_mut(scope).fill(4))?;
        made(graph)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
