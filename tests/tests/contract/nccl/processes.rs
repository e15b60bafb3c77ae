//! Ranks that are processes: on the simulator with a simulator each, and with
//! `CURIUM_TEST_DRIVER=cuda` on this machine's devices.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use curium_driver::{Driver, Graph};
use curium_nccl::{
    Communicator, CommunicatorOptions, Error, Operation, Reduction, Rendezvous, UniqueId,
};
use curium_sim::{Config, Simulator};
use curium_tests::{TestResult, outcomes_of_processes, skip, uses_cuda};

use super::{MAX_RANKS, Rank, context, nccl};

/// A time limit that only a process that hangs reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the number of ranks: as many as this machine has devices, on its driver.
fn ranks(count: usize) -> TestResult<usize> {
    if !uses_cuda() {
        return Ok(count);
    }
    let driver = Driver::load()?;
    Ok(driver.devices()?.len().min(count).min(MAX_RANKS))
}

fn free_port() -> TestResult<u16> {
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(address?.port())
}

/// Runs each of `count` ranks in a process of its own, and returns the outcomes.
fn on_processes(
    count: usize,
    test: impl FnOnce(Rank) -> TestResult,
) -> TestResult<Vec<(bool, String)>> {
    let input = format!("{count} {}", free_port()?);
    outcomes_of_processes(count, &input, |rank, input| {
        test(meet(rank, input, |device| device)?)
    })
}

/// Creates the rank of this process on a device.
fn meet(rank: usize, input: &str, device: impl Fn(usize) -> usize) -> TestResult<Rank> {
    let (mut rendezvous, context) = rendezvous_and_context(rank, input, device)?;
    let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
    let communicator = Communicator::exchanged(&nccl(), &context, &mut rendezvous, options)?;
    Ok(Rank {
        communicator,
        stream: context.stream()?,
    })
}

fn rendezvous_and_context(
    rank: usize,
    input: &str,
    device: impl Fn(usize) -> usize,
) -> TestResult<(Rendezvous, curium_driver::Context)> {
    let (count, port) = input.split_once(' ').ok_or("no space in the input")?;
    let count = count.parse()?;
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        let config = Config::new().with_devices(u32::try_from(count)?);
        Simulator::new(config)?.driver()?
    };
    let rendezvous = Rendezvous::new(rank, count, "127.0.0.1", port.parse()?);
    Ok((rendezvous?, context(&driver, device(rank))))
}

#[track_caller]
fn expect_success(outcomes: &[(bool, String)]) {
    for (rank, (success, output)) in outcomes.iter().enumerate() {
        assert!(success, "rank {rank}:\n{output}");
    }
}

#[test]
fn eight_processes_run() -> TestResult {
    const LEN: usize = 300;
    let outcomes = on_processes(ranks(8)?, |mut rank| {
        let own_rank = rank.rank();
        let size = rank.size();
        let all: Vec<u32> = (0..size).flat_map(|rank| [rank as u32; LEN]).collect();
        let sum = (0..size as u32).sum::<u32>();
        let source = rank.buffer(&[own_rank as u32; LEN]);
        let mut target = rank.zeroed::<u32>(LEN);
        let mut whole = rank.zeroed::<u32>(LEN * size);
        let mut exchanged = rank.zeroed::<u32>(LEN * size);
        let mut own_copy = rank.zeroed::<u32>(LEN);
        let Rank {
            communicator,
            stream,
        } = &mut rank;

        communicator.all_reduce(stream, &source, &mut target, Reduction::Sum)?;
        assert_eq!(target.to_vec()?, [sum; LEN]);
        communicator.all_gather(stream, &source, &mut whole)?;
        assert_eq!(whole.to_vec()?, all);
        communicator.reduce_scatter(stream, &whole, &mut target, Reduction::Max)?;
        assert_eq!(target.to_vec()?, [own_rank as u32; LEN]);
        communicator.broadcast(stream, &mut target, size - 1)?;
        assert_eq!(target.to_vec()?, [size as u32 - 1; LEN]);
        communicator.enqueue(stream, Operation::all_to_all(&whole, &mut exchanged))?;
        let expected: Vec<u32> = (0..size).flat_map(|_| [own_rank as u32; LEN]).collect();
        assert_eq!(exchanged.to_vec()?, expected);

        // In a ring, and to the rank itself.
        let next = (own_rank + 1) % size;
        let previous = (own_rank + size - 1) % size;
        let grouped = nccl().group(|group| {
            group.enqueue(communicator, stream, Operation::send(&source, next))?;
            group.enqueue(
                communicator,
                stream,
                Operation::receive(&mut target, previous),
            )?;
            group.enqueue(communicator, stream, Operation::send(&source, own_rank))?;
            group.enqueue(
                communicator,
                stream,
                Operation::receive(&mut own_copy, own_rank),
            )
        });
        grouped?;
        assert_eq!(target.to_vec()?, [previous as u32; LEN]);
        assert_eq!(own_copy.to_vec()?, [own_rank as u32; LEN]);

        let mut half = communicator
            .split(Some(own_rank as u32 % 2), 0)?
            .ok_or("no communicator after the split")?;
        half.all_reduce(stream, &source, &mut target, Reduction::Sum)?;
        let sum_of_half: u32 = (0..size as u32)
            .filter(|rank| rank % 2 == own_rank as u32 % 2)
            .sum();
        assert_eq!(target.to_vec()?, [sum_of_half; LEN]);
        half.close()?;

        let graph = Graph::capture(&communicator.context().clone(), |scope| {
            communicator.all_reduce(scope, &source, &mut target, Reduction::Sum)
        });
        let mut executable = graph?.instantiate()?;
        for _ in 0..20 {
            executable.launch(stream)?;
        }
        assert_eq!(target.to_vec()?, [sum; LEN]);
        drop(executable);
        rank.close();
        Ok(())
    })?;
    expect_success(&outcomes);
    Ok(())
}

