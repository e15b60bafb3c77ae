//! The code of a library on drivers before CUDA 12.0, which lack libraries: a module per context.

use curium_sys::CUresult;
use parking_lot::Mutex;

use crate::{Context, Device, Driver, Error, Image, JitOptions, Module, Result};

/// A module for each context that has used the library, loaded on first use.
pub(super) struct ContextModules {
    image: Image<'static>,
    options: JitOptions<'static>,
    modules: Mutex<Vec<Module>>,
}

impl ContextModules {
    /// Loads `image` into one context, which reports its errors: `context`, or a primary context of
    /// a device that can run the image.
    pub(super) fn new(
        driver: &Driver,
        context: Option<&Context>,
        image: Image<'static>,
        options: JitOptions<'static>,
    ) -> Result<Self> {
        let module = match context {
            Some(context) => Module::from_image(context, &image, &options)?,
            None => load_on_any_device(driver, &image, &options)?,
        };
        Ok(Self {
            image,
            options,
            modules: Mutex::new(vec![module]),
        })
    }

    /// Returns the module of any context.
    pub(super) fn any(&self) -> Option<Module> {
        self.modules.lock().first().cloned()
    }

    /// Returns the module of `context`. Loads it on first use.
    pub(super) fn in_context(&self, context: &Context) -> Result<Module> {
        let loaded = self.find(context);
        if let Some(module) = loaded {
            return Ok(module);
        }
        // The driver and its observers are called without the lock, so another thread may load the
        // image as well.
        let module = Module::from_image(context, &self.image, &self.options)?;
        let mut modules = self.modules.lock();
        let other = modules.iter().find(|other| is_in(other, context)).cloned();
        if other.is_none() {
            modules.push(module.clone());
        }
        drop(modules);
        Ok(other.unwrap_or(module))
    }

    fn find(&self, context: &Context) -> Option<Module> {
        self.modules
            .lock()
            .iter()
            .find(|module| is_in(module, context))
            .cloned()
    }
}

/// A module keeps its context, so the handle of a live context identifies it.
fn is_in(module: &Module, context: &Context) -> bool {
    module.context().as_raw() == context.as_raw()
}

/// Loads an image into a primary context. Active contexts come first, since creating one is slow; a
/// device for which the image has no code is skipped.
fn load_on_any_device(
    driver: &Driver,
    image: &Image<'_>,
    options: &JitOptions<'_>,
) -> Result<Module> {
    let mut refusal = None;
    for device in active_first(driver)? {
        match Module::from_image(&device.primary_context()?, image, options) {
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU) => {
                refusal.get_or_insert(error);
            }
            result => return result,
        }
    }
    Err(refusal
        .unwrap_or_else(|| Error::argument("Library::from_image", "the driver has no device")))
}

/// Returns the devices, those with an active primary context first.
fn active_first(driver: &Driver) -> Result<Vec<Device>> {
    let mut active = Vec::new();
    let mut inactive = Vec::new();
    for device in driver.devices()? {
        if device.primary_state()?.is_active {
            active.push(device);
        } else {
            inactive.push(device);
        }
    }
    active.append(&mut inactive);
    Ok(active)
}
