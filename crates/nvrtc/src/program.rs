//! Programs: the input of a compilation.

use std::path::Path;

use crate::{Error, Result};

/// A CUDA C++ program: a source, the headers that it includes, and name expressions.
///
/// ```
/// use curium_nvrtc::Program;
///
/// let program = Program::new("scale.cu", "#include \"scale.h\"\ntemplate<class T> __global__ void scale(T* x) { *x *= SCALE; }")
///     .with_header("scale.h", "#define SCALE 3")
///     .with_name_expression("scale<float>");
/// # let _ = program;
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) expressions: Vec<String>,
}

impl Program {
    /// Creates a program from a source. Diagnostics refer to it as `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            source: source.into(),
            headers: Vec::new(),
            expressions: Vec::new(),
        }
    }

    /// Creates a program from the file at `path`, which also becomes its name. Includes are
    /// searched for in the file's folder.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, or is not UTF-8.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(source) => Ok(Self::new(name, source)),
            Err(error) => Err(Error::File {
                path: name.into(),
                error,
            }),
        }
    }

    /// Adds a header: `#include "name"` and `#include <name>` include `source`.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, source: impl Into<String>) -> Self {
        self.headers.push((name.into(), source.into()));
        self
    }

    /// Adds a name expression: a template instance such as `scale<float>`, an overload, or a
    /// variable such as `&ns::table`. It is compiled even if nothing uses it, and
    /// [`CompiledProgram::lowered_name`](crate::CompiledProgram::lowered_name) returns its name in
    /// the image.
    #[doc(alias = "nvrtcAddNameExpression")]
    #[must_use]
    pub fn with_name_expression(mut self, expression: impl Into<String>) -> Self {
        self.expressions.push(expression.into());
        self
    }

    /// Returns the name of the source in diagnostics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the text of the source or of a header, by name.
    pub(crate) fn file_text(&self, file: &str) -> Option<&str> {
        if file == self.name {
            return Some(&self.source);
        }
        self.headers
            .iter()
            .find(|(name, _)| name == file)
            .map(|(_, text)| text.as_str())
    }
}

impl From<&str> for Program {
    /// Creates a program from a source, which diagnostics call `source.cu`.
    fn from(source: &str) -> Self {
        Self::new("source.cu", source)
    }
}

impl From<String> for Program {
    /// Creates a program from a source, which diagnostics call `source.cu`.
    fn from(source: String) -> Self {
        Self::new("source.cu", source)
    }
}
