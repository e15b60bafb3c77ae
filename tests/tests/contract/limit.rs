//! [`Limit`]: the limits of a context.

use curium_driver::{ContextOptions, Limit};
use curium_sys::CUresult;
use curium_tests::on_driver;

#[test]
fn limit_is_what_it_was_set_to_or_what_the_hardware_can_do() {
    on_driver(|test| {
        let context = test.device().create_context(ContextOptions::new()).expect("a context can be created");
        for (limit, value, expected) in [
            (Limit::StackSize, 4096, 4096),
            (Limit::StackSize, 4097, 4112),
            (Limit::PrintfBuffer, 4 << 20, 4 << 20),
            (Limit::MallocHeap, 16 << 20, 16 << 20),
            (Limit::PendingLaunches, 4096, 4096),
            (Limit::L2FetchGranularity, 128, 128),
        ] {
            context.set_limit(limit, value).expect("the value is in range");
            assert_eq!(context.limit(limit).expect("the limit is known"), expected, "{limit:?}");
        }
        context.set_limit(Limit::PrintfBuffer, 1).expect("the value is raised");
        assert!(context.limit(Limit::PrintfBuffer).expect("the limit is known") >= 1024);
    });
}

#[test]
fn limit_out_of_range_is_an_error_that_says_what_to_do() {
    on_driver(|test| {
        let context = test.context();
        let error = context.set_limit(Limit::L2FetchGranularity, 129).expect_err("that is too much");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        let text = error.to_string();
        assert!(text.contains("L2FetchGranularity of 129") && text.contains("at most 128 bytes"), "{text}");
        let error = context.set_limit(Limit::PersistingL2, usize::MAX).expect_err("that is too much");
        assert!(error.to_string().contains("MAX_PERSISTING_L2_CACHE_SIZE"), "{error}");
    });
}

#[test]
fn limit_that_can_only_be_read_is_not_set() {
    on_driver(|test| {
        let context = test.context();
        let shared = context.limit(Limit::SharedMemory).expect("the limit is known");
        assert!(shared >= 48 << 10, "{shared}");
        let error = context.set_limit(Limit::SharedMemory, 1024).expect_err("it can only be read");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_PERMITTED));
        assert!(error.to_string().contains("it can only be read"), "{error}");
    });
}

#[test]
fn every_limit_is_read_or_refused_by_name() {
    on_driver(|test| {
        let context = test.context();
        let mut known = 0;
        for limit in Limit::ALL {
            match context.limit(limit) {
                Ok(_) => known += 1,
                Err(error) => {
                    let refusals = [CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT, CUresult::CUDA_ERROR_INVALID_VALUE];
                    assert!(error.code().is_some_and(|code| refusals.contains(&code)), "{error}");
                    assert!(error.to_string().contains(&format!("{limit:?}")), "{error}");
                }
            }
        }
        assert!(known >= 6, "the driver knows {known} limits only");
    });
}
