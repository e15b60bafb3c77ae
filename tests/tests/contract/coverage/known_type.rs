//! The types of values, as far as they are written beside their names.

use syn::punctuated::Punctuated;
use syn::{GenericArgument, PathArguments, Token, Type, TypeParamBound};

use super::source::Parameters;

/// A type by its name, without references and pointers around it: `&Arc<Stream>` is `Stream`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct KnownType {
    pub(super) name: String,
    /// What stands in angle brackets: nothing for what is not known.
    arguments: Vec<Option<KnownType>>,
}

/// What stands for a parameter of a type until a value of the type is known.
pub(super) const PARAMETER: &str = "?";

/// Types of the standard library that stand for what is in them.
const POINTERS: &[&str] =
    &["Arc", "Box", "ManuallyDrop", "ExclusiveGuard", "MutexGuard", "RwLockReadGuard", "RwLockWriteGuard", "Rc"];

/// Types of the standard library without parameters: nothing of these crates can be in them.
const OPAQUE: &[&str] = &["CString", "DirBuilder", "File", "Instant", "OpenOptions", "PathBuf", "String"];

impl KnownType {
    pub(super) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), arguments: vec![] }
    }

    pub(super) fn around(name: &str, inner: Option<Self>) -> Self {
        Self { name: name.to_owned(), arguments: vec![inner] }
    }

    /// What a function of another crate's type gives, which is mostly a value of the type.
    pub(super) fn made_by(owner: &str) -> Self {
        if OPAQUE.contains(&owner) { Self::named(owner) } else { Self::around(owner, None) }
    }

    pub(super) fn tuple(parts: impl Iterator<Item = Option<Self>>) -> Self {
        Self { name: "tuple".to_owned(), arguments: parts.collect() }
    }

    /// Whether it has no parameters, so that nothing is in it that could be of these crates.
    pub(super) fn is_opaque(&self) -> bool {
        self.arguments.is_empty()
    }

    /// A part of a tuple.
    pub(super) fn part(&self, index: usize) -> Option<Self> {
        self.arguments.get(index).cloned().flatten().filter(|_| self.name == "tuple")
    }

    /// The type that is written, with `owner` for `Self`. A type that depends on another's parameters is not known.
    pub(super) fn of(written: &Type, owner: Option<&str>) -> Option<Self> {
        match written {
            Type::Reference(reference) => Self::of(&reference.elem, owner),
            Type::Paren(inner) => Self::of(&inner.elem, owner),
            Type::Group(inner) => Self::of(&inner.elem, owner),
            Type::Slice(slice) => Some(Self::around("slice", Self::of(&slice.elem, owner))),
            Type::Array(array) => Some(Self::around("slice", Self::of(&array.elem, owner))),
            Type::Ptr(_) => Some(Self::around("pointer", None)),
            Type::Tuple(tuple) => Some(Self::tuple(tuple.elems.iter().map(|part| Self::of(part, owner)))),
            Type::ImplTrait(of_traits) => bounds(&of_traits.bounds).next().map(|name| Self::around(&name, None)),
            Type::TraitObject(of_traits) => bounds(&of_traits.bounds).next().map(|name| Self::around(&name, None)),
            Type::Path(path) if path.qself.is_none() => Self::of_path(&path.path, owner),
            _ => None,
        }
    }

    fn of_path(path: &syn::Path, owner: Option<&str>) -> Option<Self> {
        let last = path.segments.last()?;
        let depends = path.segments.len() > 1
            && path.segments.iter().rev().nth(1).is_some_and(|it| it.ident.to_string().starts_with(char::is_uppercase));
        if depends {
            return None;
        }
        if last.ident == "Self" {
            return owner.map(Self::named);
        }
        let arguments = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => arguments.args.iter().collect(),
            _ => vec![],
        };
        let types = arguments.into_iter().filter_map(|argument| match argument {
            GenericArgument::Type(inner) => Some(Self::of(inner, owner)),
            _ => None,
        });
        let known = Self { name: last.ident.to_string(), arguments: types.collect() };
        if POINTERS.contains(&known.name.as_str()) { known.inner() } else { Some(known) }
    }

    /// The type with its parameters marked as such.
    pub(super) fn without(mut self, parameters: &Parameters) -> Self {
        if parameters.contains_key(&self.name) {
            return Self::named(PARAMETER);
        }
        self.arguments = self.arguments.into_iter().map(|it| it.map(|known| known.without(parameters))).collect();
        self
    }

    /// The type with what the only parameter of `owner` is.
    pub(super) fn with(mut self, owner: &Self) -> Option<Self> {
        if self.name == PARAMETER {
            return if owner.arguments.len() == 1 { owner.inner() } else { None };
        }
        self.arguments = self.arguments.into_iter().map(|it| it.and_then(|known| known.with(owner))).collect();
        Some(self)
    }

    /// What a function of the file system gives, also as an error.
    pub(super) fn of_file_system() -> Self {
        let part = Some(Self::named("fs"));
        Self { name: "Result".to_owned(), arguments: vec![part.clone(), part] }
    }

    /// The error of a result.
    pub(super) fn error(&self) -> Option<Self> {
        self.argument(1)
    }

    /// What an option, a result, a lock or a vector is made of, and the values of a map.
    pub(super) fn inner(&self) -> Option<Self> {
        self.argument(usize::from(self.is_map())).filter(|_| self.name != "tuple")
    }

    /// What is in a type of another crate without parameters is of that crate as well.
    fn argument(&self, index: usize) -> Option<Self> {
        let own = OPAQUE.contains(&self.name.as_str()).then(|| self.clone());
        self.arguments.get(index).cloned().flatten().or(own)
    }

    fn is_map(&self) -> bool {
        self.name.ends_with("Map")
    }

    /// What is seen of a vector or a map by going through it.
    pub(super) fn element(&self) -> Option<Self> {
        if self.is_map() { None } else { self.inner() }
    }
}

/// The traits that a type is bound to have, by name.
pub(super) fn bounds(bounds: &Punctuated<TypeParamBound, Token![+]>) -> impl Iterator<Item = String> {
    bounds.iter().filter_map(|bound| match bound {
        TypeParamBound::Trait(bound) => Some(bound.path.segments.last()?.ident.to_string()),
        _ => None,
    })
}
