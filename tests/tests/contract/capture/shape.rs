//! Captured graphs: forks, joins, and the dependencies that callers query and change.

use std::ptr;

use curium_driver::{Result, Stream, call};
use curium_sys::{
    CUgraph, CUgraphNode, CUresult, CUstreamCaptureMode_enum as Mode, CUstreamCaptureStatus,
};
use curium_tests::on_driver;

use super::{
    address, begin, captured, code, copy, destroy, end, event, fill, record, run, status, values,
    wait, words,
};

/// Returns the ID of a stream's capture, its graph, and the dependencies of its next node.
fn info(stream: &Stream) -> Result<(u64, CUgraph, Vec<CUgraphNode>)> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut number, mut graph, mut nodes, mut count) = (0, ptr::null_mut(), ptr::null(), 0);
    let (graph_place, nodes_place) = (&raw mut graph, &raw mut nodes);
    // SAFETY: the stream is live, and the other addresses are valid for writes.
    unsafe {
        call!(
            stream.driver(),
            cuStreamGetCaptureInfo_v2(
                stream.as_raw(),
                &raw mut status,
                &raw mut number,
                graph_place,
                nodes_place,
                &raw mut count
            )
        )
    }?;
    let nodes = if count == 0 {
        &[]
    } else {
        // SAFETY: the driver keeps the list until the next call for this stream.
        unsafe { std::slice::from_raw_parts(nodes, count) }
    };
    Ok((number, graph, nodes.to_vec()))
}

fn node_count(stream: &Stream, graph: CUgraph) -> usize {
    let mut count = 0;
    // SAFETY: the graph is live; the call returns only the number of nodes.
    unsafe {
        call!(
            stream.driver(),
            cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count)
        )
    }
    .expect("a graph can be queried");
    count
}

#[test]
fn streams_fork_and_join_by_events() {
    on_driver(|test| {
        let (main, side) = (test.stream(), test.stream());
        let (first, second, third) = (words(test), words(test), words(test));
        let (forked, joined) = (event(test), event(test));
        let graph = captured(&main, || {
            fill(&main, address(&first), 1, 4).expect("a fill can be captured");
            record(&forked, &main).expect("an event can be recorded in a capture");
            wait(&side, &forked).expect("another stream can join");
            assert_eq!(
                status(&side),
                CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
            );
            copy(&side, address(&second), address(&first), 16).expect("a copy can be captured");
            fill(&side, address(&second), 2, 1).expect("a fill can be captured");
            record(&joined, &side).expect("an event can be recorded in a capture");
            wait(&main, &joined).expect("the stream can be joined");
            copy(&main, address(&third), address(&second), 16).expect("a copy can be captured");
        });
        assert_eq!(
            status(&side),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
        assert_eq!(node_count(&main, graph), 4);
        run(&main, graph, 1);
        assert_eq!(values(&third), [2, 1, 1, 1]);
    });
}

#[test]
fn stream_reports_its_capture_until_it_ends() {
    on_driver(|test| {
        let (stream, other, buffer) = (test.stream(), test.stream(), words(test));
        assert_eq!(
            status(&stream),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
        begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture can begin");
        let (number, graph, nodes) = info(&stream).expect("a stream can be queried");
        assert_eq!(nodes, []);
        fill(&stream, address(&buffer), 1, 4).expect("a fill can be captured");
        let (again, same, nodes) = info(&stream).expect("a stream can be queried");
        assert_eq!((again, same, nodes.len()), (number, graph, 1));
        assert_eq!(
            status(&other),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
        let (ended, result) = end(&stream);
        result.expect("the capture is valid");
        assert_eq!(ended, graph);
        destroy(&stream, graph);
        let next = captured(&stream, || {
            assert_ne!(info(&stream).expect("a stream can be queried").0, number);
        });
        destroy(&stream, next);
    });
}

#[test]
fn dependencies_of_the_next_node_can_be_changed() {
    on_driver(|test| {
        let (stream, buffer) = (test.stream(), words(test));
        begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture can begin");
        fill(&stream, address(&buffer), 1, 4).expect("a fill can be captured");
        let (_, graph, mut first) = info(&stream).expect("a stream can be queried");
        let update = |nodes: &mut [CUgraphNode], flags| {
            let (raw, list, len) = (stream.as_raw(), nodes.as_mut_ptr(), nodes.len());
            // SAFETY: the stream is live, and the nodes belong to its graph.
            unsafe {
                call!(
                    stream.driver(),
                    cuStreamUpdateCaptureDependencies(raw, list, len, flags)
                )
            }
        };
        update(&mut [], 1).expect("the nodes can be set");
        assert_eq!(info(&stream).expect("a stream can be queried").2, []);
        let mut own: CUgraphNode = ptr::null_mut();
        // SAFETY: the graph is live during its capture; the node depends on the first.
        unsafe {
            call!(
                stream.driver(),
                cuGraphAddEmptyNode(&raw mut own, graph, first.as_ptr(), 1)
            )
        }
        .expect("a node can be added to a graph that is captured");
        update(&mut [own], 0).expect("a node can be added");
        update(&mut first, 0).expect("a node can be added");
        let nodes = info(&stream).expect("a stream can be queried").2;
        assert_eq!(
            (nodes.len(), nodes.contains(&own), nodes.contains(&first[0])),
            (2, true, true)
        );
        assert_eq!(
            code(update(&mut first, 7)),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
        let (graph, result) = end(&stream);
        result.expect("the capture is valid");
        assert_eq!(
            code(update(&mut first, 0)),
            Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
        );
        destroy(&stream, graph);
    });
}

#[test]
fn capture_into_a_graph_adds_to_its_nodes() {
    on_driver(|test| {
        let (stream, first, second) = (test.stream(), words(test), words(test));
        let graph = captured(&stream, || {
            fill(&stream, address(&first), 3, 4).expect("a fill can be captured");
        });
        let (mut node, mut count) = (ptr::null_mut(), 1);
        // SAFETY: the graph is live, and the address is valid for writes of one node.
        unsafe {
            call!(
                stream.driver(),
                cuGraphGetNodes(graph, &raw mut node, &raw mut count)
            )
        }
        .expect("a graph can be queried");
        let (raw, mode, after) = (
            stream.as_raw(),
            Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            &raw const node,
        );
        // SAFETY: the stream and the graph are live, and the node belongs to the graph.
        unsafe {
            call!(
                stream.driver(),
                cuStreamBeginCaptureToGraph(raw, graph, after, ptr::null(), 1, mode)
            )
        }
        .expect("a capture can begin");
        copy(&stream, address(&second), address(&first), 16).expect("a copy can be captured");
        let (same, result) = end(&stream);
        result.expect("the capture is valid");
        assert_eq!((same, node_count(&stream, graph)), (graph, 2));
        run(&stream, graph, 1);
        assert_eq!(values(&second), [3; 4]);
    });
}
