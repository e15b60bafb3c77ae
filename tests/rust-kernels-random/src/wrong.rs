//! Programs with one statement that violates a rule of the model. The compiler must refuse each.

use anyhow::Result;
use fastrand::Rng;

use crate::compile::{Compiled, Compiler};
use crate::program::{MemoryKind, Param, Program, Stmt};
use crate::search::spread;
use crate::value::{Type, Value};
use crate::{generate, print};

/// A violation: the statement, unless the program has nothing that it needs.
type Violation = fn(&Program) -> Option<String>;

const VIOLATIONS: &[Violation] = &[
    register_as_a_condition,
    register_read,
    register_opened,
    rank_as_a_value_of_the_block,
    rank_leaks_by_a_variable,
    rank_leaks_by_a_cell,
    barrier_in_code_of_a_thread,
    reduction_in_code_of_a_thread,
    thread_escapes,
    memory_read_without_a_barrier,
    memory_owned_twice,
    memory_filled_while_read,
    memory_written_through_its_view,
    memory_filled_between_pairs,
    memory_read_during_its_copy,
    view_escapes,
    elements_kept,
    output_in_code_of_a_thread,
    vote_in_code_of_a_lane,
    lane_escapes,
    lanes_as_a_condition,
    rank_of_a_lane_leaks,
    atomic_in_code_of_the_block,
    atomic_of_core,
    warps_of_a_partial_block,
];

/// Returns the wrong programs that are accepted, or the part that the toolchain lacks.
pub(crate) fn run(
    compiler: &Compiler,
    seed: u64,
    count: u64,
) -> Result<std::result::Result<Vec<String>, String>> {
    let mut rng = Rng::with_seed(spread(seed));
    let mut modules = Vec::new();
    let mut candidate = seed;
    let mut violation = 0;
    while (modules.len() as u64) < count {
        candidate += 1;
        let mut program = generate::program(spread(candidate));
        if program.block.is_none() {
            continue;
        }
        // In turn, so that all are used.
        let Some(text) = VIOLATIONS[violation % VIOLATIONS.len()](&program) else {
            continue;
        };
        violation += 1;
        let position = rng.usize(..=program.body.stmts.len());
        program.body.stmts.insert(position, Stmt::Wrong(text));
        modules.push(print::module(&program, &format!("wrong_{candidate}")));
    }
    let mut accepted = Vec::new();
    for module in modules_without_errors(compiler, modules)? {
        match compiler.compile(std::slice::from_ref(&module))? {
            Compiled::Rejected(_) | Compiled::Refused(_) => {}
            Compiled::Missing(message) => return Ok(Err(message)),
            Compiled::Ptx(_) => accepted.push(format!("a wrong program compiles:\n{module}")),
            Compiled::Failed(message) => {
                accepted.push(format!("a wrong program fails: {message}\n{module}"));
            }
        }
    }
    Ok(Ok(accepted))
}

/// Compiles modules together, and returns those in which rustc reports no error. It may have
/// stopped before it came to them.
fn modules_without_errors(compiler: &Compiler, modules: Vec<String>) -> Result<Vec<String>> {
    let Compiled::Rejected(diagnostics) = compiler.compile(&modules)? else {
        return Ok(modules);
    };
    let mut line = print::HEADER.lines().count() as u64;
    let mut without = Vec::new();
    for module in modules {
        let end = line + module.lines().count() as u64;
        let is_wrong = diagnostics
            .iter()
            .any(|diagnostic| diagnostic.line > line && diagnostic.line <= end);
        if !is_wrong {
            without.push(module);
        }
        line = end;
    }
    Ok(without)
}

fn register(program: &Program) -> Option<String> {
    let var = program.body.registers.first()?;
    Some(format!("r{}", var.0))
}

/// Returns an array in shared memory and its zero.
fn array(program: &Program) -> Option<(String, String)> {
    let mut memories = program.memories.iter().enumerate();
    let (index, memory) = memories.find(|(_, memory)| {
        matches!(memory.kind, MemoryKind::Array(len) if len > 1) && !memory.is_reference
    })?;
    Some((format!("m{index}"), Value::zero(memory.ty).source()))
}

fn param(program: &Program, is_wanted: impl Fn(&Param) -> bool) -> Option<String> {
    let index = program.params.iter().position(is_wanted)?;
    Some(format!("x{index}"))
}

fn has_warps(program: &Program) -> Option<()> {
    program.threads().is_multiple_of(32).then_some(())
}

fn register_as_a_condition(program: &Program) -> Option<String> {
    let register = register(program)?;
    Some(format!("if {register} {{ return; }}"))
}

fn register_read(program: &Program) -> Option<String> {
    let register = register(program)?;
    Some(format!("let value = *{register};"))
}

fn register_opened(program: &Program) -> Option<String> {
    let register = register(program)?;
    Some(format!("let Registers(value) = {register};"))
}

fn rank_as_a_value_of_the_block(_: &Program) -> Option<String> {
    Some("let rank: usize = block.threads(|t| t.index_in_block());".to_owned())
}

fn rank_leaks_by_a_variable(program: &Program) -> Option<String> {
    let (var, _) = program
        .body
        .uniforms
        .iter()
        .find(|(var, _)| program.var(*var).ty == Type::U32)?;
    Some(format!(
        "block.threads(|t| u{} = t.index_in_block() as u32);",
        var.0
    ))
}

