//! Many ranks with little work: bootstrap and groups.

use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Operation, Reduction};
use curium_sim::Config;
use curium_tests::on_simulator;

use super::{context, nccl};

const RANKS: usize = 256;

#[test]
fn two_hundred_and_fifty_six_ranks_reduce_in_a_group() {
    on_simulator(Config::new().with_devices(RANKS as u32), |driver, _| {
        let contexts: Vec<_> = (0..RANKS)
            .map(|device| context(driver.driver(), device))
            .collect();
        let streams: Vec<_> = contexts
            .iter()
            .map(|context| context.stream().expect("there is a stream"))
            .collect();
        let mut ranks = Communicator::all(&nccl(), &contexts).expect("the ranks can be created");
        let buffer =
            |stream| DeviceBuffer::from_slice(stream, &[1_u32; 4]).expect("memory suffices");
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
        grouped.expect("the group is started");
        for buffer in &buffers {
            assert_eq!(buffer.to_vec().expect("it can be read"), [RANKS as u32; 4]);
        }
    });
}
