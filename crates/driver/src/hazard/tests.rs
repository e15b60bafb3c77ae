//! The protocols between threads, checked by loom for every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p
//! curium-driver --lib hazard`.
//!
//! Every access has a number. When it is ordered, it stores the accesses recorded so far; when it is enqueued, its
//! number is appended to one list. Of two conflicting accesses, the later one in the list must have found the earlier
//! one recorded.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use super::capture_gate::{CaptureGate, ThreadNumber};
use super::claims::{Leases, launch_holding};
use super::lease_lock::{FreeAccesses, LaunchRecord, Launches, LeaseLock, Log};
use super::registrations::Registrations;

/// The log of one allocation: the numbers of the accesses. Those on the owner stream ascend from `first_owner_access`.
struct Numbers {
    recorded: Vec<usize>,
    first_owner_access: usize,
    /// The accesses on the owner stream that are ordered after all conflicting ones.
    free_on_owner_stream: FreeAccesses,
    /// Omits launches, so that the model must fail.
    is_forgetful: bool,
}

impl Log for Numbers {
    type Launches = Vec<usize>;

    fn record_launches(&mut self, launches: &Vec<usize>, is_write: bool) {
        if !self.is_forgetful {
            self.recorded.extend(launches);
        }
        let free = if is_write {
            FreeAccesses::None
        } else {
            FreeAccesses::Reads
        };
        self.free_on_owner_stream = self.free_on_owner_stream.min(free);
    }

    fn record_on_owner_stream(&mut self, read: u64, written: u64) {
        let last = usize::try_from(read.max(written)).expect("numbers are small");
        self.recorded.extend(self.first_owner_access..=last);
    }

    fn free_on_owner_stream(&mut self) -> FreeAccesses {
        self.free_on_owner_stream
    }
}

#[derive(Clone)]
struct Lease {
    allocation: Arc<LeaseLock<Numbers>>,
    is_write: bool,
}

impl Leases<Numbers> for Lease {
    fn lock(&self) -> &LeaseLock<Numbers> {
        &self.allocation
    }

    fn is_write(&self) -> bool {
        self.is_write
    }
}

/// An enqueued access.
struct Enqueued {
    number: usize,
    is_write: bool,
    /// The accesses that it is ordered after.
    after: Vec<usize>,
}

/// All enqueued accesses, in order.
#[derive(Clone)]
struct Device(Arc<Mutex<Vec<Enqueued>>>);

impl Device {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn enqueue(&self, number: usize, is_write: bool, after: &[usize]) {
        self.0.lock().unwrap().push(Enqueued {
            number,
            is_write,
            after: after.to_vec(),
        });
    }

    fn assert_ordered(&self) {
        let list = self.0.lock().unwrap();
        for (index, later) in list.iter().enumerate() {
            for earlier in list[..index]
                .iter()
                .filter(|earlier| earlier.is_write || later.is_write)
            {
                assert!(
                    later.after.contains(&earlier.number),
                    "{} missed {}",
                    later.number,
                    earlier.number
                );
            }
        }
    }
}

/// An executable graph: its leases, in the same order for all, and the accesses that its stream is ordered after.
struct Executable {
    record: Arc<LaunchRecord<Vec<usize>>>,
    leases: Vec<Lease>,
    after: Vec<usize>,
}

impl Executable {
    fn new(leases: Vec<Lease>) -> Self {
        Self {
            record: Arc::new(LaunchRecord::new(leases.len())),
            leases,
            after: Vec::new(),
        }
    }

    fn launch(&mut self, device: &Device, number: usize) {
        let is_write = self.leases.iter().any(|lease| lease.is_write);
        let after = RefCell::new(std::mem::take(&mut self.after));
        let enqueue = |launches: &mut Launches<Vec<usize>>| -> Result<(), Infallible> {
            device.enqueue(number, is_write, &after.borrow());
            after.borrow_mut().push(number);
            launches.latest.get_or_insert_default().push(number);
            Ok(())
        };
        let mut launches = self.record.lock();
        let launched = if launches.missing.is_empty() {
            enqueue(&mut launches)
        } else {
            drop(launches);
            let order = |_: &Lease, log: &mut Numbers| -> Result<(), Infallible> {
                after.borrow_mut().extend(&log.recorded);
                Ok(())
            };
            launch_holding(&self.record, &self.leases, order, enqueue)
        };
        launched.unwrap_or_else(|never| match never {});
        self.after = after.into_inner();
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.leases
            .iter()
            .for_each(|lease| lease.allocation.release_holder(&self.record));
    }
}