fn rank_leaks_by_a_cell(_: &Program) -> Option<String> {
    Some(
        "let cell = core::cell::Cell::new(0); block.threads(|t| cell.set(t.index_in_block())); if cell.get() == 0 { return; }"
            .to_owned(),
    )
}

fn barrier_in_code_of_a_thread(_: &Program) -> Option<String> {
    Some("block.threads(|t| block.any(&Registers::new(true)));".to_owned())
}

fn reduction_in_code_of_a_thread(program: &Program) -> Option<String> {
    let ty = program.params.iter().find_map(|param| match param {
        Param::Scratch(ty) => Some(ty.name()),
        _ => None,
    })?;
    Some(format!(
        "block.threads(|t| block.sum(&Registers::new(0 as {ty}), &mut s_{ty}));"
    ))
}

fn thread_escapes(_: &Program) -> Option<String> {
    Some("let token = block.threads(|t| t);".to_owned())
}

fn memory_read_without_a_barrier(program: &Program) -> Option<String> {
    let (memory, _) = array(program)?;
    Some(format!("block.threads(|t| {memory}[0]);"))
}

fn memory_owned_twice(program: &Program) -> Option<String> {
    let (memory, _) = array(program)?;
    Some(format!(
        "block.threads_with((&mut {memory}, &mut {memory}), |t, (a, b)| ());"
    ))
}

fn memory_filled_while_read(program: &Program) -> Option<String> {
    let (memory, zero) = array(program)?;
    Some(format!(
        "{memory}.synced(&block, |view| {{ {memory}.fill(&block, |_, _| {zero}); block.threads(|t| view[0]); }});"
    ))
}

fn memory_written_through_its_view(program: &Program) -> Option<String> {
    let (memory, zero) = array(program)?;
    Some(format!(
        "{memory}.synced(&block, |view| {{ block.threads(|t| view[0] = {zero}); }});"
    ))
}

fn memory_filled_between_pairs(program: &Program) -> Option<String> {
    let (memory, zero) = array(program)?;
    Some(format!(
        "{memory}.pairs(&block, |pairs| {{ {memory}.fill(&block, |_, _| {zero}); pairs.step(1, |_, _, _| ()); }});"
    ))
}

fn memory_read_during_its_copy(program: &Program) -> Option<String> {
    let (memory, _) = program.memories.iter().enumerate().find(|(_, memory)| {
        matches!(memory.kind, MemoryKind::Tile { .. }) && !memory.is_reference
    })?;
    let ty = program.memories[memory].ty;
    let matrix = param(
        program,
        |param| matches!(param, Param::Matrix(of) if *of == ty),
    )?;
    Some(format!(
        "m{memory}.copy_during(&block, &{matrix}, (0, 0), || m{memory}.synced(&block, |tile| ()));"
    ))
}

fn view_escapes(program: &Program) -> Option<String> {
    let (memory, zero) = array(program)?;
    Some(format!(
        "let view = {memory}.synced(&block, |view| view); {memory}.fill(&block, |_, _| {zero}); block.threads(|t| view[0]);"
    ))
}

fn elements_kept(program: &Program) -> Option<String> {
    let (memory, zero) = array(program)?;
    Some(format!(
        "let mut kept = block.threads_with(&mut {memory}, |_, elements| elements); {memory}.fill(&block, |_, _| {zero}); block.threads_with(&mut kept, |_, kept| ());"
    ))
}

fn output_in_code_of_a_thread(program: &Program) -> Option<String> {
    let output = param(program, |param| matches!(param, Param::PerThread(_)))?;
    Some(format!("block.threads(|t| {{ {output}.get(t); }});"))
}

fn vote_in_code_of_a_lane(program: &Program) -> Option<String> {
    has_warps(program)?;
    Some("block.warps(|warp| { warp.lanes(|lane| warp.ballot(&Lanes::new(true))); });".to_owned())
}

fn lane_escapes(program: &Program) -> Option<String> {
    has_warps(program)?;
    Some("block.warps(|warp| { let token = warp.lanes(|lane| lane); });".to_owned())
}

fn lanes_as_a_condition(program: &Program) -> Option<String> {
    has_warps(program)?;
    Some(
        "block.warps(|warp| { let first = warp.lanes(|lane| lane.index() == 0); if first { warp.ballot(&first); } });"
            .to_owned(),
    )
}

fn rank_of_a_lane_leaks(program: &Program) -> Option<String> {
    has_warps(program)?;
    Some(
        "block.warps(|warp| { let mut rank = 0; warp.lanes(|lane| rank = lane.index()); });"
            .to_owned(),
    )
}

fn atomic_in_code_of_the_block(program: &Program) -> Option<String> {
    let atomics = param(program, |param| matches!(param, Param::Atomics { .. }))?;
    Some(format!(
        "if {atomics}[0].load(&block, Relaxed) == Default::default() {{ return; }}"
    ))
}

fn atomic_of_core(_: &Program) -> Option<String> {
    Some(
        "static COUNTER: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0); if COUNTER.fetch_add(1, Relaxed) == 0 { return; }"
            .to_owned(),
    )
}

fn warps_of_a_partial_block(program: &Program) -> Option<String> {
    if has_warps(program).is_some() {
        return None;
    }
    Some("block.warps(|warp| ());".to_owned())
}
