//! The protocols between threads, checked by loom for every interleaving: `RUSTFLAGS="--cfg loom"
//! cargo test -p curium-driver --lib hazard`.
//!
//! Every access has a number. When it is ordered, it stores the accesses recorded so far; when it
//! is enqueued, its number is appended to one list. Of two conflicting accesses, the later one in
//! the list must have found the earlier one recorded.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;

use super::lease_lock::{
    Claim, Claimable, FreeAccesses, LaunchRecord, Launches, LeaseLock, Log, launch_holding,
};
use super::registrations::Registrations;
use crate::base::capture_gate::CaptureGate;
use crate::base::sync::AtomicU64;

/// The log of one allocation.
struct Numbers {
    /// The accesses on the owner stream, one bit each.
    on_owner_stream: AtomicU64,
    /// Omits launches, so that the model must fail.
    is_forgetful: bool,
}

/// The other accesses, which the lock protects.
struct Recorded {
    numbers: Vec<usize>,
    /// The accesses on the owner stream that are ordered after all conflicting ones.
    free: FreeAccesses,
}

impl Log for Numbers {
    type Locked = Recorded;
    type Launches = Vec<usize>;

    fn record_launches(&self, locked: &mut Recorded, launches: &Vec<usize>, is_write: bool) {
        if !self.is_forgetful {
            locked.numbers.extend(launches);
        }
        locked.restrict(is_write);
    }

    fn free_accesses(&self, locked: &Recorded) -> FreeAccesses {
        locked.free
    }
}

impl Numbers {
    /// Returns everything that is recorded.
    fn all(&self, locked: &Recorded) -> Vec<usize> {
        let bits = self.on_owner_stream.load(Relaxed);
        let owner_accesses = (0..64).filter(|number| bits >> number & 1 == 1);
        owner_accesses
            .chain(locked.numbers.iter().copied())
            .collect()
    }
}

impl Recorded {
    /// An access on another stream: the owner stream has not waited for it.
    fn restrict(&mut self, is_write: bool) {
        let free = if is_write {
            FreeAccesses::None
        } else {
            FreeAccesses::Reads
        };
        self.free = self.free.min(free);
    }
}

type Allocation = Arc<LeaseLock<Numbers>>;

#[derive(Clone)]
struct Lease {
    allocation: Allocation,
    is_write: bool,
}

impl Claimable<Numbers> for Lease {
    fn claim(&self) -> Claim<'_, Numbers> {
        self.allocation.claim(self.is_write)
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

/// An executable graph: its leases, in the same order for all, and the accesses that its stream is
/// ordered after.
struct Executable {
    record: Arc<LaunchRecord<Vec<usize>>>,
    leases: Vec<Lease>,
    after: Vec<usize>,
}

impl Executable {
    fn new(allocations: &[Allocation], is_write: bool) -> Self {
        let leases = allocations.iter().map(|allocation| Lease {
            allocation: Arc::clone(allocation),
            is_write,
        });
        Self {
            record: Arc::new(Launches::recorded(allocations.len())),
            leases: leases.collect(),
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
            let order = |_: &Lease, log: &Numbers, locked: &mut Recorded| {
                after.borrow_mut().extend(log.all(locked));
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
        for lease in &self.leases {
            lease.allocation.release_holder(&self.record);
        }
    }
}

/// A defect of the protocol that the model must find.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Mutation {
    /// Launches are not recorded.
    OmitsLaunches,
    /// Launches wait for the operations of another stream.
    WaitsForAnotherStream,
    /// An operation accesses memory without a lock before it registers.
    SkipsRegistration,
    /// An operation deregisters before its access is recorded.
    DeregistersBeforeRecord,
}

/// A stream of the owner, and the accesses that it is ordered after.
struct Owner {
    /// `None` for another stream than the owner stream.
    registrations: Option<Arc<Registrations>>,
    after: Vec<usize>,
    mutation: Option<Mutation>,
}

impl Owner {
    fn new(registrations: &Arc<Registrations>) -> Self {
        Self {
            registrations: Some(Arc::clone(registrations)),
            after: Vec::new(),
            mutation: None,
        }
    }

    fn on_another_stream() -> Self {
        Self {
            registrations: None,
            after: Vec::new(),
            mutation: None,
        }
    }

