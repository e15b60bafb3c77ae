//! A driver call that failed.

use std::borrow::Cow;
use std::fmt;

use curium_sys::{CUresult, Function};

use super::hint;
use super::report::{Note, OneLine, Report, debug_as_report};
use super::{ErrorClass, code};
use crate::Driver;

/// A driver function that returned an error code.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: Function,
    /// The result code.
    pub code: CUresult,
    /// CUDA's name of the code, such as `CUDA_ERROR_OUT_OF_MEMORY`; empty if the driver does not
    /// define it.
    pub name: Cow<'static, str>,
    /// The driver's description of the code; empty if it has none.
    pub description: Cow<'static, str>,
    /// The operands of the call, such as `1024 bytes` or ``kernel `saxpy` ``; empty if there are
    /// none.
    pub subject: Cow<'static, str>,
    /// The log of the driver's JIT compiler, for calls that compile.
    pub log: Option<Box<str>>,
    /// The lines of the driver's own log that add to this error, at most 4 KiB. Requires a driver
    /// for CUDA 12.9 or newer.
    pub driver_log: Option<Box<str>>,
    /// A hint, if one applies.
    pub hint: Option<Cow<'static, str>>,
}

impl CallError {
    pub(crate) fn new(driver: &Driver, function: Function, code: CUresult) -> Self {
        let (name, description) = code::names(driver, code);
        let driver_log = driver.logged(function, code, &description);
        let hint = hint::hint(driver, code, driver_log.as_deref());
        Self {
            function,
            code,
            name,
            description,
            subject: Cow::Borrowed(""),
            log: None,
            driver_log,
            hint,
        }
    }

    /// Creates the error of a function that succeeded but returned a null handle.
    pub(crate) fn null_handle(driver: &Driver, function: Function) -> Self {
        let description = Cow::Borrowed("reported success and returned a null handle");
        let hint = Cow::Borrowed(
            "the driver library is damaged, a stub, or an incomplete replacement of the driver",
        );
        Self {
            description,
            hint: Some(hint),
            ..Self::new(driver, function, CUresult::CUDA_SUCCESS)
        }
    }

    /// Returns the class of the failure.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match (self.function, self.code) {
            // Here `LAUNCH_TIMEOUT` means that no frame arrived.
            (
                Function::cuEGLStreamConsumerAcquireFrame
                | Function::cuEGLStreamProducerReturnFrame,
                CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            ) => ErrorClass::Resource,
            // The function returned a null handle.
            (_, CUresult::CUDA_SUCCESS) => ErrorClass::System,
            _ => ErrorClass::of(self.code),
        }
    }

    /// Returns `true` if earlier asynchronous work, such as a kernel, failed and
    /// [`function`](Self::function) only reported the failure.
    #[must_use]
    pub fn is_from_earlier_work(&self) -> bool {
        self.class() == ErrorClass::Sticky && code::is_work_failure(self.code)
    }

    /// Writes the description, or a placeholder.
    fn write_description(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.description.is_empty() {
            "unknown error"
        } else {
            &self.description
        })
    }

    /// Writes the operands, the name and the number of the code, in parentheses.
    fn write_facts(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(" (")?;
        if !self.subject.is_empty() {
            write!(formatter, "{}, ", self.subject)?;
        }
        self.write_code(formatter)?;
        formatter.write_str(")")
    }

    /// Writes the name and the number of the code.
    pub(super) fn write_code(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            "" => write!(formatter, "code {}", self.code.0),
            name => write!(formatter, "{name} = {}", self.code.0),
        }
    }
}

impl Report for CallError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_from_earlier_work() {
            formatter.write_str("earlier work on this context failed: ")?;
            self.write_description(formatter)?;
            formatter.write_str(" (")?;
            self.write_code(formatter)?;
            write!(formatter, "); reported by {}", self.function)?;
            return if self.subject.is_empty() {
                Ok(())
            } else {
                write!(formatter, " ({})", self.subject)
            };
        }
        write!(formatter, "{}: ", self.function)?;
        self.write_description(formatter)?;
        self.write_facts(formatter)
    }

    fn notes(&self) -> Vec<Note<'_>> {
        let lost = (self.class() == ErrorClass::Sticky).then_some(Cow::Borrowed(
            "the context is lost, and later calls that use it fail too: restart the process",
        ));
        lost.into_iter()
            .chain(self.hint.as_deref().map(Cow::Borrowed))
            .map(Note::Hint)
            .collect()
    }

    fn logs(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log) = &self.log {
            write!(formatter, "\n{}", log.trim_end())?;
        }
        if let Some(log) = &self.driver_log {
            write!(formatter, "\ndriver log: {}", log.trim_end())?;
        }
        Ok(())
    }
}

debug_as_report!(CallError);
