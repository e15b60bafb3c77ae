//! The operations on graphs.

use curium_driver::{
    ConditionalKind, CopyPlace, DevicePointer, DotFlags, EdgeData, FillValue, Graph, GraphCopy, GraphFill, KernelNode,
    LaunchAttributes, LaunchConfig, MemoryOperation, Node, Result, UserObject,
};
use curium_sys::{CUgraphNodeParams, CUgraphNodeType, CUlaunchAttributeID};

use super::code::Fill;
use super::{Fixture, LEN, Operation, boxed, made};

/// The parameters of `fill` in a node.
type Arguments = (DevicePointer<u32>, u32, u32);

pub(super) const OPERATIONS: &[Operation] = &[
    ("Graph::new", |fixture| made(graph(fixture)?)),
    ("Graph::close", |fixture| graph(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    ("Graph::into_raw", |fixture| {
        let raw = graph(fixture)?.into_raw()?;
        // SAFETY: the handle is live and has no other owner.
        made(unsafe { Graph::from_raw(&fixture.context, raw) })
    }),
    ("Graph::add_empty", |fixture| {
        let mut graph = graph(fixture)?;
        let first = graph.add_empty(&[])?;
        made((graph.add_empty(&[first])?, graph))
    }),
    ("Graph::add_kernel", |fixture| made(with_kernel(fixture)?)),
    ("Graph::set_kernel", |fixture| {
        let (mut graph, node) = with_kernel(fixture)?;
        let (config, arguments) = (LaunchConfig::new(1, 32), arguments(fixture, 3));
        // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
        unsafe { graph.set_kernel(&node, &fixture.code.fill, config, arguments) }?;
        made(graph)
    }),
    ("Graph::kernel_config", |fixture| {
        let (graph, node) = with_kernel(fixture)?;
        made((graph.kernel_config(&node)?, graph))
    }),
    ("Graph::add_copy", |fixture| made(with_copy(fixture)?)),
    ("Graph::set_copy", |fixture| {
        let (mut graph, node) = with_copy(fixture)?;
        // SAFETY: as in `with_copy`.
        unsafe { graph.set_copy(node, copy(fixture, 8)) }?;
        made(graph)
    }),
    ("Graph::copy", |fixture| {
        let (graph, node) = with_copy(fixture)?;
        made((graph.copy(node)?, graph))
    }),
    ("Graph::add_fill", |fixture| made(with_fill(fixture)?)),
    ("Graph::set_fill", |fixture| {
        let (mut graph, node) = with_fill(fixture)?;
        // SAFETY: as in `with_fill`.
        unsafe { graph.set_fill(node, fill(fixture, 4)) }?;
        made(graph)
    }),
    ("Graph::fill", |fixture| {
        let (graph, node) = with_fill(fixture)?;
        made((graph.fill(node)?, graph))
    }),
    ("Graph::add_host", |fixture| {
        let mut graph = graph(fixture)?;
        made((graph.add_host(&[], || {})?, graph))
    }),
    ("Graph::set_host", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_host(&[], || {})?;
        graph.set_host(node, || {})?;
        made(graph)
    }),
    ("Graph::raw_host", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_host(&[], || {})?;
        graph.raw_host(node)?;
        made(graph)
    }),
    ("Graph::add_event_record", |fixture| {
        let mut graph = graph(fixture)?;
        made((graph.add_event_record(&[], &fixture.event)?, graph))
    }),
    ("Graph::set_event_record", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_record(&[], &fixture.event)?;
        graph.set_event_record(node, &fixture.later)?;
        made(graph)
    }),
    ("Graph::records", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_record(&[], &fixture.event)?;
        made((graph.records(node, &fixture.event)?, graph))
    }),
    ("Graph::add_event_wait", |fixture| {
        let mut graph = graph(fixture)?;
        made((graph.add_event_wait(&[], &fixture.event)?, graph))
    }),
    ("Graph::set_event_wait", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_wait(&[], &fixture.event)?;
        graph.set_event_wait(node, &fixture.later)?;
        made(graph)
    }),
    ("Graph::waits_for", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_wait(&[], &fixture.event)?;
        made((graph.waits_for(node, &fixture.event)?, graph))
    }),
    ("Graph::add_memory_operations", |fixture| {
        let mut graph = graph(fixture)?;
        let operations = [MemoryOperation::WriteU32(fixture.value_address(), 1)];
        // SAFETY: the address is that of the pinned values, and the graph is not launched.
        let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
        made((node, graph))
    }),
    ("Graph::set_memory_operations", |fixture| {
        let mut graph = graph(fixture)?;
        let operations = [MemoryOperation::WriteU32(fixture.value_address(), 1)];
        // SAFETY: as above.
        let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
        // SAFETY: as above.
        unsafe { graph.set_memory_operations(node, &operations) }?;
        made(graph)
    }),
    ("Graph::memory_operation_count", |fixture| {
        let mut graph = graph(fixture)?;
        let operations = [MemoryOperation::WriteU32(fixture.value_address(), 1)];
        // SAFETY: as above.
        let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
        made((graph.memory_operation_count(node)?, graph))
    }),
    ("Graph::add_child", |fixture| made(with_child(fixture)?)),
    ("Graph::child", |fixture| {
        let (graph, node, _) = with_child(fixture)?;
        made((graph.child(node)?, graph))
    }),
    ("Graph::try_clone", |fixture| made(chain(fixture)?.0.try_clone()?)),
    ("Graph::find", |fixture| {
        let (graph, node) = with_kernel(fixture)?;
        let clone = graph.try_clone()?;
        made((clone.find(&graph, &node)?, clone, graph))
    }),
    ("Graph::add_allocation", |fixture| {
        let mut graph = graph(fixture)?;
        made((graph.add_allocation(&[], 256)?, graph))
    }),
    ("Graph::add_free", |fixture| {
        let mut graph = graph(fixture)?;
        let allocation = graph.add_allocation(&[], 256)?;
        // SAFETY: no work uses the memory.
        let node = unsafe { graph.add_free(&[*allocation], &allocation) }?;
        made((graph.freed(node)?, graph))
    }),
    ("Graph::freed", |fixture| {
        let mut graph = graph(fixture)?;
        let allocation = graph.add_allocation(&[], 256)?;
        // SAFETY: no work uses the memory.
        let node = unsafe { graph.add_free(&[*allocation], &allocation) }?;
        made((graph.freed(node)?, graph))
    }),
    ("Graph::allocation", |fixture| {
        let mut graph = graph(fixture)?;
        let allocation = graph.add_allocation(&[], 256)?;
        made((graph.allocation(*allocation)?, graph))
    }),
    ("Graph::condition", |fixture| {
        let mut graph = graph(fixture)?;
        made((graph.condition(Some(1))?, graph))
    }),
    ("Graph::add_conditional", |fixture| {
        let mut graph = graph(fixture)?;
        let condition = graph.condition(Some(1))?;
        let node = graph.add_conditional(&[], condition, ConditionalKind::If)?;
        made((node, graph))
    }),
    ("Graph::add_raw", |fixture| {
        let mut graph = graph(fixture)?;
        // SAFETY: an empty node accesses no memory.
        made((unsafe { graph.add_raw(&[], &mut empty()) }?, graph))
    }),
    ("Graph::retain_object", |fixture| {
        let mut graph = graph(fixture)?;
        graph.retain_object(&UserObject::new(&fixture.driver, 3_u32)?)?;
        made(graph)
    }),
    ("Graph::release_object", |fixture| {
        let (mut graph, object) = (graph(fixture)?, UserObject::new(&fixture.driver, 3_u32)?);
        graph.retain_object(&object)?;
        graph.release_object(&object)?;
        made(graph)
    }),
    ("UserObject::new", |fixture| made(UserObject::new(&fixture.driver, 3_u32)?)),
    ("UserObject::retain_raw and UserObject::release_raw", |fixture| {
        let object = UserObject::new(&fixture.driver, 3_u32)?;
        object.retain_raw(2)?;
        // SAFETY: two references were added, and no other code relies on them.
        unsafe { object.release_raw(2) }?;
        made(object)
    }),
    ("Graph::nodes", |fixture| made(chain(fixture)?.0.nodes()?)),
    ("Graph::roots", |fixture| made(chain(fixture)?.0.roots()?)),
    ("Graph::edges", |fixture| made(chain(fixture)?.0.edges()?)),
    ("Graph::dependencies", |fixture| {
        let (graph, [_, second]) = chain(fixture)?;
        made(graph.dependencies(second)?)
    }),
    ("Graph::dependents", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        made(graph.dependents(first)?)
    }),
    ("Graph::add_dependency", |fixture| {
        let (mut graph, [first, _]) = chain(fixture)?;
        let third = graph.add_empty(&[])?;
        graph.add_dependency(first, third)?;
        made(graph)
    }),
    ("Graph::add_edge", |fixture| {
        let (mut graph, [first, _]) = chain(fixture)?;
        let third = graph.add_empty(&[])?;
        // SAFETY: the edge has default data.
        unsafe { graph.add_edge(first, third, EdgeData::new()) }?;
        made(graph)
    }),
    ("Graph::remove_edge", |fixture| {
        let (mut graph, [first, second]) = chain(fixture)?;
        graph.remove_edge(first, second, EdgeData::new())?;
        made(graph)
    }),
    ("Graph::remove", |fixture| {
        let (mut graph, [first, _]) = chain(fixture)?;
        graph.remove(first)?;
        made(graph)
    }),
    ("Graph::kind", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        made(graph.kind(first)?)
    }),
    ("Graph::to_svg", |fixture| made(chain(fixture)?.0.to_svg()?)),
    ("Graph::to_svg, of a kernel that was captured", |fixture| {
        let Fixture { context, code, buffer, .. } = fixture;
        let graph = Graph::capture(context, |scope| {
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { code.fill.launch(scope, LaunchConfig::for_elements(LEN as u32), (&mut *buffer, 6, LEN as u32)) }
        })?;
        made(graph.to_svg()?)
    }),
    ("Graph::write_dot", |fixture| {
        let path = std::env::temp_dir().join(format!("curium-dot-{:?}", std::thread::current().id()));
        let result = chain(fixture)?.0.write_dot(&path, DotFlags::VERBOSE);
        std::fs::remove_file(path).unwrap_or_default();
        made(result?)
    }),
    ("Device::graph_memory", |fixture| made(fixture.device.graph_memory()?)),
    ("Device::trim_graph_memory", |fixture| made(fixture.device.trim_graph_memory()?)),
    ("Device::reset_graph_memory_maxima", |fixture| made(fixture.device.reset_graph_memory_maxima()?)),
    ("Graph::add_kernel_with", |fixture| {
        let (mut graph, config) = (graph(fixture)?, LaunchConfig::new(1, 32));
        let attributes = LaunchAttributes::new().with_priority(0);
        let arguments = arguments(fixture, 2);
        // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
        made(unsafe { graph.add_kernel_with(&[], &fixture.code.fill, config, &attributes, arguments) }.map(|_| ())?)
    }),
    ("Graph::add_kernel_raw", |fixture| {
        let (mut graph, config) = (graph(fixture)?, LaunchConfig::new(1, 32));
        let (mut data, mut value, mut len) = arguments(fixture, 2);
        let values = &mut [(&raw mut data).cast(), (&raw mut value).cast(), (&raw mut len).cast()];
        let kernel = fixture.code.fill.to_untyped();
        // SAFETY: `fill` has these three parameters, and the graph is not launched.
        made(unsafe { graph.add_kernel_raw(&[], &kernel, config, &LaunchAttributes::new(), values) }.map(|_| ())?)
    }),
    ("Graph::set_kernel_attributes", |fixture| {
        let (mut graph, node) = with_kernel(fixture)?;
        made(graph.set_kernel_attributes(&node, &LaunchAttributes::new().with_priority(0))?)
    }),
    ("Graph::raw_kernel_attribute", |fixture| {
        let (graph, node) = with_kernel(fixture)?;
        let attribute = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
        graph.raw_kernel_attribute(&node, attribute).map(|_| boxed(()))
    }),
    ("Graph::copy_kernel_attributes", |fixture| {
        let (mut graph, node) = with_kernel(fixture)?;
        // SAFETY: as above.
        let other =
            unsafe { graph.add_kernel(&[*node], &fixture.code.fill, LaunchConfig::new(1, 32), arguments(fixture, 1)) }?;
        made(graph.copy_kernel_attributes(&node, &other)?)
    }),
];