    /// Performs an access of the owner to all of `allocations` in one operation.
    fn access(
        &mut self,
        allocations: &[Allocation],
        device: &Device,
        number: usize,
        is_write: bool,
    ) {
        let mut is_registered = false;
        let mut locked = vec![false; allocations.len()];
        for (index, allocation) in allocations.iter().enumerate() {
            if self.begins_freely(allocation, &mut is_registered, is_write) {
                continue;
            }
            let is_nested = is_registered || locked.contains(&true);
            let is_owner_stream = self.registrations.is_some();
            let order = |log: &Numbers, recorded: &mut Recorded| -> Result<(), Infallible> {
                self.after.extend(log.all(recorded));
                if is_owner_stream {
                    let free = if is_write {
                        FreeAccesses::All
                    } else {
                        FreeAccesses::Reads
                    };
                    recorded.free = recorded.free.max(free);
                }
                Ok(())
            };
            allocation
                .begin(is_write, is_nested, order)
                .unwrap_or_else(|never| match never {});
            locked[index] = true;
        }
        device.enqueue(number, is_write, &self.after);
        self.after.push(number);
        if self.mutation == Some(Mutation::DeregistersBeforeRecord) {
            self.deregister(&mut is_registered);
        }
        for (allocation, is_locked) in allocations.iter().zip(locked) {
            if is_locked {
                allocation.end(is_write, |log, recorded| {
                    self.record(log, Some(recorded), number, is_write);
                });
            } else {
                self.record(&allocation.log, None, number, is_write);
            }
        }
        self.deregister(&mut is_registered);
    }

    /// Returns `true` if the access needs no lock, and registers the operation.
    fn begins_freely(
        &self,
        allocation: &Allocation,
        is_registered: &mut bool,
        is_write: bool,
    ) -> bool {
        let Some(registrations) = &self.registrations else {
            return false;
        };
        if self.mutation == Some(Mutation::SkipsRegistration) {
            return allocation.begin_on_owner_stream(is_write, || true);
        }
        allocation.begin_on_owner_stream(is_write, || {
            *is_registered = *is_registered || registrations.begin();
            *is_registered
        })
    }

    fn record(
        &self,
        log: &Numbers,
        recorded: Option<&mut Recorded>,
        number: usize,
        is_write: bool,
    ) {
        if self.registrations.is_some() {
            log.on_owner_stream.fetch_or(1 << number, Relaxed);
        } else if let Some(recorded) = recorded {
            recorded.numbers.push(number);
            recorded.restrict(is_write);
        }
    }

    fn deregister(&self, is_registered: &mut bool) {
        if std::mem::take(is_registered)
            && let Some(registrations) = &self.registrations
        {
            registrations.end();
        }
    }
}

fn allocations<const N: usize>(registrations: &Arc<Registrations>) -> [Allocation; N] {
    forgetful_allocations(registrations, false)
}

/// Returns allocations that do not record launches if they are forgetful.
fn forgetful_allocations<const N: usize>(
    registrations: &Arc<Registrations>,
    is_forgetful: bool,
) -> [Allocation; N] {
    std::array::from_fn(|_| {
        let log = Numbers {
            on_owner_stream: AtomicU64::new(0),
            is_forgetful,
        };
        let recorded = Recorded {
            numbers: Vec::new(),
            free: FreeAccesses::None,
        };
        Arc::new(LeaseLock::new(log, recorded, Arc::clone(registrations)))
    })
}

/// Runs `model` for every interleaving with up to three preemptive context switches.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

/// One thread launches twice, another uses the allocation before and during the launches.
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
        let is_forgetful = mutation == Some(Mutation::OmitsLaunches);
        let allocations = forgetful_allocations::<1>(&waited_for, is_forgetful);
        // From here on the owner needs no lock.
        owner.access(&allocations, &device, 3, true);
        owner.mutation = mutation;
        let mut executable = Executable::new(&allocations, is_launch_write);
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
        owner.mutation = None;
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

#[test]
#[should_panic(expected = "missed")]
fn missing_registration_is_detected() {
    access_against_launch(true, Some(Mutation::SkipsRegistration));
}

#[test]
#[should_panic(expected = "missed")]
fn early_deregistration_is_detected() {
    access_against_launch(true, Some(Mutation::DeregistersBeforeRecord));
}

/// Accesses on another stream than the owner stream are ordered with a launch.
#[test]
fn other_stream_is_ordered() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let allocations = allocations::<1>(&registrations);
        let mut owner = Owner::new(&registrations);
        let mut other = Owner::on_another_stream();
        owner.access(&allocations, &device, 3, true);
        let mut executable = Executable::new(&allocations, true);
        let launching = {
            let device = device.clone();
            thread::spawn(move || executable.launch(&device, 1))
        };
        other.access(&allocations, &device, 4, false);
        owner.access(&allocations, &device, 5, true);
        launching.join().unwrap();
        device.assert_ordered();
    });
}

