//! Options of compilations.

mod code;
mod cuda_headers;
mod diagnostics;
mod language;
mod precompiled;

pub use self::code::{FastCompile, TileMode};
pub use self::diagnostics::WarningKind;
pub use self::language::LanguageStandard;
use crate::Architecture;

/// Options of a compilation. The default is NVRTC's: PTX for the oldest architecture that it supports.
///
/// The last value of an option counts, except that folders, macros and similar lists accumulate. If NVRTC is too old for an option,
/// the error of the compilation names the option.
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

/// One option as NVRTC takes it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Argument {
    name: String,
    /// Behind an `=`.
    value: Option<String>,
}

impl CompileOptions {
    /// NVRTC's own defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { arguments: Vec::new() }
    }

    /// The same for another architecture: PTX for a virtual one, a cubin for a [real](Architecture::real) one.
    ///
    /// NVRTC: `--gpu-architecture`.
    #[doc(alias = "gpu-architecture")]
    #[must_use]
    pub fn with_architecture(self, architecture: impl Into<Architecture>) -> Self {
        self.set("--gpu-architecture", &architecture.into().to_string())
    }

    /// The same with one more option as NVRTC takes it, such as `--std=c++17`. It is neither checked nor compared with the others.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.arguments.push(Argument { name: option.into(), value: None });
        self
    }

    /// Returns `true` if an architecture is set, by type or as a plain option.
    pub(crate) fn has_architecture(&self) -> bool {
        let is_architecture = |name: &str| name.starts_with("--gpu-architecture") || name.starts_with("-arch");
        self.arguments.iter().any(|argument| is_architecture(&argument.name))
    }

    /// All options as NVRTC takes them.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let text = |argument: &Argument| match &argument.value {
            Some(value) => format!("{}={value}", argument.name),
            None => argument.name.clone(),
        };
        self.arguments.iter().map(text).collect()
    }

    /// The option `name`, which has no value, once.
    fn flag(mut self, name: &str) -> Self {
        self.arguments.retain(|argument| argument.name != name);
        self.with_option(name)
    }

    /// The option `name` with this value alone.
    fn set(mut self, name: &str, value: &str) -> Self {
        self.arguments.retain(|argument| argument.name != name);
        self.add(name, value)
    }

    /// The option `name` with this value too.
    fn add(mut self, name: &str, value: &str) -> Self {
        self.arguments.push(Argument { name: name.to_owned(), value: Some(value.to_owned()) });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_that_is_set_twice_has_its_last_value() {
        let options = CompileOptions::new().with_flush_to_zero(true).with_fast_math().with_fast_math();
        let options = options.with_flush_to_zero(false).with_architecture(Architecture::new(8, 9).real());
        assert_eq!(options.to_arguments(), ["--use_fast_math", "--ftz=false", "--gpu-architecture=sm_89"]);
        assert!(CompileOptions::new().to_arguments().is_empty());
    }

    #[test]
    fn options_that_add_up_are_all_there_in_their_order() {
        let options = CompileOptions::new().with_include_path("/a").with_macro("X").with_macro_value("Y", "2");
        let options = options.with_include_path("/b").with_option("-lineinfo");
        let expected =
            ["--include-path=/a", "--define-macro=X", "--define-macro=Y=2", "--include-path=/b", "-lineinfo"];
        assert_eq!(options.to_arguments(), expected);
    }
}
