//! The behavior of each kind of node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use curium_driver::{
    ConditionalKind, CopyPlace, DevicePointer, Error, Event, EventFlags, FillValue, Graph,
    GraphCopy, GraphFill, LaunchAttributes, LaunchConfig, MemoryOperation, NodeKind,
};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sys::{CUlaunchAttributeID, CUresult};
use curium_tests::{Gate, TestDriver, TestResult, driver_test};

use super::{
    LEN, add_fill, add_kernel, byte_pointer, fill, fill_parameters, graph, run, words, zeroes,
};

/// A copy of rows from the host and back leaves the rest.
#[driver_test]
fn pitched_host_copy_leaves_other_rows(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let source: Vec<u32> = (0..12).collect();
    let mut target = vec![0_u32; 12];
    let mut graph = graph(test);
    // Three rows of two words, with a pitch of four words in the source and eight on the device.
    let from = CopyPlace::host(source.as_ptr().cast_mut().cast())
        .with_pitch(16)
        .with_origin(4, 0, 0);
    let device = CopyPlace::device(byte_pointer(&buffer))
        .with_pitch(32)
        .with_origin(8, 1, 0);
    let back = CopyPlace::host(target.as_mut_ptr().cast()).with_pitch(16);
    // SAFETY: the rows lie within all three allocations, which outlive the launch.
    let up = unsafe { graph.add_copy(&[], GraphCopy::new(from, device, 8).with_rows(3)) }?;
    // SAFETY: the rows lie within all three allocations, which outlive the launch.
    unsafe { graph.add_copy(&[*up], GraphCopy::new(device, back, 8).with_rows(3)) }?;
    let described = graph.copy(up)?;
    assert_eq!(
        (described.rows, described.bytes, described.to.origin),
        (3, 8, (8, 1, 0))
    );
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(target, [1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0, 0]);
    let mut expected = vec![0; LEN];
    for (row, values) in [[1, 2], [5, 6], [9, 10]].into_iter().enumerate() {
        expected[(row + 1) * 8 + 2..][..2].copy_from_slice(&values);
    }
    assert_eq!(words(&buffer), expected);
    // The driver accesses the host memory, without a borrow that shows it.
    drop((source, target));
    Ok(())
}

#[driver_test]
fn pitched_fill_writes_each_width(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let byte_address = |byte: u64| DevicePointer::from_raw(buffer.as_pointer().as_raw() + byte);
    let fills = [
        GraphFill::new(byte_address(0), FillValue::U8(0xab), 3),
        GraphFill::new(byte_address(8), FillValue::U16(0xabcd), 1).with_rows(2, 8),
        GraphFill::new(byte_address(32), FillValue::U32(5), 2).with_rows(2, 16),
    ];
    for fill in fills {
        // SAFETY: the rows lie within the buffer, which outlives the launch.
        let node = unsafe { graph.add_fill(&[], fill) }?;
        let described = graph.fill(node)?;
        assert_eq!(
            (described.value, described.elements, described.rows),
            (fill.value, fill.elements, fill.rows)
        );
    }
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(
        words(&buffer)[..15],
        [
            0xab_abab, 0, 0xabcd, 0, 0xabcd, 0, 0, 0, 5, 5, 0, 0, 5, 5, 0
        ]
    );
    Ok(())
}

/// A host function runs once in each launch and its panic ends there.
#[driver_test]
fn host_function_node_contains_its_panic(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let count = Arc::new(AtomicU32::new(0));
    let mut graph = graph(test);
    let counter = Arc::clone(&count);
    let counted = graph.add_host(&[], move || {
        counter.fetch_add(1, Ordering::Relaxed);
        assert!(
            counter.load(Ordering::Relaxed) != 2,
            "this panic is part of the test"
        );
    });
    let counted = counted?;
    add_fill(&mut graph, &[*counted], &buffer, 3)?;
    let mut exec = graph.instantiate()?;
    for launches in 1..=3 {
        run(test, &mut exec)?;
        assert_eq!(count.load(Ordering::Relaxed), launches);
    }
    assert_eq!(
        words(&buffer),
        [3; LEN],
        "the launch continues after the panic"
    );
    Ok(())
}

