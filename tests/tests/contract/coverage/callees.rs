//! What the body of a function calls, as far as its text tells.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprCall, ExprClosure, ExprForLoop, ExprIf, ExprLet, ExprMatch, ExprMethodCall, ExprPath, ExprWhile,
    FnArg, Local, Macro, Path, Token,
};

use super::foreign;
use super::known_type::KnownType;
use super::source::{Body, Parameters};
use super::type_index::TypeIndex;

/// A function that another may call.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Callee {
    /// A function of no type, by the module that it is looked for in first.
    Free(String, String),
    /// `Type::function`.
    OfType(String, String),
    /// The same of a field's type, which need not be one of the crates'.
    OfField(String, String),
    /// A method of a value of this type, with the number of its arguments.
    OfValue(String, String, usize),
    /// A method of a value of a type that is not known, with the number of its arguments.
    Method(String, usize),
    /// A function of a type that is not known.
    Associated(String),
}

/// Collects what is called.
pub(super) struct Callees<'a> {
    pub(super) types: &'a TypeIndex,
    /// The type whose method this is.
    pub(super) owner: Option<String>,
    pub(super) module: String,
    /// The parameters of the function and of its type: they stand for any type.
    parameters: Parameters,
    /// What is bound to a name, where its type is known.
    pub(super) bound: BTreeMap<String, Option<KnownType>>,
    pub(super) callees: BTreeSet<Callee>,
    /// Whether `call!` is used.
    pub(super) calls_driver: bool,
}

impl fmt::Display for Callee {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(module, name) => write!(formatter, "{module}::{name}"),
            Self::OfType(owner, name) | Self::OfField(owner, name) => write!(formatter, "{owner}::{name}"),
            Self::OfValue(owner, name, _) => write!(formatter, "{owner}.{name}"),
            Self::Method(name, _) | Self::Associated(name) => write!(formatter, "….{name}"),
        }
    }
}

impl<'a> Callees<'a> {
    /// What a function calls.
    pub(super) fn of(types: &'a TypeIndex, function: &Body) -> Self {
        let mut callees = Self {
            types,
            owner: function.owner.clone(),
            module: function.module.clone(),
            parameters: function.parameters.clone(),
            bound: BTreeMap::new(),
            callees: BTreeSet::new(),
            calls_driver: false,
        };
        function.signature.inputs.iter().for_each(|input| callees.bind_input(input));
        function.block.iter().for_each(|block| callees.visit_block(block));
        callees
    }

    fn bind_input(&mut self, input: &FnArg) {
        let owner = self.owner.as_deref();
        match input {
            FnArg::Receiver(_) => drop(self.bound.insert("self".to_owned(), owner.map(KnownType::named))),
            FnArg::Typed(input) => self.bind(&input.pat, KnownType::of(&input.ty, owner)),
        }
    }

