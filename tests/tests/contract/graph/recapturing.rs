//! Graphs whose work is captured again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use curium_driver::{CaptureScope, ConditionalKind, Error, Function, Graph, Result};
use curium_memory::{DeviceBuffer, MemoryPool};
use curium_sim::Config;
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{TestDriver, on_driver, on_simulator};

use super::keeping::await_last;
use super::refusing::assert_refused;
use super::{LEN, graph, run, words, zeroes};

type Words = DeviceBuffer<u32>;

/// The words of the error of every use of a graph whose recapture has failed.
const UNDEFINED: &str = "a recapture of the graph has failed";

/// Runs the test where the driver has the function.
fn on_driver_with_recapture(test: impl Fn(&TestDriver)) {
    on_driver(|driver| {
        if driver.driver().has(Function::cuStreamBeginRecaptureToGraph) {
            test(driver);
        }
    });
}

fn fill(scope: &CaptureScope, buffer: &mut Words, value: u32) -> Result<()> {
    buffer.as_slice_mut().fill_on(scope, value)
}

fn copy(scope: &CaptureScope, target: &mut Words, source: &Words) -> Result<()> {
    target.as_slice_mut().copy_from_device_on(scope, source)
}

/// Returns the graph of a fill of `x` and a copy of it to `y`.
fn fill_and_copy(test: &TestDriver, x: &mut Words, y: &mut Words) -> Graph {
    let captured = Graph::capture(&test.context(), |scope| {
        fill(scope, x, 3)?;
        copy(scope, y, x)
    });
    captured.expect("the work can be captured")
}

#[test]
fn recaptured_graph_updates_an_executable_to_other_buffers_and_values() {
    on_driver_with_recapture(|test| {
        let [mut x, mut y, mut other, mut z] = [(); 4].map(|()| zeroes(test));
        let mut graph = fill_and_copy(test, &mut x, &mut y);
        let (nodes, mut exec) = (
            graph.nodes().expect("it can be queried"),
            graph.instantiate().expect("it is sound"),
        );
        recapture_with(&mut graph, &mut other, &mut z);
        assert_eq!(
            graph.nodes().expect("it can be queried"),
            nodes,
            "the nodes are the same"
        );
        run(test, &mut exec);
        assert_eq!(
            [&x, &y, &z].map(words),
            [vec![3; LEN], vec![3; LEN], vec![0; LEN]],
            "the executable graph is unchanged"
        );
        assert!(exec.update(&graph).expect("it can be updated").is_done());
        // The memory is leased: it is there when its owner is gone, and the launch is an access to it.
        drop((graph, other));
        run(test, &mut exec);
        assert_eq!([&x, &z].map(words), [[3; LEN], [5; LEN]]);
    });
}

/// Captures a fill of `x` by another value, and a copy of it to `y`.
fn recapture_with(graph: &mut Graph, x: &mut Words, y: &mut Words) {
    let captured = graph.recapture(|scope| {
        fill(scope, x, 5)?;
        copy(scope, y, x)
    });
    captured.expect("the same operations can be captured again");
}

#[test]
fn recapture_releases_the_memory_of_the_work_before() {
    on_driver_with_recapture(|test| {
        let [mut x, mut y, mut other] = [(); 3].map(|()| zeroes(test));
        let pool = MemoryPool::default_for(&test.device()).expect("the device has a pool");
        let used = || pool.statistics().expect("it can be queried").used;
        let mut graph = fill_and_copy(test, &mut x, &mut y);
        recapture_with(&mut graph, &mut other, &mut y);
        let (before, stream) = (used(), x.stream().clone());
        drop(x);
        stream.synchronize().expect("it can be synchronized");
        let after = used();
        assert!(
            after < before,
            "nothing keeps the memory: {after} of {before} bytes are in use"
        );
        drop(other);
        assert_eq!(used(), after, "the graph keeps the memory");
    });
}

#[test]
fn recapture_releases_the_functions_of_the_work_before() {
    on_driver_with_recapture(|test| {
        let (first, second) = (Arc::new(()), Arc::new(()));
        let host = |scope: &CaptureScope, value: &Arc<()>| {
            let value = Arc::clone(value);
            scope.add_host(scope, move || drop(Arc::clone(&value)))
        };
        let mut graph = Graph::capture(&test.context(), |scope| host(scope, &first))
            .expect("it can be captured");
        graph
            .recapture(|scope| host(scope, &second))
            .expect("it can be captured again");
        await_last(&first);
        assert_eq!(
            Arc::strong_count(&second),
            2,
            "the graph keeps the new function"
        );
        let mut exec = graph.instantiate().expect("it is sound");
        graph
            .recapture(|scope| host(scope, &first))
            .expect("it can be captured again");
        run(test, &mut exec);
        assert_eq!(
            Arc::strong_count(&second),
            2,
            "the executable keeps its function"
        );
        drop((graph, exec));
        await_last(&first);
        await_last(&second);
    });
}