/// The stream of the owner: its operations, and the accesses that it is ordered after.
struct Owner {
    registrations: Arc<Registrations>,
    after: Vec<usize>,
}

impl Owner {
    fn new(registrations: &Arc<Registrations>) -> Self {
        Self {
            registrations: Arc::clone(registrations),
            after: Vec::new(),
        }
    }

    /// Performs an access of the owner to all of `allocations` in one operation.
    fn access(
        &mut self,
        allocations: &[Arc<LeaseLock<Numbers>>],
        device: &Device,
        number: usize,
        is_write: bool,
    ) {
        let mut is_registered = false;
        let mut locked = Vec::new();
        for allocation in allocations {
            let begin = || {
                is_registered = is_registered || self.registrations.begin();
                is_registered
            };
            if allocation.begin_on_owner_stream(is_write, begin) {
                continue;
            }
            let order = |log: &mut Numbers| -> Result<(), Infallible> {
                self.after.extend(&log.recorded);
                let free = if is_write {
                    FreeAccesses::All
                } else {
                    FreeAccesses::Reads
                };
                log.free_on_owner_stream = log.free_on_owner_stream.max(free);
                Ok(())
            };
            let is_nested = is_registered || !locked.is_empty();
            allocation
                .begin(is_write, is_nested, order)
                .unwrap_or_else(|never| match never {});
            locked.push(Arc::as_ptr(allocation));
        }
        device.enqueue(number, is_write, &self.after);
        self.after.push(number);
        for allocation in allocations {
            if locked.contains(&Arc::as_ptr(allocation)) {
                allocation.end(is_write, |log| log.recorded.push(number));
            } else {
                allocation.record_on_owner_stream(is_write, number as u64);
            }
        }
        if is_registered {
            self.registrations.end();
        }
    }
}

/// Returns allocations on whose owner stream the owner's accesses have numbers from `first_owner_access`.
fn allocations<const N: usize>(
    registrations: &Arc<Registrations>,
    first_owner_access: usize,
) -> [Arc<LeaseLock<Numbers>>; N] {
    std::array::from_fn(|_| {
        let log = Numbers {
            recorded: Vec::new(),
            first_owner_access,
            free_on_owner_stream: FreeAccesses::None,
            is_forgetful: false,
        };
        Arc::new(LeaseLock::new(log, Arc::clone(registrations)))
    })
}

fn leases(allocations: &[Arc<LeaseLock<Numbers>>], is_write: bool) -> Vec<Lease> {
    allocations
        .iter()
        .map(|allocation| Lease {
            allocation: Arc::clone(allocation),
            is_write,
        })
        .collect()
}

/// Runs `model` for every interleaving with up to three preemptive context switches.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

/// A defect of the protocol that the model must find.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Mutation {
    /// Launches wait for the operations of another stream.
    WaitsForAnotherStream,
    /// Launches are not recorded.
    OmitsLaunches,
}

/// One thread launches twice, another uses the allocations before and during the launches.
fn access_against_launch(is_launch_write: bool, mutation: Option<Mutation>) {
    check(move || {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let mut owner = Owner::new(&registrations);
        let waited_for = if mutation == Some(Mutation::WaitsForAnotherStream) {
            Arc::default()
        } else {
            registrations
        };
        let allocations = allocations::<1>(&waited_for, 3);
        allocations[0].peek(|log| log.is_forgetful = mutation == Some(Mutation::OmitsLaunches));
        // From here on the owner needs no lock.
        owner.access(&allocations, &device, 3, true);
        let mut executable = Executable::new(leases(&allocations, is_launch_write));
        let launching = {
            let device = device.clone();
            thread::spawn(move || {
                executable.launch(&device, 1);
                executable.launch(&device, 2);
            })
        };
        owner.access(&allocations, &device, 4, true);
        owner.access(&allocations, &device, 5, false);
        launching.join().unwrap();
        owner.access(&allocations, &device, 6, true);
        device.assert_ordered();
    });
}

/// Accesses and launches that write are ordered with each other.
#[test]
fn writing_launches_are_ordered() {
    access_against_launch(true, None);
}

