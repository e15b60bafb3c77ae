//! [`DeviceVec`]: growth in place, copies, and what gives memory back.

use curium_driver::{Error, Function, LaunchConfig, Library};
use curium_memory::{DeviceBuffer, DeviceVec};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{Gate, kernels, on_driver, on_simulator};

/// Elements of 4 bytes in the least memory that is ever mapped, on the simulator and on the GPUs of today.
const STEP: usize = (2 << 20) / 4;

#[test]
fn vector_grows_without_moving_what_is_in_it() {
    on_driver(|test| {
        let stream = test.stream();
        let mut vector = DeviceVec::<u32>::with_max_len(&stream, 8 * STEP).expect("there are addresses");
        assert_eq!((vector.len(), vector.capacity(), vector.is_empty()), (0, 0, true));
        assert!(vector.max_len() >= 8 * STEP);
        let address = vector.as_pointer();
        let mut expected = Vec::new();
        for part in 0..5_u32 {
            let source: Vec<u32> = (0..STEP as u32 - 7).map(|index| index ^ part << 24).collect();
            vector.extend_from_slice(&source).expect("memory suffices");
            expected.extend(source);
            assert_eq!((vector.as_pointer(), vector.len()), (address, expected.len()));
            assert!(vector.capacity() >= vector.len());
        }
        vector.push(77).expect("memory suffices");
        expected.push(77);
        assert_eq!(vector.to_vec().expect("the vector can be read"), expected);
    });
}

#[test]
fn growth_calls_no_copy_of_what_is_there() {
    on_driver(|test| {
        let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 4 * STEP).expect("there are addresses");
        vector.extend_from_slice(&[1; 100]).expect("memory suffices");
        test.assert_calls(Function::cuMemcpyDtoDAsync_v2, 0, || {
            vector.reserve(3 * STEP).expect("memory suffices");
        });
        test.assert_calls(Function::cuMemCreate, 0, || vector.extend_from_slice(&[2; 100]).expect("there is room"));
        assert_eq!(vector.to_vec().expect("the vector can be read"), [[1; 100], [2; 100]].concat());
    });
}

#[test]
fn resized_vector_holds_the_value_in_what_is_new() {
    on_driver(|test| {
        let mut vector = DeviceVec::<[u16; 3]>::new(&test.stream()).expect("there are addresses");
        vector.push([1, 2, 3]).expect("memory suffices");
        vector.resize(1000, [4, 5, 6]).expect("memory suffices");
        let mut expected = vec![[4_u16, 5, 6]; 1000];
        expected[0] = [1, 2, 3];
        assert_eq!(vector.to_vec().expect("the vector can be read"), expected);
        vector.resize(2, [9; 3]).expect("there is room");
        assert_eq!(vector.to_vec().expect("the vector can be read"), [[1, 2, 3], [4, 5, 6]]);
        vector.truncate(5);
        assert_eq!(vector.len(), 2);
        vector.clear();
        assert_eq!(vector.to_vec().expect("there is nothing to read"), [[0_u16; 3]; 0]);
    });
}

#[test]
fn shrunk_vector_gives_memory_back_and_keeps_its_elements() {
    on_driver(|test| {
        let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP).expect("there are addresses");
        vector.extend_from_slice(&[5; STEP]).expect("memory suffices");
        vector.reserve(STEP).expect("memory suffices");
        let capacity = vector.capacity();
        vector.shrink_to(capacity).expect("there is nothing to do");
        assert_eq!(vector.capacity(), capacity);
        vector.shrink_to_fit().expect("the memory is idle");
        assert!(vector.capacity() < capacity && vector.capacity() >= STEP, "{}", vector.capacity());
        assert_eq!(vector.to_vec().expect("the vector can be read"), [5; STEP]);
        vector.clear();
        vector.shrink_to_fit().expect("the memory is idle");
        assert_eq!(vector.capacity(), 0);
        vector.push(6).expect("the vector grows again");
        assert_eq!(vector.to_vec().expect("the vector can be read"), [6]);
    });
}

