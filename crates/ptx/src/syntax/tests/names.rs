//! Scopes, ranges and shadowing.

use super::{TestResult, body, module, refused, refused_body, register_named};
use crate::syntax::{Integer, Operand, RegisterId, ScalarType, SpecialRegister};

fn sources(text: &str) -> TestResult<Vec<Operand>> {
    let module = body(text);
    let instructions = module.functions[0]
        .body
        .as_ref()
        .ok_or("no function body")?;
    Ok(instructions
        .iter()
        .map(|instruction| instruction.operands[1].clone())
        .collect())
}

#[test]
fn scopes_restore_registers() -> TestResult {
    let operands =
        sources("mov.b32 %r0, %r1;\n{ .reg .b32 %r1; mov.b32 %r0, %r1; }\nmov.b32 %r0, %r1;")?;
    let Operand::Register(inner) = operands[1] else {
        panic!("{operands:?}")
    };
    assert_eq!(operands[0], operands[2]);
    assert_ne!(operands[0], Operand::Register(inner));
    Ok(())
}

#[test]
fn inner_range_shadows_register() -> TestResult {
    let operands = sources(
        "mov.b32 %r0, %r1;\n{ .reg .b32 %r<3>; mov.b32 %r0, %r1; mov.b32 %r0, %r5; }\nmov.b32 %r0, %r1; mov.b32 %r0, %r5;",
    )?;
    assert_ne!(operands[0], operands[1]);
    assert_eq!(operands[0], operands[3], "the outer register is back");
    assert_eq!(
        operands[2], operands[4],
        "an index beyond the inner range is of the outer one, for good"
    );
    Ok(())
}

#[test]
fn unrelated_range() -> TestResult {
    let operands = sources(
        "{ .reg .b32 %r1; mov.b32 %r0, %r1; { .reg .b32 t<2>; mov.b32 %r0, %r1; } mov.b32 %r0, %r1; }",
    )?;
    assert_eq!(operands[0], operands[1]);
    assert_eq!(operands[0], operands[2]);
    Ok(())
}

/// Register of an outer range first mentioned inside is the same outside.
#[test]
fn scopes_share_outer_ranges() -> TestResult {
    let operands = sources("{ mov.b32 %r0, %r7; }\n{ mov.b32 %r0, %r7; }\nmov.b32 %r0, %r7;")?;
    assert_eq!(operands[0], operands[1]);
    assert_eq!(operands[0], operands[2]);
    Ok(())
}

#[test]
fn prefix_may_end_in_digits() {
    let module = module(
        ".func f() { .reg .b32 %r1<5>; .reg .b64 %r<3>; mov.b32 %r12, %r13; mov.b64 %r2, %r1; ret; }",
    );
    let function = &module.functions[0];
    let scalar = |name| register_named(&module, function, name)[0].scalar;
    assert_eq!([scalar("%r12"), scalar("%r13")], [ScalarType::B32; 2]);
    assert_eq!([scalar("%r2"), scalar("%r1")], [ScalarType::B64; 2]);
}

#[test]
fn registers_end_with_their_range() {
    assert_eq!(
        refused_body("mov.b32 %r0, %r9;"),
        "line 6, column 14: unknown name '%r9'"
    );
    assert_eq!(
        refused_body("mov.b32 %r0, %r01;"),
        "line 6, column 14: unknown name '%r01'"
    );
    assert_eq!(
        refused_body("{ .reg .b32 x; }\nmov.b32 %r0, x;"),
        "line 7, column 14: unknown name 'x'"
    );
}

#[test]
fn huge_ranges_cost_nothing() {
    let module = module(".func f() { .reg .b32 %r<4294967295>; mov.b32 %r4294967294, %r0; ret; }");
    assert_eq!(module.functions[0].registers.len(), 2);
}

#[test]
fn register_ids_index_the_list() -> TestResult {
    let module = module(
        ".func f() { .reg .v4 .f32 v; .reg .pred p, q<2>; mov.f32 v.y, v.w; mov.pred p, q1; ret; }",
    );
    let function = &module.functions[0];
    let instructions = function.body.as_ref().ok_or("no function body")?;
    assert_eq!(
        instructions[0].operands,
        [
            Operand::Element(RegisterId(0), 1),
            Operand::Element(RegisterId(0), 3)
        ]
    );
    assert_eq!(function.registers[0].vector, 4);
    assert_eq!(function.registers[1].scalar, ScalarType::Pred);
    assert_eq!(module.text(function.registers[2].name), "q1");
    Ok(())
}

#[test]
fn names_are_declared_once() {
    assert_eq!(
        refused_body(".reg .b32 a;\n.reg .b64 a;"),
        "line 7, column 11: 'a' is already declared in this scope"
    );
    assert!(refused_body(".local .b32 a, a;").starts_with("line 6, column 16:"));
    assert!(refused(".global .u32 a;\n.global .u32 a;").starts_with("line 5, column 14:"));
}

#[test]
fn ranges_are_declared_once() {
    assert_eq!(
        refused_body("{ .reg .b32 t<2>;\n.reg .b32 t<3>; }"),
        "line 7, column 11: 't' is already declared in this scope"
    );
}

#[test]
fn special_register_components() -> TestResult {
    let operands = sources(
        "mov.u32 %r0, %tid.x; mov.u32 %r0, %laneid; mov.u64 %d0, %clock64; mov.u32 %r0, WARP_SZ;",
    )?;
    assert_eq!(
        operands,
        [
            Operand::Special(SpecialRegister::TidX),
            Operand::Special(SpecialRegister::Laneid),
            Operand::Special(SpecialRegister::Clock64),
            Operand::Integer(Integer {
                bits: 32,
                negative: false
            }),
        ]
    );
    assert!(refused_body("mov.u32 %r0, %tid.q;").contains("found '.q'"));
    Ok(())
}

#[test]
fn scope_nesting_is_limited() {
    let error = refused_body(&"{".repeat(100_000));
    assert_eq!(error, "line 6, column 63: more than 64 nested scopes");
}
