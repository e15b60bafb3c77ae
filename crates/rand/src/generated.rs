//! The output of `cargo xtask bindings generate`.

pub(crate) mod curand {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}
