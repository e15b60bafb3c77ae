//! The primary context of a device: its state, its flags and its reset.

use curium_driver::{ContextFlags, ContextKind, RawContext};
use curium_sim::Config;
use curium_sys::CUresult;
use curium_tests::{in_own_process, on_driver, on_simulator};

#[test]
fn primary_context_is_active_while_it_is_retained() {
    on_simulator(Config::new(), |test, _| {
        let is_active = || {
            test.device()
                .primary_state()
                .expect("it can be read")
                .is_active
        };
        assert!(!is_active());
        let context = test.context();
        assert_eq!(context.kind(), ContextKind::Primary);
        assert!(is_active());
        drop(context);
        assert!(!is_active());
    });
}

#[test]
fn flags_of_the_primary_context_apply_to_it() {
    in_own_process(
        "primary_context::flags_of_the_primary_context_apply_to_it",
        || {
            on_driver(|test| {
                let device = test.device();
                device
                    .set_primary_flags(ContextFlags::BLOCKING_SYNC)
                    .expect("flags can be set");
                let state = device.primary_state().expect("it can be read");
                assert!(
                    state.flags.contains(ContextFlags::BLOCKING_SYNC),
                    "{state:?}"
                );
                let context = test.context();
                assert!(
                    context
                        .flags()
                        .expect("flags can be read")
                        .contains(ContextFlags::BLOCKING_SYNC)
                );
                device
                    .set_primary_flags(ContextFlags::empty())
                    .expect("flags can be set while it is active");
                assert!(
                    !context
                        .flags()
                        .expect("flags can be read")
                        .contains(ContextFlags::BLOCKING_SYNC)
                );
            });
        },
    );
}

#[test]
fn flags_that_a_primary_context_cannot_have_are_refused_by_name() {
    on_driver(|test| {
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
    });
}

#[test]
fn reset_ends_the_primary_context_until_it_is_retained_again() {
    in_own_process(
        "primary_context::reset_ends_the_primary_context_until_it_is_retained_again",
        || {
            on_driver(|test| {
                let context = test.context();
                // SAFETY: nothing was created in the primary context, and the call is a query, which the driver rejects.
                unsafe { test.device().reset_primary_context() }.expect("it can be reset");
                let error = context.memory_info().expect_err("the context is gone");
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
                );
                let again = test.context();
                again
                    .synchronize()
                    .expect("retaining it again creates a new context");
                // The reset released this retention, so it must not be released again.
                let _: RawContext = context.into_raw().expect("nothing was created from it");
            });
        },
    );
}

pub(crate) mod operations {
    use curium_driver::ContextFlags;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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

    pub(crate) const SOLITARY: &[Operation] = &[("Device::reset_primary_context", |fixture| {
        // Of another device where there is one: memory of the fixture's pools would outlive the context, and leak.
        let devices = fixture.device.driver().devices()?;
        let last = devices.last().unwrap_or(&fixture.device);
        // SAFETY: the objects created in the context are only dropped.
        made(unsafe { last.reset_primary_context() }?)
    })];
}
