//! The training of the example gives the same losses on one rank and on several.

#[path = "../examples/data_parallel/train.rs"]
mod train;

use std::thread;

use curium_driver::Driver;
use curium_nccl::{Communicator, UniqueId};
use curium_sim::{Config, Simulator};

use self::train::train;

const STEPS: usize = 12;

fn losses(ranks: usize) -> Vec<f32> {
    let config = Config::new().with_devices(ranks as u32);
    let driver = Simulator::new(config).expect("it can be created").driver::<Driver>().expect("it starts");
    let nccl = curium_sim_libraries::nccl();
    let id = UniqueId::new(&nccl).expect("it is simulated");
    let rank = &|rank: usize| {
        let context = driver.device(rank).expect("it exists").primary_context().expect("it has one");
        let mut communicator = Communicator::new(&nccl, &context, id, rank, ranks).expect("the ranks meet");
        let losses = train(&curium_sim_libraries::cublas(), &mut communicator, STEPS).expect("it can be trained");
        communicator.close().expect("the ranks have finished");
        losses
    };
    let all: Vec<Vec<f32>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|number| scope.spawn(move || rank(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    assert!(all.iter().all(|losses| *losses == all[0]), "every rank has the same losses");
    all.into_iter().next().expect("there is a rank")
}

#[test]
fn losses_of_two_and_four_ranks_are_those_of_one() {
    let one = losses(1);
    assert!(one[STEPS - 1] < 0.7 * one[0], "the loss falls: {one:?}");
    for ranks in [2, 4] {
        for (single, several) in one.iter().zip(losses(ranks)) {
            assert!((single - several).abs() <= 1e-5 * single, "{ranks} ranks: {single} and {several}");
        }
    }
}
