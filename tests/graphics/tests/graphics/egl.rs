//! EGL on the CUDA device, without a window.

use std::ffi::c_void;
use std::ptr;

use curium_driver::Device;
use curium_interop::GlDevices;
use curium_tests::TestDriver;
use khronos_egl as egl;

/// An EGL display on a device, with an OpenGL context current on this thread.
pub(crate) struct Egl {
    pub(crate) instance: egl::DynamicInstance<egl::EGL1_5>,
    pub(crate) display: egl::Display,
    pub(crate) context: egl::Context,
}

type QueryDevices = unsafe extern "system" fn(i32, *mut *mut c_void, *mut i32) -> egl::Boolean;

/// `EGL_PLATFORM_DEVICE_EXT`
const PLATFORM_DEVICE: egl::Enum = 0x313f;
const DEVICES: usize = 32;

impl Egl {
    /// Opens the EGL device that is CUDA's first device.
    pub(crate) fn open(test: &TestDriver) -> Result<Self, String> {
        let mut reasons = String::from("no device of EGL is the first of CUDA");
        for device in devices()? {
            match Self::on(device) {
                Ok(egl) if egl.draws_on(&test.device()) => return Ok(egl),
                Ok(_) => reasons.push_str("; another device"),
                Err(reason) => reasons = format!("{reasons}; {reason}"),
            }
        }
        Err(reasons)
    }

    /// Returns the address of a function of EGL or OpenGL, or null.
    pub(crate) fn function(&self, name: &str) -> *const c_void {
        self.instance
            .get_proc_address(name)
            .map_or(ptr::null(), |function| function as *const c_void)
    }

    /// Returns `true` if the display has the extension.
    pub(crate) fn has(&self, extension: &str) -> bool {
        let extensions = self
            .instance
            .query_string(Some(self.display), egl::EXTENSIONS)
            .expect("a display names them");
        extensions
            .to_string_lossy()
            .split(' ')
            .any(|name| name == extension)
    }

    fn on(device: *mut c_void) -> Result<Self, String> {
        let instance = load()?;
        // SAFETY: EGL returned the device.
        let display =
            unsafe { instance.get_platform_display(PLATFORM_DEVICE, device, &[egl::ATTRIB_NONE]) };
        let display = display.map_err(|error| format!("no display: {error}"))?;
        instance
            .initialize(display)
            .map_err(|error| format!("the display cannot be initialized: {error}"))?;
        let context =
            current_context(&instance, display).map_err(|error| format!("no context: {error}"))?;
        Ok(Self {
            instance,
            display,
            context,
        })
    }

    fn draws_on(&self, device: &Device) -> bool {
        let devices = GlDevices::All.query(device.driver());
        devices.is_ok_and(|devices| devices.contains(device))
    }
}

impl Drop for Egl {
    fn drop(&mut self) {
        let Self {
            instance,
            display,
            context,
        } = self;
        let released = instance.make_current(*display, None, None, None);
        released
            .and_then(|()| instance.destroy_context(*display, *context))
            .expect("the context ends");
    }
}

fn load() -> Result<egl::DynamicInstance<egl::EGL1_5>, String> {
    // SAFETY: the library is EGL.
    let instance =
        unsafe { egl::DynamicInstance::<egl::EGL1_5>::load_required_from_filename("libEGL.so.1") };
    instance.map_err(|error| format!("EGL cannot be loaded: {error:?}"))
}

/// Returns the devices that EGL supports.
fn devices() -> Result<Vec<*mut c_void>, String> {
    let instance = load()?;
    let query = instance
        .get_proc_address("eglQueryDevicesEXT")
        .ok_or("EGL does not list devices")?;
    // SAFETY: the function of this name has this type.
    let query = unsafe { std::mem::transmute::<extern "system" fn(), QueryDevices>(query) };
    let mut devices = [ptr::null_mut(); DEVICES];
    let mut count = 0;
    // SAFETY: the addresses are valid for writes of this many devices and of their number.
    let is_done = unsafe { query(DEVICES as i32, devices.as_mut_ptr(), &raw mut count) };
    if is_done != egl::TRUE {
        return Err(String::from("EGL cannot list devices"));
    }
    Ok(devices[..count as usize].to_vec())
}

/// Creates an OpenGL 4.5 context without a surface, current on this thread.
fn current_context(
    instance: &egl::DynamicInstance<egl::EGL1_5>,
    display: egl::Display,
) -> Result<egl::Context, egl::Error> {
    let wanted = [
        egl::SURFACE_TYPE,
        egl::PBUFFER_BIT,
        egl::RENDERABLE_TYPE,
        egl::OPENGL_BIT,
        egl::NONE,
    ];
    let config = instance
        .choose_first_config(display, &wanted)?
        .ok_or(egl::Error::BadConfig)?;
    instance.bind_api(egl::OPENGL_API)?;
    let version = [
        egl::CONTEXT_MAJOR_VERSION,
        4,
        egl::CONTEXT_MINOR_VERSION,
        5,
        egl::NONE,
    ];
    let context = instance.create_context(display, config, None, &version)?;
    instance.make_current(display, None, None, Some(context))?;
    Ok(context)
}
