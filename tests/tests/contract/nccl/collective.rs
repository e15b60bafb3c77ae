//! Collectives and transfers compute the results of their definitions, on all ranks.

use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Error, LibraryVersion, Nccl, Operation, Reduction, UniqueId};
use curium_sim::Config;
use curium_tests::{TestResult, driver_test, on_simulator};

use super::{Rank, context, nccl, on_ranks, simulated_functions};

/// The version that introduced elements of 8 bits with an exponent.
const FLOAT8_SINCE: LibraryVersion = LibraryVersion {
    major: 2,
    minor: 24,
    patch: 0,
};

const LEN: usize = 1000;

/// The elements of a rank: exact in every type.
fn elements(rank: usize, len: usize) -> Vec<f32> {
    (0..len)
        .map(|index| (rank * 3 + index % 17) as f32)
        .collect()
}

/// The elements of all ranks, combined in the order of the ranks.
fn combined(size: usize, len: usize, combine: impl Fn(f32, f32) -> f32) -> TestResult<Vec<f32>> {
    let mut ranks = (0..size).map(|rank| elements(rank, len));
    let first = ranks.next().ok_or("no rank")?;
    Ok(ranks.fold(first, |total, rank| {
        total
            .iter()
            .zip(&rank)
            .map(|(a, b)| combine(*a, *b))
            .collect()
    }))
}

#[driver_test(on_ranks(8))]
fn all_reduce_combines_every_ranks_elements(rank: &mut Rank) -> TestResult {
    let size = rank.size();
    let cases: [(Reduction<f32>, Vec<f32>); 4] = [
        (Reduction::Sum, combined(size, LEN, |a, b| a + b)?),
        (Reduction::Max, combined(size, LEN, f32::max)?),
        (Reduction::Min, combined(size, LEN, f32::min)?),
        (
            Reduction::ScaledSum(0.5),
            combined(size, LEN, |a, b| a + b)?
                .iter()
                .map(|sum| sum * 0.5)
                .collect(),
        ),
    ];
    let source = rank.buffer(&elements(rank.rank(), LEN));
    for (reduction, expected) in cases {
        let mut target = rank.zeroed::<f32>(LEN);
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, reduction)?;
        assert_eq!(target.to_vec()?, expected, "{reduction:?}");
    }
    let mut memory = rank.buffer(&[(rank.rank() + 1) as i64; 3]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Product)?;
    let factorial: i64 = (1..=size as i64).product();
    assert_eq!(memory.to_vec()?, [factorial; 3]);
    let mut memory = rank.buffer(&[(4 * rank.rank()) as f64; 3]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Average)?;
    assert_eq!(memory.to_vec()?, [2.0 * (size - 1) as f64; 3]);
    Ok(())
}

#[driver_test(on_ranks(4))]
fn reduce_writes_on_the_root_only(rank: &mut Rank) -> TestResult {
    let root = 1;
    let size = rank.size();
    let source = rank.buffer(&elements(rank.rank(), LEN));
    let mut target = rank.zeroed::<f32>(LEN);
    let operation = if rank.rank() == root {
        Operation::reduce_into(&source, &mut target, Reduction::Sum)
    } else {
        Operation::reduce(&source, root, Reduction::Sum)
    };
    rank.communicator.enqueue(&rank.stream, operation)?;
    let expected = if rank.rank() == root {
        combined(size, LEN, |a, b| a + b)?
    } else {
        vec![0.0; LEN]
    };
    assert_eq!(target.to_vec()?, expected);
    let mut memory = rank.buffer(&[1_u32; 5]);
    let operation = if rank.rank() == 0 {
        Operation::reduce_in_place(&mut memory, Reduction::Sum)
    } else {
        Operation::reduce(&memory, 0, Reduction::Sum)
    };
    rank.communicator.enqueue(&rank.stream, operation)?;
    let expected = if rank.rank() == 0 { size as u32 } else { 1 };
    assert_eq!(memory.to_vec()?, [expected; 5]);
    Ok(())
}

#[driver_test(on_ranks(4))]
fn broadcast_sends_the_root_elements(rank: &mut Rank) -> TestResult {
    let root = rank.size() - 1;
    let mut memory = rank.buffer(&elements(rank.rank(), LEN));
    rank.communicator
        .broadcast(&rank.stream, &mut memory, root)?;
    assert_eq!(memory.to_vec()?, elements(root, LEN));
    let source = rank.buffer(&[7_u8; 3]);
    let mut target = rank.zeroed::<u8>(3);
    let operation = if rank.rank() == 0 {
        Operation::broadcast_from(&source)
    } else {
        Operation::broadcast(&mut target, 0)
    };
    rank.communicator.enqueue(&rank.stream, operation)?;
    let expected = if rank.rank() == 0 { 0 } else { 7 };
    assert_eq!(target.to_vec()?, [expected; 3]);
    Ok(())
}

