//! The nodes and edges of graphs, and queries about them.

use curium_driver::{
    CudaVersion, DotFlags, EdgeData, EdgeKind, Graph, LaunchConfig, Module, NodeKind,
};
use curium_sim::Config;
use curium_sys::CUresult;
use curium_tests::{TestDriver, kernels, on_driver, on_simulator};

use super::{LEN, add_fill, add_kernel, fill, graph, run, words, zeroes};

#[test]
fn edges_return_the_dependencies_of_nodes() {
    on_driver(|test| {
        let mut graph = graph(test);
        let first = graph.add_empty(&[]).expect("the node can be added");
        let second = graph.add_empty(&[first]).expect("the node can be added");
        let third = graph
            .add_empty(&[first, second])
            .expect("the node can be added");
        assert_eq!(graph.nodes().expect("it can be read").len(), 3);
        assert_eq!(graph.roots().expect("it can be read"), [first]);
        let plain = EdgeData::new();
        assert_eq!(
            graph.dependencies(second).expect("it can be read"),
            [(first, plain)]
        );
        assert_eq!(
            graph.dependents(second).expect("it can be read"),
            [(third, plain)]
        );
        assert_eq!(graph.dependencies(first).expect("it can be read"), []);
        let mut edges: Vec<_> = graph
            .edges()
            .expect("it can be read")
            .iter()
            .map(|edge| (edge.from, edge.to))
            .collect();
        edges.sort_by_key(|(from, to)| (from.to_string(), to.to_string()));
        assert_eq!(edges, [(first, second), (first, third), (second, third)]);
        graph
            .remove_edge(first, third, plain)
            .expect("the edge exists");
        let error = graph
            .remove_edge(first, third, plain)
            .expect_err("the edge is removed");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(error.to_string().contains("node 2 after node 0"), "{error}");
        graph
            .add_dependency(first, third)
            .expect("the edge can be added again");
        graph
            .add_dependency(first, third)
            .expect_err("the edge exists");
        graph.remove(second).expect("an empty node can be removed");
        assert_eq!(graph.edges().expect("it can be read").len(), 1);
    });
}

#[test]
fn empty_graph_has_nothing_and_can_be_launched() {
    on_driver(|test| {
        let graph = graph(test);
        assert!(
            graph.nodes().expect("it can be read").is_empty()
                && graph.edges().expect("it can be read").is_empty()
        );
        assert!(graph.roots().expect("it can be read").is_empty());
        run(
            test,
            &mut graph.instantiate().expect("an empty graph is valid"),
        );
    });
}

#[test]
fn programmatic_edge_between_kernels_is_returned_as_added() {
    on_driver(|test| {
        let (kernel, buffer, other) = (fill(test), zeroes(test), zeroes(test));
        let mut graph = graph(test);
        let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let second = add_kernel(&mut graph, &[], &kernel, &other, 2);
        // SAFETY: the kernels use different memory.
        unsafe { graph.add_edge(*first, *second, EdgeData::programmatic()) }
            .expect("kernels can wait for this event");
        let [(from, data)] = graph.dependencies(*second).expect("it can be read")[..] else {
            panic!("there is one")
        };
        assert_eq!(
            (from, data.kind, data.from_port),
            (*first, EdgeKind::Programmatic, 1)
        );
        assert_eq!(
            graph.edges().expect("it can be read")[0].data,
            EdgeData::programmatic()
        );
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(
            (words(&buffer), words(&other)),
            (vec![1; LEN], vec![2; LEN])
        );
    });
}

#[test]
fn nodes_of_a_clone_are_found_by_their_originals() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let (mut graph, stranger) = (graph(test), graph(test));
        let node = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        let mut clone = graph.try_clone().expect("it can be cloned");
        let found = clone.find(&graph, &node).expect("the node has a copy");
        assert_ne!(*found, *node);
        let arguments = (buffer.as_pointer(), 2, LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { clone.set_kernel(&found, &kernel, found.config(), arguments) }
            .expect("the node is there");
        run(test, &mut clone.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [2; LEN]);
        run(test, &mut graph.instantiate().expect("the graph is valid"));
        assert_eq!(words(&buffer), [1; LEN], "the original is unchanged");
        stranger
            .find(&graph, &node)
            .expect_err("this is not a clone");
        let later = add_fill(&mut graph, &[], &buffer, 3);
        clone
            .find(&graph, &later)
            .expect_err("the node was added later");
    });
}

#[test]
fn nodes_return_their_kind() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let nodes = [
            (
                *add_kernel(&mut graph, &[], &kernel, &buffer, 1),
                NodeKind::Kernel,
            ),
            (*add_fill(&mut graph, &[], &buffer, 1), NodeKind::Fill),
            (
                graph.add_empty(&[]).expect("the node can be added"),
                NodeKind::Empty,
            ),
            (
                *graph.add_host(&[], || {}).expect("the node can be added"),
                NodeKind::Host,
            ),
            (
                *graph.add_allocation(&[], 64).expect("memory suffices"),
                NodeKind::Allocation,
            ),
        ];
        for (node, kind) in nodes {
            assert_eq!(graph.kind(node).expect("the node is there"), kind);
        }
        assert_eq!(NodeKind::EventWait.to_string(), "event wait");
    });
}

