//! Complete runs, from a kernel in a string to its result, on the simulator or a GPU.

use crate::library::{TestResult, compiled, nvjitlink, with_nvrtc};
use curium_driver::{CudaVersion, Device, Driver, Kernel, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_nvrtc::{Compile as _, CompileOptions, Error, LinkOptions, Nvrtc, Program};
use curium_sim::{Checks, Config, Simulator};

/// Runs `test` on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on a simulated
/// device with the newest driver, which accepts the PTX of every NVRTC.
fn on_driver(test: impl FnOnce(&Driver) -> TestResult) -> TestResult {
    if uses_cuda() {
        return test(&Driver::load()?);
    }
    let config = Config::new().with_driver_version(CudaVersion::NEWEST_KNOWN);
    let simulator = Simulator::new(config)?;
    test(&simulator.driver::<Driver>()?)
}

fn uses_cuda() -> bool {
    std::env::var("CURIUM_TEST_DRIVER").is_ok_and(|driver| driver == "cuda")
}

/// Returns options for the architecture that the driver of `device` loads.
fn options(nvrtc: &Nvrtc, device: &Device) -> TestResult<CompileOptions> {
    let architecture = nvrtc.architecture_for(device)?;
    Ok(CompileOptions::new().with_architecture(architecture))
}

#[test]
fn template_runs() -> TestResult {
    with_nvrtc("template_runs", |nvrtc| {
        on_driver(|driver| {
            let device = driver.device(0)?;
            let stream = device.primary_context()?.stream()?;
            let source = "template<class T> __global__ void saxpy(T a, const T* x, T* y, unsigned n) {\n\
                unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = a * x[i] + y[i];\n}\n";
            let program = Program::new("saxpy.cu", source).with_name_expression("saxpy<float>");
            let compiled = compiled(nvrtc, &program, &options(nvrtc, &device)?);
            let library = compiled.library(&device, &curium_driver::JitOptions::new())?;
            let saxpy: Kernel<(f32, &[f32], &mut [f32], u32)> =
                compiled.kernel(&library, "saxpy<float>")?;
            let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
            let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
            // SAFETY: the kernel reads x, writes y, and guards its index with the length of both.
            unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(3), (2.0, &x, &mut y, 3)) }?;
            assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
            let wrong = compiled.kernel::<(f64, &[f32], &mut [f32], u32)>(&library, "saxpy<float>");
            let error = wrong
                .expect_err("the first parameter is a float")
                .to_string();
            assert!(error.contains("has 4 bytes, and `f64` has 8"), "{error}");
            Ok(())
        })
    })
}

#[test]
fn device_compiles_a_source() -> TestResult {
    with_nvrtc("device_compiles_a_source", |_| {
        on_driver(|driver| {
            let device = driver.device(0)?;
            let stream = device.primary_context()?.stream()?;
            let program = device.compile(
                "extern \"C\" __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }",
            )?;
            let scale = program.kernel::<(&mut [f32], f32)>("scale")?;
            let mut x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
            // SAFETY: the kernel changes the element of each of its threads, and x has as many.
            unsafe { scale.launch(&stream, LaunchConfig::new(1, 3), (&mut x, 2.0)) }?;
            assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0]);
            let Err(Error::Compile(error)) = device.compile("\n__global__ void scale(float* x { }")
            else {
                panic!("the source has a syntax error")
            };
            assert_eq!(
                error
                    .errors()
                    .next()
                    .and_then(|error| error.location.as_ref())
                    .map(|location| location.line),
                Some(2),
                "{error}"
            );
            Ok(())
        })
    })
}

#[test]
fn linked_ptx_runs() -> TestResult {
    with_nvrtc("linked_ptx_runs", |nvrtc| {
        let Some(library) = nvjitlink("linked_ptx_runs") else {
            return Ok(());
        };
        if nvrtc.version() > library.version()
            || nvrtc.version().major() != library.version().major()
        {
            return Ok(());
        }
        on_driver(|driver| {
            let device = driver.device(0)?;
            let stream = device.primary_context()?.stream()?;
            let architecture = nvrtc.architecture_for(&device)?;
            let options = CompileOptions::new()
                .with_architecture(architecture)
                .with_link_time_optimization();
            let kernel = "__device__ float square(float x);\n\
                extern \"C\" __global__ void squares(float* x) { x[threadIdx.x] = square(x[threadIdx.x]); }";
            let link_options = if uses_cuda() {
                LinkOptions::new(architecture.real()).with_link_time_optimization()
            } else {
                LinkOptions::new(architecture)
                    .with_link_time_optimization()
                    .with_ptx()
            };
            let mut linker = library.linker(&link_options)?;
            for source in ["__device__ float square(float x) { return x * x; }", kernel] {
                let part = compiled(nvrtc, &Program::new("part.cu", source), &options);
                linker.add_program(&part)?;
            }
            let linked = linker.complete()?.library(&device)?;
            let squares = linked.kernel::<(&mut [f32],)>("squares")?;
            let mut x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
            // SAFETY: the kernel writes as many elements as there are threads.
            unsafe { squares.launch(&stream, LaunchConfig::new(1, 3), (&mut x,)) }?;
            assert_eq!(x.to_vec()?, [1.0, 4.0, 9.0]);
            Ok(())
        })
    })
}