#[driver_test]
fn event_nodes_order_the_graph_with_other_work(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let stream = test.stream();
    let gated = test.stream();
    let begin = Event::new(&test.context(), EventFlags::empty())?;
    let end = Event::new(&test.context(), EventFlags::empty())?;
    let mut graph = graph(test);
    let waits = graph.add_event_wait(&[], &begin)?;
    let filled = add_fill(&mut graph, &[*waits], &buffer, 8)?;
    let records = graph.add_event_record(&[*filled], &end)?;
    assert!(graph.waits_for(waits, &begin)?);
    assert!(!graph.records(records, &begin)?);
    let mut exec = graph.instantiate()?;
    let gate = Gate::on(&gated);
    begin.record(&gated)?;
    exec.launch(&stream)?;
    assert!(!stream.is_finished()?, "the graph waits for the event");
    gate.open();
    end.synchronize()?;
    stream.synchronize()?;
    assert_eq!(words(&buffer), [8; LEN]);
    Ok(())
}

/// A child runs with the nodes that it had when it was added.
#[driver_test]
fn child_graph_is_copied_when_added(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut child = graph(test);
    let mut parent = graph(test);
    add_kernel(&mut child, &[], &kernel, &buffer, 5);
    let node = parent.add_child(&[], &child)?;
    let first = child.nodes()?;
    add_kernel(&mut child, &first, &kernel, &buffer, 6);
    let inner = parent.child(node)?;
    assert_eq!(inner.nodes()?.len(), 1);
    assert_eq!(parent.kind(*node)?, NodeKind::Child);
    run(test, &mut parent.instantiate()?)?;
    assert_eq!(words(&buffer), [5; LEN]);
    Ok(())
}

/// Memory that a node allocates is there until a node frees it.
#[driver_test]
fn node_allocation_lives_until_its_free_node(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let before = used(test)?;
    let mut graph = graph(test);
    let memory = graph.add_allocation(&[], LEN * 4)?;
    let parameters = graph.allocation(*memory)?;
    assert_eq!(
        (parameters.address(), parameters.byte_len()),
        (memory.address(), LEN * 4)
    );
    let arguments = (memory.address().cast(), 11, LEN as u32);
    // SAFETY: the node depends on the allocation of this many words.
    let filled = unsafe {
        graph.add_kernel(
            &[*memory],
            &kernel,
            LaunchConfig::for_elements(LEN),
            arguments,
        )
    }?;
    let copy = GraphCopy::new(
        CopyPlace::device(memory.address()),
        CopyPlace::device(byte_pointer(&buffer)),
        LEN * 4,
    );
    // SAFETY: both have the same length; the buffer outlives the launches.
    let copied = unsafe { graph.add_copy(&[*filled], copy) }?;
    // SAFETY: the node depends on all accesses to the memory.
    let freed = unsafe { graph.add_free(&[*copied], &memory) }?;
    assert_eq!(graph.freed(freed)?, memory.address());
    let mut exec = graph.instantiate()?;
    for _ in 0..2 {
        run(test, &mut exec)?;
        assert_eq!(words(&buffer), [11; LEN]);
    }
    drop((exec, graph));
    // The driver releases it after it has observed that it is no longer used.
    let deadline = Instant::now() + Duration::from_secs(5);
    while used(test)? > before && Instant::now() < deadline {
        std::thread::yield_now();
    }
    let memory = test.device().graph_memory()?;
    assert_eq!(memory.used, before, "{memory:?}");
    Ok(())
}

/// The peak of captured allocations counts what branches can use at once, and not what follows a
/// free.
#[driver_test]
fn peak_of_captured_allocations(test: &TestDriver) -> TestResult {
    const BYTES: usize = 4 << 20;
    let before = used(test)?;
    let graph = Graph::capture(&test.context(), |scope| -> TestResult {
        for count in [1, 3, 2] {
            drop(DeviceBuffer::<u8>::zeroed(scope, count * BYTES)?);
        }
        Ok(())
    })?;
    assert_eq!(graph.peak_allocated_bytes()?, 3 * BYTES as u64);
    let branches = Graph::capture(&test.context(), |scope| -> TestResult {
        let other = scope.fork()?;
        let first = DeviceBuffer::<u8>::zeroed(scope, BYTES)?;
        let second = DeviceBuffer::<u8>::zeroed(&other, 2 * BYTES)?;
        drop((first, second));
        scope.join(&other)?;
        drop(DeviceBuffer::<u8>::zeroed(scope, BYTES)?);
        Ok(())
    })?;
    assert_eq!(branches.peak_allocated_bytes()?, 3 * BYTES as u64);
    // A launch uses what was computed.
    for graph in [graph, branches] {
        let peak = graph.peak_allocated_bytes()?;
        test.device().reset_graph_memory_maxima()?;
        let mut exec = graph.instantiate()?;
        run(test, &mut exec)?;
        let used = test.device().graph_memory()?.used_high - before;
        assert!(
            used >= peak && used <= peak + (64 << 20),
            "{used} for {peak}"
        );
        drop((exec, graph));
        self::used(test)?;
    }
    Ok(())
}

