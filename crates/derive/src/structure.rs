//! What the derive must know of a struct.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// What is wrong, and where.
pub(crate) type Wrong = (Span, String);

/// A struct that may be passed by value.
pub(crate) struct Structure {
    pub(crate) name: Ident,
    /// The types of the fields.
    pub(crate) fields: Vec<TokenStream>,
    /// The path of the crate with the trait.
    pub(crate) driver: TokenStream,
}

/// What the attributes say.
struct Attributes {
    /// The layout is that of C.
    is_c: bool,
    driver: TokenStream,
}

type Tokens = std::iter::Peekable<proc_macro::token_stream::IntoIter>;

impl Structure {
    /// Reads the item that the derive is on.
    pub(crate) fn parse(item: TokenStream) -> Result<Self, Wrong> {
        let mut tokens = item.into_iter().peekable();
        let attributes = Attributes::parse(&mut tokens)?;
        skip_visibility(&mut tokens);
        let keyword = ident(&mut tokens)?;
        if keyword.to_string() != "struct" {
            return wrong(keyword.span(), format!("a kernel takes structs by value, and no {keyword}"));
        }
        let name = ident(&mut tokens)?;
        if !attributes.is_c {
            let advice = "needs #[repr(C)], so that its layout is that of the struct in CUDA C++";
            return wrong(name.span(), format!("`{name}` {advice}"));
        }
        let fields = fields(&name, &mut tokens)?;
        Ok(Self { name, fields, driver: attributes.driver })
    }
}

impl Attributes {
    /// Reads the attributes at the front of `tokens`.
    fn parse(tokens: &mut Tokens) -> Result<Self, Wrong> {
        let driver = "::curium::driver".parse().expect("this is a path");
        let mut attributes = Self { is_c: false, driver };
        while let Some(group) = attribute(tokens) {
            let mut inner = group.stream().into_iter().peekable();
            let name = inner.next().map(|token| token.to_string()).unwrap_or_default();
            let Some(TokenTree::Group(arguments)) = inner.next() else { continue };
            match name.as_str() {
                "repr" => attributes.read_repr(arguments.stream()),
                "by_value" => attributes.driver = crate_path(&arguments)?,
                _ => {}
            }
        }
        Ok(attributes)
    }

    fn read_repr(&mut self, arguments: TokenStream) {
        let is_c = |token: TokenTree| matches!(token.to_string().as_str(), "C" | "transparent");
        self.is_c |= arguments.into_iter().any(is_c);
    }
}

/// The path of `crate = path`.
fn crate_path(arguments: &Group) -> Result<TokenStream, Wrong> {
    let mut tokens = arguments.stream().into_iter();
    let start = [tokens.next(), tokens.next()].map(|token| token.map(|token| token.to_string()).unwrap_or_default());
    let path: TokenStream = tokens.collect();
    if start != ["crate", "="] || path.is_empty() {
        return wrong(arguments.span(), "this is written `#[by_value(crate = path)]`".to_owned());
    }
    Ok(path)
}

/// The types of the fields, which are all that is left of the struct.
fn fields(name: &Ident, tokens: &mut Tokens) -> Result<Vec<TokenStream>, Wrong> {
    let types = match tokens.next() {
        Some(TokenTree::Group(group)) => types(&group)?,
        Some(TokenTree::Punct(punct)) if punct.as_char() == '<' => {
            return wrong(punct.span(), format!("`{name}` has parameters, and a kernel takes one type only"));
        }
        _ => Vec::new(),
    };
    if types.is_empty() {
        return wrong(name.span(), format!("`{name}` has no fields: it is a byte in CUDA C++ and nothing in Rust"));
    }
    Ok(types)
}

/// The type of each field; in braces a field has a name and a colon before it.
fn types(fields: &Group) -> Result<Vec<TokenStream>, Wrong> {
    let mut tokens = fields.stream().into_iter().peekable();
    let mut types = Vec::new();
    while tokens.peek().is_some() {
        while attribute(&mut tokens).is_some() {}
        skip_visibility(&mut tokens);
        if fields.delimiter() == Delimiter::Brace {
            ident(&mut tokens)?;
            tokens.next();
        }
        types.push(ty(&mut tokens));
    }
    Ok(types)
}

/// The tokens up to a comma outside angle brackets, which is taken too.
fn ty(tokens: &mut Tokens) -> TokenStream {
    let mut depth = 0_i32;
    let is_inside = |token: &TokenTree| {
        let TokenTree::Punct(punct) = token else { return true };
        match punct.as_char() {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' => return depth > 0,
            _ => {}
        }
        true
    };
    tokens.by_ref().take_while(is_inside).collect()
}

/// The brackets of the next attribute, if there is one.
fn attribute(tokens: &mut Tokens) -> Option<Group> {
    tokens.next_if(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '#'))?;
    match tokens.next() {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

fn skip_visibility(tokens: &mut Tokens) {
    if tokens.next_if(|token| token.to_string() == "pub").is_some() {
        tokens.next_if(|token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis));
    }
}

fn ident(tokens: &mut Tokens) -> Result<Ident, Wrong> {
    match tokens.next() {
        Some(TokenTree::Ident(ident)) => Ok(ident),
        Some(other) => wrong(other.span(), format!("a name was expected, and not `{other}`")),
        None => wrong(Span::call_site(), "a name was expected".to_owned()),
    }
}

fn wrong<T>(span: Span, message: String) -> Result<T, Wrong> {
    Err((span, message))
}