/// Every other rank names the process that died.
#[test]
fn dead_process_is_named() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    for dead in [0, 2] {
        let outcomes = on_dead_processes(dead)?;
        for (rank, (success, output)) in outcomes.iter().enumerate() {
            assert_eq!(*success, rank != dead, "rank {rank}:\n{output}");
        }
    }
    Ok(())
}

fn on_dead_processes(dead: usize) -> TestResult<Vec<(bool, String)>> {
    let input = format!("{dead} 4 {}", free_port()?);
    outcomes_of_processes(4, &input, |rank, input| -> TestResult {
        let (dead, input) = input.split_once(' ').ok_or("no space in the input")?;
        let dead: usize = dead.parse()?;
        let mut rank = meet(rank, input, |device| device)?;
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
        rank.communicator.synchronize(&rank.stream)?;
        if rank.rank() == dead {
            // The others have the result by then.
            std::thread::sleep(Duration::from_secs(1));
            std::process::abort();
        }
        let start = Instant::now();
        let enqueued =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        let Err(Error::Call(error)) =
            enqueued.and_then(|()| rank.communicator.synchronize(&rank.stream))
        else {
            panic!("a rank has died")
        };
        assert!(start.elapsed() < TIMEOUT / 2, "{:?}", start.elapsed());
        assert_eq!(error.code, curium_nccl::sys::ncclResult_t::ncclRemoteError);
        let text = error.to_string();
        let expected = if dead == 0 {
            "the process that created the identifier has ended"
        } else {
            "rank 2 has ended without"
        };
        assert!(text.contains(expected), "{text}");
        drop(rank);
        assert_eq!(curium_sim_libraries::live_communicators(), 0);
        Ok(())
    })
}

#[test]
fn disagreeing_ranks_are_named() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let outcomes = on_processes(2, |mut rank| {
        let mut memory = rank.zeroed::<f32>(8 + rank.rank());
        let enqueued =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        let error = enqueued
            .and_then(|()| rank.communicator.synchronize(&rank.stream))
            .expect_err("they differ");
        let text = error.to_string();
        assert!(
            text.contains("ncclAllReduce(8 elements") && text.contains("ncclAllReduce(9 elements"),
            "{text}"
        );
        Ok(())
    })?;
    expect_success(&outcomes);
    Ok(())
}

#[test]
fn shared_device_is_refused() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let input = format!("2 {}", free_port()?);
    let outcomes = outcomes_of_processes(2, &input, |rank, input| -> TestResult {
        let (mut rendezvous, context) = rendezvous_and_context(rank, input, |_| 1)?;
        let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
        let error = Communicator::exchanged(&nccl(), &context, &mut rendezvous, options)
            .expect_err("one device");
        assert!(error.to_string().contains("duplicate GPU"), "{error}");
        Ok(())
    })?;
    expect_success(&outcomes);
    Ok(())
}

#[test]
fn strangers_disturb_no_rank() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let input = format!("2 {}", free_port()?);
    let outcomes = outcomes_of_processes(2, &input, |rank, input| -> TestResult {
        let (mut rendezvous, context) = rendezvous_and_context(rank, input, |device| device)?;
        let id = UniqueId::exchanged(&nccl(), &mut rendezvous)?;
        let port = u16::from_le_bytes([id.as_bytes()[12], id.as_bytes()[13]]);
        let mut strangers = Vec::new();
        for bytes in [
            &[0xff; 64][..],
            b"GET / HTTP/1.1\r\n\r\n",
            &[5, 0, 0, 0, 0],
            &[],
        ] {
            let mut stranger = TcpStream::connect(("127.0.0.1", port))?;
            stranger.write_all(bytes)?;
            strangers.push(stranger);
        }
        // An identifier with another secret reaches the process, which gives no answer.
        if rank == 1 {
            let mut wrong = *id.as_bytes();
            wrong[24] ^= 1;
            let refused = Communicator::new(&nccl(), &context, UniqueId::from_bytes(wrong), 1, 2);
            assert!(refused.is_err(), "{refused:?}");
        }
        let options = CommunicatorOptions::new().with_timeout(TIMEOUT);
        let communicator = Communicator::with_options(&nccl(), &context, id, rank, 2, options)?;
        let mut rank = Rank {
            communicator,
            stream: context.stream()?,
        };
        let mut memory = rank.buffer(&[1_u8; 4]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
        assert_eq!(memory.to_vec()?, [2; 4]);
        rank.close();
        Ok(())
    })?;
    expect_success(&outcomes);
    Ok(())
}
