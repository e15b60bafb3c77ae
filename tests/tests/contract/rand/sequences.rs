//! Sequences: seeds, offsets, orders, and generators of the host, of other code and of other
//! threads.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use curium_rand::{
    Algorithm, Generator, GeneratorOrdering, Mrg32k3a, Mt19937, Philox4x32, PseudoRandom,
    ScrambledSobol32, SkipAhead, Sobol32, Xorwow,
};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, on_simulator, simulator_test};

use super::{curand, seeded, with_dimensions};

/// Returns the next numbers.
fn draw<A: Algorithm<Bits = u32>>(
    generator: &mut Generator<A>,
    stream: &Stream,
    len: usize,
) -> TestResult<Vec<u32>> {
    let mut buffer = DeviceBuffer::<u32>::uninit(stream, len)?;
    generator.bits(&mut buffer)?;
    Ok(buffer.to_vec()?)
}

#[test]
fn seeds_start_sequences() -> TestResult {
    fn check<A: PseudoRandom + Algorithm<Bits = u32>>(stream: &Stream) -> TestResult {
        let mut generator = seeded::<A>(stream, 1)?;
        let first = draw(&mut generator, stream, 256)?;
        assert_ne!(
            draw(&mut generator, stream, 256)?,
            first,
            "the sequence continues"
        );
        generator.set_seed(2)?;
        assert_ne!(
            draw(&mut generator, stream, 256)?,
            first,
            "another seed returns other numbers"
        );
        generator.set_seed(1)?;
        assert_eq!(
            draw(&mut generator, stream, 256)?,
            first,
            "the seed starts the sequence again"
        );
        assert_eq!(
            draw(&mut seeded::<A>(stream, 1)?, stream, 256)?,
            first,
            "so does another generator"
        );
        Ok(())
    }

    on_driver(|test| -> TestResult {
        let stream = test.stream();
        check::<Xorwow>(&stream)?;
        check::<Philox4x32>(&stream)?;
        check::<Mrg32k3a>(&stream)?;
        check::<Mt19937>(&stream)?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn offsets_leave_out_numbers() -> TestResult {
    fn check<A: SkipAhead + Algorithm<Bits = u32>>(
        mut generator: Generator<A>,
        stream: &Stream,
    ) -> TestResult {
        let whole = draw(&mut generator, stream, 512)?;
        generator.set_offset(256)?;
        assert_eq!(
            draw(&mut generator, stream, 256)?,
            whole[256..],
            "{}",
            std::any::type_name::<A>()
        );
        generator.set_offset(0)?;
        assert_eq!(draw(&mut generator, stream, 512)?, whole);
        Ok(())
    }

    // The order in which a device interleaves its sequences is its own.
    on_simulator(Config::new(), |test, _| -> TestResult {
        let stream = test.stream();
        check(seeded::<Xorwow>(&stream, 3)?, &stream)?;
        check(seeded::<Philox4x32>(&stream, 3)?, &stream)?;
        check(seeded::<Mrg32k3a>(&stream, 3)?, &stream)?;
        check(with_dimensions::<Sobol32>(&stream, 1)?, &stream)?;
        check(with_dimensions::<ScrambledSobol32>(&stream, 1)?, &stream)?;
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn dimensions_are_one_after_the_other(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut generator = with_dimensions::<Sobol32>(&stream, 1)?;
    let first = draw(&mut generator, &stream, 100)?;
    generator.set_dimensions(3)?;
    assert_eq!(generator.dimensions(), 3);
    let numbers = draw(&mut generator, &stream, 300)?;
    assert_eq!(numbers[..100], first);
    assert_ne!(numbers[100..200], first);
    assert_ne!(numbers[200..], numbers[100..200]);
    Ok(())
}

#[driver_test]
fn host_generators_match_device_sequences(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut host = vec![0_u32; 1000];
    let mut generator = Generator::<Philox4x32, _>::seeded_on_host(&curand(), 5)?;
    generator.bits(host.as_mut_slice())?;
    assert_eq!(
        host,
        draw(&mut seeded::<Philox4x32>(&stream, 5)?, &stream, 1000)?
    );
    let mut generator = Generator::<Sobol32, _>::with_dimensions_on_host(&curand(), 2)?;
    generator.bits(host.as_mut_slice())?;
    assert_eq!(
        host,
        draw(&mut with_dimensions::<Sobol32>(&stream, 2)?, &stream, 1000)?
    );
    let mut reals = [0.0_f32; 10];
    let mut generator = Generator::<Xorwow, _>::seeded_on_host(&curand(), 5)?;
    generator.normal(reals.as_mut_slice(), 100.0, 1.0)?;
    assert!(
        reals.iter().all(|number| (90.0..110.0).contains(number)),
        "{reals:?}"
    );
    let error = generator
        .normal(&mut reals[1..], 0.0, 1.0)
        .expect_err("the length is odd")
        .to_string();
    assert!(error.contains("9 elements"), "{error}");
    Ok(())
}

#[driver_test]
fn orders_are_set_by_type(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut generator = seeded::<Xorwow>(&stream, 1)?;
    for ordering in [
        GeneratorOrdering::Default,
        GeneratorOrdering::Best,
        GeneratorOrdering::Legacy,
    ] {
        generator.set_ordering(ordering)?;
        let first = draw(&mut generator, &stream, 100)?;
        generator.set_seed(1)?;
        assert_eq!(draw(&mut generator, &stream, 100)?, first);
    }
    Ok(())
}

#[driver_test]
fn raw_generators_are_taken_over(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let library = curand();
    let mut raw = std::ptr::null_mut();
    let create = library
        .api()
        .curandCreateGenerator
        .ok_or("no `curandCreateGenerator`")?;
    let kind = <Philox4x32 as Algorithm>::to_raw();
    // SAFETY: `raw` is valid for writes, and the context is current.
    let created = test
        .context()
        .entered(|_| Ok(unsafe { create(&raw mut raw, kind) }))?;
    assert_eq!(
        created,
        curium_rand::sys::curandStatus_t::CURAND_STATUS_SUCCESS
    );
    // SAFETY: the generator was created with this algorithm, and nothing else uses it.
    let mut generator = unsafe { Generator::<Philox4x32>::from_raw(&library, raw, &stream, 1) }?;
    assert_eq!(generator.as_raw(), raw);
    generator.set_seed(9)?;
    assert_eq!(
        draw(&mut generator, &stream, 64)?,
        draw(&mut seeded::<Philox4x32>(&stream, 9)?, &stream, 64)?
    );
    drop(generator);
    if test.simulator().is_some() {
        // SAFETY: the simulated library finds generators that are not live.
        let code = unsafe {
            library
                .api()
                .curandDestroyGenerator
                .ok_or("no `curandDestroyGenerator`")?(raw)
        };
        assert_eq!(
            code,
            curium_rand::sys::curandStatus_t::CURAND_STATUS_NOT_INITIALIZED,
            "it is destroyed once"
        );
    }
    Ok(())
}

/// Generators move to other threads and streams wait for each other.
#[simulator_test(Config::new().with_race_checks(true))]
fn generators_move_between_threads(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut generator = seeded::<Xorwow>(&other, 1)?;
    let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 1000)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..4).for_each(|_| generator.uniform(&mut numbers).expect("the length fits"));
        });
    });
    let drawn = numbers.to_vec()?;
    assert!(drawn.iter().all(|number| *number > 0.0), "{drawn:?}");
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}
