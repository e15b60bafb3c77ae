//! Cube maps: the face of a direction and the coordinates on it.

/// Returns the face that a direction points to, and the coordinates on it, each from 0 to 1.
pub(super) fn face([x, y, z]: [f32; 3]) -> (u32, [f32; 2]) {
    let (face, major, s, t) = if x.abs() >= y.abs() && x.abs() >= z.abs() {
        if x >= 0.0 {
            (0, x, -z, -y)
        } else {
            (1, -x, z, -y)
        }
    } else if y.abs() >= z.abs() {
        if y >= 0.0 {
            (2, y, x, z)
        } else {
            (3, -y, x, -z)
        }
    } else if z >= 0.0 {
        (4, z, x, -y)
    } else {
        (5, -z, -x, -y)
    };
    (face, [s, t].map(|value| f32::midpoint(value / major, 1.0)))
}

#[cfg(test)]
mod tests {
    use crate::exec::image::cube::face;

    #[test]
    fn axes_point_to_the_middles_of_faces() {
        let axes = [
            [2.0, 0.0, 0.0],
            [-2.0, 0.0, 0.0],
            [0.0, 3.0, 0.0],
            [0.0, -3.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
        ];
        for (index, axis) in (0..).zip(axes) {
            assert_eq!(face(axis), (index, [0.5, 0.5]), "{axis:?}");
        }
        assert_eq!(face([4.0, 2.0, -2.0]), (0, [0.75, 0.25]));
        assert_eq!(face([-1.0, 2.0, -1.0]), (2, [0.25, 0.25]));
    }
}
