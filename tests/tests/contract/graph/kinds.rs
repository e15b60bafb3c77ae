//! The behavior of each kind of node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use curium_driver::{
    ConditionalKind, CopyPlace, DevicePointer, Error, Event, EventFlags, FillValue, Graph,
    GraphCopy, GraphFill, LaunchAttributes, LaunchConfig, MemoryOperation, NodeKind,
};
use curium_memory::{PinnedBuffer, PinnedFlags};
use curium_sys::{CUlaunchAttributeID, CUresult};
use curium_tests::{Gate, TestDriver, on_driver};

use super::{LEN, add_fill, add_kernel, bytes_of, fill, fill_of, graph, run, words, zeroes};

#[test]
fn copy_of_rows_from_the_host_and_back_leaves_the_rest() {
    on_driver(|test| {
        let buffer = zeroes(test);
        let source: Vec<u32> = (0..12).collect();
        let mut target = vec![0_u32; 12];
        let mut graph = graph(test);
        // Three rows of two words, with a pitch of four words in the source and eight on the device.
        let from = CopyPlace::host(source.as_ptr().cast_mut().cast())
            .with_pitch(16)
            .with_origin(4, 0, 0);
        let device = CopyPlace::device(bytes_of(&buffer))
            .with_pitch(32)
            .with_origin(8, 1, 0);
        let back = CopyPlace::host(target.as_mut_ptr().cast()).with_pitch(16);
        // SAFETY: the rows lie within all three allocations, which outlive the launch.
        let up = unsafe { graph.add_copy(&[], GraphCopy::new(from, device, 8).with_rows(3)) }
            .expect("it fits");
        // SAFETY: as above.
        unsafe { graph.add_copy(&[*up], GraphCopy::new(device, back, 8).with_rows(3)) }
            .expect("it fits");
        let described = graph.copy(up).expect("the node is there");
        assert_eq!(
            (described.rows, described.bytes, described.to.origin),
            (3, 8, (8, 1, 0))
        );
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(target, [1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0, 0]);
        let mut expected = vec![0; LEN];
        for (row, values) in [[1, 2], [5, 6], [9, 10]].into_iter().enumerate() {
            expected[(row + 1) * 8 + 2..][..2].copy_from_slice(&values);
        }
        assert_eq!(words(&buffer), expected);
        // The driver accesses the host memory, without a borrow that shows it.
        drop((source, target));
    });
}

#[test]
fn fill_of_rows_writes_each_width() {
    on_driver(|test| {
        let buffer = zeroes(test);
        let mut graph = graph(test);
        let at = |byte: u64| DevicePointer::from_raw(buffer.as_pointer().as_raw() + byte);
        let fills = [
            GraphFill::new(at(0), FillValue::U8(0xab), 3),
            GraphFill::new(at(8), FillValue::U16(0xabcd), 1).with_rows(2, 8),
            GraphFill::new(at(32), FillValue::U32(5), 2).with_rows(2, 16),
        ];
        for fill in fills {
            // SAFETY: the rows lie within the buffer, which outlives the launch.
            let node = unsafe { graph.add_fill(&[], fill) }.expect("it fits");
            let described = graph.fill(node).expect("the node is there");
            assert_eq!(
                (described.value, described.elements, described.rows),
                (fill.value, fill.elements, fill.rows)
            );
        }
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(
            words(&buffer)[..15],
            [
                0xab_abab, 0, 0xabcd, 0, 0xabcd, 0, 0, 0, 5, 5, 0, 0, 5, 5, 0
            ]
        );
    });
}

