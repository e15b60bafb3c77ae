//! Updates of executable graphs, by node and as a whole.

use curium_driver::{
    CopyPlace, Event, EventFlags, Function, Graph, GraphCopy, GraphUpdate, InstantiateFlags,
    InstantiateOptions, LaunchConfig, UpdateFailureReason, call,
};
use curium_memory::{DeviceBuffer, SyncAlloc};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{on_driver, on_simulator};

use super::{LEN, add_fill, add_kernel, bytes_of, fill, fill_of, graph, run, words, zeroes};

#[test]
fn kernel_node_takes_new_arguments_with_one_call_of_its_own() {
    on_driver(|test| {
        let (kernel, buffer, other) = (fill(test), zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let mut exec = graph.instantiate().expect("the graph is valid");
        for value in 2..5 {
            test.assert_calls(Function::cuGraphExecKernelNodeSetParams_v2, 1, || {
                // SAFETY: `fill` writes exactly the words of the buffer.
                unsafe { exec.set_kernel(&node, (other.as_pointer(), value, LEN as u32)) }
            })
            .expect("the arguments fit");
            run(test, &mut exec);
            assert_eq!(
                (words(&buffer), words(&other)),
                (vec![0; LEN], vec![value; LEN])
            );
        }
        let arguments = (buffer.as_pointer(), 9, LEN as u32);
        // SAFETY: as above.
        unsafe { exec.set_kernel_with(&node, &kernel, LaunchConfig::new(1, 16), arguments) }
            .expect("it fits");
        run(test, &mut exec);
        assert_eq!(words(&buffer)[15..17], [9, 0], "sixteen threads");
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [1; LEN], "the graph itself is unchanged");
    });
}

#[test]
fn kernel_node_accepts_new_arguments_while_the_graph_is_shared() {
    on_driver(|test| {
        let (kernel, again, buffer) = (fill(test), fill(test), zeroes(test));
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let config = node.config();
        let mut exec = graph.instantiate().expect("the graph is valid");
        let mut graph = Some(graph);
        for value in 2..8 {
            if value == 5 {
                drop(graph.take());
            }
            // Two look-ups of one kernel return equal kernels.
            let kernel = if value % 3 == 0 { &kernel } else { &again };
            let arguments = (buffer.as_pointer(), value, LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { exec.set_kernel_with(&node, kernel, config, arguments) }
                .expect("the kernel is the same");
            run(test, &mut exec);
            assert_eq!(words(&buffer), vec![value; LEN]);
        }
    });
}

#[test]
fn kernel_that_an_update_brought_is_kept_until_the_next() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let mut exec = graph.instantiate().expect("the graph is valid");
        drop(graph);
        let (other, config) = (fill(test), node.config());
        for value in [2, 3] {
            let arguments = (buffer.as_pointer(), value, LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { exec.set_kernel_with(&node, &other, config, arguments) }
                .expect("it is a kernel of the driver");
        }
        drop(other);
        test.assert_calls(Function::cuLibraryUnload, 0, || run(test, &mut exec));
        assert_eq!(words(&buffer), [3; LEN]);
        test.assert_calls(Function::cuLibraryUnload, 1, || {
            // SAFETY: as above.
            unsafe { exec.set_kernel(&node, (buffer.as_pointer(), 4, LEN as u32)) }
        })
        .expect("the arguments fit");
        run(test, &mut exec);
        assert_eq!(words(&buffer), [4; LEN]);
    });
}

#[test]
fn change_does_not_concern_a_launch_before_it() {
    on_driver(|test| {
        let (kernel, buffer, stream) = (fill(test), zeroes(test), test.stream());
        let copies = [zeroes(test), zeroes(test)];
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let mut exec = graph.instantiate().expect("the graph is valid");
        let gate = curium_tests::Gate::on(&stream);
        for (value, copy) in [3, 4].into_iter().zip(&copies) {
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { exec.set_kernel(&node, (copy.as_pointer(), value, LEN as u32)) }
                .expect("the arguments fit");
            exec.launch(&stream).expect("it can be launched");
        }
        gate.open();
        stream.synchronize().expect("it runs");
        assert_eq!(
            copies.map(|copy| words(&copy)),
            [vec![3; LEN], vec![4; LEN]]
        );
        assert_eq!(words(&buffer), [0; LEN]);
    });
}

