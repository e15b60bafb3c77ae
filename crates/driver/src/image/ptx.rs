//! Kernels declared by PTX text, for drivers that cannot report them.

/// The layout of a kernel parameter.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct KernelParameter {
    /// The offset from the first parameter, in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

/// A kernel in PTX text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    /// The parameters in order; `None` if their declaration cannot be parsed.
    pub(crate) parameters: Option<Box<[KernelParameter]>>,
}

/// Returns the kernels of a PTX text in order. Other text has none.
pub(crate) fn entries(text: &str) -> Box<[Entry]> {
    let mut tokens = Tokens::new(text);
    let mut entries = Vec::new();
    while let Some(token) = tokens.next() {
        if token != ENTRY {
            continue;
        }
        if let Some(name) = tokens.next() {
            let parameters = parameters(&mut List(&mut tokens));
            entries.push(Entry {
                name: name.into(),
                parameters,
            });
        }
    }
    entries.into()
}

/// The directive of a kernel.
const ENTRY: &str = ".entry";

/// Returns the global variables of a PTX text that can be looked up.
pub(crate) fn variables(text: &str) -> Box<[Box<str>]> {
    let mut tokens = Tokens::new(text);
    let mut variables = Vec::new();
    while let Some(token) = tokens.next() {
        if !is_linkage(token) {
            continue;
        }
        if let Some(name) = variable(&mut tokens) {
            variables.push(name.into());
        }
    }
    variables.into()
}

fn is_linkage(token: &str) -> bool {
    matches!(token, ".visible" | ".weak" | ".common")
}

/// Returns the name of the variable whose declaration continues here, if it is in global or constant memory.
fn variable<'a>(tokens: &mut Tokens<'a>) -> Option<&'a str> {
    tokens.next_if(|token| matches!(token, ".global" | ".const"))?;
    loop {
        // The linkage of the next declaration ends this one, which has no name.
        let token = tokens.next_if(|token| !is_linkage(token))?;
        if token
            .starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '$' | '%'))
        {
            return Some(token);
        }
    }
}

/// Returns the version in the `.version` directive.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let mut tokens = Tokens::new(text);
    tokens.find(|token| *token == ".version")?;
    let (major, minor) = tokens.next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the parameter list that starts here, which is empty if there is none; `None` if it cannot be parsed.
fn parameters(tokens: &mut List<'_, '_>) -> Option<Box<[KernelParameter]>> {
    let mut parameters: Vec<KernelParameter> = Vec::new();
    if tokens.next()? != "(" {
        return Some(parameters.into());
    }
    loop {
        let mut declaration = Declaration::default();
        let end = loop {
            match tokens.next()? {
                end @ ("," | ")") => break end,
                token => declaration.take(token, tokens)?,
            }
        };
        if let Some(size) = declaration.size()? {
            let end = parameters
                .last()
                .map_or(Some(0), |last| last.offset.checked_add(last.size))?;
            parameters.push(KernelParameter {
                offset: end.checked_next_multiple_of(declaration.align(size))?,
                size,
            });
        }
        if end == ")" {
            return Some(parameters.into());
        }
    }
}

/// One parameter, as parsed so far.
#[derive(Default)]
struct Declaration {
    /// `true` if anything was parsed.
    begun: bool,
    element: Option<usize>,
    vector: Option<usize>,
    count: Option<usize>,
    align: Option<usize>,
    /// `true` if the following attributes apply to the memory that the parameter points to.
    is_pointee: bool,
}

impl Declaration {
    fn take(&mut self, token: &str, tokens: &mut List<'_, '_>) -> Option<()> {
        self.begun = true;
        match token {
            ".align" => {
                let align = integer(tokens.next()?)?;
                if !self.is_pointee {
                    self.align = Some(align);
                }
            }
            ".ptr" => self.is_pointee = true,
            ".v2" => self.vector = Some(2),
            ".v4" => self.vector = Some(4),
            "[" => {
                let count = integer(tokens.next()?)?;
                self.count = Some(self.count.unwrap_or(1).checked_mul(count)?);
                return (tokens.next()? == "]").then_some(());
            }
            ".texref" | ".samplerref" | ".surfref" => self.element = Some(8),
            directive if directive.starts_with('.') => {
                self.element = type_size(directive).or(self.element);
            }
            _name => {}
        }
        Some(())
    }

