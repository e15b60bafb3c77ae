//! The functions and types of the driver API, as the build script read them from the bindings.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::LazyLock;

use curium_sys::Function;

/// A function with its parameters.
pub(crate) struct Signature {
    pub(crate) function: Function,
    pub(crate) parameters: &'static [Parameter],
}

/// A parameter of a function.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
}

/// A type as it is written in a declaration.
pub(crate) enum Type {
    Integer {
        size: usize,
    },
    Float,
    Character,
    Void,
    Callback,
    Pointer {
        target: &'static Type,
        constant: bool,
    },
    Array {
        element: &'static Type,
        length: usize,
    },
    Named(&'static str),
}

/// The definition of a named type.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    shape: Shape,
}

/// The kind of a named type.
enum Shape {
    Alias(Type),
    /// An open newtype with its enumerators.
    Enumeration(&'static [(&'static str, u64)]),
    /// A struct or a union.
    Record(&'static [Field]),
    /// The target of a handle.
    Opaque,
}

/// A member of a struct or union.
struct Field {
    name: &'static str,
    offset: usize,
    ty: Type,
}

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

/// The meaning of a type after its aliases have been followed.
#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    Integer {
        size: usize,
    },
    Float,
    Character,
    Void,
    Callback,
    Enumeration {
        size: usize,
        enumerators: &'static [(&'static str, u64)],
    },
    /// An object of the driver, which a pointer or an integer with a name of its own identifies.
    Handle {
        kind: &'static str,
        size: usize,
    },
    Record {
        name: &'static str,
        definition: &'static Definition,
    },
    Pointer {
        target: &'static Type,
        constant: bool,
    },
    Array {
        element: &'static Type,
        length: usize,
    },
}

/// A member of a record that contains no other record.
pub(crate) struct Leaf {
    /// The names of the members that lead to it, separated by dots.
    pub(crate) path: String,
    pub(crate) offset: usize,
    pub(crate) ty: &'static Type,
}

/// Returns every function, in the order of the list.
pub(crate) fn signatures() -> &'static [Signature] {
    SIGNATURES
}

/// Returns the signature of a function.
pub(crate) fn signature(function: Function) -> &'static Signature {
    &SIGNATURES[function.index()]
}

fn definition(name: &str) -> Option<&'static Definition> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Definition>> = LazyLock::new(|| {
        DEFINITIONS
            .iter()
            .map(|definition| (definition.name, definition))
            .collect()
    });
    BY_NAME.get(name).copied()
}

impl Type {
    /// Follows the aliases of the type.
    pub(crate) fn meaning(&'static self) -> Meaning {
        match self {
            Self::Integer { size } => Meaning::Integer { size: *size },
            Self::Float => Meaning::Float,
            Self::Character => Meaning::Character,
            Self::Void => Meaning::Void,
            Self::Callback => Meaning::Callback,
            Self::Pointer { target, constant } => Meaning::Pointer {
                target,
                constant: *constant,
            },
            Self::Array { element, length } => Meaning::Array {
                element,
                length: *length,
            },
            Self::Named(name) => named_meaning(name),
        }
    }

    /// Returns the size of a value in bytes.
    pub(crate) fn size(&'static self) -> usize {
        match self.meaning() {
            Meaning::Integer { size }
            | Meaning::Enumeration { size, .. }
            | Meaning::Handle { size, .. } => size,
            Meaning::Float => 4,
            Meaning::Character | Meaning::Void => 1,
            Meaning::Callback | Meaning::Pointer { .. } => size_of::<usize>(),
            Meaning::Record { definition, .. } => definition.size,
            Meaning::Array { element, length } => element.size().saturating_mul(length),
        }
    }

    /// Returns the name of the opaque type, if the type is one.
    fn is_opaque(&'static self) -> bool {
        match self {
            Self::Named(name) => definition(name).is_some_and(|target| match &target.shape {
                Shape::Opaque => true,
                Shape::Alias(target) => target.is_opaque(),
                _ => false,
            }),
            _ => false,
        }
    }
}

fn named_meaning(name: &'static str) -> Meaning {
    let Some(definition) = definition(name) else {
        return Meaning::Void;
    };
    match &definition.shape {
        Shape::Alias(target) => match target.meaning() {
            Meaning::Pointer { target, .. } if target.is_opaque() => Meaning::Handle {
                kind: name,
                size: size_of::<usize>(),
            },
            // An integer with a name of CUDA, such as `CUdeviceptr`, identifies an object.
            Meaning::Integer { size } if name.starts_with("CU") => {
                Meaning::Handle { kind: name, size }
            }
            Meaning::Handle { size, .. } => Meaning::Handle { kind: name, size },
            Meaning::Record { definition, .. } => Meaning::Record { name, definition },
            meaning => meaning,
        },
        Shape::Enumeration(enumerators) => Meaning::Enumeration {
            size: definition.size,
            enumerators,
        },
        Shape::Record(_) => Meaning::Record { name, definition },
        Shape::Opaque => Meaning::Void,
    }
}

impl Definition {
    /// Returns the members that contain no other record. Members without a name, and names of rows, are left out of the paths.
    pub(crate) fn leaves(&'static self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.add_leaves("", 0, &mut leaves);
        leaves
    }

    fn add_leaves(&'static self, path: &str, offset: usize, leaves: &mut Vec<Leaf>) {
        let Shape::Record(fields) = &self.shape else {
            return;
        };
        for field in *fields {
            let name = match (path, field.name) {
                (path, name) if name.starts_with("__bindgen_anon") => path.to_owned(),
                ("", name) => name.to_owned(),
                (path, name) => format!("{path}.{name}"),
            };
            let offset = offset.saturating_add(field.offset);
            match field.ty.meaning() {
                Meaning::Record { definition, .. } => definition.add_leaves(&name, offset, leaves),
                Meaning::Array { element, .. } => leaves.push(Leaf {
                    path: name,
                    offset,
                    ty: element,
                }),
                _ => leaves.push(Leaf {
                    path: name,
                    offset,
                    ty: &field.ty,
                }),
            }
        }
    }
}
