//! The order of the variables of a PTX module.

use std::collections::BTreeMap;

/// Returns the module with its variables in the order of their names, each after those that its
/// initial value names.
///
/// LLVM emits those that one initial value names in the order of their addresses in its memory,
/// which differs between runs.
pub(crate) fn ordered(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut variables = BTreeMap::new();
    for line in ptx.split_inclusive('\n') {
        if let Some(name) = variable_name(line) {
            variables.insert(name, line);
        } else {
            append(&mut text, std::mem::take(&mut variables));
            text.push_str(line);
        }
    }
    append(&mut text, variables);
    text
}

/// Returns the name of the variable that a line defines, if it defines one at the level of the
/// module.
fn variable_name(line: &str) -> Option<&str> {
    let directives = [".visible ", ".weak ", ".common "]
        .into_iter()
        .fold(line, |line, linkage| {
            line.strip_prefix(linkage).unwrap_or(line)
        });
    let spaces = [".global ", ".const ", ".shared "];
    if !spaces.iter().any(|space| directives.starts_with(space)) {
        return None;
    }
    let declarator = line.split(['=', ';']).next()?.trim_end();
    let name = declarator.rsplit_once(' ')?.1;
    Some(name.split('[').next().unwrap_or(name))
}

/// Appends the lines of variables.
fn append<'a>(text: &mut String, mut variables: BTreeMap<&'a str, &'a str>) {
    while let Some(name) = variables.keys().next().copied() {
        append_with_uses(text, name, &mut variables);
    }
}

/// Appends the line of a variable, after those that its initial value names.
fn append_with_uses<'a>(
    text: &mut String,
    name: &'a str,
    variables: &mut BTreeMap<&'a str, &'a str>,
) {
    // It was appended already, or is no variable.
    let Some(line) = variables.remove(name) else {
        return;
    };
    let mut uses: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$' | '%'))
        .collect();
    uses.sort_unstable();
    for variable in uses {
        append_with_uses(text, variable, variables);
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_variables_come_first() {
        let first = ".global .align 1 .b8 b_2[2] = {1, 2};\n";
        let second = ".global .align 1 .b8 b_3[1] = {3};\n";
        let user = ".visible .global .align 8 .u64 a_1[2] = {generic(b_2), generic(b_3)};\n";
        let shared = ".shared .align 4 .b8 tile[64];\n";
        let end = "\n.func f()\n{\n\t.global .b8 no_variable;\n\tret;\n}\n";
        let expected = format!(".version 7.8\n{first}{second}{user}{shared}{end}");
        for [x, y] in [[first, second], [second, first]] {
            let ptx = format!(".version 7.8\n{shared}{x}{y}{user}{end}");
            assert_eq!(ordered(&ptx), expected);
        }
    }

    #[test]
    fn names_end_before_the_dimensions() {
        assert_eq!(variable_name(".global .align 4 .b8 x[8];\n"), Some("x"));
        assert_eq!(variable_name(".const .f32 y = 0f00000000;\n"), Some("y"));
        assert_eq!(variable_name("\t.local .align 8 .b8 x[8];\n"), None);
        assert_eq!(variable_name(".visible .entry f(\n"), None);
    }
}