/// Operations that require a driver newer than the default of the simulator.
pub(super) const SOLITARY: &[Operation] = &[
    ("Graph::id", |fixture| made(chain(fixture)?.0.id()?)),
    ("Graph::local_id", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        made(graph.local_id(first)?)
    }),
    ("Graph::tools_id", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        made(graph.tools_id(first)?)
    }),
    ("Graph::recapture", |fixture| {
        let Fixture { context, buffer, .. } = fixture;
        let mut graph = Graph::capture(context, |scope| buffer.as_slice_mut().fill_on(scope, 3))?;
        graph.recapture(|scope| buffer.as_slice_mut().fill_on(scope, 4))?;
        made(graph)
    }),
    ("Graph::contains", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        made(graph.contains(first)?)
    }),
    ("Graph::raw_params", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        graph.raw_params(first).map(|_| boxed(()))
    }),
    ("Graph::set_raw", |fixture| {
        let (mut graph, [first, _]) = chain(fixture)?;
        // SAFETY: an empty node accesses no memory.
        made(unsafe { graph.set_raw(first, &mut empty()) }?)
    }),
];

pub(super) fn graph(fixture: &Fixture) -> Result<Graph> {
    Graph::new(&fixture.context)
}

pub(super) fn arguments(fixture: &Fixture, value: u32) -> Arguments {
    (fixture.buffer.as_pointer(), value, LEN as u32)
}

