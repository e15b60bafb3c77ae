//! Compilation options.

mod code;
mod cuda_headers;
mod diagnostics;
mod language;
mod precompiled;

pub use self::code::{FastCompile, TileMode};
pub use self::diagnostics::WarningKind;
pub use self::language::LanguageStandard;
use crate::Architecture;

/// Compilation options. The defaults are NVRTC's: PTX for the oldest architecture that it supports.
///
/// The last value of an option takes precedence, except that lists such as folders and macros
/// accumulate. If NVRTC is too old for an option, the compilation error names the option.
///
/// ```
/// use curium_nvrtc::{Architecture, CompileOptions, LanguageStandard};
///
/// let options = CompileOptions::new()
///     .with_architecture(Architecture::new(7, 5))
///     .with_standard(LanguageStandard::Cxx17)
///     .with_macro_value("SCALE", "3")
///     .with_fast_math();
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CompileOptions {
    arguments: Vec<Argument>,
}

/// An option for NVRTC.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Argument {
    name: String,
    /// The value after `=`.
    value: Option<String>,
}

impl CompileOptions {
    /// Returns NVRTC's default options.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arguments: Vec::new(),
        }
    }

    /// Sets the architecture. The output is PTX for a virtual architecture, and a cubin for a
    /// [real](Architecture::real) one.
    ///
    /// NVRTC: `--gpu-architecture`.
    #[doc(alias = "gpu-architecture")]
    #[must_use]
    pub fn with_architecture(self, architecture: impl Into<Architecture>) -> Self {
        self.set("--gpu-architecture", &architecture.into().to_string())
    }

    /// Adds an option in NVRTC's spelling, such as `--std=c++17`. It is neither checked nor
    /// compared with other options.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.arguments.push(Argument {
            name: option.into(),
            value: None,
        });
        self
    }

    /// Returns `true` if an architecture is set, by [`with_architecture`](Self::with_architecture)
    /// or as a raw option.
    pub(crate) fn has_architecture(&self) -> bool {
        self.arguments.iter().any(|argument| {
            argument.name.starts_with("--gpu-architecture") || argument.name.starts_with("-arch")
        })
    }

    /// Returns `true` if debug information or line numbers are requested.
    pub(crate) fn has_debug_information(&self) -> bool {
        const OPTIONS: [&str; 4] = ["--device-debug", "-G", "--generate-line-info", "-lineinfo"];
        self.arguments
            .iter()
            .any(|argument| OPTIONS.contains(&&*argument.name))
    }

    /// Returns all options in NVRTC's spelling.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        self.arguments
            .iter()
            .map(|argument| match &argument.value {
                Some(value) => format!("{}={value}", argument.name),
                None => argument.name.clone(),
            })
            .collect()
    }

    /// Adds the option `name`, which has no value, once.
    fn flag(mut self, name: &str) -> Self {
        self.arguments.retain(|argument| argument.name != name);
        self.with_option(name)
    }

    /// Sets the option `name` to this value, replacing others.
    fn set(mut self, name: &str, value: &str) -> Self {
        self.arguments.retain(|argument| argument.name != name);
        self.add(name, value)
    }

    /// Adds a value of the option `name`.
    fn add(mut self, name: &str, value: &str) -> Self {
        self.arguments.push(Argument {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_that_is_set_twice_has_its_last_value() {
        let options = CompileOptions::new()
            .with_flush_to_zero(true)
            .with_fast_math()
            .with_fast_math();
        let options = options
            .with_flush_to_zero(false)
            .with_architecture(Architecture::new(8, 9).real());
        assert_eq!(
            options.to_arguments(),
            ["--use_fast_math", "--ftz=false", "--gpu-architecture=sm_89"]
        );
        assert!(CompileOptions::new().to_arguments().is_empty());
    }

    #[test]
    fn options_that_add_up_are_all_there_in_their_order() {
        let options = CompileOptions::new()
            .with_include_path("/a")
            .with_macro("X")
            .with_macro_value("Y", "2");
        let options = options.with_include_path("/b").with_option("-lineinfo");
        let expected = [
            "--include-path=/a",
            "--define-macro=X",
            "--define-macro=Y=2",
            "--include-path=/b",
            "-lineinfo",
        ];
        assert_eq!(options.to_arguments(), expected);
    }
}