    /// Visits what has names of its own, which end with it.
    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = self.bound.clone();
        visit(self);
        self.bound = before;
    }

    /// Whether `name` is that of another crate's type.
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        self.types.is_foreign(name) && !self.parameters.contains_key(name)
    }

    /// The function that a path means: none if it is a name that something is bound to.
    fn add_path(&mut self, path: &Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match names.as_slice() {
            [.., owner, name] if owner.starts_with(char::is_uppercase) => self.add_of_type(owner, name),
            [.., module, name] if !["crate", "self", "super"].contains(&module.as_str()) => {
                self.callees.insert(Callee::Free(module.clone(), name.clone()));
            }
            [name] if self.bound.contains_key(name) => {}
            [.., name] => self.add_free(name),
            [] => {}
        }
    }

    fn add_free(&mut self, name: &str) {
        self.callees.insert(Callee::Free(self.module.clone(), name.to_owned()));
    }

    fn add_of_type(&mut self, owner: &str, name: &str) {
        if name.starts_with(char::is_uppercase) {
            return;
        }
        let owner = if owner == "Self" { self.owner.clone().unwrap_or_default() } else { owner.to_owned() };
        let name = name.to_owned();
        match self.parameters.get(&owner) {
            Some(traits) => {
                self.callees.extend(self.types.own_traits(traits).map(|it| Callee::OfType(it, name.clone())));
            }
            None if self.is_foreign(&owner) => {}
            None if self.types.aliases.contains(&owner) => drop(self.callees.insert(Callee::Associated(name))),
            None => drop(self.callees.insert(Callee::OfType(owner, name))),
        }
    }

    fn add_method(&mut self, receiver: Option<&KnownType>, name: &str, arguments: usize) {
        let method = |owner: String| Callee::OfValue(owner, name.to_owned(), arguments);
        let Some(known) = receiver.filter(|known| !self.types.aliases.contains(&known.name)) else {
            self.callees.insert(Callee::Method(name.to_owned(), arguments));
            return;
        };
        match self.parameters.get(&known.name) {
            Some(traits) => self.callees.extend(self.types.own_traits(traits).map(method)),
            // Only a trait of these crates can give such a value methods of theirs.
            None if self.is_foreign(&known.name) => {
                self.callees.extend(self.types.traits_of_foreign(name).map(method));
            }
            None => drop(self.callees.insert(method(known.name.clone()))),
        }
    }

    /// What a macro is given, where it is no list of values: a name in front of parentheses is taken for a call.
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
            [.., TokenTree::Ident(receiver), TokenTree::Punct(dot)] if dot.as_char() == '.' => {
                let known = self.bound.get(&receiver.to_string()).cloned().flatten();
                self.add_method(known.as_ref(), name, arguments);
            }
            [.., TokenTree::Punct(dot)] if dot.as_char() == '.' => self.add_method(None, name, arguments),
            _ if self.bound.contains_key(name) => {}
            _ => self.add_free(name),
        }
    }

    /// Visits arguments, of which closures are given `input`.
    fn visit_arguments<'e>(&mut self, arguments: impl IntoIterator<Item = &'e Expr>, input: Option<&KnownType>) {
        for argument in arguments {
            match argument {
                Expr::Closure(closure) => self.visit_closure(closure, input),
                other => self.visit_expr(other),
            }
        }
    }

    /// Visits a closure that is given `input` if it is given one value.
    fn visit_closure(&mut self, closure: &ExprClosure, input: Option<&KnownType>) {
        self.scoped(|callees| {
            let input = input.filter(|_| closure.inputs.len() == 1);
            closure.inputs.iter().for_each(|pattern| callees.bind(pattern, input.cloned()));
            visit::visit_expr_closure(callees, closure);
        });
    }

    /// Functions that are passed on, as in `map(convert)`.
    fn add_passed<'e>(&mut self, arguments: impl IntoIterator<Item = &'e Expr>) {
        for argument in arguments {
            if let Expr::Path(path) = argument {
                self.add_path(&path.path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Callees<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        self.add_passed(&call.args);
        match &*call.func {
            Expr::Path(path) => self.add_path(&path.path),
            other => self.visit_expr(other),
        }
        let input = self.function_of(call).and_then(|function| self.types.closure_input_of(&function));
        self.visit_arguments(&call.args, input.as_ref());
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let receiver = self.type_of(&call.receiver);
        self.add_method(receiver.as_ref(), &call.method.to_string(), call.args.len());
        self.add_passed(&call.args);
        self.visit_expr(&call.receiver);
        let method = call.method.to_string();
        let input = receiver.and_then(|known| match self.is_foreign(&known.name) {
            true => foreign::closure_input(&known, &method),
            false => self.types.closure_input_of(&format!("{}::{method}", known.name)),
        });
        self.visit_arguments(&call.args, input.as_ref());
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if path.path.segments.len() > 1 {
            self.add_path(&path.path);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        visit::visit_local(self, local);
        match &local.init {
            Some(init) => {
                let known = self.type_of(&init.expr);
                self.bind(&local.pat, known);
            }
            None => self.bind(&local.pat, None),
        }
    }

    fn visit_expr_let(&mut self, condition: &'ast ExprLet) {
        visit::visit_expr_let(self, condition);
        let known = self.type_of(&condition.expr);
        self.bind(&condition.pat, known);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.scoped(|callees| visit::visit_block(callees, block));
    }

    fn visit_expr_if(&mut self, choice: &'ast ExprIf) {
        self.scoped(|callees| visit::visit_expr_if(callees, choice));
    }

    fn visit_expr_while(&mut self, repeated: &'ast ExprWhile) {
        self.scoped(|callees| visit::visit_expr_while(callees, repeated));
    }

    fn visit_expr_for_loop(&mut self, repeated: &'ast ExprForLoop) {
        let known = self.type_of(&repeated.expr).and_then(|known| known.element());
        self.scoped(|callees| {
            callees.bind(&repeated.pat, known);
            visit::visit_expr_for_loop(callees, repeated);
        });
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.visit_closure(closure, None);
    }

    fn visit_expr_match(&mut self, choice: &'ast ExprMatch) {
        self.visit_expr(&choice.expr);
        let known = self.type_of(&choice.expr);
        for arm in &choice.arms {
            self.scoped(|callees| {
                callees.bind(&arm.pat, known.clone());
                callees.visit_arm(arm);
            });
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.calls_driver |= call.path.segments.last().is_some_and(|last| last.ident == "call");
        let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(call.tokens.clone());
        match values {
            Ok(values) => values.iter().for_each(|value| self.visit_expr(value)),
            Err(_) => self.add_tokens(call.tokens.clone()),
        }
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
