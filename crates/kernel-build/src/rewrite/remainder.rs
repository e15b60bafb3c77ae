//! Remainders of floating-point numbers.
//!
//! LLVM computes `frem` for this target as `x - trunc(x / y) * y`, which is not the remainder if
//! the quotient is large: `1e10 % 3.0` would be
//! 256. It is also not what LLVM computes for constants, so that two copies of one expression could
//!      have different values.

use crate::ir::{Instruction, Token, lex};

/// A type of floating-point numbers.
struct Format {
    ty: &'static str,
    function: &'static str,
    bits: u32,
    mantissa_bits: u32,
}

const FORMATS: [Format; 2] = [
    Format {
        ty: "float",
        function: "curium_remainder_f32",
        bits: 32,
        mantissa_bits: 23,
    },
    Format {
        ty: "double",
        function: "curium_remainder_f64",
        bits: 64,
        mantissa_bits: 52,
    },
];

/// The instruction of LLVM.
pub(crate) const OPCODE: &str = "frem";

/// The names of the functions.
pub(crate) const FUNCTIONS: [&str; 2] = [FORMATS[0].function, FORMATS[1].function];

/// A remainder, as a call of a function.
pub(crate) struct Remainder<'a> {
    format: &'static Format,
    result: &'a str,
    operands: [&'a str; 2],
    metadata: &'a str,
}

impl<'a> Remainder<'a> {
    /// Reads `RESULT = frem [flags] TYPE X, Y[, METADATA]`, unless the type is another one.
    pub(crate) fn parse(instruction: &Instruction<'a>) -> Option<Self> {
        let text = instruction.text;
        let lexemes = lex(text);
        let ty = lexemes.iter().position(|lexeme| {
            matches!(lexeme.token, Token::Word(word) if FORMATS.iter().any(|format| format.ty == word))
        })?;
        let Token::Word(name) = lexemes[ty].token else {
            return None;
        };
        // Each operand is one token, because the type is a scalar.
        let [x, comma, y, rest @ ..] = &lexemes[ty + 1..] else {
            return None;
        };
        if lexemes[0].token != Token::Local(&text[1..lexemes[0].end]) || !comma.is(',') {
            return None;
        }
        Some(Self {
            format: FORMATS.iter().find(|format| format.ty == name)?,
            result: &text[..lexemes[0].end],
            operands: [&text[x.start..x.end], &text[y.start..y.end]],
            metadata: rest
                .first()
                .map(|lexeme| &text[lexeme.start..])
                .unwrap_or_default(),
        })
    }

    /// Returns the call.
    pub(crate) fn call(&self) -> String {
        let Format { ty, function, .. } = self.format;
        let [x, y] = self.operands;
        format!(
            "{} = call {ty} @{function}({ty} {x}, {ty} {y}){}",
            self.result, self.metadata
        )
    }
}

/// Defines the functions.
pub(crate) fn definitions() -> String {
    FORMATS.iter().map(define).collect()
}

