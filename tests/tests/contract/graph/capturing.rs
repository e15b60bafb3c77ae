//! Captures into an existing graph.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use curium_driver::{CaptureScope, ConditionalKind, Error, Graph, Node, Result, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::CudaVersion;
use curium_tests::{TestDriver, TestResult, driver_test, resume_panic, simulator_test};

use super::keeping::await_last;
use super::refusing::assert_refused;
use super::{LEN, graph, run, words, zeroes};

type Words = DeviceBuffer<u32>;

fn copy(stream: &Stream, target: &mut Words, source: &Words) -> Result<()> {
    target.on_mut(stream).copy_from_device(source)
}

fn before(graph: &Graph, node: Node) -> HashSet<Node> {
    let dependencies = graph.dependencies(node).expect("the node is there");
    dependencies.into_iter().map(|(node, _)| node).collect()
}

/// Returns the number of nodes and edges.
fn size(graph: &Graph) -> TestResult<(usize, usize)> {
    Ok((graph.nodes()?.len(), graph.edges()?.len()))
}

fn work_error() -> Error {
    Error::argument("work", "part of the test")
}

/// Work captured into a graph depends on the named nodes.
#[driver_test]
fn captured_work_depends_on_the_named_nodes(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let mut graph = graph(test);
    let begin = graph.add_empty(&[])?;
    let other = graph.add_empty(&[])?;
    let filled = graph.capture_into(&[begin], |scope| x.on_mut(scope).fill(7));
    let [filled] = filled?[..] else {
        panic!("there is one node")
    };
    assert_eq!(before(&graph, filled), HashSet::from([begin]));
    let copied = graph.capture_into(&[filled, other], |scope| copy(scope, &mut y, &x));
    let [copied] = copied?[..] else {
        panic!("there is one node")
    };
    assert_eq!(before(&graph, copied), HashSet::from([filled, other]));
    assert_eq!(
        graph.capture_into(&[copied], |_| Ok::<_, Error>(()))?,
        [copied]
    );
    assert_eq!(size(&graph)?, (4, 3));
    let mut exec = graph.instantiate()?;
    assert_eq!(words(&y), [0; LEN], "nothing has run");
    // The memory is leased: it outlives its owner, and the launch is an access to it.
    drop((graph, x));
    exec.launch(&test.stream())?;
    assert_eq!(words(&y), [7; LEN]);
    Ok(())
}

/// Work captured into a graph is ordered after writes of its memory.
#[driver_test]
fn captured_work_follows_writes_to_its_memory(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let mut z = zeroes(test);
    let source = zeroes(test);
    let mut graph = graph(test);
    let into = |graph: &mut Graph,
                work: &mut dyn FnMut(&CaptureScope) -> Result<()>|
     -> TestResult<_> { Ok(graph.capture_into(&[], work)?[0]) };
    let first = into(&mut graph, &mut |scope| x.on_mut(scope).fill(3))?;
    let apart = into(&mut graph, &mut |scope| copy(scope, &mut z, &source))?;
    let read = into(&mut graph, &mut |scope| copy(scope, &mut y, &x))?;
    let again = into(&mut graph, &mut |scope| {
        x.on_mut(scope).fill(5)?;
        copy(scope, &mut z, &x)
    })?;
    let roots: HashSet<_> = graph.roots()?.into_iter().collect();
    assert_eq!(roots, HashSet::from([first, apart]), "they do not overlap");
    assert_eq!(
        before(&graph, read),
        HashSet::from([first, apart]),
        "it reads what the first wrote"
    );
    let write = before(&graph, again)
        .into_iter()
        .next()
        .ok_or("no dependency of the copy")?;
    assert_eq!(
        before(&graph, write),
        HashSet::from([read]),
        "it writes memory that the other reads"
    );
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(
        (words(&x), words(&y), words(&z)),
        (vec![5; LEN], vec![3; LEN], vec![5; LEN])
    );
    Ok(())
}

/// Every branch of captured work is ordered after the write of its memory.
#[driver_test]
fn every_captured_branch_follows_the_write(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let mut z = zeroes(test);
    let mut graph = graph(test);
    let filled = graph.capture_into(&[], |scope| x.on_mut(scope).fill(3))?;
    let last = graph.capture_into(&[], |scope| {
        copy(&scope.fork()?, &mut y, &x)?;
        copy(scope, &mut z, &x)
    })?;
    assert_eq!(last.len(), 2);
    last.iter()
        .for_each(|node| assert_eq!(before(&graph, *node), filled.iter().copied().collect()));
    run(test, &mut graph.instantiate()?)?;
    assert_eq!((words(&y), words(&z)), (vec![3; LEN], vec![3; LEN]));
    Ok(())
}

