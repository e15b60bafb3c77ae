//! Device-side `printf`: a C format string and the arguments that a kernel packed.

/// The maximum width or precision, which bounds the output of a format.
const MAX_LENGTH: usize = 4096;

/// The arguments of a call, packed at their natural alignment.
pub(crate) trait Arguments {
    /// Returns the next argument of 4 or 8 bytes, or zero if it cannot be read.
    fn next(&mut self, bytes: u64) -> u64;
    /// Returns the string at an address, without its terminator.
    fn string(&mut self, address: u64) -> Vec<u8>;
}

/// A conversion specification of a format.
#[derive(Clone, Debug, Default)]
struct Specification {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// `true` if integers have 64 bits.
    long: bool,
    /// The number of bits of shorter integers.
    bits: u32,
}

/// Formats the arguments.
pub(crate) fn format(format: &[u8], arguments: &mut impl Arguments) -> Vec<u8> {
    let mut out = Vec::new();
    let mut remaining = format;
    while let Some(percent) = remaining.iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&remaining[..percent]);
        let (specification, after) = Specification::parse(&remaining[percent + 1..], arguments);
        let Some((&conversion, after)) = after.split_first() else {
            return out;
        };
        specification.write(conversion, arguments, &mut out);
        remaining = after;
    }
    out.extend_from_slice(remaining);
    out
}

impl Specification {
    /// Parses a specification after its `%`, and returns the text from the conversion on.
    fn parse<'f>(mut text: &'f [u8], arguments: &mut impl Arguments) -> (Self, &'f [u8]) {
        let mut specification = Self {
            bits: 32,
            ..Self::default()
        };
        while let Some((&flag, after)) = text.split_first() {
            match flag {
                b'-' => specification.left = true,
                b'+' => specification.plus = true,
                b' ' => specification.space = true,
                b'#' => specification.alternate = true,
                b'0' => specification.zeros = true,
                _ => break,
            }
            text = after;
        }
        let (width, after) = number(text, arguments);
        specification.left |= width < 0;
        specification.width = usize::try_from(width.unsigned_abs())
            .unwrap_or(MAX_LENGTH)
            .min(MAX_LENGTH);
        text = after;
        if let Some((b'.', after)) = text.split_first() {
            let (precision, after) = number(after, arguments);
            specification.precision = usize::try_from(precision)
                .ok()
                .map(|precision| precision.min(MAX_LENGTH));
            text = after;
        }
        while let Some((&length, after)) = text.split_first() {
            match length {
                b'l' | b'j' | b'z' | b't' => specification.long = true,
                b'h' => specification.bits /= 2,
                b'L' => {}
                _ => break,
            }
            text = after;
        }
        (specification, text)
    }

    fn write(&self, conversion: u8, arguments: &mut impl Arguments, out: &mut Vec<u8>) {
        match conversion {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let value = self.signed(arguments);
                let sign = if value < 0 { "-" } else { self.sign() };
                self.integer(sign, value.unsigned_abs().to_string(), out);
            }
            b'u' => {
                let digits = self.unsigned(arguments).to_string();
                self.integer("", digits, out);
            }
            b'o' | b'x' | b'X' => self.radix(conversion, arguments, out),
            b'c' => {
                let character = arguments.next(4) as u8;
                self.pad(&[], vec![character], false, out);
            }
            b's' => {
                let address = arguments.next(8);
                let mut text = if address == 0 {
                    b"(null)".to_vec()
                } else {
                    arguments.string(address)
                };
                text.truncate(self.precision.unwrap_or(usize::MAX));
                self.pad(&[], text, false, out);
            }
            b'p' => {
                let digits = format!("0x{:x}", arguments.next(8));
                self.pad(&[], digits.into_bytes(), false, out);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(arguments.next(8));
                self.real(conversion, value, out);
            }
            other => out.extend_from_slice(&[b'%', other]),
        }
    }

    fn unsigned(&self, arguments: &mut impl Arguments) -> u64 {
        if self.long {
            return arguments.next(8);
        }
        arguments.next(4) & (u64::from(u32::MAX) >> (32 - self.bits.max(8)))
    }

    fn signed(&self, arguments: &mut impl Arguments) -> i64 {
        let value = self.unsigned(arguments);
        let unused = if self.long { 0 } else { 64 - self.bits.max(8) };
        (value << unused).cast_signed() >> unused
    }

    fn sign(&self) -> &'static str {
        match (self.plus, self.space) {
            (true, _) => "+",
            (_, true) => " ",
            _ => "",
        }
    }

    fn radix(&self, conversion: u8, arguments: &mut impl Arguments, out: &mut Vec<u8>) {
        let value = self.unsigned(arguments);
        let (prefix, digits) = match conversion {
            b'o' => ("0", format!("{value:o}")),
            b'x' => ("0x", format!("{value:x}")),
            _ => ("0X", format!("{value:X}")),
        };
        let prefix = if self.alternate && value != 0 {
            prefix
        } else {
            ""
        };
        self.integer(prefix, digits, out);
    }

    fn integer(&self, prefix: &str, digits: String, out: &mut Vec<u8>) {
        let digits = match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        self.pad(
            prefix.as_bytes(),
            digits.into_bytes(),
            self.precision.is_none(),
            out,
        );
    }

    fn real(&self, conversion: u8, value: f64, out: &mut Vec<u8>) {
        let precision = self.precision.unwrap_or(6);
        let magnitude = value.abs();
        let mut text = match conversion.to_ascii_lowercase() {
            _ if value.is_nan() => "nan".to_owned(),
            _ if value.is_infinite() => "inf".to_owned(),
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => scientific(magnitude, precision),
            b'a' => hexadecimal(magnitude),
            _ => shortest(magnitude, precision.max(1), self.alternate),
        };
        if conversion.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        let sign = if value.is_sign_negative() {
            "-"
        } else {
            self.sign()
        };
        self.pad(sign.as_bytes(), text.into_bytes(), value.is_finite(), out);
    }

    /// Pads the text to the width: on the right, on the left, or with zeros between prefix and
    /// text.
    fn pad(&self, prefix: &[u8], text: Vec<u8>, allows_zeros: bool, out: &mut Vec<u8>) {
        let fill = self.width.saturating_sub(prefix.len() + text.len());
        let zeros = self.zeros && allows_zeros && !self.left;
        if !self.left && !zeros {
            out.extend(std::iter::repeat_n(b' ', fill));
        }
        out.extend_from_slice(prefix);
        if zeros {
            out.extend(std::iter::repeat_n(b'0', fill));
        }
        out.extend(text);
        if self.left {
            out.extend(std::iter::repeat_n(b' ', fill));
        }
    }
}

