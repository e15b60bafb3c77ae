//! Captures into an existing graph.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use curium_driver::{CaptureScope, ConditionalKind, Error, Graph, Node, Result, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_sys::CudaVersion;
use curium_tests::{TestDriver, on_driver, on_simulator};

use super::keeping::await_last;
use super::refusing::assert_refused;
use super::{LEN, graph, run, words, zeroes};

type Words = DeviceBuffer<u32>;

fn copy(stream: &Stream, target: &mut Words, source: &Words) -> Result<()> {
    target.as_slice_mut().copy_from_device_on(stream, source)
}

fn before(graph: &Graph, node: Node) -> HashSet<Node> {
    let dependencies = graph.dependencies(node).expect("the node is there");
    dependencies.into_iter().map(|(node, _)| node).collect()
}

/// Returns the number of nodes and edges.
fn size(graph: &Graph) -> (usize, usize) {
    (
        graph.nodes().expect("it can be queried").len(),
        graph.edges().expect("it can be queried").len(),
    )
}

fn error_of_work() -> Error {
    Error::argument("work", "part of the test")
}

#[test]
fn work_captured_into_a_graph_depends_on_the_named_nodes() {
    on_driver(|test| {
        let (mut x, mut y) = (zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let (begin, other) = (
            graph.add_empty(&[]).expect("it fits"),
            graph.add_empty(&[]).expect("it fits"),
        );
        let filled = graph.capture_into(&[begin], |scope| x.as_slice_mut().fill_on(scope, 7));
        let [filled] = filled.expect("a fill can be captured")[..] else {
            panic!("there is one node")
        };
        assert_eq!(before(&graph, filled), HashSet::from([begin]));
        let copied = graph.capture_into(&[filled, other], |scope| copy(scope, &mut y, &x));
        let [copied] = copied.expect("a copy can be captured")[..] else {
            panic!("there is one node")
        };
        assert_eq!(before(&graph, copied), HashSet::from([filled, other]));
        assert_eq!(
            graph
                .capture_into(&[copied], |_| Ok::<_, Error>(()))
                .expect("nothing can be captured"),
            [copied]
        );
        assert_eq!(size(&graph), (4, 3));
        let mut exec = graph.instantiate().expect("the graph is valid");
        assert_eq!(words(&y), [0; LEN], "nothing has run");
        // The memory is leased: it outlives its owner, and the launch is an access to it.
        drop((graph, x));
        exec.launch(&test.stream()).expect("it can be launched");
        assert_eq!(words(&y), [7; LEN]);
    });
}

#[test]
fn work_captured_into_a_graph_is_ordered_after_writes_of_its_memory() {
    on_driver(|test| {
        let (mut x, mut y, mut z, source) =
            (zeroes(test), zeroes(test), zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let into = |graph: &mut Graph, work: &mut dyn FnMut(&CaptureScope) -> Result<()>| {
            graph
                .capture_into(&[], work)
                .expect("the work can be captured")[0]
        };
        let first = into(&mut graph, &mut |scope| x.as_slice_mut().fill_on(scope, 3));
        let apart = into(&mut graph, &mut |scope| copy(scope, &mut z, &source));
        let read = into(&mut graph, &mut |scope| copy(scope, &mut y, &x));
        let again = into(&mut graph, &mut |scope| {
            x.as_slice_mut().fill_on(scope, 5)?;
            copy(scope, &mut z, &x)
        });
        let roots: HashSet<_> = graph
            .roots()
            .expect("it can be queried")
            .into_iter()
            .collect();
        assert_eq!(roots, HashSet::from([first, apart]), "they do not overlap");
        assert_eq!(
            before(&graph, read),
            HashSet::from([first, apart]),
            "it reads what the first wrote"
        );
        let write = before(&graph, again)
            .into_iter()
            .next()
            .expect("the copy depends on the fill");
        assert_eq!(
            before(&graph, write),
            HashSet::from([read]),
            "it writes memory that the other reads"
        );
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(
            (words(&x), words(&y), words(&z)),
            (vec![5; LEN], vec![3; LEN], vec![5; LEN])
        );
    });
}

#[test]
fn every_branch_of_captured_work_is_ordered_after_the_write_of_its_memory() {
    on_driver(|test| {
        let (mut x, mut y, mut z) = (zeroes(test), zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let filled = graph
            .capture_into(&[], |scope| x.as_slice_mut().fill_on(scope, 3))
            .expect("it can be captured");
        let last = graph.capture_into(&[], |scope| {
            copy(&scope.fork()?, &mut y, &x)?;
            copy(scope, &mut z, &x)
        });
        let last = last.expect("copies can be captured");
        assert_eq!(last.len(), 2);
        last.iter()
            .for_each(|node| assert_eq!(before(&graph, *node), filled.iter().copied().collect()));
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!((words(&y), words(&z)), (vec![3; LEN], vec![3; LEN]));
    });
}

#[test]
fn work_that_only_reads_the_same_memory_is_captured_side_by_side() {
    on_driver(|test| {
        let (source, mut one, mut other) = (zeroes(test), zeroes(test), zeroes(test));
        let mut graph = graph(test);
        for target in [&mut one, &mut other] {
            graph
                .capture_into(&[], |scope| copy(scope, target, &source))
                .expect("a copy can be captured");
        }
        assert_eq!(graph.roots().expect("it can be queried").len(), 2);
    });
}

#[test]
fn capture_into_a_graph_that_fails_or_panics_does_not_change_it() {
    on_driver(|test| {
        let (mut x, mut y, counted) = (zeroes(test), zeroes(test), Arc::new(()));
        let mut graph = graph(test);
        let begin = graph.add_empty(&[]).expect("it fits");
        let mut stream = None;
        let mut work = |scope: &CaptureScope, x: &mut Words, y: &mut Words| {
            stream = Some((**scope).clone());
            let branch = scope.fork()?;
            x.as_slice_mut().fill_on(&branch, 7)?;
            copy(scope, y, x)?;
            let kept = Arc::clone(&counted);
            scope.add_host(&branch, move || drop(Arc::clone(&kept)))
        };
        let failed = graph.capture_into(&[begin], |scope| {
            work(scope, &mut x, &mut y)?;
            Err(error_of_work())
        });
        assert!(
            failed
                .expect_err("the work fails")
                .to_string()
                .contains("part of the test")
        );
        assert_eq!(graph.nodes().expect("it can be queried"), [begin]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            graph.capture_into(&[begin], |scope| -> Result<()> {
                work(scope, &mut x, &mut y).expect("the work can be captured");
                panic!("part of the test")
            })
        }));
        assert!(panicked.is_err(), "the panic propagates");
        assert_eq!(
            (graph.nodes().expect("it can be queried"), size(&graph)),
            (vec![begin], (1, 0))
        );
        await_last(&counted);
        assert!(
            !stream
                .expect("the work was called")
                .is_capturing()
                .expect("the stream is live")
        );
        let (pointer, resource) = x.into_raw().expect("no graph uses the memory");
        // SAFETY: the memory is that of the buffer, and no work uses it.
        let mut x =
            unsafe { Words::from_raw(y.stream(), pointer, LEN, resource) }.expect("it is a buffer");
        graph
            .capture_into(&[begin], |scope| x.as_slice_mut().fill_on(scope, 9))
            .expect("the next can be captured");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!((words(&x), words(&y)), (vec![9; LEN], vec![0; LEN]));
    });
}

#[test]
fn graph_whose_nodes_cannot_be_removed_is_unusable_after_a_failed_capture_into_it() {
    on_driver(|test| {
        let mut result = zeroes(test);
        let mut graph = graph(test);
        let work = |scope: &CaptureScope, result: &mut Words| {
            let scratch = Words::zeroed(scope, LEN)?;
            copy(scope, result, &scratch)
        };
        graph
            .capture_into(&[], |scope| work(scope, &mut result))
            .expect("memory can be allocated in a capture");
        let mut exec = graph.instantiate().expect("the graph is valid");
        let failed = graph.capture_into(&[], |scope| {
            work(scope, &mut result)?;
            Err(error_of_work())
        });
        assert!(
            failed
                .expect_err("the work fails")
                .to_string()
                .contains("part of the test")
        );
        let words = "the nodes that it added cannot be removed";
        assert_refused(test, words, || graph.nodes());
        assert_refused(test, words, || graph.instantiate());
        assert_refused(test, words, || graph.capture_into(&[], |_| Ok(())));
        run(test, &mut exec);
    });
}

#[test]
fn graph_that_is_captured_into_refuses_every_other_use() {
    on_driver(|test| {
        let mut x = zeroes(test);
        let mut graph = graph(test);
        let condition = graph
            .condition(Some(0))
            .expect("a condition can be created");
        let mut node = graph
            .add_conditional(&[], condition, ConditionalKind::IfElse)
            .expect("the node can be added");
        let inner = node.bodies[1].add_empty(&[]).expect("it fits");
        let mut exec = graph.instantiate().expect("the graph is valid");
        let conditional = node.node();
        let [body, other] = &mut node.bodies[..] else {
            panic!("there are two")
        };
        let captured = body.capture_into(&[], |scope| {
            let words = "work is being captured into the graph";
            assert_refused(test, words, || graph.nodes());
            assert_refused(test, words, || graph.instantiate());
            assert_refused(test, words, || graph.add_empty(&[]));
            assert_refused(test, words, || graph.remove(conditional));
            assert_refused(test, words, || graph.try_clone());
            assert_refused(test, words, || exec.update(&graph).map(drop));
            assert_refused(test, words, || exec.set_enabled(conditional, true));
            assert_refused(test, words, || other.add_empty(&[inner]));
            assert_refused(test, words, || other.capture_into(&[], |_| Ok(())));
            std::thread::scope(|threads| {
                let part = &mut *other;
                let asked =
                    threads.spawn(move || part.nodes().expect_err("it is refused").to_string());
                assert!(asked.join().expect("the thread ends").contains(words));
            });
            std::thread::scope(|threads| {
                let launched = threads.spawn(|| exec.launch(&test.stream()));
                launched
                    .join()
                    .expect("the thread ends")
                    .expect("the executable graph is a copy");
            });
            x.as_slice_mut().fill_on(scope, 1)
        });
        let captured = captured.expect("the refused calls have not invalidated the capture");
        assert_eq!(body.nodes().expect("it can be queried"), captured);
        other.add_empty(&[inner]).expect("the capture has ended");
        drop(exec);
        graph.instantiate().expect("the graph is valid");
    });
}

#[test]
fn work_captured_into_a_conditional_body_runs_according_to_its_value() {
    on_driver(|test| {
        for (value, expected) in [(1, [4, 0]), (0, [0, 6])] {
            let mut buffers = [zeroes(test), zeroes(test)];
            let mut graph = graph(test);
            let condition = graph
                .condition(Some(value))
                .expect("a condition can be created");
            let mut node = graph
                .add_conditional(&[], condition, ConditionalKind::IfElse)
                .expect("it can be added");
            for (index, (body, buffer)) in node.bodies.iter_mut().zip(&mut buffers).enumerate() {
                let work = |scope: &CaptureScope| {
                    buffer.as_slice_mut().fill_on(scope, 4 + 2 * index as u32)
                };
                body.capture_into(&[], work)
                    .expect("a fill can be captured");
            }
            let mut exec = graph.instantiate().expect("the graph is valid");
            drop((node, graph));
            exec.launch(&test.stream()).expect("it can be launched");
            assert_eq!(
                buffers.map(|buffer| words(&buffer)[0]),
                expected,
                "for {value}"
            );
        }
    });
}

#[test]
fn unorderable_work_in_another_part_is_rejected_and_removed() {
    on_driver(|test| {
        let (mut x, mut y) = (zeroes(test), zeroes(test));
        let mut graph = graph(test);
        graph
            .capture_into(&[], |scope| x.as_slice_mut().fill_on(scope, 1))
            .expect("a fill can be captured");
        let condition = graph
            .condition(Some(1))
            .expect("a condition can be created");
        let mut node = graph
            .add_conditional(&[], condition, ConditionalKind::If)
            .expect("the node can be added");
        let refused = node.bodies[0].capture_into(&[], |scope| copy(scope, &mut y, &x));
        let error = refused.expect_err("the parent graph writes it").to_string();
        assert!(error.contains("in another part of the graph"), "{error}");
        assert_eq!(size(&node.bodies[0]), (0, 0));
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!((words(&x), words(&y)), (vec![1; LEN], vec![0; LEN]));
        let filled = graph
            .roots()
            .expect("it can be queried")
            .into_iter()
            .find(|root| *root != node.node());
        graph
            .add_dependency(filled.expect("there is the fill"), node.node())
            .expect("it can be added");
        node.bodies[0]
            .capture_into(&[], |scope| copy(scope, &mut y, &x))
            .expect("it now depends on the fill");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&y), [1; LEN]);
    });
}

