//! The nodes and edges of graphs, and queries about them.

use std::ptr;

use curium_driver::{
    CudaVersion, DotFlags, EdgeData, EdgeKind, Graph, LaunchConfig, Module, NodeKind, call,
};
use curium_sim::{Config, Simulator};
use curium_sys::{CUgraphEdgeData, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

use super::{LEN, add_fill, add_kernel, fill, graph, run, words, zeroes};

#[driver_test]
fn edges_return_node_dependencies(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let first = graph.add_empty(&[])?;
    let second = graph.add_empty(&[first])?;
    let third = graph.add_empty(&[first, second])?;
    assert_eq!(graph.nodes()?.len(), 3);
    assert_eq!(graph.roots()?, [first]);
    let plain = EdgeData::new();
    assert_eq!(graph.dependencies(second)?, [(first, plain)]);
    assert_eq!(graph.dependents(second)?, [(third, plain)]);
    assert_eq!(graph.dependencies(first)?, []);
    let mut edges: Vec<_> = graph
        .edges()?
        .iter()
        .map(|edge| (edge.from, edge.to))
        .collect();
    edges.sort_by_key(|(from, to)| (from.to_string(), to.to_string()));
    assert_eq!(edges, [(first, second), (first, third), (second, third)]);
    graph.remove_edge(first, third, plain)?;
    let error = graph
        .remove_edge(first, third, plain)
        .expect_err("the edge is removed");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(error.to_string().contains("node 2 after node 0"), "{error}");
    graph.add_dependency(first, third)?;
    graph
        .add_dependency(first, third)
        .expect_err("the edge exists");
    graph.remove(second)?;
    assert_eq!(graph.edges()?.len(), 1);
    Ok(())
}

#[driver_test]
fn empty_graph_has_nothing_and_can_be_launched(test: &TestDriver) -> TestResult {
    let graph = graph(test);
    assert!(graph.nodes()?.is_empty() && graph.edges()?.is_empty());
    assert!(graph.roots()?.is_empty());
    run(test, &mut graph.instantiate()?)?;
    Ok(())
}

/// Programmatic edge between kernels is returned as added.
#[driver_test]
fn programmatic_edge_is_returned_as_added(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let other = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_kernel(&mut graph, &[], &kernel, &other, 2);
    // SAFETY: the kernels use different memory.
    unsafe { graph.add_edge(*first, *second, EdgeData::programmatic()) }?;
    let [(from, data)] = graph.dependencies(*second)?[..] else {
        panic!("there is one")
    };
    assert_eq!(
        (from, data.kind, data.from_port),
        (*first, EdgeKind::Programmatic, 1)
    );
    assert_eq!(graph.edges()?[0].data, EdgeData::programmatic());
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(
        (words(&buffer), words(&other)),
        (vec![1; LEN], vec![2; LEN])
    );
    Ok(())
}

/// An edge is removed by its nodes: the driver ignores the data, since there is one edge at most
/// between two nodes.
#[driver_test]
fn edge_is_removed_by_its_nodes(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_kernel(&mut graph, &[], &kernel, &buffer, 2);
    for data in [
        EdgeData::new(),
        EdgeData::launch_order(),
        EdgeData::programmatic(),
    ] {
        // SAFETY: the graph is not launched.
        unsafe { graph.add_edge(*first, *second, EdgeData::programmatic()) }?;
        // SAFETY: as above.
        let error = unsafe { graph.add_edge(*first, *second, EdgeData::launch_order()) }
            .expect_err("there is an edge already");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        graph.remove_edge(*first, *second, data)?;
        assert!(graph.edges()?.is_empty());
    }
    Ok(())
}

/// Nodes can be listed without the data of their edges only if that loses nothing.
#[driver_test]
fn edges_with_data_are_not_listed_without_it(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_kernel(&mut graph, &[], &kernel, &buffer, 2);
    // SAFETY: the graph is not launched.
    unsafe { graph.add_edge(*first, *second, EdgeData::programmatic()) }?;
    let raw = graph.as_raw()?;
    let raw_first = graph.as_raw_node(*first)?;
    let raw_second = graph.as_raw_node(*second)?;
    let driver = test.driver();
    let mut count = 1;
    let mut from = ptr::null_mut();
    let mut to = ptr::null_mut();
    let no_data = ptr::null_mut();
    // SAFETY: the graph is live, and the lists have room for one element.
    let edges = unsafe {
        call!(
            driver,
            cuGraphGetEdges_v2(raw, &raw mut from, &raw mut to, no_data, &raw mut count)
        )
    };
    // SAFETY: the node is live, and the list has room for one element.
    let dependencies = unsafe {
        call!(
            driver,
            cuGraphNodeGetDependencies_v2(raw_second, &raw mut from, no_data, &raw mut count)
        )
    };
    // SAFETY: the node is live, and the list has room for one element.
    let dependents = unsafe {
        call!(
            driver,
            cuGraphNodeGetDependentNodes_v2(raw_first, &raw mut to, no_data, &raw mut count)
        )
    };
    for result in [edges, dependencies, dependents] {
        let error = result.expect_err("the data would be lost");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LOSSY_QUERY));
    }
    let mut data = CUgraphEdgeData::default();
    // SAFETY: the graph is live, and the lists have room for one element.
    unsafe {
        call!(
            driver,
            cuGraphGetEdges_v2(
                raw,
                &raw mut from,
                &raw mut to,
                &raw mut data,
                &raw mut count
            )
        )
    }?;
    assert_eq!((from, to, count), (raw_first, raw_second, 1));
    assert_eq!((data.from_port, data.type_), (1, 1));
    let no_nodes = ptr::null_mut();
    // SAFETY: the graph is live, and the lists have room for one element.
    let error = unsafe {
        call!(
            driver,
            cuGraphGetEdges_v2(raw, no_nodes, no_nodes, &raw mut data, &raw mut count)
        )
    }
    .expect_err("the data would have no nodes");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    // SAFETY: the graph is live. Without lists, the function only counts.
    unsafe {
        call!(
            driver,
            cuGraphGetEdges_v2(raw, no_nodes, no_nodes, no_data, &raw mut count)
        )
    }?;
    assert_eq!(count, 1);
    Ok(())
}

