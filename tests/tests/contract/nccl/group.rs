//! Groups: ranks of one thread, exchanges, and the end of a group by an error or a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use curium_memory::DeviceBuffer;
use curium_nccl::sys::ncclResult_t;
use curium_nccl::{AbortHandle, Communicator, Error, Nccl, Operation, Reduction};
use curium_tests::{TestDriver, TestResult, copy_of, driver_test, skip};

use super::{Rank, context, nccl, on_devices, on_ranks};

#[driver_test(on_devices(8))]
fn one_thread_has_all_ranks(driver: &TestDriver, size: usize) -> TestResult {
    let contexts: Vec<_> = (0..size)
        .map(|device| context(driver.driver(), device))
        .collect();
    let streams: Vec<_> = contexts
        .iter()
        .map(curium_driver::Context::stream)
        .collect::<Result<_, _>>()?;
    let mut ranks = Communicator::all(&nccl(), &contexts)?;
    let buffer = |(rank, stream)| {
        DeviceBuffer::from_slice(stream, &[rank as u32; 100]).expect("allocation failed")
    };
    let mut buffers: Vec<_> = streams.iter().enumerate().map(buffer).collect();
    let grouped = nccl().group(|group| {
        for ((rank, stream), buffer) in ranks.iter_mut().zip(&streams).zip(&mut buffers) {
            group.enqueue(
                rank,
                stream,
                Operation::all_reduce_in_place(buffer, Reduction::Sum),
            )?;
        }
        Ok(())
    });
    grouped?;
    let sum = (0..size as u32).sum::<u32>();
    for buffer in &buffers {
        assert_eq!(buffer.to_vec()?, [sum; 100]);
    }
    Ok(())
}

#[driver_test(on_ranks(4))]
fn ranks_exchange_elements_in_a_group(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    let next = (own_rank + 1) % size;
    let previous = (own_rank + size - 1) % size;
    let source = rank.buffer(&[own_rank as i32; 50]);
    let mut target = rank.zeroed::<i32>(50);
    let Rank {
        communicator,
        stream,
    } = rank;
    let grouped = nccl().group(|group| {
        group.enqueue(communicator, stream, Operation::send(&source, next))?;
        group.enqueue(
            communicator,
            stream,
            Operation::receive(&mut target, previous),
        )
    });
    grouped?;
    assert_eq!(target.to_vec()?, [previous as i32; 50]);
    Ok(())
}

#[driver_test(on_ranks(2))]
fn rank_sends_to_itself_in_a_group(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let source = rank.buffer(&[own_rank as u8; 20]);
    let mut target = rank.zeroed::<u8>(20);
    let Rank {
        communicator,
        stream,
    } = rank;
    let grouped = nccl().group(|group| {
        group.enqueue(communicator, stream, Operation::send(&source, own_rank))?;
        group.enqueue(
            communicator,
            stream,
            Operation::receive(&mut target, own_rank),
        )
    });
    grouped?;
    assert_eq!(target.to_vec()?, [own_rank as u8; 20]);
    Ok(())
}

/// Several operations progress together with their own factors.
#[driver_test(on_ranks(2))]
fn grouped_operations_keep_their_factors(rank: &mut Rank) -> TestResult {
    let size = rank.size() as f32;
    let mut first = rank.buffer(&[1.0_f32; 10]);
    let mut second = rank.buffer(&[1.0_f32; 20]);
    let Rank {
        communicator,
        stream,
    } = rank;
    let grouped = nccl().group(|group| {
        group.enqueue(
            communicator,
            stream,
            Operation::all_reduce_in_place(&mut first, Reduction::ScaledSum(2.0)),
        )?;
        group.enqueue(
            communicator,
            stream,
            Operation::all_reduce_in_place(&mut second, Reduction::ScaledSum(3.0)),
        )
    });
    grouped?;
    assert_eq!(first.to_vec()?, [2.0 * size; 10]);
    assert_eq!(second.to_vec()?, [3.0 * size; 20]);
    Ok(())
}