#[test]
fn branch_of_a_capture_follows_nodes_that_the_rest_does_not_wait_for() {
    on_driver(|test| {
        let (mut x, mut y, stream) = (zeroes(test), zeroes(test), test.stream());
        let (mut own, mut another) = (graph(test), graph(test));
        let foreign = another.add_empty(&[]).expect("it fits");
        let (begin, other) = (
            own.add_empty(&[]).expect("it fits"),
            own.add_empty(&[]).expect("it fits"),
        );
        let last = own.capture_into(&[begin], |scope| {
            let branch = scope.fork()?;
            assert_refused(test, "in another graph", || {
                scope.follow(&branch, &[foreign])
            });
            assert_refused(test, "does not belong to the capture", || {
                scope.follow(&stream, &[other])
            });
            scope.follow(&branch, &[other])?;
            x.as_slice_mut().fill_on(&branch, 1)?;
            y.as_slice_mut().fill_on(scope, 2)
        });
        let before: Vec<_> = last
            .expect("fills can be captured")
            .iter()
            .map(|node| before(&own, *node))
            .collect();
        assert_eq!(before.len(), 2);
        assert!(
            before.contains(&HashSet::from([begin]))
                && before.contains(&HashSet::from([begin, other]))
        );
        let refused = Graph::capture(&test.context(), |scope| scope.follow(scope, &[other]));
        assert!(
            refused
                .expect_err("it captures a separate graph")
                .to_string()
                .contains("creates a new graph")
        );
    });
}

