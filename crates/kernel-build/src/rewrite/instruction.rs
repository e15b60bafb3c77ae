//! Instructions of the GPU. The device crate declares them as functions with reserved names, and
//! this module defines these functions.
//!
//! | name | meaning |
//! |---|---|
//! | `curium.llvm.X` | the intrinsic `llvm.X` |
//! | `curium.asm\|TEMPLATE\|CONSTRAINTS\|FLAGS` | inline PTX |
//! | `curium.atomicrmw\|OPERATION\|SCOPE\|ORDER` | a read-modify-write operation, which returns the previous value |
//! | `curium.cmpxchg\|SCOPE\|SUCCESS\|FAILURE` | a compare-and-exchange, which returns the previous value |
//! | `curium.load\|SCOPE\|ORDER`, `curium.store\|SCOPE\|ORDER` | an atomic load or store |
//! | `curium.fence\|SCOPE\|ORDER` | a fence |
//! | `curium.shared.dynamic` | the address of dynamic shared memory |
//!
//! A constraint of inline PTX is a register class: `r` is an input, `=r` an output, and `+r` an
//! output that the instruction also reads. `FLAGS` are an effect (`pure`, `nomem` or nothing) and
//! the compute capability that the instruction needs (`sm_89`), separated by a comma.
//!
//! Names of atomics may have a further field, which distinguishes declarations of different types.

use std::fmt::Write as _;

use crate::ir::Function;

/// Link names with this prefix are reserved.
pub(crate) const PREFIX: &str = "curium.";

/// The prefix of the names of LLVM's intrinsics.
pub(crate) const INTRINSIC: &str = "curium.llvm.";

/// The name of dynamic shared memory in the PTX.
pub(crate) const DYNAMIC_SHARED: &str = "curium_dynamic_shared";

/// The scopes of atomics and fences, as `SCOPE` and in LLVM's spelling.
const SCOPES: &[(&str, &str)] = &[
    ("block", "syncscope(\"block\") "),
    ("cluster", "syncscope(\"cluster\") "),
    ("device", "syncscope(\"device\") "),
    ("system", ""),
];

const ORDERS: &[&str] = &["monotonic", "acquire", "release", "acq_rel", "seq_cst"];

const OPERATIONS: &[&str] = &[
    "add",
    "sub",
    "and",
    "or",
    "xor",
    "nand",
    "xchg",
    "max",
    "min",
    "umax",
    "umin",
    "fadd",
    "fsub",
    "fmax",
    "fmin",
    "uinc_wrap",
    "udec_wrap",
];

