//! Blocks of a cluster, whose size is a matter of the launch.

use curium_driver::{LaunchAttributes, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_tests::kernels;

use super::tensor::on_device_of;
use super::{buffer, integers, kernel, values};

#[test]
fn blocks_know_their_place_in_their_cluster() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let places = kernel::<(&mut [u32],)>(test, kernels::CLUSTER, "cluster_places");
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 6 * 8 * 4).expect("memory suffices");
        let attributes = LaunchAttributes::new().with_cluster((4, 2));
        // SAFETY: the buffer has six words for each of the blocks.
        unsafe { places.launch_with(&stream, LaunchConfig::new((8, 4), 1), &attributes, (&mut output,)) }
            .expect("it launches");
        let each = |block: u32| {
            let (x, y) = (block % 8, block / 8);
            [y % 2 * 4 + x % 4, 8, x % 4, y % 2, x / 4, 2]
        };
        assert_eq!(values(&output), (0..32).flat_map(each).collect::<Vec<_>>());
    });
}

#[test]
fn blocks_of_clusters_of_any_size_read_each_others_totals() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let sum = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_sum");
        let input = integers(1, 8 * 96);
        let source = buffer(&stream, &input);
        for cluster in [1_u32, 2, 4, 8] {
            let mut output = DeviceBuffer::<u32>::zeroed(&stream, input.len()).expect("memory suffices");
            let attributes = LaunchAttributes::new().with_cluster(cluster);
            // SAFETY: the buffers have a word for each thread.
            unsafe { sum.launch_with(&stream, LaunchConfig::new(8, 96), &attributes, (&source, &mut output)) }
                .expect("it launches");
            let threads = cluster as usize * 96;
            let totals =
                input.chunks(threads).map(|part| part.iter().fold(0_u32, |sum, value| sum.wrapping_add(*value)));
            let expected: Vec<u32> = totals.flat_map(|total| std::iter::repeat_n(total, threads)).collect();
            assert_eq!(values(&output), expected, "clusters of {cluster}");
        }
    });
}

#[test]
fn blocks_of_a_cluster_write_words_around_in_a_ring() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let ring = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_ring");
        let input = integers(2, 8 * 32);
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, input.len()).expect("memory suffices");
        let attributes = LaunchAttributes::new().with_cluster(4);
        // SAFETY: the buffers have a word for each thread.
        unsafe { ring.launch_with(&stream, LaunchConfig::new(8, 32), &attributes, (&source, &mut output)) }
            .expect("it launches");
        let mut expected = input;
        expected.chunks_mut(4 * 32).for_each(|cluster| cluster.rotate_right(32));
        assert_eq!(values(&output), expected);
    });
}
