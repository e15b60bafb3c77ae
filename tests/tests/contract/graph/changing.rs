//! Updates of executable graphs, by node and as a whole.

use curium_driver::AsRawStream as _;
use curium_driver::{
    CopyPlace, Event, EventFlags, Function, Graph, GraphCopy, GraphUpdate, InstantiateFlags,
    InstantiateOptions, LaunchConfig, UpdateFailureReason, call,
};
use curium_memory::{DeviceBuffer, SyncAlloc};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{
    LEN, add_fill, add_kernel, byte_pointer, fill, fill_parameters, graph, run, words, zeroes,
};

/// A kernel node takes new arguments with one call of its own.
#[driver_test]
fn kernel_node_update_is_one_call(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let other = zeroes(test);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let mut exec = graph.instantiate()?;
    for value in 2..5 {
        test.assert_calls(Function::cuGraphExecKernelNodeSetParams_v2, 1, || {
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { exec.set_kernel(&node, (other.as_pointer(), value, LEN as u32)) }
        })?;
        run(test, &mut exec)?;
        assert_eq!(
            (words(&buffer), words(&other)),
            (vec![0; LEN], vec![value; LEN])
        );
    }
    let arguments = (buffer.as_pointer(), 9, LEN as u32);
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { exec.set_kernel_with(&node, &kernel, LaunchConfig::new(1, 16), arguments) }?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer)[15..17], [9, 0], "sixteen threads");
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&buffer), [1; LEN], "the graph itself is unchanged");
    Ok(())
}

/// A kernel node accepts new arguments while the graph is shared.
#[driver_test]
fn shared_graph_kernel_node_is_updated(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let again = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let config = node.config();
    let mut exec = graph.instantiate()?;
    let mut graph = Some(graph);
    for value in 2..8 {
        if value == 5 {
            drop(graph.take());
        }
        // Two look-ups of one kernel return equal kernels.
        let kernel = if value % 3 == 0 { &kernel } else { &again };
        let arguments = (buffer.as_pointer(), value, LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel_with(&node, kernel, config, arguments) }?;
        run(test, &mut exec)?;
        assert_eq!(words(&buffer), vec![value; LEN]);
    }
    Ok(())
}

/// A kernel that an update brought is kept until the next.
#[driver_test]
fn updated_kernel_is_kept_until_the_next_update(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let mut exec = graph.instantiate()?;
    drop(graph);
    let other = fill(test)?;
    let config = node.config();
    for value in [2, 3] {
        let arguments = (buffer.as_pointer(), value, LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel_with(&node, &other, config, arguments) }?;
    }
    drop(other);
    test.assert_calls(Function::cuLibraryUnload, 0, || run(test, &mut exec))?;
    assert_eq!(words(&buffer), [3; LEN]);
    test.assert_calls(Function::cuLibraryUnload, 1, || {
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel(&node, (buffer.as_pointer(), 4, LEN as u32)) }
    })?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [4; LEN]);
    Ok(())
}

#[driver_test]
fn change_does_not_concern_a_launch_before_it(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let stream = test.stream();
    let copies = [zeroes(test), zeroes(test)];
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let mut exec = graph.instantiate()?;
    let gate = curium_tests::Gate::on(&stream);
    for (value, copy) in [3, 4].into_iter().zip(&copies) {
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel(&node, (copy.as_pointer(), value, LEN as u32)) }?;
        exec.launch(&stream)?;
    }
    gate.open();
    stream.synchronize()?;
    assert_eq!(
        copies.map(|copy| words(&copy)),
        [vec![3; LEN], vec![4; LEN]]
    );
    assert_eq!(words(&buffer), [0; LEN]);
    Ok(())
}

#[driver_test]
fn copies_fills_and_events_take_new_parameters(test: &TestDriver) -> TestResult {
    let first = zeroes(test);
    let second = zeroes(test);
    let events = [(); 2].map(|()| {
        Event::new(&test.context(), EventFlags::empty()).expect("failed to create an event")
    });
    let mut graph = graph(test);
    let filled = add_fill(&mut graph, &[], &first, 3)?;
    let copy = |bytes| {
        GraphCopy::new(
            CopyPlace::device(byte_pointer(&first)),
            CopyPlace::device(byte_pointer(&second)),
            bytes,
        )
    };
    // SAFETY: both buffers have the same length and outlive the launches.
    let copied = unsafe { graph.add_copy(&[*filled], copy(8)) }?;
    let recorded = graph.add_event_record(&[*copied], &events[0])?;
    let waited = graph.add_event_wait(&[], &events[0])?;
    let mut exec = graph.instantiate()?;
    // SAFETY: both buffers have the same length and outlive the launches.
    unsafe { exec.set_fill(filled, fill_parameters(&first, 4)) }?;
    // SAFETY: both buffers have the same length and outlive the launches.
    unsafe { exec.set_copy(copied, copy(16)) }?;
    exec.set_event_record(recorded, &events[1])?;
    exec.set_event_wait(waited, &events[1])?;
    run(test, &mut exec)?;
    assert_eq!(words(&second)[..5], [4, 4, 4, 4, 0]);
    // An event without timing has no elapsed time, and an event that was never recorded cannot be
    // an end point.
    assert!(
        events[1].milliseconds_since(&events[1]).is_ok(),
        "the graph has recorded it"
    );
    assert!(
        events[1].milliseconds_since(&events[0]).is_err(),
        "the other event was not recorded"
    );
    Ok(())
}

