//! Copies of memory: those whose length is known at run time only, such as `copy_from_slice`, and
//! those of a few vectors.
//!
//! For the former, LLVM's back end for NVPTX copies single bytes. The functions here copy words of
//! the copy's alignment and the remaining bytes, of which LLVM removes the second loop if the
//! length is a multiple of the word.

use std::fmt::Write as _;

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
    /// Returns the function for a call of `llvm.memcpy`. `None` if the length is a constant, or the
    /// memory is not aligned to words.
    pub(crate) fn parse(call: &Call<'_>) -> Option<Self> {
        match &call.callee {
            Callee::Direct(name) if name == "llvm.memcpy.p0.p0.i64" => {}
            _ => return None,
        }
        let [target, source, length, "i1 false"] = call.arguments[..] else {
            return None;
        };
        // Copies of constant lengths become single instructions, or vanish. A constant expression
        // has parentheses.
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

/// Returns the arguments of the function: those of the call without attributes and without the
/// last.
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

/// Replaces copies of 16 to 64 bytes that are aligned to 16 bytes by loads and stores of 16 bytes,
/// after LLVM's optimization has removed those that it can: its back end copies in words of 8
/// bytes, one after another.
pub(crate) fn copy_by_vectors(optimized: &str) -> String {
    let mut text = String::with_capacity(optimized.len());
    for (number, line) in optimized.lines().enumerate() {
        match VectorCopy::parse(line) {
            Some(copy) => copy.write(number, &mut text),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// The size of a vector in bytes.
const VECTOR: u64 = 16;

/// The largest copy that is replaced, in bytes.
const MAX_COPY: u64 = 64;

/// A call of `llvm.memcpy` that copies vectors.
struct VectorCopy<'a> {
    to: VectorPointer<'a>,
    from: VectorPointer<'a>,
    bytes: u64,
}

/// A pointer to vectors.
struct VectorPointer<'a> {
    /// `ptr`, or `ptr addrspace(1)`.
    ty: &'a str,
    value: &'a str,
}

impl<'a> VectorCopy<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (_, call) = line.split_once("call void @llvm.memcpy.")?;
        let (_, arguments) = call.split_once('(')?;
        let (arguments, _) = arguments.split_once(", i1 false)")?;
        let (pointers, bytes) = arguments.rsplit_once(", i64 ")?;
        let bytes = bytes.parse().ok()?;
        let (to, from) = pointers.split_once(", ptr ")?;
        // The second argument begins with `ptr` again; one that is a constant expression is left
        // alone.
        let from = VectorPointer::parse(&pointers[pointers.len() - from.len() - "ptr ".len()..])?;
        let is_replaced = bytes % VECTOR == 0 && (VECTOR..=MAX_COPY).contains(&bytes);
        is_replaced.then_some(Self {
            to: VectorPointer::parse(to)?,
            from,
            bytes,
        })
    }

    /// Writes the loads and then the stores. The names of the values contain the number of the
    /// line.
    fn write(&self, line: usize, text: &mut String) {
        let offsets = (0..self.bytes).step_by(VECTOR as usize);
        for offset in offsets.clone() {
            let from = self
                .from
                .write_address(offset, &format!("from.{line}"), text);
            let ty = self.from.ty;
            let _ = writeln!(
                text,
                "  %vector.{line}.{offset} = load <4 x i32>, {ty} {from}, align {VECTOR}"
            );
        }
        for offset in offsets {
            let to = self.to.write_address(offset, &format!("to.{line}"), text);
            let ty = self.to.ty;
            let _ = writeln!(
                text,
                "  store <4 x i32> %vector.{line}.{offset}, {ty} {to}, align {VECTOR}"
            );
        }
    }
}

impl<'a> VectorPointer<'a> {
    fn parse(argument: &'a str) -> Option<Self> {
        let value = argument.rsplit(' ').next()?;
        let is_name = value.starts_with('%') || value.starts_with('@');
        if !is_name || argument.contains(" (") || u64::from(alignment(argument)?) < VECTOR {
            return None;
        }
        let ty = if argument.starts_with("ptr addrspace(") {
            &argument[..=argument.find(')')?]
        } else {
            "ptr"
        };
        Some(Self { ty, value })
    }

    /// Returns the pointer at an offset, and writes its computation.
    fn write_address(&self, offset: u64, name: &str, text: &mut String) -> String {
        if offset == 0 {
            return self.value.to_owned();
        }
        let name = format!("%{name}.{offset}");
        let Self { ty, value } = self;
        let _ = writeln!(
            text,
            "  {name} = getelementptr inbounds i8, {ty} {value}, i64 {offset}"
        );
        name
    }
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
            .ok_or("no call")?;
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

    #[test]
    fn vectors_are_copied_at_once() {
        let text = "  tail call void @llvm.memcpy.p1.p3.i64(ptr addrspace(1) noundef nonnull align 16 dereferenceable(32) %to, \
                    ptr addrspace(3) align 16 %from, i64 32, i1 false), !dbg !7\n";
        let expected = "  %vector.0.0 = load <4 x i32>, ptr addrspace(3) %from, align 16\n  \
                        %from.0.16 = getelementptr inbounds i8, ptr addrspace(3) %from, i64 16\n  \
                        %vector.0.16 = load <4 x i32>, ptr addrspace(3) %from.0.16, align 16\n  \
                        store <4 x i32> %vector.0.0, ptr addrspace(1) %to, align 16\n  \
                        %to.0.16 = getelementptr inbounds i8, ptr addrspace(1) %to, i64 16\n  \
                        store <4 x i32> %vector.0.16, ptr addrspace(1) %to.0.16, align 16\n";
        assert_eq!(copy_by_vectors(text), expected);
    }

    #[test]
    fn copies_of_other_sizes_are_left_to_llvm() {
        for arguments in [
            "ptr align 16 %to, ptr align 16 %from, i64 24, i1 false",
            "ptr align 16 %to, ptr align 16 %from, i64 128, i1 false",
            "ptr align 8 %to, ptr align 16 %from, i64 16, i1 false",
            "ptr align 16 %to, ptr align 16 %from, i64 %n, i1 false",
            "ptr align 16 %to, ptr align 16 %from, i64 16, i1 true",
            "ptr align 16 %to, ptr align 16 getelementptr (i8, ptr @x, i64 16), i64 16, i1 false",
        ] {
            let text = format!("  call void @llvm.memcpy.p0.p0.i64({arguments})\n");
            assert_eq!(copy_by_vectors(&text), text);
        }
    }
}