#[test]
fn capture_after_nodes_of_other_graphs_is_rejected_before_the_driver_is_called() {
    on_driver(|test| {
        let (mut own, mut other) = (graph(test), graph(test));
        let (foreign, removed) = (
            other.add_empty(&[]).expect("it fits"),
            own.add_empty(&[]).expect("it fits"),
        );
        own.remove(removed).expect("it can be removed");
        let unreached = |_: &CaptureScope| -> Result<()> { panic!("the work must not begin") };
        assert_refused(test, "in another graph", || {
            own.capture_into(&[foreign], unreached)
        });
        assert_refused(test, "was removed", || {
            own.capture_into(&[removed], unreached)
        });
        assert!(own.nodes().expect("nothing is being captured").is_empty());
    });
}

#[test]
fn capture_into_a_graph_is_a_missing_function_before_12_3() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 2)),
        |test, _| {
            let mut graph = graph(test);
            let refuse = |test: &TestDriver, graph: &mut Graph| {
                assert_refused(test, "12.3", || {
                    graph.capture_into(&[], |_| panic!("the work must not begin"))
                });
            };
            refuse(test, &mut graph);
            refuse(test, &mut graph);
            assert!(graph.nodes().expect("nothing is being captured").is_empty());
        },
    );
}

pub(crate) mod operations {
    use curium_driver::{Error, Graph};

