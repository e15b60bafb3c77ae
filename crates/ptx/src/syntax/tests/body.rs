//! Labels, branches, lists, calls and locations.

use super::{TestResult, body, module, operands, refused, refused_body};
use crate::syntax::{CallSignature, Callee, LabelId, Operand, PrototypeId, Symbol};

#[test]
fn labels_precede_instructions() -> TestResult {
    let module = body("bra L2;\nL1: ret;\nL2: L3:\nbra L1;\nL4:");
    let function = &module.functions[0];
    let locations: Vec<_> = function
        .labels
        .iter()
        .map(|label| (module.text(label.name), label.instruction))
        .collect();
    assert_eq!(locations, [("L1", 1), ("L2", 2), ("L3", 2), ("L4", 3)]);
    let instructions = function.body.as_ref().ok_or("no function body")?;
    assert_eq!(instructions[0].operands, [Operand::Label(LabelId(1))]);
    assert_eq!(instructions[2].operands, [Operand::Label(LabelId(0))]);
    Ok(())
}

#[test]
fn nested_scopes_have_labels() {
    let module = body("{ bra DONE; DONE: ret; }\n{ bra DONE; DONE: ret; }\nbra DONE;\nDONE: ret;");
    let function = &module.functions[0];
    let targets: Vec<u32> = function
        .body
        .iter()
        .flatten()
        .filter_map(|entry| match entry.operands.first() {
            Some(Operand::Label(id)) => Some(function.labels[id.0 as usize].instruction),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [1, 3, 5]);
}

#[test]
fn branches_to_outer_labels() {
    let module = body("{ @%p1 bra OUT; }\nret;\nOUT: ret;");
    let function = &module.functions[0];
    assert_eq!(function.labels[0].instruction, 2);
}

#[test]
fn branch_targets_may_follow() -> TestResult {
    let module = body("T: .branchtargets A, B, A;\nbrx.idx %r1, T;\nA: ret;\nB: ret;");
    let function = &module.functions[0];
    let targets: Vec<u32> = function.branch_targets[0]
        .labels
        .iter()
        .map(|id| function.labels[id.0 as usize].instruction)
        .collect();
    assert_eq!(targets, [1, 2, 1]);
    let brx = &function.body.as_ref().ok_or("no function body")?[0];
    assert!(matches!(brx.operands[1], Operand::BranchTargets(_)));
    Ok(())
}

const CALLEE: &str = ".func (.param .b32 r) g(.param .b32 a, .param .align 4 .b8 s[12]) { ret; }\n.func h() { ret; }\n";

#[test]
fn direct_calls() -> TestResult {
    let module = module(&format!(
        "{CALLEE}.func f() {{ .param .b32 x; .param .align 4 .b8 y[12]; .param .b32 z; call.uni (z), g, (x, y); call h; call h, (); }}"
    ));
    let instructions = module.functions[2]
        .body
        .as_ref()
        .ok_or("no function body")?;
    let Operand::Call(call) = &instructions[0].operands[0] else {
        panic!("{instructions:?}")
    };
    assert_eq!(call.callee, Callee::Direct(crate::syntax::FunctionId(0)));
    assert!(matches!(*call.returns, [Operand::Symbol(Symbol::Local(id), 0)] if id.0 == 2));
    assert_eq!(call.arguments.len(), 2);
    Ok(())
}

#[test]
fn indirect_calls() {
    let module = body(
        "P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _) .noreturn;\n.param .b32 r; .param .b64 a; .param .b32 b;\n\
         call (r), %d1, (a, b), P;\nQ: .callprototype _ ();\ncall %d1, Q;\nT: .calltargets f;\ncall %d1, (), T;",
    );
    let function = &module.functions[0];
    let callees: Vec<Callee> = function
        .body
        .iter()
        .flatten()
        .map(|instruction| match &instruction.operands[0] {
            Operand::Call(call) => call.callee,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(matches!(
        callees[0],
        Callee::Indirect(_, CallSignature::Prototype(PrototypeId(0)))
    ));
    assert!(matches!(
        callees[1],
        Callee::Indirect(_, CallSignature::Prototype(PrototypeId(1)))
    ));
    assert!(matches!(
        callees[2],
        Callee::Indirect(_, CallSignature::Targets(_))
    ));
    assert!(function.prototypes[0].no_return);
    assert_eq!(function.prototypes[0].parameters[0].size, 8);
}

/// Returns the error message for a call, which is on line 7.
fn refused_call(call: &str) -> String {
    refused(&format!(
        "{CALLEE}.func f() {{ .param .b64 w; .param .b32 x; .reg .b32 %r<2>;\n{call}\n}}"
    ))
}

#[test]
fn mismatched_calls_are_refused() {
    assert_eq!(
        refused_call("call (x), g, (x);"),
        "line 7, column 6: call: wrong number of arguments (expected 2, found 1)"
    );
    assert_eq!(
        refused_call("call g, (x, x);"),
        "line 7, column 6: call: wrong number of results (expected 1, found 0)"
    );
    assert_eq!(
        refused_call("call (x), g, (w, x);"),
        "line 7, column 6: call: invalid argument 1 (expected 4 bytes, found 'w' of 8 bytes in .param)"
    );
    assert_eq!(
        refused_call("call nobody;"),
        "line 7, column 6: unknown function 'nobody'"
    );
    assert_eq!(
        refused_call("call %r1;"),
        "line 7, column 9: expected ',', found ';'"
    );
    assert_eq!(
        refused_call("call %r1, (x), x;"),
        "line 7, column 16: expected the label of a '.callprototype' or '.calltargets', found 'x'"
    );
}

#[test]
fn locations() {
    let module = body(
        ".loc 1 7 3\nret;\n.loc 1 9 5, function_name $L__info0, inlined_at 1 8 2\nret;\n.loc 2 1 1, function_name $L__i + 4, inlined_at 1 8 2",
    );
    let locations: Vec<_> = module.functions[0]
        .locations
        .iter()
        .map(|location| (location.position.file, location.position.line))
        .collect();
    assert_eq!(locations, [(1, 7), (1, 9), (2, 1)]);
}

#[test]
fn invalid_labels_are_refused() {
    for (text, expected) in [
        ("bra NOWHERE;", "line 6, column 5: unknown name 'NOWHERE'"),
        (
            "bra %r1;",
            "line 6, column 5: bra: invalid operand 1 (expected a label of this function, found '%r1' of type .b32)",
        ),
        (
            "L: ret;\nL: ret;",
            "line 7, column 1: 'L' is already declared in this scope",
        ),
        (
            "{ L: ret; }\nT: .branchtargets L;",
            "line 7, column 19: expected a label of this function, found 'L'",
        ),
        (
            ".frob x;",
            "line 6, column 1: expected a directive of a function body, such as '.reg', '.local', '.shared' or '.param', found '.frob'",
        ),
    ] {
        assert_eq!(refused_body(text), expected);
    }
}

#[test]
fn scoped_variables() -> TestResult {
    let parsed = operands("{ .shared .u32 s[4]; mov.u32 %r1, s+8; }")?;
    assert!(matches!(parsed[1], Operand::Symbol(Symbol::Local(_), 8)));
    let parsed = operands("{ .shared .v2 .u32 s[4]; mov.u32 %r1, s[2]; }")?;
    assert!(matches!(parsed[1], Operand::Symbol(Symbol::Local(_), 16)));
    Ok(())
}
