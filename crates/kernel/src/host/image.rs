//! Textures and surfaces as arguments of launches.

use bytemuck::Pod;
use curium_driver::hazard::Operation;
use curium_driver::{Argument as DriverArgument, Result};
use curium_memory::{
    ArrayKind, Surface, SurfaceObject, Texel, Texture, TextureFlags, TextureObject, TextureShape,
};

use super::argument::{Argument, ImageAccess, PreparedArgument, Words};
use crate::texture::{
    Geometry, Sample, Surface2D, Texture1D, Texture1DArray, Texture2D, Texture2DArray, Texture3D,
    TextureCube,
};

/// The conversion between the elements of a texture and what reads return.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[doc(hidden)]
pub enum Conversion {
    /// Elements are returned unchanged.
    None,
    /// Integers are returned as integers of 32 bits.
    Integer,
    /// Integers are returned as numbers from 0 or -1 to 1.
    Normalized,
}

/// Elements of a texture that reads can return as `T`.
///
/// # Safety
///
/// The conversion is that of the device.
#[diagnostic::on_unimplemented(
    message = "a texture of `{Self}` does not return `{T}`",
    note = "`f32` and 32-bit integers are returned unchanged; smaller integers as 32-bit integers with `READ_AS_INTEGER`, and otherwise as `f32`"
)]
pub unsafe trait ReadAs<T>: Texel {
    #[doc(hidden)]
    const CONVERSION: Conversion;
}

macro_rules! read_as {
    ($($element:ty => $result:ty: $conversion:ident;)*) => {
        $(
            // SAFETY: the conversion of the programming guide.
            unsafe impl ReadAs<$result> for $element {
                const CONVERSION: Conversion = Conversion::$conversion;
            }
            // SAFETY: each channel is converted to the type, as a single one is.
            unsafe impl ReadAs<[$result; 2]> for [$element; 2] {
                const CONVERSION: Conversion = Conversion::$conversion;
            }
            // SAFETY: each channel is converted to the type, as a single one is.
            unsafe impl ReadAs<[$result; 4]> for [$element; 4] {
                const CONVERSION: Conversion = Conversion::$conversion;
            }
        )*
    };
}

read_as! {
    f32 => f32: None;
    u32 => u32: None;
    i32 => i32: None;
    u8 => u32: Integer;
    u16 => u32: Integer;
    i8 => i32: Integer;
    i16 => i32: Integer;
    u8 => f32: Normalized;
    u16 => f32: Normalized;
    i8 => f32: Normalized;
    i16 => f32: Normalized;
}

/// A texture that was checked.
#[doc(hidden)]
pub struct PreparedTexture<'a, E>(&'a Texture<E>);

/// Checks the dimensions and the elements of a texture.
fn check<E: Texel>(
    texture: &Texture<E>,
    geometry: Geometry,
    conversion: Conversion,
) -> Result<(), String> {
    let (is_right, expected) = match geometry {
        Geometry::Line => (is_regular(texture, 1), "a one-dimensional texture"),
        Geometry::Plane => (is_regular(texture, 2), "a two-dimensional texture"),
        Geometry::Volume => (is_regular(texture, 3), "a three-dimensional texture"),
        Geometry::Lines => (is_layered(texture, 1), "a layered one-dimensional texture"),
        Geometry::Planes => (is_layered(texture, 2), "a layered two-dimensional texture"),
        Geometry::Cube => (
            matches!(texture.shape(), TextureShape::Array(shape) if shape.kind() == ArrayKind::Cubemap),
            "a texture of a cubemap",
        ),
    };
    if !is_right {
        return Err(format!(
            "expected {expected}, and this one reads {:?}",
            texture.shape()
        ));
    }
    if texture.has_view_format() {
        return Err("a view changes the format of the texture's elements".to_owned());
    }
    let is_integer = texture.flags().contains(TextureFlags::READ_AS_INTEGER);
    match conversion {
        Conversion::Integer if !is_integer => Err(
            "the texture returns floating-point numbers; create it with `TextureFlags::READ_AS_INTEGER`"
                .to_owned(),
        ),
        Conversion::Normalized if is_integer => Err(
            "the texture returns integers; create it without `TextureFlags::READ_AS_INTEGER`".to_owned(),
        ),
        _ => Ok(()),
    }
}

