//! How a program is compiled.

use crate::Architecture;

/// How a program is compiled. The default is NVRTC's own: the oldest architecture that it knows, and no headers.
///
/// ```
/// use curium_nvrtc::{Architecture, CompileOptions};
///
/// let options = CompileOptions::new()
///     .with_architecture(Architecture::new(7, 5))
///     .with_header("scale.h", "#define SCALE 3")
///     .with_option("--std=c++17");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompileOptions {
    /// What is compiled for.
    pub architecture: Option<Architecture>,
    /// Headers by the name under which they are included, with their text.
    pub headers: Vec<(String, String)>,
    /// Options as NVRTC takes them, such as `--std=c++17` or `--include-path=/opt/include`, after those made from the rest.
    pub options: Vec<String>,
}

impl CompileOptions {
    /// NVRTC's own defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { architecture: None, headers: Vec::new(), options: Vec::new() }
    }

    /// The same for another architecture.
    #[must_use]
    pub fn with_architecture(mut self, architecture: impl Into<Architecture>) -> Self {
        self.architecture = Some(architecture.into());
        self
    }

    /// The same with a header: `#include "name"` gives `source`.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, source: impl Into<String>) -> Self {
        self.headers.push((name.into(), source.into()));
        self
    }

    /// The same with one more option, as NVRTC takes it.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// All options as NVRTC takes them.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let architecture = self.architecture.map(|architecture| format!("--gpu-architecture={architecture}"));
        architecture.into_iter().chain(self.options.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architecture_comes_before_the_options_as_they_are() {
        let options = CompileOptions::new().with_option("-lineinfo").with_architecture(Architecture::new(8, 9));
        assert_eq!(options.to_arguments(), ["--gpu-architecture=compute_89", "-lineinfo"]);
        assert!(CompileOptions::new().to_arguments().is_empty());
    }
}
