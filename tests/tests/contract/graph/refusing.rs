//! Invalid operations on graphs, and their error messages.

use curium_driver::{
    ContextOptions, Event, EventFlags, Function, Graph, InstantiateOptions, LaunchAttributes,
    LaunchConfig, Module, StreamOptions,
};
use curium_sim::Config;
use curium_sys::CUresult;
use curium_tests::{TestDriver, kernels, on_driver, on_simulator};

use super::{Fill, LEN, add_fill, add_kernel, fill, graph, zeroes};

/// Returns the number of driver calls so far.
fn calls(test: &TestDriver) -> Option<u64> {
    test.simulator().map(|simulator| {
        Function::all()
            .map(|function| simulator.calls(function))
            .sum()
    })
}

/// Asserts that `operation` returns an error with this text before the driver is called.
#[track_caller]
pub(super) fn assert_refused<T: std::fmt::Debug>(
    test: &TestDriver,
    words: &str,
    operation: impl FnOnce() -> curium_driver::Result<T>,
) {
    let before = calls(test);
    let error = operation().expect_err("it is refused");
    assert_eq!(calls(test), before, "{error}");
    assert!(
        error.to_string().contains(words) && error.code().is_none(),
        "{error}"
    );
}

#[test]
fn node_of_another_graph_is_refused_before_the_driver_is_called() {
    on_driver(|test| {
        let (buffer, kernel) = (zeroes(test), fill(test));
        let (mut own, mut other) = (graph(test), graph(test));
        let foreign = add_fill(&mut other, &[], &buffer, 1);
        let node = add_kernel(&mut own, &[], &kernel, &buffer, 1);
        let words = "node 0 is in another graph";
        assert_refused(test, words, || own.add_empty(&[*foreign]));
        assert_refused(test, words, || own.add_dependency(*node, *foreign));
        assert_refused(test, words, || own.remove(*foreign));
        assert_refused(test, words, || own.kind(*foreign));
        assert_refused(test, words, || own.fill(foreign));
        let mut exec = own.instantiate().expect("the graph is valid");
        assert_refused(test, words, || exec.set_enabled(*foreign, false));
        // SAFETY: the driver rejects the node.
        assert_refused(test, words, || unsafe {
            exec.set_fill(foreign, super::fill_of(&buffer, 2))
        });
    });
}

#[test]
fn node_that_was_removed_is_refused_before_the_driver_is_called() {
    on_driver(|test| {
        let buffer = zeroes(test);
        let mut graph = graph(test);
        let node = add_fill(&mut graph, &[], &buffer, 1);
        let mut exec = graph.instantiate().expect("the graph is valid");
        graph.remove(*node).expect("a fill can be removed");
        assert_refused(test, "node 0 was removed", || graph.add_empty(&[*node]));
        assert_refused(test, "node 0 was removed", || graph.remove(*node));
        assert_refused(test, "node 0 was removed", || {
            exec.set_enabled(*node, false)
        });
        let again = add_fill(&mut graph, &[], &buffer, 1);
        assert_ne!(again, node, "every name is unique");
    });
}

#[test]
fn kernel_node_that_was_updated_before_is_refused_once_it_is_removed_or_meant_is_another() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let (mut own, mut other) = (graph(test), graph(test));
        let node = add_kernel(&mut own, &[], &kernel, &buffer, 1);
        let foreign = add_kernel(&mut other, &[], &kernel, &buffer, 1);
        let arguments = || (buffer.as_pointer(), 2, LEN as u32);
        let mut exec = own.instantiate().expect("the graph is valid");
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel(&node, arguments()) }.expect("the node is there");
        own.remove(*node).expect("a kernel can be removed");
        // SAFETY: the driver rejects the node.
        assert_refused(test, "node 0 was removed", || unsafe {
            exec.set_kernel(&node, arguments())
        });

        let mut exec = other.instantiate().expect("the graph is valid");
        drop(other);
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { exec.set_kernel(&foreign, arguments()) }.expect("the node is there");
        }
        // SAFETY: the driver rejects the node.
        assert_refused(test, "another graph", || unsafe {
            exec.set_kernel(&node, arguments())
        });
    });
}

#[test]
fn graph_within_a_node_is_destroyed_with_the_node() {
    on_driver(|test| {
        let (buffer, kernel) = (zeroes(test), fill(test));
        let (mut child, mut parent) = (graph(test), graph(test));
        add_kernel(&mut child, &[], &kernel, &buffer, 1);
        let node = parent
            .add_child(&[], &child)
            .expect("the node can be added");
        let inner = parent.child(node).expect("the node is there");
        let [inner_node] = inner.nodes().expect("it can be read")[..] else {
            panic!("there is one node")
        };
        assert_refused(test, "another graph", || parent.kind(inner_node));
        parent.remove(*node).expect("a child can be removed");
        assert_refused(test, "was removed", || inner.nodes());
        assert_refused(test, "was removed", || inner.kind(inner_node));
        let (inner, error) = inner
            .close()
            .expect_err("a part is not closed")
            .into_parts();
        assert!(error.to_string().contains("part of another"), "{error}");
        let (parent, error) = parent
            .close()
            .expect_err("the handle of the partition exists")
            .into_parts();
        assert!(error.to_string().contains("still exists"), "{error}");
        drop(inner);
        parent.close().expect("nothing else owns it");
    });
}

