//! Patterns for the spellings of instructions: `ld{.weak,}.global.{u8,s8}` expands to four.

/// Expands a pattern: braces contain comma-separated alternatives, and may be nested.
pub(crate) fn expand(pattern: &str) -> Vec<String> {
    let Some((head, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let (choices, tail) = choices(rest);
    let tails = expand(tail);
    let heads = choices.into_iter().flat_map(expand);
    heads
        .flat_map(|choice| {
            tails
                .iter()
                .map(move |tail| format!("{head}{choice}{tail}"))
        })
        .collect()
}

/// Expands a pattern in which names are replaced by their definitions.
pub(crate) fn expand_named(pattern: &str, names: &[(&str, &str)]) -> Vec<String> {
    expand(
        &names
            .iter()
            .fold(pattern.to_owned(), |pattern, (name, text)| {
                pattern.replace(name, text)
            }),
    )
}

/// Returns the alternatives in the braces whose opening brace precedes this text, and the text
/// after them.
fn choices(text: &str) -> (Vec<&str>, &str) {
    let mut depth = 1;
    let mut begin = 0;
    let mut spellings = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && character == ',' {
            spellings.push(&text[begin..at]);
            begin = at + 1;
        }
        if depth == 0 {
            return (spellings, &text[begin..]);
        }
    }
    panic!("unbalanced braces: {text}");
}

#[test]
fn pattern_expands() {
    assert_eq!(
        expand("a{.b,}{.c{1,2},.d}"),
        ["a.b.c1", "a.b.c2", "a.b.d", "a.c1", "a.c2", "a.d"]
    );
    assert_eq!(expand("plain"), ["plain"]);
}
