//! [`Image`](curium_driver::Image): the inputs from which modules and libraries are loaded.

use curium_driver::{
    Error, Function, Image, ImageKind, JitOptions, LaunchConfig, Library, Linker, Module,
};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, simulator_test};

type Fill<'a> = (&'a mut [u32], u32, u32);

const CUBIN: &[u8] = include_bytes!("../../../crates/driver/tests/images/bump.sm_75.cubin");

#[driver_test]
fn module_and_library_from_ptx_bytes_run(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    // SAFETY: this is PTX.
    let image = unsafe { Image::from_bytes(kernels::FILL.as_bytes()) }?;
    let options = JitOptions::new();
    let module = Module::from_image(stream.context(), &image, &options)?;
    let library = Library::from_image(&stream, &image, &options)?;
    let cached = Library::from_kept_image(&stream, image.clone().into_owned(), &options)?;
    drop(image);
    for kernel in [
        module.kernel::<Fill>("fill"),
        library.kernel("fill"),
        cached.kernel("fill"),
    ] {
        let fill = kernel?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 10)?;
        // SAFETY: `fill` writes the first 10 words, which the buffer has.
        unsafe {
            fill.launch(
                &stream,
                LaunchConfig::for_elements(10),
                (&mut buffer, 8, 10),
            )
        }?;
        assert_eq!(buffer.to_vec()?, [8; 10]);
    }
    Ok(())
}

#[driver_test]
fn module_and_library_from_a_file_have_its_kernels(test: &TestDriver) -> TestResult {
    let path = std::env::temp_dir().join(format!("curium-image-{}.ptx", std::process::id()));
    std::fs::write(&path, kernels::FILL)?;
    let context = test.context();
    let options = JitOptions::new();
    // SAFETY: the file contains PTX, here and below.
    let read_here = unsafe { Image::from_file(&path) }?;
    let read_here = Library::from_image(&context, &read_here, &options)?;
    // SAFETY: the file contains PTX, here and below.
    let module = unsafe { Module::from_file(&context, &path) }?;
    // SAFETY: the file contains PTX, here and below.
    let library = unsafe { Library::from_file(&context, &path, &options) }?;
    std::fs::remove_file(&path)?;
    for kernel in [
        read_here.kernel::<Fill>("fill"),
        module.kernel("fill"),
        library.kernel("fill"),
    ] {
        kernel?;
    }
    // SAFETY: the file does not exist, here and below.
    let error = unsafe { Image::from_file(&path) }.expect_err("the file is gone");
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    // SAFETY: the file does not exist, here and below.
    let error = unsafe { Module::from_file(&context, &path) }.expect_err("the file is gone");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_FILE_NOT_FOUND));
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    Ok(())
}

/// A truncated cubin is an error before any driver call.
#[driver_test]
fn truncated_cubin_makes_no_driver_call(test: &TestDriver) {
    test.assert_calls(Function::cuModuleLoadDataEx, 0, || {
        for length in [0, 1, 16, 63, 64, CUBIN.len() / 2, CUBIN.len() - 1] {
            // SAFETY: the cubin is truncated where the checks detect it, so it is not loaded.
            let error = unsafe { Image::from_bytes(&CUBIN[..length]) }.map(|image| {
                Module::from_image(&test.context(), &image, &JitOptions::new()).map(drop)
            });
            let error = error.expect_err("bytes are missing");
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
    });
}

#[test]
fn bytes_without_an_image() {
    for bytes in [&[0xff_u8; 100][..], b"not code", &[0; 16]] {
        // SAFETY: no driver loads the image.
        let error = unsafe { Image::from_bytes(bytes) }
            .map(drop)
            .expect_err("the bytes are not an image");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error.to_string().starts_with("Image::from_bytes: "),
            "{error}"
        );
    }
}

