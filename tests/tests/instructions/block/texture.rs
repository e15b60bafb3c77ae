//! Textures: each geometry, type, level operand, format, address mode and filter mode. The
//! coordinates avoid ambiguity: they lie between the boundaries of elements, at weights that
//! hardware can represent.

mod cube;
mod mipmap;
mod offset;
mod sample;
mod whole;

use curium_memory::{
    AddressMode, ArrayFlags, ArrayShape, FilterMode, TextureFlags, TextureOptions,
};

use super::image::{Channel, Picture};
use super::matrix::half;
use super::{BlockForm, Output};

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = formats();
    forms.extend(geometries());
    forms.extend(whole::forms());
    forms.extend(modes());
    forms.extend(mipmap::forms());
    forms.extend(cube::forms());
    forms.extend(gathers());
    forms.extend(offset::forms());
    forms.extend(sample::forms());
    forms.extend(queries());
    forms
}

/// The name of a geometry, its number of dimensions, and an image for it.
#[derive(Clone, Copy)]
struct Geometry {
    name: &'static str,
    directions: usize,
    shape: ArrayShape,
    is_layered: bool,
}

const GEOMETRIES: [Geometry; 5] = [
    Geometry {
        name: "1d",
        directions: 1,
        shape: ArrayShape::new_1d(8),
        is_layered: false,
    },
    Geometry {
        name: "2d",
        directions: 2,
        shape: ArrayShape::new_2d(8, 4),
        is_layered: false,
    },
    Geometry {
        name: "3d",
        directions: 3,
        shape: ArrayShape::new_3d(8, 4, 4),
        is_layered: false,
    },
    Geometry {
        name: "a1d",
        directions: 1,
        shape: ArrayShape::layered_1d(8, 3),
        is_layered: true,
    },
    Geometry {
        name: "a2d",
        directions: 2,
        shape: ArrayShape::layered_2d(8, 4, 3),
        is_layered: true,
    },
];

impl Geometry {
    /// Returns the coordinate operand for these registers; the layer is in `%r20`.
    fn operand(self, registers: [&str; 3]) -> String {
        let [x, y, z] = registers;
        match (self.directions, self.is_layered) {
            (1, false) => format!("{{{x}}}"),
            (1, true) => format!("{{%r20, {x}}}"),
            (2, false) => format!("{{{x}, {y}}}"),
            (2, true) => format!("{{%r20, {x}, {y}, {y}}}"),
            (_, false) => format!("{{{x}, {y}, {z}, {z}}}"),
            (_, true) => format!("{{%r20, {x}, {y}, {z}}}"),
        }
    }

    fn layer(self, thread: usize) -> Option<usize> {
        // One beyond the last layer, which is clamped to the last.
        self.is_layered
            .then_some(thread % (self.shape.layers() + 1))
    }

    /// Returns code that loads the layer into `%r20`.
    fn layer_code(self) -> String {
        format!("rem.u32 %r20, %thread, {};\n    ", self.shape.layers() + 1)
    }
}

/// The coordinates of a thread in quarters of an element, with an offset of an eighth, far out of
/// bounds on both sides.
const STEPS: [(i64, i64, i64); 3] = [(7, 61, 20), (5, 37, 12), (3, 29, 10)];

fn coordinate(axis: usize, thread: usize) -> f64 {
    let (factor, modulus, back) = STEPS[axis];
    ((thread as i64 * factor) % modulus - back) as f64 / 4.0 + 0.125
}

/// Returns code that loads the scaled coordinates into `%r16` to `%r18`.
fn coordinates(scales: [f32; 3]) -> String {
    (0..3)
        .map(|axis| {
            let (factor, modulus, back) = STEPS[axis];
            let register = 16 + axis;
            format!(
                "mul.lo.u32 %r{register}, %thread, {factor};
    rem.u32 %r{register}, %r{register}, {modulus};
    sub.s32 %r{register}, %r{register}, {back};
    cvt.rn.f32.s32 %r{register}, %r{register};
    fma.rn.f32 %r{register}, %r{register}, 0f{:08x}, 0f{:08x};
    ",
                (scales[axis] / 4.0).to_bits(),
                (scales[axis] / 8.0).to_bits()
            )
        })
        .collect()
}