#[test]
fn kernel_on_another_stream_is_waited_for_before_memory_goes_back() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let library = Library::from_ptx(&test.context(), kernels::FILL).expect("the kernels load");
        let fill = library.kernel::<(&mut [u32], u32, u32)>("fill").expect("there is such a kernel");
        let mut vector = DeviceVec::<u32>::with_max_len(&stream, STEP).expect("there are addresses");
        vector.resize(1000, 1).expect("memory suffices");
        let gate = Gate::on(&other);
        let config = LaunchConfig::for_elements(1000);
        // SAFETY: `fill` writes as many words as the vector has.
        unsafe { fill.launch(&other, config, (&mut vector, 8, 1000)) }.expect("the kernel can be launched");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let values = vector.to_vec().expect("the vector can be read");
                vector.close().map_err(|(_, error)| error).expect("the vector can end");
                values
            });
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(!reader.is_finished(), "nothing waited for the kernel");
            gate.open();
            assert_eq!(reader.join().expect("the reader does not panic"), [8; 1000]);
        });
    });
}

#[test]
fn vector_extended_from_a_buffer_holds_its_elements() {
    on_driver(|test| {
        let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u8, 2, 3]).expect("memory suffices");
        let mut vector = DeviceVec::from_slice(&test.stream(), &[9_u8]).expect("memory suffices");
        vector.extend_from_buffer(&buffer).expect("memory suffices");
        drop(buffer);
        assert_eq!(vector.to_vec().expect("the vector can be read"), [9, 1, 2, 3]);
        vector.copy_from_slice(&[4, 3, 2, 1]).expect("the lengths are equal");
        assert_eq!(vector.to_vec().expect("the vector can be read"), [4, 3, 2, 1]);
        let error = vector.copy_from_slice(&[1]).expect_err("too short");
        assert!(error.to_string().contains("the buffer has 4 elements"), "{error}");
    });
}

#[test]
fn growth_beyond_the_maximum_is_an_error_with_the_figures() {
    on_driver(|test| {
        let stream = test.stream();
        let mut vector = DeviceVec::<u32>::with_max_len(&stream, STEP).expect("there are addresses");
        let most = vector.max_len();
        vector.push(1).expect("memory suffices");
        for additional in [most, usize::MAX] {
            let error = vector.reserve(additional).expect_err("there are no addresses for it");
            let text = error.to_string();
            assert!(matches!(error, Error::Argument(_)), "{text}");
            assert!(text.contains(&format!("1 elements and {additional} more")), "{text}");
            assert!(text.contains(&format!("maximum of {most}")), "{text}");
        }
        assert_eq!(vector.to_vec().expect("the vector is as it was"), [1]);
        for error in [
            DeviceVec::<u32>::with_max_len(&stream, 0).expect_err("no length"),
            DeviceVec::<u32>::with_max_len(&stream, usize::MAX).expect_err("too long"),
            DeviceVec::<[u32; 0]>::new(&stream).expect_err("no bytes"),
        ] {
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
    });
}

#[test]
fn vector_that_cannot_grow_is_as_it_was() {
    on_simulator(Config::new().with_memory_budget(8 << 20), |test, simulator| {
        let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP).expect("there are addresses");
        vector.extend_from_slice(&[3; 2 * STEP]).expect("memory suffices");
        // Half as much again would not fit, but what is asked for does.
        vector.extend_from_slice(&[3; 2 * STEP]).expect("memory suffices exactly");
        let error = vector.push(1).expect_err("the budget is used up");
        assert!(error.is_out_of_memory(), "{error}");
        vector.truncate(5);
        vector.shrink_to_fit().expect("the memory is idle");
        for function in [Function::cuMemMap, Function::cuMemSetAccess, Function::cuMemcpyHtoDAsync_v2] {
            simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
            let error = vector.extend_from_slice(&[9; 2 * STEP]).expect_err("the driver refuses once");
            assert_eq!(error.function(), Some(function));
            assert_eq!(vector.to_vec().expect("the vector is as it was"), [3; 5]);
        }
    });
}

#[test]
fn vector_that_the_driver_does_not_unmap_is_given_back() {
    on_simulator(Config::new(), |test, simulator| {
        let vector = DeviceVec::from_slice(&test.stream(), &[1_u8, 2]).expect("memory suffices");
        simulator.inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (vector, error) = vector.close().expect_err("the driver refuses once");
        assert_eq!(error.function(), Some(Function::cuMemUnmap));
        assert_eq!(vector.to_vec().expect("the vector is still there"), [1, 2]);
    });
}
