//! [`Argument`](curium_driver::Argument): `bool`, 16-bit numbers, optional pointers, and argument lists.

use curium_driver::{
    ArgumentList, CudaVersion, DevicePointer, Error, Function, Kernel, LaunchConfig, Library,
    Signature, Stream, Untyped,
};
use curium_memory::{DeviceBuffer, DeviceSliceMut};
use curium_sim::Config;
use curium_tests::{Gate, TestDriver, kernels, on_driver, on_simulator, stream_work};
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

fn store<S: Signature>(test: &TestDriver, name: &str) -> Kernel<S> {
    let library = Library::from_ptx(test.driver(), STORE).expect("the PTX is valid");
    library.kernel(name).expect("the library has the kernel")
}

fn optional(test: &TestDriver) -> Optional {
    Optional::load(test.driver()).expect("the parameters are pointers")
}

fn saxpy(test: &TestDriver) -> Kernel<Untyped> {
    let library = Library::from_ptx(test.driver(), kernels::SAXPY).expect("the PTX is valid");
    library
        .untyped_kernel("saxpy")
        .expect("the library has the kernel")
}

fn buffer(stream: &Stream, values: &[f32]) -> DeviceBuffer<f32> {
    DeviceBuffer::from_slice(stream, values).expect("memory suffices")
}

#[test]
fn bool_is_passed_as_one_byte() {
    on_driver(|test| {
        let (stream, kernel) = (
            test.stream(),
            store::<(bool, &mut [u8])>(test, "store_byte"),
        );
        for value in [true, false] {
            let mut out = DeviceBuffer::from_slice(&stream, &[9_u8, 9]).expect("memory suffices");
            // SAFETY: the kernel writes one byte.
            unsafe { kernel.launch(&stream, ONE(), (value, &mut out)) }.expect("it launches");
            assert_eq!(
                out.to_vec().expect("the buffer can be read"),
                [u8::from(value), 9]
            );
        }
    });
}

#[test]
fn half_numbers_are_passed_and_read_back() {
    on_driver(|test| {
        let stream = test.stream();
        let sum = store::<(f16, f16, &mut [f16])>(test, "store_sum");
        let mut out = DeviceBuffer::from_slice(&stream, &[f16::ZERO]).expect("memory suffices");
        // SAFETY: the kernel writes one number.
        unsafe {
            sum.launch(
                &stream,
                ONE(),
                (f16::from_f32(1.5), f16::from_f32(0.25), &mut out),
            )
        }
        .expect("it launches");
        assert_eq!(
            out.to_vec().expect("the buffer can be read"),
            [f16::from_f32(1.75)]
        );

        let half = store::<(bf16, &mut [bf16])>(test, "store_half");
        let mut out = DeviceBuffer::from_slice(&stream, &[bf16::ZERO]).expect("memory suffices");
        // SAFETY: the kernel writes one number.
        unsafe { half.launch(&stream, ONE(), (bf16::from_f32(-2.5), &mut out)) }
            .expect("it launches");
        assert_eq!(
            out.to_vec().expect("the buffer can be read"),
            [bf16::from_f32(-2.5)]
        );
    });
}

#[test]
fn optional_pointer_is_null_for_none() {
    on_driver(|test| {
        let (stream, kernels) = (test.stream(), optional(test));
        let x = DeviceBuffer::from_slice(&stream, &[3_u32]).expect("memory suffices");
        let mut out = DeviceBuffer::from_slice(&stream, &[0_u32, 1]).expect("memory suffices");
        let mut expect = |x: Option<&DeviceBuffer<u32>>, value| {
            kernels
                .optional
                .launch(&stream, ONE(), (x, Some(&mut out)))
                .expect("it launches");
            assert_eq!(out.to_vec().expect("the buffer can be read"), [value, 1]);
        };
        expect(Some(&x), 3);
        expect(None, 7);
        let nowhere = None::<DeviceSliceMut<'_, u32>>;
        kernels
            .optional
            .launch(&stream, ONE(), (Some(x.as_slice()), nowhere))
            .expect("it launches");
        stream.synchronize().expect("the kernel writes nothing");
        assert_eq!(x.to_vec().expect("the buffer can be read"), [3]);
    });
}

#[test]
fn optional_buffer_is_tracked() {
    on_driver(|test| {
        let (first, second, kernels) = (test.stream(), test.stream(), optional(test));
        let mut x = DeviceBuffer::from_slice(&first, &[3_u32]).expect("memory suffices");
        let mut out = DeviceBuffer::from_slice(&second, &[0_u32]).expect("memory suffices");
        // The first launch loads the code, which on hardware waits for the work that a gate blocks.
        kernels
            .optional
            .launch(
                &second,
                ONE(),
                (None::<&DeviceBuffer<u32>>, None::<&mut DeviceBuffer<u32>>),
            )
            .expect("it launches");
        let gate = Gate::on(&first);
        stream_work::fill(&first, &mut x, 4).expect("the fill is enqueued");
        kernels
            .optional
            .launch(&second, ONE(), (Some(&x), Some(&mut out)))
            .expect("it launches");
        assert!(
            stream_work::is_held_up(&second),
            "the kernel reads what the fill writes"
        );
        gate.open();
        assert_eq!(out.to_vec().expect("the buffer can be read"), [4]);

        let gate = Gate::on(&second);
        kernels
            .optional
            .launch(&second, ONE(), (None::<&DeviceBuffer<u32>>, Some(&mut x)))
            .expect("it launches");
        stream_work::fill(&first, &mut x, 5).expect("the fill is enqueued");
        assert!(
            stream_work::is_held_up(&first),
            "the fill overwrites what the kernel writes"
        );
        gate.open();
        assert_eq!(x.to_vec().expect("the buffer can be read"), [5]);
    });
}

