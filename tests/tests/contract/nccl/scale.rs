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
    let buffer = |stream| DeviceBuffer::from_slice(stream, &[1_u32; 4]).expect("memory suffices");
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
