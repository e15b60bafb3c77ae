//! `--device-model`: the hardware model of simulated devices.

use std::io::{self, Write as _};
use std::sync::LazyLock;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValue, Str};
use comfy_table::{Table, presets};
use curium::sys::CUdevice_attribute;
use curium_sim::DeviceModel;

use crate::bytes::size;

/// The value of `--device-model`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ModelChoice {
    /// Print the models.
    List,
    /// Simulate this model.
    Model(DeviceModel),
}

impl ValueEnum for ModelChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<ModelChoice>> = LazyLock::new(|| {
            DeviceModel::all()
                .map(ModelChoice::Model)
                .chain([ModelChoice::List])
                .collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::List => PossibleValue::new("list"),
            Self::Model(model) => {
                let name = model.hardware();
                let aliases = [name.replace(' ', ""), name.replace(' ', "-")];
                PossibleValue::new(name).aliases(aliases.map(Str::from))
            }
        })
    }
}

/// Prints a table of all models.
///
/// # Errors
///
/// Returns an error if stdout cannot be written.
pub(crate) fn print_list() -> Result<()> {
    writeln!(io::stdout(), "{}", table())?;
    Ok(())
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "model",
        "compute capability",
        "multiprocessors",
        "memory",
        "shared memory per block",
        "L2 cache",
    ]);
    for model in DeviceModel::all() {
        table.add_row([
            model.hardware().to_owned(),
            format!(
                "{}.{}",
                attribute(
                    model,
                    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
                ),
                attribute(
                    model,
                    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
                ),
            ),
            attribute(
                model,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            )
            .to_string(),
            size(model.memory()),
            size(attribute(
                model,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )),
            size(attribute(
                model,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
            )),
        ]);
    }
    table
}

fn attribute(model: DeviceModel, attribute: CUdevice_attribute) -> u64 {
    model
        .attribute(attribute)
        .and_then(|value| u64::try_from(value).ok())
        .unwrap_or_default()
}
