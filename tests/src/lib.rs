//! Tests of the curium crates against the simulator and a GPU.