    /// Returns the size in bytes: `Some(None)` if there is no declaration, `None` if its type is unknown.
    fn size(&self) -> Option<Option<usize>> {
        if !self.begun {
            return Some(None);
        }
        let size = self.element?.checked_mul(self.vector.unwrap_or(1))?;
        Some(Some(size.checked_mul(self.count.unwrap_or(1))?))
    }

    fn align(&self, size: usize) -> usize {
        self.align.or(self.element).unwrap_or(size).max(1)
    }
}

/// Returns the size in bytes of a fundamental type such as `.f32` or `.b8`.
fn type_size(directive: &str) -> Option<usize> {
    let bits: usize = directive
        .strip_prefix(['.'])?
        .strip_prefix(['u', 's', 'b', 'f'])?
        .parse()
        .ok()?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits / 8)
}

fn integer(token: &str) -> Option<usize> {
    let token = token.trim_end_matches('U');
    let hexadecimal = token
        .strip_prefix("0x")
        .or_else(|| token.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => usize::from_str_radix(digits, 16).ok(),
        None if token.len() > 1 && token.starts_with('0') => usize::from_str_radix(token, 8).ok(),
        None => token.parse().ok(),
    }
}

/// A tokenizer: words and single characters, without whitespace, comments and strings.
///
/// It cannot be cloned and never goes back by more than one token, so a text is read once, whatever it contains.
struct Tokens<'a> {
    rest: &'a str,
    /// The next token, if it has been read.
    peeked: Option<&'a str>,
}

/// The tokens of a parameter list. They end before the next kernel.
struct List<'a, 't>(&'t mut Tokens<'a>);

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            peeked: None,
        }
    }

    /// Returns the next token if it fulfills the condition.
    fn next_if(&mut self, condition: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        let token = self.next()?;
        if condition(token) {
            return Some(token);
        }
        self.peeked = Some(token);
        None
    }

    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            self.rest = if self.rest.starts_with("//") {
                after(self.rest, "\n")
            } else if self.rest.starts_with("/*") {
                after(&self.rest[2..], "*/")
            } else if self.rest.starts_with('"') {
                after(&self.rest[1..], "\"")
            } else {
                return;
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if let Some(token) = self.peeked.take() {
            return Some(token);
        }
        self.skip_blanks();
        let word = self
            .rest
            .find(|character: char| {
                !character.is_alphanumeric() && !matches!(character, '.' | '_' | '$' | '%')
            })
            .unwrap_or(self.rest.len());
        let end = if word > 0 {
            word
        } else {
            self.rest.chars().next()?.len_utf8()
        };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

impl<'a> Iterator for List<'a, '_> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next_if(|token| token != ENTRY)
    }
}

