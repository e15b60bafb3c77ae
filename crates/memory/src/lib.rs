//! CUDA device and pinned memory: buffers and copies.
