//! Copies of memory whose length is known at run time only, such as `copy_from_slice`.
//!
//! LLVM's back end for NVPTX copies single bytes. The functions here copy words of the copy's alignment and the remaining bytes, of which LLVM
//! removes the second loop if the length is a multiple of the word.

use crate::ir::{Call, Callee};

/// The names of the functions, by the size of a word.
pub(crate) const FUNCTIONS: [&str; 3] = ["copy_words_4", "copy_words_8", "copy_words_16"];

/// A function that copies memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Copy {
    /// The base-2 logarithm of the size of a word.
    shift: u32,
}

impl Copy {
    /// Returns the function for a call of `llvm.memcpy`. `None` if the length is a constant, or the memory is not aligned to words.
    pub(crate) fn parse(call: &Call<'_>) -> Option<Self> {
        match &call.callee {
            Callee::Direct(name) if name == "llvm.memcpy.p0.p0.i64" => {}
            _ => return None,
        }
        let [target, source, length, "i1 false"] = call.arguments[..] else {
            return None;
        };
        // Copies of constant lengths become single instructions, or vanish. A constant expression has parentheses.
        let is_value = |argument: &str| !argument.contains('(');
        if !value(length).starts_with('%') || !is_value(target) || !is_value(source) {
            return None;
        }
        let alignment = alignment(target)?.min(alignment(source)?).min(16);
        (alignment >= 4).then(|| Self {
            shift: alignment.ilog2(),
        })
    }

    pub(crate) fn function(self) -> &'static str {
        FUNCTIONS[self.shift as usize - 2]
    }

    /// Returns the definition of the function.
    pub(crate) fn define(self) -> String {
        let (word, name) = match self.shift {
            2 => ("i32", self.function()),
            3 => ("i64", self.function()),
            _ => ("<4 x i32>", self.function()),
        };
        let size = 1 << self.shift;
        let shift = self.shift;
        let rest = size - 1;
        format!(
            "define internal void @{name}(ptr %to, ptr %from, i64 %bytes) alwaysinline nounwind {{\n\
             entry:\n  \
             %words = lshr i64 %bytes, {shift}\n  \
             %no_words = icmp eq i64 %words, 0\n  \
             br i1 %no_words, label %words_done, label %word\n\
             word:\n  \
             %i = phi i64 [ 0, %entry ], [ %next_i, %word ]\n  \
             %word_from = getelementptr inbounds {word}, ptr %from, i64 %i\n  \
             %word_to = getelementptr inbounds {word}, ptr %to, i64 %i\n  \
             %word_value = load {word}, ptr %word_from, align {size}\n  \
             store {word} %word_value, ptr %word_to, align {size}\n  \
             %next_i = add nuw i64 %i, 1\n  \
             %more_words = icmp ult i64 %next_i, %words\n  \
             br i1 %more_words, label %word, label %words_done\n\
             words_done:\n  \
             %rest = and i64 %bytes, {rest}\n  \
             %start = sub i64 %bytes, %rest\n  \
             %no_rest = icmp eq i64 %rest, 0\n  \
             br i1 %no_rest, label %done, label %byte\n\
             byte:\n  \
             %j = phi i64 [ %start, %words_done ], [ %next_j, %byte ]\n  \
             %byte_from = getelementptr inbounds i8, ptr %from, i64 %j\n  \
             %byte_to = getelementptr inbounds i8, ptr %to, i64 %j\n  \
             %byte_value = load i8, ptr %byte_from\n  \
             store i8 %byte_value, ptr %byte_to\n  \
             %next_j = add nuw i64 %j, 1\n  \
             %more_bytes = icmp ult i64 %next_j, %bytes\n  \
             br i1 %more_bytes, label %byte, label %done\n\
             done:\n  \
             ret void\n}}\n"
        )
    }
}

/// Returns the arguments of the function: those of the call without attributes and without the last.
pub(crate) fn arguments(call: &Call<'_>) -> String {
    let [target, source, length, ..] = call.arguments[..] else {
        return String::new();
    };
    format!(
        "ptr {}, ptr {}, i64 {}",
        value(target),
        value(source),
        value(length)
    )
}

/// Returns the value of an argument such as `ptr align 4 %to`.
fn value(argument: &str) -> &str {
    argument.rsplit(' ').next().unwrap_or(argument)
}

/// Returns the alignment of a pointer argument.
fn alignment(argument: &str) -> Option<u32> {
    let (_, rest) = argument.split_once("align ")?;
    rest.split([' ', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Line, Module};

    /// Returns the function for a copy with these arguments, and its own arguments.
    fn parse(arguments: &str) -> Result<Option<(Copy, String)>, String> {
        let text = format!(
            "define void @f() {{\n  call void @llvm.memcpy.p0.p0.i64({arguments}), !dbg !1\n  ret void\n}}\n"
        );
        let module = Module::parse(&text)?;
        let lines = module.functions[0].body.iter().flatten();
        let call = lines
            .filter_map(|line| match line {
                Line::Instruction(instruction) => instruction.call.as_ref(),
                Line::Other(_) => None,
            })
            .next()
            .ok_or("a call")?;
        Ok(Copy::parse(call).map(|copy| (copy, super::arguments(call))))
    }

    #[test]
    fn copies_have_the_largest_words() -> Result<(), String> {
        for (arguments, function) in [
            (
                "ptr align 4 %to, ptr align 8 %from, i64 %n, i1 false",
                "copy_words_4",
            ),
            (
                "ptr align 8 %to, ptr align 32 %from, i64 %n, i1 false",
                "copy_words_8",
            ),
            (
                "ptr align 64 %to, ptr align 16 @x, i64 %n, i1 false",
                "copy_words_16",
            ),
        ] {
            let (copy, passed) = parse(arguments)?.ok_or(arguments)?;
            assert_eq!(copy.function(), function);
            assert!(
                passed.starts_with("ptr %to, ptr ") && passed.ends_with(", i64 %n"),
                "{passed}"
            );
            assert!(copy.define().contains(&format!("@{function}(")));
        }
        Ok(())
    }

    #[test]
    fn other_copies_are_unchanged() -> Result<(), String> {
        for arguments in [
            "ptr align 4 %to, ptr align 4 %from, i64 32, i1 false",
            "ptr align 4 %to, ptr align 2 %from, i64 %n, i1 false",
            "ptr %to, ptr align 4 %from, i64 %n, i1 false",
            "ptr align 4 %to, ptr align 4 %from, i64 %n, i1 true",
            "ptr align 4 %to, ptr align 4 getelementptr (i8, ptr @x, i64 4), i64 %n, i1 false",
        ] {
            assert_eq!(parse(arguments)?, None, "{arguments}");
        }
        Ok(())
    }
}
