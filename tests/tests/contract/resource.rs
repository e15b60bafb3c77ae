//! [`Resource`]: what holds for all of them, and the sources.

use std::sync::Arc;

use curium_driver::{Error, Function, Result, Stream};
use curium_memory::{Plain, Resource, StreamOrdered};
use curium_tests::on_driver;

/// Allocates and gives back.
fn round(resource: &impl Resource, stream: &Stream, bytes: usize, alignment: usize) -> Result<()> {
    let pointer = resource.allocate(stream, bytes, alignment)?;
    assert!(pointer.as_raw() != 0 && pointer.as_raw() % alignment as u64 == 0, "{pointer:?}");
    // SAFETY: the memory came from this resource with these figures, and nobody uses it.
    unsafe { resource.deallocate(stream, pointer, bytes, alignment) }
}

#[test]
fn resource_gives_aligned_memory_and_takes_it_back() {
    on_driver(|test| {
        let stream = test.stream();
        let resources: [Arc<dyn Resource>; 2] = [Arc::new(StreamOrdered), Arc::new(Plain)];
        for resource in resources {
            for (bytes, alignment) in [(1, 1), (1, 256), (255, 16), (1 << 20, 256)] {
                round(&resource, &stream, bytes, alignment).expect("memory suffices");
            }
        }
    });
}

#[test]
fn stream_ordered_makes_one_call_each_way() {
    on_driver(|test| {
        let stream = test.stream();
        test.assert_calls(Function::cuMemAllocAsync, 1, || {
            test.assert_calls(Function::cuMemFreeAsync, 1, || {
                round(&StreamOrdered, &stream, 64, 64).expect("memory suffices");
            });
        });
    });
}

#[test]
fn sizes_and_alignments_that_cannot_be_are_errors_with_the_figures() {
    on_driver(|test| {
        let stream = test.stream();
        let cases = [
            (0, 16, "the size is 0"),
            (usize::MAX, 16, "18446744073709551615 bytes are more than the address space holds"),
            (16, 0, "an alignment of 0 bytes is not a power of two"),
            (16, 24, "an alignment of 24 bytes is not a power of two"),
            (16, 512, "an alignment of 512 bytes is more than the 256 that are possible"),
        ];
        for (bytes, alignment, expected) in cases {
            for resource in [&StreamOrdered as &dyn Resource, &Plain] {
                let error = resource.allocate(&stream, bytes, alignment).expect_err("the request is refused");
                assert!(matches!(error, Error::Argument(_)), "{error}");
                assert!(error.to_string().ends_with(expected), "{error}");
            }
        }
    });
}
