//! CUDA contexts, streams, events, libraries and kernels over the driver API.