/// All gather writes the elements in the order of the ranks.
#[driver_test(on_ranks(4))]
fn all_gather_writes_in_rank_order(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    let expected: Vec<f32> = (0..size).flat_map(|rank| elements(rank, LEN)).collect();
    let source = rank.buffer(&elements(own_rank, LEN));
    let mut target = rank.zeroed::<f32>(LEN * size);
    rank.communicator
        .all_gather(&rank.stream, &source, &mut target)?;
    assert_eq!(target.to_vec()?, expected);
    let mut host = vec![0.0; LEN * size];
    host[own_rank * LEN..(own_rank + 1) * LEN].copy_from_slice(&elements(own_rank, LEN));
    let mut memory = rank.buffer(&host);
    rank.communicator
        .enqueue(&rank.stream, Operation::all_gather_in_place(&mut memory))?;
    assert_eq!(memory.to_vec()?, expected);
    Ok(())
}

#[driver_test(on_ranks(4))]
fn reduce_scatter_writes_the_ranks_chunk(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    let sums = combined(size, LEN * size, |a, b| a + b)?;
    let expected = &sums[own_rank * LEN..(own_rank + 1) * LEN];
    let mut source = rank.buffer(&elements(own_rank, LEN * size));
    let mut target = rank.zeroed::<f32>(LEN);
    rank.communicator
        .reduce_scatter(&rank.stream, &source, &mut target, Reduction::Sum)?;
    assert_eq!(target.to_vec()?, expected);
    let operation = Operation::reduce_scatter_in_place(&mut source, Reduction::Sum);
    rank.communicator.enqueue(&rank.stream, operation)?;
    assert_eq!(
        source.to_vec()?[own_rank * LEN..(own_rank + 1) * LEN],
        *expected
    );
    Ok(())
}

#[driver_test(on_ranks(4))]
fn all_to_all_exchanges_parts(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    fn value(from: usize, to: usize) -> u32 {
        (from * 100 + to) as u32
    }

    let source: Vec<u32> = (0..size).flat_map(|to| [value(own_rank, to); 5]).collect();
    let expected: Vec<u32> = (0..size)
        .flat_map(|from| [value(from, own_rank); 5])
        .collect();
    let source = rank.buffer(&source);
    let mut target = rank.zeroed::<u32>(5 * size);
    rank.communicator
        .enqueue(&rank.stream, Operation::all_to_all(&source, &mut target))?;
    assert_eq!(target.to_vec()?, expected);
    Ok(())
}

#[driver_test(on_ranks(4))]
fn gather_and_scatter_have_a_root(rank: &mut Rank) -> TestResult {
    let own_rank = rank.rank();
    let size = rank.size();
    let root = 1;
    let all: Vec<f32> = (0..size).flat_map(|rank| elements(rank, 7)).collect();
    let source = rank.buffer(&elements(own_rank, 7));
    let mut gathered = rank.zeroed::<f32>(7 * size);
    let operation = if own_rank == root {
        Operation::gather_into(&source, &mut gathered)
    } else {
        Operation::gather(&source, root)
    };
    rank.communicator.enqueue(&rank.stream, operation)?;
    let expected = if own_rank == root {
        all
    } else {
        vec![0.0; 7 * size]
    };
    assert_eq!(gathered.to_vec()?, expected);
    let mut scattered = rank.zeroed::<f32>(7);
    let operation = if own_rank == root {
        Operation::scatter_from(&gathered, &mut scattered)
    } else {
        Operation::scatter(&mut scattered, root)
    };
    rank.communicator.enqueue(&rank.stream, operation)?;
    assert_eq!(scattered.to_vec()?, elements(own_rank, 7));
    Ok(())
}

#[driver_test(on_ranks(2))]
fn transfer_waits_for_its_other_end(rank: &mut Rank) -> TestResult {
    if rank.rank() == 0 {
        let source = rank.buffer(&elements(0, LEN));
        rank.communicator.send(&rank.stream, &source, 1)?;
        rank.communicator.synchronize(&rank.stream)?;
    } else {
        let mut target = rank.zeroed::<f32>(LEN);
        rank.communicator.receive(&rank.stream, &mut target, 0)?;
        assert_eq!(target.to_vec()?, elements(0, LEN));
    }
    Ok(())
}

