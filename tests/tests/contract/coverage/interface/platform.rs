//! Items that exist on some platforms only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// Returns `true` if a `cfg` attribute removes the item on the platform of the tests.
pub(super) fn is_absent(attributes: &[Attribute]) -> bool {
    let conditions = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    conditions
        .filter_map(|attribute| attribute.parse_args::<Meta>().ok())
        .any(|condition| !holds(&condition))
}

/// Returns `true` if a condition holds. Conditions other than those on the operating system do.
fn holds(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) if name.is_ident("unix") => cfg!(unix),
        Meta::Path(name) if name.is_ident("windows") => cfg!(windows),
        Meta::NameValue(pair) if pair.path.is_ident("target_os") => {
            let name = quote::ToTokens::to_token_stream(&pair.value).to_string();
            name.trim_matches('"') == std::env::consts::OS
        }
        Meta::List(list) => {
            let parts = list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .unwrap_or_default();
            match () {
                () if list.path.is_ident("all") => parts.iter().all(holds),
                () if list.path.is_ident("any") => parts.iter().any(holds),
                () if list.path.is_ident("not") => !parts.iter().all(holds),
                () => true,
            }
        }
        _ => true,
    }
}
