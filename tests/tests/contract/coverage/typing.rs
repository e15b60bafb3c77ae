//! The types of expressions, and of what patterns give names to.

use syn::{Block, Expr, ExprCall, ExprMethodCall, Lit, Member, Pat, Stmt};

use super::callees::Callees;
use super::foreign;
use super::known_type::KnownType;

impl Callees<'_> {
    /// Notes what a pattern gives names to.
    pub(super) fn bind(&mut self, pattern: &Pat, known: Option<KnownType>) {
        match pattern {
            Pat::Ident(name) if name.ident.to_string().starts_with(char::is_uppercase) => {}
            Pat::Ident(name) => drop(self.bound.insert(name.ident.to_string(), known)),
            Pat::Type(typed) => {
                let written = KnownType::of(&typed.ty, self.owner.as_deref());
                self.bind(&typed.pat, written.filter(|written| written.name != "_").or(known));
            }
            Pat::Reference(inner) => self.bind(&inner.pat, known),
            Pat::Paren(inner) => self.bind(&inner.pat, known),
            Pat::Guard(inner) => self.bind(&inner.pat, known),
            Pat::TupleStruct(outer) => {
                let name = outer.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                let inner = known.and_then(|known| match name.as_str() {
                    "Some" | "Ok" => known.inner(),
                    "Err" => known.error(),
                    _ => None,
                });
                outer.elems.iter().for_each(|pattern| self.bind(pattern, inner.clone()));
            }
            Pat::Struct(outer) => {
                let name = outer.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                let name = if name == "Self" { self.owner.clone().unwrap_or_default() } else { name };
                for field in &outer.fields {
                    let Member::Named(member) = &field.member else { continue };
                    let known = self.types.field(&KnownType::named(&name), &member.to_string());
                    self.bind(&field.pat, known);
                }
            }
            Pat::Tuple(outer) => {
                for (index, pattern) in outer.elems.iter().enumerate() {
                    let part = known.as_ref().and_then(|known| known.part(index));
                    self.bind(pattern, part);
                }
            }
            Pat::Slice(outer) => {
                let inner = known.and_then(|known| known.inner());
                outer.elems.iter().for_each(|pattern| self.bind(pattern, inner.clone()));
            }
            Pat::Or(outer) => outer.cases.iter().for_each(|pattern| self.bind(pattern, known.clone())),
            _ => {}
        }
    }

    /// The type of an expression, if it is written somewhere.
    pub(super) fn type_of(&self, value: &Expr) -> Option<KnownType> {
        match value {
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                self.bound.get(&name).cloned().unwrap_or_else(|| self.types.of_static(&name))
            }
            Expr::Field(field) => {
                let name = match &field.member {
                    Member::Named(name) => name.to_string(),
                    Member::Unnamed(index) => index.index.to_string(),
                };
                let base = self.type_of(&field.base)?;
                if let Member::Unnamed(index) = &field.member
                    && let Some(part) = base.part(index.index as usize)
                {
                    return Some(part);
                }
                if base.is_opaque() && self.is_foreign(&base.name) {
                    Some(base)
                } else {
                    self.types.field(&base, &name)
                }
            }
            Expr::MethodCall(call) => self.type_of_method(call),
            Expr::Call(call) => self.type_of_call(call),
            Expr::Try(tried) => self.type_of(&tried.expr)?.inner(),
            Expr::Index(index) => {
                let is_range = matches!(&*index.index, Expr::Range(_));
                self.type_of(&index.expr).and_then(|known| if is_range { Some(known) } else { known.inner() })
            }
            Expr::Reference(inner) => self.type_of(&inner.expr),
            Expr::Unary(inner) => self.type_of(&inner.expr),
            Expr::Paren(inner) => self.type_of(&inner.expr),
            Expr::Group(inner) => self.type_of(&inner.expr),
            Expr::Cast(cast) => KnownType::of(&cast.ty, self.owner.as_deref()),
            Expr::Unsafe(block) => self.type_of_block(&block.block),
            Expr::Block(block) => self.type_of_block(&block.block),
            Expr::If(choice) => self.type_of_block(&choice.then_branch),
            Expr::Struct(made) => {
                let name = made.path.segments.last()?.ident.to_string();
                Some(KnownType::around(if name == "Self" { self.owner.as_deref()? } else { &name }, None))
            }
            Expr::Repeat(array) => Some(KnownType::around("slice", self.type_of(&array.expr))),
            Expr::Tuple(tuple) => Some(KnownType::tuple(tuple.elems.iter().map(|value| self.type_of(value)))),
            Expr::Array(array) => Some(KnownType::around("slice", array.elems.first().and_then(|it| self.type_of(it)))),
            Expr::Lit(literal) => {
                Some(KnownType::named(if matches!(literal.lit, Lit::Str(_)) { "str" } else { "literal" }))
            }
            Expr::Range(_) => Some(KnownType::around("Range", None)),
            Expr::Binary(sum) => self.type_of(&sum.left).filter(|known| !self.types.own.contains(&known.name)),
            Expr::Macro(made) => {
                let name = made.mac.path.segments.last()?.ident.to_string();
                match name.as_str() {
                    "format" => Some(KnownType::named("String")),
                    "vec" | "call" => Some(KnownType::around(&name, None)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn type_of_block(&self, block: &Block) -> Option<KnownType> {
        match block.stmts.last()? {
            Stmt::Expr(value, None) => self.type_of(value),
            _ => None,
        }
    }

    fn type_of_method(&self, call: &ExprMethodCall) -> Option<KnownType> {
        let method = call.method.to_string();
        let Some(receiver) = self.type_of(&call.receiver) else { return self.types.any_result(&method) };
        if self.types.own.contains(&receiver.name) {
            let exact = self.types.method_result(&receiver, &method);
            return exact.or_else(|| (method == "clone").then_some(receiver));
        }
        if !self.is_foreign(&receiver.name) {
            return None;
        }
        foreign::result(&receiver, &method)
    }

    fn type_of_call(&self, call: &ExprCall) -> Option<KnownType> {
        let Expr::Path(path) = &*call.func else { return None };
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match names.as_slice() {
            [.., owner, name] if owner.starts_with(char::is_uppercase) => {
                let owner = if owner == "Self" { self.owner.as_deref()? } else { owner };
                let is_maker = ["Arc", "Box", "ManuallyDrop", "Rc"].contains(&owner) && name == "new";
                let is_same = ["Arc", "Rc"].contains(&owner) && name == "clone";
                if is_maker || is_same {
                    return self.type_of(call.args.first()?);
                }
                if name.starts_with(char::is_uppercase) {
                    return Some(KnownType::around(owner, None));
                }
                if self.is_foreign(owner) {
                    let makes = ["from", "new", "open", "options", "with_capacity"].contains(&name.as_str());
                    return makes.then(|| KnownType::made_by(owner));
                }
                self.types.result(&format!("{owner}::{name}"))
            }
            [.., name] if ["Some", "Ok"].contains(&name.as_str()) => {
                let inner = call.args.first().and_then(|value| self.type_of(value));
                Some(KnownType::around("Option", inner))
            }
            [.., name] if name == "Self" => self.owner.as_deref().map(KnownType::named),
            [.., name] if name.starts_with(char::is_uppercase) => Some(KnownType::around(name, None)),
            [.., module, _] if module == "fs" => Some(KnownType::of_file_system()),
            [.., module, _] if module == "iter" => Some(KnownType::around("iterator", None)),
            [.., module, name] => self.types.result(&format!("{module}::{name}")),
            [name] => self.types.result(&format!("{}::{name}", self.module)),
            [] => None,
        }
    }

    /// The function of the crates that is called by its path.
    pub(super) fn function_of(&self, call: &ExprCall) -> Option<String> {
        let Expr::Path(path) = &*call.func else { return None };
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match names.as_slice() {
            [.., owner, name] if owner == "Self" => Some(format!("{}::{name}", self.owner.as_deref()?)),
            [.., owner, name] => Some(format!("{owner}::{name}")),
            [name] => Some(format!("{}::{name}", self.module)),
            [] => None,
        }
    }
}
