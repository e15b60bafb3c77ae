//! The C ABI of the CUDA driver: generated types, one table of functions, and the loader.
