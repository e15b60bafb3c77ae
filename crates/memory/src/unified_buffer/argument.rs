//! Managed buffers as kernel arguments.

use super::UnifiedBuffer;
use crate::device_slice::{WholeMut, argument_as};

argument_as!([T] UnifiedBuffer<T>: |buffer| buffer.as_slice(), WholeMut::new(buffer.pointer, &mut buffer.tracked));
