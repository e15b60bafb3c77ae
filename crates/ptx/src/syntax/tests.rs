//! Tests of the front end, by subject.

mod body;
mod constants;
mod conversions;
mod errors;
mod functions;
mod header;
mod instructions;
mod mutation;
mod names;
mod rows;
mod since;
mod validation;
mod variables;

use super::{Function, Instruction, Module, Operand, parse};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The first three lines of every module here. The next text starts on line 4.
pub(super) const HEADER: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";

/// A kernel in the style of compilers: parameters, guards, a loop, shared memory, a call and
/// vectors.
pub(super) const KERNELS: &str = include_str!("tests/kernels.ptx");

/// Parses `items` after the header.
fn module(items: &str) -> Module {
    let source = format!("{HEADER}{items}");
    parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Parses a device function with a body, whose first line is line 5. Registers of each type are
/// declared there.
fn body(text: &str) -> Module {
    module(&with_body(text))
}

fn with_body(text: &str) -> String {
    format!(
        ".func f() {{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; \
         .reg .f32 %f<9>; .reg .f64 %e<9>;\n{text}\n}}\n"
    )
}

/// Returns the only instruction of a body.
fn instruction(text: &str) -> TestResult<Instruction> {
    let module = body(text);
    let instructions = module.functions[0]
        .body
        .as_ref()
        .ok_or("no function body")?;
    assert_eq!(instructions.len(), 1, "{text}");
    Ok(instructions[0].clone())
}

/// Returns the operands of the only instruction of a body.
fn operands(text: &str) -> TestResult<Vec<Operand>> {
    Ok(instruction(text)?.operands)
}

/// Returns the error message for `items` after the header.
fn refused(items: &str) -> String {
    match parse(&format!("{HEADER}{items}")) {
        Ok(_) => panic!("this was accepted:\n{items}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the error message for a body, whose text starts at line 6.
fn refused_body(text: &str) -> String {
    refused(&with_body(text))
}

/// Returns the type of each register of a function with this name.
fn register_named<'m>(
    module: &'m Module,
    function: &'m Function,
    name: &str,
) -> Vec<&'m super::Register> {
    let name = module.names.find(name).expect("the name is in the module");
    function
        .registers
        .iter()
        .filter(|register| register.name == name)
        .collect()
}
