//! Names of functions and variables as their sources have them.

use std::borrow::Cow;

use cpp_demangle::Symbol;

/// Returns the name in C++ or Rust of a mangled symbol, and other names unchanged.
pub(crate) fn demangled(symbol: &str) -> Cow<'_, str> {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    if symbol.starts_with("_Z")
        && let Ok(parsed) = Symbol::new(symbol)
        && let Ok(name) = parsed.demangle()
    {
        return Cow::Owned(name);
    }
    Cow::Borrowed(symbol)
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_match_the_source() {
        for (symbol, name) in [
            ("saxpy", "saxpy"),
            ("_Z5saxpyfPKfPf", "saxpy(float, float const*, float*)"),
            ("_ZN3app5tiles3addE", "app::tiles::add"),
            ("_RNvCs4fqI2P2rA04_3app4main", "app::main"),
            ("_ZN3app4main17h0123456789abcdefE", "app::main"),
            ("_Zero", "_Zero"),
            ("", ""),
        ] {
            assert_eq!(demangled(symbol), name);
        }
    }
}
