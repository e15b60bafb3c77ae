//! Many ranks with little work: bootstrap and groups.

use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Operation, Reduction};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, simulator_test};

use super::{context, nccl};

const RANKS: usize = 256;

#[simulator_test(Config::new().with_devices(RANKS as u32))]
fn two_hundred_and_fifty_six_ranks_reduce_in_a_group(
    driver: &TestDriver,
    _: &Simulator,
) -> TestResult {
    let contexts: Vec<_> = (0..RANKS)
        .map(|device| context(driver.driver(), device))
        .collect();
    let streams: Vec<_> = contexts
        .iter()
        .map(curium_driver::Context::stream)
        .collect::<Result<_, _>>()?;
    let mut ranks = Communicator::all(&nccl(), &contexts)?;
    let buffer = |stream| DeviceBuffer::from_slice(stream, &[1_u32; 4]).expect("allocation failed");
    let mut buffers: Vec<_> = streams.iter().map(buffer).collect();
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
    for buffer in &buffers {
        assert_eq!(buffer.to_vec()?, [RANKS as u32; 4]);
    }
    Ok(())
}

/// One of 256 ranks calls something else. Whatever the order of the calls, the last error names
/// this rank first, and its call.
#[simulator_test(Config::new().with_devices(RANKS as u32))]
fn wrong_rank_of_many_is_named(driver: &TestDriver, _: &Simulator) -> TestResult {
    let contexts: Vec<_> = (0..RANKS)
        .map(|device| context(driver.driver(), device))
        .collect();
    let streams: Vec<_> = contexts
        .iter()
        .map(curium_driver::Context::stream)
        .collect::<Result<_, _>>()?;
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..RANKS).collect();
        random.shuffle(&mut order);
        let wrong = random.usize(..RANKS);
        let mut ranks = Communicator::all(&nccl(), &contexts)?;
        let mut last = None;
        for rank in order {
            let stream = &streams[rank];
            let communicator = &mut ranks[rank];
            let mut words = DeviceBuffer::<u32>::zeroed(stream, 4)?;
            let mut longer = DeviceBuffer::<u32>::zeroed(stream, 5)?;
            let mut floats = DeviceBuffer::<f32>::zeroed(stream, 4)?;
            let mistake = (rank == wrong).then_some(seed % 4);
            let operation = match mistake {
                None => Operation::all_reduce_in_place(&mut words, Reduction::Sum),
                Some(0) => Operation::all_reduce_in_place(&mut longer, Reduction::Sum),
                Some(1) => Operation::all_reduce_in_place(&mut floats, Reduction::Sum),
                Some(2) => Operation::all_reduce_in_place(&mut words, Reduction::Max),
                Some(_) => Operation::broadcast(&mut words, 0),
            };
            if let Err(error) = communicator.enqueue(stream, operation) {
                last = Some(error.to_string());
            }
        }
        let message = last.ok_or("no error from ranks that disagree")?;
        let (_, calls) = message
            .split_once("operation 1 of the communicator: ")
            .ok_or("no list of calls in the error")?;
        assert!(
            calls.starts_with(&format!("rank {wrong} call")),
            "seed {seed}, rank {wrong}: {message}"
        );
        for communicator in ranks {
            communicator.abort()?;
        }
    }
    Ok(())
}
