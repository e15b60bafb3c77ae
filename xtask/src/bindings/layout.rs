//! Layout assertions: bindgen writes a statement for each size, alignment and offset; our files have one condition for all,
//! which compiles faster.

use anyhow::{Context as _, Result, bail};
use quote::ToTokens as _;

/// One size, alignment or offset.
pub(super) struct Assertion {
    pub(super) of: Measure,
    pub(super) value: u64,
    expression: syn::Expr,
    literal: syn::Expr,
}

/// The layout of the type with this name.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Measure {
    Size(String),
    Alignment(String),
    Offset(String, String),
}

/// Returns the assertions in a `const _`, in either form.
pub(super) fn read(item: &syn::ItemConst) -> Result<Vec<Assertion>> {
    match &*item.expr {
        syn::Expr::Block(block) => block.block.stmts.iter().map(read_statement).collect(),
        syn::Expr::Macro(assertion) => read_conditions(&assertion.mac.parse_body()?),
        other => bail!("unexpected assertion {}", other.to_token_stream()),
    }
}

/// Returns the assertions as one condition.
pub(super) fn render(assertions: &[Assertion]) -> syn::ItemConst {
    let conditions = assertions.iter().map(
        |Assertion {
             expression,
             literal,
             ..
         }| quote::quote!((#expression == #literal)),
    );
    syn::parse_quote!(
        const _: () = assert!(#(#conditions)&*);
    )
}

/// Parses `["…"][size_of::<X>() - 8usize];`.
fn read_statement(statement: &syn::Stmt) -> Result<Assertion> {
    let syn::Stmt::Expr(syn::Expr::Index(indexed), _) = statement else {
        bail!("unexpected assertion {}", statement.to_token_stream())
    };
    let syn::Expr::Binary(difference) = &*indexed.index else {
        bail!("unexpected assertion {}", statement.to_token_stream())
    };
    Assertion::new(&difference.left, &difference.right)
}

/// Parses `(size_of::<X>() == 8usize) & …`.
fn read_conditions(condition: &syn::Expr) -> Result<Vec<Assertion>> {
    match condition {
        syn::Expr::Paren(inner) => read_conditions(&inner.expr),
        syn::Expr::Binary(syn::ExprBinary {
            left,
            op: syn::BinOp::BitAnd(_),
            right,
            ..
        }) => {
            let mut all = read_conditions(left)?;
            all.extend(read_conditions(right)?);
            Ok(all)
        }
        syn::Expr::Binary(syn::ExprBinary {
            left,
            op: syn::BinOp::Eq(_),
            right,
            ..
        }) => Ok(vec![Assertion::new(left, right)?]),
        other => bail!("unexpected condition {}", other.to_token_stream()),
    }
}

impl Assertion {
    fn new(expression: &syn::Expr, literal: &syn::Expr) -> Result<Self> {
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        }) = literal
        else {
            bail!("{} is no number", literal.to_token_stream());
        };
        let of = Measure::read(expression)?;
        Ok(Self {
            of,
            value: number.base10_parse()?,
            expression: expression.clone(),
            literal: literal.clone(),
        })
    }
}

impl Measure {
    /// Parses `size_of::<X>()`, `align_of::<X>()` or `offset_of!(X, field)`, with any path before the name.
    fn read(expression: &syn::Expr) -> Result<Self> {
        let text: String = expression
            .to_token_stream()
            .to_string()
            .split_whitespace()
            .collect();
        let measure = text
            .rsplit_once("::mem::")
            .map_or(text.as_str(), |(_, measure)| measure);
        Self::parse(measure).with_context(|| format!("`{text}` measures no layout"))
    }

    fn parse(measure: &str) -> Option<Self> {
        if let Some(ty) = argument(measure, "size_of::<", ">()") {
            return Some(Self::Size(ty.to_owned()));
        }
        if let Some(ty) = argument(measure, "align_of::<", ">()") {
            return Some(Self::Alignment(ty.to_owned()));
        }
        let (ty, field) = argument(measure, "offset_of!(", ")")?.split_once(',')?;
        Some(Self::Offset(ty.to_owned(), field.to_owned()))
    }
}

/// Returns the text between `before` and `after`. rustfmt adds a comma where it breaks a line.
fn argument<'a>(measure: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let argument = measure.strip_prefix(before)?.strip_suffix(after)?;
    Some(argument.trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_BINDGEN: &str = r#"const _: () = {
        ["Size of CUpair_st"][::core::mem::size_of::<CUpair_st>() - 16usize];
        ["Alignment of CUpair_st"][::core::mem::align_of::<CUpair_st>() - 8usize];
        ["Offset of field: CUpair_st::value"][::core::mem::offset_of!(CUpair_st, value) - 8usize];
    };"#;

    fn parsed(text: &str) -> Result<Vec<(Measure, u64)>> {
        let assertions = read(&syn::parse_str(text).expect("it is a constant"))?;
        Ok(assertions
            .into_iter()
            .map(|assertion| (assertion.of, assertion.value))
            .collect())
    }

    #[test]
    fn both_forms_say_the_same() {
        let pair = "CUpair_st".to_owned();
        let expected = [
            (Measure::Size(pair.clone()), 16),
            (Measure::Alignment(pair.clone()), 8),
            (Measure::Offset(pair, "value".to_owned()), 8),
        ];
        let read_back = read(&syn::parse_str(OF_BINDGEN).expect("it is a constant"))
            .expect("it has the form of bindgen's output");
        let ours = render(&read_back).to_token_stream().to_string();
        assert!(ours.contains("assert !"), "{ours}");
        assert_eq!(
            parsed(OF_BINDGEN).expect("it has the form of bindgen's output"),
            expected
        );
        assert_eq!(
            parsed(&ours).expect("it has the form of the generated files"),
            expected
        );
    }

    #[test]
    fn assertion_without_a_layout_is_an_error() {
        for text in [
            r#"const _: () = { ["Color of X"][color_of::<X>() - 1usize]; };"#,
            "const _: () = assert!(color_of::<X>() == 1usize);",
            "const _: () = assert!(size_of::<X>() == SIZE);",
            "const _: () = assert!(size_of::<X>() != 1usize);",
            "const _: () = ();",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
