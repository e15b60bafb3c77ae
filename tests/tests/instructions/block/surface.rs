//! Surfaces: loads, stores and reductions of every width, in each geometry, with each boundary
//! mode.

mod format;

use curium_memory::{ArrayFlags, ArrayShape};

use super::image::{Channel, Picture};
use super::pattern::expand;
use super::{BlockForm, Output, output_from_bytes};
use crate::form::Sources;
use crate::reference::integer::Integer;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = loads();
    forms.extend(stores());
    forms.extend(format::forms());
    forms.extend(reductions());
    forms.extend(queries());
    forms
}

/// The name of a geometry and an image with an element for each thread.
#[derive(Clone, Copy)]
struct Geometry {
    name: &'static str,
    shape: ArrayShape,
}

const GEOMETRIES: [Geometry; 5] = [
    Geometry {
        name: "1d",
        shape: ArrayShape::new_1d(64),
    },
    Geometry {
        name: "2d",
        shape: ArrayShape::new_2d(8, 8),
    },
    Geometry {
        name: "3d",
        shape: ArrayShape::new_3d(8, 4, 2),
    },
    Geometry {
        name: "a1d",
        shape: ArrayShape::layered_1d(16, 4),
    },
    Geometry {
        name: "a2d",
        shape: ArrayShape::layered_2d(8, 4, 2),
    },
];

const MODES: [&str; 3] = ["trap", "clamp", "zero"];

impl Geometry {
    fn width(self) -> usize {
        self.shape.width()
    }

    /// Returns the coordinates of a thread's element.
    fn position(self, thread: usize) -> [usize; 3] {
        let width = self.width();
        let rows = self.shape.rows();
        [thread % width, thread / width % rows, thread / width / rows]
    }

    /// Returns code that loads the coordinates of a thread's element into `%r16` (in units of
    /// `scale` bytes), `%r17` and `%r18`.
    fn code(self, scale: usize) -> String {
        let width = self.width();
        let rows = self.shape.rows();
        format!(
            "ld.param.b64 %l20, [table+8];
    rem.u32 %r16, %thread, {width};
    mul.lo.u32 %r16, %r16, {scale};
    div.u32 %r17, %thread, {width};
    div.u32 %r18, %r17, {rows};
    rem.u32 %r17, %r17, {rows};
    "
        )
    }

    /// Returns the coordinate operand; the layer comes first in layered geometries.
    fn operand(self) -> &'static str {
        match self.name {
            "1d" => "{%r16}",
            "2d" => "{%r16, %r17}",
            "3d" => "{%r16, %r17, %r18, %r18}",
            "a1d" => "{%r18, %r16}",
            _ => "{%r18, %r16, %r17, %r17}",
        }
    }

    /// Returns an image with elements of this many bytes, at most four per channel.
    fn picture(self, bytes: usize, parts: usize) -> Picture {
        let (channel, channels) = match bytes {
            1 => (Channel::U8, parts),
            2 => (Channel::U16, parts),
            4 => (Channel::U32, parts),
            _ => (Channel::U32, 2 * parts),
        };
        Picture {
            flags: ArrayFlags::SURFACE,
            ..Picture::new(channel, channels, self.shape)
        }
    }
}

/// Returns the bytes of an element as words.
fn element(picture: &Picture, at: [usize; 3]) -> [u64; 2] {
    let size = picture.channel.bits() as usize / 8;
    let channels = picture.element(0, at).into_iter().take(picture.channels);
    let bytes: Vec<u8> = channels
        .flat_map(|channel| channel.to_le_bytes().into_iter().take(size))
        .collect();
    let [low, high, ..] = output_from_bytes(|index| bytes.get(index).copied().unwrap_or(0));
    [low, high]
}

/// The access types with their size in bytes, register class, and maximum vector length.
const PARTS: [(&str, usize, char, usize); 4] = [
    ("b8", 1, 'h', 4),
    ("b16", 2, 'h', 4),
    ("b32", 4, 'r', 4),
    ("b64", 8, 'l', 2),
];

