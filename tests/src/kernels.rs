//! The test kernels, compiled to PTX.

mod small;

/// `saxpy(f32, &[f32], &mut [f32], u32)`.
pub const SAXPY: &str = include_str!("../kernels/saxpy.ptx");
/// `vector_add(&[f32], &[f32], &mut [f32], u32)`.
pub const VECTOR_ADD: &str = include_str!("../kernels/vector_add.ptx");
/// `mandelbrot(&mut [u32], u32, u32, f64, f64, f64, u32)`.
pub const MANDELBROT: &str = include_str!("../kernels/mandelbrot.ptx");
/// `reduce_sum_u32`, `reduce_sum_f32`, `reduce_max_i32`: each `(&[T], &mut [T], u32)`.
pub const REDUCE: &str = include_str!("../kernels/reduce.ptx");
/// `matmul(&[f32], &[f32], &mut [f32], u32, u32, u32)`.
pub const MATMUL: &str = include_str!("../kernels/matmul.ptx");
/// `histogram(&[u8], &mut [u32], u32)`.
pub const HISTOGRAM: &str = include_str!("../kernels/histogram.ptx");
/// `fill(&mut [u32], u32, u32)`, `fill_index(&mut [u32], u32)`.
pub const FILL: &str = if cfg!(miri) {
    small::FILL
} else {
    include_str!("../kernels/fill.ptx")
};
/// `params(u8, u16, u32, u64, f32, f64, &mut [u64], [u32; 3])`.
pub const PARAMS: &str = include_str!("../kernels/params.ptx");
/// `spin(flag, u64, &mut [u64])`.
pub const SPIN: &str = include_str!("../kernels/spin.ptx");
/// `write_at(&mut [u32], u64, u32)`, `read_at(&[u32], u64, &mut [u32])`,
/// `write_misaligned(&mut [u8], u32)`, `trap(u32)`.
pub const FAULTS: &str = include_str!("../kernels/faults.ptx");
/// `scan_inclusive`, `scan_add_totals`, `scan_exclusive`, `compact_odd`, `scan_look_back`,
/// `scan_segments`.
pub const SCAN: &str = include_str!("../kernels/scan.ptx");
/// `sort_bitonic`, `sort_warp`, `sort_insertion`, `sort_radix`, `sort_merge`, `sort_digit_count`,
/// `sort_digit_scatter`.
pub const SORT: &str = include_str!("../kernels/sort.ptx");
/// `transpose`, `blur`, `heat`, `life`, `matrix_vector`, `bodies`.
pub const GRID: &str = include_str!("../kernels/grid.ptx");
/// `sha256`, `philox`, `wide_product`, `bit_operations`, `divide`, `crc32`, `find_text`, `collatz`.
pub const NUMBERS: &str = include_str!("../kernels/numbers.ptx");
/// `recursion`, `function_pointers`, `many_cases`, `device_heap`, `tree_height`, `last_block`,
/// `spin_lock`, `grid_barrier`.
pub const LANGUAGE: &str = include_str!("../kernels/language.ptx");
/// `warp_operations`, `active_lanes`, `atomics`, `aggregated_histogram`, `block_votes`.
pub const WARP: &str = include_str!("../kernels/warp.ptx");
/// `softmax`, `layer_norm`, `functions`, `double_functions`, `roundings`, `halves`.
pub const NETWORK: &str = include_str!("../kernels/network.ptx");
/// `tensor_product`, `tensor_product_tf32`, `tensor_product_f64`, `tensor_product_i8`,
/// `copied_ahead`, for compute capability 8.0 and newer.
pub const TENSOR: &str = include_str!("../kernels/tensor.ptx");
/// `cluster_histogram`, `barrier_object`, `cluster_places`, `cluster_sum`, `cluster_ring`, for
/// compute capability 9.0 and newer.
pub const CLUSTER: &str = include_str!("../kernels/cluster.ptx");
/// `read_line`, `read_plane`, `read_volume`, `read_colors`, `read_pairs`, `read_line_of_layer`,
/// `read_layer`, `read_cube`, `read_cube_of_layer`, `read_level`, `read_gradient`, `gather`,
/// `fetch`, `sizes`, `surface_plane`, `surface_volume`, `surface_layers`, `surface_add`,
/// `surface_trap`.
pub const TEXTURE: &str = include_str!("../kernels/texture.ptx");
/// `attention`, `attention_causal`, `attention_f16`, `softmax_online`.
pub const ATTENTION: &str = include_str!("../kernels/attention.ptx");
/// `fourier`, `fourier_f64`, `fourier_radix4`, `number_transform`.
pub const FOURIER: &str = include_str!("../kernels/fourier.ptx");
/// `bf16_round`, `bf16_axpy`, `bf16_extremes`, `bf16_product`, `bf16_sum`, `bf16_tensor_product`,
/// for compute capability 8.0 and newer.
pub const BFLOAT: &str = include_str!("../kernels/bfloat.ptx");
/// `matmul_f64`, `matmul_f16`, `matmul_f16_steps`, `matmul_i8`: each
/// `(&[T], &[T], &mut [T], u32, u32, u32)`.
pub const PRODUCTS: &str = include_str!("../kernels/products.ptx");
/// `random_threefry`, `random_uniform`, `random_normal`, `random_circle`, `random_permutation`.
pub const RANDOM: &str = include_str!("../kernels/random.ptx");
/// `print_threads`, `print_forms`.
pub const PRINT: &str = include_str!("../kernels/print.ptx");
/// `heap_keep`, `heap_read`, `heap_free`, `heap_limit`.
pub const HEAP: &str = include_str!("../kernels/heap.ptx");
