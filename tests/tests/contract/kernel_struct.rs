//! Kernel sets declared as structs, and structs passed to kernels by value.

use curium_driver::{ByValue, Image, ImageKind, LaunchConfig, Library, Signature};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_driver};

curium_driver::kernels! {
    /// The kernels of `fill.cu`.
    struct Fill from "../../kernels/fill.ptx" {
        /// Writes `value`.
        fn fill(out: &mut [u32], value: u32, n: u32);
        fn index(out: &mut [u32], n: u32) = "fill_index";
    }
}

curium_driver::kernels! {
    struct SafeFill from "../../kernels/fill.ptx" unsafe {
        // SAFETY: the tests below pass at most the length of the buffer.
        safe fn fill_index(out: &mut [u32], n: u32);
        fn fill(out: &mut [u32], value: u32, n: u32);
    }
}

/// An image with a safety contract, as machine code requires.
// SAFETY: this is PTX that ends in a NUL.
static VOUCHED: Image<'static> = unsafe {
    Image::from_bytes_unchecked(
        ImageKind::Ptx,
        concat!(include_str!("../../kernels/fill.ptx"), "\0").as_bytes(),
    )
};

curium_driver::kernels! {
    struct Vouched from VOUCHED {
        fn fill_index(out: &mut [u32], n: u32);
    }
}

curium_driver::kernels! {
    struct Printing from "../../kernels/print.ptx" unsafe {
        // SAFETY: the kernel prints, and accesses no memory of the program.
        safe fn print_threads(seed: u32);
    }
}

curium_driver::kernels! {
    struct Built include "built.ptx" {
        fn fill_index(out: &mut [u32], n: u32);
    }
}

curium_driver::kernels! {
    struct Wrong {
        fn fill(out: &mut [u32], value: u64, n: u32);
    }
}

curium_driver::kernels! {
    struct Absent {
        fn fill_indices(out: &mut [u32], n: u32);
    }
}

/// Like `uint3` of CUDA C++: three words, twelve bytes.
#[derive(Clone, Copy, Debug, PartialEq, curium::ByValue)]
#[repr(C)]
struct Triple {
    first: u32,
    rest: [u32; 2],
}

#[derive(Clone, Copy, curium::ByValue)]
#[by_value(crate = curium_driver)]
#[repr(transparent)]
struct Count(pub u32);

#[driver_test]
fn declared_kernels_are_loaded_and_run(driver: &TestDriver) -> TestResult {
    let stream = driver.stream();
    let kernels = Fill::load(&stream)?;
    let mut out = DeviceBuffer::from_slice(&stream, &[0_u32; 4])?;
    // SAFETY: the kernel writes as many elements as its argument requires, which is the length of
    // the buffer.
    unsafe {
        kernels
            .fill
            .launch(&stream, LaunchConfig::for_elements(4), (&mut out, 7, 4))
    }?;
    assert_eq!(out.to_vec()?, [7; 4]);
    // SAFETY: the kernel writes as many elements as its argument requires, which is the length of
    // the buffer.
    unsafe {
        kernels
            .index
            .launch(&stream, LaunchConfig::for_elements(4), (&mut out, 4))
    }?;
    assert_eq!(out.to_vec()?, [0, 1, 2, 3]);
    assert_eq!(Fill::KERNEL_NAMES, ["fill", "fill_index"]);
    Ok(())
}

#[driver_test]
fn kernel_declared_safe_is_launched_by_safe_code(driver: &TestDriver) -> TestResult {
    let stream = driver.stream();
    let kernels = SafeFill::load(&stream)?;
    let mut out = DeviceBuffer::from_slice(&stream, &[9_u32; 3])?;
    kernels
        .fill_index
        .launch(&stream, LaunchConfig::for_elements(3), (&mut out, 3))?;
    assert_eq!(out.to_vec()?, [0, 1, 2]);
    assert_eq!(kernels.fill.name(), "fill");
    Ok(())
}

#[driver_test]
fn kernels_that_a_build_script_made_are_loaded(driver: &TestDriver) -> TestResult {
    let kernels = Built::load(&driver.stream())?;
    assert_eq!(
        (kernels.fill_index.name(), Built::KERNEL_NAMES),
        ("fill_index", ["fill_index"].as_slice())
    );
    Ok(())
}

/// Kernels of an image with a safety contract are loaded.
#[driver_test]
fn image_with_a_safety_contract_is_loaded(driver: &TestDriver) -> TestResult {
    let kernels = Vouched::load(&driver.stream())?;
    assert_eq!(kernels.fill_index.name(), "fill_index");
    Ok(())
}

