//! [`Argument`](curium_driver::Argument): `bool`, 16-bit numbers, optional pointers, and argument
//! lists.

use curium_driver::{
    ArgumentList, CudaVersion, DevicePointer, Error, Function, Kernel, LaunchConfig, Library,
    Signature, Stream, Untyped,
};
use curium_memory::{DeviceBuffer, DeviceViewMut};
use curium_sim::{Config, Simulator};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, kernels, simulator_test, skip, stream_work,
};
use half::{bf16, f16};

/// Writes the first argument to `out`.
const STORE: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .entry store_byte(.param .u8 value, .param .u64 out)
{
    .reg .b16 %value; .reg .b64 %out;
    ld.param.u8 %value, [value];
    ld.param.u64 %out, [out];
    st.global.u8 [%out], %value;
    ret;
}
.visible .entry store_sum(.param .b16 a, .param .b16 b, .param .u64 out)
{
    .reg .b16 %a, %b; .reg .b64 %out;
    ld.param.b16 %a, [a];
    ld.param.b16 %b, [b];
    ld.param.u64 %out, [out];
    add.f16 %a, %a, %b;
    st.global.b16 [%out], %a;
    ret;
}
.visible .entry store_half(.param .b16 value, .param .u64 out)
{
    .reg .b16 %value; .reg .b64 %out;
    ld.param.b16 %value, [value];
    ld.param.u64 %out, [out];
    st.global.b16 [%out], %value;
    ret;
}";

/// Writes `x`, or 7 if `x` is null, to `out` unless that is null.
const OPTIONAL: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .entry optional(.param .u64 x, .param .u64 out)
{
    .reg .pred %null; .reg .b32 %value; .reg .b64 %x, %out;
    ld.param.u64 %x, [x];
    ld.param.u64 %out, [out];
    mov.u32 %value, 7;
    setp.eq.u64 %null, %x, 0;
    @!%null ld.global.u32 %value, [%x];
    setp.eq.u64 %null, %out, 0;
    @!%null st.global.u32 [%out], %value;
    ret;
}";

curium_driver::kernels! {
    struct Optional from OPTIONAL_IMAGE unsafe {
        // SAFETY: the kernel accesses neither pointer if it is null.
        safe fn optional(x: Option<&[u32]>, out: Option<&mut [u32]>);
    }
}

static OPTIONAL_IMAGE: std::sync::LazyLock<curium_driver::Image<'static>> =
    std::sync::LazyLock::new(|| {
        curium_driver::Image::from_ptx(OPTIONAL).expect("the text has no NUL")
    });

const ONE: fn() -> LaunchConfig = || LaunchConfig::new(1, 1);

fn store<S: Signature>(test: &TestDriver, name: &str) -> TestResult<Kernel<S>> {
    let library = Library::from_ptx(test.driver(), STORE)?;
    Ok(library.kernel(name)?)
}

fn optional(test: &TestDriver) -> TestResult<Optional> {
    Ok(Optional::load(test.driver())?)
}

fn saxpy(test: &TestDriver) -> TestResult<Kernel<Untyped>> {
    let library = Library::from_ptx(test.driver(), kernels::SAXPY)?;
    Ok(library.untyped_kernel("saxpy")?)
}

fn buffer(stream: &Stream, values: &[f32]) -> TestResult<DeviceBuffer<f32>> {
    Ok(DeviceBuffer::from_slice(stream, values)?)
}

#[driver_test]
fn bool_is_passed_as_one_byte(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let kernel = store::<(bool, &mut [u8])>(test, "store_byte")?;
    for value in [true, false] {
        let mut out = DeviceBuffer::from_slice(&stream, &[9_u8, 9])?;
        // SAFETY: the kernel writes one byte.
        unsafe { kernel.launch(&stream, ONE(), (value, &mut out)) }?;
        assert_eq!(out.to_vec()?, [u8::from(value), 9]);
    }
    Ok(())
}

