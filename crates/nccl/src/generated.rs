//! The output of `cargo xtask bindings generate`.

pub(crate) mod nccl {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        non_upper_case_globals,
        clippy::undocumented_unsafe_blocks,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}