/// A panic ends the group and starts the enqueued operations.
#[driver_test(on_ranks(2))]
fn panic_ends_the_group(rank: &mut Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 10]);
    let Rank {
        communicator,
        stream,
    } = rank;
    let grouped = catch_unwind(AssertUnwindSafe(|| {
        nccl().group(|group| {
            group.enqueue(
                communicator,
                stream,
                Operation::all_reduce_in_place(&mut memory, Reduction::Sum),
            )?;
            if true {
                panic!("the closure fails");
            }
            Ok(())
        })
    }));
    grouped.expect_err("it panics");
    assert_eq!(memory.to_vec()?, [rank.size() as f32; 10]);
    // The next operation is in no group.
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
    assert_eq!(memory.to_vec()?, [rank.size() as f32; 10]);
    Ok(())
}

#[driver_test(on_ranks(2))]
fn closure_error_is_returned_after_the_end(rank: &mut Rank) -> TestResult {
    let source = rank.zeroed::<f32>(10);
    let mut target = rank.zeroed::<f32>(11);
    let Rank {
        communicator,
        stream,
    } = rank;
    let grouped = nccl().group(|group| {
        group.enqueue(
            communicator,
            stream,
            Operation::all_gather(&source, &mut target),
        )
    });
    assert!(matches!(grouped, Err(Error::Argument(_))), "{grouped:?}");
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut target, Reduction::Sum)?;
    Ok(())
}

#[driver_test(on_ranks(2))]
fn operations_outside_the_group_are_refused_within_it(rank: &mut Rank) -> TestResult {
    let mut memory = rank.zeroed::<f32>(10);
    let inner = nccl().group(|_| {
        let nested = nccl().group(|_| Ok(()));
        assert!(matches!(nested, Err(Error::Argument(_))), "{nested:?}");
        assert!(rank.communicator.synchronize(&rank.stream).is_err());
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
    });
    let message = inner
        .expect_err("the operation would not start")
        .to_string();
    assert_eq!(
        message,
        "all_reduce: called within a group; use the group's own method, or end it first"
    );
    Ok(())
}

/// A value whose drop waits until another thread has aborted a communicator, and sends whether it
/// has.
struct AbortsElsewhere(AbortHandle, Sender<bool>);

impl Drop for AbortsElsewhere {
    fn drop(&mut self) {
        let handle = self.0.clone();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(handle.abort().is_ok()));
        let has_aborted = receiver
            .recv_timeout(Duration::from_secs(5))
            .unwrap_or(false);
        self.1.send(has_aborted).expect("the test waits for it");
    }
}

unsafe extern "C" fn ends_with_an_error() -> ncclResult_t {
    // SAFETY: the caller's thread is in a group.
    curium_sim_libraries::nccl::<Nccl>()
        .api()
        .ncclGroupEnd
        .map(|end| unsafe { end() });
    ncclResult_t::ncclInternalError
}

/// A value of the closure is dropped after the communicators were released.
#[test]
fn value_drops_after_the_release() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    let mut api = copy_of(curium_sim_libraries::nccl::<Nccl>().api());
    api.ncclGroupEnd = Some(ends_with_an_error);
    // SAFETY: the functions are those of the simulated library; the end of a group may fail.
    let library = unsafe { Nccl::from_api(api) }?;
    on_devices(1, |driver, _| -> TestResult {
        let context = context(driver.driver(), 0);
        let mut ranks = Communicator::all(&library, std::slice::from_ref(&context))?;
        let stream = context.stream()?;
        let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
        let (sender, receiver) = mpsc::channel();
        let grouped = library.group(|group| {
            let operation = Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
            group.enqueue(&mut ranks[0], &stream, operation)?;
            Ok(AbortsElsewhere(ranks[0].abort_handle(), sender))
        });
        assert!(matches!(grouped, Err(Error::Call(_))), "the end has failed");
        assert!(receiver.recv()?, "the abort waited for the group");
        Ok(())
    })?;
    Ok(())
}