/// Returns the text after the first `end`; empty if there is none.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Option<Vec<(usize, usize)>> {
        let [entry] = &*entries(text) else {
            panic!("{text:?} has one kernel")
        };
        entry
            .parameters
            .as_ref()
            .map(|parameters| parameters.iter().map(|p| (p.offset, p.size)).collect())
    }

    #[test]
    fn parameters_have_offsets_and_sizes() {
        let text = ".visible .entry k(.param .u8 a, .param .u16 b, .param .f32 c, .param .u64 d, .param .align 4 .b8 e[12])";
        assert_eq!(
            sizes(text),
            Some(vec![(0, 1), (2, 2), (4, 4), (8, 8), (16, 12)])
        );
    }

    #[test]
    fn pointer_qualifiers_do_not_apply_to_the_parameter() {
        let text = ".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 p, .param .align 16 .b8 q[0x20]) { ret; }";
        assert_eq!(sizes(text), Some(vec![(0, 4), (8, 8), (16, 32)]));
    }

    #[test]
    fn kernels_without_parameters_have_none() {
        assert_eq!(sizes(".entry k() { ret; }"), Some(vec![]));
        assert_eq!(sizes(".entry k { ret; }"), Some(vec![]));
        assert_eq!(
            sizes(".entry k\n(\n)\n.maxntid 1, 1, 1 { ret; }"),
            Some(vec![])
        );
    }

    #[test]
    fn comments_and_strings_declare_nothing() {
        let text = "// .entry a()\n/* .entry b() */ .file 1 \".entry c()\"\n.entry d(/* .param .u32 x */ .param .u8 y) { }";
        assert_eq!(sizes(text), Some(vec![(0, 1)]));
    }

    #[test]
    fn declarations_that_cannot_be_parsed_are_unknown() {
        assert_eq!(sizes(".entry k(.param .b8 a[N])"), None);
        assert_eq!(sizes(".entry k(.param .e4m3 a)"), None);
        assert_eq!(sizes(".entry k(.param .u32 a"), None);
        assert_eq!(sizes(".entry k(.param .b8 a[0xffffffffffffffff][2])"), None);
        assert_eq!(
            sizes(
                ".entry k(.param .b8 a[0xffffffffffffffff], .param .b8 b[0xffffffffffffffff], .param .u8 c)"
            ),
            None
        );
    }

    #[test]
    fn global_and_constant_variables_are_listed_in_order() {
        let text = ".visible .entry k() { ret; } .visible .global .align 4 .u32 step = 3; .global .u32 hidden; \
                    .weak .const .align 8 .b8 _Z1t[16]; .visible .global .attribute(.managed, .unified(1, 2)) .align 4 .f32 m; .visible";
        assert_eq!(*variables(text), ["step".into(), "_Z1t".into(), "m".into()]);
    }

    /// Asserts that four times the text takes about four times as long, and not sixteen times. A busy machine gets
    /// several tries.
    fn assert_linear(unit: &str, read: impl Fn(&str)) {
        let text = unit.repeat(65_536 / unit.len());
        let longer = text.repeat(4);
        let is_linear = (0..8).any(|_| {
            let start = std::time::Instant::now();
            read(&text);
            let limit = start.elapsed() * 10 + std::time::Duration::from_millis(20);
            let start = std::time::Instant::now();
            read(&longer);
            start.elapsed() < limit
        });
        assert!(is_linear, "{unit:?}: four times the text takes too long");
    }

    /// Comments, quotes and declarations that do not end once made the time grow with the square of the length.
    #[cfg(not(miri))]
    #[test]
    fn any_text_is_read_in_linear_time() {
        for unit in [
            ".visible /* ",
            ".visible // ",
            ".visible \"",
            "/* .weak .global ",
            "// .common .const\n",
            ".visible .global ",
            ".visible .global 1 ",
            ".entry a(",
            ".entry a(.param .align ",
            ".entry ",
            ".entry a(.param .u32 x[",
            ".entry a(.param .u32 x,",
            "/*/",
            "/**/",
            "\"",
            "\\\"",
            ".pragma \"a\";",
            "a",
            "1 ",
            "\n",
            " ",
            "{",
            "}",
            "} ",
            "(",
            ")",
            ";",
            "\u{e9}",
            ".func (",
            ".version 7.8 ",
            ".version 7.8\n",
            ".file 1 ",
            ".section a { ",
            ".visible .global .u32 a; ",
            ".visible .entry k() { ret; } ",
            "// a\n",
            "/* a */ ",
        ] {
            assert_linear(unit, |text| {
                entries(text);
                variables(text);
                version(text);
            });
        }
    }

    #[test]
    fn broken_list_hides_no_later_kernel() {
        let names: Vec<Box<str>> = entries(".entry a(.param .entry b(.param .align .entry c()")
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(names, ["a".into(), "b".into(), "c".into()]);
    }

    #[test]
    fn comments_and_broken_declarations_have_no_variables() {
        let text = "// .visible .global .u32 a;\n/* .weak .const .u32 b; */ .visible .global .visible .global .u32 c;";
        assert_eq!(*variables(text), ["c".into()]);
    }

    #[test]
    fn every_kernel_is_found_in_order() {
        let text = ".version 7.8 .target sm_75 .func f() { ret; } .visible .entry a() { ret; } .weak .entry _Z1bv() { ret; }";
        let names: Vec<Box<str>> = entries(text).into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a".into(), "_Z1bv".into()]);
        assert_eq!(version(text), Some((7, 8)));
        assert_eq!(version("int main() {}"), None);
    }
}