/// An access to several allocations is ordered with a launch.
#[test]
fn several_allocations() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let mut owner = Owner::new(&registrations);
        let allocations = allocations::<2>(&registrations);
        let [first, second] = &allocations;
        // The owner takes the lock of one of the two, but not of the other.
        owner.access(&[Arc::clone(second)], &device, 3, true);
        let mut executable = Executable::new(&allocations, true);
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
        let allocations = allocations::<2>(&registrations);
        let threads = [1, 3].map(|number| {
            let device = device.clone();
            let mut executable = Executable::new(&allocations, true);
            thread::spawn(move || {
                executable.launch(&device, number);
                executable.launch(&device, number + 1);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        owner.access(&allocations, &device, 5, true);
        device.assert_ordered();
    });
}

#[test]
fn dropped_executable() {
    check(|| {
        let device = Device::new();
        let registrations = Arc::new(Registrations::default());
        let allocations = allocations::<1>(&registrations);
        let mut dropped = Executable::new(&allocations, true);
        dropped.launch(&device, 1);
        let dropping = {
            let device = device.clone();
            thread::spawn(move || {
                dropped.launch(&device, 2);
                drop(dropped);
            })
        };
        let mut other = Executable::new(&allocations, true);
        other.launch(&device, 3);
        dropping.join().unwrap();
        drop(other);
        device.assert_ordered();
        // The owner takes the accesses back, and finds all launches.
        let [allocation] = allocations;
        let mut allocation = Arc::into_inner(allocation).expect("no executable graph is left");
        let (log, locked) = allocation.get_mut();
        let mut recorded = log.all(locked);
        recorded.sort_unstable();
        recorded.dedup();
        assert_eq!(recorded, [1, 2, 3], "a launch was missed");
    });
}

/// A launch takes place before a host view or after it. loom reports a race of the two.
#[test]
fn host_view_excludes_launches() {
    check(|| {
        let registrations = Arc::new(Registrations::default());
        let [allocation] = allocations::<1>(&registrations);
        let is_viewed = Arc::new(AtomicU64::new(0));
        let memory = Arc::new(UnsafeCell::new(0));
        let launching = {
            let lease = Lease {
                allocation: Arc::clone(&allocation),
                is_write: true,
            };
            let memory = Arc::clone(&memory);
            let is_viewed = Arc::clone(&is_viewed);
            thread::spawn(move || {
                let record = Arc::new(Launches::recorded(1));
                let order = |_: &Lease, _: &Numbers, _: &mut Recorded| {
                    if is_viewed.load(Acquire) == 1 {
                        Err(())
                    } else {
                        Ok(())
                    }
                };
                let enqueue = |launches: &mut Launches<Vec<usize>>| {
                    // SAFETY: the pointer is used by no other thread: this is what the model
                    // checks.
                    memory.with_mut(|value| unsafe { *value += 1 });
                    launches.latest = Some(vec![1]);
                    Ok(())
                };
                // Only a view of the host makes it fail.
                let _ = launch_holding(&record, &[lease.clone()], order, enqueue);
                lease.allocation.release_holder(&record);
            })
        };
        let guard = allocation.lock_recalled(true, false);
        is_viewed.store(1, Relaxed);
        drop(guard);
        // SAFETY: the view of the host keeps launches from using the pointer: this is what the
        // model checks.
        memory.with_mut(|value| unsafe { *value += 1 });
        is_viewed.store(0, Release);
        launching.join().unwrap();
    });
}

/// Threads enqueue work in a capture while another thread ends it: the log contains exactly the
/// work that the driver captures.
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
                    gate.enter(false)
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
                    gate.leave();
                }
            })
        });
        let closed = gate.close(|_| driver.lock().unwrap().0 = false);
        let closed = closed.expect("closed twice");
        assert!(!closed.is_disturbed);
        let mut recorded = closed.log;
        for thread in threads {
            thread.join().unwrap();
        }
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