#[test]
fn recapture_of_other_operations_fails_and_leaves_the_graph_unusable() {
    on_driver_with_recapture(|test| {
        let (mut x, mut y, other) = (zeroes(test), zeroes(test), zeroes(test));
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
                y.as_slice_mut().copy_from_device_on(&branch, other)
            }),
        ];
        for (difference, work) in works {
            let mut graph = fill_and_copy(test, &mut x, &mut y);
            let mut exec = graph.instantiate().expect("it is sound");
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
            run(test, &mut exec);
        }
    });
}

#[test]
fn failure_and_panic_of_recaptured_work_leave_the_graph_unusable() {
    on_driver_with_recapture(|test| {
        let [mut x, mut y] = [(); 2].map(|()| zeroes(test));
        let mut graph = fill_and_copy(test, &mut x, &mut y);
        let failed = graph.recapture(|_| Err(Error::argument("work", "part of the test")));
        assert!(
            failed
                .expect_err("the work fails")
                .to_string()
                .starts_with("work: ")
        );
        assert_refused(test, UNDEFINED, || graph.instantiate());
        let mut graph = fill_and_copy(test, &mut x, &mut y);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            graph.recapture::<Error>(|_| panic!("part of the test"))
        }));
        assert!(panicked.is_err());
        assert_refused(test, UNDEFINED, || graph.nodes());
    });
}

#[test]
fn recaptured_allocation_keeps_its_address_and_must_keep_its_size() {
    on_driver_with_recapture(|test| {
        let mut target = zeroes(test);
        let mut address = None;
        let mut work = |scope: &CaptureScope, value: u32, len: usize| {
            let buffer = DeviceBuffer::filled(scope, len, value)?;
            let known = *address.get_or_insert(buffer.as_pointer());
            assert!(
                len != LEN || known == buffer.as_pointer(),
                "the address is the same"
            );
            target
                .as_slice_mut()
                .copy_from_device_on(scope, &buffer.slice(..LEN)?)
        };
        let mut graph = Graph::capture(&test.context(), |scope| work(scope, 1, LEN))
            .expect("it can be captured");
        let mut exec = graph.instantiate().expect("it is sound");
        graph
            .recapture(|scope| work(scope, 2, LEN))
            .expect("it can be captured again");
        assert!(exec.update(&graph).expect("it can be updated").is_done());
        let error = graph
            .recapture(|scope| work(scope, 3, 2 * LEN))
            .expect_err("the size differs");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE),
            "{error}"
        );
        run(test, &mut exec);
        assert_eq!(words(&target), [2; LEN]);
    });
}

#[test]
fn part_of_a_graph_is_not_recaptured() {
    on_driver_with_recapture(|test| {
        let mut graph = graph(test);
        let condition = graph.condition(None).expect("it can be created");
        let mut node = graph
            .add_conditional(&[], condition, ConditionalKind::If)
            .expect("the node can be added");
        assert_refused(test, "part of another graph", || {
            node.bodies[0].recapture(|_| Ok::<_, Error>(()))
        });
    });
}

#[test]
fn recapture_names_the_driver_that_it_needs() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 2)),
        |test, _| {
            let mut graph = graph(test);
            assert_refused(test, "13.3", || {
                graph.recapture::<Error>(|_| panic!("the work must not begin"))
            });
            assert!(graph.nodes().expect("nothing is being captured").is_empty());
        },
    );
}

pub(crate) mod operations {
    use curium_driver::Graph;

    use crate::operations::{Fixture, Operation, made};

    pub(crate) const SOLITARY: &[Operation] = &[("Graph::recapture", |fixture| {
        let Fixture {
            context, buffer, ..
        } = fixture;
        let mut graph = Graph::capture(context, |scope| buffer.as_slice_mut().fill_on(scope, 3))?;
        graph.recapture(|scope| buffer.as_slice_mut().fill_on(scope, 4))?;
        made(graph)
    })];
}