    use crate::operations::{Fixture, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Graph::capture_into", |fixture| {
            let mut graph = Graph::new(&fixture.context)?;
            let Fixture { buffer, target, .. } = fixture;
            let filled =
                graph.capture_into(&[], |scope| buffer.as_slice_mut().fill_on(scope, 3))?;
            let begin = graph.add_empty(&[])?;
            // Ordered after the fill by the memory, without a named dependency.
            let last = graph.capture_into(&[begin], |scope| {
                target.as_slice_mut().copy_from_device_on(scope, buffer)?;
                scope.add_host(scope, || {})
            })?;
            made((graph, filled, last))
        }),
        ("CaptureScope::follow", |fixture| {
            let mut graph = Graph::new(&fixture.context)?;
            let node = graph.add_empty(&[])?;
            let last = graph.capture_into(&[], |scope| {
                scope.follow(scope, &[node])?;
                fixture.buffer.as_slice_mut().fill_on(scope, 3)
            })?;
            made((graph, last))
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] =
        &[("Graph::capture_into, of work that fails", |fixture| {
            let mut graph = Graph::new(&fixture.context)?;
            let failed = graph.capture_into(&[], |scope| {
                fixture.buffer.as_slice_mut().fill_on(scope, 3)?;
                Err(Error::argument("work", "fails as it should"))
            });
            made((failed.err(), graph))
        })];
}
