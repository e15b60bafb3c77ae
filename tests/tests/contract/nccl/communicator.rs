//! Creating, splitting and ending communicators.

use curium_tests::{TestDriver, TestResult, driver_test};
use std::thread;

use std::time::Duration;

use curium_nccl::{Communicator, CommunicatorOptions, Error, Operation, Reduction, UniqueId};

use super::{Rank, context, nccl, on_devices, on_ranks};

#[driver_test(on_devices(2))]
fn rank_and_size_are_kept(driver: &TestDriver, size: usize) -> TestResult {
    let contexts: Vec<_> = (0..size)
        .map(|device| context(driver.driver(), device))
        .collect();
    let ranks = Communicator::all(&nccl(), &contexts)?;
    for (index, rank) in ranks.iter().enumerate() {
        assert_eq!((rank.rank(), rank.size()), (index, size));
        assert_eq!(
            rank.context().device().as_raw(),
            contexts[index].device().as_raw()
        );
    }
    Ok(())
}

#[test]
fn identifier_travels_as_bytes() {
    let id = UniqueId::from_bytes([0xfe; 128]);
    assert_eq!(UniqueId::from_bytes(*id.as_bytes()), id);
    assert_eq!(format!("{id:?}"), "UniqueId(fefefefefefefefe…)");
}

#[driver_test(on_devices(2))]
fn future_resolves_when_all_ranks_have_arrived(driver: &TestDriver, size: usize) -> TestResult {
    let id = UniqueId::new(&nccl())?;
    let driver = driver.driver();
    thread::scope(|scope| {
        for rank in 0..size {
            scope.spawn(move || {
                let context = context(driver, rank);
                if rank == 0 {
                    thread::sleep(Duration::from_millis(30));
                }
                let connecting = Communicator::connect(
                    &nccl(),
                    &context,
                    id,
                    rank,
                    size,
                    CommunicatorOptions::new(),
                );
                let communicator =
                    pollster::block_on(connecting.expect("it starts")).expect("the ranks arrive");
                let mut rank = Rank {
                    communicator,
                    stream: context.stream().expect("failed to create a stream"),
                };
                let mut memory = rank.buffer(&[1_i32; 3]);
                rank.communicator
                    .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
                    .expect("enqueue failed");
                assert_eq!(memory.to_vec().expect("read failed"), [size as i32; 3]);
                rank.close();
            });
        }
    });
    Ok(())
}

/// A split orders ranks by key and leaves out those without a color.
#[driver_test(on_ranks(4))]
fn split_orders_by_key_and_omits_no_color(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    // In reverse order, without rank 0 unless there are two ranks only.
    let color = (own_rank > 0 || size == 2).then_some(7);
    let split = rank.communicator.split(color, (size - own_rank) as u32)?;
    let members = if size == 2 { 2 } else { size - 1 };
    let Some(mut child) = split else {
        return {
            assert_eq!(color, None);
            Ok(())
        };
    };
    assert_eq!((child.rank(), child.size()), (size - 1 - own_rank, members));
    let mut memory = rank.buffer(&[own_rank as u32]);
    child.all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    let sum = (0..size as u32).sum::<u32>();
    assert_eq!(memory.to_vec()?, [sum]);
    child.close()?;
    Ok(())
}

#[driver_test(on_ranks(3))]
fn shrunken_communicator_has_the_ranks_that_remain(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    if own_rank == 0 {
        let refused = rank
            .communicator
            .shrink(&[0], false)
            .expect_err("a rank cannot exclude itself");
        assert!(matches!(refused, Error::Argument(_)), "{refused}");
        let refused = rank
            .communicator
            .shrink(&[], false)
            .expect_err("no rank is excluded");
        return {
            assert!(matches!(refused, Error::Argument(_)), "{refused}");
            Ok(())
        };
    }
    let mut child = match rank.communicator.shrink(&[0], false) {
        Err(Error::Missing(missing)) => {
            return {
                assert_eq!(missing.function, "ncclCommShrink");
                Ok(())
            };
        }
        child => child?,
    };
    assert_eq!((child.rank(), child.size()), (own_rank - 1, size - 1));
    let mut memory = rank.buffer(&[1_u32]);
    child.all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    assert_eq!(memory.to_vec()?, [size as u32 - 1]);
    child.close()?;
    Ok(())
}

#[driver_test(on_ranks(2))]
fn borrowed_communicator_is_left_alone(rank: &mut Rank) -> TestResult {
    let context = rank.communicator.context().clone();
    let raw = rank.communicator.as_raw()?;
    // SAFETY: the communicator is live and blocking, and used by this thread only, after each
    // other.
    let mut borrowed = unsafe { Communicator::borrow_raw(&nccl(), &context, raw) }?;
    assert_eq!(
        (borrowed.rank(), borrowed.size()),
        (rank.rank(), rank.size())
    );
    let mut memory = rank.buffer(&[1_u32]);
    borrowed.all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    let refused = borrowed
        .abort_handle()
        .abort()
        .expect_err("it belongs to other code");
    assert!(refused.to_string().contains("borrowed"), "{refused}");
    drop(borrowed);
    rank.communicator
        .enqueue(&rank.stream, Operation::broadcast(&mut memory, 0))?;
    assert_eq!(memory.to_vec()?, [rank.size() as u32]);
    Ok(())
}

#[driver_test(on_devices(2))]
fn foreign_device_stream_is_refused(driver: &TestDriver, size: usize) -> TestResult {
    let contexts: Vec<_> = (0..size)
        .map(|device| context(driver.driver(), device))
        .collect();
    let mut ranks = Communicator::all(&nccl(), &contexts)?;
    let stream = contexts[1].stream()?;
    let mut memory = curium_memory::DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    let refused = ranks[0]
        .broadcast(&stream, &mut memory, 0)
        .expect_err("it is another device");
    let expected = "broadcast: the stream belongs to another device (1, the communicator is on 0)";
    assert_eq!(refused.to_string(), expected);
    Ok(())
}

#[driver_test(on_devices(2))]
fn invalid_rank_is_refused(driver: &TestDriver, _: usize) -> TestResult {
    let id = UniqueId::new(&nccl())?;
    let refused = Communicator::new(&nccl(), &context(driver.driver(), 0), id, 2, 2)
        .expect_err("there are two");
    assert_eq!(
        refused.to_string(),
        "Communicator::new: rank out of range (2 of 2 ranks)"
    );
    let none = Communicator::all(&nccl(), &[]).expect_err("there is no rank");
    assert!(matches!(none, Error::Argument(_)), "{none}");
    Ok(())
}
