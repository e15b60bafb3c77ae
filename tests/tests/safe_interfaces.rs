//! Rules for the sources of the libraries, without which safe code of other crates could make their
//! `unsafe` code unsound.

#[path = "safe_interfaces/library_memory.rs"]
mod library_memory;
#[path = "safe_interfaces/sources.rs"]
mod sources;
#[path = "safe_interfaces/traits.rs"]
mod traits;
