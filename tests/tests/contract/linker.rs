//! [`Linker`](curium_driver::Linker): links several inputs into one image.
#![cfg(not(miri))]

use curium_driver::{
    Error, Function, Image, ImageKind, JitOptions, LaunchConfig, Library, LinkInput, Linker, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{kernels, on_driver, on_simulator};

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

fn ptx(text: &str) -> Image<'static> {
    Image::from_ptx(text).expect("this is PTX")
}

#[test]
fn code_of_several_texts_calls_each_other() {
    on_driver(|test| {
        let (stream, options) = (test.stream(), JitOptions::new());
        let mut linker = Linker::new(stream.context(), &options).expect("a link can begin");
        linker
            .add_image("caller", &ptx(CALLER), &options)
            .expect("the PTX is valid");
        linker
            .add_image("callee", &ptx(CALLEE), &options)
            .expect("the PTX is valid");
        let linked = linker.complete().expect("every name is defined");
        // SAFETY: the linker produced the image.
        let image = unsafe { Image::from_bytes(linked.as_bytes()) }
            .expect("the linker creates complete images");
        assert_eq!(image.kind(), ImageKind::Cubin);
        let module = Module::from_image(stream.context(), &linked.image(), &options)
            .expect("the image loads");
        let library = Library::from_image(&stream, &image, &options).expect("the image loads");
        linked.close().expect("the driver ends the link");
        for kernel in [
            module.kernel::<(&mut [u32], u32)>("store_twice"),
            library.kernel("store_twice"),
        ] {
            let kernel = kernel.expect("the image has the kernel");
            let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1).expect("memory suffices");
            // SAFETY: the kernel writes one word, which the buffer has.
            unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 21)) }
                .expect("it launches");
            assert_eq!(buffer.to_vec().expect("the buffer can be read"), [42]);
        }
    });
}

#[test]
fn input_from_a_file_is_linked() {
    on_driver(|test| {
        let options = JitOptions::new();
        let path = std::env::temp_dir().join(format!("curium-linker-{}.ptx", std::process::id()));
        std::fs::write(&path, CALLEE).expect("the temporary folder can be written");
        let mut linker = Linker::new(&test.context(), &options).expect("a link can begin");
        linker
            .add_image("caller", &ptx(CALLER), &options)
            .expect("the PTX is valid");
        // SAFETY: the file contains complete PTX.
        unsafe { linker.add_file(LinkInput::Ptx, &path, &options) }.expect("the file is PTX");
        std::fs::remove_file(&path).expect("the file is there");
        // SAFETY: the file does not exist.
        let error = unsafe { linker.add_file(LinkInput::Ptx, &path, &options) }
            .expect_err("the file is gone");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_FILE_NOT_FOUND));
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
        linker.complete().expect("every name is defined");
    });
}

#[test]
fn undefined_name_is_an_error_with_the_log() {
    on_driver(|test| {
        let options = JitOptions::new();
        let mut linker = Linker::new(&test.context(), &options).expect("a link can begin");
        linker
            .add_image("caller", &ptx(CALLER), &options)
            .expect("the PTX is valid");
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
    });
}

#[test]
fn input_that_is_broken_is_an_error_with_the_log_and_its_name() {
    on_driver(|test| {
        let options = JitOptions::new().with_verbose(true);
        let mut linker = Linker::new(&test.context(), &options).expect("a link can begin");
        let broken = kernels::SAXPY.replacen("fma.rn.f32", "fma.xx.f32", 1);
        let error = linker
            .add_image("broken saxpy", &ptx(&broken), &options)
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
    });
}

#[test]
fn link_that_the_driver_does_not_end_is_given_back() {
    on_simulator(Config::new(), |test, simulator| {
        let options = JitOptions::new();
        let mut linker = Linker::new(&test.context(), &options).expect("a link can begin");
        linker
            .add_image("callee", &ptx(CALLEE), &options)
            .expect("the PTX is valid");
        let linked = linker.complete().expect("every name is defined");
        simulator.inject(
            Fault::on(Function::cuLinkDestroy).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (linked, error) = linked
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuLinkDestroy));
        assert_eq!(simulator.live_handles().links, 1);
        assert!(!linked.as_bytes().is_empty());
        drop(linked);
        assert_eq!(simulator.live_handles().links, 0);
    });
}

pub(crate) mod operations {
    use curium_driver::{Image, JitOptions, LinkInput, Linker, Result};
    use curium_tests::kernels;

    use crate::operations::{Fixture, Made, Operation, boxed, made, ptx_file};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
