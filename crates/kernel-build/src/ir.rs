//! The part of LLVM's textual IR that the rewrite needs: functions, globals, calls, and references
//! between them.
//!
//! The text always comes from `llvm-link`, which prints it canonically: entities of the module
//! begin in the first column, and the body of a function ends with a `}` in the first column.
//! Within an entity everything is read token by token, so that names and strings with any
//! characters are read correctly. What the parser does not know is an error, never skipped.

mod lexer;
mod module;

pub(crate) use self::lexer::{Token, bytes, lex, name};
pub(crate) use self::module::{Call, Callee, Function, Global, Instruction, Line, Module};
