//! NCCL: on the simulator with the library for simulated devices, and with
//! `CURIUM_TEST_DRIVER=cuda` with this machine's, on its devices.

mod capture;
mod codes;
mod collective;
mod communicator;
mod disagreement;
mod failure;
mod group;
mod lifecycle;
mod order;
#[cfg(unix)]
mod processes;
mod registration;
mod scale;

use std::panic::resume_unwind;
use std::thread;

use curium_driver::{Context, Driver, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::Api;
use curium_nccl::{Communicator, CommunicatorOptions, Element, Nccl, UniqueId};
use curium_sim::Config;
use curium_tests::{TestDriver, TestResult, on_driver, on_simulator, uses_cuda};

/// The largest number of ranks on this machine's driver.
const MAX_RANKS: usize = 8;

fn nccl() -> Nccl {
    if uses_cuda() {
        Nccl::load().expect("CURIUM_TEST_DRIVER=cuda needs NCCL")
    } else {
        curium_sim_libraries::nccl()
    }
}

/// Returns the functions of the library for simulated devices, of which a test removes some.
fn simulated_functions() -> Api {
    // SAFETY: the table consists of pointers to functions.
    unsafe { std::ptr::read(curium_sim_libraries::nccl::<Nccl>().api()) }
}

/// One rank of a test, on a thread of its own.
struct Rank {
    communicator: Communicator,
    stream: Stream,
}

impl Rank {
    fn new(
        context: &Context,
        id: UniqueId,
        rank: usize,
        size: usize,
        options: CommunicatorOptions,
    ) -> Self {
        let communicator = Communicator::with_options(&nccl(), context, id, rank, size, options);
        Self {
            communicator: communicator.expect("the ranks connect"),
            stream: context.stream().expect("failed to create a stream"),
        }
    }

    fn rank(&self) -> usize {
        self.communicator.rank()
    }

    fn size(&self) -> usize {
        self.communicator.size()
    }

    fn buffer<T: Element>(&self, elements: &[T]) -> DeviceBuffer<T> {
        DeviceBuffer::from_slice(&self.stream, elements).expect("allocation failed")
    }

    fn zeroed<T: Element>(&self, len: usize) -> DeviceBuffer<T> {
        DeviceBuffer::zeroed(&self.stream, len).expect("allocation failed")
    }

    /// Ends the communicator after every rank is done.
    fn close(self) {
        self.communicator.close().expect("all ranks have finished");
    }
}

/// Runs a test with a driver that has `count` devices: of the simulator, or of this machine. The
/// test gets their number, which is smaller on a machine with fewer, and is left out with one.
fn on_devices(count: usize, test: impl Fn(&TestDriver, usize) -> TestResult) -> TestResult {
    if uses_cuda() {
        on_driver(|driver| {
            let devices = driver.driver().devices()?.len().min(count).min(MAX_RANKS);
            if devices < 2 {
                return curium_tests::skip("there is one device only");
            }
            test(driver, devices)
        })
    } else {
        let devices = u32::try_from(count)?;
        on_simulator(Config::new().with_devices(devices), |driver, _| {
            test(driver, count)
        })
    }
}

fn context(driver: &Driver, device: usize) -> Context {
    driver
        .device(device)
        .expect("no such device")
        .primary_context()
        .expect("it has a primary context")
}

/// Runs each of `count` ranks on a thread of its own.
fn on_ranks(count: usize, test: impl Fn(&mut Rank) -> TestResult + Sync) -> TestResult {
    on_ranks_with(count, CommunicatorOptions::new(), |mut rank| {
        test(&mut rank)?;
        rank.close();
        Ok(())
    })
}

fn on_ranks_with(
    count: usize,
    options: CommunicatorOptions,
    test: impl Fn(Rank) -> TestResult + Sync,
) -> TestResult {
    on_devices(count, |driver, size| {
        let id = UniqueId::new(&nccl())?;
        let driver = driver.driver();
        let test = &test;
        thread::scope(|scope| {
            let ranks: Vec<_> = (0..size)
                .map(|rank| {
                    scope.spawn(move || {
                        test(Rank::new(&context(driver, rank), id, rank, size, options))
                    })
                })
                .collect();
            for rank in ranks {
                rank.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            }
            Ok(())
        })
    })
}