/// Returns the device memory in bytes reserved for graphs, after all work has completed and unused
/// memory was trimmed.
fn used(test: &TestDriver) -> TestResult<u64> {
    test.context().synchronize()?;
    test.device().trim_graph_memory()?;
    Ok(test.device().graph_memory()?.used)
}

#[driver_test]
fn memory_operations_write_in_order(test: &TestDriver) -> TestResult {
    let values = PinnedBuffer::<u32>::zeroed(&test.context(), 2, PinnedFlags::DEVICE_MAP)?;
    let first: DevicePointer<u32> =
        DevicePointer::from_raw(values.as_ptr().expose_provenance() as u64);
    let mut graph = graph(test);
    let operations = [
        MemoryOperation::WriteU32(first, 4),
        MemoryOperation::WriteU32(first.wrapping_add(1), 5),
    ];
    // SAFETY: the addresses are aligned and lie in the buffer, which outlives the launch.
    let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
    assert_eq!(graph.memory_operation_count(node)?, 2);
    let mut exec = graph.instantiate()?;
    run(test, &mut exec)?;
    assert_eq!(*values, [4, 5]);
    // SAFETY: the addresses are aligned and lie in the buffer, which outlives the launch.
    unsafe {
        exec.set_memory_operations(node, &[MemoryOperation::WriteU32(first, 9), operations[1]])
    }?;
    run(test, &mut exec)?;
    assert_eq!(*values, [9, 5]);
    Ok(())
}

/// A conditional node runs the body that its value selects.
#[driver_test]
fn conditional_node_runs_the_selected_body(test: &TestDriver) -> TestResult {
    for (value, kind, expected) in [
        (1, ConditionalKind::If, [1, 0, 0]),
        (0, ConditionalKind::If, [0, 0, 0]),
        (0, ConditionalKind::While, [0, 0, 0]),
        (7, ConditionalKind::IfElse, [1, 0, 0]),
        (0, ConditionalKind::IfElse, [0, 1, 0]),
        (2, ConditionalKind::Switch(3), [0, 0, 1]),
        (3, ConditionalKind::Switch(3), [0, 0, 0]),
    ] {
        let buffers = [zeroes(test), zeroes(test), zeroes(test)];
        let mut graph = graph(test);
        let condition = graph.condition(Some(value))?;
        let mut node = graph.add_conditional(&[], condition, kind)?;
        for (body, buffer) in node.bodies.iter_mut().zip(&buffers) {
            add_fill(body, &[], buffer, 1)?;
        }
        assert_eq!(graph.kind(node.node())?, NodeKind::Conditional);
        run(test, &mut graph.instantiate()?)?;
        assert_eq!(
            buffers.map(|buffer| words(&buffer)[0]),
            expected,
            "{value} {kind:?}"
        );
    }
    Ok(())
}

/// A graph with a conditional node is not copied and has one executable at a time.
#[driver_test]
fn conditional_graph_has_one_executable(test: &TestDriver) -> TestResult {
    let mut whole = graph(test);
    let condition = whole.condition(Some(0))?;
    let node = whole.add_conditional(&[], condition, ConditionalKind::If)?;
    fn is_unsupported(error: &Error) -> bool {
        error.code() == Some(CUresult::CUDA_ERROR_NOT_SUPPORTED)
    }

    assert!(is_unsupported(
        &whole.try_clone().expect_err("the node cannot be copied")
    ));
    assert!(is_unsupported(
        &graph(test)
            .add_child(&[], &whole)
            .expect_err("the child graph is a copy")
    ));
    let exec = whole.instantiate()?;
    assert!(is_unsupported(
        &whole.instantiate().expect_err("it would be the second one")
    ));
    drop(exec);
    whole.instantiate()?;
    drop(node);
    Ok(())
}