#[simulator_test]
fn cubin_on_the_simulator_is_an_error_with_the_reason(
    test: &TestDriver,
    _: &Simulator,
) -> TestResult {
    // SAFETY: the compiler produced the cubin.
    let image = unsafe { Image::from_bytes(CUBIN) }?;
    let error = Module::from_image(&test.context(), &image, &JitOptions::new())
        .expect_err("there is no hardware");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
    let text = error.to_string();
    assert!(
        text.contains("Image(Cubin, 4208 bytes)") && text.contains("the simulator runs PTX only"),
        "{text}"
    );
    Ok(())
}

#[driver_test]
fn path_with_a_nul_is_an_error_that_shows_it(test: &TestDriver) {
    let context = test.context();
    let path = "a\0b.ptx";
    // SAFETY: no file has this path.
    let image = unsafe { Image::from_file(path) }.map(drop);
    // SAFETY: no file has this path.
    let module = unsafe { Module::from_file(&context, path) }.map(drop);
    // SAFETY: no file has this path.
    let library = unsafe { Library::from_file(&context, path, &JitOptions::new()) }.map(drop);
    for result in [image, module, library] {
        let error = result.expect_err("no file has such a path");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error
                .to_string()
                .contains(r#"path contains a NUL ("a\0b.ptx")"#),
            "{error}"
        );
    }
}

/// An empty module of version 13.1.
const TILE_IR: &[u8] = b"\x7fTileIR\0\x0d\x01\0\0\0";

#[simulator_test]
fn tile_ir_on_the_simulator_is_an_error_that_names_it(
    test: &TestDriver,
    _: &Simulator,
) -> TestResult {
    // SAFETY: the simulator loads no Tile IR.
    let image = unsafe { Image::from_bytes(TILE_IR) }?;
    assert_eq!(image.kind(), ImageKind::TileIr);
    let context = test.context();
    let module = Module::from_image(&context, &image, &JitOptions::new()).map(drop);
    let library = Library::from_image(&context, &image, &JitOptions::new()).map(drop);
    for error in [module, library].map(|result| result.expect_err("there is no compiler for it")) {
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
        let text = error.to_string();
        assert!(
            text.contains("Image(TileIr, 13 bytes)") && text.contains("the image contains Tile IR"),
            "{text}"
        );
    }
    Ok(())
}

#[driver_test]
fn tile_ir_is_not_linked(test: &TestDriver) -> TestResult {
    // SAFETY: the linker rejects the image before it is passed to the driver.
    let image = unsafe { Image::from_bytes(TILE_IR) }?;
    let options = JitOptions::new();
    let mut linker = Linker::new(&test.context(), &options)?;
    let error = linker
        .add_image("tiles", &image, &options)
        .expect_err("Tile IR cannot be linked");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("Linker::add_image: `tiles` is Tile IR"),
        "{error}"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Image, JitOptions, Library, Module};
    use curium_tests::kernels;

    use crate::operations::{Operation, Operations, made, ptx_file};

    const OPERATIONS: &[Operation] = &[
        ("Library::from_kept_image", |fixture| {
            let image = Image::from_ptx(kernels::FILL)?;
            made(Library::from_kept_image(
                &fixture.driver,
                image,
                &JitOptions::new(),
            )?)
        }),
        ("Library::from_image", |fixture| {
            made(Library::from_image(
                &fixture.driver,
                &Image::from_ptx(kernels::FILL)?,
                &JitOptions::new(),
            )?)
        }),
        ("Library::from_file", |fixture| {
            // SAFETY: the file is PTX.
            made(unsafe { Library::from_file(&fixture.driver, ptx_file(), &JitOptions::new()) }?)
        }),
        ("Module::from_image", |fixture| {
            made(Module::from_image(
                &fixture.context,
                &Image::from_ptx(kernels::FILL)?,
                &JitOptions::new(),
            )?)
        }),
        ("Module::from_file", |fixture| {
            // SAFETY: the file is PTX.
            made(unsafe { Module::from_file(&fixture.context, ptx_file()) }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Module::from_fat_binary_record", |fixture| {
        // SAFETY: the simulator rejects null and does not dereference it.
        made(unsafe { Module::from_fat_binary_record(&fixture.context, std::ptr::null()) }?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
