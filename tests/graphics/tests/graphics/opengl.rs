//! OpenGL support for the tests.

use curium_tests::{TestDriver, TestResult};
use glow::HasContext as _;
use khronos_egl as egl;

use crate::egl::Egl;

/// OpenGL on the CUDA device, current on this thread.
pub(crate) struct OpenGl {
    gl: glow::Context,
    /// Dropped after the functions.
    pub(crate) egl: Egl,
}

impl OpenGl {
    pub(crate) fn open(test: &TestDriver) -> Result<Self, String> {
        let egl = Egl::open(test)?;
        // SAFETY: the functions belong to the current context.
        let gl = unsafe { glow::Context::from_loader_function(|name| egl.function(name)) };
        Ok(Self { gl, egl })
    }

    /// Returns a buffer with this content.
    pub(crate) fn buffer(&self, bytes: &[u8]) -> glow::Buffer {
        // SAFETY: the context is current.
        let buffer = unsafe { self.gl.create_named_buffer() }.expect("failed to create a buffer");
        // SAFETY: the buffer is of this context, which is current.
        unsafe {
            self.gl
                .named_buffer_data_u8_slice(buffer, bytes, glow::DYNAMIC_COPY);
        };
        self.expect_no_error();
        buffer
    }

    /// Returns the first `len` bytes of a buffer.
    pub(crate) fn contents(&self, buffer: glow::Buffer, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: the context is current, and the buffer belongs to it.
        unsafe { self.gl.bind_buffer(glow::COPY_READ_BUFFER, Some(buffer)) };
        // SAFETY: the buffer has this many bytes, and the slice too.
        unsafe {
            self.gl
                .get_buffer_sub_data(glow::COPY_READ_BUFFER, 0, &mut bytes);
        };
        self.expect_no_error();
        bytes
    }

    /// Copies the first `len` bytes of a buffer to another.
    pub(crate) fn copy(&self, source: glow::Buffer, target: glow::Buffer, len: i32) {
        // SAFETY: the context is current, and the buffer belongs to it.
        unsafe { self.gl.bind_buffer(glow::COPY_READ_BUFFER, Some(source)) };
        // SAFETY: the context is current, and the buffer belongs to it.
        unsafe { self.gl.bind_buffer(glow::COPY_WRITE_BUFFER, Some(target)) };
        // SAFETY: both are bound, and have this many bytes.
        unsafe {
            self.gl.copy_buffer_sub_data(
                glow::COPY_READ_BUFFER,
                glow::COPY_WRITE_BUFFER,
                0,
                0,
                len,
            );
        };
        self.expect_no_error();
    }

    /// Returns a texture of this size with the given levels: four bytes per texel, in row order.
    pub(crate) fn texture(&self, size: (i32, i32), levels: &[Vec<[u8; 4]>]) -> glow::Texture {
        let (width, height) = size;
        // SAFETY: the context is current.
        let texture = unsafe { self.gl.create_texture() }.expect("failed to create a texture");
        // SAFETY: the texture belongs to this context.
        unsafe { self.gl.bind_texture(glow::TEXTURE_2D, Some(texture)) };
        // SAFETY: the texture is bound, and has no storage yet.
        unsafe {
            self.gl.tex_storage_2d(
                glow::TEXTURE_2D,
                levels.len() as i32,
                glow::RGBA8,
                width,
                height,
            );
        };
        for (level, texels) in (0..).zip(levels) {
            self.write_level(level, (width >> level, height >> level), texels);
        }
        texture
    }

    /// Returns a texture with the texels of an EGL image.
    pub(crate) fn texture_from_image(&self, image: egl::Image) -> TestResult<glow::Texture> {
        type Target = unsafe extern "system" fn(u32, egl::EGLImage);
        // SAFETY: the context is current.
        let texture = unsafe { self.gl.create_texture() }?;
        // SAFETY: the texture belongs to this context.
        unsafe { self.gl.bind_texture(glow::TEXTURE_2D, Some(texture)) };
        let function = self
            .egl
            .instance
            .get_proc_address("glEGLImageTargetTexture2DOES")
            .ok_or("no `glEGLImageTargetTexture2DOES`")?;
        // SAFETY: the function of this name has this type.
        let function = unsafe { std::mem::transmute::<extern "system" fn(), Target>(function) };
        // SAFETY: the texture is bound, and the image is live.
        unsafe { function(glow::TEXTURE_2D, image.as_ptr()) };
        self.expect_no_error();
        Ok(texture)
    }

    /// Overwrites level 0 of a texture of this size.
    pub(crate) fn write(&self, texture: glow::Texture, size: (i32, i32), texels: &[[u8; 4]]) {
        // SAFETY: the context is current, and the texture belongs to it.
        unsafe { self.gl.bind_texture(glow::TEXTURE_2D, Some(texture)) };
        self.write_level(0, size, texels);
    }

    /// Returns the `len` texels of a level.
    pub(crate) fn texels(&self, texture: glow::Texture, level: i32, len: usize) -> Vec<[u8; 4]> {
        let mut texels = vec![[0; 4]; len];
        // SAFETY: the context is current, and the texture belongs to it.
        unsafe { self.gl.bind_texture(glow::TEXTURE_2D, Some(texture)) };
        let room = glow::PixelPackData::Slice(Some(texels.as_flattened_mut()));
        // SAFETY: the texture is bound, and the slice has the size of the level.
        unsafe {
            self.gl.get_tex_image(
                glow::TEXTURE_2D,
                level,
                glow::RGBA,
                glow::UNSIGNED_BYTE,
                room,
            );
        };
        self.expect_no_error();
        texels
    }

    /// Waits for all OpenGL commands.
    pub(crate) fn finish(&self) {
        // SAFETY: the context is current.
        unsafe { self.gl.finish() };
        self.expect_no_error();
    }

    /// Overwrites a level of the given size of the bound texture.
    fn write_level(&self, level: i32, size: (i32, i32), texels: &[[u8; 4]]) {
        let (width, height) = size;
        assert_eq!(texels.len() as i32, width * height, "level {level}");
        let texels = glow::PixelUnpackData::Slice(Some(texels.as_flattened()));
        let target = glow::TEXTURE_2D;
        let format = glow::RGBA;
        let kind = glow::UNSIGNED_BYTE;
        // SAFETY: the slice has the size of the level.
        unsafe {
            self.gl
                .tex_sub_image_2d(target, level, 0, 0, width, height, format, kind, texels);
        };
        self.expect_no_error();
    }

    fn expect_no_error(&self) {
        // SAFETY: the context is current.
        assert_eq!(unsafe { self.gl.get_error() }, glow::NO_ERROR);
    }
}
