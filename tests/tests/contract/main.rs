//! What holds on every driver, one file per object: run on the simulator, and with `CURIUM_TEST_DRIVER=cuda` on this machine's.

mod context;
mod device;
mod device_buffer;
mod driver;
mod error;
mod event;
mod event_pool;
mod fault;
mod future;
mod hazard;
mod host_function;
mod kernel;
mod kernels;
mod library;
mod module;
mod neutrality;
mod operations;
mod pinned_buffer;
mod release;
mod sticky;
mod stream;
mod stream_attribute;
mod stream_foreign;
mod stream_memory_operation;
mod stream_pool;