/// Returns the definition of an instruction under the name `name`, from the declaration in the
/// device crate.
pub(crate) fn define(function: &Function<'_>, name: &str) -> Result<String, String> {
    let unknown = |problem: &str| format!("instruction `{}`: {problem}", function.name);
    let rest = function
        .name
        .strip_prefix(PREFIX)
        .ok_or_else(|| unknown("no reserved name"))?;
    let (kind, operands) = rest.split_once('|').unwrap_or((rest, ""));
    let fields: Vec<&str> = operands.split('|').collect();
    let scope = |field: &str| {
        let entry = SCOPES.iter().find(|(scope, _)| *scope == field);
        entry
            .map(|(_, spelling)| *spelling)
            .ok_or_else(|| unknown("no such scope"))
    };
    let order = |field: &str| {
        let entry = ORDERS.iter().find(|order| **order == field);
        entry
            .copied()
            .ok_or_else(|| unknown("no such memory order"))
    };
    let types = function.parameter_types();
    let result = function.result_type;
    let body = match (kind, &fields[..], &types[..]) {
        ("asm", _, _) => return define_assembly(function, operands, name),
        ("atomicrmw", [operation, scope_field, order_field, ..], ["ptr", ty]) if *ty == result => {
            if !OPERATIONS.contains(operation) {
                return Err(unknown("no such operation"));
            }
            let scope = scope(scope_field)?;
            let order = order(order_field)?;
            format!("  %r = atomicrmw {operation} ptr %0, {ty} %1 {scope}{order}\n  ret {ty} %r\n")
        }
        ("cmpxchg", [scope_field, success, failure, ..], ["ptr", ty, new])
            if *ty == result && ty == new =>
        {
            let scope = scope(scope_field)?;
            let success = order(success)?;
            let failure = order(failure)?;
            format!(
                "  %s = cmpxchg ptr %0, {ty} %1, {ty} %2 {scope}{success} {failure}\n  %r = extractvalue {{ {ty}, i1 }} %s, 0\n  ret {ty} %r\n"
            )
        }
        ("load", [scope_field, order_field, ..], ["ptr"]) => {
            let size = size(result).ok_or_else(|| unknown("no atomic type"))?;
            let scope = scope(scope_field)?;
            let order = order(order_field)?;
            format!(
                "  %r = load atomic {result}, ptr %0 {scope}{order}, align {size}\n  ret {result} %r\n"
            )
        }
        ("store", [scope_field, order_field, ..], ["ptr", ty]) if result == "void" => {
            let size = size(ty).ok_or_else(|| unknown("no atomic type"))?;
            let scope = scope(scope_field)?;
            let order = order(order_field)?;
            format!("  store atomic {ty} %1, ptr %0 {scope}{order}, align {size}\n  ret void\n")
        }
        ("fence", [scope_field, order_field], []) if result == "void" => {
            format!(
                "  fence {}{}\n  ret void\n",
                scope(scope_field)?,
                order(order_field)?
            )
        }
        ("shared.dynamic", [""], []) if result == "ptr" => {
            return Ok(format!(
                "@{DYNAMIC_SHARED} = external addrspace(3) global [0 x i8], align 16\n\
                 define internal ptr @{name}() alwaysinline nounwind {{\n  ret ptr addrspacecast (ptr addrspace(3) @{DYNAMIC_SHARED} to ptr)\n}}\n"
            ));
        }
        _ => return Err(unknown("no such instruction, or not with these types")),
    };
    let parameters = numbered(&types);
    Ok(format!(
        "define internal {result} @{name}({parameters}) alwaysinline convergent sanitize_thread nounwind {{\n{body}}}\n"
    ))
}

/// Returns the compute capability that inline PTX needs: its last flag is `sm_NN`.
pub(crate) fn required_target(name: &str) -> Option<u32> {
    let flags = name.strip_prefix("curium.asm|")?.rsplit('|').next()?;
    let flag = flags.rsplit(',').next()?;
    flag.strip_prefix("sm_")?.parse().ok()
}

/// Returns the template of inline PTX.
pub(crate) fn template(name: &str) -> Option<&str> {
    name.strip_prefix("curium.asm|")?.rsplitn(3, '|').nth(2)
}

fn numbered(types: &[&str]) -> String {
    let parameters: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(index, ty)| format!("{ty} %{index}"))
        .collect();
    parameters.join(", ")
}

fn size(ty: &str) -> Option<u32> {
    match ty {
        "i8" => Some(1),
        "i16" | "half" | "bfloat" => Some(2),
        "i32" | "float" => Some(4),
        "i64" | "double" | "ptr" => Some(8),
        "i128" => Some(16),
        _ => None,
    }
}

/// The type of an operand of inline PTX, from its constraint.
fn constraint_type(constraint: &str) -> Option<&'static str> {
    match constraint {
        "h" => Some("i16"),
        "r" => Some("i32"),
        "l" => Some("i64"),
        "q" => Some("i128"),
        "f" => Some("float"),
        "d" => Some("double"),
        _ => None,
    }
}