#[driver_test]
fn half_numbers_are_passed_and_read_back(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let sum = store::<(f16, f16, &mut [f16])>(test, "store_sum")?;
    let mut out = DeviceBuffer::from_slice(&stream, &[f16::ZERO])?;
    // SAFETY: the kernel writes one number.
    unsafe {
        sum.launch(
            &stream,
            ONE(),
            (f16::from_f32(1.5), f16::from_f32(0.25), &mut out),
        )
    }?;
    assert_eq!(out.to_vec()?, [f16::from_f32(1.75)]);

    let half = store::<(bf16, &mut [bf16])>(test, "store_half")?;
    let mut out = DeviceBuffer::from_slice(&stream, &[bf16::ZERO])?;
    // SAFETY: the kernel writes one number.
    unsafe { half.launch(&stream, ONE(), (bf16::from_f32(-2.5), &mut out)) }?;
    assert_eq!(out.to_vec()?, [bf16::from_f32(-2.5)]);
    Ok(())
}

#[driver_test]
fn optional_pointer_is_null_for_none(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let kernels = optional(test)?;
    let x = DeviceBuffer::from_slice(&stream, &[3_u32])?;
    let mut out = DeviceBuffer::from_slice(&stream, &[0_u32, 1])?;
    let mut expect = |x: Option<&DeviceBuffer<u32>>, value| -> TestResult<_> {
        kernels
            .optional
            .launch(&stream, ONE(), (x, Some(&mut out)))?;
        assert_eq!(out.to_vec()?, [value, 1]);
        Ok(())
    };
    expect(Some(&x), 3)?;
    expect(None, 7)?;
    let nowhere = None::<DeviceViewMut<'_, u32>>;
    kernels
        .optional
        .launch(&stream, ONE(), (Some(x.as_slice()), nowhere))?;
    stream.synchronize()?;
    assert_eq!(x.to_vec()?, [3]);
    Ok(())
}

#[driver_test]
fn optional_buffer_is_tracked(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let kernels = optional(test)?;
    let mut x = DeviceBuffer::from_slice(&first, &[3_u32])?;
    let mut out = DeviceBuffer::from_slice(&second, &[0_u32])?;
    // The first launch loads the code, which on hardware waits for the work that a gate blocks.
    kernels.optional.launch(
        &second,
        ONE(),
        (None::<&DeviceBuffer<u32>>, None::<&mut DeviceBuffer<u32>>),
    )?;
    let gate = Gate::on(&first);
    stream_work::fill(&first, &mut x, 4)?;
    kernels
        .optional
        .launch(&second, ONE(), (Some(&x), Some(&mut out)))?;
    assert!(
        stream_work::is_held_up(&second),
        "the kernel reads what the fill writes"
    );
    gate.open();
    assert_eq!(out.to_vec()?, [4]);

    let gate = Gate::on(&second);
    kernels
        .optional
        .launch(&second, ONE(), (None::<&DeviceBuffer<u32>>, Some(&mut x)))?;
    stream_work::fill(&first, &mut x, 5)?;
    assert!(
        stream_work::is_held_up(&first),
        "the fill overwrites what the kernel writes"
    );
    gate.open();
    assert_eq!(x.to_vec()?, [5]);
    Ok(())
}

#[test]
fn null_pointer_is_no_address() {
    let null = DevicePointer::<f32>::null();
    assert!(null.is_null());
    assert_eq!((null.as_raw(), null), (0, DevicePointer::from_raw(0)));
    assert!(!null.wrapping_add(1).is_null());
}

/// An argument list launches a kernel whose signature is not declared.
#[driver_test]
fn argument_list_launches_undeclared_signature(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let kernel = saxpy(test)?;
    let x = buffer(&stream, &[1.0, 2.0])?;
    let mut y = buffer(&stream, &[10.0, 20.0])?;
    let mut arguments = ArgumentList::new();
    assert!(arguments.is_empty());
    arguments = arguments.value(2.0_f32).read(&x).write(&mut y).value(2_u32);
    assert_eq!(arguments.len(), 4);
    assert_eq!(
        format!("{arguments:?}"),
        "ArgumentList(f32, &[f32], &mut [f32], u32)"
    );
    // SAFETY: `saxpy` reads 2 elements of x and writes 2 of y.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), arguments) }?;
    assert_eq!(y.to_vec()?, [12.0, 24.0]);

    let null = DevicePointer::<f32>::null();
    let arguments = ArgumentList::new()
        .value(2.0_f32)
        .value(null)
        .write(&mut y)
        .value(0_u32);
    // SAFETY: `saxpy` accesses no elements.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), arguments) }?;
    assert_eq!(y.to_vec()?, [12.0, 24.0]);
    Ok(())
}

