//! User code is contained: sources of the libraries name no macro of `tracing` and no uncontained
//! `extern "C"` function, and a subscriber that always panics does no harm.
#![cfg(not(miri))]

#[path = "user_code/panicking_subscriber.rs"]
mod panicking_subscriber;
#[path = "user_code/sources.rs"]
mod sources;
