//! Groups: ranks of one thread, exchanges, and the end of a group by an error or a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Error, Operation, Reduction};

use super::{Rank, context, nccl, on_devices, on_ranks};

#[test]
fn one_thread_has_all_ranks() {
    on_devices(8, |driver, size| {
        let contexts: Vec<_> = (0..size).map(|device| context(driver.driver(), device)).collect();
        let streams: Vec<_> = contexts.iter().map(|context| context.stream().expect("there is a stream")).collect();
        let mut ranks = Communicator::all(&nccl(), &contexts).expect("the ranks can be created");
        let buffer = |(rank, stream)| DeviceBuffer::from_slice(stream, &[rank as u32; 100]).expect("memory suffices");
        let mut buffers: Vec<_> = streams.iter().enumerate().map(buffer).collect();
        let grouped = nccl().group(|group| {
            for ((rank, stream), buffer) in ranks.iter_mut().zip(&streams).zip(&mut buffers) {
                group.enqueue(rank, stream, Operation::all_reduce_in_place(buffer, Reduction::Sum))?;
            }
            Ok(())
        });
        grouped.expect("the group is started");
        let sum = (0..size as u32).sum::<u32>();
        for buffer in &buffers {
            assert_eq!(buffer.to_vec().expect("it can be read"), [sum; 100]);
        }
    });
}

#[test]
fn ranks_exchange_elements_in_a_group() {
    on_ranks(4, |rank: &mut Rank| {
        let (own, size) = (rank.rank(), rank.size());
        let (next, previous) = ((own + 1) % size, (own + size - 1) % size);
        let source = rank.buffer(&[own as i32; 50]);
        let mut target = rank.zeroed::<i32>(50);
        let Rank { communicator, stream } = rank;
        let grouped = nccl().group(|group| {
            group.enqueue(communicator, stream, Operation::send(&source, next))?;
            group.enqueue(communicator, stream, Operation::receive(&mut target, previous))
        });
        grouped.expect("the group is started");
        assert_eq!(target.to_vec().expect("it can be read"), [previous as i32; 50]);
    });
}

#[test]
fn rank_sends_to_itself_in_a_group() {
    on_ranks(2, |rank: &mut Rank| {
        let own = rank.rank();
        let source = rank.buffer(&[own as u8; 20]);
        let mut target = rank.zeroed::<u8>(20);
        let Rank { communicator, stream } = rank;
        let grouped = nccl().group(|group| {
            group.enqueue(communicator, stream, Operation::send(&source, own))?;
            group.enqueue(communicator, stream, Operation::receive(&mut target, own))
        });
        grouped.expect("the group is started");
        assert_eq!(target.to_vec().expect("it can be read"), [own as u8; 20]);
    });
}

#[test]
fn several_operations_progress_together_with_their_own_factors() {
    on_ranks(2, |rank: &mut Rank| {
        let size = rank.size() as f32;
        let (mut first, mut second) = (rank.buffer(&[1.0_f32; 10]), rank.buffer(&[1.0_f32; 20]));
        let Rank { communicator, stream } = rank;
        let grouped = nccl().group(|group| {
            group.enqueue(
                communicator,
                stream,
                Operation::all_reduce_in_place(&mut first, Reduction::ScaledSum(2.0)),
            )?;
            group.enqueue(communicator, stream, Operation::all_reduce_in_place(&mut second, Reduction::ScaledSum(3.0)))
        });
        grouped.expect("the group is started");
        assert_eq!(first.to_vec().expect("it can be read"), [2.0 * size; 10]);
        assert_eq!(second.to_vec().expect("it can be read"), [3.0 * size; 20]);
    });
}

#[test]
fn panic_ends_the_group_and_starts_the_enqueued_operations() {
    on_ranks(2, |rank: &mut Rank| {
        let mut memory = rank.buffer(&[1.0_f32; 10]);
        let Rank { communicator, stream } = rank;
        let grouped = catch_unwind(AssertUnwindSafe(|| {
            nccl().group(|group| {
                group.enqueue(communicator, stream, Operation::all_reduce_in_place(&mut memory, Reduction::Sum))?;
                if true {
                    panic!("the closure fails");
                }
                Ok(())
            })
        }));
        grouped.expect_err("it panics");
        assert_eq!(memory.to_vec().expect("it can be read"), [rank.size() as f32; 10]);
        // The next operation is in no group.
        rank.communicator.all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max).expect("the group has ended");
        assert_eq!(memory.to_vec().expect("it can be read"), [rank.size() as f32; 10]);
    });
}

#[test]
fn error_of_the_closure_is_returned_after_the_end() {
    on_ranks(2, |rank: &mut Rank| {
        let (source, mut target) = (rank.zeroed::<f32>(10), rank.zeroed::<f32>(11));
        let Rank { communicator, stream } = rank;
        let grouped =
            nccl().group(|group| group.enqueue(communicator, stream, Operation::all_gather(&source, &mut target)));
        assert!(matches!(grouped, Err(Error::Argument(_))), "{grouped:?}");
        rank.communicator.all_reduce_in_place(&rank.stream, &mut target, Reduction::Sum).expect("the group has ended");
    });
}

#[test]
fn operations_outside_the_group_are_refused_within_it() {
    on_ranks(2, |rank: &mut Rank| {
        let mut memory = rank.zeroed::<f32>(10);
        let inner = nccl().group(|_| {
            let nested = nccl().group(|_| Ok(()));
            assert!(matches!(nested, Err(Error::Argument(_))), "{nested:?}");
            assert!(rank.communicator.synchronize(&rank.stream).is_err());
            rank.communicator.all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
        });
        let message = inner.expect_err("the operation would not start").to_string();
        assert_eq!(message, "all_reduce: called within a group; use the group's own method, or end it first");
    });
}
