//! Conditional nodes with values set by kernels. The driver defines the function that they call.

use curium_driver::{Condition, ConditionalKind, Function, Kernel, LaunchConfig, Library};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, simulator_test};

use super::{LEN, add_fill, graph, run, words, zeroes};

/// Increments a word, and sets the conditional value to its distance from `end`.
const COUNT: &str = "
.version 7.8
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 word, .param .u32 end, .param .u64 condition)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<5>;
    ld.param.u64 %rd1, [word];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [end];
    ld.param.u64 %rd3, [condition];
    ld.global.u32 %r2, [%rd2];
    add.u32 %r3, %r2, 1;
    st.global.u32 [%rd2], %r3;
    sub.u32 %r4, %r1, %r3;
    {
        .param .b64 handle;
        .param .b32 value;
        st.param.b64 [handle], %rd3;
        st.param.b32 [value], %r4;
        call.uni cudaGraphSetConditional, (handle, value);
    }
    ret;
}
";

type Count = (&'static mut [u32], u32, Condition);

fn count(test: &TestDriver) -> TestResult<Kernel<Count>> {
    let library = Library::from_ptx(test.driver(), COUNT)?;
    Ok(library.kernel("count")?)
}

#[simulator_test]
fn while_loop_ends_when_a_kernel_clears_its_condition(
    test: &TestDriver,
    _: &Simulator,
) -> TestResult {
    let count = count(test)?;
    let buffer = zeroes(test);
    let mut graph = graph(test);
    let condition = graph.condition(Some(1))?;
    let mut node = graph.add_conditional(&[], condition, ConditionalKind::While)?;
    let arguments = (buffer.as_pointer(), 5, condition);
    // SAFETY: `count` writes one word, which the buffer has and which outlives the launches.
    let body =
        unsafe { node.bodies[0].add_kernel(&[], &count, LaunchConfig::new(1, 1), arguments) }?;
    let mut exec = graph.instantiate()?;
    run(test, &mut exec)?;
    assert_eq!(words(&buffer)[0], 5);
    // The value is reset at each launch, so that the body runs at least once.
    drop(exec);
    let mut again = graph.instantiate()?;
    // SAFETY: as above, with a higher limit.
    unsafe { again.set_kernel(&body, (buffer.as_pointer(), 8, condition)) }?;
    run(test, &mut again)?;
    assert_eq!(words(&buffer)[0], 8);
    Ok(())
}

#[simulator_test]
fn kernel_selects_the_conditional_branch(test: &TestDriver, _: &Simulator) -> TestResult {
    let count = count(test)?;
    for (end, expected) in [(1, [0, 1]), (2, [1, 0])] {
        let word = zeroes(test);
        let taken = [zeroes(test), zeroes(test)];
        let mut graph = graph(test);
        let condition = graph.condition(None)?;
        let arguments = (word.as_pointer(), end, condition);
        // SAFETY: `count` writes one word, which the buffer has and which outlives the launch.
        let first = unsafe { graph.add_kernel(&[], &count, LaunchConfig::new(1, 1), arguments) }?;
        let mut node = graph.add_conditional(&[*first], condition, ConditionalKind::IfElse)?;
        for (body, buffer) in node.bodies.iter_mut().zip(&taken) {
            add_fill(body, &[], buffer, 1)?;
        }
        run(test, &mut graph.instantiate()?)?;
        assert_eq!(
            taken.map(|buffer| words(&buffer)),
            expected.map(|value| vec![value; LEN]),
            "up to {end}"
        );
    }
    Ok(())
}

/// A condition whose handle is 0 is valid and only the result is an error.
#[simulator_test]
fn condition_handle_zero_is_valid(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let mut graph = graph(test);
    let create = Fault::on(Function::cuGraphConditionalHandleCreate);
    simulator.inject(create.creates_nothing());
    assert_eq!(graph.condition(Some(1))?.as_raw(), 0);
    simulator.inject(create.returns(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    let error = graph
        .condition(Some(1))
        .expect_err("the driver reports an error");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        "{error}"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::ConditionalKind;

    use crate::graph::operations::graph;
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::condition", |fixture| {
            let mut graph = graph(fixture)?;
            made((graph.condition(Some(1))?, graph))
        }),
        ("Graph::add_conditional", |fixture| {
            let mut graph = graph(fixture)?;
            let condition = graph.condition(Some(1))?;
            let node = graph.add_conditional(&[], condition, ConditionalKind::If)?;
            made((node, graph))
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
