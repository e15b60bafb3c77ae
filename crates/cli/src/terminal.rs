//! Colors of the output.

use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal;

use clap::ValueEnum;

/// The value of `--color`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The decision about colors for one output stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Colors(bool);

/// A color that every terminal has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Color {
    Green,
    Yellow,
    Red,
    Blue,
}

impl ColorChoice {
    /// Decides whether to color the output on `stream`.
    pub(crate) fn on(self, stream: &impl IsTerminal) -> Colors {
        self.decide(env::var_os("NO_COLOR").as_deref(), stream.is_terminal())
    }

    /// Honors `NO_COLOR` unless it is empty: see <https://no-color.org>.
    fn decide(self, no_color: Option<&OsStr>, is_terminal: bool) -> Colors {
        Colors(match self {
            Self::Auto => is_terminal && no_color.is_none_or(OsStr::is_empty),
            Self::Always => true,
            Self::Never => false,
        })
    }
}

impl Colors {
    /// No colors.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self(false);

    /// Returns `true` if the stream has colors.
    pub(crate) fn are_on(self) -> bool {
        self.0
    }

    /// Returns `text` in bold letters of this color, or unchanged without colors.
    pub(crate) fn paint(self, color: Color, text: &str) -> String {
        let number = match color {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            Color::Blue => 34,
        };
        if self.0 {
            format!("\x1b[1;{number}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NO_COLOR` has no effect if it is empty or if colors are requested.
    #[test]
    fn no_color_is_honored() {
        let set = Some(OsStr::new("1"));
        assert_eq!(ColorChoice::Auto.decide(None, true), Colors(true));
        assert_eq!(
            ColorChoice::Auto.decide(Some(OsStr::new("")), true),
            Colors(true)
        );
        assert_eq!(ColorChoice::Auto.decide(set, true), Colors(false));
        assert_eq!(ColorChoice::Auto.decide(None, false), Colors(false));
        assert_eq!(ColorChoice::Always.decide(set, false), Colors(true));
        assert_eq!(ColorChoice::Never.decide(None, true), Colors(false));
    }

    #[test]
    fn paint_ends_its_color() {
        assert_eq!(Colors(true).paint(Color::Red, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(Colors(false).paint(Color::Red, "x"), "x");
    }
}