#[driver_test]
fn node_that_is_disabled_does_nothing_and_order_stays(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_kernel(&mut graph, &[*first], &kernel, &buffer, 2);
    let third = graph.add_empty(&[*second])?;
    let mut exec = graph.instantiate()?;
    exec.set_enabled(*second, false)?;
    assert_eq!(
        [*first, *second].map(|node| exec.is_enabled(node).expect("query failed")),
        [true, false]
    );
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [1; LEN]);
    exec.set_enabled(*second, true)?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [2; LEN]);
    let error = exec
        .set_enabled(third, false)
        .expect_err("every graph accepts an empty node");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    Ok(())
}

/// An executable takes everything from a graph of the same shape.
#[driver_test]
fn executable_is_updated_from_a_similar_graph(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let other = zeroes(test);
    let mut first = graph(test);
    let mut second = graph(test);
    for (graph, buffer, value) in [(&mut first, &buffer, 1), (&mut second, &other, 5)] {
        let node = add_kernel(graph, &[], &kernel, buffer, value);
        add_fill(graph, &[*node], buffer, value + 1)?;
    }
    let mut exec = first.instantiate()?;
    assert!(exec.update(&second)?.is_done());
    run(test, &mut exec)?;
    assert_eq!(
        (words(&buffer), words(&other)),
        (vec![0; LEN], vec![6; LEN])
    );
    Ok(())
}

/// A graph that does not match reports the node and the reason.
#[driver_test]
fn failed_update_reports_node_and_reason(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut original = graph(test);
    let mut longer = graph(test);
    let mut other = graph(test);

    let node = add_kernel(&mut original, &[], &kernel, &buffer, 1);
    add_kernel(&mut original, &[*node], &kernel, &buffer, 2);
    let mut exec = original.instantiate()?;

    add_kernel(&mut longer, &[], &kernel, &buffer, 3);
    let GraphUpdate::Failed(failure) = exec.update(&longer)? else {
        panic!("a node is missing")
    };
    assert_eq!(failure.reason, UpdateFailureReason::Topology);
    assert_eq!(
        failure.error.code(),
        Some(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
    );

    let node = add_kernel(&mut other, &[], &kernel, &buffer, 4);
    let node = add_fill(&mut other, &[*node], &buffer, 5)?;
    let GraphUpdate::Failed(failure) = exec.update(&other)? else {
        panic!("the node has another type")
    };
    assert_eq!(
        (failure.reason, failure.node),
        (UpdateFailureReason::NodeKind, Some(*node))
    );
    assert!(
        failure.error.to_string().contains("fill"),
        "{}",
        failure.error
    );
    run(test, &mut original.instantiate()?)?;
    assert_eq!(words(&buffer), [2; LEN]);
    Ok(())
}

/// A child of an executable takes parameters from a graph like it.
#[driver_test]
fn executable_child_is_updated_from_a_graph(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let [mut child, mut other, mut parent] = [(); 3].map(|()| graph(test));
    add_kernel(&mut child, &[], &kernel, &buffer, 1);
    add_kernel(&mut other, &[], &kernel, &buffer, 2);
    let node = parent.add_child(&[], &child)?;
    let mut exec = parent.instantiate()?;
    exec.set_child(node, &other)?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [2; LEN]);
    Ok(())
}

