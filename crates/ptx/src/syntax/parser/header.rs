//! `.version`, `.target` and `.address_size`.

use super::Parser;
use crate::syntax::ast::{Module, Target, TargetVariant, Texturing, Version};
use crate::syntax::error::{Error, ErrorKind};
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::name::Names;

/// The oldest supported architecture.
const OLDEST_ARCHITECTURE: u32 = 10;
/// The newest supported architecture.
const NEWEST_ARCHITECTURE: u32 = 129;

/// Creates an empty module.
pub(super) fn empty_module() -> Module {
    Module {
        version: Version { major: 0, minor: 0 },
        target: Target {
            architecture: 0,
            variant: TargetVariant::Baseline,
            debug: false,
            texturing: Texturing::Unified,
            map_f64_to_f32: false,
        },
        variables: Vec::new(),
        functions: Vec::new(),
        aliases: Vec::new(),
        files: Vec::new(),
        pragmas: Vec::new(),
        names: Names::default(),
    }
}

impl Parser<'_> {
    /// Parses the three directives that begin a module.
    pub(super) fn header(&mut self, newest: Version) -> Result<(), Error> {
        self.version(newest)?;
        if !self.accept_dot("target") {
            return Err(self.unexpected("'.target'"));
        }
        self.target()?;
        self.address_size()
    }

    fn version(&mut self, newest: Version) -> Result<(), Error> {
        if !self.accept_dot("version") {
            return Err(self.unexpected("'.version'"));
        }
        let token = self.peek();
        let Some(version) = read_version(&token) else {
            return Err(self.unexpected("a version such as 8.7"));
        };
        if version > newest {
            let problem = format!(
                "unsupported .version {} (newest supported version: {}.{})",
                token.text, newest.major, newest.minor
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
        let Target {
            architecture,
            variant,
            ..
        } = self.module.target;
        let Some(Version { major, minor }) = first_version(architecture, variant) else {
            return Ok(());
        };
        let version = self.module.version;
        if version >= (Version { major, minor }) {
            return Ok(());
        }
        let problem = format!(
            "target '{}' requires PTX ISA version {major}.{minor} or later (found '.version {}.{}')",
            token.text, version.major, version.minor
        );
        Err(Error::syntax(token.span, problem))
    }

    fn target_option(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let target = &mut self.module.target;
        match token.text {
            "debug" => target.debug = true,
            "texmode_unified" => target.texturing = Texturing::Unified,
            "texmode_independent" => target.texturing = Texturing::Independent,
            "map_f64_to_f32" => target.map_f64_to_f32 = true,
            text => {
                let Some((architecture, variant)) = read_architecture(text) else {
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
                target.architecture = architecture;
                target.variant = variant;
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

/// Returns the version of a token. It looks like a decimal fraction, but 8.10 follows 8.9.
fn read_version(token: &Token<'_>) -> Option<Version> {
    if !matches!(token.kind, TokenKind::Double(_)) {
        return None;
    }
    let (major, minor) = token.text.split_once('.')?;
    Some(Version {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Returns the first ISA version that supports an architecture, or `None` if all versions do or the architecture does not exist.
fn first_version(architecture: u32, variant: TargetVariant) -> Option<Version> {
    let base = match architecture {
        32 | 50 => (4, 0),
        35 => (3, 1),
        37 | 52 => (4, 1),
        53 => (4, 2),
        60..=62 => (5, 0),
        70 => (6, 0),
        72 => (6, 1),
        75 => (6, 3),
        80 => (7, 0),
        86 => (7, 1),
        88 => (7, 3),
        87 => (7, 4),
        89 | 90 => (7, 8),
        100 | 101 => (8, 6),
        120 => (8, 7),
        103 | 121 => (8, 8),
        110 => (9, 0),
        _ => return None,
    };
    let (major, minor) = match variant {
        TargetVariant::Baseline => base,
        TargetVariant::Architecture => base.max((8, 0)),
        TargetVariant::Family => base.max((8, 8)),
    };
    Some(Version { major, minor })
}

fn read_architecture(text: &str) -> Option<(u32, TargetVariant)> {
    let number = text
        .strip_prefix("sm_")
        .or_else(|| text.strip_prefix("compute_"))?;
    let (digits, variant) = match number.as_bytes().last()? {
        b'a' => (&number[..number.len() - 1], TargetVariant::Architecture),
        b'f' => (&number[..number.len() - 1], TargetVariant::Family),
        _ => (number, TargetVariant::Baseline),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let architecture = digits.parse().ok().filter(|_| plain)?;
    (OLDEST_ARCHITECTURE..=NEWEST_ARCHITECTURE)
        .contains(&architecture)
        .then_some((architecture, variant))
}