/// Returns the scales from elements to the coordinates of an image.
fn scales(picture: &Picture) -> [f32; 3] {
    let extents = [
        picture.shape.width(),
        picture.shape.rows(),
        picture.shape.layers(),
    ];
    extents.map(|extent| {
        if picture.is_normalized() {
            1.0 / extent as f32
        } else {
            1.0
        }
    })
}

/// Loads the handle, and stores as many channels as the image has, one per word.
const HANDLE: &str = "ld.param.b64 %l20, [table];\n    ";
const RESULT: &str = "{%r8, %r9, %r10, %r11}";

fn leave(channels: usize) -> String {
    (0..channels)
        .map(|channel| {
            format!(
                "st.global.b32 [%out+{}], %r{};\n    ",
                8 * channel,
                8 + channel
            )
        })
        .collect()
}

/// Returns numbers as the result of a thread, with the bits of the result type.
fn left(values: [f64; 4], kind: &str, channels: usize) -> Output {
    std::array::from_fn(|channel| match kind {
        _ if channel >= channels => 0,
        "f32" => u64::from((values[channel] as f32).to_bits()),
        _ => u64::from((values[channel] as i64) as u32),
    })
}

/// Returns a form that fetches from an image at the coordinates of all threads; `operands` follow
/// the coordinates.
fn read(
    name: &str,
    geometry: Geometry,
    picture: Picture,
    kind: &'static str,
    tolerance: f32,
) -> BlockForm {
    let spelling = format!("tex.{}.v4.{kind}.f32", geometry.name);
    let code = format!(
        "{HANDLE}{}{}{spelling} {RESULT}, [%l20, {}];\n    {}",
        geometry.layer_code(),
        coordinates(scales(&picture)),
        geometry.operand(["%r16", "%r17", "%r18"]),
        leave(4)
    );
    let form = BlockForm::new(format!("{spelling} {name}"), code, move |_, thread| {
        let coordinates = position(thread);
        left(
            picture.sample(
                0,
                &coordinates[..geometry.directions],
                geometry.layer(thread),
            ),
            kind,
            4,
        )
    });
    form.with(picture.prepare()).within(tolerance)
}

/// Returns every format: unconverted, normalized, and sRGB, with its border color.
fn formats() -> Vec<BlockForm> {
    let plane = GEOMETRIES[1];
    let mut forms = Vec::new();
    for (channel, channels) in Channel::ALL
        .into_iter()
        .flat_map(|channel| [1, 2, 4].map(|count| (channel, count)))
    {
        let picture = Picture::new(channel, channels, plane.shape);
        let name = format!("of {channels} {channel:?}");
        forms.push(read(&name, plane, picture, channel.kind(), 0.0));
        let border = Picture {
            options: with_border(picture.options),
            ..picture
        };
        forms.push(read(
            &format!("{name}, a color beyond"),
            plane,
            border,
            channel.kind(),
            0.0,
        ));
        if channel.bits() < 32 && channel.kind() != "f32" {
            let options = picture.options.with_flags(TextureFlags::empty());
            let fractions = Picture { options, ..picture };
            forms.push(read(
                &format!("{name} as fractions"),
                plane,
                fractions,
                "f32",
                1e-6,
            ));
            let border = Picture {
                options: with_border(options),
                ..picture
            };
            forms.push(read(
                &format!("{name} as fractions, a color beyond"),
                plane,
                border,
                "f32",
                1e-6,
            ));
        }
    }
    let picture = Picture::new(Channel::U8, 4, plane.shape);
    let colors = Picture {
        options: picture.options.with_flags(TextureFlags::SRGB),
        ..picture
    };
    // The precision is unspecified: the error of hardware is half a step of a byte, which is
    // largest near white.
    forms.push(read("of 4 U8 in sRGB", plane, colors, "f32", 0.0045));
    forms
}

/// Returns options with a border color.
fn with_border(options: TextureOptions) -> TextureOptions {
    options
        .with_address_mode(AddressMode::Border)
        .with_border_color(COLOR)
}

/// A border color with numbers that most formats cannot represent.
const COLOR: [f32; 4] = [3.0, -2.5, 1.0 / 3.0, 1e10];

