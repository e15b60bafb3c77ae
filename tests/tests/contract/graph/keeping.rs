//! The lifetime of objects that graphs and executable graphs keep alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Event, EventFlags, Function, Graph, Library, UserObject};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, kernels, on_simulator};

use super::{LEN, add_fill, add_kernel, fill, graph, run, words, zeroes};

/// Waits until only the test holds the value: a thread of the driver may drop it a little later.
pub(crate) fn await_last<T>(value: &Arc<T>) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Arc::strong_count(value) > 1 && Instant::now() < deadline {
        thread::yield_now();
    }
    assert_eq!(Arc::strong_count(value), 1, "the value is still referenced");
}

#[driver_test]
fn replay_needs_nothing_but_the_executable(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let count = Arc::new(AtomicU32::new(0));
    let mut exec = {
        let context = test.context();
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let kernel = library.kernel("fill")?;
        let event = Event::new(&context, EventFlags::empty())?;
        let mut graph = Graph::new(&context)?;
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 7);
        let recorded = graph.add_event_record(&[*node], &event)?;
        let counter = Arc::clone(&count);
        let counted = graph.add_host(&[*recorded], move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        counted?;
        graph.instantiate()?
    };
    for launches in 1..=3 {
        run(test, &mut exec)?;
        assert_eq!(
            (words(&buffer), count.load(Ordering::Relaxed)),
            (vec![7; LEN], launches)
        );
    }
    drop(exec);
    await_last(&count);
    Ok(())
}

#[driver_test]
fn executable_keeps_node_changes(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let [mut first, mut second] = [(); 2].map(|()| graph(test));
    let node = add_kernel(&mut first, &[], &kernel, &buffer, 1);
    let mut exec = first.instantiate()?;
    {
        let other = fill(test)?;
        let arguments = (buffer.as_pointer(), 2, LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { exec.set_kernel_with(&node, &other, node.config(), arguments) }?;
    }
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [2; LEN]);
    add_kernel(&mut second, &[], &fill(test)?, &buffer, 3);
    assert!(exec.update(&second)?.is_done());
    drop((first, second, node, kernel));
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [3; LEN]);
    Ok(())
}

/// A kernel of a node that was removed stays for the executable.
#[driver_test]
fn executable_keeps_a_removed_nodes_kernel(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let node = add_kernel(&mut graph, &[], &fill(test)?, &buffer, 4);
    let mut exec = graph.instantiate()?;
    graph.remove(*node)?;
    drop(node);
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [4; LEN]);
    Ok(())
}

/// A child keeps its kernel alive after the handle is dropped.
#[driver_test]
fn child_keeps_its_kernel_alive(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let mut parent = graph(test);
    {
        let mut child = graph(test);
        add_kernel(&mut child, &[], &fill(test)?, &buffer, 5);
        parent.add_child(&[], &child)?;
    }
    let mut exec = parent.try_clone().and_then(|clone| clone.instantiate())?;
    drop(parent);
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [5; LEN]);
    Ok(())
}

