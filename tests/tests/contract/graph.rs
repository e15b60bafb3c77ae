//! Graphs, their nodes and executable graphs.

pub(crate) mod capturing;
pub(crate) mod changing;
pub(crate) mod conditions;
pub(crate) mod keeping;
pub(crate) mod kinds;
pub(crate) mod order;
pub(crate) mod recapturing;
mod refusing;
pub(crate) mod shape;

use curium_driver::{
    CopyPlace, DevicePointer, FillValue, Function, Graph, GraphCopy, GraphFill, Kernel, KernelNode,
    LaunchConfig, Library, Node,
};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, resume_panic};

type Fill = (&'static mut [u32], u32, u32);

const LEN: usize = 64;

fn fill(test: &TestDriver) -> TestResult<Kernel<Fill>> {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    Ok(library.kernel("fill")?)
}

fn graph(test: &TestDriver) -> Graph {
    Graph::new(&test.context()).expect("failed to create a graph")
}

/// Allocates a zeroed buffer, and waits until it is zeroed.
fn zeroes(test: &TestDriver) -> DeviceBuffer<u32> {
    let buffer = DeviceBuffer::zeroed(&test.stream(), LEN).expect("allocation failed");
    buffer
        .stream()
        .synchronize()
        .expect("synchronization failed");
    buffer
}

/// Adds a node with a kernel that fills the whole buffer.
fn add_kernel(
    graph: &mut Graph,
    after: &[Node],
    kernel: &Kernel<Fill>,
    buffer: &DeviceBuffer<u32>,
    value: u32,
) -> KernelNode<Fill> {
    let config = LaunchConfig::for_elements(LEN);
    let arguments = (buffer.as_pointer(), value, LEN as u32);
    // SAFETY: `fill` writes exactly the words of the buffer; the tests keep the buffer and wait for
    // their launches.
    unsafe { graph.add_kernel(after, kernel, config, arguments) }.expect("failed to add the node")
}

fn fill_parameters(buffer: &DeviceBuffer<u32>, value: u32) -> GraphFill {
    GraphFill::new(buffer.as_pointer().cast(), FillValue::U32(value), LEN)
}

fn add_fill(
    graph: &mut Graph,
    after: &[Node],
    buffer: &DeviceBuffer<u32>,
    value: u32,
) -> TestResult<curium_driver::FillNode> {
    // SAFETY: the buffers have the same length; the tests keep them and wait for their launches.
    Ok(unsafe { graph.add_fill(after, fill_parameters(buffer, value)) }?)
}

fn byte_pointer(buffer: &DeviceBuffer<u32>) -> DevicePointer<u8> {
    buffer.as_pointer().cast()
}

/// Launches an executable and waits for it.
fn run(test: &TestDriver, exec: &mut curium_driver::GraphExec) -> TestResult {
    let stream = test.stream();
    exec.launch(&stream)?;
    stream.synchronize()?;
    Ok(())
}

fn words(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("read failed")
}

#[driver_test]
fn nodes_run_after_their_dependencies_in_each_launch(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let first = zeroes(test);
    let second = zeroes(test);
    let mut graph = graph(test);
    let filled = add_kernel(&mut graph, &[], &kernel, &first, 7);
    let copy = GraphCopy::new(
        CopyPlace::device(byte_pointer(&first)),
        CopyPlace::device(byte_pointer(&second)),
        LEN * 4,
    );
    // SAFETY: both buffers have the same length and outlive the launches, which the test waits for.
    let copied = unsafe { graph.add_copy(&[*filled], copy) }?;
    add_fill(&mut graph, &[*copied], &first, 9)?;
    let mut exec = graph.instantiate()?;
    for _ in 0..3 {
        run(test, &mut exec)?;
        assert_eq!(
            (words(&first), words(&second)),
            (vec![9; LEN], vec![7; LEN])
        );
    }
    Ok(())
}

#[driver_test]
fn launch_is_one_call_however_many_nodes_there_are(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let stream = test.stream();
    let mut graph = graph(test);
    let mut last = add_kernel(&mut graph, &[], &kernel, &buffer, 0);
    for value in 1..20 {
        last = add_kernel(&mut graph, &[*last], &kernel, &buffer, value);
    }
    let mut exec = graph.instantiate()?;
    let calls = || {
        test.simulator().map(|simulator| {
            Function::all()
                .map(|function| simulator.calls(function))
                .sum::<u64>()
        })
    };
    let before = calls();
    exec.launch(&stream)?;
    assert_eq!(calls(), before.map(|before| before + 1));
    stream.synchronize()?;
    assert_eq!(words(&buffer), [19; LEN]);
    Ok(())
}

/// Launches of one executable on several streams do not overlap.
#[driver_test]
fn executable_launches_do_not_overlap(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    add_kernel(&mut graph, &[*first], &kernel, &buffer, 2);
    let mut exec = graph.instantiate()?;
    let streams = [test.stream(), test.stream(), test.stream()];
    for stream in &streams {
        exec.launch(stream)?;
    }
    for stream in &streams {
        stream.synchronize()?;
    }
    assert_eq!(words(&buffer), [2; LEN]);
    Ok(())
}

#[driver_test]
fn graph_and_executable_can_be_sent_to_another_thread(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let stream = test.stream();
    let mut graph = graph(test);
    std::thread::scope(|scope| {
        let kernel = &kernel;
        let buffer = &buffer;
        let stream = &stream;
        let outcome = scope.spawn(move || {
            add_kernel(&mut graph, &[], kernel, buffer, 4);
            graph.instantiate().expect("the graph is valid")
        });
        let mut exec = resume_panic(outcome.join());
        scope.spawn(move || exec.launch(stream).expect("launch failed"));
    });
    stream.synchronize()?;
    assert_eq!(words(&buffer), [4; LEN]);
    Ok(())
}

#[driver_test]
fn upload_spares_nothing_but_time(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let stream = test.stream();
    let mut graph = graph(test);
    add_kernel(&mut graph, &[], &kernel, &buffer, 6);
    let options = curium_driver::InstantiateOptions::new().with_upload(&stream);
    let mut exec = graph.instantiate_with(options)?;
    exec.upload(&stream)?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(words(&buffer), [6; LEN]);
    Ok(())
}

#[driver_test]
fn raw_handles_are_passed_out_and_back(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let node = graph.add_empty(&[])?;
    let raw = graph.as_raw_node(node)?;
    let handle = graph.into_raw()?;
    // SAFETY: the graph has no other owner.
    let mut graph = unsafe { Graph::from_raw(&test.context(), handle) };
    assert_eq!(graph.as_raw()?, handle);
    assert_eq!(graph.nodes()?.len(), 1);
    // SAFETY: the node belongs to the graph.
    let same = unsafe { graph.node_from_raw(raw) }?;
    assert_eq!(graph.nodes()?, [same]);
    let exec = graph.instantiate()?.into_raw();
    // SAFETY: the executable has no other owner, and its node accesses no memory.
    let mut exec = unsafe { curium_driver::GraphExec::from_raw(&test.context(), exec) };
    run(test, &mut exec)?;
    let error = exec
        .set_enabled(same, false)
        .expect_err("the graph is not known");
    assert!(
        error.to_string().contains("source graph is unknown"),
        "{error}"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{
        CopyPlace, DevicePointer, FillValue, Graph, GraphCopy, GraphFill, KernelNode, LaunchConfig,
        Node, Result,
    };
    use curium_sys::{CUgraphNodeParams, CUgraphNodeType};

    use crate::operations::{Fill, Fixture, LEN, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::instantiate", |fixture| {
            made(chain(fixture)?.0.instantiate()?)
        }),
        ("GraphExec::launch", |fixture| {
            let (graph, _) = with_fill(fixture)?;
            let mut exec = graph.instantiate()?;
            exec.launch(&fixture.stream)?;
            made(fixture.stream.synchronize()?)
        }),
        ("GraphExec::upload", |fixture| {
            made(chain(fixture)?.0.instantiate()?.upload(&fixture.stream)?)
        }),
        ("GraphExec::close", |fixture| {
            chain(fixture)?
                .0
                .instantiate()?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Graph::new", |fixture| made(graph(fixture)?)),
        ("Graph::close", |fixture| {
            graph(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Graph::into_raw", |fixture| {
            let raw = graph(fixture)?.into_raw()?;
            // SAFETY: the handle is live and has no other owner.
            made(unsafe { Graph::from_raw(&fixture.context, raw) })
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    /// The parameters of `fill` in a node.
    pub(crate) type Arguments = (DevicePointer<u32>, u32, u32);

    pub(crate) fn graph(fixture: &Fixture) -> Result<Graph> {
        Graph::new(&fixture.context)
    }

    pub(crate) fn arguments(fixture: &Fixture, value: u32) -> Arguments {
        (fixture.buffer.as_pointer(), value, LEN as u32)
    }

    pub(crate) fn with_kernel(fixture: &Fixture) -> Result<(Graph, KernelNode<Fill>)> {
        let mut graph = graph(fixture)?;
        // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
        let node = unsafe {
            graph.add_kernel(
                &[],
                &fixture.fill,
                LaunchConfig::new(1, 32),
                arguments(fixture, 2),
            )
        }?;
        Ok((graph, node))
    }

    pub(crate) fn copy(fixture: &Fixture, words: usize) -> GraphCopy {
        let [from, to] = [&fixture.buffer, &fixture.target]
            .map(|buffer| CopyPlace::device(buffer.as_pointer().cast()));
        GraphCopy::new(from, to, words * size_of::<u32>())
    }

    pub(crate) fn with_copy(fixture: &Fixture) -> Result<(Graph, curium_driver::CopyNode)> {
        let mut graph = graph(fixture)?;
        // SAFETY: both buffers have the same length, and the graph is not launched.
        let node = unsafe { graph.add_copy(&[], copy(fixture, LEN)) }?;
        Ok((graph, node))
    }

    pub(crate) fn fill(fixture: &Fixture, value: u32) -> GraphFill {
        GraphFill::new(
            fixture.buffer.as_pointer().cast(),
            FillValue::U32(value),
            LEN,
        )
    }

    pub(crate) fn with_fill(fixture: &Fixture) -> Result<(Graph, curium_driver::FillNode)> {
        let mut graph = graph(fixture)?;
        // SAFETY: the buffer has this length, is idle, and outlives the launch.
        let node = unsafe { graph.add_fill(&[], fill(fixture, 5)) }?;
        Ok((graph, node))
    }

    pub(crate) fn with_child(
        fixture: &Fixture,
    ) -> Result<(Graph, curium_driver::ChildNode, Graph)> {
        let mut graph = graph(fixture)?;
        let child = chain(fixture)?.0;
        let node = graph.add_child(&[], &child)?;
        Ok((graph, node, child))
    }

    /// Returns a graph of two nodes, the second of which depends on the first.
    pub(crate) fn chain(fixture: &Fixture) -> Result<(Graph, [Node; 2])> {
        let mut graph = graph(fixture)?;
        let first = graph.add_empty(&[])?;
        let second = graph.add_empty(&[first])?;
        Ok((graph, [first, second]))
    }

    pub(crate) fn empty() -> CUgraphNodeParams {
        CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            ..CUgraphNodeParams::default()
        }
    }
}
