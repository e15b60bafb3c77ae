//! Structural comparison of declarations: the ABI, regardless of the names of types.

use syn::Type;

use super::surface::{Record, Surface};

/// Compares the types of two surfaces.
///
/// Aliases are followed. Types with one name are the same (their layouts are compared on their own); types with two names are
/// the same if they are built alike.
pub(crate) struct Structure<'a> {
    theirs: &'a Surface,
    ours: &'a Surface,
}

impl<'a> Structure<'a> {
    pub(crate) fn new(theirs: &'a Surface, ours: &'a Surface) -> Self {
        Self { theirs, ours }
    }

    /// Returns `true` if both functions have the same parameters and result.
    pub(crate) fn same_signature(&self, theirs: &syn::Signature, ours: &syn::Signature) -> bool {
        theirs.inputs.len() == ours.inputs.len()
            && theirs
                .inputs
                .iter()
                .zip(&ours.inputs)
                .all(|(theirs, ours)| match (theirs, ours) {
                    (syn::FnArg::Typed(theirs), syn::FnArg::Typed(ours)) => {
                        self.same_type(&theirs.ty, &ours.ty)
                    }
                    _ => false,
                })
            && self.same_return(&theirs.output, &ours.output)
    }

    /// Returns `true` if both types have the same ABI and meaning.
    pub(crate) fn same_type(&self, theirs: &Type, ours: &Type) -> bool {
        self.same(theirs, ours, &mut Vec::new())
    }

    /// Compares two types; `open` holds the pairs of records being compared, so that recursive records terminate.
    fn same(&self, theirs: &Type, ours: &Type, open: &mut Vec<(String, String)>) -> bool {
        match (follow(theirs, self.theirs), follow(ours, self.ours)) {
            (Type::Ptr(theirs), Type::Ptr(ours)) => {
                theirs.mutability.is_some() == ours.mutability.is_some()
                    && self.same(&theirs.elem, &ours.elem, open)
            }
            (Type::Array(theirs), Type::Array(ours)) => {
                theirs.len == ours.len && self.same(&theirs.elem, &ours.elem, open)
            }
            (Type::BareFn(theirs), Type::BareFn(ours)) => self.same_callback(theirs, ours, open),
            (Type::Path(theirs), Type::Path(ours)) => match (argument(theirs), argument(ours)) {
                (Some(theirs), Some(ours)) => self.same(theirs, ours, open),
                (None, None) => self.same_name(&last(theirs), &last(ours), open),
                _ => false,
            },
            (theirs, ours) => theirs == ours,
        }
    }

    fn same_callback(
        &self,
        theirs: &syn::TypeBareFn,
        ours: &syn::TypeBareFn,
        open: &mut Vec<(String, String)>,
    ) -> bool {
        theirs.inputs.len() == ours.inputs.len()
            && theirs
                .inputs
                .iter()
                .zip(&ours.inputs)
                .all(|(theirs, ours)| self.same(&theirs.ty, &ours.ty, open))
            && self.same_return(&theirs.output, &ours.output)
    }

    fn same_return(&self, theirs: &syn::ReturnType, ours: &syn::ReturnType) -> bool {
        match (theirs, ours) {
            (syn::ReturnType::Type(_, theirs), syn::ReturnType::Type(_, ours)) => {
                self.same_type(theirs, ours)
            }
            (syn::ReturnType::Default, syn::ReturnType::Default) => true,
            _ => false,
        }
    }

    fn same_name(&self, theirs: &str, ours: &str, open: &mut Vec<(String, String)>) -> bool {
        if theirs == ours || open.iter().any(|(a, b)| a == theirs && b == ours) {
            return true;
        }
        if let (Some(theirs), Some(ours)) =
            (self.theirs.enums.get(theirs), self.ours.enums.get(ours))
        {
            return theirs == ours;
        }
        let (Some(record), Some(our_record)) =
            (self.theirs.records.get(theirs), self.ours.records.get(ours))
        else {
            return false;
        };
        open.push((theirs.to_owned(), ours.to_owned()));
        let same = self.same_record(record, our_record, open);
        open.pop();
        same
    }