/// Defines a function that executes inline PTX. Its only output is returned, or all outputs are
/// stored through the first parameters.
fn define_assembly(function: &Function<'_>, operands: &str, name: &str) -> Result<String, String> {
    let error = |problem: &str| format!("inline PTX `{operands}`: {problem}");
    let mut fields = operands.rsplitn(3, '|');
    let flags = fields.next().unwrap_or_default();
    let constraints = fields.next().ok_or_else(|| error("no constraints"))?;
    let template = fields.next().ok_or_else(|| error("no template"))?;
    let mut outputs = Vec::new();
    let mut inputs = Vec::new();
    // The outputs that the instruction also reads.
    let mut tied = Vec::new();
    for constraint in constraints
        .split(',')
        .filter(|constraint| !constraint.is_empty())
    {
        let is_output = constraint.starts_with(['=', '+']);
        if constraint.starts_with('+') {
            tied.push(outputs.len());
        }
        let letter = constraint.trim_start_matches(['=', '+']);
        let list = if is_output { &mut outputs } else { &mut inputs };
        list.push(
            constraint_type(letter)
                .ok_or_else(|| error("the constraints are `h`, `r`, `l`, `q`, `f` and `d`"))?,
        );
    }
    if !outputs.is_empty() && function.result_type != "void" && !tied.is_empty() {
        return Err(error("an output that is read is a pointer"));
    }
    let effects = match flags.split_once(',') {
        Some((effects, _)) => effects,
        None if required_target(&function.name).is_some() => "",
        None => flags,
    };
    let (effect, attributes, clobbers_memory) = match effects {
        "" => ("sideeffect ", "convergent nounwind", true),
        "nomem" => ("sideeffect ", "convergent nounwind", false),
        "pure" => ("", "nounwind memory(none)", false),
        _ => return Err(error("the flags are `pure`, `nomem` and `sm_NN`")),
    };
    // An operand that is read and written is an output, and an input in the same register.
    let mut constraints = constraints.replace('+', "=");
    for output in &tied {
        let _ = write!(constraints, ",{output}");
    }
    if clobbers_memory {
        constraints += if constraints.is_empty() {
            "~{memory}"
        } else {
            ",~{memory}"
        };
    }
    let is_by_value = outputs.len() == 1 && function.result_type != "void";
    let mut types: Vec<&str> = Vec::new();
    if !is_by_value {
        types.resize(outputs.len(), "ptr");
    }
    let first_input = types.len();
    types.extend(&inputs);
    let expected_result = if is_by_value { outputs[0] } else { "void" };
    if function.parameter_types() != types || function.result_type != expected_result {
        return Err(error(
            "the declaration of the function does not match its constraints",
        ));
    }
    let assembly_result = match outputs[..] {
        [] => "void".to_owned(),
        [ty] => ty.to_owned(),
        _ => format!("{{ {} }}", outputs.join(", ")),
    };
    let mut arguments: Vec<String> = inputs
        .iter()
        .enumerate()
        .map(|(index, ty)| format!("{ty} %{}", first_input + index))
        .collect();
    let mut loads = String::new();
    for output in &tied {
        let ty = outputs[*output];
        let _ = writeln!(loads, "  %t{output} = load {ty}, ptr %{output}");
        arguments.push(format!("{ty} %t{output}"));
    }
    let call = format!(
        "call {assembly_result} asm {effect}\"{}\", \"{constraints}\"({}) {attributes}",
        escape(template.as_bytes()),
        arguments.join(", ")
    );
    // Stores through the parameters are effects of the function, though not of the instruction.
    let function_attributes = match effects {
        "pure" if is_by_value => "nounwind memory(none)",
        "pure" => "nounwind",
        _ => "convergent nounwind",
    };
    let mut body = loads;
    if outputs.is_empty() {
        let _ = writeln!(body, "  {call}");
    } else {
        let _ = writeln!(body, "  %r = {call}");
    }
    if is_by_value {
        let _ = writeln!(body, "  ret {assembly_result} %r");
    } else {
        for (index, ty) in outputs.iter().enumerate() {
            if outputs.len() == 1 {
                let _ = writeln!(body, "  store {ty} %r, ptr %0");
            } else {
                let _ = writeln!(
                    body,
                    "  %v{index} = extractvalue {assembly_result} %r, {index}\n  store {ty} %v{index}, ptr %{index}"
                );
            }
        }
        body += "  ret void\n";
    }
    Ok(format!(
        "define internal {expected_result} @{name}({}) alwaysinline {function_attributes} {{\n{body}}}\n",
        numbered(&types)
    ))
}

/// Returns the contents of a string of LLVM IR.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if (byte.is_ascii_graphic() && *byte != b'"' && *byte != b'\\') || *byte == b' ' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "\\{byte:02X}");
        }
    }
    text
}
