//! Scan and compaction: the prime numbers below a limit, in order and without gaps.
//!
//! A thread does not know where its result belongs, because that depends on how many results come
//! before it. Each block therefore counts its results; a scan of the counts returns where each
//! block begins; and a scan within the block where each thread does. A place that is computed
//! cannot be owned, so the results are stored atomically, which costs nothing for a `Relaxed`
//! store.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use curium::prelude::*;
use curium_kernel::host::Blocks;

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use curium_kernel::prelude::*;

    /// Returns `true` if a number is prime.
    fn is_prime(number: u32) -> bool {
        if number < 4 {
            return number >= 2;
        }
        let mut divisor = 3;
        while divisor * divisor <= number {
            if number.is_multiple_of(divisor) {
                return false;
            }
            divisor += 2;
        }
        number % 2 == 1
    }

    /// Counts the primes in the part of each block, which has `part` numbers.
    #[kernel]
    pub fn count(block: Block<256>, part: u32, limit: u32, mut counts: PerBlock<u32>) {
        let first = block.index() as u32 * part;
        let mut count = 0;
        for first in (first..first + part).step_by(256) {
            let is_prime = block.threads(|t| {
                let number = first + t.index_in_block() as u32;
                number < limit && is_prime(number)
            });
            count += block.count(&is_prime) as u32;
        }
        counts.set(&block, count);
    }

    /// The sum of all counts before each, and of all. There are at most 1024 counts, and one block.
    #[kernel]
    pub fn scan(
        block: Block<1024>,
        mut scratch: Scratch<u32>,
        counts: &[u32],
        mut starts: PerThread<u32>,
        mut total: PerBlock<u32>,
    ) {
        let count = block.threads(|t| counts.get(t.index_in_block()).copied().unwrap_or(0));
        let (start, sum) = block.exclusive_scan(&count, 0, &mut scratch, |a, b| a + b);
        block.threads_with((&mut starts, &start), |_, (starts, start)| {
            if let Some(element) = starts.first() {
                *element = *start;
            }
        });
        total.set(&block, sum);
    }

    /// Stores the primes in the part of each block, from the place on at which they begin.
    #[kernel]
    pub fn compact(
        block: Block<256>,
        mut scratch: Scratch<u32>,
        part: u32,
        limit: u32,
        starts: &[u32],
        primes: &[Atomic<u32>],
    ) {
        let first = block.index() as u32 * part;
        // The same in all threads: the compiler accepts it as a bound of code of the block.
        let mut start = starts[block.index()];
        for first in (first..first + part).step_by(256) {
            let is_prime = block.threads(|t| {
                let number = first + t.index_in_block() as u32;
                u32::from(number < limit && is_prime(number))
            });
            let (before, count) = block.exclusive_scan(&is_prime, 0, &mut scratch, |a, b| a + b);
            block.threads_with((&is_prime, &before), |t, (is_prime, before)| {
                if *is_prime == 1 {
                    let number = first + t.index_in_block() as u32;
                    primes[(start + before) as usize].store(t, number, Relaxed);
                }
            });
            start += count;
        }
    }
}
curium_kernel::include_kernels!("kernels");

/// Returns the primes below a limit.
fn primes_below(device: &Device, limit: u32) -> curium::Result<Vec<u32>> {
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(device)?;
    let blocks = limit.div_ceil(256).clamp(1, 1024);
    let part = limit.div_ceil(blocks).next_multiple_of(256);
    let grid = Blocks::new(blocks);

    let mut counts = DeviceBuffer::uninit(&stream, blocks as usize)?;
    kernels
        .count
        .launch(&stream, grid, part, limit, &mut counts)?;
    let mut starts = DeviceBuffer::uninit(&stream, blocks as usize)?;
    let mut total = DeviceBuffer::uninit(&stream, 1)?;
    kernels
        .scan
        .launch(&stream, Blocks::new(1), &counts, &mut starts, &mut total)?;
    let total = total.to_vec()?[0] as usize;
    if total == 0 {
        return Ok(Vec::new());
    }
    let mut primes = DeviceBuffer::zeroed(&stream, total)?;
    kernels
        .compact
        .launch(&stream, grid, part, limit, &starts, &mut primes)?;
    primes.to_vec()
}

fn run(device: &Device, limit: u32) -> curium::Result<Vec<u32>> {
    let primes = primes_below(device, limit)?;
    let list = |primes: &[u32]| {
        let texts: Vec<String> = primes.iter().map(u32::to_string).collect();
        texts.join(", ")
    };
    println!(
        "{} primes below {limit}: {}, …, {}",
        primes.len(),
        list(&primes[..primes.len().min(10)]),
        list(&primes[primes.len().saturating_sub(3)..])
    );
    Ok(primes)
}

fn main() -> curium::Result<()> {
    let primes = run(&Device::first()?, 10_000_000)?;
    assert_eq!(primes.len(), 664_579);
    assert!(primes.is_sorted());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_in_order() -> curium::Result<()> {
        let mut is_composite = vec![false; 20_000];
        let mut expected = Vec::new();
        for number in 2..is_composite.len() {
            if !is_composite[number] {
                expected.push(number as u32);
                for multiple in (number..is_composite.len()).step_by(number) {
                    is_composite[multiple] = true;
                }
            }
        }
        for seed in 0..3 {
            let config = curium_sim::Config::new().with_seed(seed);
            curium_sim::test_with(config, |device: Device| -> curium::Result<()> {
                assert_eq!(run(&device, 20_000)?, expected);
                Ok(())
            })?;
        }
        Ok(())
    }

    #[test]
    fn few_numbers() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            assert_eq!(primes_below(&device, 20)?, [2, 3, 5, 7, 11, 13, 17, 19]);
            assert_eq!(primes_below(&device, 2)?, []);
            Ok(())
        })
    }
}