/// A kernel node returns its parameters and runs with new ones.
#[driver_test]
fn kernel_node_parameters_are_replaced(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    assert_eq!(graph.kernel_config(&node)?, node.config());
    assert_eq!(node.kernel().name(), "fill");
    let config = LaunchConfig::new((2, 1, 1), (8, 4, 1));
    let arguments = (buffer.as_pointer(), 3, LEN as u32);
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { graph.set_kernel(&node, &kernel, config, arguments) }?;
    assert_eq!(graph.kernel_config(&node)?, config);
    let mut pointer = buffer.as_pointer();
    let mut value = 2_u32;
    let mut len = 8_u32;
    let values = &mut [
        (&raw mut pointer).cast(),
        (&raw mut value).cast(),
        (&raw mut len).cast(),
    ];
    let untyped = kernel.to_untyped();
    let config = LaunchConfig::new(1, 8);
    let attributes = LaunchAttributes::new();
    // SAFETY: `fill` takes a pointer and two words, and writes eight words of the buffer.
    unsafe { graph.add_kernel_raw(&[*node], &untyped, config, &attributes, values) }?;
    run(test, &mut graph.instantiate()?)?;
    // A block of 8 × 4 threads numbers them along x only.
    let written = words(&buffer);
    assert_eq!(
        (&written[..8], &written[8..16], written[16]),
        (&[2; 8][..], &[3; 8][..], 0)
    );
    Ok(())
}

/// A fill parameters can be replaced before instantiation.
#[driver_test]
fn fill_parameters_are_replaced(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_fill(&mut graph, &[], &buffer, 1)?;
    // SAFETY: the buffer has this length and outlives the launch.
    unsafe { graph.set_fill(node, fill_parameters(&buffer, 2)) }?;
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&buffer), [2; LEN]);
    Ok(())
}

/// A copy parameters can be replaced before instantiation.
#[driver_test]
fn copy_parameters_are_replaced(test: &TestDriver) -> TestResult {
    let from = zeroes(test);
    let to = zeroes(test);
    let mut graph = graph(test);
    let filled = add_fill(&mut graph, &[], &from, 3)?;
    let copy = |bytes| {
        GraphCopy::new(
            CopyPlace::device(byte_pointer(&from)),
            CopyPlace::device(byte_pointer(&to)),
            bytes,
        )
    };
    // SAFETY: the buffers have this length and outlive the launch.
    let node = unsafe { graph.add_copy(&[*filled], copy(LEN * 4)) }?;
    // SAFETY: the buffers have this length and outlive the launch.
    unsafe { graph.set_copy(node, copy(4)) }?;
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&to)[..2], [3, 0]);
    Ok(())
}

