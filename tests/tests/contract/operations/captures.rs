//! The operations of captures, and of memory that graphs use.

use curium_driver::{Graph, GraphCache, GraphCacheOutcome, GraphExec, Result};
use curium_memory::DeviceBuffer;

use super::{Fixture, LEN, Operation, made};

/// Returns a graph that writes the fixture's buffer and its mapped memory.
fn captured(fixture: &mut Fixture) -> Result<GraphExec> {
    let Fixture { context, buffer, kinds, .. } = fixture;
    let graph = Graph::capture(context, |scope| {
        buffer.as_slice_mut().fill_on(scope, 3)?;
        kinds.mapped_mut().as_slice_mut().fill_on(scope, 4)?;
        kinds.unified_mut().as_slice_mut().fill_on(scope, 5)
    })?;
    graph.instantiate()
}

pub(super) const OPERATIONS: &[Operation] = &[
    ("Graph::capture", |fixture| made(captured(fixture)?)),
    ("CaptureScope::fork", |fixture| {
        let Fixture { context, buffer, target, .. } = fixture;
        made(Graph::capture(context, |scope| {
            let branch = scope.fork()?;
            buffer.as_slice_mut().fill_on(&branch, 3)?;
            target.as_slice_mut().copy_from_device_on(scope, buffer)
        })?)
    }),
    ("CaptureScope::join", |fixture| {
        made(Graph::capture(&fixture.context, |scope| {
            let branch = scope.fork()?;
            drop(DeviceBuffer::<u32>::zeroed(&branch, LEN)?);
            scope.join(&branch)
        })?)
    }),
    ("CaptureScope::add_host", |fixture| made(Graph::capture(&fixture.context, |scope| scope.add_host(scope, || {}))?)),
    ("Graph::capture_into", |fixture| {
        let mut graph = Graph::new(&fixture.context)?;
        let Fixture { buffer, target, .. } = fixture;
        let filled = graph.capture_into(&[], |scope| buffer.as_slice_mut().fill_on(scope, 3))?;
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
    ("Stream::capture_number", |fixture| {
        made(Graph::capture(&fixture.context, |scope| scope.capture_number().map(drop))?)
    }),
    ("Graph::capture, of a slice", |fixture| {
        let target = &mut fixture.target;
        made(Graph::capture(&fixture.context, |scope| {
            target.as_slice_mut().copy_from_device_on(scope, &DeviceBuffer::from_slice(scope, &[1; LEN])?)
        })?)
    }),
    ("GraphExec::launch, of leased memory", |fixture| {
        let mut executable = captured(fixture)?;
        executable.launch(&fixture.other)?;
        fixture.other.synchronize()?;
        made(fixture.buffer.to_vec()?)
    }),
    ("Graph::instantiate, of leased memory that was dropped", |fixture| {
        let buffer = DeviceBuffer::from_slice(&fixture.stream, &[1; LEN])?;
        let target = &mut fixture.target;
        let graph =
            Graph::capture(&fixture.context, |scope| target.as_slice_mut().copy_from_device_on(scope, &buffer))?;
        drop(buffer);
        made(graph.instantiate()?)
    }),
    ("GraphCache::run", |fixture| {
        let Fixture { stream, buffer, .. } = fixture;
        let mut replays = GraphCache::new();
        for value in [1, 1, 2] {
            let replayed = replays.run(stream, (), value, |stream| buffer.as_slice_mut().fill_on(stream, value))?;
            // Work that cannot be captured runs directly, and the result contains the reason.
            if let GraphCacheOutcome::Ran(Some(error)) = replayed {
                return Err(error);
            }
        }
        stream.synchronize()?;
        made(replays)
    }),
    ("MappedBuffer::host_view", |fixture| {
        let executable = captured(fixture)?;
        fixture.kinds.mapped_mut().host_view().map(drop)?;
        made(executable)
    }),
    ("MappedBuffer::host_view_mut", |fixture| {
        let executable = captured(fixture)?;
        fixture.kinds.mapped_mut().host_view_mut().map(drop)?;
        made(executable)
    }),
];
