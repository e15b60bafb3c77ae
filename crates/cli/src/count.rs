//! Counts with their nouns.

use std::fmt::Display;

/// Formats a count with its noun: `1 entry`, `2 entries`.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    more: &str,
) -> String {
    let what = if count == N::from(1) { one } else { more };
    format!("{count} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(counted(1_u64, "entry", "entries"), "1 entry");
        assert_eq!(
            [0_usize, 2].map(|count| counted(count, "entry", "entries")),
            ["0 entries", "2 entries"]
        );
    }
}
