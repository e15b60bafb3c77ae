//! The operations on executable graphs.

use curium_driver::{InstantiateFlags, InstantiateOptions, LaunchConfig, MemoryOperation};

use super::graphs::{arguments, chain, copy, empty, fill, graph, with_child, with_copy, with_fill, with_kernel};
use super::{Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Graph::instantiate", |fixture| made(chain(fixture)?.0.instantiate()?)),
    ("Graph::instantiate_with", |fixture| {
        let options = InstantiateOptions::new().with_upload(&fixture.stream);
        let options = options.with_flags(InstantiateFlags::AUTO_FREE_ON_LAUNCH);
        made(chain(fixture)?.0.instantiate_with(options)?)
    }),
    ("GraphExec::launch", |fixture| {
        let (graph, _) = with_fill(fixture)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&fixture.stream)?;
        made(fixture.stream.synchronize()?)
    }),
    ("GraphExec::upload", |fixture| made(chain(fixture)?.0.instantiate()?.upload(&fixture.stream)?)),
    ("GraphExec::close", |fixture| {
        chain(fixture)?.0.instantiate()?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("GraphExec::flags", |fixture| made(chain(fixture)?.0.instantiate()?.flags()?)),
    ("GraphExec::set_kernel", |fixture| {
        let (graph, node) = with_kernel(fixture)?;
        let mut exec = graph.instantiate()?;
        // SAFETY: `fill` writes only words of the buffer, and the executable is not launched.
        unsafe { exec.set_kernel(&node, arguments(fixture, 4)) }?;
        made(exec)
    }),
    ("GraphExec::set_kernel_with", |fixture| {
        let (graph, node) = with_kernel(fixture)?;
        let mut exec = graph.instantiate()?;
        let (config, arguments) = (LaunchConfig::new(1, 32), arguments(fixture, 4));
        // SAFETY: as above.
        unsafe { exec.set_kernel_with(&node, &fixture.code.fill, config, arguments) }?;
        made(exec)
    }),
    ("GraphExec::set_copy", |fixture| {
        let (graph, node) = with_copy(fixture)?;
        let mut exec = graph.instantiate()?;
        // SAFETY: as in `with_copy`.
        unsafe { exec.set_copy(node, copy(fixture, 8)) }?;
        made(exec)
    }),
    ("GraphExec::set_fill", |fixture| {
        let (graph, node) = with_fill(fixture)?;
        let mut exec = graph.instantiate()?;
        // SAFETY: as in `with_fill`.
        unsafe { exec.set_fill(node, fill(fixture, 4)) }?;
        made(exec)
    }),
    ("GraphExec::set_event_record", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_record(&[], &fixture.event)?;
        let mut exec = graph.instantiate()?;
        exec.set_event_record(node, &fixture.later)?;
        made(exec)
    }),
    ("GraphExec::set_event_wait", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_event_wait(&[], &fixture.event)?;
        let mut exec = graph.instantiate()?;
        exec.set_event_wait(node, &fixture.later)?;
        made(exec)
    }),
    ("GraphExec::set_memory_operations", |fixture| {
        let mut graph = graph(fixture)?;
        let operations = [MemoryOperation::WriteU32(fixture.value_address(), 1)];
        // SAFETY: the address is that of the pinned values, and no graph is launched.
        let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
        let mut exec = graph.instantiate()?;
        // SAFETY: as above.
        unsafe { exec.set_memory_operations(node, &operations) }?;
        made(exec)
    }),
    ("GraphExec::set_child", |fixture| {
        let (graph, node, child) = with_child(fixture)?;
        let mut exec = graph.instantiate()?;
        exec.set_child(node, &child)?;
        made(exec)
    }),
    ("GraphExec::set_enabled", |fixture| {
        let (graph, node) = with_fill(fixture)?;
        let mut exec = graph.instantiate()?;
        exec.set_enabled(*node, false)?;
        made(exec)
    }),
    ("GraphExec::is_enabled", |fixture| {
        let (graph, node) = with_fill(fixture)?;
        made(graph.instantiate()?.is_enabled(*node)?)
    }),
    ("GraphExec::update", |fixture| {
        let (graph, _) = with_fill(fixture)?;
        let mut exec = graph.instantiate()?;
        assert!(exec.update(&with_fill(fixture)?.0)?.is_done(), "the graphs are alike");
        made(exec)
    }),
];

/// Operations that require a driver newer than the default of the simulator, or that make calls on other threads.
pub(super) const SOLITARY: &[Operation] = &[
    ("GraphExec::id", |fixture| made(chain(fixture)?.0.instantiate()?.id()?)),
    ("GraphExec::set_raw", |fixture| {
        let (graph, [first, _]) = chain(fixture)?;
        // SAFETY: an empty node accesses no memory.
        made(unsafe { graph.instantiate()?.set_raw(first, &mut empty()) }?)
    }),
    ("GraphExec::set_host", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_host(&[], || {})?;
        let mut exec = graph.instantiate()?;
        exec.set_host(node, || {})?;
        exec.launch(&fixture.stream)?;
        made(fixture.stream.synchronize()?)
    }),
];