/// The result types, with a channel format and the register class.
const KINDS: [(&str, Channel, &str); 5] = [
    ("v4.u32", Channel::U32, RESULT),
    ("v4.s32", Channel::S32, RESULT),
    ("v4.f32", Channel::F32, RESULT),
    ("v4.f16", Channel::F16, "{%h8, %h9, %h10, %h11}"),
    ("v2.f16x2", Channel::F16, "{%r8, %r9}"),
];

/// Stores a result of a type, for an image with four channels.
fn leave_kind(kind: &str) -> String {
    match kind {
        "v2.f16x2" => leave(2),
        "v4.f16" => leave(4).replace(".b32", ".b16").replace("%r", "%h"),
        _ => leave(4),
    }
}

/// Returns the result of a thread for a result type.
fn left_kind(values: [f64; 4], kind: &str) -> Output {
    let [red, green, blue, alpha] = values.map(half);
    match kind {
        "v2.f16x2" => [red | green << 16, blue | alpha << 16, 0, 0],
        "v4.f16" => [red, green, blue, alpha],
        _ => left(values, &kind[3..], 4),
    }
}

/// The level operands with their set-up code, and the operands for floating-point and for integer
/// coordinates.
fn ways(directions: usize) -> [(&'static str, String, [String; 2]); 4] {
    let step = match directions {
        1 => "{%r23}",
        2 => "{%r23, %r23}",
        _ => "{%r23, %r23, %r23, %r23}",
    };
    let grad = || format!(", {step}, {step}");
    [
        ("", String::new(), [String::new(), String::new()]),
        (".base", String::new(), [String::new(), String::new()]),
        (
            ".level",
            String::new(),
            [", 0f00000000".to_owned(), ", 0".to_owned()],
        ),
        (
            ".grad",
            "mov.b32 %r23, 0f38000000;\n    ".to_owned(),
            [grad(), grad()],
        ),
    ]
}

/// Returns each geometry with each result type and each level operand.
fn geometries() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS.map(|kind| (geometry, kind)))
    {
        let picture = Picture::new(channel, 4, geometry.shape);
        for (way, set, [operand, _]) in ways(geometry.directions) {
            let spelling = format!("tex{way}.{}.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{set}{spelling} {result}, [%l20, {}]{operand};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave_kind(kind)
            );
            let form = BlockForm::new(spelling, code, move |_, thread| {
                left_kind(
                    picture.sample(
                        0,
                        &position(thread)[..geometry.directions],
                        geometry.layer(thread),
                    ),
                    kind,
                )
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

fn position(thread: usize) -> [f64; 3] {
    std::array::from_fn(|axis| coordinate(axis, thread))
}

/// Returns out-of-bounds coordinates, normalized and unnormalized, with nearest and linear
/// filtering.
fn modes() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let modes = [
        AddressMode::Clamp,
        AddressMode::Wrap,
        AddressMode::Mirror,
        AddressMode::Border,
    ];
    let ways = [FilterMode::Point, FilterMode::Linear];
    for (geometry, mode) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| modes.map(|mode| (geometry, mode)))
    {
        for (filter, normalized) in ways.into_iter().flat_map(|way| {
            [TextureFlags::empty(), TextureFlags::NORMALIZED_COORDINATES].map(|flags| (way, flags))
        }) {
            // Hardware also interpolates with the border in the second dimension of a 1D texture.
            if geometry.directions == 1
                && mode == AddressMode::Border
                && filter == FilterMode::Linear
            {
                continue;
            }
            for channel in [Channel::F32, Channel::F16] {
                let mut picture = Picture::new(channel, 2, geometry.shape);
                picture.options = picture
                    .options
                    .with_flags(normalized)
                    .with_address_mode(mode)
                    .with_filter(filter);
                let how = if normalized.is_empty() {
                    "in elements"
                } else {
                    "from 0 to 1"
                };
                let name = format!("of 2 {channel:?}, {mode:?}, {filter:?}, {how}");
                forms.push(read(&name, geometry, picture, "f32", 0.0));
            }
        }
    }
    let mut bytes = Picture::new(Channel::U8, 4, GEOMETRIES[1].shape);
    bytes.options = bytes
        .options
        .with_flags(TextureFlags::empty())
        .with_filter(FilterMode::Linear);
    // The sum has about 16 bits.
    forms.push(read(
        "of 4 U8, Clamp, Linear, as fractions",
        GEOMETRIES[1],
        bytes,
        "f32",
        2e-5,
    ));
    forms
}

/// `tld4`: one channel of the four elements of bilinear filtering, counterclockwise from the lower
/// left.
fn gathers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let kinds = [
        ("u32", Channel::U32),
        ("s32", Channel::S32),
        ("f32", Channel::F32),
    ];
    for geometry in [GEOMETRIES[1], GEOMETRIES[4]] {
        for ((kind, channel), (number, letter)) in kinds.into_iter().flat_map(|kind| {
            ["r", "g", "b", "a"]
                .into_iter()
                .enumerate()
                .map(move |way| (kind, way))
        }) {
            for mode in [AddressMode::Clamp, AddressMode::Border] {
                let mut picture = Picture::new(channel, 4, geometry.shape);
                picture.flags = ArrayFlags::GATHER;
                picture.options = picture.options.with_address_mode(mode);
                let spelling = format!("tld4.{letter}.{}.v4.{kind}.f32", geometry.name);
                let code = format!(
                    "{HANDLE}{}{}{spelling} {RESULT}, [%l20, {}];\n    {}",
                    geometry.layer_code(),
                    coordinates([1.0; 3]),
                    geometry.operand(["%r16", "%r17", "%r18"]),
                    leave(4)
                );
                let form =
                    BlockForm::new(format!("{spelling} {mode:?}"), code, move |_, thread| {
                        let [x, y, _] = position(thread);
                        let values = gathered(&picture, [x, y], geometry.layer(thread), number);
                        left(values, kind, 4)
                    });
                forms.push(form.with(picture.prepare()));
            }
        }
    }
    forms
}

/// Returns a channel of the four elements around a coordinate.
fn gathered(picture: &Picture, at: [f64; 2], layer: Option<usize>, channel: usize) -> [f64; 4] {
    let [x, y] = at.map(|coordinate| (coordinate - 0.5).floor() + 0.5);
    let corners = [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]];
    corners.map(|[right, down]| picture.sample(0, &[x + right, y + down], layer)[channel])
}

