//! What methods of other crates' types give: the standard library's, as far as they can give a value of these crates' own types.

use super::known_type::KnownType;

/// Methods of other crates' types that give what is in a value: in an option, a lock, a vector.
const OPENING: &[&str] = &[
    "borrow",
    "borrow_mut",
    "expect",
    "first",
    "first_mut",
    "force",
    "get",
    "get_mut",
    "get_or_init",
    "or_default",
    "or_insert",
    "or_insert_with",
    "into_inner",
    "last",
    "lock",
    "read",
    "unwrap",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "write",
];

/// Methods of other crates' types that give the same type again.
const KEEPING: &[&str] =
    &["as_deref", "as_mut", "as_ref", "clone", "cloned", "copied", "map_err", "ok_or", "ok_or_else", "or_else", "take"];

/// Methods of other crates' types that give the elements one after the other, or some of them.
const ELEMENTS: &[&str] = &[
    "chain",
    "cloned",
    "copied",
    "drain",
    "filter",
    "into_iter",
    "iter",
    "iter_mut",
    "rev",
    "skip",
    "step_by",
    "take_while",
];

/// Methods of other crates' types whose closure is given an element, or what is inside.
const OF_ELEMENTS: &[&str] = &[
    "all",
    "and_then",
    "any",
    "filter",
    "filter_map",
    "find",
    "find_map",
    "flat_map",
    "for_each",
    "inspect",
    "is_none_or",
    "is_some_and",
    "map",
    "position",
    "retain",
    "take_while",
    "try_for_each",
];

/// Methods of other crates' types that give no value of one of the crates' own types.
pub(super) const PLAIN: &[&str] = &[
    "as_bytes",
    "as_encoded_bytes",
    "as_os_str",
    "as_str",
    "bytes",
    "chars",
    "chunks",
    "collect",
    "count",
    "enumerate",
    "filter_map",
    "flat_map",
    "into_keys",
    "iter",
    "join",
    "keys",
    "len",
    "lines",
    "load",
    "map",
    "ok",
    "split",
    "split_once",
    "sum",
    "swap",
    "to_owned",
    "to_string",
    "to_vec",
    "trim",
    "windows",
    "zip",
];

/// What `method` of a value of another crate's type gives.
pub(super) fn result(receiver: &KnownType, method: &str) -> Option<KnownType> {
    match method {
        _ if receiver.is_opaque() => Some(receiver.clone()),
        _ if OPENING.contains(&method) => receiver.inner(),
        "split_at" => Some(KnownType::tuple([Some(receiver.clone()), Some(receiver.clone())].into_iter())),
        "split_at_checked" => Some(KnownType::around("Option", result(receiver, "split_at"))),
        "as_chunks" => Some(KnownType::tuple([Some(KnownType::around("slice", None)), None].into_iter())),
        "entry" => Some(KnownType::around("entry", receiver.inner())),
        "values" | "values_mut" | "into_values" => Some(KnownType::around("iterator", receiver.inner())),
        _ if ELEMENTS.contains(&method) && receiver.name != "Option" => {
            Some(KnownType::around("iterator", receiver.element()))
        }
        _ if KEEPING.contains(&method) => Some(receiver.clone()),
        _ if PLAIN.contains(&method) => Some(KnownType::around(method, None)),
        _ => None,
    }
}

/// What `method` of a value of another crate's type gives to its closure.
pub(super) fn closure_input(receiver: &KnownType, method: &str) -> Option<KnownType> {
    match method {
        "try_with" | "with" => receiver.inner(),
        _ if OF_ELEMENTS.contains(&method) => receiver.element(),
        _ => None,
    }
}
