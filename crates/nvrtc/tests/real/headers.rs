//! CUDA's headers: errors that say how to add them, `cuda_fp16.h`, and CUB on the simulator with
//! all checks.

use curium_driver::{CudaVersion, DiskCache, Driver, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_nvrtc::{Compile as _, CompileOptions, Error, Nvrtc, Program};
use curium_sim::{Config, Simulator};

use crate::library::{TestResult, compile_error, nvrtc, program};

/// Returns NVRTC with CUDA's headers for it, if there are any: those of `CURIUM_CUDA_INCLUDE_PATH`,
/// or NVRTC's own.
fn with_headers(name: &str) -> Result<Option<(Nvrtc, CompileOptions)>, Error> {
    let Some(nvrtc) = nvrtc(name) else {
        return Ok(None);
    };
    let options = if std::env::var_os("CURIUM_CUDA_INCLUDE_PATH").is_some() {
        CompileOptions::new().with_cuda_headers()?
    } else if nvrtc.version() >= CudaVersion::new(13, 3) {
        let folder = std::env::temp_dir().join(format!("curium-headers-{}", nvrtc.version()));
        CompileOptions::new().with_bundled_headers(folder)
    } else {
        return Ok(None);
    };
    Ok(Some((nvrtc, options)))
}

/// Runs `test` on a device of a simulator with all checks.
fn on_device(test: impl FnOnce(&curium_driver::Device) -> TestResult) -> TestResult {
    let config = Config::new()
        .with_driver_version(CudaVersion::NEWEST_KNOWN)
        .with_race_checks(true)
        .with_uninitialized_checks(true);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    test(&driver.device(0)?)
}

#[test]
fn half_precision_kernel_runs() -> TestResult {
    const SOURCE: &str = r#"
#include <cuda_fp16.h>
extern "C" __global__ void twice(__half* x) { x[threadIdx.x] = __hadd(x[threadIdx.x], x[threadIdx.x]); }
"#;
    let Some((nvrtc, options)) = with_headers("half_precision_kernel_runs")? else {
        return Ok(());
    };
    on_device(|device| {
        let stream = device.primary_context()?.stream()?;
        let program = device.compile_with(&nvrtc, SOURCE, &options)?;
        let twice = program.kernel::<(&mut [u16],)>("twice")?;
        // The bits of 1 and 1.5.
        let mut x = DeviceBuffer::from_slice(&stream, &[0x3c00_u16, 0x3e00])?;
        // SAFETY: the kernel accesses the element of each of its threads, and `x` has as many.
        unsafe { twice.launch(&stream, LaunchConfig::new(1, 2), (&mut x,)) }?;
        assert_eq!(x.to_vec()?, [0x4000, 0x4200]);
        Ok(())
    })
}

#[test]
fn cub_reduction_runs() -> TestResult {
    const SOURCE: &str = r#"
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void sums(const float* x, float* sums, unsigned n)
{
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage storage;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = Reduce(storage).Sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}
"#;
    let Some((nvrtc, options)) = with_headers("cub_reduction_runs")? else {
        return Ok(());
    };
    // CUB of CUDA 11.8 is for nvcc only.
    if nvrtc.version().major() < 12 {
        return Ok(());
    }
    on_device(|device| {
        let stream = device.primary_context()?.stream()?;
        let program = device.compile_with(&nvrtc, SOURCE, &options)?;
        let sums_of = program.kernel::<(&[f32], &mut [f32], u32)>("sums")?;
        let values: Vec<f32> = (0_u16..300).map(f32::from).collect();
        let expected: Vec<f32> = values.chunks(128).map(|chunk| chunk.iter().sum()).collect();
        let x = DeviceBuffer::from_slice(&stream, &values)?;
        let mut sums = DeviceBuffer::from_slice(&stream, &[0.0_f32; 3])?;
        // SAFETY: the kernel reads the first 300 elements of `x`, and writes one of `sums` for each
        // of 3 blocks.
        unsafe { sums_of.launch(&stream, LaunchConfig::new(3, 128), (&x, &mut sums, 300)) }?;
        assert_eq!(sums.to_vec()?, expected);
        Ok(())
    })
}

/// CUB's headers compute operands of `#include`.
#[test]
fn program_with_cub_is_cached() -> TestResult {
    let Some((nvrtc, options)) = with_headers("program_with_cub_is_cached")? else {
        return Ok(());
    };
    if nvrtc.version().major() < 12 {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let cache = DiskCache::open(folder.path().join("cache"))?;
    let nvrtc = nvrtc.with_cache(cache.clone());
    let program = program("#include <cub/block/block_reduce.cuh>\n__global__ void k() {}");
    let first = nvrtc.compile(&program, &options)?;
    // NVRTC's own headers are installed during the first compilation.
    nvrtc.compile(&program, &options)?;
    assert_eq!(cache.usage()?.entries, 1);
    assert_eq!(nvrtc.compile(&program, &options)?, first);
    assert_eq!(cache.usage()?.entries, 1);
    Ok(())
}

/// Every error that the lack of a header causes says how to add it.
#[test]
fn missing_headers_have_hints() {
    let Some(nvrtc) = nvrtc("missing_headers_have_hints") else {
        return;
    };
    for (source, hint) in [
        (
            "#include <cuda_fp16.h>\n",
            "CompileOptions::with_cuda_headers",
        ),
        (
            "#include <cub/cub.cuh>\n",
            "CompileOptions::with_cuda_headers",
        ),
        ("#include <stdint.h>\n", "#include <cuda/std/cstdint>"),
        ("#include \"common.h\"\n", "Program::with_header"),
        (
            "__device__ float f() { return INFINITY; }",
            "with_macro_value",
        ),
        ("__device__ uint32_t f() { return 0; }", "cuda/std/cstdint"),
    ] {
        for options in [
            CompileOptions::new(),
            CompileOptions::new().with_include_path("/nowhere"),
        ] {
            let error = compile_error(&nvrtc, &program(source), &options).to_string();
            let line = error.lines().find(|line| line.contains(" = hint: "));
            assert!(line.is_some_and(|line| line.contains(hint)), "{error}");
        }
    }
}

/// The remedy in the hint for `INFINITY` works without headers.
#[test]
fn infinity_without_headers() -> TestResult {
    let Some(nvrtc) = nvrtc("infinity_without_headers") else {
        return Ok(());
    };
    let source = "extern \"C\" __global__ void k(float* x) { x[0] = INFINITY; x[1] = NAN; }";
    let options = CompileOptions::new()
        .with_macro_value("INFINITY", "__int_as_float(0x7f800000)")
        .with_macro_value("NAN", "__int_as_float(0x7fffffff)");
    nvrtc.compile(&Program::new("k.cu", source), &options)?;
    Ok(())
}

curium_nvrtc::kernels! {
    struct Offset source "kernels/offset.cu" headers { "offset.h" = "kernels/offset.h" } {
        fn offset(x: &mut [f32], n: u32);
    }
}

#[test]
fn declared_headers() -> TestResult {
    let Some(nvrtc) = nvrtc("declared_headers") else {
        return Ok(());
    };
    on_device(|device| {
        let stream = device.primary_context()?.stream()?;
        let kernels = Offset::compile(&nvrtc, device)?;
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
        let config = LaunchConfig::for_elements(2);
        // SAFETY: the kernel guards its index with the length of the buffer.
        unsafe { kernels.offset.launch(&stream, config, (&mut x, 2)) }?;
        assert_eq!(x.to_vec()?, [1.5, 2.5]);
        Ok(())
    })
}