#[driver_test]
fn kernel_node_attributes_are_queried_and_copied(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let config = LaunchConfig::new(1, 64);
    let arguments = (buffer.as_pointer(), 3, LEN as u32);
    let attributes = LaunchAttributes::new().with_priority(-1);
    // SAFETY: `fill` writes exactly the words of the buffer, which outlives the launch.
    let first = unsafe { graph.add_kernel_with(&[], &kernel, config, &attributes, arguments) }?;
    let second = add_kernel(&mut graph, &[*first], &kernel, &buffer, 4);
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let priority = |graph: &Graph, node| {
        let value = graph
            .raw_kernel_attribute(node, id)
            .expect("kernel nodes have a priority");
        // SAFETY: this attribute holds a priority.
        unsafe { value.priority }
    };
    assert_eq!(
        [&first, &second].map(|node| priority(&graph, node)),
        [-1, 0]
    );
    // SAFETY: the kernel does the same with any priority.
    unsafe { graph.copy_kernel_attributes(&second, &first) }?;
    assert_eq!(priority(&graph, &second), -1);
    // SAFETY: the kernel does the same with any priority.
    unsafe { graph.set_kernel_attributes(&first, &LaunchAttributes::new().with_priority(0)) }?;
    assert_eq!(priority(&graph, &first), 0);
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&buffer), [4; LEN]);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig, MemoryOperation};
    use curium_sys::CUlaunchAttributeID;

    use crate::graph::operations::{arguments, empty, graph, with_copy, with_fill, with_kernel};
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::add_empty", |fixture| {
            let mut graph = graph(fixture)?;
            let first = graph.add_empty(&[])?;
            made((graph.add_empty(&[first])?, graph))
        }),
        ("Graph::add_kernel", |fixture| made(with_kernel(fixture)?)),
        ("Graph::kernel_config", |fixture| {
            let (graph, node) = with_kernel(fixture)?;
            made((graph.kernel_config(&node)?, graph))
        }),
        ("Graph::add_copy", |fixture| made(with_copy(fixture)?)),
        ("Graph::copy", |fixture| {
            let (graph, node) = with_copy(fixture)?;
            made((graph.copy(node)?, graph))
        }),
        ("Graph::add_fill", |fixture| made(with_fill(fixture)?)),
        ("Graph::fill", |fixture| {
            let (graph, node) = with_fill(fixture)?;
            made((graph.fill(node)?, graph))
        }),
        ("Graph::add_event_record", |fixture| {
            let mut graph = graph(fixture)?;
            made((graph.add_event_record(&[], &fixture.event)?, graph))
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
            // SAFETY: the address is that of the pinned values, and the graph is not launched.
            let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
            // SAFETY: the address is that of the pinned values, and the graph is not launched.
            unsafe { graph.set_memory_operations(node, &operations) }?;
            made(graph)
        }),
        ("Graph::memory_operation_count", |fixture| {
            let mut graph = graph(fixture)?;
            let operations = [MemoryOperation::WriteU32(fixture.value_address(), 1)];
            // SAFETY: the address is that of the pinned values, and the graph is not launched.
            let node = unsafe { graph.add_memory_operations(&[], &operations) }?;
            made((graph.memory_operation_count(node)?, graph))
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
        ("Graph::peak_allocated_bytes", |fixture| {
            let mut graph = graph(fixture)?;
            graph.add_allocation(&[], 256)?;
            made((graph.peak_allocated_bytes()?, graph))
        }),
        ("Graph::add_raw", |fixture| {
            let mut graph = graph(fixture)?;
            // SAFETY: an empty node accesses no memory.
            made((unsafe { graph.add_raw(&[], &mut empty()) }?, graph))
        }),
        ("Device::graph_memory", |fixture| {
            made(fixture.device.graph_memory()?)
        }),
        ("Device::trim_graph_memory", |fixture| {
            made(fixture.device.trim_graph_memory()?)
        }),
        ("Device::reset_graph_memory_maxima", |fixture| {
            made(fixture.device.reset_graph_memory_maxima()?)
        }),
        ("Graph::add_kernel_with", |fixture| {
            let mut graph = graph(fixture)?;
            let config = LaunchConfig::new(1, 32);
            let attributes = LaunchAttributes::new().with_priority(0);
            let arguments = arguments(fixture, 2);
            // SAFETY: `fill` writes only words of the buffer, and the graph is not launched.
            made(
                unsafe {
                    graph.add_kernel_with(&[], &fixture.fill, config, &attributes, arguments)
                }
                .map(|_| ())?,
            )
        }),
        ("Graph::add_kernel_raw", |fixture| {
            let mut graph = graph(fixture)?;
            let config = LaunchConfig::new(1, 32);
            let (mut data, mut value, mut len) = arguments(fixture, 2);
            let values = &mut [
                (&raw mut data).cast(),
                (&raw mut value).cast(),
                (&raw mut len).cast(),
            ];
            let kernel = fixture.fill.to_untyped();
            // SAFETY: `fill` has these three parameters, and the graph is not launched.
            made(
                unsafe {
                    graph.add_kernel_raw(&[], &kernel, config, &LaunchAttributes::new(), values)
                }
                .map(|_| ())?,
            )
        }),
        ("Graph::set_kernel_attributes", |fixture| {
            let (mut graph, node) = with_kernel(fixture)?;
            // SAFETY: the kernel does the same with any priority.
            made(unsafe {
                graph.set_kernel_attributes(&node, &LaunchAttributes::new().with_priority(0))
            }?)
        }),
        ("Graph::raw_kernel_attribute", |fixture| {
            let (graph, node) = with_kernel(fixture)?;
            let attribute = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            graph
                .raw_kernel_attribute(&node, attribute)
                .map(|_| boxed(()))
        }),
        ("Graph::copy_kernel_attributes", |fixture| {
            let (mut graph, node) = with_kernel(fixture)?;
            // SAFETY: the kernel does the same with any priority.
            let other = unsafe {
                graph.add_kernel(
                    &[*node],
                    &fixture.fill,
                    LaunchConfig::new(1, 32),
                    arguments(fixture, 1),
                )
            }?;
            // SAFETY: as above; the attributes of both are the same.
            made(unsafe { graph.copy_kernel_attributes(&node, &other) }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
