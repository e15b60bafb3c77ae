//! Modules, libraries and kernels owned by other code, or transferred to it.

use curium_driver::{Function, Kernel, Library, Module};
use curium_tests::{TestDriver, TestResult, driver_test, kernels, skip};

type Fill<'a> = (&'a mut [u32], u32, u32);

#[driver_test]
fn borrowed_code_is_not_unloaded(test: &TestDriver) -> TestResult {
    let context = test.context();
    let module = Module::from_ptx(&context, kernels::FILL)?;
    let library = Library::from_ptx(&context, kernels::FILL)?;
    test.assert_calls(Function::cuModuleUnload, 0, || -> TestResult<_> {
        // SAFETY: `module` outlives every object created from it here.
        let borrowed = unsafe { Module::borrow_raw(&context, module.as_raw()) };
        borrowed.kernel::<Fill>("fill")?;
        borrowed
            .into_raw()
            .map(drop)
            .expect_err("dropping this handle does not unload the module");
        Ok(())
    })?;
    test.assert_calls(Function::cuLibraryUnload, 0, || -> TestResult<_> {
        // SAFETY: `library` outlives every object created from it here.
        let borrowed = unsafe { Library::borrow_raw(&context, library.as_raw()) };
        borrowed.kernel::<Fill>("fill")?;
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn code_ownership_is_transferred(test: &TestDriver) -> TestResult {
    let context = test.context();
    let module = Module::from_ptx(&context, kernels::FILL)?;
    let clone = module.clone();
    let module = module.into_raw().expect_err("the clone keeps it");
    drop(clone);
    let raw = test
        .assert_calls(Function::cuModuleUnload, 0, || module.into_raw())
        .expect("nothing keeps it");
    // SAFETY: `into_raw` released ownership of the module, and it has no other owner.
    let module = unsafe { Module::from_raw(&context, raw) };
    test.assert_calls(Function::cuModuleUnload, 1, || drop(module));
    let library = Library::from_ptx(&context, kernels::FILL)?;
    let raw = test
        .assert_calls(Function::cuLibraryUnload, 0, || library.into_raw())
        .expect("nothing keeps it");
    // SAFETY: `into_raw` released ownership of the library, and it has no other owner.
    let library = unsafe { Library::from_raw(&context, raw) };
    test.assert_calls(Function::cuLibraryUnload, 1, || drop(library));
    Ok(())
}

/// Kernels of other code have their names and parameters.
#[driver_test]
fn foreign_kernels_have_names_and_parameters(test: &TestDriver) -> TestResult {
    let context = test.context();
    let module = Module::from_ptx(&context, kernels::FILL)?;
    let library = Library::from_ptx(&context, kernels::FILL)?;
    let function = module.kernel::<Fill>("fill")?;
    let kernel = library.kernel::<Fill>("fill")?;
    // SAFETY: `function` outlives every object created from it here.
    let foreign = unsafe { Kernel::borrow_raw_function(&context, function.as_raw()) }?;
    assert_eq!(foreign.name(), "fill");
    foreign.typed::<Fill>()?;
    if !test.driver().has(Function::cuKernelGetLibrary) {
        return skip("the driver lacks cuKernelGetLibrary");
    }
    // SAFETY: `kernel` outlives every object created from it here.
    let foreign = unsafe { Kernel::borrow_raw_kernel(test.driver(), kernel.as_raw().cast()) }?;
    assert_eq!(foreign.name(), "fill");
    foreign.typed::<Fill>()?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Kernel, Library, Module, Untyped};
    use curium_tests::kernels;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::borrow_raw_kernel", |fixture| {
            let raw = fixture.fill.as_raw().cast();
            // SAFETY: the fixture keeps the kernel.
            made(unsafe { Kernel::<Untyped>::borrow_raw_kernel(&fixture.driver, raw) }?)
        }),
        ("Kernel::borrow_raw_function", |fixture| {
            let function = fixture.fill.in_context(&fixture.context)?;
            // SAFETY: the fixture keeps the kernel's library, and so its module in the context.
            made(unsafe {
                Kernel::<Untyped>::borrow_raw_function(&fixture.context, function.as_raw())
            }?)
        }),
        ("Library::into_raw", |fixture| {
            let raw = Library::from_ptx(&fixture.driver, kernels::FILL)?
                .into_raw()
                .expect("nothing else owns it");
            // SAFETY: `into_raw` released ownership of the library, and it has no other owner.
            made(unsafe { Library::from_raw(&fixture.driver, raw) })
        }),
        ("Module::into_raw", |fixture| {
            let raw = Module::from_ptx(&fixture.context, kernels::FILL)?
                .into_raw()
                .expect("nothing else owns it");
            // SAFETY: `into_raw` released ownership of the module, and it has no other owner.
            made(unsafe { Module::from_raw(&fixture.context, raw) })
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
