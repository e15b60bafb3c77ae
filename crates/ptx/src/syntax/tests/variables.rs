//! Variables and their initial values.

use curium_format::ptx::Linkage;

use super::{module, refused};
use crate::syntax::{Constant, GlobalId, Integer, Module, ScalarType, Space, Symbol};

fn integer(value: u64) -> Constant {
    Constant::Integer(Integer {
        bits: value,
        negative: false,
    })
}

#[test]
fn variables_have_a_layout() {
    let module = module(
        ".global .align 16 .b8 a[3][5];\n.visible .const .f64 b;\n.shared .v4 .f32 c[2];\n.extern .shared .align 8 .b8 d[];\n\
         .weak .global .u16 e = 7;\n.common .global .u32 f;\n.global .attribute(.managed) .align 4 .u32 g;",
    );
    let facts: Vec<_> = module
        .variables
        .iter()
        .map(|variable| {
            (
                variable.space,
                variable.size,
                variable.align,
                variable.linkage,
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (Space::Global, 15, 16, Linkage::Internal),
            (Space::Const, 8, 8, Linkage::Visible),
            (Space::Shared, 32, 16, Linkage::Internal),
            (Space::Shared, 0, 8, Linkage::Extern),
            (Space::Global, 2, 2, Linkage::Weak),
            (Space::Global, 4, 4, Linkage::Common),
            (Space::Global, 4, 4, Linkage::Internal),
        ]
    );
    assert_eq!(module.variables[0].dimensions, [3, 5]);
    assert_eq!(
        (module.variables[2].vector, module.variables[2].scalar),
        (4, ScalarType::F32)
    );
    assert!(module.variables[3].is_unsized);
    assert!(module.variables[6].is_managed && !module.variables[0].is_managed);
}

/// Returns the initial values of a variable, with their offsets.
fn filled_scalars(module: &Module, index: usize) -> Vec<(u64, Constant)> {
    module.variables[index]
        .initial
        .iter()
        .map(|initial| (initial.offset, initial.value))
        .collect()
}

/// Nested braces fill rows; elements without a value are zero.
#[test]
fn nested_braces_fill_rows() {
    let module = module(
        ".global .u32 a[2][3] = {{1}, {4, 5}};\n.global .u32 b[2][3] = {{}, {2}};\n.global .v2 .u16 c[] = {{1, 2}, {3, 4}};",
    );
    assert_eq!(
        filled_scalars(&module, 0),
        [(0, integer(1)), (12, integer(4)), (16, integer(5))]
    );
    assert_eq!(filled_scalars(&module, 1), [(12, integer(2))]);
    assert_eq!(
        filled_scalars(&module, 2),
        [
            (0, integer(1)),
            (2, integer(2)),
            (4, integer(3)),
            (6, integer(4))
        ]
    );
    assert_eq!(module.variables[2].dimensions, [2]);
    assert_eq!(module.variables[2].size, 8);
}

#[test]
fn unsized_array() {
    let module = module(".global .u32 a[] = {1, 2, 3};\n.global .b8 b[][4] = {{1}, {2}};");
    assert_eq!(
        (module.variables[0].size, module.variables[0].is_unsized),
        (12, false)
    );
    assert_eq!(
        (
            module.variables[1].size,
            module.variables[1].dimensions.clone()
        ),
        (8, vec![2, 4])
    );
}

/// Returns the initial values of a variable.
fn initial_values(module: &Module, index: usize) -> Vec<Constant> {
    module.variables[index]
        .initial
        .iter()
        .map(|initial| initial.value)
        .collect()
}

/// Returns an address in the first variable of a module.
fn address_constant(offset: i64, generic: bool, mask: Option<u64>) -> Constant {
    Constant::Address {
        symbol: Symbol::Global(GlobalId(0)),
        offset,
        generic,
        mask,
    }
}

/// Initial values hold numbers and addresses.
#[test]
fn initial_values_are_read() {
    let module = module(
        ".func f();\n.global .u32 a;\n.global .u64 p[5] = {a, a+4, generic(a)+8, f, generic(a)+-2};\n\
         .global .u8 m[2] = {0xFF(a), 0xFF00(a)};\n.global .f32 x[3] = {0f3F800000, -2.5, 1e2};",
    );
    let pointers = initial_values(&module, 1);
    assert_eq!(
        pointers[..3],
        [
            address_constant(0, false, None),
            address_constant(4, false, None),
            address_constant(8, true, None)
        ]
    );
    assert!(matches!(
        pointers[3],
        Constant::Address {
            symbol: Symbol::Function(_),
            ..
        }
    ));
    assert_eq!(pointers[4], address_constant(-2, true, None));
    assert_eq!(
        initial_values(&module, 2),
        [
            address_constant(0, false, Some(0xFF)),
            address_constant(0, false, Some(0xFF00))
        ]
    );
    assert_eq!(
        initial_values(&module, 3),
        [
            Constant::Single(0x3F80_0000),
            Constant::Double((-2.5f64).to_bits()),
            Constant::Double(100f64.to_bits())
        ]
    );
}

#[test]
fn opaque_references() {
    let module = module(
        ".global .texref t;\n.global .samplerref s = {filter_mode = nearest, addr_mode_0 = wrap};\n.global .surfref u;",
    );
    let settings = &module.variables[1].settings;
    assert_eq!(module.text(settings[0].0), "filter_mode");
    assert_eq!(module.text(settings[1].1), "wrap");
    assert_eq!(module.variables[2].scalar, ScalarType::SurfaceReference);
}

#[test]
fn external_variable_is_completed() {
    let module =
        module(".extern .global .u32 a;\n.visible .global .u32 a = 5;\n.extern .global .u32 a;");
    assert_eq!(module.variables.len(), 1);
    assert_eq!(module.variables[0].linkage, Linkage::Visible);
}

#[test]
fn invalid_declarations() {
    for (text, expected) in [
        (
            ".global .u32 a[2] = {1, 2, 3};",
            "line 4, column 28: too many initial values ('3')",
        ),
        (
            ".global .u32 a = {1};",
            "line 4, column 18: expected a number, found '{'",
        ),
        (
            ".global .u32 a[2] = {{1}};",
            "line 4, column 22: expected a value, found '{'",
        ),
        (
            ".global .align 3 .u32 a;",
            "line 4, column 16: the alignment must be a power of two ('3')",
        ),
        (
            ".global .pred a;",
            "line 4, column 9: expected a type of variables, such as '.u32', found '.pred'",
        ),
        (
            ".global a;",
            "line 4, column 9: expected a type such as '.u32', found 'a'",
        ),
        (
            ".global .u32 a[-1];",
            "line 4, column 16: expected the extent of an array, found '-'",
        ),
        (
            ".global .u32 a[2+2];",
            "line 4, column 17: expected ']', found '+'",
        ),
        (
            ".global .u32 a[];",
            "line 4, column 14: array 'a' without an extent must be '.extern'",
        ),
        (
            ".global .u32 a[2][2] = {1};",
            "line 4, column 25: expected '{', found '1'",
        ),
        (
            ".global .f32 a = 1;",
            "line 4, column 18: the value does not have the variable's type ('1')",
        ),
        (
            ".global .u64 p = nobody;",
            "line 4, column 18: unknown name 'nobody'",
        ),
        (
            ".global .u32 a",
            "line 4, column 15: expected ';', found the end of the text",
        ),
        (
            ".extern .u32 a;",
            "line 4, column 9: expected '.entry', '.func', '.global', '.const' or '.shared', found '.u32'",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
}

#[test]
fn overflowing_sizes_are_refused() {
    let text = ".global .u64 a[4294967296][4294967296];";
    assert_eq!(
        refused(text),
        "line 4, column 14: 'a' is larger than 2^63 bytes"
    );
    assert!(
        refused(&format!(".global .u64 a{};", "[1]".repeat(1000)))
            .contains("more than 16 dimensions")
    );
    assert!(refused(&format!(".global .u64 a[2] = {};", "{".repeat(100_000))).contains("a value"));
}
