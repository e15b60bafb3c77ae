//! The output of `cargo xtask bindings generate`.

pub(crate) mod functions;
mod removed;

#[expect(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::undocumented_unsafe_blocks,
    unsafe_code,
    reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
)]
pub(crate) mod types;

#[cfg(feature = "cublas")]
pub(crate) mod cublas {
    pub(crate) mod functions;
    pub(crate) mod lt_functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        non_upper_case_globals,
        clippy::undocumented_unsafe_blocks,
        unsafe_code,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "cufft")]
pub(crate) mod cufft {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        clippy::undocumented_unsafe_blocks,
        unsafe_code,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "cupti")]
pub(crate) mod cupti {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        clippy::undocumented_unsafe_blocks,
        unsafe_code,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "curand")]
pub(crate) mod curand {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "nccl")]
pub(crate) mod nccl {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        non_upper_case_globals,
        clippy::undocumented_unsafe_blocks,
        unsafe_code,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "nvjitlink")]
pub(crate) mod nvjitlink {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        reason = "these are C's names, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}

#[cfg(feature = "nvrtc")]
pub(crate) mod nvrtc {
    pub(crate) mod functions;
    #[expect(
        missing_docs,
        non_camel_case_types,
        non_snake_case,
        reason = "these are C's names and layouts, generated from the header, whose comments are not copied"
    )]
    pub(crate) mod types;
}