#[test]
fn null_pointer_is_no_address() {
    let null = DevicePointer::<f32>::null();
    assert!(null.is_null());
    assert_eq!((null.as_raw(), null), (0, DevicePointer::from_raw(0)));
    assert!(!null.wrapping_add(1).is_null());
}

#[test]
fn argument_list_launches_a_kernel_whose_signature_is_not_declared() {
    on_driver(|test| {
        let (stream, kernel) = (test.stream(), saxpy(test));
        let (x, mut y) = (buffer(&stream, &[1.0, 2.0]), buffer(&stream, &[10.0, 20.0]));
        let mut arguments = ArgumentList::new();
        assert!(arguments.is_empty());
        arguments = arguments.value(2.0_f32).read(&x).write(&mut y).value(2_u32);
        assert_eq!(arguments.len(), 4);
        assert_eq!(
            format!("{arguments:?}"),
            "ArgumentList(f32, &[f32], &mut [f32], u32)"
        );
        // SAFETY: `saxpy` reads 2 elements of x and writes 2 of y.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), arguments) }
            .expect("it launches");
        assert_eq!(y.to_vec().expect("the buffer can be read"), [12.0, 24.0]);

        let null = DevicePointer::<f32>::null();
        let arguments = ArgumentList::new()
            .value(2.0_f32)
            .value(null)
            .write(&mut y)
            .value(0_u32);
        // SAFETY: `saxpy` accesses no elements.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), arguments) }
            .expect("it launches");
        assert_eq!(y.to_vec().expect("the buffer can be read"), [12.0, 24.0]);
    });
}

#[test]
fn argument_list_is_tracked() {
    on_driver(|test| {
        let (first, second, kernel) = (test.stream(), test.stream(), saxpy(test));
        let (x, mut y) = (buffer(&second, &[1.0]), buffer(&second, &[9.0]));
        let launch = |stream: &Stream, y: &mut DeviceBuffer<f32>| {
            let arguments = ArgumentList::new()
                .value(1.0_f32)
                .read(&x)
                .write(y)
                .value(1_u32);
            // SAFETY: `saxpy` reads 1 element of x, and writes one of y.
            unsafe { kernel.launch(stream, LaunchConfig::new(1, 32), arguments) }
                .expect("it launches");
        };
        // The first launch loads the code, which on hardware waits for the work that a gate blocks.
        launch(&second, &mut y);
        let gate = Gate::on(&first);
        launch(&first, &mut y);
        launch(&second, &mut y);
        assert!(
            stream_work::is_held_up(&second),
            "the second launch reads what the first writes"
        );
        gate.open();
        assert_eq!(y.to_vec().expect("the buffer can be read"), [12.0]);
    });
}

#[test]
fn argument_list_of_another_signature_is_an_error_that_names_the_argument() {
    on_driver(|test| {
        let (stream, kernel) = (test.stream(), saxpy(test));
        let x = buffer(&stream, &[1.0]);
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
    });
}

#[test]
fn parameters_of_a_kernel_are_queried_by_the_first_list_only() {
    on_driver(|test| {
        if !test.driver().has(Function::cuKernelGetParamInfo) {
            return;
        }
        let (stream, kernel) = (test.stream(), saxpy(test));
        let (x, mut y) = (buffer(&stream, &[1.0]), buffer(&stream, &[10.0]));
        for calls in [5, 0, 0] {
            let arguments = ArgumentList::new()
                .value(1.0_f32)
                .read(&x)
                .write(&mut y)
                .value(1_u32);
            test.assert_calls(Function::cuKernelGetParamInfo, calls, || {
                // SAFETY: `saxpy` reads 1 element of x, and writes one of y.
                unsafe {
                    kernel
                        .clone()
                        .launch(&stream, LaunchConfig::new(1, 32), arguments)
                }
                .expect("it launches");
            });
        }
        assert_eq!(y.to_vec().expect("the buffer can be read"), [13.0]);
    });
}

#[test]
fn argument_list_is_compared_with_the_ptx_on_older_drivers() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 3)),
        |test, _| {
            let (stream, kernel) = (test.stream(), saxpy(test));
            // SAFETY: the driver rejects the launch.
            let error = unsafe { kernel.launch(&stream, ONE(), ArgumentList::new().value(1_u32)) };
            let error = error.expect_err("there are four parameters");
            assert!(error.to_string().contains("has 4 parameters"), "{error}");
        },
    );
}

pub(crate) mod operations {
    use curium_driver::{ArgumentList, LaunchConfig};

    use crate::operations::{LEN, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[(
        "ArgumentList::check and ArgumentList::launch_with",
        |fixture| {
            let kernel = fixture.library.untyped_kernel("fill")?;
            let arguments = ArgumentList::new()
                .write(&mut fixture.buffer)
                .value(6_u32)
                .value(LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe {
                kernel.launch(
                    &fixture.other,
                    LaunchConfig::for_elements(LEN as u32),
                    arguments,
                )
            }?)
        },
    )];
}