/// Defines a function that divides the mantissas. The dividend is the larger one; its exponent is
/// reduced by as many bits at a time as fit into 64 bits beside the remainder.
fn define(format: &Format) -> String {
    let Format {
        ty,
        function,
        bits,
        mantissa_bits,
    } = format;
    let sign = 1_u64 << (bits - 1);
    let magnitude = sign - 1;
    let one = 1_u64 << mantissa_bits;
    let mantissa = one - 1;
    let infinity = magnitude ^ mantissa;
    let step = 63 - mantissa_bits;
    let (to_bits, from_bits) = if *bits == 64 {
        (
            "%x.bits = bitcast double %x to i64\n  %y.bits = bitcast double %y to i64",
            "%scale = bitcast i64 %scale.bits to double\n  %scaled = fmul double %mantissa, %scale\n  \
             %scaled.bits = bitcast double %scaled to i64\n  %signed = or i64 %scaled.bits, %sign\n  \
             %result = bitcast i64 %signed to double",
        )
    } else {
        (
            "%x.int = bitcast float %x to i32\n  %x.bits = zext i32 %x.int to i64\n  \
             %y.int = bitcast float %y to i32\n  %y.bits = zext i32 %y.int to i64",
            "%scale.int = trunc i64 %scale.bits to i32\n  %scale = bitcast i32 %scale.int to float\n  \
             %scaled = fmul float %mantissa, %scale\n  %scaled.bits = bitcast float %scaled to i32\n  \
             %sign.int = trunc i64 %sign to i32\n  %signed = or i32 %scaled.bits, %sign.int\n  \
             %result = bitcast i32 %signed to float",
        )
    };
    format!(
        "define internal {ty} @{function}({ty} %x, {ty} %y) nounwind memory(none) {{\n\
         start:\n  {to_bits}\n  \
         %sign = and i64 %x.bits, {sign}\n  \
         %a = and i64 %x.bits, {magnitude}\n  \
         %b = and i64 %y.bits, {magnitude}\n  \
         %a.is.special = icmp uge i64 %a, {infinity}\n  \
         %b.is.nan = icmp ugt i64 %b, {infinity}\n  \
         %b.is.zero = icmp eq i64 %b, 0\n  \
         %either = or i1 %a.is.special, %b.is.nan\n  \
         %is.special = or i1 %either, %b.is.zero\n  \
         br i1 %is.special, label %special, label %finite\n\
         special:\n  \
         %product = fmul {ty} %x, %y\n  \
         %nan = fdiv {ty} %product, %product\n  \
         ret {ty} %nan\n\
         finite:\n  \
         %is.less = icmp ult i64 %a, %b\n  \
         br i1 %is.less, label %less, label %divide\n\
         less:\n  \
         ret {ty} %x\n\
         divide:\n  \
         %a.exponent = lshr i64 %a, {mantissa_bits}\n  \
         %b.exponent = lshr i64 %b, {mantissa_bits}\n  \
         %a.is.normal = icmp ne i64 %a.exponent, 0\n  \
         %b.is.normal = icmp ne i64 %b.exponent, 0\n  \
         %a.one = select i1 %a.is.normal, i64 {one}, i64 0\n  \
         %b.one = select i1 %b.is.normal, i64 {one}, i64 0\n  \
         %a.fraction = and i64 %a, {mantissa}\n  \
         %b.fraction = and i64 %b, {mantissa}\n  \
         %a.mantissa = or i64 %a.fraction, %a.one\n  \
         %b.mantissa = or i64 %b.fraction, %b.one\n  \
         %a.power = select i1 %a.is.normal, i64 %a.exponent, i64 1\n  \
         %b.power = select i1 %b.is.normal, i64 %b.exponent, i64 1\n  \
         %distance = sub i64 %a.power, %b.power\n  \
         %remainder = urem i64 %a.mantissa, %b.mantissa\n  \
         br label %loop\n\
         loop:\n  \
         %r = phi i64 [ %remainder, %divide ], [ %r.next, %step ]\n  \
         %d = phi i64 [ %distance, %divide ], [ %d.next, %step ]\n  \
         %r.is.zero = icmp eq i64 %r, 0\n  \
         %d.is.zero = icmp eq i64 %d, 0\n  \
         %is.done = or i1 %r.is.zero, %d.is.zero\n  \
         br i1 %is.done, label %done, label %step\n\
         step:\n  \
         %is.last = icmp ult i64 %d, {step}\n  \
         %shift = select i1 %is.last, i64 %d, i64 {step}\n  \
         %shifted = shl i64 %r, %shift\n  \
         %r.next = urem i64 %shifted, %b.mantissa\n  \
         %d.next = sub i64 %d, %shift\n  \
         br label %loop\n\
         done:\n  \
         %is.large = icmp ugt i64 %b.power, {mantissa_bits}\n  \
         %large.power = sub i64 %b.power, {mantissa_bits}\n  \
         %large = shl i64 %large.power, {mantissa_bits}\n  \
         %small.power = sub i64 %b.power, 1\n  \
         %small.shift = select i1 %is.large, i64 0, i64 %small.power\n  \
         %small = shl i64 1, %small.shift\n  \
         %scale.bits = select i1 %is.large, i64 %large, i64 %small\n  \
         %mantissa = uitofp i64 %r to {ty}\n  \
         {from_bits}\n  \
         ret {ty} %result\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Line, Module};

    fn parse_all(text: &str, test: impl Fn(Option<Remainder<'_>>)) -> Result<(), String> {
        let module = Module::parse(text)?;
        for line in module
            .functions
            .iter()
            .flat_map(|function| &function.body)
            .flatten()
        {
            if let Line::Instruction(instruction) = line
                && instruction.opcode == OPCODE
            {
                test(Remainder::parse(instruction));
            }
        }
        Ok(())
    }

    #[test]
    fn remainders_become_calls() -> Result<(), String> {
        let text = "define void @f() {\n  %_5 = frem nsz float %x, 3.000000e+00, !dbg !7\n}\n";
        parse_all(text, |remainder| {
            let call =
                "%_5 = call float @curium_remainder_f32(float %x, float 3.000000e+00), !dbg !7";
            assert_eq!(
                remainder.map(|remainder| remainder.call()).as_deref(),
                Some(call)
            );
        })?;
        let text =
            "define void @f() {\n  %0 = frem <2 x float> %x, %y\n  %1 = frem half %x, %y\n}\n";
        parse_all(text, |remainder| assert!(remainder.is_none()))
    }

    #[test]
    fn definitions_have_the_constants_of_their_format() -> Result<(), String> {
        let text = definitions();
        for part in [
            "icmp uge i64 %a, 2139095040\n",
            "icmp uge i64 %a, 9218868437227405312\n",
            "icmp ult i64 %d, 40\n",
            "icmp ult i64 %d, 11\n",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(Module::parse(&text)?.functions.len(), 2);
        Ok(())
    }
}
