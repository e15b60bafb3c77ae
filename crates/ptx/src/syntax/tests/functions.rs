//! Kernels, device functions, and items of module scope.

use curium_format::ptx::Linkage;

use super::{KERNELS, TestResult, module, refused};
use crate::syntax::{Alias, FunctionId, FunctionKind, Parameter, Performance, Space, parse};

#[test]
fn performance_directives() {
    let module = module(
        ".entry k() .maxntid 256, 2 .minnctapersm 4 .maxnreg 64 .maxnctapersm 8 .explicitcluster\n\
         .reqnctapercluster 2, 1, 1 .maxclusterrank 8 .pragma \"nounroll\"; { ret; }\n.entry j() .reqntid 32 .blocksareclusters { ret; }",
    );
    assert_eq!(
        module.functions[0].performance,
        Performance {
            max_threads: Some([256, 2, 1]),
            min_blocks_per_multiprocessor: Some(4),
            max_registers: Some(64),
            max_blocks_per_multiprocessor: Some(8),
            explicit_cluster: true,
            required_cluster: Some([2, 1, 1]),
            max_cluster_rank: Some(8),
            pragmas: vec!["nounroll".into()],
            ..Performance::default()
        }
    );
    assert_eq!(
        module.functions[1].performance.required_threads,
        Some([32, 1, 1])
    );
    assert!(module.functions[1].performance.blocks_are_clusters);
}

#[test]
fn parameters_carry_their_layout() -> TestResult {
    let module = module(
        ".visible .entry k(.param .align 8 .b8 s[24], .param .u64 .ptr .global .align 16 p, .param .u64 .ptr q) { ret; }",
    );
    let function = &module.functions[0];
    assert_eq!(
        (function.kind, function.linkage),
        (FunctionKind::Entry, Linkage::Visible)
    );
    assert_eq!(
        (function.variables[0].size, function.variables[0].align),
        (24, 8)
    );
    let pointer = function.variables[1].pointer.ok_or("no `.ptr` attribute")?;
    assert_eq!((pointer.space, pointer.align), (Some(Space::Global), 16));
    assert_eq!(
        function.variables[2]
            .pointer
            .ok_or("no `.ptr` attribute")?
            .space,
        None
    );
    assert_eq!(function.parameters.len(), 3);
    Ok(())
}

#[test]
fn register_parameters() {
    let module = module(".func (.reg .f32 y) f(.reg .f32 x, .param .u32 n) { mov.f32 y, x; ret; }");
    let function = &module.functions[0];
    assert!(matches!(function.returns[0], Parameter::Register(_)));
    assert!(matches!(function.parameters[0], Parameter::Register(_)));
    assert!(matches!(function.parameters[1], Parameter::Variable(_)));
}

#[test]
fn declared_function_is_defined() {
    let module = module(
        ".extern .func (.param .b32 r) g(.param .b32 a);\n.func (.param .b32 r) f(.param .b32 a);\n\
         .func (.param .b32 r) f(.param .b32 b) { ret; }\n.func (.param .b32 r) f(.param .b32 b);\n.func n() .noreturn;",
    );
    assert_eq!(module.functions.len(), 3);
    assert!(module.functions[0].body.is_none() && module.functions[1].body.is_some());
    assert_eq!(module.functions[1].span.line, 6);
    assert!(module.functions[2].performance.no_return);
}

/// Aliases, files, pragmas and debug sections are read.
#[test]
fn aliases_and_debug_sections() {
    let module = module(
        ".file 1 \"/a b.cu\", 123, 45\n.func a() { ret; }\n.func b();\n.alias b, a;\n.pragma \"x\";\n\
         .section .debug_info { .b8 1,2, .debug_line \n .b64 $L__x \n .b32 a-b+1 }\n.section .debug_str\n{\n$L__info0:\n.b8 67\n.b8 0\n$L__info1:\n.b8 68, 69, 0\n}\n\
         .func c() { .loc 1 2 3, function_name $L__info1, inlined_at 1 4 5\nret;\n.loc 1 2 3, function_name $L__info0+3\nret; }\n",
    );
    assert_eq!(module.files[0].path, "/a b.cu");
    let names: Vec<_> = module.functions[2]
        .locations
        .iter()
        .map(|location| module.debug_strings.get(location.function?))
        .collect();
    assert_eq!(names, [Some("DE"), Some("E")]);
    assert_eq!(
        module.aliases,
        [Alias {
            alias: FunctionId(1),
            aliasee: FunctionId(0)
        }]
    );
    assert_eq!(module.pragmas, ["x"]);
}

#[test]
fn kernels_are_listed() -> TestResult {
    let module = parse(KERNELS)?;
    let names: Vec<&str> = module
        .kernels()
        .map(|kernel| module.text(kernel.name))
        .collect();
    assert_eq!(names, ["saxpy"]);
    assert_eq!(module.functions.len(), 3);
    assert_eq!(module.variables.len(), 4);
    Ok(())
}

#[test]
fn invalid_headers() {
    for (text, expected) in [
        (
            ".entry k(.reg .b32 x) { }",
            "line 4, column 10: expected '.param', found '.reg'",
        ),
        (
            ".entry (.param .b32 r) k() { }",
            "line 4, column 8: expected the name of a function, found '('",
        ),
        (
            ".func f() { }\n.func f() { }",
            "line 5, column 7: duplicate definition of function 'f'",
        ),
        (
            ".func f();\n.func f(.param .b32 a) { }",
            "line 5, column 7: parameters differ from the declaration ('f')",
        ),
        (
            ".global .u32 f;\n.func f() { }",
            "line 5, column 7: 'f' is already declared in this scope",
        ),
        (
            ".entry k() .maxntid { }",
            "line 4, column 21: expected a number, found '{'",
        ),
        (
            ".entry k() .frob { }",
            "line 4, column 12: expected '{', ';' or a directive such as '.maxntid', found '.frob'",
        ),
        (
            ".entry k() { ret;",
            "line 4, column 18: expected an instruction, a label, a directive or '}', found the end of the text",
        ),
        (".alias a, b;", "line 4, column 8: unknown function 'a'"),
        (
            ".section .debug { ",
            "line 4, column 19: expected '}', found the end of the text",
        ),
        (
            "ret;",
            "line 4, column 1: expected a directive of module scope, such as '.entry', '.func' or '.global', found 'ret'",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
}