fn is_regular<E: Texel>(texture: &Texture<E>, dimensions: u32) -> bool {
    match texture.shape() {
        TextureShape::Linear => dimensions == 1,
        TextureShape::Pitch2d => dimensions == 2,
        TextureShape::Array(shape) => {
            shape.kind() == ArrayKind::Regular && shape.dimensions() == dimensions
        }
        _ => false,
    }
}

fn is_layered<E: Texel>(texture: &Texture<E>, dimensions: u32) -> bool {
    matches!(
        texture.shape(),
        TextureShape::Array(shape) if shape.kind() == ArrayKind::Layered && shape.dimensions() == dimensions
    )
}

macro_rules! textures {
    ($($name:ident $geometry:ident)*) => {
        $(
            // SAFETY: the dimensions and the elements were checked, and the driver's argument
            // tracks reads.
            unsafe impl<'a, T: Sample, E: ReadAs<T>> Argument<$name<T>> for &'a Texture<E> {
                type Prepared = PreparedTexture<'a, E>;

                fn prepare(self) -> Result<Self::Prepared, String> {
                    check(self, Geometry::$geometry, E::CONVERSION)?;
                    Ok(PreparedTexture(self))
                }
            }

            // SAFETY: the word is the object.
            unsafe impl<T: Sample, E: ReadAs<T>> PreparedArgument<$name<T>> for PreparedTexture<'_, E> {
                unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<Words<$name<T>>> {
                    // SAFETY: the caller calls `launched` before it uses the texture again, if the
                    // kernel is enqueued.
                    let _: TextureObject = unsafe { DriverArgument::bind(&mut self.0, operation) }?;
                    Ok(Words {
                        first: self.0.as_raw(),
                        second: (),
                        third: (),
                    })
                }

                unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                    // SAFETY: the caller has bound the texture with the same operation, and not
                    // used it since.
                    unsafe { DriverArgument::<TextureObject>::launched(&mut self.0, operation) };
                }

                fn image(&self) -> Option<ImageAccess> {
                    let array = self.0.array_identity()?;
                    Some(ImageAccess { array, is_written: false })
                }
            }
        )*
    };
}

textures! {
    Texture1D Line
    Texture2D Plane
    Texture3D Volume
    Texture1DArray Lines
    Texture2DArray Planes
    TextureCube Cube
}

/// A surface that was checked.
#[doc(hidden)]
pub struct PreparedSurface<'a, T>(&'a Surface<T>);

// SAFETY: the array has two dimensions and elements of this type, the launch checks that no other
// argument is of the same array, and the driver's argument tracks writes.
unsafe impl<'a, T: Pod + Texel> Argument<Surface2D<T>> for &'a Surface<T> {
    type Prepared = PreparedSurface<'a, T>;

    fn prepare(self) -> Result<Self::Prepared, String> {
        let shape = self.array().shape();
        if shape.kind() != ArrayKind::Regular || shape.dimensions() != 2 {
            return Err(format!(
                "expected a surface of a two-dimensional array, and this one is of {shape:?}"
            ));
        }
        Ok(PreparedSurface(self))
    }
}

// SAFETY: the word is the object.
unsafe impl<T: Pod + Texel> PreparedArgument<Surface2D<T>> for PreparedSurface<'_, T> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<Words<Surface2D<T>>> {
        // SAFETY: the caller calls `launched` before it uses the surface again, if the kernel is
        // enqueued.
        let _: SurfaceObject = unsafe { DriverArgument::bind(&mut self.0, operation) }?;
        Ok(Words {
            first: self.0.as_raw(),
            second: (),
            third: (),
        })
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller has bound the surface with the same operation, and not used it since.
        unsafe { DriverArgument::<SurfaceObject>::launched(&mut self.0, operation) };
    }

    fn image(&self) -> Option<ImageAccess> {
        Some(ImageAccess {
            array: self.0.array_identity(),
            is_written: true,
        })
    }
}