#[driver_test]
fn clone_nodes_are_found_by_their_originals(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let (mut graph, stranger) = (graph(test), graph(test));
    let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let mut clone = graph.try_clone()?;
    let twin = clone.find(&graph, &node)?;
    assert_ne!(*twin, *node);
    let arguments = (buffer.as_pointer(), 2, LEN as u32);
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { clone.set_kernel(&twin, &kernel, twin.config(), arguments) }?;
    run(test, &mut clone.instantiate()?)?;
    assert_eq!(words(&buffer), [2; LEN]);
    run(test, &mut graph.instantiate()?)?;
    assert_eq!(words(&buffer), [1; LEN], "the original is unchanged");
    stranger
        .find(&graph, &node)
        .expect_err("this is not a clone");
    let later = add_fill(&mut graph, &[], &buffer, 3)?;
    clone
        .find(&graph, &later)
        .expect_err("the node was added later");
    Ok(())
}

#[driver_test]
fn nodes_return_their_kind(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let nodes = [
        (
            *add_kernel(&mut graph, &[], &kernel, &buffer, 1),
            NodeKind::Kernel,
        ),
        (*add_fill(&mut graph, &[], &buffer, 1)?, NodeKind::Fill),
        (graph.add_empty(&[])?, NodeKind::Empty),
        (*graph.add_host(&[], || {})?, NodeKind::Host),
        (*graph.add_allocation(&[], 64)?, NodeKind::Allocation),
    ];
    for (node, kind) in nodes {
        assert_eq!(graph.kind(node)?, kind);
    }
    assert_eq!(NodeKind::EventWait.to_string(), "event wait");
    Ok(())
}

#[driver_test]
fn picture_in_dot_has_every_node_and_edge(test: &TestDriver) -> TestResult {
    let mut graph = graph(test);
    let first = graph.add_empty(&[])?;
    graph.add_empty(&[first])?;
    let path = std::env::temp_dir().join(format!("curium-graph-{}.dot", std::process::id()));
    graph.write_dot(&path, DotFlags::VERBOSE)?;
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    assert!(
        text.starts_with("digraph") && text.matches("->").count() == 1,
        "{text}"
    );
    let nowhere = std::path::Path::new("/nonexistent/folder/graph.dot");
    let error = graph
        .write_dot(nowhere, DotFlags::empty())
        .expect_err("there is no such folder");
    assert!(
        error.to_string().contains("/nonexistent/folder/graph.dot"),
        "{error}"
    );
    graph
        .write_dot("a\0b", DotFlags::empty())
        .expect_err("the path has no NUL");
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN))]
fn numbers_distinguish_graphs_and_nodes(test: &TestDriver, _: &Simulator) -> TestResult {
    let (mut graph, other) = (graph(test), graph(test));
    let first = graph.add_empty(&[])?;
    let second = graph.add_empty(&[])?;
    assert_ne!(graph.id()?, other.id()?);
    assert_ne!(graph.local_id(first)?, graph.local_id(second)?);
    assert_ne!(graph.tools_id(first)?, graph.tools_id(second)?);
    assert!(graph.contains(first)?);
    let execs = [(); 2].map(|()| graph.instantiate().expect("the graph is valid"));
    assert_ne!(execs[0].id()?, execs[1].id()?);
    Ok(())
}

/// A number of a graph is a missing function before 13.1.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 0)))]
fn graph_id_requires_13_1(test: &TestDriver, _: &Simulator) {
    let error = graph(test).id().expect_err("the driver is too old");
    assert!(matches!(error, curium_driver::Error::Missing(_)), "{error}");
}

