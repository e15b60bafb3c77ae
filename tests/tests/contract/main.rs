//! Properties of every driver, one file per object: tested on the simulator, or with
//! `CURIUM_TEST_DRIVER=cuda` on this machine's driver.

#![cfg_attr(
    not(unix),
    allow(
        dead_code,
        unused_imports,
        reason = "operations on file descriptors are left out"
    )
)]

mod argument;
mod array;
mod attribute;
#[cfg(not(miri))]
mod behavior;
mod blas;
mod blas_lt;
mod borrowed_buffer;
mod bounce;
mod buffer_constructors;
mod caching;
mod capture;
mod capture_closure;
mod capture_scope;
mod check;
mod checked_test;
mod checkpoint;
mod completion;
mod context;
mod context_stack;
mod copy;
#[cfg(unix)]
mod core_dump;
mod coverage;
mod created_context;
mod cuda_error;
mod device;
mod device_buffer;
mod device_lookup;
mod device_slice;
mod device_vec;
mod disk_cache;
mod driver;
mod error;
mod event;
mod event_pool;
#[cfg(not(miri))]
mod external;
mod extremes;
mod fault;
mod fft;
mod foreign_code;
mod future;
mod global;
mod graph;
mod green_context;
mod hazard;
mod hook;
mod host_function;
mod host_memory;
mod image;
#[cfg(not(miri))]
mod ipc_memory;
mod jit;
mod kernel;
mod kernel_attribute;
mod kernel_list;
mod kernel_struct;
mod kernels;
mod launch_attribute;
mod lease;
mod library;
mod library_memory;
mod library_safety;
mod limit;
mod linker;
mod log;
#[cfg(not(miri))]
mod managed_memory;
mod memory_pool;
mod module;
#[cfg(not(miri))]
mod nccl;
mod neutrality;
mod notification;
mod null_handle;
mod numa;
mod occupancy;
mod operations;
mod peer;
mod pending_copy;
mod pinned_buffer;
mod pinned_cache;
mod platform;
mod pointer_info;
mod primary_context;
mod process;
mod profiler;
#[cfg(not(miri))]
mod ptx_version;
mod rand;
mod random_program;
mod reclaiming;
mod reentry;
mod release;
mod resource;
mod resource_adaptor;
mod resource_table;
mod returned;
#[cfg(not(miri))]
mod rust_kernel;
#[cfg(not(miri))]
mod rust_kernel_hopper;
mod schedule;
mod snapshot;
mod soak;
mod staging;
mod sticky;
mod stream;
mod stream_attribute;
mod stream_memory_operation;
mod stream_pool;
mod stream_raw;
mod subscriber;
mod teardown;
mod tensor_map;
mod texture;
mod threads;
mod trace;
#[cfg(not(miri))]
mod training_step;
#[cfg(not(miri))]
mod two_devices;
mod two_processes;
mod user_code;
mod virtual_memory;
#[cfg(windows)]
mod win32;
