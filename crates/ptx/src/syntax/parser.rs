//! The parser: builds a [`Module`] from tokens. Each file of this folder adds the methods for one
//! part of the grammar.

mod body;
mod call;
mod computed;
mod declaration;
mod expression;
mod function;
mod header;
mod initializer;
mod instruction;
mod module;
mod operand;

use std::collections::HashMap;
use std::sync::Arc;

use curium_format::PtxVersion;

use super::ast::{Function, FunctionId, Instruction, Module};
use super::error::{Error, ErrorKind, Span};
use super::lexer::{Token, TokenKind, tokens};
use super::name::Name;
use super::operand::Symbol;
use super::scope::Scopes;
use super::validate::{Signature, Unmet};
use super::variable::Variable;

/// The maximum nesting of scopes, initializers and constant expressions.
const MAX_DEPTH: usize = 64;

/// Parses `source`, whose version is at most `newest`.
pub(super) fn parse(source: &str, newest: PtxVersion) -> Result<Module, Error> {
    if u32::try_from(source.len()).is_err() {
        return Err(Error::new(
            ErrorKind::Limit,
            Span { line: 1, column: 1 },
            format!("the text exceeds 4 GiB ({} bytes)", source.len()),
        ));
    }
    let mut parser = Parser::new(source, newest)?;
    parser.module_items()?;
    parser.module.source = Arc::from(source);
    Ok(parser.module)
}

/// The state of a parse.
struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
    module: Module,
    /// The names in module scope.
    symbols: HashMap<Name, Symbol>,
    /// The signature of each function, by [`FunctionId`].
    signatures: Vec<Signature>,
    /// The requirements that the module's version and target do not meet.
    unmet: Unmet,
    /// The current function.
    function: Function,
    /// Its open scopes.
    scopes: Scopes,
    /// The used bytes of the next load, if a pragma specifies them.
    used_bytes: Option<u32>,
    /// The instructions that compute operands such as `%r1 + 4` and `a[%r1]` of the current
    /// instruction.
    computations: Vec<Instruction>,
    /// The depth of the current initializer or expression.
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, newest: PtxVersion) -> Result<Self, Error> {
        let mut parser = Self {
            tokens: tokens(source),
            position: 0,
            module: header::empty_module(),
            symbols: HashMap::new(),
            signatures: Vec::new(),
            unmet: Unmet::default(),
            function: function::empty_function(),
            scopes: Scopes::default(),
            used_bytes: None,
            computations: Vec::new(),
            depth: 0,
        };
        parser.header(newest)?;
        parser.unmet = Unmet::for_module(&parser.module);
        Ok(parser)
    }

    /// Returns the next token, or the end token at the end.
    fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token<'a> {
        let last = self.tokens.len() - 1;
        self.tokens[(self.position + ahead).min(last)]
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// Consumes the next token if it is `symbol`.
    fn accept(&mut self, symbol: &str) -> bool {
        let is_next = self.peek().is(symbol);
        self.position += usize::from(is_next);
        is_next
    }

    /// Consumes the next token if it is `.word`.
    fn accept_dot(&mut self, word: &str) -> bool {
        let is_next = self.peek().is_dot(word);
        self.position += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<Token<'a>, Error> {
        if self.peek().is(symbol) {
            Ok(self.advance())
        } else {
            Err(self.unexpected(&format!("'{symbol}'")))
        }
    }

    /// Consumes a word; `what` names the expected one in an error.
    fn word(&mut self, what: &str) -> Result<Token<'a>, Error> {
        if self.peek().kind == TokenKind::Word {
            Ok(self.advance())
        } else {
            Err(self.unexpected(what))
        }
    }

    /// Consumes a string.
    fn string(&mut self) -> Result<&'a str, Error> {
        if self.peek().kind == TokenKind::Text {
            Ok(self.advance().text)
        } else {
            Err(self.unexpected("a string"))
        }
    }

    /// Consumes an unsigned 32-bit integer.
    fn u32(&mut self, what: &str) -> Result<u32, Error> {
        let token = self.peek();
        match token.kind {
            TokenKind::Integer(value, _) => {
                let value = u32::try_from(value)
                    .map_err(|_| self.unexpected(&format!("{what} below 2^32")))?;
                self.advance();
                Ok(value)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Creates an error for the next token. An invalid token provides its own description.
    fn unexpected(&self, expected: &str) -> Error {
        Self::unexpected_at(&self.peek(), expected)
    }

    fn unexpected_at(token: &Token<'_>, expected: &str) -> Error {
        match token.kind {
            TokenKind::Invalid(problem) => {
                Error::syntax(token.span, format!("{problem} ({})", token.quote()))
            }
            _ => Error::unexpected(token.span, expected, &token.quote()),
        }
    }

    /// Creates an error for a problem at the next token.
    fn problem(&self, problem: &str) -> Error {
        Self::problem_at(&self.peek(), problem)
    }

    fn problem_at(token: &Token<'_>, problem: &str) -> Error {
        Error::syntax(token.span, format!("{problem} ({})", token.quote()))
    }

    fn limit_at(token: &Token<'_>, problem: impl Into<String>) -> Error {
        Error::new(ErrorKind::Limit, token.span, problem)
    }

    fn unknown_name(token: &Token<'_>) -> Error {
        Error::syntax(token.span, format!("unknown name {}", token.quote()))
    }

    fn unknown_function(token: &Token<'_>) -> Error {
        Error::syntax(token.span, format!("unknown function {}", token.quote()))
    }

    fn duplicate_at(token: &Token<'_>) -> Error {
        let name = token.quote();
        Error::syntax(
            token.span,
            format!("{name} is already declared in this scope"),
        )
    }

    fn duplicate_variable(&self, variable: &Variable) -> Error {
        Error::syntax(
            variable.span,
            format!(
                "'{}' is already declared in this scope",
                self.module.text(variable.name)
            ),
        )
    }

    fn intern(&mut self, text: &str) -> Name {
        self.module.names.intern(text)
    }

    /// Runs `read` at the next nesting level, up to the limit.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Self::limit_at(
                &self.peek(),
                format!("more than {MAX_DEPTH} levels of nesting"),
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips to the `}` that matches the `{` just consumed.
    fn skip_braces(&mut self) -> Result<(), Error> {
        let mut open = 1usize;
        while open > 0 {
            let token = self.peek();
            if token.kind == TokenKind::End {
                return Err(self.unexpected("'}'"));
            }
            open = open + usize::from(token.is("{")) - usize::from(token.is("}"));
            self.advance();
        }
        Ok(())
    }

    /// Returns the function with a name in module scope.
    fn function_named(&self, name: Name) -> Option<FunctionId> {
        match self.symbols.get(&name) {
            Some(Symbol::Function(id)) => Some(*id),
            _ => None,
        }
    }
}