#[test]
fn host_function_runs_once_in_each_launch_and_its_panic_ends_there() {
    on_driver(|test| {
        let (buffer, count) = (zeroes(test), Arc::new(AtomicU32::new(0)));
        let mut graph = graph(test);
        let counter = Arc::clone(&count);
        let counted = graph.add_host(&[], move || {
            counter.fetch_add(1, Ordering::Relaxed);
            assert!(
                counter.load(Ordering::Relaxed) != 2,
                "this panic is part of the test"
            );
        });
        let counted = counted.expect("the node can be added");
        add_fill(&mut graph, &[*counted], &buffer, 3);
        let mut exec = graph.instantiate().expect("the graph is valid");
        for launches in 1..=3 {
            run(test, &mut exec);
            assert_eq!(count.load(Ordering::Relaxed), launches);
        }
        assert_eq!(
            words(&buffer),
            [3; LEN],
            "the launch continues after the panic"
        );
    });
}

#[test]
fn event_nodes_order_the_graph_with_other_work() {
    on_driver(|test| {
        let (buffer, stream, gated) = (zeroes(test), test.stream(), test.stream());
        let [begin, end] = [(); 2]
            .map(|()| Event::new(&test.context(), EventFlags::empty()).expect("it can be created"));
        let mut graph = graph(test);
        let waits = graph
            .add_event_wait(&[], &begin)
            .expect("the node can be added");
        let filled = add_fill(&mut graph, &[*waits], &buffer, 8);
        let records = graph
            .add_event_record(&[*filled], &end)
            .expect("the node can be added");
        assert!(graph.waits_for(waits, &begin).expect("the node is there"));
        assert!(!graph.records(records, &begin).expect("the node is there"));
        let mut exec = graph.instantiate().expect("the graph is valid");
        let gate = Gate::on(&gated);
        begin.record(&gated).expect("it can be recorded");
        exec.launch(&stream).expect("it can be launched");
        assert!(
            !stream.is_finished().expect("a stream can be queried"),
            "the graph waits for the event"
        );
        gate.open();
        end.synchronize().expect("the graph records it");
        stream.synchronize().expect("it runs");
        assert_eq!(words(&buffer), [8; LEN]);
    });
}

#[test]
fn child_runs_with_the_nodes_that_it_had_when_it_was_added() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let (mut child, mut parent) = (graph(test), graph(test));
        add_kernel(&mut child, &[], &kernel, &buffer, 5);
        let node = parent
            .add_child(&[], &child)
            .expect("the node can be added");
        let first = child.nodes().expect("it can be read");
        add_kernel(&mut child, &first, &kernel, &buffer, 6);
        let inner = parent.child(node).expect("the node is there");
        assert_eq!(inner.nodes().expect("it can be read").len(), 1);
        assert_eq!(
            parent.kind(*node).expect("the node is there"),
            NodeKind::Child
        );
        run(test, &mut parent.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [5; LEN]);
    });
}

#[test]
fn memory_that_a_node_allocates_is_there_until_a_node_frees_it() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let before = used(test);
        let mut graph = graph(test);
        let memory = graph.add_allocation(&[], LEN * 4).expect("memory suffices");
        let known = graph.allocation(*memory).expect("the node allocates");
        assert_eq!(
            (known.address(), known.byte_len()),
            (memory.address(), LEN * 4)
        );
        let arguments = (memory.address().cast(), 11, LEN as u32);
        // SAFETY: the node depends on the allocation of this many words.
        let filled = unsafe {
            graph.add_kernel(
                &[*memory],
                &kernel,
                LaunchConfig::for_elements(LEN as u32),
                arguments,
            )
        }
        .expect("the node can be added");
        let copy = GraphCopy::new(
            CopyPlace::device(memory.address()),
            CopyPlace::device(bytes_of(&buffer)),
            LEN * 4,
        );
        // SAFETY: both have the same length; the buffer outlives the launches.
        let copied = unsafe { graph.add_copy(&[*filled], copy) }.expect("the node can be added");
        // SAFETY: the node depends on all accesses to the memory.
        let freed = unsafe { graph.add_free(&[*copied], &memory) }.expect("the node can be added");
        assert_eq!(
            graph.freed(freed).expect("the node frees"),
            memory.address()
        );
        let mut exec = graph.instantiate().expect("the graph is valid");
        for _ in 0..2 {
            run(test, &mut exec);
            assert_eq!(words(&buffer), [11; LEN]);
        }
        drop((exec, graph));
        // The driver releases it after it has observed that it is no longer used.
        let deadline = Instant::now() + Duration::from_secs(5);
        while used(test) > before && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let memory = test
            .device()
            .graph_memory()
            .expect("a device can be queried");
        assert_eq!(memory.used, before, "{memory:?}");
    });
}

