//! A program: what is compiled.

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
    /// A program of one source, which diagnostics call `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self { name: name.into(), source: source.into(), headers: Vec::new(), expressions: Vec::new() }
    }

    /// A program from the file at `path`, under that name: what the source includes is looked for beside it.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, or is not UTF-8.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(source) => Ok(Self::new(name, source)),
            Err(error) => Err(Error::File { path: name.into(), error }),
        }
    }

    /// The same with a header: `#include "name"` and `#include <name>` give `source`.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, source: impl Into<String>) -> Self {
        self.headers.push((name.into(), source.into()));
        self
    }

    /// The same with a name to ask for: the instance of a template such as `scale<float>`, an overload, or a variable such as
    /// `&ns::table`. It is compiled even if nothing uses it, and
    /// [`CompiledProgram::lowered_name`](crate::CompiledProgram::lowered_name) tells what it is called in the image.
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

    /// The source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of the source or of a header by its name.
    pub(crate) fn text(&self, file: &str) -> Option<&str> {
        if file == self.name {
            return Some(&self.source);
        }
        self.headers.iter().find(|(name, _)| name == file).map(|(_, text)| text.as_str())
    }
}

impl From<&str> for Program {
    /// A program of one source, which diagnostics call `source.cu`.
    fn from(source: &str) -> Self {
        Self::new("source.cu", source)
    }
}

impl From<String> for Program {
    /// A program of one source, which diagnostics call `source.cu`.
    fn from(source: String) -> Self {
        Self::new("source.cu", source)
    }
}
