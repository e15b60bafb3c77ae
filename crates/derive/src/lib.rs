//! The derive macro of Curium: `#[derive(ByValue)]` for structs that are passed to kernels by value.
//!
//! It reads the few tokens that matter by itself, so that it needs no other package.

mod structure;

use proc_macro::{Group, Span, TokenStream, TokenTree};

use self::structure::Structure;

/// Implements `ByValue` for a struct whose layout is that of the same struct in CUDA C++, and does not compile for another:
///
/// - it is `repr(C)` or `repr(transparent)`, and has fields but no parameters,
/// - each field is `ByValue` itself: a number, an array of them, a device pointer, another such struct,
/// - there is no padding, whose bytes have no value: where the layout has a hole, declare a field for it, in both languages.
///
/// It must be `Copy` too. The trait is looked for in the crate `curium`; `#[by_value(crate = curium_driver)]` names another.
///
/// ```
/// # // The crates that this would use depend on this one.
/// # mod curium_driver {
/// #     pub unsafe trait ByValue: Copy {}
/// #     unsafe impl ByValue for u32 {}
/// #     unsafe impl ByValue for f32 {}
/// # }
/// # use curium_derive::ByValue;
/// #[derive(Clone, Copy, ByValue)]
/// #[by_value(crate = curium_driver)]
/// #[repr(C)]
/// struct Viewport {
///     width: u32,
///     height: u32,
///     scale: f32,
/// }
/// ```
#[proc_macro_derive(ByValue, attributes(by_value))]
pub fn by_value(item: TokenStream) -> TokenStream {
    match Structure::parse(item) {
        Ok(structure) => implementation(&structure),
        Err((span, message)) => compile_error(span, &message),
    }
}

/// The `impl`, and the checks of what it promises.
fn implementation(structure: &Structure) -> TokenStream {
    let name = &structure.name;
    let places: Vec<_> = (0..structure.fields.len()).map(|index| format!("__Field{index}")).collect();
    let checks: String = places.iter().map(|place| format!("is_by_value::<{place}>();")).collect();
    let sizes: String = places.iter().map(|place| format!(" + ::core::mem::size_of::<{place}>()")).collect();
    let padding = format!("`{name}` has padding, whose bytes have no value: declare fields for it");
    let text = format!(
        "const _: () = {{
            const fn is_by_value<T: __Driver::ByValue + 'static>() {{}}
            {checks}
            assert!(::core::mem::size_of::<{name}>() == 0{sizes}, {padding:?});
        }};
        // SAFETY: the struct has the layout of C without padding, and the checks above hold for each of its fields.
        unsafe impl __Driver::ByValue for {name} {{}}"
    );
    let mut replacements = vec![("__Driver".to_owned(), structure.driver.clone())];
    replacements.extend(places.into_iter().zip(structure.fields.iter().cloned()));
    substitute(parse(&text), &replacements)
}

/// `tokens` with each of the names replaced. What replaces a name keeps its place in the source, where the compiler complains.
fn substitute(tokens: TokenStream, replacements: &[(String, TokenStream)]) -> TokenStream {
    let replace = |token: TokenTree| match token {
        TokenTree::Group(group) => {
            let inner = substitute(group.stream(), replacements);
            TokenStream::from(TokenTree::from(Group::new(group.delimiter(), inner)))
        }
        TokenTree::Ident(name) => {
            let found = replacements.iter().find(|(place, _)| *place == name.to_string());
            found.map_or_else(|| TokenTree::from(name).into(), |(_, tokens)| tokens.clone())
        }
        other => other.into(),
    };
    tokens.into_iter().map(replace).collect()
}

/// `compile_error!(message)` at `span`.
fn compile_error(span: Span, message: &str) -> TokenStream {
    let tokens = parse(&format!("::core::compile_error! {{ {message:?} }}"));
    let placed = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    tokens.into_iter().map(placed).collect()
}

fn parse(text: &str) -> TokenStream {
    text.parse().expect("the text is written here, and is Rust")
}