/// Kernels of another library are safe by the word of the caller only.
#[driver_test]
fn foreign_kernels_require_an_unsafe_promise(driver: &TestDriver) -> TestResult {
    let library = Library::from_ptx(&driver.stream(), kernels::PRINT)?;
    // SAFETY: the library contains the code that the declaration names.
    let kernels = unsafe { Printing::from_library(&library) }?;
    assert_eq!(kernels.print_threads.name(), "print_threads");
    Ok(())
}

/// A declaration that is not the image's is an error when it is loaded.
#[driver_test]
fn mismatched_declaration_fails_to_load(driver: &TestDriver) -> TestResult {
    let library = Library::from_ptx(&driver.stream(), kernels::FILL)?;
    let error = Wrong::from_library(&library)
        .expect_err("the value is a word")
        .to_string();
    assert!(
        error.contains(
            "parameter 1 (counting from 0) of kernel `fill` has 4 bytes, and `u64` has 8"
        ),
        "{error}"
    );
    let error = Absent::from_library(&library)
        .expect_err("there is no such kernel")
        .to_string();
    assert!(
        error.contains("fill_indices") && error.contains("`fill_index`"),
        "{error}"
    );
    Ok(())
}

#[test]
fn struct_arrives_unchanged() -> TestResult {
    curium_driver::kernels! {
        struct Params from "../../kernels/params.ptx" {
            fn params(a: u8, b: u16, c: Count, d: u64, e: f32, f: f64, words: &mut [u64], triple: Triple);
        }
    }
    on_driver(|driver| -> TestResult {
        let stream = driver.stream();
        let kernels = Params::load(&stream)?;
        let mut out = DeviceBuffer::from_slice(&stream, &[0_u64; 10])?;
        let triple = Triple {
            first: 11,
            rest: [12, 13],
        };
        let arguments = (
            1_u8,
            2_u16,
            Count(3),
            4_u64,
            5.0_f32,
            6.0_f64,
            &mut out,
            triple,
        );
        // SAFETY: the kernel writes each parameter to an element of its own.
        unsafe {
            kernels
                .params
                .launch(&stream, LaunchConfig::new(1, 1), arguments)
        }?;
        let words = out.to_vec()?;
        assert_eq!(
            words[..6],
            [1, 2, 3, 4, u64::from(5.0_f32.to_bits()), 6.0_f64.to_bits()]
        );
        assert_eq!(words[7..10], [11, 12, 13]);
        Ok(())
    })?;
    Ok(())
}

/// Types with names that a macro might use internally.
mod names_of_macros {
    use curium_driver::{ByValue, DevicePointer};

    #[derive(Clone, Copy, curium::ByValue)]
    #[repr(C)]
    pub(super) struct __Field0 {
        pub(super) a: u64,
        pub(super) b: u8,
        pub(super) c: [u8; 7],
    }

    #[derive(Clone, Copy, curium::ByValue)]
    #[repr(transparent)]
    pub(super) struct __Driver(pub(super) u32);

    #[derive(Clone, Copy, curium::ByValue)]
    #[repr(C)]
    pub(super) struct T
    where
        u32: ByValue,
    {
        pub(super) driver: __Driver,
        pub(super) number: r#type,
        pub(super) next: DevicePointer<Self>,
    }

    #[expect(non_upper_case_globals, reason = "locals of macros have such names")]
    const size: usize = 2;

    #[derive(Clone, Copy, curium::ByValue)]
    #[repr(C)]
    pub(super) struct Counted {
        pub(super) sized: [u8; size],
    }

    #[derive(Clone, Copy, curium::ByValue)]
    #[by_value(crate = ::curium_driver)]
    #[repr(C, align(4))]
    pub(super) struct r#type {
        pub(super) low: u16,
        pub(super) high: u16,
    }
}

fn is_by_value<T: ByValue>() -> usize {
    <(T,) as Signature>::SIZES[0]
}

#[test]
fn derived_types_have_sizes() {
    assert_eq!((is_by_value::<Triple>(), is_by_value::<Count>()), (12, 4));
    assert_eq!(
        (
            is_by_value::<names_of_macros::__Field0>(),
            is_by_value::<names_of_macros::T>()
        ),
        (16, 16)
    );
    assert_eq!(is_by_value::<names_of_macros::Counted>(), 2);
}