/// Returns the number at the start of a format, or the argument for `*`.
fn number<'f>(text: &'f [u8], arguments: &mut impl Arguments) -> (i64, &'f [u8]) {
    if let Some((b'*', after)) = text.split_first() {
        return (i64::from(arguments.next(4) as i32), after);
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..digits].iter().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    (value, &text[digits..])
}

/// Formats `%e`: at least two digits of exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Formats `%g`: as `%e` for large and small exponents, without trailing zeros.
fn shortest(value: f64, precision: usize, keeps_zeros: bool) -> String {
    let text = scientific(value, precision - 1);
    let exponent: i64 = text
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    if exponent < -4 || exponent >= precision as i64 {
        let (mut digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        if !keeps_zeros {
            digits = without_trailing_zeros(digits);
        }
        return format!("{digits}e{exponent}");
    }
    let decimals = (precision as i64 - 1 - exponent).max(0) as usize;
    let digits = format!("{value:.decimals$}");
    if keeps_zeros {
        digits
    } else {
        without_trailing_zeros(&digits).to_owned()
    }
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// Formats `%a`.
fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let field = (bits >> 52) as i64;
    if bits == 0 {
        return "0x0p+0".to_owned();
    }
    let fraction = format!("{:013x}", bits & ((1 << 52) - 1));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let (first, exponent) = if field == 0 {
        (0, -1022)
    } else {
        (1, field - 1023)
    };
    format!("0x{first}{point}{fraction}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List(Vec<u64>);

    impl Arguments for List {
        fn next(&mut self, bytes: u64) -> u64 {
            let value = if self.0.is_empty() {
                0
            } else {
                self.0.remove(0)
            };
            if bytes == 4 {
                value & 0xffff_ffff
            } else {
                value
            }
        }
        fn string(&mut self, address: u64) -> Vec<u8> {
            format!("<{address}>").into_bytes()
        }
    }

    fn print(text: &str, arguments: &[u64]) -> String {
        String::from_utf8(format(text.as_bytes(), &mut List(arguments.to_vec()))).expect("text")
    }

    #[test]
    fn integers_follow_their_flags() {
        assert_eq!(
            print("%d|%5d|%-5d|%05d", &[u64::MAX, 42, 42, -42_i64 as u64]),
            "-1|   42|42   |-0042"
        );
        assert_eq!(
            print("%+d % d %u %lld", &[1, 2, 3_000_000_000, u64::MAX]),
            "+1  2 3000000000 -1"
        );
        assert_eq!(
            print("%x %#X %o %08x", &[255, 255, 8, 0xbeef]),
            "ff 0XFF 10 0000beef"
        );
        assert_eq!(
            print("%.3d %hhd %hd %*d", &[7, 0x1ff, 0x18000, 4, 1]),
            "007 -1 -32768    1"
        );
    }

    #[test]
    fn reals_follow_their_conversion() {
        let cases: [(&str, &[f64], &str); 5] = [
            (
                "%f %.2f %8.3f",
                &[1.5, -2.354, 3.0],
                "1.500000 -2.35    3.000",
            ),
            (
                "%e %.0e %E",
                &[12345.678, 5e-10, 1e100],
                "1.234568e+04 5e-10 1.000000E+100",
            ),
            (
                "%g %g %g %g",
                &[100_000.0, 1e6, 0.0001, 0.00001],
                "100000 1e+06 0.0001 1e-05",
            ),
            (
                "%f %F %+05.1f",
                &[f64::NAN, f64::INFINITY, 2.0],
                "nan INF +02.0",
            ),
            ("%a %a", &[1.5, 0.0], "0x1.8p+0 0x0p+0"),
        ];
        for (format, values, expected) in cases {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            assert_eq!(print(format, &bits), expected);
        }
    }

    #[test]
    fn text_characters_and_pointers_are_written() {
        assert_eq!(
            print("%s %.2s %c %p %%", &[9, 7, 65, 0x10]),
            "<9> <7 A 0x10 %"
        );
        assert_eq!(print("%s", &[0]), "(null)");
        assert_eq!(print("50%", &[]), "50");
        assert_eq!(print("%k", &[]), "%k");
        assert_eq!(print("%99999999d", &[1]).len(), MAX_LENGTH);
    }
}