    fn same_record(
        &self,
        theirs: &Record,
        ours: &Record,
        open: &mut Vec<(String, String)>,
    ) -> bool {
        (theirs.size, theirs.alignment, theirs.fields.len())
            == (ours.size, ours.alignment, ours.fields.len())
            && theirs.fields.iter().all(|(name, theirs)| {
                let ours = ours.fields.get(name);
                ours.is_some_and(|ours| {
                    theirs.offset == ours.offset && self.same(&theirs.ty, &ours.ty, open)
                })
            })
    }
}

/// Returns the type that `ty` refers to after all aliases.
fn follow<'a>(mut ty: &'a Type, surface: &'a Surface) -> &'a Type {
    while let Type::Path(path) = ty
        && let Some(target) = path
            .path
            .get_ident()
            .and_then(|name| surface.aliases.get(&name.to_string()))
    {
        ty = target;
    }
    ty
}

/// Returns the `T` of `Option<T>`.
pub(super) fn argument(path: &syn::TypePath) -> Option<&Type> {
    let syn::PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments
    else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

/// Returns the name after the last `::`.
fn last(path: &syn::TypePath) -> String {
    path.path
        .segments
        .last()
        .map(|segment| segment.ident.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(text: &str) -> Surface {
        Surface::read(&syn::parse_file(text).expect("it is Rust"))
            .expect("it has the form of bindgen's output")
    }

    fn node(name: &str, kind: &str) -> Surface {
        surface(&format!(
            r#"pub type CUnode = {name};
            pub struct {name} {{ pub next: *mut {name}, pub kind: {kind} }}
            const _: () = {{
                ["Size of {name}"][::core::mem::size_of::<{name}>() - 16usize];
                ["Alignment of {name}"][::core::mem::align_of::<{name}>() - 8usize];
                ["Offset of field: {name}::next"][::core::mem::offset_of!({name}, next) - 0usize];
                ["Offset of field: {name}::kind"][::core::mem::offset_of!({name}, kind) - 8usize];
            }};"#
        ))
    }

    fn same(theirs: &Surface, ours: &Surface, left: &str, right: &str) -> bool {
        let left = syn::parse_str(left).expect("a type");
        let right = syn::parse_str(right).expect("a type");
        Structure::new(theirs, ours).same_type(&left, &right)
    }

    #[test]
    fn renamed_record_that_points_to_itself_is_the_same() {
        assert!(same(
            &node("old_st", "u64"),
            &node("new_st", "u64"),
            "*mut CUnode",
            "*mut CUnode"
        ));
    }

    #[test]
    fn renamed_record_with_other_fields_differs() {
        assert!(!same(
            &node("old_st", "u64"),
            &node("new_st", "i64"),
            "*mut CUnode",
            "*mut CUnode"
        ));
    }

    #[test]
    fn aliases_are_followed() {
        let theirs = surface("pub type CUdeviceptr = ::core::ffi::c_ulonglong;");
        let ours = surface(
            "pub type CUdeviceptr_v2 = ::core::ffi::c_ulonglong; pub type CUdeviceptr = CUdeviceptr_v2;",
        );
        assert!(same(&theirs, &ours, "*mut CUdeviceptr", "*mut CUdeviceptr"));
        assert!(!same(
            &theirs,
            &ours,
            "*mut CUdeviceptr",
            "*const CUdeviceptr"
        ));
        assert!(!same(&theirs, &ours, "CUdeviceptr", "::core::ffi::c_uint"));
    }

    #[test]
    fn callbacks_with_other_parameters_are_not_the_same() {
        let empty = Surface::default();
        let callback = "::core::option::Option<unsafe extern \"C\" fn(data: *mut u8)>";
        assert!(same(
            &empty,
            &empty,
            callback,
            &callback.replace("data", "userData")
        ));
        assert!(!same(
            &empty,
            &empty,
            callback,
            &callback.replace("u8", "u16")
        ));
    }
}