curium_nvrtc::kernels! {
    struct Scaling source "kernels/scale.cu" {
        fn scale_f32(x: &mut [f32], by: f32, n: u32) = "scale<float>";
        fn scale_u32(x: &mut [u32], by: u32, n: u32) = "scale<unsigned>";
        fn negate(x: &mut [f32], n: u32);
    }
}

#[test]
fn declared_kernels_run() -> TestResult {
    with_nvrtc("declared_kernels_run", |nvrtc| {
        on_driver(|driver| {
            let device = driver.device(0)?;
            let stream = device.primary_context()?.stream()?;
            let options = options(nvrtc, &device)?;
            let kernels = Scaling::from_program(&Scaling::program(), nvrtc, &device, &options)?;
            let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
            let config = LaunchConfig::for_elements(2);
            // SAFETY: the kernels guard their index with the length of the buffer.
            unsafe { kernels.scale_f32.launch(&stream, config, (&mut x, 3.0, 2)) }?;
            // SAFETY: the kernels guard their index with the length of the buffer.
            unsafe { kernels.negate.launch(&stream, config, (&mut x, 2)) }?;
            assert_eq!(x.to_vec()?, [-3.0, -6.0]);
            assert_eq!(kernels.scale_u32.name(), "_Z5scaleIjEvPT_S0_j");
            let program = Program::new("other.cu", "__global__ void negate(float* x) {}")
                .with_name_expression("negate");
            let error = Scaling::from_program(&program, nvrtc, &device, &options)
                .expect_err("the others are not there");
            assert!(error.to_string().contains("scale<float>"), "{error}");
            Ok(())
        })
    })
}

curium_nvrtc::kernels! {
    struct Harmless source "kernels/nothing.cu" unsafe {
        // SAFETY: the kernel returns immediately.
        safe fn nothing(value: f32) = "nothing<float>";
        fn store(x: &mut [u32], at: u32);
    }
}

#[test]
fn declared_kernels_are_safe() -> TestResult {
    with_nvrtc("declared_kernels_are_safe", |nvrtc| {
        on_driver(|driver| {
            let device = driver.device(0)?;
            let stream = device.primary_context()?.stream()?;
            if !uses_cuda() {
                let kernels = Harmless::compile(nvrtc, &device)?;
                kernels
                    .nothing
                    .launch(&stream, LaunchConfig::new(1, 1), (1.0,))?;
            }
            let options = options(nvrtc, &device)?.with_macro("UNUSED");
            // SAFETY: the options do not change the kernel.
            let kernels =
                unsafe { Harmless::from_program(&Harmless::program(), nvrtc, &device, &options) }?;
            kernels
                .nothing
                .launch(&stream, LaunchConfig::new(1, 1), (1.0,))?;
            let mut x = DeviceBuffer::from_slice(&stream, &[0_u32; 2])?;
            // SAFETY: the buffer has an element 1.
            unsafe {
                kernels
                    .store
                    .launch(&stream, LaunchConfig::new(1, 1), (&mut x, 1))
            }?;
            assert_eq!(x.to_vec()?, [0, 1]);
            Ok(())
        })
    })
}

/// `Device::compile` passes line information on the simulator: a race has the source lines of both
/// accesses, and the call of the inlined function.
#[test]
fn report_has_source_lines() -> TestResult {
    with_nvrtc("report_has_source_lines", |_| {
        if uses_cuda() {
            return Ok(());
        }
        let config = Config::new()
            .with_driver_version(CudaVersion::NEWEST_KNOWN)
            .with_race_checks(true)
            .with_checks(Checks::Quiet);
        let simulator = Simulator::new(config)?;
        let device = simulator.driver::<Driver>()?.device(0)?;
        let stream = device.primary_context()?.stream()?;
        let program = device.compile(
            "__device__ __forceinline__ float neighbor(const float* tile, int i) {
    return tile[i];
}
extern \"C\" __global__ void reverse(float* x) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = neighbor(tile, 63 - threadIdx.x);
}",
        )?;
        let reverse = program.kernel::<(&mut [f32],)>("reverse")?;
        let mut x = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        // SAFETY: the kernel changes the element of each of its threads, x has as many, and the
        // simulator ends the launch at the race.
        unsafe { reverse.launch(&stream, LaunchConfig::new(1, 64), (&mut x,)) }?;
        let error = x.to_vec().expect_err("the barrier is missing").to_string();
        let write = error.find(":6:5, PTX line ");
        let read = error.find(":2:5 in `neighbor(float const*, int)`");
        let call = error.find("inlined at ");
        // NVRTC 13 names the column of the statement, and NVRTC 11.8 that of the call.
        let has_caller = error.contains(":7:5") || error.contains(":7:22");
        assert!(
            write.is_some() && write < read && read < call && has_caller,
            "{error}"
        );
        Ok(())
    })
}
