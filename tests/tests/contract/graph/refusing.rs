//! Invalid operations on graphs, and their error messages.

use curium_driver::{
    ContextOptions, Event, EventFlags, Function, Graph, InstantiateOptions, LaunchAttributes,
    LaunchConfig, Module, StreamOptions,
};
use curium_sim::{Config, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_simulator, simulator_test};

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

/// A node of another graph is refused before any driver call.
#[driver_test]
fn foreign_node_makes_no_driver_call(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let kernel = fill(test)?;
    let mut target = graph(test);
    let mut other = graph(test);
    let foreign = add_fill(&mut other, &[], &buffer, 1)?;
    let node = add_kernel(&mut target, &[], &kernel, &buffer, 1);
    let words = "node 0 is in another graph";
    assert_refused(test, words, || target.add_empty(&[*foreign]));
    assert_refused(test, words, || target.add_dependency(*node, *foreign));
    assert_refused(test, words, || target.remove(*foreign));
    assert_refused(test, words, || target.kind(*foreign));
    assert_refused(test, words, || target.fill(foreign));
    let mut exec = target.instantiate()?;
    assert_refused(test, words, || exec.set_enabled(*foreign, false));
    // SAFETY: the driver rejects the node.
    assert_refused(test, words, || unsafe {
        exec.set_fill(foreign, super::fill_parameters(&buffer, 2))
    });
    Ok(())
}

/// A node that was removed is refused before any driver call.
#[driver_test]
fn removed_node_makes_no_driver_call(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_fill(&mut graph, &[], &buffer, 1)?;
    let mut exec = graph.instantiate()?;
    graph.remove(*node)?;
    assert_refused(test, "node 0 was removed", || graph.add_empty(&[*node]));
    assert_refused(test, "node 0 was removed", || graph.remove(*node));
    assert_refused(test, "node 0 was removed", || {
        exec.set_enabled(*node, false)
    });
    let again = add_fill(&mut graph, &[], &buffer, 1)?;
    assert_ne!(again, node, "every name is unique");
    Ok(())
}

/// A kernel node that was updated before is refused once it is removed or meant is another.
#[driver_test]
fn stale_updated_kernel_node_is_refused(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut target = graph(test);
    let mut other = graph(test);
    let node = add_kernel(&mut target, &[], &kernel, &buffer, 1);
    let foreign = add_kernel(&mut other, &[], &kernel, &buffer, 1);
    let arguments = || (buffer.as_pointer(), 2, LEN as u32);
    let mut exec = target.instantiate()?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { exec.set_kernel(&node, arguments()) }?;
    target.remove(*node)?;
    // SAFETY: the driver rejects the node.
    assert_refused(test, "node 0 was removed", || unsafe {
        exec.set_kernel(&node, arguments())
    });

    let mut exec = other.instantiate()?;
    drop(other);
    for _ in 0..2 {
        // SAFETY: the driver rejects the node.
        unsafe { exec.set_kernel(&foreign, arguments()) }?;
    }
    // SAFETY: the driver rejects the node.
    assert_refused(test, "another graph", || unsafe {
        exec.set_kernel(&node, arguments())
    });
    Ok(())
}

#[driver_test]
fn graph_within_a_node_is_destroyed_with_the_node(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let kernel = fill(test)?;
    let mut child = graph(test);
    let mut parent = graph(test);
    add_kernel(&mut child, &[], &kernel, &buffer, 1);
    let node = parent.add_child(&[], &child)?;
    let inner = parent.child(node)?;
    let [inner_node] = inner.nodes()?[..] else {
        panic!("there is one node")
    };
    assert_refused(test, "another graph", || parent.kind(inner_node));
    parent.remove(*node)?;
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
    parent.close()?;
    Ok(())
}