/// Returns the vector suffixes up to the given length, with their lengths.
fn vectors(most: usize) -> impl Iterator<Item = (&'static str, usize)> {
    [("", 1), (".v2", 2), (".v4", 4)]
        .into_iter()
        .filter(move |(_, count)| *count <= most)
}

/// Returns registers starting at a number, in braces if there are several.
fn registers(class: char, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count)
        .map(|number| format!("%{class}{number}"))
        .collect();
    if count == 1 {
        names.concat()
    } else {
        format!("{{{}}}", names.join(", "))
    }
}

/// Stores registers to the result in memory order.
fn leave(class: char, count: usize, bytes: usize, at: usize) -> String {
    (0..count)
        .map(|part| {
            format!(
                "st.global.b{} [%out+{}], %{class}{};\n    ",
                8 * bytes,
                at + part * bytes,
                8 + part
            )
        })
        .collect()
}

/// `suld.b`: the thread's own element, and one out of bounds for some threads.
fn loads() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, bytes, class, most)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| PARTS.map(|part| (geometry, part)))
    {
        for ((vector, count), mode) in
            vectors(most).flat_map(|vector| MODES.map(|mode| (vector, mode)))
        {
            let picture = geometry.picture(bytes, count);
            let spelling = format!("suld.b.{}{vector}.{kind}.{mode}", geometry.name);
            forms.push(load(
                &spelling,
                geometry,
                picture,
                Registers {
                    class,
                    count,
                    bytes,
                },
                mode,
            ));
        }
    }
    for spelling in expand("suld.b.2d{.ca,.cg,.cs,.cv}.{b32,v2.b16}.trap") {
        let (class, count, bytes) = if spelling.contains("b32") {
            ('r', 1, 4)
        } else {
            ('h', 2, 2)
        };
        let picture = GEOMETRIES[1].picture(bytes, count);
        forms.push(load(
            &spelling,
            GEOMETRIES[1],
            picture,
            Registers {
                class,
                count,
                bytes,
            },
            "trap",
        ));
    }
    forms
}

/// The distance in elements, to the left for half of the threads and to the right for the others,
/// of loads and stores that test boundaries.
const SHIFT: usize = 5;

/// The registers that an access moves.
#[derive(Clone, Copy)]
struct Registers {
    /// The first letter of their names.
    class: char,
    count: usize,
    /// The bytes of each.
    bytes: usize,
}

fn load(
    spelling: &str,
    geometry: Geometry,
    picture: Picture,
    layout: Registers,
    mode: &'static str,
) -> BlockForm {
    let Registers {
        class,
        count,
        bytes,
    } = layout;
    let operand = geometry.operand();
    let list = registers(class, 8, count);
    let size = bytes * count;
    let mut code = geometry.code(size);
    code += &format!(
        "{spelling} {list}, [%l20, {operand}];\n    {}",
        leave(class, count, bytes, 0)
    );
    if mode != "trap" {
        code += &format!(
            "and.b32 %r19, %thread, 1;
    mul.lo.u32 %r19, %r19, {};
    sub.s32 %r19, %r19, {};
    add.s32 %r16, %r16, %r19;
    {spelling} {list}, [%l20, {operand}];
    {}",
            2 * SHIFT * size,
            SHIFT * size,
            leave(class, count, bytes, 16)
        );
    }
    let form = BlockForm::new(spelling, code, move |_, thread| {
        let [x, y, z] = geometry.position(thread);
        let [low, high] = element(&picture, [x, y, z]);
        if mode == "trap" {
            return [low, high, 0, 0];
        }
        let moved = if thread % 2 == 0 {
            x as i64 - SHIFT as i64
        } else {
            (x + SHIFT) as i64
        };
        let last = geometry.width() as i64 - 1;
        let is_zero = mode == "zero" && !(0..=last).contains(&moved);
        let [third, fourth] = if is_zero {
            [0; 2]
        } else {
            element(&picture, [moved.clamp(0, last) as usize, y, z])
        };
        [low, high, third, fourth]
    });
    form.with(picture.prepare())
}

