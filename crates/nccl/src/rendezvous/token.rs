//! The secret that the ranks of a job share.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The number of bytes of a message authentication code.
pub(super) const TAG_LEN: usize = 32;

/// The secret that the ranks of a job share: any bytes, which `Debug` does not show.
#[derive(Clone, Default)]
pub struct Token(Box<[u8]>);

impl Token {
    /// Creates a token of these bytes. Use at least 16 random bytes, so that no other program can
    /// guess them.
    #[must_use]
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the authentication code (HMAC-SHA256) of the parts, in order. The parts must have
    /// fixed lengths, or lengths that an earlier part contains.
    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_LEN] {
        self.authenticate(parts).finalize().into_bytes().into()
    }

    /// Returns `true` if `tag` is the authentication code of the parts. Takes the same time for
    /// every wrong code.
    pub(super) fn verifies(&self, tag: &[u8; TAG_LEN], parts: &[&[u8]]) -> bool {
        self.authenticate(parts).verify_slice(tag).is_ok()
    }

    fn authenticate(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut code =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC accepts keys of any length");
        for part in parts {
            code.update(part);
        }
        code
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_hmac_sha256() {
        // Test case 2 of RFC 4231.
        let tag = Token::new(*b"Jefe").tag(&[b"what do ya want ", b"for nothing?"]);
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(
            tag.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>(),
            expected
        );
    }

    #[test]
    fn other_token_or_bytes_do_not_verify() {
        let token = Token::new(*b"one");
        let other = Token::new(*b"two");
        let tag = token.tag(&[b"message"]);
        assert!(token.verifies(&tag, &[b"message"]));
        assert!(!other.verifies(&tag, &[b"message"]));
        assert!(!token.verifies(&tag, &[b"massage"]));
    }

    #[test]
    fn debug_hides_the_bytes() {
        assert_eq!(format!("{:?}", Token::new(*b"secret")), "Token(…)");
    }
}