/// Accesses and launches that read are ordered with each other.
#[test]
fn reading_launches_are_ordered() {
    access_against_launch(false, None);
}

/// An access to several allocations is ordered with a launch.
#[test]
fn several_allocations() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let mut owner = Owner::new(&registrations);
        let allocations = allocations::<2>(&registrations, 3);
        let [first, second] = &allocations;
        // The owner takes the lock of one of the two, but not of the other.
        owner.access(&[Arc::clone(second)], &device, 3, true);
        let mut executable = Executable::new(leases(&allocations, true));
        let launching = {
            let device = device.clone();
            thread::spawn(move || {
                executable.launch(&device, 1);
                executable.launch(&device, 2);
            })
        };
        owner.access(&[Arc::clone(second), Arc::clone(first)], &device, 4, true);
        launching.join().unwrap();
        owner.access(&allocations, &device, 5, true);
        device.assert_ordered();
    });
}

#[test]
fn two_executables_are_ordered() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let mut owner = Owner::new(&registrations);
        let allocations = allocations::<2>(&registrations, 5);
        let threads = [1, 3].map(|number| {
            let device = device.clone();
            let mut executable = Executable::new(leases(&allocations, true));
            thread::spawn(move || {
                executable.launch(&device, number);
                executable.launch(&device, number + 1);
            })
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        owner.access(&allocations, &device, 5, true);
        device.assert_ordered();
    });
}

#[test]
fn dropped_executable() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let mut owner = Owner::new(&registrations);
        let allocations = allocations::<1>(&registrations, 4);
        let mut dropped = Executable::new(leases(&allocations, true));
        dropped.launch(&device, 1);
        let dropping = {
            let device = device.clone();
            thread::spawn(move || {
                dropped.launch(&device, 2);
                drop(dropped);
            })
        };
        let mut other = Executable::new(leases(&allocations, true));
        other.launch(&device, 3);
        dropping.join().unwrap();
        owner.access(&allocations, &device, 4, true);
        device.assert_ordered();
    });
}

#[test]
#[should_panic(expected = "missed")]
fn unrecorded_launch_is_detected() {
    access_against_launch(true, Some(Mutation::OmitsLaunches));
}

#[test]
#[should_panic(expected = "missed")]
fn missing_wait_is_detected() {
    access_against_launch(true, Some(Mutation::WaitsForAnotherStream));
}

/// Threads enqueue work in a capture while another thread ends it: the log contains exactly the work that the driver
/// captures.
fn capture_against_end(enters: bool) {
    check(move || {
        let gate = Arc::new(CaptureGate::new());
        gate.open(Vec::new());
        // The driver: whether the stream is still being captured, and the work in the graph.
        let driver = Arc::new(Mutex::new((true, Vec::new())));
        let threads = [1, 2].map(|number| {
            let gate = Arc::clone(&gate);
            let driver = Arc::clone(&driver);
            thread::spawn(move || {
                let is_in = if enters {
                    gate.enter(ThreadNumber::new(number), false)
                } else {
                    gate.with(|_| ()).is_some()
                };
                if is_in {
                    gate.with(|log: &mut Vec<usize>| log.push(number));
                }
                let is_captured = {
                    let mut driver = driver.lock().unwrap();
                    if driver.0 {
                        driver.1.push(number);
                    }
                    driver.0
                };
                assert_eq!(is_captured, is_in, "{number} was taken for the other");
                if is_in && enters {
                    gate.leave(ThreadNumber::new(number));
                }
            })
        });
        let ending = ThreadNumber::new(0);
        let closed = gate.close(ending, |_| driver.lock().unwrap().0 = false, || {});
        let closed = closed.expect("it is closed once");
        assert!(!closed.is_disturbed);
        let mut recorded = closed.log;
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let mut captured = std::mem::take(&mut driver.lock().unwrap().1);
        recorded.sort_unstable();
        captured.sort_unstable();
        assert_eq!(recorded, captured, "the graph keeps what it has");
    });
}

/// Work enqueued while a capture ends is in its log.
#[test]
fn work_at_the_end_is_captured() {
    capture_against_end(true);
}

#[test]
#[should_panic(expected = "was taken for the other")]
fn uncaptured_work_is_detected() {
    capture_against_end(false);
}
