//! Conditional nodes of graphs.

use std::ptr;

use curium_driver::Driver;
use curium_sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUcontext, CUdeviceptr, CUgraph, CUgraphConditionalHandle,
    CUgraphConditionalNodeType, CUgraphExecUpdateResultInfo, CUgraphNodeParams, CUgraphNodeType,
};
use curium_tests::on_driver;

use super::call::{alloc, create, succeed, upload, word};
use super::graph_node::{add, fill, graph, instantiate, params, run};
use super::in_created_context;

/// Creates a handle whose value each launch resets to the default.
fn condition(
    driver: &Driver,
    graph: CUgraph,
    context: CUcontext,
    default: u32,
) -> CUgraphConditionalHandle {
    create!(
        driver,
        cuGraphConditionalHandleCreate(_, graph, context, default, 1)
    )
}

/// Returns the body graph of a description that the driver has written.
fn body(params: &CUgraphNodeParams) -> CUgraph {
    // SAFETY: the description is one of a conditional node.
    let bodies = unsafe { params.__bindgen_anon_1.conditional.phGraph_out };
    // SAFETY: the driver has written the list of bodies, which has one.
    unsafe { bodies.read() }
}

/// Adds a conditional node that runs a body if the value of the handle is not zero, and returns the
/// body.
fn add_condition(
    driver: &Driver,
    graph: CUgraph,
    context: CUcontext,
    handle: CUgraphConditionalHandle,
) -> CUgraph {
    let mut params = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
    params.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
        size: 1,
        phGraph_out: ptr::null_mut(),
        ctx: context,
    };
    add(driver, graph, None, &mut params);
    body(&params)
}

/// Returns a graph whose node writes 3 to memory if the default of its condition is not zero.
fn conditional_graph(
    driver: &Driver,
    context: CUcontext,
    memory: CUdeviceptr,
    default: u32,
) -> CUgraph {
    let graph = graph(driver);
    let handle = condition(driver, graph, context, default);
    let body = add_condition(driver, graph, context, handle);
    add(driver, body, None, &mut fill(context, memory, 3, 1));
    graph
}

/// An updated executable starts with the default of the new graph's condition.
#[test]
fn update_takes_the_default_of_a_condition() {
    on_driver(|test| {
        in_created_context(test, |driver, context| {
            let memory = alloc(driver, 4);
            upload(driver, memory, &[0; 4]);
            let first = conditional_graph(driver, context, memory, 0);
            let executable = instantiate(driver, first);
            run(driver, executable);
            assert_eq!(word(driver, memory), 0);
            let second = conditional_graph(driver, context, memory, 1);
            let mut result = CUgraphExecUpdateResultInfo::default();
            succeed!(
                driver,
                cuGraphExecUpdate_v2(executable, second, &raw mut result)
            );
            run(driver, executable);
            assert_eq!(word(driver, memory), 3);
            succeed!(driver, cuGraphExecDestroy(executable));
            succeed!(driver, cuGraphDestroy(first));
            succeed!(driver, cuGraphDestroy(second));
        });
    });
}