/// `sust.b`: to the thread's own element, or out of bounds for the first and the last of a row,
/// whose clamped coordinate is their own.
fn stores() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, bytes, class, most)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| PARTS.map(|part| (geometry, part)))
    {
        for ((vector, count), mode) in
            vectors(most).flat_map(|vector| MODES.map(|mode| (vector, mode)))
        {
            let spelling = format!("sust.b.{}{vector}.{kind}.{mode}", geometry.name);
            let layout = Registers {
                class,
                count,
                bytes,
            };
            forms.push(store(&spelling, geometry, layout, mode));
        }
    }
    for spelling in expand("sust.b.2d{.wb,.cg,.cs,.wt}.{b32,v2.b16}.trap") {
        let parts = if spelling.contains("b32") {
            Registers {
                class: 'r',
                count: 1,
                bytes: 4,
            }
        } else {
            Registers {
                class: 'h',
                count: 2,
                bytes: 2,
            }
        };
        forms.push(store(&spelling, GEOMETRIES[1], parts, "trap"));
    }
    forms
}

/// Returns code that moves the first and the last element of a row out of bounds.
fn beyond(geometry: Geometry, size: usize) -> String {
    format!(
        "rem.u32 %r19, %thread, {width};
    setp.eq.u32 %p1, %r19, 0;
    @%p1 sub.s32 %r16, %r16, {far};
    setp.eq.u32 %p1, %r19, {last};
    @%p1 add.s32 %r16, %r16, {far};
    ",
        width = geometry.width(),
        last = geometry.width() - 1,
        far = SHIFT * size
    )
}

/// Returns `true` if the boundary mode discards a thread's store.
fn is_lost(geometry: Geometry, thread: usize, mode: &str) -> bool {
    mode == "zero" && [0, geometry.width() - 1].contains(&(thread % geometry.width()))
}

fn store(spelling: &str, geometry: Geometry, layout: Registers, mode: &'static str) -> BlockForm {
    let Registers {
        class,
        count,
        bytes,
    } = layout;
    let operand = geometry.operand();
    let size = bytes * count;
    let picture = geometry.picture(bytes, count);
    let moved = if mode == "trap" {
        String::new()
    } else {
        beyond(geometry, size)
    };
    // The thread's operands are the first registers of each class.
    let sources = registers(class, 0, count);
    let code = format!(
        "{}{moved}{spelling} [%l20, {operand}], {sources};
    {}suld.b.{}{}.{}.trap {}, [%l20, {operand}];
    {}",
        geometry.code(size),
        geometry.code(size),
        geometry.name,
        ["", "", ".v2", "", ".v4"][count],
        format_args!("b{}", 8 * bytes),
        registers(class, 8, count),
        leave(class, count, bytes, 0)
    );
    let form = BlockForm::new(spelling, code, move |all, thread| {
        if is_lost(geometry, thread, mode) {
            let [low, high] = element(&picture, geometry.position(thread));
            return [low, high, 0, 0];
        }
        let parts: Vec<u8> = all[thread]
            .iter()
            .take(count)
            .flat_map(|word| word.to_le_bytes().into_iter().take(bytes))
            .collect();
        output_from_bytes(|index| parts.get(index).copied().unwrap_or(0))
    });
    form.with(picture.prepare())
}

