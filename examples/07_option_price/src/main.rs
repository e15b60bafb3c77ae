//! Random numbers: the price of an option, as the mean of its payoff in many simulated futures.
//!
//! `Philox` computes a random number from a seed and a position, so each thread has a sequence of
//! its own without any state in memory, and the result depends on neither the device nor the order
//! of threads: each block writes its sum to an element that it owns.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use curium::prelude::*;
use curium_kernel::F32x2;
use curium_kernel::host::Blocks;

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use core::f32::consts::TAU;

    use curium_kernel::Philox;
    use curium_kernel::prelude::*;

    /// The right to buy a share at a price after a time.
    #[derive(Clone, Copy, ByValue)]
    #[repr(C)]
    pub struct Call {
        /// The price of the share today.
        pub price: f32,
        /// The price at which it may be bought.
        pub strike: f32,
        /// The time in years.
        pub years: f32,
        /// The interest rate, for a year.
        pub interest: f32,
        /// The standard deviation of the logarithm of the price, after a year.
        pub volatility: f32,
    }

    /// The sum of the payoffs of all futures of a block, and that of their squares.
    #[kernel]
    pub fn simulate(
        block: Block<256>,
        mut scratch: Scratch<f32>,
        call: Call,
        seed: u64,
        futures_per_thread: u32,
        mut sums: PerBlock<F32x2>,
    ) {
        let drift = (call.interest - 0.5 * call.volatility * call.volatility) * call.years;
        let deviation = call.volatility * call.years.sqrt();
        let own = block.threads(|t| {
            let mut random = Philox::new(seed, t.index_in_grid() as u64);
            let mut sum = F32x2::default();
            for _ in 0..futures_per_thread {
                // A normal random number, by the method of Box and Muller. The logarithm needs a
                // number above 0.
                let radius = (-2.0 * (1.0 - random.next_f32()).fast_ln()).sqrt();
                let normal = radius * (TAU * (random.next_f32() - 0.5)).fast_cos();
                let price = call.price * deviation.mul_add(normal, drift).exp();
                let payoff = (price - call.strike).max(0.0);
                sum += F32x2::new(payoff, payoff * payoff);
            }
            sum
        });
        let payoffs = block.threads_with(&own, |_, own| own.x);
        let squares = block.threads_with(&own, |_, own| own.y);
        let payoffs = block.sum(&payoffs, &mut scratch);
        let squares = block.sum(&squares, &mut scratch);
        sums.set(&block, F32x2::new(payoffs, squares));
    }
}
curium_kernel::include_kernels!("kernels");

use kernels::Call;

const CALL: Call = Call {
    price: 100.0,
    strike: 105.0,
    years: 1.0,
    interest: 0.05,
    volatility: 0.2,
};

/// The price of `CALL` by the formula of Black and Scholes.
const EXACT: f64 = 8.0214;

/// An estimate of the price, and its standard error.
struct Estimate {
    price: f64,
    error: f64,
}

fn simulate(device: &Device, blocks: u32, futures_per_thread: u32) -> curium::Result<Estimate> {
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(device)?;
    let mut sums = DeviceBuffer::<F32x2>::uninit(&stream, blocks as usize)?;
    kernels.simulate.launch(
        &stream,
        Blocks::new(blocks),
        CALL,
        42,
        futures_per_thread,
        &mut sums,
    )?;
    let sums = sums.to_vec()?;
    let futures = f64::from(blocks) * 256.0 * f64::from(futures_per_thread);
    let mean = sums.iter().map(|sum| f64::from(sum.x)).sum::<f64>() / futures;
    let square = sums.iter().map(|sum| f64::from(sum.y)).sum::<f64>() / futures;
    // Money in the future is worth less today.
    let discount = (-f64::from(CALL.interest * CALL.years)).exp();
    Ok(Estimate {
        price: discount * mean,
        error: discount * ((square - mean * mean) / futures).sqrt(),
    })
}

fn run(device: &Device, blocks: u32, futures_per_thread: u32) -> curium::Result<()> {
    let estimate = simulate(device, blocks, futures_per_thread)?;
    println!(
        "{} futures: {:.4} ± {:.4}; the formula of Black and Scholes: {EXACT}",
        u64::from(blocks) * 256 * u64::from(futures_per_thread),
        estimate.price,
        estimate.error
    );
    let difference = (estimate.price - EXACT).abs();
    assert!(
        difference < 4.0 * estimate.error,
        "the error is {difference}"
    );
    Ok(())
}

fn main() -> curium::Result<()> {
    let device = Device::first()?;
    for futures_per_thread in [1, 16, 256] {
        run(&device, 4096, futures_per_thread)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_is_that_of_the_formula() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            run(&device, 16, 8)?;
            let error = simulate(&device, 16, 8)?.error;
            assert!(error < 0.1, "{error}");
            Ok(())
        })
    }

    /// Another order of threads, the same price.
    #[test]
    fn result_is_reproducible() -> curium::Result<()> {
        let price = |seed| {
            let config = curium_sim::Config::new().with_seed(seed);
            curium_sim::test_with(config, |device: Device| simulate(&device, 4, 2))
        };
        assert_eq!(price(1)?.price, price(2)?.price);
        Ok(())
    }
}
