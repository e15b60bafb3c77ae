//! The output of `cargo xtask bindings generate`.

pub(crate) mod nvjitlink {
    pub(crate) mod functions;
    #[expect(
        non_camel_case_types,
        unreachable_pub,
        reason = "these are C's names, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

pub(crate) mod nvrtc {
    pub(crate) mod functions;
    #[expect(
        non_camel_case_types,
        non_snake_case,
        unreachable_pub,
        dead_code,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}
