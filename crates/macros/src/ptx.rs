//! `ptx!`: inline PTX on stable Rust.
//!
//! The instruction is an extern function whose link name contains the template and the constraints
//! of LLVM's inline assembly. The compiler of kernels replaces it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{
    Error, Expr, Ident, LitInt, LitStr, Result, Token, Type, bracketed, parenthesized, parse_quote,
};

/// The operands of an instruction.
pub(crate) struct Instruction {
    template: LitStr,
    outputs: Vec<Operand>,
    inputs: Vec<Operand>,
    is_pure: bool,
    /// The compute capability that the instruction needs, such as 89.
    target: Option<u32>,
}

/// A place or a value in a register, or an array of registers.
struct Operand {
    class: char,
    expression: Expr,
    ty: Type,
    /// The number of elements of an array.
    count: Option<usize>,
    /// `true` if the instruction also reads an output.
    is_read: bool,
}

impl Operand {
    /// Returns the expression of each register.
    fn registers(&self) -> Vec<TokenStream> {
        let expression = &self.expression;
        match self.count {
            None => vec![quote!(#expression)],
            Some(count) => (0..count)
                .map(|index| quote!((#expression)[#index]))
                .collect(),
        }
    }
}

impl Parse for Instruction {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut instruction = Self {
            template: input.parse()?,
            outputs: Vec::new(),
            inputs: Vec::new(),
            is_pure: false,
            target: None,
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(Token![in]) {
                input.parse::<Token![in]>()?;
                instruction.inputs.push(input.parse()?);
                continue;
            }
            let keyword: Ident = input.parse()?;
            match keyword.to_string().as_str() {
                "pure" => instruction.is_pure = true,
                "target" => {
                    let content;
                    parenthesized!(content in input);
                    let target: LitInt = content.parse()?;
                    instruction.target = Some(target.base10_parse()?);
                }
                "out" | "inout" if instruction.inputs.is_empty() => {
                    let output: Operand = input.parse()?;
                    instruction.outputs.push(Operand {
                        is_read: keyword == "inout",
                        ..output
                    });
                }
                "out" | "inout" => {
                    let problem = "the outputs stand before the inputs, as in the template";
                    return Err(Error::new(keyword.span(), problem));
                }
                _ => {
                    return Err(Error::new(
                        keyword.span(),
                        "expected `in`, `out`, `inout`, `pure` or `target`",
                    ));
                }
            }
        }
        if instruction.is_pure && instruction.outputs.is_empty() {
            let problem = "a `pure` instruction has an output";
            return Err(Error::new(instruction.template.span(), problem));
        }
        Ok(instruction)
    }
}

impl Parse for Operand {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let content;
        parenthesized!(content in input);
        let class: Ident = content.parse()?;
        let (class, ty) = match class.to_string().as_str() {
            "h" => ('h', parse_quote!(::core::primitive::u16)),
            "r" => ('r', parse_quote!(::core::primitive::u32)),
            "l" => ('l', parse_quote!(::core::primitive::u64)),
            "f" => ('f', parse_quote!(::core::primitive::f32)),
            "d" => ('d', parse_quote!(::core::primitive::f64)),
            _ => {
                let problem =
                    "a register class is `h`, `r`, `l` (16, 32, 64 bits), `f` or `d` (f32, f64)";
                return Err(Error::new(class.span(), problem));
            }
        };
        let mut count = None;
        if !content.is_empty() {
            let length;
            bracketed!(length in content);
            count = Some(length.parse::<LitInt>()?.base10_parse()?);
        }
        Ok(Self {
            class,
            expression: input.parse()?,
            ty,
            count,
            is_read: false,
        })
    }
}

/// Returns the call of the instruction, which is an `unsafe` operation.
pub(crate) fn expand(instruction: &Instruction) -> Result<TokenStream> {
    let operands = instruction.outputs.iter().chain(&instruction.inputs);
    let template = llvm_template(&instruction.template, &spellings(operands))?;
    let mut constraints = Vec::new();
    let mut places = Vec::new();
    let mut output_types = Vec::new();
    for output in &instruction.outputs {
        let prefix = if output.is_read { '+' } else { '=' };
        for register in output.registers() {
            constraints.push(format!("{prefix}{}", output.class));
            places.push(register);
            output_types.push(&output.ty);
        }
    }
    let mut values = Vec::new();
    let mut input_types = Vec::new();
    for input in &instruction.inputs {
        for register in input.registers() {
            constraints.push(input.class.to_string());
            values.push(register);
            input_types.push(&input.ty);
        }
    }
    let is_pure = instruction.is_pure.then(|| "pure".to_owned());
    let target = instruction.target.map(|target| format!("sm_{target}"));
    let flags: Vec<String> = is_pure.into_iter().chain(target).collect();
    let flags = flags.join(",");
    let symbol = format!("curium.asm|{template}|{}|{flags}", constraints.join(","));

    let output_names: Vec<Ident> = (0..places.len())
        .map(|index| format_ident!("out{index}"))
        .collect();
    let input_names: Vec<Ident> = (0..input_types.len())
        .map(|index| format_ident!("in{index}"))
        .collect();
    Ok(quote! {{
        #[cfg(target_arch = "nvptx64")]
        unsafe extern "C" {
            #[link_name = #symbol]
            fn __curium_instruction(#(#output_names: *mut #output_types,)* #(#input_names: #input_types,)*);
        }
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(clippy::too_many_arguments)]
        unsafe fn __curium_instruction(#(#output_names: *mut #output_types,)* #(#input_names: #input_types,)*) {
            #(let _ = #output_names;)*
            #(let _ = #input_names;)*
            ::curium_kernel::__private::only_on_the_device()
        }
        __curium_instruction(#(&raw mut #places,)* #(#values,)*)
    }})
}

/// Returns the operands in LLVM's spelling: `${0}`, or `{${0}, ${1}}` for an array.
fn spellings<'a>(operands: impl Iterator<Item = &'a Operand>) -> Vec<String> {
    let mut next = 0;
    let mut spellings = Vec::new();
    for operand in operands {
        let first = next;
        next += operand.count.unwrap_or(1);
        let registers: Vec<String> = (first..next).map(|index| format!("${{{index}}}")).collect();
        let list = registers.join(", ");
        spellings.push(if operand.count.is_some() {
            format!("{{{list}}}")
        } else {
            list
        });
    }
    spellings
}

/// Converts `{0}` to the spelling of the operand, and the doubled braces to braces.
fn llvm_template(template: &LitStr, operands: &[String]) -> Result<String> {
    let mut text = String::new();
    let source = template.value();
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '{' | '}' if characters.next_if_eq(&character).is_some() => text.push(character),
            '{' => {
                let mut number = String::new();
                while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                let is_closed = characters.next() == Some('}');
                match number.parse::<usize>() {
                    Ok(index) if is_closed => match operands.get(index) {
                        Some(operand) => text.push_str(operand),
                        None => {
                            let problem = format!("the instruction has no operand {{{index}}}");
                            return Err(Error::new(template.span(), problem));
                        }
                    },
                    _ => {
                        let problem = "write `{0}` for an operand, and `{{` for a brace";
                        return Err(Error::new(template.span(), problem));
                    }
                }
            }
            '}' => return Err(Error::new(template.span(), "write `}}` for a brace")),
            '$' => text.push_str("$$"),
            '"' | '\\' => {
                let problem = format!("an instruction cannot contain {character:?}");
                return Err(Error::new(template.span(), problem));
            }
            // The statements of a longer template are separated by semicolons.
            other if other.is_control() => text.push(' '),
            other => text.push(other),
        }
    }
    Ok(text)
}
