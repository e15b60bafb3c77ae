//! CUDA C++ to PTX at run time through NVRTC.
