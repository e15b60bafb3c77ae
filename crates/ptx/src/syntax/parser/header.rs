//! `.version`, `.target` and `.address_size`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use curium_format::{PtxVersion, Target, TargetVariant};

use super::Parser;
use crate::syntax::ast::{DebugStrings, Module, TargetOptions, Texturing};
use crate::syntax::error::{Error, ErrorKind};
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::name::Names;

/// The supported architectures.
const ARCHITECTURES: RangeInclusive<u32> = 10..=129;

/// Creates an empty module.
pub(super) fn empty_module() -> Module {
    Module {
        version: PtxVersion::new(0, 0),
        target: Target {
            architecture: 0,
            variant: TargetVariant::Baseline,
        },
        target_options: TargetOptions {
            debug: false,
            texturing: Texturing::Unified,
            map_f64_to_f32: false,
        },
        variables: Vec::new(),
        functions: Vec::new(),
        aliases: Vec::new(),
        files: Vec::new(),
        debug_strings: DebugStrings::default(),
        source: Arc::from(""),
        pragmas: Vec::new(),
        names: Names::default(),
    }
}

impl Parser<'_> {
    /// Parses the three directives that begin a module.
    pub(super) fn header(&mut self, newest: PtxVersion) -> Result<(), Error> {
        self.version(newest)?;
        if !self.accept_dot("target") {
            return Err(self.unexpected("'.target'"));
        }
        self.target()?;
        self.address_size()
    }

    fn version(&mut self, newest: PtxVersion) -> Result<(), Error> {
        if !self.accept_dot("version") {
            return Err(self.unexpected("'.version'"));
        }
        let token = self.peek();
        let version = PtxVersion::parse(token.text);
        let Some(version) = version.filter(|_| matches!(token.kind, TokenKind::Double(_))) else {
            return Err(self.unexpected("a version such as 8.7"));
        };
        if version > newest {
            let problem = format!(
                "unsupported .version {} (newest supported version: {newest})",
                token.text
            );
            return Err(Error::new(
                ErrorKind::UnsupportedVersion,
                token.span,
                problem,
            ));
        }
        self.advance();
        self.module.version = version;
        Ok(())
    }

    fn target(&mut self) -> Result<(), Error> {
        loop {
            let token = self.word("a target such as sm_90")?;
            self.target_option(&token)?;
            if !self.accept(",") {
                break;
            }
        }
        if self.module.target.architecture == 0 {
            return Err(self.unexpected("',' and an architecture such as sm_90"));
        }
        Ok(())
    }

    /// Checks that the module's version supports the target.
    fn check_age(&self, token: &Token<'_>) -> Result<(), Error> {
        let version = self.module.version;
        let first = self.module.target.first_ptx();
        let Some(first) = first.filter(|first| version < *first) else {
            return Ok(());
        };
        let problem = format!(
            "target '{}' requires PTX ISA version {first} or later (found '.version {version}')",
            token.text
        );
        Err(Error::syntax(token.span, problem))
    }

    fn target_option(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let options = &mut self.module.target_options;
        match token.text {
            "debug" => options.debug = true,
            "texmode_unified" => options.texturing = Texturing::Unified,
            "texmode_independent" => options.texturing = Texturing::Independent,
            "map_f64_to_f32" => options.map_f64_to_f32 = true,
            text => {
                let target = Target::parse(text)
                    .filter(|target| ARCHITECTURES.contains(&target.architecture));
                let Some(target) = target else {
                    let problem = format!(
                        "unsupported target {} (expected one such as sm_90, sm_90a or sm_100f)",
                        token.quote()
                    );
                    return Err(Error::new(
                        ErrorKind::UnsupportedTarget,
                        token.span,
                        problem,
                    ));
                };
                self.module.target = target;
                self.check_age(token)?;
            }
        }
        Ok(())
    }

    fn address_size(&mut self) -> Result<(), Error> {
        let directive = self.peek();
        if !self.accept_dot("address_size") {
            // The default is 32 bits.
            return Err(Error::new(
                ErrorKind::UnsupportedAddressSize,
                directive.span,
                format!("missing '.address_size 64' before {}", directive.quote()),
            ));
        }
        let token = self.peek();
        match token.kind {
            TokenKind::Integer(64, _) => {
                self.advance();
                Ok(())
            }
            TokenKind::Integer(32, _) => Err(Error::new(
                ErrorKind::UnsupportedAddressSize,
                token.span,
                "unsupported address size 32 (expected 64)",
            )),
            _ => Err(self.unexpected("an address size of 64")),
        }
    }
}