#[test]
fn copies_fills_and_events_take_new_parameters() {
    on_driver(|test| {
        let (first, second) = (zeroes(test), zeroes(test));
        let events = [(); 2]
            .map(|()| Event::new(&test.context(), EventFlags::empty()).expect("it can be created"));
        let mut graph = graph(test);
        let filled = add_fill(&mut graph, &[], &first, 3);
        let copy = |bytes| {
            GraphCopy::new(
                CopyPlace::device(bytes_of(&first)),
                CopyPlace::device(bytes_of(&second)),
                bytes,
            )
        };
        // SAFETY: both buffers have the same length and outlive the launches.
        let copied = unsafe { graph.add_copy(&[*filled], copy(8)) }.expect("it fits");
        let recorded = graph
            .add_event_record(&[*copied], &events[0])
            .expect("the node can be added");
        let waited = graph
            .add_event_wait(&[], &events[0])
            .expect("the node can be added");
        let mut exec = graph.instantiate().expect("the graph is valid");
        // SAFETY: as above.
        unsafe { exec.set_fill(filled, fill_of(&first, 4)) }.expect("it fits");
        // SAFETY: as above.
        unsafe { exec.set_copy(copied, copy(16)) }.expect("it fits");
        exec.set_event_record(recorded, &events[1])
            .expect("the event belongs to the context");
        exec.set_event_wait(waited, &events[1])
            .expect("the event belongs to the context");
        run(test, &mut exec);
        assert_eq!(words(&second)[..5], [4, 4, 4, 4, 0]);
        // An event without timing has no elapsed time, and an event that was never recorded cannot be an end point.
        assert!(
            events[1].milliseconds_since(&events[1]).is_ok(),
            "the graph has recorded it"
        );
        assert!(
            events[1].milliseconds_since(&events[0]).is_err(),
            "the other event was not recorded"
        );
    });
}

#[test]
fn node_that_is_disabled_does_nothing_and_order_stays() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let second = add_kernel(&mut graph, &[*first], &kernel, &buffer, 2);
        let third = graph.add_empty(&[*second]).expect("the node can be added");
        let mut exec = graph.instantiate().expect("the graph is valid");
        exec.set_enabled(*second, false)
            .expect("a kernel can be disabled");
        assert_eq!(
            [*first, *second].map(|node| exec.is_enabled(node).expect("it can be queried")),
            [true, false]
        );
        run(test, &mut exec);
        assert_eq!(words(&buffer), [1; LEN]);
        exec.set_enabled(*second, true).expect("it can be restored");
        run(test, &mut exec);
        assert_eq!(words(&buffer), [2; LEN]);
        let error = exec
            .set_enabled(third, false)
            .expect_err("every graph accepts an empty node");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    });
}

#[test]
fn executable_takes_everything_from_a_graph_of_the_same_shape() {
    on_driver(|test| {
        let (kernel, buffer, other) = (fill(test), zeroes(test), zeroes(test));
        let (mut first, mut second) = (graph(test), graph(test));
        for (graph, buffer, value) in [(&mut first, &buffer, 1), (&mut second, &other, 5)] {
            let node = add_kernel(graph, &[], &kernel, buffer, value);
            add_fill(graph, &[*node], buffer, value + 1);
        }
        let mut exec = first.instantiate().expect("the graph is valid");
        assert!(exec.update(&second).expect("it can be updated").is_done());
        run(test, &mut exec);
        assert_eq!(
            (words(&buffer), words(&other)),
            (vec![0; LEN], vec![6; LEN])
        );
    });
}

#[test]
fn graph_that_does_not_match_reports_the_node_and_the_reason() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let (mut original, mut longer, mut other) = (graph(test), graph(test), graph(test));
        let node = add_kernel(&mut original, &[], &kernel, &buffer, 1);
        add_kernel(&mut original, &[*node], &kernel, &buffer, 2);
        let mut exec = original.instantiate().expect("the graph is valid");

        add_kernel(&mut longer, &[], &kernel, &buffer, 3);
        let GraphUpdate::Failed(failure) =
            exec.update(&longer).expect("the driver returns the value")
        else {
            panic!("a node is missing")
        };
        assert_eq!(failure.reason, UpdateFailureReason::Topology);
        assert_eq!(
            failure.error.code(),
            Some(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        );

        let node = add_kernel(&mut other, &[], &kernel, &buffer, 4);
        let node = add_fill(&mut other, &[*node], &buffer, 5);
        let GraphUpdate::Failed(failure) =
            exec.update(&other).expect("the driver returns the value")
        else {
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
        run(
            test,
            &mut original.instantiate().expect("the graph is valid"),
        );
        assert_eq!(words(&buffer), [2; LEN]);
    });
}