#[test]
fn picture_in_dot_has_every_node_and_edge() {
    on_driver(|test| {
        let mut graph = graph(test);
        let first = graph.add_empty(&[]).expect("the node can be added");
        graph.add_empty(&[first]).expect("the node can be added");
        let path = std::env::temp_dir().join(format!("curium-graph-{}.dot", std::process::id()));
        graph
            .write_dot(&path, DotFlags::VERBOSE)
            .expect("the folder can be written to");
        let text = std::fs::read_to_string(&path).expect("the file is there");
        std::fs::remove_file(&path).expect("the file can be removed");
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
    });
}

#[test]
fn numbers_distinguish_graphs_and_nodes() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 5)),
        |test, _| {
            let (mut graph, other) = (graph(test), graph(test));
            let first = graph.add_empty(&[]).expect("the node can be added");
            let second = graph.add_empty(&[]).expect("the node can be added");
            assert_ne!(
                graph.id().expect("it can be queried"),
                other.id().expect("it can be queried")
            );
            assert_ne!(
                graph.local_id(first).expect("it can be queried"),
                graph.local_id(second).expect("it can be queried")
            );
            assert_ne!(
                graph.tools_id(first).expect("it can be queried"),
                graph.tools_id(second).expect("it can be queried")
            );
            assert!(graph.contains(first).expect("it can be queried"));
            let execs = [(); 2].map(|()| graph.instantiate().expect("the graph is valid"));
            assert_ne!(
                execs[0].id().expect("it can be queried"),
                execs[1].id().expect("it can be queried")
            );
        },
    );
}

#[test]
fn number_of_a_graph_is_a_missing_function_before_13_1() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| {
            let error = graph(test).id().expect_err("the driver is too old");
            assert!(matches!(error, curium_driver::Error::Missing(_)), "{error}");
        },
    );
}

#[test]
fn drivers_before_12_build_and_launch_graphs_of_module_kernels() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(11, 8)),
        |test, _| {
            let buffer = zeroes(test);
            let module = Module::from_ptx(&test.context(), kernels::FILL);
            let module = module.expect("the PTX is valid");
            let kernel = module
                .kernel::<super::Fill>("fill")
                .expect("the module has the kernel");
            let mut graph = graph(test);
            let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
            let second = add_fill(&mut graph, &[*first], &buffer, 2);
            assert_eq!(
                graph.dependencies(*second).expect("it can be read"),
                [(*first, EdgeData::new())]
            );
            let mut exec = graph.instantiate().expect("the graph is valid");
            exec.set_enabled(*second, false)
                .expect("a fill can be disabled");
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { exec.set_kernel(&first, (buffer.as_pointer(), 3, LEN as u32)) }
                .expect("the arguments fit");
            run(test, &mut exec);
            assert_eq!(words(&buffer), [3; LEN]);
            assert!(exec.update(&graph).expect("it can be updated").is_done());
            run(test, &mut exec);
            assert_eq!(graph.edges().expect("it can be read").len(), 1);
            graph
                .add_dependency(*second, *first)
                .expect("a cycle is detected at instantiation");
            graph
                .instantiate()
                .expect_err("the nodes depend on each other");
        },
    );
}

#[test]
fn picture_in_svg_has_every_node_and_names_kernels() {
    on_driver(|test| {
        let (kernel, buffer) = (fill(test), zeroes(test));
        let mut graph = graph(test);
        let first = add_kernel(&mut graph, &[], &kernel, &buffer, 1);
        add_fill(&mut graph, &[*first], &buffer, 2);
        let svg = graph.to_svg().expect("it can be read");
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
    });
}

/// Returns the DOT text of a captured graph with a kernel of a library and one of a module.
fn captured_picture(test: &TestDriver) -> String {
    let library = fill(test);
    let module = Module::from_ptx(&test.context(), kernels::FILL).expect("the PTX is valid");
    let module = module
        .kernel::<(&mut [u32], u32)>("fill_index")
        .expect("the module has the kernel");
    let (mut buffer, config) = (zeroes(test), LaunchConfig::for_elements(LEN as u32));
    let graph = Graph::capture(&test.context(), |scope| {
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { library.launch(scope, config, (&mut buffer, 1, LEN as u32)) }?;
        // SAFETY: `fill_index` writes exactly the words of the buffer too.
        unsafe { module.launch(scope, config, (&mut buffer, LEN as u32)) }
    });
    graph
        .expect("the work can be captured")
        .to_svg()
        .expect("it can be read")
}

#[test]
fn picture_of_a_captured_graph_names_its_kernels() {
    on_driver(|test| {
        let svg = captured_picture(test);
        let called = |name: &str| svg.matches(&format!(": {name}<")).count();
        assert_eq!(
            (called("fill_index"), called("fill"), called("kernel")),
            (1, 1, 0),
            "{svg}"
        );
    });
}

#[test]
fn picture_of_a_captured_graph_is_drawn_without_kernel_names() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 2)),
        |test, _| {
            let svg = captured_picture(test);
            assert_eq!(svg.matches(": kernel<").count(), 2, "{svg}");
        },
    );
}

pub(crate) mod operations {
    use curium_driver::{DotFlags, EdgeData, Graph, LaunchConfig};

    use crate::graph::operations::{chain, with_kernel};
    use crate::operations::{Fixture, LEN, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
                        LaunchConfig::for_elements(LEN as u32),
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
            std::fs::remove_file(path).unwrap_or_default();
            made(result?)
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
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
}
