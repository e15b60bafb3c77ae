//! Conventions of the sources, which are checked for every item.

#[path = "conventions/error_types.rs"]
mod error_types;
#[path = "conventions/manifests.rs"]
mod manifests;
#[path = "conventions/operations.rs"]
mod operations;
#[path = "conventions/pages.rs"]
mod pages;
#[path = "conventions/runtime_names.rs"]
mod runtime_names;
#[path = "conventions/sources.rs"]
mod sources;