/// Handles of another context are refused before any driver call.
#[driver_test]
fn foreign_context_handles_make_no_driver_call(test: &TestDriver) -> TestResult {
    let other = test.device().create_context(ContextOptions::new())?;
    let stream = curium_driver::Stream::new(&other, StreamOptions::new())?;
    let event = Event::new(&other, EventFlags::empty())?;
    let module = Module::from_ptx(&other, kernels::FILL)?;
    let kernel = module.kernel::<Fill>("fill")?;
    let foreign = Graph::new(&other)?;
    let buffer = zeroes(test);
    let mut target = graph(test);
    let words = "context mismatch";
    assert_refused(test, words, || target.add_event_wait(&[], &event));
    assert_refused(test, words, || target.add_event_record(&[], &event));
    assert_refused(test, "different contexts", || {
        target.add_child(&[], &foreign)
    });
    let arguments = (buffer.as_pointer(), 1, LEN as u32);
    // SAFETY: the driver rejects the kernel.
    assert_refused(test, words, || unsafe {
        target.add_kernel(&[], &kernel, LaunchConfig::new(1, 64), arguments)
    });
    assert_refused(test, words, || {
        target.instantiate_with(InstantiateOptions::new().with_upload(&stream))
    });
    let mut exec = target.instantiate()?;
    assert_refused(test, words, || exec.launch(&stream));
    assert_refused(test, words, || exec.upload(&stream));
    assert_refused(test, words, || exec.update(&foreign));
    Ok(())
}

/// Handles of another driver are refused before it is called.
#[simulator_test]
fn foreign_driver_handles_make_no_driver_call(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut target = graph(test);
    let mut exec = target.instantiate()?;
    on_simulator(Config::new(), |other, _| -> TestResult {
        let stream = other.stream();
        let kernel = fill(other)?;
        let foreign = graph(other);
        let event = Event::new(&other.context(), EventFlags::empty())?;
        let words = "different drivers";
        assert_refused(test, words, || exec.launch(&stream));
        assert_refused(test, words, || exec.update(&foreign));
        assert_refused(test, words, || target.add_event_wait(&[], &event));
        assert_refused(test, words, || target.add_child(&[], &foreign));
        let arguments = (curium_driver::DevicePointer::from_raw(0), 1, 0);
        // SAFETY: the driver rejects the kernel.
        assert_refused(test, words, || unsafe {
            target.add_kernel(&[], &kernel, LaunchConfig::new(1, 1), arguments)
        });
        Ok(())
    })?;
    Ok(())
}

/// A circle is an error of instantiating that names a node.
#[driver_test]
fn cycle_fails_to_instantiate_and_names_a_node(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_kernel(&mut graph, &[*first], &kernel, &buffer, 2);
    graph.add_dependency(*second, *first)?;
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
    Ok(())
}

/// A kernel that cannot be launched is an error with the reason.
#[driver_test]
fn unlaunchable_kernel_reports_the_reason(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let arguments = (buffer.as_pointer(), 1, LEN as u32);
    // SAFETY: nothing is launched.
    let result = unsafe { graph.add_kernel(&[], &kernel, LaunchConfig::new(1, 4096), arguments) };
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
    assert!(test.simulator().is_none() || graph.nodes()?.is_empty());
    Ok(())
}

#[driver_test]
fn attributes_that_record_events_are_refused(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let attributes = LaunchAttributes::new().with_launch_completion_event(&event);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    // SAFETY: the graph is not launched.
    assert_refused(test, "programmatic edge", || unsafe {
        graph.set_kernel_attributes(&node, &attributes)
    });
    assert_eq!(graph.nodes()?, [*node]);
    Ok(())
}

#[driver_test]
fn graph_is_not_its_own_child(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut child = graph(test);
    let mut parent = graph(test);
    add_fill(&mut child, &[], &buffer, 1)?;
    let node = parent.add_child(&[], &child)?;
    let inner = parent.child(node)?;
    assert_refused(test, "parts of one graph", || parent.add_child(&[], &inner));
    Ok(())
}
