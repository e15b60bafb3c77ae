//! What the body of a function calls, as far as its text tells.

use std::collections::BTreeSet;
use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, Macro, Path};

/// A function that another may call.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Callee {
    /// A function of no type, by the module that it is looked for in first, or one that was passed in.
    Free(String, String),
    /// `Type::function`.
    OfType(String, String),
    /// A method of `self`, with the number of its arguments.
    OfSelf(String, usize),
    /// A method of some value, with the number of its arguments.
    Method(String, usize),
}

/// Methods of the standard library's collections, ranges, locks and writers, and those that only give a part of a value. Functions of
/// these crates that call the driver have some of the names as well, and no other function of these crates calls those on a value.
const STANDARD: &[&str] = &[
    "as_bytes",
    "as_pointer",
    "as_raw",
    "as_ref",
    "cast",
    "clear",
    "driver",
    "end",
    "get",
    "kind",
    "load",
    "lock",
    "name",
    "pop",
    "push",
    "remove",
    "to_vec",
    "write",
];

/// Collects what is called.
#[derive(Default)]
pub(super) struct Callees {
    /// The type whose method this is.
    owner: Option<String>,
    module: String,
    pub(super) callees: BTreeSet<Callee>,
    /// Whether `call!` is used.
    pub(super) calls_driver: bool,
}

impl fmt::Display for Callee {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(module, name) => write!(formatter, "{module}::{name}"),
            Self::OfType(owner, name) => write!(formatter, "{owner}::{name}"),
            Self::OfSelf(name, _) => write!(formatter, "self.{name}"),
            Self::Method(name, _) => write!(formatter, "….{name}"),
        }
    }
}

impl Callees {
    /// A call of the driver and nothing else.
    pub(super) fn of_driver() -> Self {
        Self { calls_driver: true, ..Self::default() }
    }

    pub(super) fn new(module: &str, owner: Option<&str>) -> Self {
        Self { owner: owner.map(str::to_owned), module: module.to_owned(), ..Self::default() }
    }

    fn add_path(&mut self, path: &Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match names.as_slice() {
            [.., owner, name] if owner.starts_with(char::is_uppercase) => self.add_of_type(owner, name),
            [.., module, name] if !["crate", "self", "super"].contains(&module.as_str()) => {
                self.callees.insert(Callee::Free(module.clone(), name.clone()));
            }
            [.., name] => self.add_free(name),
            [] => {}
        }
    }

    fn add_free(&mut self, name: &str) {
        self.callees.insert(Callee::Free(self.module.clone(), name.to_owned()));
    }

    fn add_of_type(&mut self, owner: &str, name: &str) {
        let owner = if owner == "Self" { self.owner.clone().unwrap_or_default() } else { owner.to_owned() };
        self.callees.insert(Callee::OfType(owner, name.to_owned()));
    }

    fn add_method(&mut self, name: &str, arguments: usize) {
        if !STANDARD.contains(&name) {
            self.callees.insert(Callee::Method(name.to_owned(), arguments));
        }
    }

    /// What a macro is given is not parsed: a name in front of parentheses is taken for a call.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            if group.delimiter() == Delimiter::Parenthesis
                && let Some((TokenTree::Ident(name), before)) = tokens[..index].split_last()
            {
                self.add_named(&name.to_string(), before, arguments(group.stream()));
            }
            self.add_tokens(group.stream());
        }
    }

    fn add_named(&mut self, name: &str, before: &[TokenTree], arguments: usize) {
        match before {
            [.., TokenTree::Ident(owner), TokenTree::Punct(first), TokenTree::Punct(second)]
                if first.as_char() == ':' && second.as_char() == ':' =>
            {
                self.add_of_type(&owner.to_string(), name);
            }
            [.., TokenTree::Ident(receiver), TokenTree::Punct(dot)] if dot.as_char() == '.' && receiver == "self" => {
                self.callees.insert(Callee::OfSelf(name.to_owned(), arguments));
            }
            [.., TokenTree::Punct(dot)] if dot.as_char() == '.' => self.add_method(name, arguments),
            _ => self.add_free(name),
        }
    }
}

impl<'ast> Visit<'ast> for Callees {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        for argument in &call.args {
            if let Expr::Path(path) = argument {
                self.add_path(&path.path);
            }
        }
        if let Expr::Path(path) = &*call.func {
            self.add_path(&path.path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        let is_of_self = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
        if is_of_self {
            self.callees.insert(Callee::OfSelf(name, call.args.len()));
        } else {
            self.add_method(&name, call.args.len());
        }
        for argument in &call.args {
            if let Expr::Path(path) = argument {
                self.add_path(&path.path);
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if path.path.segments.len() > 1 {
            self.add_path(&path.path);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.calls_driver |=
            call.path.is_ident("call") || call.path.segments.last().is_some_and(|last| last.ident == "call");
        self.add_tokens(call.tokens.clone());
    }
}

/// How many arguments a call is given, of which a comma may stand behind the last.
fn arguments(tokens: TokenStream) -> usize {
    let mut pieces = 0;
    let mut is_begin = true;
    for token in tokens {
        if matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ',') {
            is_begin = true;
        } else if std::mem::take(&mut is_begin) {
            pieces += 1;
        }
    }
    pieces
}
