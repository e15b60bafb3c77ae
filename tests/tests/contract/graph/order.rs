//! Captured work on the same memory stays ordered in every composition of its graphs.

use curium_driver::{ConditionalKind, EdgeData, Graph};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{LEN, run, words, zeroes};

/// Returns the captured graph of a copy from `source` to `target`.
fn copying(
    test: &TestDriver,
    target: &mut DeviceBuffer<u32>,
    source: &DeviceBuffer<u32>,
) -> TestResult<Graph> {
    Ok(Graph::capture(
        &test.context(),
        |scope: &curium_driver::CaptureScope| target.on_mut(scope).copy_from_device(source),
    )?)
}

#[driver_test]
fn child_graphs_with_conflicting_accesses_are_ordered(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let first = DeviceBuffer::from_slice(&stream, &[7_u32; LEN])?;
    let mut middle = zeroes(test);
    let mut last = zeroes(test);
    let into_middle = copying(test, &mut middle, &first)?;
    let into_last = copying(test, &mut last, &middle)?;
    let mut graph = super::graph(test);
    let begin = graph.add_empty(&[])?;
    let write = graph.add_child(&[begin], &into_middle)?;
    let read = graph.add_child(&[begin], &into_last)?;
    let again = graph.add_child(&[], &into_middle)?;
    let before =
        |node| -> TestResult<_> { Ok(graph.dependencies(node)?.into_iter().map(|(node, _)| node)) };
    assert_eq!(before(*write)?.collect::<Vec<_>>(), [begin]);
    assert!(
        before(*read)?.any(|node| node == *write),
        "it reads what the first child writes"
    );
    assert!(
        before(*again)?.any(|node| node == *read),
        "it writes what the second child reads"
    );
    run(test, &mut graph.instantiate()?)?;
    assert_eq!((words(&middle), words(&last)), (vec![7; LEN], vec![7; LEN]));
    Ok(())
}

/// A children that only read the same memory are not ordered.
#[driver_test]
fn reading_children_are_not_ordered(test: &TestDriver) -> TestResult {
    let source = zeroes(test);
    let mut one = zeroes(test);
    let mut other = zeroes(test);
    let first = copying(test, &mut one, &source)?;
    let second = copying(test, &mut other, &source)?;
    let mut graph = super::graph(test);
    graph.add_child(&[], &first)?;
    graph.add_child(&[], &second)?;
    assert_eq!(graph.roots()?.len(), 2);
    Ok(())
}

/// A child that conflicts with unordered work of another part is refused.
#[driver_test]
fn conflicting_unordered_child_is_refused(test: &TestDriver) -> TestResult {
    let source = zeroes(test);
    let mut target = zeroes(test);
    let writes = copying(test, &mut target, &source)?;
    let mut graph = super::graph(test);
    let condition = graph.condition(None)?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::If)?;
    let unordered = graph.add_child(&[], &writes)?;
    let error = node.bodies[0]
        .add_child(&[], &writes)
        .expect_err("the two would run concurrently")
        .to_string();
    assert!(error.contains("in another part of the graph"), "{error}");
    assert!(node.bodies[0].nodes()?.is_empty());
    graph.add_dependency(*unordered, node.node())?;
    node.bodies[0].add_child(&[], &writes)?;
    // Later work depends on the body, and does not run concurrently with it.
    let last = graph.add_child(&[], &writes)?;
    assert_eq!(graph.dependencies(*last)?, [(node.node(), EdgeData::new())]);
    graph.add_empty(&[])?;
    node.bodies[0]
        .add_child(&[], &writes)
        .expect_err("a node that is not ordered may be any work");
    Ok(())
}

#[driver_test]
fn conditional_bodies_share_memory(test: &TestDriver) -> TestResult {
    let source = zeroes(test);
    let mut target = zeroes(test);
    let writes = copying(test, &mut target, &source)?;
    let mut graph = super::graph(test);
    let condition = graph.condition(Some(0))?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::IfElse)?;
    for body in &mut node.bodies {
        body.add_child(&[], &writes)?;
    }
    run(test, &mut graph.instantiate()?)?;
    Ok(())
}

/// Edges of captured work that writes cannot be removed.
#[driver_test]
fn edges_between_captured_writes_are_permanent(test: &TestDriver) -> TestResult {
    let first = zeroes(test);
    let mut middle = zeroes(test);
    let mut last = zeroes(test);
    let mut graph = Graph::capture(&test.context(), |scope| {
        middle.on_mut(scope).copy_from_device(&first)?;
        last.on_mut(scope).copy_from_device(&middle)
    })?;
    let edges = graph.edges()?;
    assert_eq!(edges.len(), 1);
    let from = edges[0].from;
    let to = edges[0].to;
    for error in [
        graph.remove_edge(from, to, EdgeData::new()),
        graph.remove(from),
    ]
    .map(|result| result.expect_err("the order would be lost").to_string())
    {
        assert!(
            error.contains("captured work that writes memory"),
            "{error}"
        );
    }
    assert_eq!(graph.edges()?.len(), 1);
    run(test, &mut graph.instantiate()?)?;
    Ok(())
}

#[driver_test]
fn child_with_a_new_conflict_does_not_replace_another(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = DeviceBuffer::from_slice(&stream, &[3_u32; LEN])?;
    let mut target = zeroes(test);
    let mut shared = zeroes(test);
    let mut unused = zeroes(test);
    let owned_copy = copying(test, &mut target, &source)?;
    let writes = copying(test, &mut shared, &source)?;
    let meets = copying(test, &mut shared, &unused)?;
    let apart = copying(test, &mut unused, &source)?;
    let mut graph = super::graph(test);
    let node = graph.add_child(&[], &owned_copy)?;
    graph.add_child(&[], &writes)?;
    let mut exec = graph.instantiate()?;
    let error = exec
        .set_child(node, &meets)
        .expect_err("the two are not ordered")
        .to_string();
    assert!(error.contains("the previous child does not"), "{error}");
    exec.set_child(node, &apart)?;
    exec.set_child(node, &owned_copy)?;
    run(test, &mut exec)?;
    assert_eq!(
        (words(&target), words(&shared), words(&unused)),
        (vec![3; LEN], vec![3; LEN], vec![0; LEN])
    );
    Ok(())
}

pub(crate) mod operations {
    use crate::graph::operations::with_child;
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::add_child", |fixture| made(with_child(fixture)?)),
        ("Graph::child", |fixture| {
            let (graph, node, _) = with_child(fixture)?;
            made((graph.child(node)?, graph))
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
