//! [`Global`](curium_driver::Global): variables of loaded code.

use curium_driver::{Error, Global, LaunchConfig, Library, Module};
use curium_memory::DeviceBuffer;
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test};

const COUNTER: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 4 .u32 step = 3;
.visible .global .align 8 .u64 table[4] = { 1, 2, 3, 4 };
.visible .entry take(.param .u64 out) {
    .reg .u64 %rd<3>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [step];
    st.global.u32 [%rd2], %r1;
    ret;
}
";

#[driver_test]
fn variable_is_read_and_written(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let module = Module::from_ptx(stream.context(), COUNTER)?;
    let library = Library::from_ptx(test.driver(), COUNTER)?;
    let of_library = library.global::<u32>(stream.context(), "step");
    let of_module = module.global::<u32>("step");
    let kernels = [
        module.kernel::<(&mut [u32],)>("take"),
        library.kernel("take"),
    ];
    drop((module, library));
    for (step, take) in [of_module, of_library].into_iter().zip(kernels) {
        let step = step?;
        let take = take?;
        assert_eq!(
            (step.len(), step.byte_len(), step.is_empty()),
            (1, 4, false)
        );
        let mut value = [0];
        // SAFETY: no kernel uses the variable, and numbers are valid for every bit pattern.
        unsafe { step.read(&stream, &mut value) }?;
        assert_eq!(value, [3]);
        // SAFETY: no kernel uses the variable.
        unsafe { step.write(&stream, &[11]) }?;
        let mut taken = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
        // SAFETY: `take` writes one word, which the buffer has.
        unsafe { take.launch(&stream, LaunchConfig::new(1, 1), (&mut taken,)) }?;
        assert_eq!(taken.to_vec()?, [11]);
    }
    Ok(())
}

#[driver_test]
fn array_variable_has_its_length(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let module = Module::from_ptx(stream.context(), COUNTER)?;
    let table: Global<u64> = module.global("table")?;
    let mut values = [0; 4];
    // SAFETY: no kernel uses the variable, and numbers are valid for every bit pattern.
    unsafe { table.read(&stream, &mut values) }?;
    assert_eq!(values, [1, 2, 3, 4]);
    // SAFETY: no kernel uses the variable, and numbers are valid for every bit pattern.
    let error = unsafe { table.read(&stream, &mut [0; 3]) }.expect_err("the slice is too short");
    assert!(
        error
            .to_string()
            .contains("the variable has 4 elements, the slice has 3"),
        "{error}"
    );
    // SAFETY: no kernel uses the variable, and numbers are valid for every bit pattern.
    unsafe { table.write(&stream, &[0; 5]) }.expect_err("the slice is too long");
    Ok(())
}

#[driver_test]
fn variable_size_mismatch_is_an_error(test: &TestDriver) -> TestResult {
    let module = Module::from_ptx(&test.context(), COUNTER)?;
    for error in [
        module
            .global::<u64>("step")
            .map(drop)
            .expect_err("it has four bytes"),
        module
            .global::<[u8; 3]>("step")
            .map(drop)
            .expect_err("four is not a multiple of three"),
        module
            .global::<()>("step")
            .map(drop)
            .expect_err("a variable is not empty"),
    ] {
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error.to_string().contains("variable `step` has 4 bytes"),
            "{error}"
        );
    }
    assert_eq!(module.global::<u16>("step")?.len(), 2);
    Ok(())
}

#[driver_test]
fn variable_that_is_absent_is_an_error_that_names_it(test: &TestDriver) -> TestResult {
    let context = test.context();
    let module = Module::from_ptx(&context, COUNTER)?;
    let library = Library::from_ptx(test.driver(), COUNTER)?;
    for error in [
        module.global::<u32>("absent").expect_err("there is none"),
        library
            .global::<u32>(&context, "absent")
            .expect_err("there is none"),
    ] {
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
        assert!(error.to_string().contains("variable `absent`"), "{error}");
        assert_eq!(error.hint(), Some("the image has `table`, `step`"));
    }
    let of_context = library.module(&context)?;
    let error = of_context
        .global::<u32>("tables")
        .expect_err("there is none");
    assert_eq!(error.hint(), Some("the image has `table`, `step`"));
    module
        .global::<u32>("st\0ep")
        .expect_err("a name has no NUL");
    Ok(())
}

/// A managed variable of a library is one for kernels and the host.
#[driver_test]
fn managed_variable_is_shared_with_the_host(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let ptx = COUNTER.replace(
        ".visible .global .align 4 .u32 step",
        ".visible .global .attribute(.managed) .align 4 .u32 step",
    );
    let library = Library::from_ptx(test.driver(), &ptx)?;
    let take = library.kernel::<(&mut [u32],)>("take")?;
    let step = library.managed::<u32>("step")?;
    let mut value = [0];
    // SAFETY: no kernel uses the variable any more, and numbers are valid for every bit pattern.
    unsafe { step.read(&stream, &mut value) }?;
    assert_eq!(value, [3]);
    // SAFETY: no kernel uses the variable any more, and numbers are valid for every bit pattern.
    unsafe { step.write(&stream, &[12]) }?;
    let mut taken = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
    // SAFETY: `take` writes one word, which the buffer has.
    unsafe { take.launch(&stream, LaunchConfig::new(1, 1), (&mut taken,)) }?;
    assert_eq!(taken.to_vec()?, [12]);
    let error = library
        .managed::<u64>("table")
        .expect_err("it is not managed");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
    assert_eq!(error.hint(), Some("`table` is not a managed variable"));
    Ok(())
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Library::global", |fixture| {
            made(fixture.variables.global::<u32>(&fixture.context, "word")?)
        }),
        ("Module::global", |fixture| {
            made(fixture.module_variables.global::<u32>("word")?)
        }),
        ("Global::write", |fixture| {
            // SAFETY: no kernel uses the variable.
            made(unsafe { fixture.word.write(&fixture.other, &[4]) }?)
        }),
        ("Global::read", |fixture| {
            // SAFETY: no kernel uses the variable, and any bytes are a number.
            made(unsafe { fixture.word.read(&fixture.other, &mut [0]) }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Library::managed", |fixture| {
        made(fixture.library.managed::<u32>("word")?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
