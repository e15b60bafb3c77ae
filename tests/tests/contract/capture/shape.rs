//! Captured graphs: forks, joins, and the dependencies that callers query and change.

use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::{Result, Stream, call};
use curium_sys::{
    CUgraph, CUgraphNode, CUresult, CUstreamCaptureMode_enum as Mode, CUstreamCaptureStatus,
};
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{
    address, begin, captured, code, copy, destroy, end, event, fill, record, run, status, values,
    wait, words,
};

/// Returns the ID of a stream's capture, its graph, and the dependencies of its next node.
fn info(stream: &Stream) -> Result<(u64, CUgraph, Vec<CUgraphNode>)> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut number = 0;
    let mut graph = ptr::null_mut();
    let mut nodes = ptr::null();
    let mut count = 0;
    let graph_place = &raw mut graph;
    let nodes_place = &raw mut nodes;
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

fn node_count(stream: &Stream, graph: CUgraph) -> TestResult<usize> {
    let mut count = 0;
    // SAFETY: the graph is live; the call returns only the number of nodes.
    unsafe {
        call!(
            stream.driver(),
            cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count)
        )
    }?;
    Ok(count)
}

#[driver_test]
fn streams_fork_and_join_by_events(test: &TestDriver) -> TestResult {
    let main = test.stream();
    let side = test.stream();
    let first = words(test)?;
    let second = words(test)?;
    let third = words(test)?;
    let forked = event(test)?;
    let joined = event(test)?;
    let graph = captured(&main, || {
        fill(&main, address(&first), 1, 4)?;
        record(&forked, &main)?;
        wait(&side, &forked)?;
        assert_eq!(
            status(&side)?,
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        );
        copy(&side, address(&second), address(&first), 16)?;
        fill(&side, address(&second), 2, 1)?;
        record(&joined, &side)?;
        wait(&main, &joined)?;
        copy(&main, address(&third), address(&second), 16)?;
        Ok(())
    })?;
    assert_eq!(
        status(&side)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    assert_eq!(node_count(&main, graph)?, 4);
    run(&main, graph, 1)?;
    assert_eq!(values(&third)?, [2, 1, 1, 1]);
    Ok(())
}

#[driver_test]
fn stream_reports_its_capture_until_it_ends(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let buffer = words(test)?;
    assert_eq!(
        status(&stream)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let (number, graph, nodes) = info(&stream)?;
    assert_eq!(nodes, []);
    fill(&stream, address(&buffer), 1, 4)?;
    let (again, same, nodes) = info(&stream)?;
    assert_eq!((again, same, nodes.len()), (number, graph, 1));
    assert_eq!(
        status(&other)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    let (ended, result) = end(&stream);
    result?;
    assert_eq!(ended, graph);
    destroy(&stream, graph)?;
    let next = captured(&stream, || {
        assert_ne!(info(&stream)?.0, number);
        Ok(())
    })?;
    destroy(&stream, next)?;
    Ok(())
}

#[driver_test]
fn next_node_dependencies_can_be_changed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = words(test)?;
    begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    fill(&stream, address(&buffer), 1, 4)?;
    let (_, graph, mut first) = info(&stream)?;
    let update = |nodes: &mut [CUgraphNode], flags| {
        let raw = stream.as_raw();
        let list = nodes.as_mut_ptr();
        let len = nodes.len();
        // SAFETY: the stream is live, and the nodes belong to its graph.
        unsafe {
            call!(
                stream.driver(),
                cuStreamUpdateCaptureDependencies(raw, list, len, flags)
            )
        }
    };
    update(&mut [], 1)?;
    assert_eq!(info(&stream)?.2, []);
    let mut node: CUgraphNode = ptr::null_mut();
    // SAFETY: the graph is live during its capture; the node depends on the first.
    unsafe {
        call!(
            stream.driver(),
            cuGraphAddEmptyNode(&raw mut node, graph, first.as_ptr(), 1)
        )
    }?;
    update(&mut [node], 0)?;
    update(&mut first, 0)?;
    let nodes = info(&stream)?.2;
    assert_eq!(
        (
            nodes.len(),
            nodes.contains(&node),
            nodes.contains(&first[0])
        ),
        (2, true, true)
    );
    assert_eq!(
        code(update(&mut first, 7)),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    let (graph, result) = end(&stream);
    result?;
    assert_eq!(
        code(update(&mut first, 0)),
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
    );
    destroy(&stream, graph)?;
    Ok(())
}

#[driver_test]
fn capture_into_a_graph_adds_to_its_nodes(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let first = words(test)?;
    let second = words(test)?;
    let graph = captured(&stream, || {
        fill(&stream, address(&first), 3, 4)?;
        Ok(())
    })?;
    let mut node = ptr::null_mut();
    let mut count = 1;
    // SAFETY: the graph is live, and the address is valid for writes of one node.
    unsafe {
        call!(
            stream.driver(),
            cuGraphGetNodes(graph, &raw mut node, &raw mut count)
        )
    }?;
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
    }?;
    copy(&stream, address(&second), address(&first), 16)?;
    let (same, result) = end(&stream);
    result?;
    assert_eq!((same, node_count(&stream, graph)?), (graph, 2));
    run(&stream, graph, 1)?;
    assert_eq!(values(&second)?, [3; 4]);
    Ok(())
}
