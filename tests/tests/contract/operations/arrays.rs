//! The operations on arrays, textures and surfaces.

use std::sync::Arc;

use curium_driver::{Graph, Result};
use curium_memory::copy::CopyBatch;
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, Extent, MipmappedArray, Pitch, Pitch2d, Surface,
    SurfaceObject, Texture, TextureObject, TextureOptions,
};

use super::memory::pass;
use super::{Fixture, LEN, Operation, boxed, made};

const SHAPE: ArrayShape = ArrayShape::new_2d(4, LEN / 4);

pub(super) const OPERATIONS: &[Operation] = &[
    ("Array::new", |fixture| made(array(fixture)?)),
    ("Array::copy_from_slice", |fixture| keep(fixture, |array, _| array.copy_from_slice(&[1; LEN]))),
    ("Array::to_vec", |fixture| keep(fixture, |array, _| array.to_vec().map(|_| ()))),
    ("Array::copy_from_device", |fixture| {
        keep(fixture, |array, fixture| array.copy_from_device(ArrayRegion::whole(SHAPE), &fixture.buffer))
    }),
    ("Array::copy_to_device", |fixture| {
        keep(fixture, |array, fixture| array.copy_to_device(ArrayRegion::whole(SHAPE), &mut fixture.target))
    }),
    ("Array::from_slice", |fixture| {
        made(Array::from_slice(&fixture.stream, &[1_u32; LEN], SHAPE, ArrayFlags::empty())?)
    }),
    ("Array::copy_to_slice", |fixture| keep(fixture, |array, _| array.copy_to_slice(&mut [0; LEN]))),
    ("Array::copy_region_from_slice", |fixture| {
        keep(fixture, |array, _| array.copy_region_from_slice(ArrayRegion::whole(SHAPE), &[1; LEN]))
    }),
    ("Array::copy_region_to_slice", |fixture| {
        keep(fixture, |array, _| array.copy_region_to_slice(ArrayRegion::whole(SHAPE), &mut [0; LEN]))
    }),
    ("Array::copy_from_array", |fixture| {
        let source = array(fixture)?;
        let target = array(fixture)?;
        target.copy_from_array([0; 3], &source, ArrayRegion::whole(SHAPE))?;
        made((source, target))
    }),
    ("CopyBatch::copy_to_array and CopyBatch::copy_from_array", |fixture| {
        let array = array(fixture)?;
        let (extent, pitch) = (Extent::new_2d(2, 1), Pitch::from_row_len::<u32>(2));
        let from = fixture.buffer.as_slice().pitched(extent, pitch)?;
        let to = fixture.target.as_slice_mut().pitched(extent, pitch)?;
        let batch = CopyBatch::new().copy_to_array(&array, [0; 3], from)?.copy_from_array(to, &array, [2, 0, 0])?;
        batch.enqueue(&fixture.stream)?;
        made(array)
    }),
    ("Array::close", |fixture| array(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    ("MipmappedArray::new", |fixture| made(levels(fixture)?)),
    ("MipmappedArray::level", |fixture| made(levels(fixture)?.level(1)?)),
    ("MipmappedArray::close", |fixture| levels(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    ("Texture::from_array", |fixture| made(texture(fixture)?)),
    ("Texture::from_mipmapped_array", |fixture| {
        made(Texture::from_mipmapped_array(&Arc::new(levels(fixture)?), &TextureOptions::new(), None)?)
    }),
    ("Texture::from_array_with_view", |fixture| {
        made(Texture::from_array_with_view(&Arc::new(array(fixture)?), &TextureOptions::new(), None)?)
    }),
    ("Texture::from_buffer", |fixture| made(Texture::from_buffer(&buffer(fixture)?, &TextureOptions::new())?)),
    ("Texture::from_pitch2d", |fixture| {
        let plane = Pitch2d { width: 4, height: 2, pitch_bytes: 512 };
        made(Texture::from_pitch2d(&buffer(fixture)?, plane, &TextureOptions::new())?)
    }),
    ("Texture::options", |fixture| {
        let texture = texture(fixture)?;
        texture.options()?;
        made(texture)
    }),
    ("Texture::bind and Texture::launched", |fixture| {
        let texture = texture(fixture)?;
        pass::<TextureObject>(&fixture.other, &texture)?;
        made(texture)
    }),
    ("Surface::bind and Surface::launched", |fixture| {
        let surface = Surface::new(&Arc::new(array(fixture)?))?;
        pass::<SurfaceObject>(&fixture.other, &surface)?;
        made(surface)
    }),
    ("Texture::bind and Surface::bind, in a capture", |fixture| {
        let array = Arc::new(array(fixture)?);
        let (texture, surface) = (Texture::from_array(&array, &TextureOptions::new())?, Surface::new(&array)?);
        made(Graph::capture(&fixture.context, |scope| {
            pass::<TextureObject>(scope, &texture).map(drop)?;
            pass::<SurfaceObject>(scope, &surface).map(drop)
        })?)
    }),
    ("Texture::close", |fixture| {
        let array = Arc::new(array(fixture)?);
        let texture = Texture::from_array(&array, &TextureOptions::new())?;
        texture.close()?;
        made(array)
    }),
    ("Surface::new", |fixture| made(Surface::new(&Arc::new(array(fixture)?))?)),
    ("Surface::close", |fixture| {
        let array = Arc::new(array(fixture)?);
        Surface::new(&array)?.close()?;
        made(array)
    }),
];

fn array(fixture: &Fixture) -> Result<Array<u32>> {
    Array::new(&fixture.stream, SHAPE, ArrayFlags::SURFACE)
}

/// Performs an operation on an array, which is returned to be dropped later.
fn keep(fixture: &mut Fixture, operation: impl FnOnce(&Array<u32>, &mut Fixture) -> Result<()>) -> Result<super::Made> {
    let array = array(fixture)?;
    operation(&array, fixture)?;
    made(array)
}

fn levels(fixture: &Fixture) -> Result<MipmappedArray<u32>> {
    MipmappedArray::new(&fixture.stream, ArrayShape::new_2d(4, 4), 2, ArrayFlags::empty())
}

fn buffer(fixture: &Fixture) -> Result<Arc<DeviceBuffer<u32>>> {
    DeviceBuffer::zeroed(&fixture.stream, 4096).map(Arc::new)
}

fn texture(fixture: &Fixture) -> Result<Texture<u32>> {
    Texture::from_array(&Arc::new(array(fixture)?), &TextureOptions::new())
}
