//! A live object.

use std::backtrace::Backtrace;
use std::fmt;
use std::sync::Arc;

use curium_sys::Function;

use crate::origin::{Origin, caller_frames};

/// A live object and its origin.
///
/// Its text is a line, with a line for each frame of the caller's stack below, if stacks are kept
/// ([`Config::with_backtraces`](crate::Config::with_backtraces)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveObject {
    /// The kind of object, such as `stream` or `device allocation`.
    pub kind: &'static str,
    /// Its handle as a number, or its address.
    pub handle: u64,
    /// The size in bytes; `None` if it is not memory.
    pub size: Option<u64>,
    /// The handle of the context that it belongs to, if any.
    pub context: Option<u64>,
    /// The handle of the stream for stream-ordered memory; 0 and 1 are the default streams.
    pub stream: Option<u64>,
    /// The call that created it.
    pub made_by: Option<Function>,
    /// The stack of that call, if stacks are kept.
    pub backtrace: Option<Arc<Backtrace>>,
    /// A number that increases with each created object.
    pub(crate) number: u64,
}

impl LiveObject {
    pub(crate) fn new(kind: &'static str, handle: u64, origin: &Origin) -> Self {
        let Origin {
            function,
            backtrace,
            number,
        } = origin.clone();
        Self {
            kind,
            handle,
            size: None,
            context: None,
            stream: None,
            made_by: function,
            backtrace,
            number,
        }
    }

    pub(crate) fn with_context(self, context: u64) -> Self {
        // Number 0 stands for no context.
        Self {
            context: Some(context).filter(|context| *context != 0),
            ..self
        }
    }

    pub(crate) fn with_size(self, size: u64) -> Self {
        Self {
            size: Some(size),
            ..self
        }
    }
}

impl fmt::Display for LiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(size) => write!(f, "{} of {size} bytes at {:#x}", self.kind, self.handle)?,
            None => write!(f, "{} {:#x}", self.kind, self.handle)?,
        }
        if let Some(context) = self.context {
            write!(f, " in context {context:#x}")?;
        }
        if let Some(function) = self.made_by {
            write!(f, ", made by {function}")?;
        }
        if let Some(stream) = self.stream {
            write!(f, " on stream {stream:#x}")?;
        }
        let frames = self
            .backtrace
            .iter()
            .flat_map(|backtrace| caller_frames(&backtrace.to_string()));
        frames
            .into_iter()
            .try_for_each(|frame| write!(f, "\n    from {frame}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_the_kind_and_the_creating_call() {
        let origin = Origin {
            function: Some(Function::cuMemAllocAsync),
            backtrace: None,
            number: 1,
        };
        let object = LiveObject::new("stream", 0x1000, &origin);
        assert_eq!(object.to_string(), "stream 0x1000, made by cuMemAllocAsync");
        let memory = LiveObject {
            stream: Some(2),
            ..object.with_size(100).with_context(0x20)
        };
        assert_eq!(
            memory.to_string(),
            "stream of 100 bytes at 0x1000 in context 0x20, made by cuMemAllocAsync on stream 0x2"
        );
        assert_eq!(memory.with_context(0).context, None);
    }
}