/// Returns the device memory in bytes reserved for graphs, after all work has completed and unused memory was trimmed.
fn used(test: &TestDriver) -> u64 {
    test.context().synchronize().expect("nothing is captured");
    test.device()
        .trim_graph_memory()
        .expect("cached memory can be released");
    test.device()
        .graph_memory()
        .expect("a device can be queried")
        .used
}

#[test]
fn memory_operations_write_in_order() {
    on_driver(|test| {
        let values = PinnedBuffer::<u32>::zeroed(&test.context(), 2, PinnedFlags::DEVICE_MAP)
            .expect("it suffices");
        let first: DevicePointer<u32> =
            DevicePointer::from_raw(values.as_ptr().expose_provenance() as u64);
        let mut graph = graph(test);
        let operations = [
            MemoryOperation::WriteU32(first, 4),
            MemoryOperation::WriteU32(first.wrapping_add(1), 5),
        ];
        // SAFETY: the addresses are aligned and lie in the buffer, which outlives the launch.
        let node = unsafe { graph.add_memory_operations(&[], &operations) }
            .expect("the device writes values");
        assert_eq!(
            graph
                .memory_operation_count(node)
                .expect("the node is there"),
            2
        );
        let mut exec = graph.instantiate().expect("the graph is valid");
        run(test, &mut exec);
        assert_eq!(*values, [4, 5]);
        // SAFETY: as above.
        unsafe {
            exec.set_memory_operations(node, &[MemoryOperation::WriteU32(first, 9), operations[1]])
        }
        .expect("this number of operations fits");
        run(test, &mut exec);
        assert_eq!(*values, [9, 5]);
    });
}

#[test]
fn conditional_node_runs_the_body_that_its_value_selects() {
    on_driver(|test| {
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
            let condition = graph
                .condition(Some(value))
                .expect("a condition can be created");
            let mut node = graph
                .add_conditional(&[], condition, kind)
                .expect("the node can be added");
            for (body, buffer) in node.bodies.iter_mut().zip(&buffers) {
                add_fill(body, &[], buffer, 1);
            }
            assert_eq!(
                graph.kind(node.node()).expect("the node is there"),
                NodeKind::Conditional
            );
            run(test, &mut graph.instantiate().expect("the graph is valid"));
            assert_eq!(
                buffers.map(|buffer| words(&buffer)[0]),
                expected,
                "{value} {kind:?}"
            );
        }
    });
}