/// `txq`: queries of a texture.
fn queries() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for geometry in GEOMETRIES {
        for (levels, flags) in [
            (1, TextureFlags::empty()),
            (2, TextureFlags::NORMALIZED_COORDINATES),
        ] {
            let mut picture = Picture::new(Channel::F32, 1, geometry.shape);
            picture.levels = levels;
            picture.options =
                picture
                    .options
                    .with_flags(flags)
                    .with_mipmaps(FilterMode::Point, 0.0, 1.0);
            let [width, height, depth] = picture.extents(0, geometry.is_layered);
            let is_normalized = usize::from(picture.is_normalized());
            let mut answers = vec![
                ("width", width),
                ("num_mipmap_levels", levels as usize),
                ("normalized_coords", is_normalized),
            ];
            if geometry.directions > 1 {
                answers.push(("height", height));
            }
            if geometry.directions > 2 {
                answers.push(("depth", depth));
            }
            if geometry.is_layered {
                answers.push(("array_size", depth));
            }
            for (query, answer) in answers {
                let mut ways = vec![(format!("txq.{query}.b32"), "", answer)];
                if levels > 1 && ["width", "height", "depth"].contains(&query) {
                    ways.push((format!("txq.level.{query}.b32"), ", 1", answer / 2));
                    ways.push((format!("txq.level.{query}.b32"), ", 0", answer));
                }
                for (spelling, level, answer) in ways {
                    let code = format!("{HANDLE}{spelling} %r8, [%l20]{level};\n    {}", leave(1));
                    let name = format!("{spelling} of {} with {levels}{level}", geometry.name);
                    let form = BlockForm::new(name, code, move |_, _| [answer as u64, 0, 0, 0]);
                    forms.push(form.with(picture.prepare()));
                }
            }
        }
    }
    forms
}