/// `sured`: modifies the thread's own element.
fn reductions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for operation in expand("{add.{u32,s32,u64},{min,max}.{u32,s32,u64,s64},{and,or}.b32}") {
        let (operation, kind) = operation.split_once('.').expect("an operation has a type");
        for (geometry, mode) in GEOMETRIES[..3]
            .iter()
            .flat_map(|geometry| MODES.map(|mode| (*geometry, mode)))
        {
            let spelling = format!("sured.b.{operation}.{}.{kind}.{mode}", geometry.name);
            forms.push(reduction(spelling, geometry, operation, kind, false, mode));
        }
    }
    // By element (`.p`), whose format determines the signedness.
    for operation in ["add", "min", "max", "and", "or"] {
        for (geometry, mode) in GEOMETRIES[..3]
            .iter()
            .flat_map(|geometry| MODES.map(|mode| (*geometry, mode)))
        {
            for kind in ["u32", "s32"] {
                let spelling = format!("sured.p.{operation}.{}.b32.{mode}", geometry.name);
                forms.push(reduction(spelling, geometry, operation, kind, true, mode));
            }
        }
    }
    forms
}

fn reduction(
    spelling: String,
    geometry: Geometry,
    operation: &str,
    kind: &str,
    by_elements: bool,
    mode: &'static str,
) -> BlockForm {
    let bits: u32 = kind[1..].parse().expect("the type has a width");
    let bytes = bits as usize / 8;
    let class = if bits == 64 { 'l' } else { 'r' };
    let scale = if by_elements { 1 } else { bytes };
    let mut picture = geometry.picture(bytes, 1);
    if kind == "s32" {
        picture = Picture {
            flags: ArrayFlags::SURFACE,
            ..Picture::new(Channel::S32, 1, geometry.shape)
        };
    }
    let moved = if mode == "trap" {
        String::new()
    } else {
        beyond(geometry, scale)
    };
    let code = format!(
        "{}{moved}{spelling} [%l20, {operand}], %{class}0;
    {}suld.b.{}.b{bits}.trap %{class}8, [%l20, {operand}];
    st.global.b{bits} [%out], %{class}8;",
        geometry.code(scale),
        geometry.code(bytes),
        geometry.name,
        operand = geometry.operand()
    );
    let name = if by_elements {
        format!("{spelling} of {kind}")
    } else {
        spelling
    };
    let operation = operation.to_owned();
    let integer = Integer {
        bits,
        signed: kind.starts_with('s'),
    };
    let form = BlockForm::new(name, code, move |all: &[Sources], thread| -> Output {
        let old = element(&picture, geometry.position(thread))[0];
        let new = all[thread][0] & u64::MAX >> (64 - bits);
        if is_lost(geometry, thread, mode) {
            return [old, 0, 0, 0];
        }
        let a = integer.value(old);
        let b = integer.value(new);
        let changed = match operation.as_str() {
            "min" => integer.wrap(a.min(b)),
            "max" => integer.wrap(a.max(b)),
            "and" => old & new,
            "or" => old | new,
            _ => integer.wrap(a + b),
        };
        [changed, 0, 0, 0]
    });
    form.with(picture.prepare())
}

/// `suq`: queries of a surface.
fn queries() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for geometry in GEOMETRIES {
        let picture = geometry.picture(4, 1);
        let rows = geometry.shape.rows();
        let layers = geometry.shape.layers();
        let mut answers = vec![("width", geometry.width())];
        if ["2d", "3d", "a2d"].contains(&geometry.name) {
            answers.push(("height", rows));
        }
        if geometry.name == "3d" {
            answers.push(("depth", layers));
        }
        if geometry.name.starts_with('a') {
            answers.push(("array_size", layers));
        }
        for (query, answer) in answers {
            let spelling = format!("suq.{query}.b32");
            let code = format!(
                "ld.param.b64 %l20, [table+8];\n    {spelling} %r8, [%l20];\n    st.global.b32 [%out], %r8;"
            );
            let form = BlockForm::new(
                format!("{spelling} of {}", geometry.name),
                code,
                move |_, _| [answer as u64, 0, 0, 0],
            );
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}
