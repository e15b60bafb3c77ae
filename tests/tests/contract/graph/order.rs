//! Captured work on the same memory stays ordered in every composition of its graphs.

use curium_driver::{ConditionalKind, EdgeData, Graph};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};

use super::{LEN, run, words, zeroes};

/// Returns the captured graph of a copy from `source` to `target`.
fn copying(test: &TestDriver, target: &mut DeviceBuffer<u32>, source: &DeviceBuffer<u32>) -> Graph {
    let work = |scope: &curium_driver::CaptureScope| {
        target.as_slice_mut().copy_from_device_on(scope, source)
    };
    Graph::capture(&test.context(), work).expect("a copy can be captured")
}

#[test]
fn child_graphs_with_conflicting_accesses_are_ordered() {
    on_driver(|test| {
        let stream = test.stream();
        let first = DeviceBuffer::from_slice(&stream, &[7_u32; LEN]).expect("memory suffices");
        let (mut middle, mut last) = (zeroes(test), zeroes(test));
        let into_middle = copying(test, &mut middle, &first);
        let into_last = copying(test, &mut last, &middle);
        let mut graph = super::graph(test);
        let begin = graph.add_empty(&[]).expect("a node can be added");
        let write = graph
            .add_child(&[begin], &into_middle)
            .expect("the child can be added");
        let read = graph
            .add_child(&[begin], &into_last)
            .expect("the child can be added");
        let again = graph
            .add_child(&[], &into_middle)
            .expect("the child can be added");
        let before = |node| {
            graph
                .dependencies(node)
                .expect("it can be queried")
                .into_iter()
                .map(|(node, _)| node)
        };
        assert_eq!(before(*write).collect::<Vec<_>>(), [begin]);
        assert!(
            before(*read).any(|node| node == *write),
            "it reads what the first child writes"
        );
        assert!(
            before(*again).any(|node| node == *read),
            "it writes what the second child reads"
        );
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!((words(&middle), words(&last)), (vec![7; LEN], vec![7; LEN]));
    });
}

#[test]
fn children_that_only_read_the_same_memory_are_not_ordered() {
    on_driver(|test| {
        let (source, mut one, mut other) = (zeroes(test), zeroes(test), zeroes(test));
        let (first, second) = (
            copying(test, &mut one, &source),
            copying(test, &mut other, &source),
        );
        let mut graph = super::graph(test);
        graph
            .add_child(&[], &first)
            .expect("the child can be added");
        graph
            .add_child(&[], &second)
            .expect("the child can be added");
        assert_eq!(graph.roots().expect("it can be queried").len(), 2);
    });
}

#[test]
fn child_that_conflicts_with_unordered_work_of_another_part_is_refused() {
    on_driver(|test| {
        let (source, mut target) = (zeroes(test), zeroes(test));
        let writes = copying(test, &mut target, &source);
        let mut graph = super::graph(test);
        let condition = graph.condition(None).expect("a condition can be created");
        let mut node = graph
            .add_conditional(&[], condition, ConditionalKind::If)
            .expect("the node can be added");
        let unordered = graph
            .add_child(&[], &writes)
            .expect("nothing conflicts with it");
        let error = node.bodies[0]
            .add_child(&[], &writes)
            .expect_err("the two would run concurrently")
            .to_string();
        assert!(error.contains("in another part of the graph"), "{error}");
        assert!(
            node.bodies[0]
                .nodes()
                .expect("it can be queried")
                .is_empty()
        );
        graph
            .add_dependency(*unordered, node.node())
            .expect("it can be added");
        node.bodies[0]
            .add_child(&[], &writes)
            .expect("the two are ordered");
        // Later work depends on the body, and does not run concurrently with it.
        let last = graph
            .add_child(&[], &writes)
            .expect("it depends on the conditional node");
        assert_eq!(
            graph.dependencies(*last).expect("it can be queried"),
            [(node.node(), EdgeData::new())]
        );
        graph.add_empty(&[]).expect("it fits");
        node.bodies[0]
            .add_child(&[], &writes)
            .expect_err("a node that is not ordered may be any work");
    });
}

#[test]
fn bodies_of_one_conditional_node_use_the_same_memory() {
    on_driver(|test| {
        let (source, mut target) = (zeroes(test), zeroes(test));
        let writes = copying(test, &mut target, &source);
        let mut graph = super::graph(test);
        let condition = graph
            .condition(Some(0))
            .expect("a condition can be created");
        let mut node = graph
            .add_conditional(&[], condition, ConditionalKind::IfElse)
            .expect("the node can be added");
        for body in &mut node.bodies {
            body.add_child(&[], &writes)
                .expect("only one of the bodies runs");
        }
        run(test, &mut graph.instantiate().expect("the graph is valid"));
    });
}

#[test]
fn edges_of_captured_work_that_writes_cannot_be_removed() {
    on_driver(|test| {
        let (first, mut middle, mut last) = (zeroes(test), zeroes(test), zeroes(test));
        let mut graph = Graph::capture(&test.context(), |scope| {
            middle.as_slice_mut().copy_from_device_on(scope, &first)?;
            last.as_slice_mut().copy_from_device_on(scope, &middle)
        })
        .expect("copies can be captured");
        let edges = graph.edges().expect("it can be queried");
        assert_eq!(edges.len(), 1);
        let (from, to) = (edges[0].from, edges[0].to);
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
        assert_eq!(graph.edges().expect("it can be queried").len(), 1);
        run(test, &mut graph.instantiate().expect("the graph is valid"));
    });
}

#[test]
fn child_with_a_new_conflict_does_not_replace_another() {
    on_driver(|test| {
        let stream = test.stream();
        let source = DeviceBuffer::from_slice(&stream, &[3_u32; LEN]).expect("memory suffices");
        let (mut own, mut shared, mut unused) = (zeroes(test), zeroes(test), zeroes(test));
        let (kept, writes) = (
            copying(test, &mut own, &source),
            copying(test, &mut shared, &source),
        );
        let (meets, apart) = (
            copying(test, &mut shared, &unused),
            copying(test, &mut unused, &source),
        );
        let mut graph = super::graph(test);
        let node = graph.add_child(&[], &kept).expect("the child can be added");
        graph
            .add_child(&[], &writes)
            .expect("the child can be added");
        let mut exec = graph.instantiate().expect("the graph is valid");
        let error = exec
            .set_child(node, &meets)
            .expect_err("the two are not ordered")
            .to_string();
        assert!(error.contains("the previous child does not"), "{error}");
        exec.set_child(node, &apart)
            .expect("nothing else uses that memory");
        exec.set_child(node, &kept)
            .expect("the first child is valid");
        run(test, &mut exec);
        assert_eq!(
            (words(&own), words(&shared), words(&unused)),
            (vec![3; LEN], vec![3; LEN], vec![0; LEN])
        );
    });
}

pub(crate) mod operations {
    use crate::graph::operations::with_child;
    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Graph::add_child", |fixture| made(with_child(fixture)?)),
        ("Graph::child", |fixture| {
            let (graph, node, _) = with_child(fixture)?;
            made((graph.child(node)?, graph))
        }),
    ];
}