pub(super) fn with_kernel(fixture: &Fixture) -> Result<(Graph, KernelNode<Fill>)> {
    let mut graph = graph(fixture)?;
    // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
    let node = unsafe { graph.add_kernel(&[], &fixture.code.fill, LaunchConfig::new(1, 32), arguments(fixture, 2)) }?;
    Ok((graph, node))
}

pub(super) fn copy(fixture: &Fixture, words: usize) -> GraphCopy {
    let [from, to] = [&fixture.buffer, &fixture.target].map(|buffer| CopyPlace::device(buffer.as_pointer().cast()));
    GraphCopy::new(from, to, words * size_of::<u32>())
}

pub(super) fn with_copy(fixture: &Fixture) -> Result<(Graph, curium_driver::CopyNode)> {
    let mut graph = graph(fixture)?;
    // SAFETY: both buffers have the same length, and the graph is not launched.
    let node = unsafe { graph.add_copy(&[], copy(fixture, LEN)) }?;
    Ok((graph, node))
}

pub(super) fn fill(fixture: &Fixture, value: u32) -> GraphFill {
    GraphFill::new(fixture.buffer.as_pointer().cast(), FillValue::U32(value), LEN)
}

pub(super) fn with_fill(fixture: &Fixture) -> Result<(Graph, curium_driver::FillNode)> {
    let mut graph = graph(fixture)?;
    // SAFETY: the buffer has this length, is idle, and outlives the launch.
    let node = unsafe { graph.add_fill(&[], fill(fixture, 5)) }?;
    Ok((graph, node))
}

pub(super) fn with_child(fixture: &Fixture) -> Result<(Graph, curium_driver::ChildNode, Graph)> {
    let (mut graph, child) = (graph(fixture)?, chain(fixture)?.0);
    let node = graph.add_child(&[], &child)?;
    Ok((graph, node, child))
}

/// Returns a graph of two nodes, the second of which depends on the first.
pub(super) fn chain(fixture: &Fixture) -> Result<(Graph, [Node; 2])> {
    let mut graph = graph(fixture)?;
    let first = graph.add_empty(&[])?;
    let second = graph.add_empty(&[first])?;
    Ok((graph, [first, second]))
}

pub(super) fn empty() -> CUgraphNodeParams {
    CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY, ..CUgraphNodeParams::default() }
}
