//! The primary context of a device: its state, its flags and its reset.

use curium_driver::{ContextFlags, ContextKind, RawContext};
use curium_sim::Simulator;
use curium_sys::CUresult;
use curium_tests::{
    TestDriver, TestResult, driver_test, in_own_process, on_driver, simulator_test,
};

#[simulator_test]
fn primary_context_is_active_while_it_is_retained(test: &TestDriver, _: &Simulator) -> TestResult {
    let is_active = || -> TestResult<_> { Ok(test.device().primary_state()?.is_active) };
    assert!(!is_active()?);
    let context = test.context();
    assert_eq!(context.kind(), ContextKind::Primary);
    assert!(is_active()?);
    drop(context);
    assert!(!is_active()?);
    Ok(())
}

#[test]
fn primary_context_flags_apply() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let device = test.device();
            device.set_primary_flags(ContextFlags::BLOCKING_SYNC)?;
            let state = device.primary_state()?;
            assert!(
                state.flags.contains(ContextFlags::BLOCKING_SYNC),
                "{state:?}"
            );
            let context = test.context();
            assert!(context.flags()?.contains(ContextFlags::BLOCKING_SYNC));
            device.set_primary_flags(ContextFlags::empty())?;
            assert!(!context.flags()?.contains(ContextFlags::BLOCKING_SYNC));
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Flags that a primary context cannot have are refused by name.
#[driver_test]
fn unsupported_primary_flags_are_named(test: &TestDriver) {
    for flags in [
        ContextFlags::SPIN | ContextFlags::YIELD,
        ContextFlags::from_bits_retain(0x100),
    ] {
        let error = test
            .device()
            .set_primary_flags(flags)
            .expect_err("there is no such context");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(error.to_string().contains(&format!("{flags:?}")), "{error}");
    }
}

/// A reset ends the primary context until it is retained again.
#[test]
fn reset_ends_the_context() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let context = test.context();
            // SAFETY: nothing was created in the primary context, and the call is a query, which
            // the driver rejects.
            unsafe { test.device().reset_primary_context() }?;
            let error = context.memory_info().expect_err("the context is gone");
            assert_eq!(
                error.code(),
                Some(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
            );
            let again = test.context();
            again.synchronize()?;
            // The reset released this retention, so it must not be released again.
            let _: RawContext = context.into_raw().expect("nothing was created from it");
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::ContextFlags;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Device::primary_context", |fixture| {
            made(fixture.device.primary_context()?)
        }),
        ("Device::primary_state", |fixture| {
            made(fixture.device.primary_state()?)
        }),
        ("Device::set_primary_flags", |fixture| {
            made(fixture.device.set_primary_flags(ContextFlags::empty())?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Device::reset_primary_context", |fixture| {
        // Of another device where there is one: memory of the fixture's pools would outlive the
        // context, and leak.
        let devices = fixture.device.driver().devices()?;
        let last = devices.last().unwrap_or(&fixture.device);
        // SAFETY: the objects created in the context are only dropped.
        made(unsafe { last.reset_primary_context() }?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