/// Work that only reads the same memory is captured side by side.
#[driver_test]
fn captured_readers_are_not_ordered(test: &TestDriver) -> TestResult {
    let source = zeroes(test);
    let mut one = zeroes(test);
    let mut other = zeroes(test);
    let mut graph = graph(test);
    for target in [&mut one, &mut other] {
        graph.capture_into(&[], |scope| copy(scope, target, &source))?;
    }
    assert_eq!(graph.roots()?.len(), 2);
    Ok(())
}

/// A capture into a graph that fails or panics does not change it.
#[driver_test]
fn failed_capture_does_not_change_the_graph(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let counted = Arc::new(());
    let mut graph = graph(test);
    let begin = graph.add_empty(&[])?;
    let mut stream = None;
    let mut work = |scope: &CaptureScope, x: &mut Words, y: &mut Words| {
        stream = Some((**scope).clone());
        let branch = scope.fork()?;
        x.on_mut(&branch).fill(7)?;
        copy(scope, y, x)?;
        let counter = Arc::clone(&counted);
        scope.add_host(&branch, move || drop(Arc::clone(&counter)))
    };
    let failed = graph.capture_into(&[begin], |scope| {
        work(scope, &mut x, &mut y)?;
        Err(work_error())
    });
    assert!(
        failed
            .expect_err("the work fails")
            .to_string()
            .contains("part of the test")
    );
    assert_eq!(graph.nodes()?, [begin]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        graph.capture_into(&[begin], |scope| -> Result<()> {
            work(scope, &mut x, &mut y).expect("capture failed");
            panic!("part of the test")
        })
    }));
    assert!(panicked.is_err(), "the panic propagates");
    assert_eq!((graph.nodes()?, size(&graph)?), (vec![begin], (1, 0)));
    await_last(&counted);
    assert!(!stream.ok_or("the closure was not called")?.is_capturing()?);
    let (pointer, resource) = x.into_raw()?;
    // SAFETY: the memory is that of the buffer, and no work uses it.
    let mut x = unsafe { Words::from_raw(y.stream(), pointer, LEN, resource) }?;
    graph.capture_into(&[begin], |scope| x.on_mut(scope).fill(9))?;
    run(test, &mut graph.instantiate()?)?;
    assert_eq!((words(&x), words(&y)), (vec![9; LEN], vec![0; LEN]));
    Ok(())
}

/// A graph whose nodes cannot be removed is unusable after a failed capture into it.
#[driver_test]
fn graph_is_unusable_if_the_rollback_fails(test: &TestDriver) -> TestResult {
    let mut result = zeroes(test);
    let mut graph = graph(test);
    let work = |scope: &CaptureScope, result: &mut Words| {
        let scratch = Words::zeroed(scope, LEN)?;
        copy(scope, result, &scratch)
    };
    graph.capture_into(&[], |scope| work(scope, &mut result))?;
    let mut exec = graph.instantiate()?;
    let failed = graph.capture_into(&[], |scope| {
        work(scope, &mut result)?;
        Err(work_error())
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
    run(test, &mut exec)?;
    Ok(())
}

/// A graph that is captured into refuses every other use.
#[driver_test]
fn graph_refuses_other_uses_during_a_capture(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut graph = graph(test);
    let condition = graph.condition(Some(0))?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::IfElse)?;
    let inner = node.bodies[1].add_empty(&[])?;
    let mut exec = graph.instantiate()?;
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
            let asked = threads.spawn(move || part.nodes().expect_err("it is refused").to_string());
            assert!(resume_panic(asked.join()).contains(words));
        });
        std::thread::scope(|threads| {
            let launched = threads.spawn(|| exec.launch(&test.stream()));
            resume_panic(launched.join()).expect("the executable graph is a copy");
        });
        x.on_mut(scope).fill(1)
    })?;
    assert_eq!(body.nodes()?, captured);
    other.add_empty(&[inner])?;
    drop(exec);
    graph.instantiate()?;
    Ok(())
}

/// Work captured into a conditional body runs according to its value.
#[driver_test]
fn captured_conditional_body_runs_by_its_value(test: &TestDriver) -> TestResult {
    for (value, expected) in [(1, [4, 0]), (0, [0, 6])] {
        let mut buffers = [zeroes(test), zeroes(test)];
        let mut graph = graph(test);
        let condition = graph.condition(Some(value))?;
        let mut node = graph.add_conditional(&[], condition, ConditionalKind::IfElse)?;
        for (index, (body, buffer)) in node.bodies.iter_mut().zip(&mut buffers).enumerate() {
            body.capture_into(&[], |scope: &CaptureScope| {
                buffer.on_mut(scope).fill(4 + 2 * index as u32)
            })?;
        }
        let mut exec = graph.instantiate()?;
        drop((node, graph));
        exec.launch(&test.stream())?;
        assert_eq!(
            buffers.map(|buffer| words(&buffer)[0]),
            expected,
            "for {value}"
        );
    }
    Ok(())
}