#[test]
fn handles_of_another_context_are_refused_before_the_driver_is_called() {
    on_driver(|test| {
        let other = test
            .device()
            .create_context(ContextOptions::new())
            .expect("a context can be created");
        let stream = curium_driver::Stream::new(&other, StreamOptions::new())
            .expect("a stream can be created");
        let event = Event::new(&other, EventFlags::empty()).expect("an event can be created");
        let module = Module::from_ptx(&other, kernels::FILL).expect("the PTX is valid");
        let kernel = module
            .kernel::<Fill>("fill")
            .expect("the module has the kernel");
        let foreign = Graph::new(&other).expect("a graph can be created");
        let buffer = zeroes(test);
        let mut own = graph(test);
        let words = "context mismatch";
        assert_refused(test, words, || own.add_event_wait(&[], &event));
        assert_refused(test, words, || own.add_event_record(&[], &event));
        assert_refused(test, "different contexts", || own.add_child(&[], &foreign));
        let arguments = (buffer.as_pointer(), 1, LEN as u32);
        // SAFETY: the driver rejects the kernel.
        assert_refused(test, words, || unsafe {
            own.add_kernel(&[], &kernel, LaunchConfig::new(1, 64), arguments)
        });
        assert_refused(test, words, || {
            own.instantiate_with(InstantiateOptions::new().with_upload(&stream))
        });
        let mut exec = own.instantiate().expect("the graph is valid");
        assert_refused(test, words, || exec.launch(&stream));
        assert_refused(test, words, || exec.upload(&stream));
        assert_refused(test, words, || exec.update(&foreign));
    });
}

#[test]
fn handles_of_another_driver_are_refused_before_it_is_called() {
    on_simulator(Config::new(), |test, _| {
        let mut own = graph(test);
        let mut exec = own.instantiate().expect("the graph is valid");
        on_simulator(Config::new(), |other, _| {
            let (stream, kernel, foreign) = (other.stream(), fill(other), graph(other));
            let event =
                Event::new(&other.context(), EventFlags::empty()).expect("an event can be created");
            let words = "different drivers";
            assert_refused(test, words, || exec.launch(&stream));
            assert_refused(test, words, || exec.update(&foreign));
            assert_refused(test, words, || own.add_event_wait(&[], &event));
            assert_refused(test, words, || own.add_child(&[], &foreign));
            let arguments = (curium_driver::DevicePointer::from_raw(0), 1, 0);
            // SAFETY: the driver rejects the kernel.
            assert_refused(test, words, || unsafe {
                own.add_kernel(&[], &kernel, LaunchConfig::new(1, 1), arguments)
            });
        });
    });
}

#[test]
fn circle_is_an_error_of_instantiating_that_names_a_node() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let second = add_kernel(&mut graph, &[*first], &kernel, &buffer, 2);
        graph
            .add_dependency(*second, *first)
            .expect("a cycle is detected at instantiation");
        let error = graph
            .instantiate()
            .expect_err("the nodes depend on each other");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        let text = error.to_string();
        if test.simulator().is_some() {
            assert!(
                text.contains("kernel `fill`") && text.contains("cycle"),
                "{text}"
            );
        }
    });
}

#[test]
fn kernel_that_cannot_be_launched_is_an_error_with_the_reason() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let arguments = (buffer.as_pointer(), 1, LEN as u32);
        // SAFETY: nothing is launched.
        let result =
            unsafe { graph.add_kernel(&[], &kernel, LaunchConfig::new(1, 4096), arguments) };
        if let Err(error) = result {
            assert!(
                error.to_string().contains("4096") && error.to_string().contains("fill"),
                "{error}"
            );
        } else {
            assert!(
                test.simulator().is_none(),
                "the simulator returns an error immediately"
            );
            graph
                .instantiate()
                .expect_err("a block has at most 1024 threads");
        }
        assert!(test.simulator().is_none() || graph.nodes().expect("it can be read").is_empty());
    });
}

#[test]
fn attributes_that_record_events_are_refused() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)
            .expect("an event can be created");
        let attributes = LaunchAttributes::new().with_launch_completion_event(&event);
        let mut graph = graph(test);
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        // SAFETY: the graph is not launched.
        assert_refused(test, "programmatic edge", || unsafe {
            graph.set_kernel_attributes(&node, &attributes)
        });
        assert_eq!(graph.nodes().expect("it can be read"), [*node]);
    });
}

#[test]
fn graph_is_not_its_own_child() {
    on_driver(|test| {
        let buffer = zeroes(test);
        let (mut child, mut parent) = (graph(test), graph(test));
        add_fill(&mut child, &[], &buffer, 1);
        let node = parent
            .add_child(&[], &child)
            .expect("the node can be added");
        let inner = parent.child(node).expect("the node is there");
        assert_refused(test, "parts of one graph", || parent.add_child(&[], &inner));
    });
}