#[driver_test(on_ranks(2))]
fn sixteen_bit_numbers_are_reduced(rank: &mut Rank) -> TestResult {
    let mut memory = rank.buffer(&[half::f16::from_f32(1.5); 9]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    assert_eq!(
        memory.to_vec()?,
        [half::f16::from_f32(1.5 * rank.size() as f32); 9]
    );
    let mut memory = rank.buffer(&[half::bf16::from_f32(2.0); 9]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
    assert_eq!(memory.to_vec()?, [half::bf16::from_f32(2.0); 9]);
    Ok(())
}

#[test]
fn fp8_numbers_are_reduced() -> TestResult {
    use float8::{F8E4M3, F8E5M2};
    on_ranks(2, |rank: &mut Rank| -> TestResult {
        let size = rank.size() as f32;
        let has_them = nccl().version() >= FLOAT8_SINCE;
        let mut memory = rank.buffer(&[F8E4M3::from_f32(1.5); 9]);
        let reduced =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        if !has_them {
            return {
                assert!(matches!(reduced, Err(Error::Argument(_))), "{reduced:?}");
                Ok(())
            };
        }
        reduced?;
        assert_eq!(memory.to_vec()?, [F8E4M3::from_f32(1.5 * size); 9]);
        let mut memory = rank.buffer(&[F8E5M2::from_f32(rank.rank() as f32); 9]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
        assert_eq!(memory.to_vec()?, [F8E5M2::from_f32(size - 1.0); 9]);
        Ok(())
    })?;
    Ok(())
}

/// Eight-bit numbers are refused by name with an older library.
#[test]
fn old_library_refuses_fp8() -> TestResult {
    unsafe extern "C" fn old_version(
        version: *mut std::ffi::c_int,
    ) -> curium_nccl::sys::ncclResult_t {
        // SAFETY: the caller passes a place for the version.
        unsafe { version.write(22005) };
        curium_nccl::sys::ncclResult_t::ncclSuccess
    }
    on_simulator(Config::new(), |driver, _| -> TestResult {
        let mut api = simulated_functions();
        api.ncclGetVersion = Some(old_version);
        // SAFETY: the functions are those of the library for simulated devices, which has more
        // elements.
        let old = unsafe { Nccl::from_api(api) }?;
        let context = context(driver.driver(), 0);
        let stream = context.stream()?;
        let id = UniqueId::new(&old)?;
        let mut rank = Communicator::new(&old, &context, id, 0, 1)?;
        let mut memory = DeviceBuffer::<float8::F8E4M3>::zeroed(&stream, 4)?;
        let refused = rank
            .all_reduce_in_place(&stream, &mut memory, Reduction::Sum)
            .expect_err("it is too old");
        let expected = "all_reduce: elements of ncclFloat8e4m3 need NCCL 2.24 (this is 2.20.5)";
        assert_eq!(refused.to_string(), expected);
        let grouped = old
            .group(|group| group.enqueue(&mut rank, &stream, Operation::broadcast(&mut memory, 0)));
        assert_eq!(
            grouped.expect_err("it is too old").to_string(),
            expected.replace("all_reduce", "broadcast")
        );
        Ok(())
    })?;
    Ok(())
}

/// Lengths and ranks that do not fit are refused before the call.
#[driver_test(on_ranks(2))]
fn invalid_lengths_and_ranks_make_no_call(rank: &mut Rank) -> TestResult {
    let size = rank.size();
    let own_rank = rank.rank();
    let source = rank.zeroed::<f32>(10);
    let mut target = rank.zeroed::<f32>(11);
    let mut refused = |operation: Operation<'_>| {
        let error = rank
            .communicator
            .enqueue(&rank.stream, operation)
            .expect_err("it does not fit");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        error.to_string()
    };
    assert_eq!(
        refused(Operation::all_gather(&source, &mut target)),
        format!(
            "all_gather: the lengths do not fit (10 elements of the source, 11 of the target, {size} ranks)"
        )
    );
    refused(Operation::all_reduce(&source, &mut target, Reduction::Sum));
    refused(Operation::reduce_scatter(
        &source,
        &mut target,
        Reduction::Sum,
    ));
    refused(Operation::all_to_all(&source, &mut target));
    refused(Operation::gather_into(&source, &mut target));
    refused(Operation::scatter_from(&source, &mut target));
    assert_eq!(
        refused(Operation::all_gather_in_place(&mut target)),
        format!(
            "all_gather: the length is not a multiple of the number of ranks (11 elements, {size} ranks)"
        )
    );
    assert_eq!(
        refused(Operation::send(&source, 99)),
        format!("send: rank out of range (99 of {size} ranks)")
    );
    assert_eq!(
        refused(Operation::receive(&mut target, own_rank)),
        format!("receive: transfer to the rank itself ({own_rank}); enqueue both ends in a group")
    );
    assert_eq!(
        refused(Operation::reduce(&source, own_rank, Reduction::Sum)),
        format!("reduce: this rank is the root ({own_rank}); call the form for the root")
    );
    Ok(())
}
