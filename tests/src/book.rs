//! The chapters of the book as doc tests: their code is compiled, and runs on the simulator unless it is marked
//! `no_run`.

macro_rules! chapters {
    ($($name:ident = $file:literal;)*) => {
        $(
            #[doc = include_str!(concat!("../../docs/book/src/", $file))]
            mod $name {}
        )*
    };
}

chapters! {
    introduction = "introduction.md";
    quick_start = "quick-start.md";
    for_cuda = "for-cuda.md";
    for_rust = "for-rust.md";
    memory = "memory.md";
    waits = "waits.md";
    unified_memory = "unified-memory.md";
    platforms = "platforms.md";
    loading = "loading.md";
    cuda_cpp = "cuda-cpp.md";
    devices = "devices.md";
    contexts_and_streams = "contexts-and-streams.md";
    comparison = "comparison.md";
    found_bugs = "found-bugs.md";
    kernels = "kernels.md";
    kernels_model = "kernels-model.md";
    kernels_from_cuda = "kernels-from-cuda.md";
    kernels_patterns = "kernels-patterns.md";
    kernels_unsafe = "kernels-unsafe.md";
    kernels_debugging = "kernels-debugging.md";
    hopper_kernels = "hopper-kernels.md";
    kernels_limits = "kernels-limits.md";
    from_kernel_crates = "from-kernel-crates.md";
    graphs = "graphs.md";
    blas = "blas.md";
    libraries = "libraries.md";
    nccl = "nccl.md";
    scale = "scale.md";
    asynchronous = "async.md";
    errors = "errors.md";
    testing = "testing.md";
    program = "program.md";
    performance = "performance.md";
    interop = "interop.md";
    recipes = "recipes.md";
    from_cudarc = "from-cudarc.md";
    from_cust = "from-cust.md";
    from_others = "from-others.md";
    questions = "questions.md";
}