#[driver_test]
fn argument_list_is_tracked(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let kernel = saxpy(test)?;
    let x = buffer(&second, &[1.0])?;
    let mut y = buffer(&second, &[9.0])?;
    let launch = |stream: &Stream, y: &mut DeviceBuffer<f32>| -> TestResult<_> {
        let arguments = ArgumentList::new()
            .value(1.0_f32)
            .read(&x)
            .write(y)
            .value(1_u32);
        // SAFETY: `saxpy` reads 1 element of x, and writes one of y.
        unsafe { kernel.launch(stream, LaunchConfig::new(1, 32), arguments) }?;
        Ok(())
    };
    // The first launch loads the code, which on hardware waits for the work that a gate blocks.
    launch(&second, &mut y)?;
    let gate = Gate::on(&first);
    launch(&first, &mut y)?;
    launch(&second, &mut y)?;
    assert!(
        stream_work::is_held_up(&second),
        "the second launch reads what the first writes"
    );
    gate.open();
    assert_eq!(y.to_vec()?, [12.0]);
    Ok(())
}

/// An argument list of another signature is an error that names the argument.
#[driver_test]
fn argument_list_mismatch_names_the_argument(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let kernel = saxpy(test)?;
    let x = buffer(&stream, &[1.0])?;
    let refused = |arguments: ArgumentList<'_>, facts: &str| {
        // SAFETY: the driver rejects the launch.
        let error = unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), arguments) }
            .expect_err(facts);
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert_eq!(
            error.to_string(),
            format!("Kernel::launch: signature mismatch ({facts})")
        );
    };
    let none = "kernel `saxpy` has 4 parameters, and `()` declares 0";
    test.assert_calls(Function::cuLaunchKernel, 0, || {
        refused(ArgumentList::new(), none);
    });
    refused(
        ArgumentList::new().value(1_u8),
        "kernel `saxpy` has 4 parameters, and `(u8)` declares 1",
    );
    let y = DevicePointer::<f32>::null();
    refused(
        ArgumentList::new()
            .value(1.0_f64)
            .read(&x)
            .value(y)
            .value(1_u32),
        "parameter 0 (counting from 0) of kernel `saxpy` has 4 bytes, and `f64` has 8",
    );
    refused(
        ArgumentList::new()
            .value(1.0_f32)
            .read(&x)
            .value(y)
            .value(1_u64),
        "parameter 3 (counting from 0) of kernel `saxpy` has 4 bytes, and `u64` has 8",
    );
    Ok(())
}

/// Parameters of a kernel are queried by the first list only.
#[driver_test]
fn kernel_parameters_are_queried_once(test: &TestDriver) -> TestResult {
    if !test.driver().has(Function::cuKernelGetParamInfo) {
        return skip("the driver lacks cuKernelGetParamInfo");
    }
    let stream = test.stream();
    let kernel = saxpy(test)?;
    let x = buffer(&stream, &[1.0])?;
    let mut y = buffer(&stream, &[10.0])?;
    for calls in [5, 0, 0] {
        let arguments = ArgumentList::new()
            .value(1.0_f32)
            .read(&x)
            .write(&mut y)
            .value(1_u32);
        test.assert_calls(
            Function::cuKernelGetParamInfo,
            calls,
            || -> TestResult<_> {
                // SAFETY: `saxpy` reads 1 element of x, and writes one of y.
                unsafe {
                    kernel
                        .clone()
                        .launch(&stream, LaunchConfig::new(1, 32), arguments)
                }?;
                Ok(())
            },
        )?;
    }
    assert_eq!(y.to_vec()?, [13.0]);
    Ok(())
}

/// An argument list is compared with the PTX on older drivers.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 3)))]
fn argument_list_is_checked_by_ptx_on_old_drivers(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let kernel = saxpy(test)?;
    // SAFETY: the driver rejects the launch.
    let error = unsafe { kernel.launch(&stream, ONE(), ArgumentList::new().value(1_u32)) };
    let error = error.expect_err("there are four parameters");
    assert!(error.to_string().contains("has 4 parameters"), "{error}");
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{ArgumentList, LaunchConfig};

    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[(
        "ArgumentList::check and ArgumentList::launch_with",
        |fixture| {
            let kernel = fixture.library.untyped_kernel("fill")?;
            let arguments = ArgumentList::new()
                .write(&mut fixture.buffer)
                .value(6_u32)
                .value(LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe {
                kernel.launch(&fixture.other, LaunchConfig::for_elements(LEN), arguments)
            }?)
        },
    )];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