#[driver_test]
fn flags_are_those_that_it_was_instantiated_with(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let memory = graph.add_allocation(&[], 256)?.address();
    let options = InstantiateOptions::new().with_flags(InstantiateFlags::AUTO_FREE_ON_LAUNCH);
    let mut exec = graph.instantiate_with(options)?;
    assert!(
        exec.flags()?
            .contains(InstantiateFlags::AUTO_FREE_ON_LAUNCH)
    );
    run(test, &mut exec)?;
    run(test, &mut exec)?;
    let stream = test.stream();
    // SAFETY: the last launch allocated the memory, which nothing uses.
    unsafe {
        call!(
            test.driver(),
            cuMemFreeAsync(memory.as_raw(), stream.as_raw())
        )
    }?;
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn flags_that_exclude_each_other_are_invalid(test: &TestDriver) {
    let graph = graph(test);
    let flags = InstantiateFlags::AUTO_FREE_ON_LAUNCH | InstantiateFlags::DEVICE_LAUNCH;
    let result = graph.instantiate_with(InstantiateOptions::new().with_flags(flags));
    let error = result.expect_err("a graph launched by a kernel frees no memory");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        "{error}"
    );
}

/// A update that fails keeps what the executable may use from then on.
#[simulator_test]
fn failed_update_keeps_resources_in_use(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let code = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;
    let [(first, first_buffer), (second, second_buffer)] = [1, 2].map(|value| {
        let mut buffer =
            DeviceBuffer::<u32, _>::zeroed_in(&stream, LEN, SyncAlloc).expect("allocation failed");
        let graph = Graph::capture(&test.context(), |scope| buffer.on_mut(scope).fill(value));
        (graph.expect("capture failed"), buffer)
    });
    let mut exec = first.instantiate()?;
    simulator.inject(Fault::on(Function::cuGraphExecUpdate_v2).returns(code));
    assert_eq!(
        exec.update(&second).expect_err("the driver fails").code(),
        Some(code)
    );
    let freed = || simulator.calls(Function::cuMemFree_v2);
    drop((first, second, first_buffer, second_buffer));
    assert_eq!(freed(), 0, "the driver may have updated a part");
    run(test, &mut exec)?;
    drop(exec);
    assert_eq!(freed(), 2);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{InstantiateFlags, InstantiateOptions, LaunchConfig, MemoryOperation};

    use crate::graph::operations::{
        arguments, chain, copy, empty, fill, graph, with_child, with_copy, with_fill, with_kernel,
    };
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::instantiate_with", |fixture| {
            let options = InstantiateOptions::new().with_upload(&fixture.stream);
            let options = options.with_flags(InstantiateFlags::AUTO_FREE_ON_LAUNCH);
            made(chain(fixture)?.0.instantiate_with(options)?)
        }),
        ("GraphExec::flags", |fixture| {
            made(chain(fixture)?.0.instantiate()?.flags()?)
        }),
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
            let config = LaunchConfig::new(1, 32);
            let arguments = arguments(fixture, 4);
            // SAFETY: `fill` writes only words of the buffer, and the executable is not launched.
            unsafe { exec.set_kernel_with(&node, &fixture.fill, config, arguments) }?;
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
            // SAFETY: the address is that of the pinned values, and no graph is launched.
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
            assert!(
                exec.update(&with_fill(fixture)?.0)?.is_done(),
                "the graphs are equal"
            );
            made(exec)
        }),
        ("Graph::set_kernel", |fixture| {
            let (mut graph, node) = with_kernel(fixture)?;
            let config = LaunchConfig::new(1, 32);
            let arguments = arguments(fixture, 3);
            // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
            unsafe { graph.set_kernel(&node, &fixture.fill, config, arguments) }?;
            made(graph)
        }),
        ("Graph::set_copy", |fixture| {
            let (mut graph, node) = with_copy(fixture)?;
            // SAFETY: as in `with_copy`.
            unsafe { graph.set_copy(node, copy(fixture, 8)) }?;
            made(graph)
        }),
        ("Graph::set_fill", |fixture| {
            let (mut graph, node) = with_fill(fixture)?;
            // SAFETY: as in `with_fill`.
            unsafe { graph.set_fill(node, fill(fixture, 4)) }?;
            made(graph)
        }),
        ("Graph::set_event_record", |fixture| {
            let mut graph = graph(fixture)?;
            let node = graph.add_event_record(&[], &fixture.event)?;
            graph.set_event_record(node, &fixture.later)?;
            made(graph)
        }),
        ("Graph::set_event_wait", |fixture| {
            let mut graph = graph(fixture)?;
            let node = graph.add_event_wait(&[], &fixture.event)?;
            graph.set_event_wait(node, &fixture.later)?;
            made(graph)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("GraphExec::id", |fixture| {
            made(chain(fixture)?.0.instantiate()?.id()?)
        }),
        ("GraphExec::set_raw", |fixture| {
            let (graph, [first, _]) = chain(fixture)?;
            // SAFETY: an empty node accesses no memory.
            made(unsafe { graph.instantiate()?.set_raw(first, &mut empty()) }?)
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

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
