//! [`Linker`](curium_driver::Linker): links several inputs into one image.
#![cfg(not(miri))]

use curium_driver::{
    Error, Function, Image, ImageKind, JitOptions, LaunchConfig, Library, LinkInput, Linker, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

const CALLER: &str = "
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry store_twice(.param .u64 out, .param .u32 value) {
    .reg .u64 %rd<3>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [value];
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        call.uni (answer), twice, (argument);
        ld.param.b32 %r2, [answer];
    }
    st.global.u32 [%rd2], %r2;
    ret;
}
";

const CALLEE: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 value) {
    .reg .u32 %r<3>;
    ld.param.b32 %r1, [value];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
";

fn ptx(text: &str) -> TestResult<Image<'static>> {
    Ok(Image::from_ptx(text)?)
}

#[driver_test]
fn linked_texts_call_each_other(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = JitOptions::new();
    let mut linker = Linker::new(stream.context(), &options)?;
    linker.add_image("caller", &ptx(CALLER)?, &options)?;
    linker.add_image("callee", &ptx(CALLEE)?, &options)?;
    let linked = linker.complete()?;
    // SAFETY: the linker produced the image.
    let image = unsafe { Image::from_bytes(linked.as_bytes()) }?;
    assert_eq!(image.kind(), ImageKind::Cubin);
    let module = Module::from_image(stream.context(), &linked.image(), &options)?;
    let library = Library::from_image(&stream, &image, &options)?;
    linked.close()?;
    for kernel in [
        module.kernel::<(&mut [u32], u32)>("store_twice"),
        library.kernel("store_twice"),
    ] {
        let kernel = kernel?;
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
        // SAFETY: the kernel writes one word, which the buffer has.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 21)) }?;
        assert_eq!(buffer.to_vec()?, [42]);
    }
    Ok(())
}

#[driver_test]
fn input_from_a_file_is_linked(test: &TestDriver) -> TestResult {
    let options = JitOptions::new();
    let path = std::env::temp_dir().join(format!("curium-linker-{}.ptx", std::process::id()));
    std::fs::write(&path, CALLEE)?;
    let mut linker = Linker::new(&test.context(), &options)?;
    linker.add_image("caller", &ptx(CALLER)?, &options)?;
    // SAFETY: the file contains complete PTX.
    unsafe { linker.add_file(LinkInput::Ptx, &path, &options) }?;
    std::fs::remove_file(&path)?;
    // SAFETY: the file does not exist.
    let error =
        unsafe { linker.add_file(LinkInput::Ptx, &path, &options) }.expect_err("the file is gone");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_FILE_NOT_FOUND));
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    linker.complete()?;
    Ok(())
}

#[driver_test]
fn undefined_name_is_an_error_with_the_log(test: &TestDriver) -> TestResult {
    let options = JitOptions::new();
    let mut linker = Linker::new(&test.context(), &options)?;
    linker.add_image("caller", &ptx(CALLER)?, &options)?;
    let error = linker.complete().expect_err("`twice` is not defined");
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert!(
        error
            .log
            .as_deref()
            .is_some_and(|log| log.contains("twice")),
        "{:?}",
        error.log
    );
    Ok(())
}

/// An input that is broken is an error with the log and its name.
#[driver_test]
fn broken_input_is_named_with_the_log(test: &TestDriver) -> TestResult {
    let options = JitOptions::new().with_verbose(true);
    let mut linker = Linker::new(&test.context(), &options)?;
    let broken = kernels::SAXPY.replacen("fma.rn.f32", "fma.xx.f32", 1);
    let error = linker
        .add_image("broken saxpy", &ptx(&broken)?, &options)
        .expect_err("the PTX is broken");
    assert_eq!(error.function(), Some(Function::cuLinkAddData_v2));
    assert!(
        error.to_string().contains("input `broken saxpy`"),
        "{error}"
    );
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert!(
        error
            .log
            .as_deref()
            .is_some_and(|log| log.contains("line ")),
        "{:?}",
        error.log
    );
    Ok(())
}

#[simulator_test]
fn link_that_the_driver_does_not_end_is_given_back(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let options = JitOptions::new();
    let mut linker = Linker::new(&test.context(), &options)?;
    linker.add_image("callee", &ptx(CALLEE)?, &options)?;
    let linked = linker.complete()?;
    simulator
        .inject(Fault::on(Function::cuLinkDestroy).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (linked, error) = linked
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuLinkDestroy));
    assert_eq!(simulator.live_handles().links, 1);
    assert!(!linked.as_bytes().is_empty());
    drop(linked);
    assert_eq!(simulator.live_handles().links, 0);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Image, JitOptions, LinkInput, Linker, Result};
    use curium_tests::kernels;

    use crate::operations::{Fixture, Made, Operation, Operations, boxed, made, ptx_file};

    const OPERATIONS: &[Operation] = &[
        ("Linker::complete", |fixture| {
            let options = JitOptions::new();
            let mut linker = Linker::new(&fixture.context, &options)?;
            linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &options)?;
            linker
                .complete()?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Linker::new", |fixture| {
            made(Linker::new(&fixture.context, &JitOptions::new())?)
        }),
        ("Linker::add_image", |fixture| {
            let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
            linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &JitOptions::new())?;
            made(linker)
        }),
        ("Linker::add_bytes", |fixture| {
            let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
            let text = [kernels::FILL.as_bytes(), &[0]].concat();
            // SAFETY: the bytes are PTX that ends with a NUL.
            unsafe { linker.add_bytes(LinkInput::Ptx, "fill", &text, &JitOptions::new()) }?;
            made(linker)
        }),
        ("Linker::add_file", |fixture| {
            let mut linker = Linker::new(&fixture.context, &JitOptions::new())?;
            // SAFETY: the file is PTX.
            unsafe { linker.add_file(LinkInput::Ptx, ptx_file(), &JitOptions::new()) }?;
            made(linker)
        }),
        ("LinkedImage::close", |fixture| linked_and_closed(fixture)),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Common(OPERATIONS) }

    fn linked_and_closed(fixture: &Fixture) -> Result<Made> {
        let options = JitOptions::new();
        let mut linker = Linker::new(&fixture.context, &options)?;
        linker.add_image("fill", &Image::from_ptx(kernels::FILL)?, &options)?;
        linker
            .complete()?
            .close()
            .map_err(|returned| returned.error)
            .map(boxed)
    }
}