#[test]
fn child_of_an_executable_takes_parameters_from_a_graph_like_it() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let [mut child, mut other, mut parent] = [(); 3].map(|()| graph(test));
        add_kernel(&mut child, &[], &kernel, &buffer, 1);
        add_kernel(&mut other, &[], &kernel, &buffer, 2);
        let node = parent
            .add_child(&[], &child)
            .expect("the node can be added");
        let mut exec = parent.instantiate().expect("the graph is valid");
        exec.set_child(node, &other).expect("the graphs are equal");
        run(test, &mut exec);
        assert_eq!(words(&buffer), [2; LEN]);
    });
}

#[test]
fn flags_are_those_that_it_was_instantiated_with() {
    on_driver(|test| {
        let mut graph = graph(test);
        let memory = graph
            .add_allocation(&[], 256)
            .expect("memory suffices")
            .address();
        let options = InstantiateOptions::new().with_flags(InstantiateFlags::AUTO_FREE_ON_LAUNCH);
        let mut exec = graph.instantiate_with(options).expect("the graph is valid");
        assert!(
            exec.flags()
                .expect("it can be queried")
                .contains(InstantiateFlags::AUTO_FREE_ON_LAUNCH)
        );
        run(test, &mut exec);
        run(test, &mut exec);
        let stream = test.stream();
        // SAFETY: the last launch allocated the memory, which nothing uses.
        unsafe {
            call!(
                test.driver(),
                cuMemFreeAsync(memory.as_raw(), stream.as_raw())
            )
        }
        .expect("it is live");
        stream.synchronize().expect("the memory is freed");
    });
}

#[test]
fn flags_that_exclude_each_other_are_invalid() {
    on_driver(|test| {
        let graph = graph(test);
        let flags = InstantiateFlags::AUTO_FREE_ON_LAUNCH | InstantiateFlags::DEVICE_LAUNCH;
        let result = graph.instantiate_with(InstantiateOptions::new().with_flags(flags));
        let error = result.expect_err("a graph launched by a kernel frees no memory");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE),
            "{error}"
        );
    });
}

#[test]
fn update_that_fails_keeps_what_the_executable_may_use_from_then_on() {
    on_simulator(Config::new(), |test, simulator| {
        let (stream, code) = (test.stream(), CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
        let [(first, first_buffer), (second, second_buffer)] = [1, 2].map(|value| {
            let mut buffer = DeviceBuffer::<u32, _>::zeroed_in(&stream, LEN, SyncAlloc)
                .expect("memory suffices");
            let graph = Graph::capture(&test.context(), |scope| {
                buffer.as_slice_mut().fill_on(scope, value)
            });
            (graph.expect("a fill can be captured"), buffer)
        });
        let mut exec = first.instantiate().expect("the graph is valid");
        simulator.inject(Fault::on(Function::cuGraphExecUpdate_v2).returns(code));
        assert_eq!(
            exec.update(&second).expect_err("the driver fails").code(),
            Some(code)
        );
        let freed = || simulator.calls(Function::cuMemFree_v2);
        drop((first, second, first_buffer, second_buffer));
        assert_eq!(freed(), 0, "the driver may have updated a part");
        run(test, &mut exec);
        drop(exec);
        assert_eq!(freed(), 2);
    });
}

pub(crate) mod operations {
    use curium_driver::{InstantiateFlags, InstantiateOptions, LaunchConfig, MemoryOperation};

    use crate::graph::operations::{
        arguments, chain, copy, empty, fill, graph, with_child, with_copy, with_fill, with_kernel,
    };
    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
            let (config, arguments) = (LaunchConfig::new(1, 32), arguments(fixture, 4));
            // SAFETY: as above.
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
            assert!(
                exec.update(&with_fill(fixture)?.0)?.is_done(),
                "the graphs are equal"
            );
            made(exec)
        }),
        ("Graph::set_kernel", |fixture| {
            let (mut graph, node) = with_kernel(fixture)?;
            let (config, arguments) = (LaunchConfig::new(1, 32), arguments(fixture, 3));
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

    pub(crate) const SOLITARY: &[Operation] = &[
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
}
