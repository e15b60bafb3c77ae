//! The header of PTX files.

/// Major and minor version.
type Version = (u32, u32);

/// The header of PTX.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Header {
    /// The PTX version.
    pub(crate) version: Version,
    /// The target, such as `sm_90a`.
    pub(crate) target: String,
}

impl Header {
    /// Parses the header of `text`, if it is PTX.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let code = without_comments(text);
        let mut words = code.split_whitespace();
        words.find(|word| *word == ".version")?;
        let version = pair(words.next()?)?;
        words.find(|word| *word == ".target")?;
        let target = words.next()?.split(',').next()?;
        // The target is printed, so it must not contain control characters of terminals.
        let is_name = target
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_name.then(|| Self {
            version,
            target: target.to_owned(),
        })
    }

    /// Returns the required compute capability, and `true` if it must match exactly.
    pub(crate) fn needs(&self) -> Option<(Version, bool)> {
        let number = self.target.strip_prefix("sm_")?;
        let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let value: u32 = digits.parse().ok()?;
        Some(((value / 10, value % 10), number.ends_with('a')))
    }
}

/// Replaces each comment by a space.
fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut remaining = text;
    while let Some(start) = remaining.find('/') {
        let (before, comment) = remaining.split_at(start);
        code.push_str(before);
        let (end, length) = match comment.as_bytes().get(1) {
            Some(b'/') => (comment.find('\n'), 1),
            Some(b'*') => (comment[2..].find("*/").map(|end| end + 2), 2),
            _ => (Some(0), 1),
        };
        code.push(' ');
        remaining = end.map_or("", |end| &comment[end + length..]);
    }
    code + remaining
}

/// Parses two numbers separated by a dot.
pub(crate) fn pair(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_past_comments() {
        let text = "//\n// .version 1.0\n.version 8.7\n.target sm_90a, texmode_independent\n.address_size 64\n";
        let header = Header::parse(text).expect("this is PTX");
        assert_eq!(header.version, (8, 7));
        assert_eq!(header.target, "sm_90a");
        assert_eq!(header.needs(), Some(((9, 0), true)));
        let commented = "/* .version 1.0 // */.version 8.7 /*/ .target sm_10 */ .target sm_90a, texmode_independent";
        assert_eq!(Header::parse(commented), Some(header));
        assert_eq!(Header::parse("/* .version 8.7 .target sm_90"), None);
        assert_eq!(Header::parse("int main() {}"), None);
        assert_eq!(Header::parse(".version 8.7\n.target \x1b[31mred\n"), None);
    }

    #[test]
    fn family_targets_name_their_first_member() {
        fn header(target: &str) -> Header {
            Header {
                version: (8, 8),
                target: target.to_owned(),
            }
        }
        assert_eq!(header("sm_120").needs(), Some(((12, 0), false)));
        assert_eq!(header("sm_100f").needs(), Some(((10, 0), false)));
        assert_eq!(header("compute").needs(), None);
    }
}