#[test]
fn graph_with_a_conditional_node_is_not_copied_and_has_one_executable_at_a_time() {
    on_driver(|test| {
        let mut whole = graph(test);
        let condition = whole
            .condition(Some(0))
            .expect("a condition can be created");
        let node = whole
            .add_conditional(&[], condition, ConditionalKind::If)
            .expect("the node can be added");
        let is_unsupported =
            |error: Error| error.code() == Some(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        assert!(is_unsupported(
            whole.try_clone().expect_err("the node cannot be copied")
        ));
        assert!(is_unsupported(
            graph(test)
                .add_child(&[], &whole)
                .expect_err("the child graph is a copy")
        ));
        let exec = whole.instantiate().expect("it is the first");
        assert!(is_unsupported(
            whole.instantiate().expect_err("it would be the second one")
        ));
        drop(exec);
        whole.instantiate().expect("there is no other");
        drop(node);
    });
}

#[test]
fn kernel_node_returns_its_parameters_and_runs_with_new_ones() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        assert_eq!(
            graph.kernel_config(&node).expect("the node is there"),
            node.config()
        );
        assert_eq!(node.kernel().name(), "fill");
        let config = LaunchConfig::new((2, 1, 1), (8, 4, 1));
        let arguments = (buffer.as_pointer(), 3, LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { graph.set_kernel(&node, &kernel, config, arguments) }
            .expect("the kernel is the same");
        assert_eq!(
            graph.kernel_config(&node).expect("the node is there"),
            config
        );
        let (mut pointer, mut value, mut len) = (buffer.as_pointer(), 2_u32, 8_u32);
        let values = &mut [
            (&raw mut pointer).cast(),
            (&raw mut value).cast(),
            (&raw mut len).cast(),
        ];
        let untyped = kernel.to_untyped();
        let (config, attributes) = (LaunchConfig::new(1, 8), LaunchAttributes::new());
        // SAFETY: `fill` takes a pointer and two words, and writes eight words of the buffer.
        unsafe { graph.add_kernel_raw(&[*node], &untyped, config, &attributes, values) }
            .expect("it can be added");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        // A block of 8 × 4 threads numbers them along x only.
        let written = words(&buffer);
        assert_eq!(
            (&written[..8], &written[8..16], written[16]),
            (&[2; 8][..], &[3; 8][..], 0)
        );
    });
}

#[test]
fn fill_parameters_can_be_replaced_before_instantiation() {
    on_driver(|test| {
        let buffer = zeroes(test);
        let mut graph = graph(test);
        let node = add_fill(&mut graph, &[], &buffer, 1);
        // SAFETY: the buffer has this length and outlives the launch.
        unsafe { graph.set_fill(node, fill_of(&buffer, 2)) }.expect("it fits");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [2; LEN]);
    });
}

#[test]
fn copy_parameters_can_be_replaced_before_instantiation() {
    on_driver(|test| {
        let (from, to) = (zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let filled = add_fill(&mut graph, &[], &from, 3);
        let copy = |bytes| {
            GraphCopy::new(
                CopyPlace::device(bytes_of(&from)),
                CopyPlace::device(bytes_of(&to)),
                bytes,
            )
        };
        // SAFETY: the buffers have this length and outlive the launch.
        let node = unsafe { graph.add_copy(&[*filled], copy(LEN * 4)) }.expect("it fits");
        // SAFETY: as above.
        unsafe { graph.set_copy(node, copy(4)) }.expect("it fits");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&to)[..2], [3, 0]);
    });
}

#[test]
fn attributes_of_a_kernel_node_are_queried_and_copied() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let (config, arguments) = (
            LaunchConfig::new(1, 64),
            (buffer.as_pointer(), 3, LEN as u32),
        );
        let attributes = LaunchAttributes::new().with_priority(-1);
        // SAFETY: `fill` writes exactly the words of the buffer, which outlives the launch.
        let first = unsafe { graph.add_kernel_with(&[], &kernel, config, &attributes, arguments) };
        let first = first.expect("the node can be added");
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
        unsafe { graph.copy_kernel_attributes(&second, &first) }.expect("both are kernel nodes");
        assert_eq!(priority(&graph, &second), -1);
        // SAFETY: as above.
        unsafe { graph.set_kernel_attributes(&first, &LaunchAttributes::new().with_priority(0)) }
            .expect("it can be set");
        assert_eq!(priority(&graph, &first), 0);
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [4; LEN]);
    });
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig, MemoryOperation};
    use curium_sys::CUlaunchAttributeID;

    use crate::graph::operations::{arguments, empty, graph, with_copy, with_fill, with_kernel};
    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
            let (mut graph, config) = (graph(fixture)?, LaunchConfig::new(1, 32));
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
            let (mut graph, config) = (graph(fixture)?, LaunchConfig::new(1, 32));
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
            // SAFETY: as above.
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
}
