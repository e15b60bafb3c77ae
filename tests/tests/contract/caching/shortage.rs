//! Error messages when memory is exhausted.

use curium_driver::Error;
use curium_memory::{CachingOptions, CachingResource, Resource, SyncAlloc};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, simulator_test};

use super::block::Block;
use super::caching;

#[simulator_test(Config::new().with_memory_budget(48 << 20))]
fn allocation_fails_only_when_memory_is_exhausted(test: &TestDriver, _: &Simulator) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let first = Block::new(&resource, &stream, 20 << 20);
    let second = Block::new(&resource, &stream, 20 << 20);
    let error = resource
        .allocate(&stream, 20 << 20, 256)
        .expect_err("the budget is used up");
    assert!(error.is_out_of_memory(), "{error}");
    let Error::OutOfMemory(figures) = &error else {
        panic!("{error:?} has no figures")
    };
    assert_eq!(
        (figures.requested, figures.total),
        (20 << 20, Some(48 << 20))
    );
    assert_eq!(
        figures.largest_free,
        Some(resource.statistics().longest_free_bytes as usize)
    );
    drop((first, second));
    stream.synchronize()?;
    drop(Block::new(&resource, &stream, 40 << 20));
    Ok(())
}

/// An out-of-memory error of a cache reports the requested size.
#[simulator_test(Config::new().with_memory_budget(48 << 20))]
fn cache_reports_the_size_when_out_of_memory(test: &TestDriver, _: &Simulator) -> TestResult {
    let options = CachingOptions::new().with_cache(true);
    let resource = CachingResource::with_upstream(&test.context(), &options, SyncAlloc)?;
    // The upstream resource receives a request for a whole segment.
    let bytes = (60 << 20) + 1000;
    let error = resource
        .allocate(&test.stream(), bytes, 256)
        .expect_err("there is less memory");
    let Error::OutOfMemory(figures) = &error else {
        panic!("{error:?} has no figures")
    };
    assert_eq!(
        (figures.requested, figures.total, figures.largest_free),
        (bytes, Some(48 << 20), Some(0))
    );
    assert!(
        error
            .to_string()
            .contains(&format!(" for a request of {bytes} bytes, ")),
        "{error}"
    );
    Ok(())
}