/// Drivers before 12 build and launch graphs of module kernels.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(11, 8)))]
fn old_drivers_launch_graphs_with_module_kernels(test: &TestDriver, _: &Simulator) -> TestResult {
    let buffer = zeroes(test);
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    let kernel = module.kernel::<super::Fill>("fill")?;
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    let second = add_fill(&mut graph, &[*first], &buffer, 2)?;
    assert_eq!(graph.dependencies(*second)?, [(*first, EdgeData::new())]);
    let mut exec = graph.instantiate()?;
    exec.set_enabled(*second, false)?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { exec.set_kernel(&first, (buffer.as_pointer(), 3, LEN as u32)) }?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer), [3; LEN]);
    assert!(exec.update(&graph)?.is_done());
    run(test, &mut exec)?;
    assert_eq!(graph.edges()?.len(), 1);
    graph.add_dependency(*second, *first)?;
    graph
        .instantiate()
        .expect_err("the nodes depend on each other");
    Ok(())
}

#[driver_test]
fn picture_in_svg_has_every_node_and_names_kernels(test: &TestDriver) -> TestResult {
    let kernel = fill(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
    add_fill(&mut graph, &[*first], &buffer, 2)?;
    let svg = graph.to_svg()?;
    assert!(
        svg.starts_with("<svg") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(
        (svg.matches("<text").count(), svg.matches("<path").count()),
        (2, 1),
        "{svg}"
    );
    assert!(
        svg.contains("node 0: fill") && svg.contains("node 1: fill"),
        "{svg}"
    );
    Ok(())
}

/// Returns the DOT text of a captured graph with a kernel of a library and one of a module.
fn captured_picture(test: &TestDriver) -> TestResult<String> {
    let library = fill(test)?;
    let module = Module::from_ptx(&test.context(), kernels::FILL)?;
    let module = module.kernel::<(&mut [u32], u32)>("fill_index")?;
    let mut buffer = zeroes(test);
    let config = LaunchConfig::for_elements(LEN);
    let graph = Graph::capture(&test.context(), |scope| {
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { library.launch(scope, config, (&mut buffer, 1, LEN as u32)) }?;
        // SAFETY: `fill_index` writes exactly the words of the buffer too.
        unsafe { module.launch(scope, config, (&mut buffer, LEN as u32)) }
    });
    Ok(graph?.to_svg()?)
}

#[driver_test]
fn captured_graph_drawing_names_its_kernels(test: &TestDriver) -> TestResult {
    let svg = captured_picture(test)?;
    let called = |name: &str| svg.matches(&format!(": {name}<")).count();
    assert_eq!(
        (called("fill_index"), called("fill"), called("kernel")),
        (1, 1, 0),
        "{svg}"
    );
    Ok(())
}

/// A picture of a captured graph is drawn without kernel names.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 2)))]
fn captured_graph_is_drawn_without_kernel_names(test: &TestDriver, _: &Simulator) -> TestResult {
    let svg = captured_picture(test)?;
    assert_eq!(svg.matches(": kernel<").count(), 2, "{svg}");
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{DotFlags, EdgeData, Graph, LaunchConfig};

    use crate::graph::operations::{chain, with_kernel};
    use crate::operations::{Fixture, LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::try_clone", |fixture| {
            made(chain(fixture)?.0.try_clone()?)
        }),
        ("Graph::find", |fixture| {
            let (graph, node) = with_kernel(fixture)?;
            let clone = graph.try_clone()?;
            made((clone.find(&graph, &node)?, clone, graph))
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
            let Fixture {
                context,
                fill,
                buffer,
                ..
            } = fixture;
            let graph = Graph::capture(context, |scope| {
                // SAFETY: `fill` writes exactly the words of the buffer.
                unsafe {
                    fill.launch(
                        scope,
                        LaunchConfig::for_elements(LEN),
                        (&mut *buffer, 6, LEN as u32),
                    )
                }
            })?;
            made(graph.to_svg()?)
        }),
        ("Graph::write_dot", |fixture| {
            let path =
                std::env::temp_dir().join(format!("curium-dot-{:?}", std::thread::current().id()));
            let result = chain(fixture)?.0.write_dot(&path, DotFlags::VERBOSE);
            // There is no file if the operation failed.
            let _ = std::fs::remove_file(path);
            made(result?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("Graph::id", |fixture| made(chain(fixture)?.0.id()?)),
        ("Graph::local_id", |fixture| {
            let (graph, [first, _]) = chain(fixture)?;
            made(graph.local_id(first)?)
        }),
        ("Graph::tools_id", |fixture| {
            let (graph, [first, _]) = chain(fixture)?;
            made(graph.tools_id(first)?)
        }),
        ("Graph::contains", |fixture| {
            let (graph, [first, _]) = chain(fixture)?;
            made(graph.contains(first)?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