/// An executable that is dropped while it runs ends its launch.
#[driver_test]
fn running_executable_is_dropped_after_its_launch(test: &TestDriver) -> TestResult {
    let buffer = zeroes(test);
    let stream = test.stream();
    let count = Arc::new(AtomicU32::new(0));
    let mut graph = graph(test);
    let filled = add_fill(&mut graph, &[], &buffer, 6)?;
    let counter = Arc::clone(&count);
    let counted = graph.add_host(&[*filled], move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    counted?;
    let gate = Gate::on(&stream);
    let mut exec = graph.instantiate()?;
    exec.launch(&stream)?;
    drop((exec, graph));
    gate.open();
    stream.synchronize()?;
    assert_eq!(
        (words(&buffer), count.load(Ordering::Relaxed)),
        (vec![6; LEN], 1)
    );
    await_last(&count);
    Ok(())
}

/// A closure lives until its node and every executable are dropped.
#[driver_test]
fn closure_lives_until_its_last_owner_drops(test: &TestDriver) -> TestResult {
    let [first, second] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let mut graph = graph(test);
    let counter = Arc::clone(&first);
    let node = graph.add_host(&[], move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let node = node?;
    let mut exec = graph.instantiate()?;
    let counter = Arc::clone(&second);
    graph.set_host(node, move || {
        counter.fetch_add(1, Ordering::Relaxed);
    })?;
    run(test, &mut exec)?;
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(
        [&first, &second].map(|count| count.load(Ordering::Relaxed)),
        [1, 1]
    );
    drop(exec);
    await_last(&first);
    graph.remove(*node)?;
    await_last(&second);
    Ok(())
}

#[driver_test]
fn user_object_ends_with_the_last_that_retains_it(test: &TestDriver) -> TestResult {
    let value = Arc::new(());
    let mut graph = graph(test);
    let object = UserObject::new(test.driver(), Arc::clone(&value))?;
    graph.retain_object(&object)?;
    graph.retain_object(&object)?;
    graph.release_object(&object)?;
    let clone = graph.try_clone()?;
    let exec = graph.instantiate()?;
    drop((object, graph));
    assert_eq!(Arc::strong_count(&value), 2);
    drop(clone);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(exec);
    await_last(&value);
    Ok(())
}

/// An object that a graph does not retain cannot be released.
#[driver_test]
fn unretained_user_object_is_not_released(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let value = Arc::new(());
    let object = UserObject::new(test.driver(), Arc::clone(&value))?;
    assert_not_retained(&mut graph, &object);
    graph.retain_object(&object)?;
    let mut clone = graph.try_clone()?;
    for graph in [&mut graph, &mut clone] {
        graph.release_object(&object)?;
        assert_not_retained(graph, &object);
    }
    assert_eq!(Arc::strong_count(&value), 2, "the handle keeps it");
    drop(object);
    await_last(&value);
    Ok(())
}

/// Asserts that releasing the object is an error before the driver is called, which would accept
/// it.
#[track_caller]
fn assert_not_retained(graph: &mut Graph, object: &UserObject) {
    let error = graph
        .release_object(object)
        .expect_err("nothing is retained");
    assert!(
        error.function().is_none() && error.to_string().contains("does not retain"),
        "{error}"
    );
}

/// A closure that is set in an executable lives as long as launches that call it.
#[driver_test]
fn executable_closure_outlives_its_launches(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let counts = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let closure = |index: usize| {
        let count = Arc::clone(&counts[index]);
        move || {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut graph = graph(test);
    let node = graph.add_host(&[], closure(0))?;
    let mut exec = graph.instantiate()?;
    exec.set_host(node, closure(1))?;
    let gate = Gate::on(&stream);
    exec.launch(&stream)?;
    exec.set_host(node, closure(2))?;
    exec.launch(&stream)?;
    drop(exec);
    assert_eq!(
        [1, 2].map(|index| Arc::strong_count(&counts[index])),
        [2, 2],
        "the launches are pending"
    );
    gate.open();
    stream.synchronize()?;
    assert_eq!(
        counts.each_ref().map(|count| count.load(Ordering::Relaxed)),
        [0, 1, 1]
    );
    counts[1..].iter().for_each(await_last);
    drop(graph);
    await_last(&counts[0]);
    Ok(())
}

/// A closure of an executable outlives launches whose end is not known.
#[test]
fn closure_outlives_its_launches() -> TestResult {
    const CODE: CUresult = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;
    let faults: [&[Fault]; 2] = [
        // The end of the launch can be queried at a later attempt only.
        &[Fault::on(Function::cuEventQuery).returns(CODE)],
        // It cannot be recorded, and not be waited for.
        &[
            Fault::on(Function::cuEventRecord).returns(CODE),
            Fault::on(Function::cuStreamSynchronize).returns(CODE),
        ],
    ];
    for faults in faults {
        on_simulator(Config::new(), |test, simulator| -> TestResult {
            let stream = test.stream();
            let is_called = Arc::new(AtomicU32::new(0));
            let mut graph = graph(test);
            let node = graph.add_host(&[], || {})?;
            let mut exec = graph.instantiate()?;
            let closure = Dropped(Arc::clone(&is_called));
            exec.set_host(node, move || closure.call())?;
            let gate = Gate::on(&stream);
            faults.iter().for_each(|fault| simulator.inject(*fault));
            let launched = exec.launch(&stream);
            assert_eq!(launched.is_err(), faults.len() == 2);
            exec.set_host(node, || {})?;
            thread::sleep(Duration::from_millis(50));
            assert_eq!(
                is_called.load(Ordering::Relaxed),
                0,
                "the closure lives until the launch has called it"
            );
            gate.open();
            stream.synchronize()?;
            if faults.len() == 1 {
                await_last(&is_called);
            }
            assert_eq!(
                is_called.load(Ordering::Relaxed) & 1,
                1,
                "the launch has called the closure"
            );
            simulator.clear_faults();
            Ok(())
        })?;
    }
    Ok(())
}

/// Counts 1 when it is called, and 2 when it is dropped.
struct Dropped(Arc<AtomicU32>);

impl Dropped {
    fn call(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(2, Ordering::Relaxed);
    }
}

/// A update retains the closures of the graph and releases the previous ones.
#[driver_test]
fn update_replaces_retained_closures(test: &TestDriver) -> TestResult {
    let counts = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let [first, second, third] = counts.each_ref().map(|count| {
        let mut graph = graph(test);
        let count = Arc::clone(count);
        let node = graph.add_host(&[], move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        node.expect("failed to add the node");
        graph
    });
    let mut exec = first.instantiate()?;
    assert!(exec.update(&second)?.is_done());
    drop(second);
    run(test, &mut exec)?;
    assert!(exec.update(&third)?.is_done());
    drop(third);
    await_last(&counts[1]);
    run(test, &mut exec)?;
    assert_eq!(
        counts.each_ref().map(|count| count.load(Ordering::Relaxed)),
        [0, 1, 1]
    );
    drop((exec, first));
    counts.iter().for_each(await_last);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::UserObject;

    use crate::graph::operations::graph;
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
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
        ("Graph::retain_object", |fixture| {
            let mut graph = graph(fixture)?;
            graph.retain_object(&UserObject::new(&fixture.driver, 3_u32)?)?;
            made(graph)
        }),
        ("Graph::release_object", |fixture| {
            let mut graph = graph(fixture)?;
            let object = UserObject::new(&fixture.driver, 3_u32)?;
            graph.retain_object(&object)?;
            graph.release_object(&object)?;
            made(graph)
        }),
        ("UserObject::new", |fixture| {
            made(UserObject::new(&fixture.driver, 3_u32)?)
        }),
        (
            "UserObject::retain_raw and UserObject::release_raw",
            |fixture| {
                let object = UserObject::new(&fixture.driver, 3_u32)?;
                object.retain_raw(2)?;
                // SAFETY: two references were added, and no other code relies on them.
                unsafe { object.release_raw(2) }?;
                made(object)
            },
        ),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("GraphExec::set_host", |fixture| {
        let mut graph = graph(fixture)?;
        let node = graph.add_host(&[], || {})?;
        let mut exec = graph.instantiate()?;
        exec.set_host(node, || {})?;
        exec.launch(&fixture.stream)?;
        made(fixture.stream.synchronize()?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