/// An unorderable work in another part is rejected and removed.
#[driver_test]
fn unorderable_captured_work_is_removed(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let mut graph = graph(test);
    graph.capture_into(&[], |scope| x.on_mut(scope).fill(1))?;
    let condition = graph.condition(Some(1))?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::If)?;
    let refused = node.bodies[0].capture_into(&[], |scope| copy(scope, &mut y, &x));
    let error = refused.expect_err("the parent graph writes it").to_string();
    assert!(error.contains("in another part of the graph"), "{error}");
    assert_eq!(size(&node.bodies[0])?, (0, 0));
    run(test, &mut graph.instantiate()?)?;
    assert_eq!((words(&x), words(&y)), (vec![1; LEN], vec![0; LEN]));
    let filled = graph.roots()?.into_iter().find(|root| *root != node.node());
    graph.add_dependency(filled.ok_or("no fill node")?, node.node())?;
    node.bodies[0].capture_into(&[], |scope| copy(scope, &mut y, &x))?;
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&y), [1; LEN]);
    Ok(())
}

/// A branch of a capture follows nodes that the rest does not wait for.
#[driver_test]
fn captured_branch_follows_its_own_nodes(test: &TestDriver) -> TestResult {
    let mut x = zeroes(test);
    let mut y = zeroes(test);
    let stream = test.stream();
    let mut target = graph(test);
    let mut another = graph(test);
    let foreign = another.add_empty(&[])?;
    let begin = target.add_empty(&[])?;
    let other = target.add_empty(&[])?;
    let last = target.capture_into(&[begin], |scope| {
        let branch = scope.fork()?;
        assert_refused(test, "in another graph", || {
            scope.follow(&branch, &[foreign])
        });
        assert_refused(test, "does not belong to the capture", || {
            scope.follow(&stream, &[other])
        });
        scope.follow(&branch, &[other])?;
        x.on_mut(&branch).fill(1)?;
        y.on_mut(scope).fill(2)
    });
    let before: Vec<_> = last?.iter().map(|node| before(&target, *node)).collect();
    assert_eq!(before.len(), 2);
    assert!(
        before.contains(&HashSet::from([begin])) && before.contains(&HashSet::from([begin, other]))
    );
    let refused = Graph::capture(&test.context(), |scope| scope.follow(scope, &[other]));
    assert!(
        refused
            .expect_err("it captures a separate graph")
            .to_string()
            .contains("creates a new graph")
    );
    Ok(())
}

/// A capture after nodes of other graphs is rejected before any driver call.
#[driver_test]
fn capture_after_foreign_nodes_is_rejected(test: &TestDriver) -> TestResult {
    let mut target = graph(test);
    let mut other = graph(test);
    let foreign = other.add_empty(&[])?;
    let removed = target.add_empty(&[])?;
    target.remove(removed)?;
    fn unreached(_: &CaptureScope) -> Result<()> {
        panic!("the work must not begin")
    }

    assert_refused(test, "in another graph", || {
        target.capture_into(&[foreign], unreached)
    });
    assert_refused(test, "was removed", || {
        target.capture_into(&[removed], unreached)
    });
    assert!(target.nodes()?.is_empty());
    Ok(())
}

/// A capture into a graph is a missing function before 12.3.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 2)))]
fn capture_into_a_graph_requires_12_3(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut graph = graph(test);
    fn refuse(test: &TestDriver, graph: &mut Graph) {
        assert_refused(test, "12.3", || {
            graph.capture_into(&[], |_| panic!("the work must not begin"))
        });
    }

    refuse(test, &mut graph);
    refuse(test, &mut graph);
    assert!(graph.nodes()?.is_empty());
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Error, Graph};

    use crate::operations::{Fixture, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::capture_into", |fixture| {
            let mut graph = Graph::new(&fixture.context)?;
            let Fixture { buffer, target, .. } = fixture;
            let filled = graph.capture_into(&[], |scope| buffer.on_mut(scope).fill(3))?;
            let begin = graph.add_empty(&[])?;
            // Ordered after the fill by the memory, without a named dependency.
            let last = graph.capture_into(&[begin], |scope| {
                target.on_mut(scope).copy_from_device(buffer)?;
                scope.add_host(scope, || {})
            })?;
            made((graph, filled, last))
        }),
        ("CaptureScope::follow", |fixture| {
            let mut graph = Graph::new(&fixture.context)?;
            let node = graph.add_empty(&[])?;
            let last = graph.capture_into(&[], |scope| {
                scope.follow(scope, &[node])?;
                fixture.buffer.on_mut(scope).fill(3)
            })?;
            made((graph, last))
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Graph::capture_into, of work that fails", |fixture| {
        let mut graph = Graph::new(&fixture.context)?;
        let failed = graph.capture_into(&[], |scope| {
            fixture.buffer.on_mut(scope).fill(3)?;
            Err(Error::argument("work", "fails as it should"))
        });
        made((failed.err(), graph))
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
