//! Functions, globals and instructions of a module.

use super::lexer::{Lexeme, Token, lex, name};

/// A module. What is not listed by name is kept as text.
#[derive(Debug, Default)]
pub(crate) struct Module<'a> {
    /// The layout and the triple, named types, and groups of attributes.
    pub(crate) header: Vec<&'a str>,
    pub(crate) attribute_groups: Vec<&'a str>,
    pub(crate) globals: Vec<Global<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) metadata: Vec<&'a str>,
}

/// A global variable or constant.
#[derive(Debug)]
pub(crate) struct Global<'a> {
    pub(crate) name: String,
    pub(crate) is_constant: bool,
    pub(crate) is_thread_local: bool,
    /// An alias, which is another name for a function or a global.
    pub(crate) is_alias: bool,
    pub(crate) has_unnamed_address: bool,
    pub(crate) ty: &'a str,
    /// `None` for a declaration.
    pub(crate) initializer: Option<&'a str>,
    pub(crate) section: Option<&'a str>,
    pub(crate) alignment: Option<u32>,
}

/// A function, or the declaration of one.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: String,
    /// The attributes of the result, and its type.
    pub(crate) result: &'a str,
    pub(crate) result_type: &'a str,
    pub(crate) parameters: Vec<&'a str>,
    /// The text after the parameters: `unnamed_addr #1 !dbg !12`.
    pub(crate) suffix: &'a str,
    /// `None` for a declaration.
    pub(crate) body: Option<Vec<Line<'a>>>,
}

/// A line of the body of a function.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// A label, or a debug record.
    Other(&'a str),
    Instruction(Instruction<'a>),
}

#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) text: &'a str,
    pub(crate) opcode: &'a str,
    /// The word behind the opcode, such as `atomic`.
    pub(crate) modifier: Option<&'a str>,
    pub(crate) call: Option<Call<'a>>,
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<&'a str>,
    /// Where the arguments end in the text of the instruction, behind their parenthesis.
    pub(crate) arguments_end: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    Direct(String),
    Indirect,
}

type Result<T> = std::result::Result<T, String>;

impl<'a> Module<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let mut module = Module::default();
        let mut lines = Lines { text, offset: 0 };
        while let Some(line) = lines.next_line() {
            let entity = line.trim_end();
            if entity.is_empty() || entity.starts_with(';') || entity.starts_with("source_filename")
            {
                continue;
            }
            match entity.as_bytes()[0] {
                b'@' => module.globals.push(Global::parse(entity)?),
                b'!' => module.metadata.push(entity),
                b'%' => module.header.push(entity),
                _ if entity.starts_with("target ") => module.header.push(entity),
                _ if entity.starts_with("attributes ") => module.attribute_groups.push(entity),
                _ if entity.starts_with("declare ") => {
                    module
                        .functions
                        .push(Function::parse_header(entity, "declare")?);
                }
                _ if entity.starts_with("define ") => {
                    let mut function = Function::parse_header(entity, "define")?;
                    function.body = Some(parse_body(&mut lines, &function.name)?);
                    module.functions.push(function);
                }
                _ => return Err(format!("unknown entity of LLVM IR: {}", shorten(entity))),
            }
        }
        Ok(module)
    }
}

/// Returns the beginning of a line, for messages.
fn shorten(line: &str) -> &str {
    match line.char_indices().nth(120) {
        Some((end, _)) => &line[..end],
        None => line,
    }
}

/// The lines of a text, several of which can be joined.
struct Lines<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Option<&'a str> {
        let rest = self
            .text
            .get(self.offset..)
            .filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').unwrap_or(rest.len());
        self.offset += length + 1;
        Some(&rest[..length])
    }

    /// Returns the next line, joined with those that follow until its brackets are closed: a
    /// `switch` has a line for each case.
    fn next_instruction(&mut self) -> Option<&'a str> {
        let start = self.offset;
        let mut line = self.next_line()?;
        while line.trim_end().ends_with('[') || depth(line) > 0 {
            self.next_line()?;
            line = &self.text[start..self.offset - 1];
        }
        Some(line)
    }
}

/// Returns the number of brackets that a text leaves open.
fn depth(text: &str) -> i32 {
    if !text.contains('[') {
        return 0;
    }
    lex(text)
        .iter()
        .map(|lexeme| i32::from(lexeme.is('[')) - i32::from(lexeme.is(']')))
        .sum()
}

fn parse_body<'a>(lines: &mut Lines<'a>, function: &str) -> Result<Vec<Line<'a>>> {
    let mut body = Vec::new();
    loop {
        let line = lines
            .next_instruction()
            .ok_or_else(|| format!("the body of `{function}` has no end"))?;
        if line == "}" {
            return Ok(body);
        }
        let code = line.trim();
        if code.is_empty() || code.starts_with(';') {
            continue;
        }
        if !line.starts_with(' ') || code.starts_with("#dbg_") {
            body.push(Line::Other(line.trim_end()));
            continue;
        }
        body.push(Line::Instruction(Instruction::parse(code)?));
    }
}

/// The brackets that stand in pairs in IR.
fn closing(open: char) -> Option<char> {
    match open {
        '(' => Some(')'),
        '[' => Some(']'),
        '{' => Some('}'),
        '<' => Some('>'),
        _ => None,
    }
}

/// Returns the index behind the bracket that closes the one at `open`.
fn close(lexemes: &[Lexeme<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (index, lexeme) in lexemes.iter().enumerate().skip(open) {
        if let Token::Punctuation(character) = lexeme.token {
            if closing(character).is_some() {
                depth += 1;
            } else if ")]}>".contains(character) {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
        }
    }
    None
}

/// Returns the index behind the type that begins at `start`.
fn type_end(lexemes: &[Lexeme<'_>], start: usize) -> Option<usize> {
    let mut end = match lexemes.get(start)?.token {
        Token::Word(_) | Token::Local(_) => start + 1,
        Token::Punctuation(character) if closing(character).is_some() => close(lexemes, start)?,
        _ => return None,
    };
    if lexemes
        .get(end)
        .is_some_and(|lexeme| lexeme.is_word("addrspace"))
    {
        end = close(lexemes, end + 1)?;
    }
    Some(end)
}

/// Returns the parts of a list between `start` and `end`, which commas separate.
fn split<'a>(text: &'a str, lexemes: &[Lexeme<'a>], start: usize, end: usize) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut first = start;
    for index in start..end {
        match lexemes[index].token {
            Token::Punctuation(',') if depth == 0 => {
                parts.push(&text[lexemes[first].start..lexemes[index].start]);
                first = index + 1;
            }
            Token::Punctuation(character) if closing(character).is_some() => depth += 1,
            Token::Punctuation(character) if ")]}>".contains(character) => depth -= 1,
            _ => {}
        }
    }
    if first < end {
        parts.push(&text[lexemes[first].start..lexemes[end - 1].end]);
    }
    parts
}

impl<'a> Global<'a> {
    /// `@name = [linkage …] global|constant TYPE [INITIALIZER] [, section "…"] [, align N]
    /// [, !dbg !N]`
    fn parse(text: &'a str) -> Result<Self> {
        let error = || format!("unknown form of a global: {}", shorten(text));
        let lexemes = lex(text);
        let Some(Token::Global(spelling)) = lexemes.first().map(|lexeme| lexeme.token) else {
            return Err(error());
        };
        let kind = lexemes
            .iter()
            .position(|lexeme| {
                matches!(
                    lexeme.token,
                    Token::Word("global" | "constant" | "alias" | "ifunc")
                )
            })
            .ok_or_else(error)?;
        let words = &lexemes[..kind];
        let has_word = |word: &str| words.iter().any(|lexeme| lexeme.is_word(word));
        let type_end = type_end(&lexemes, kind + 1).ok_or_else(error)?;
        let mut depth = 0_i32;
        let tail = (type_end..lexemes.len())
            .find(|&index| {
                if let Token::Punctuation(character) = lexemes[index].token {
                    depth += i32::from(closing(character).is_some());
                    depth -= i32::from(")]}>".contains(character));
                }
                depth == 0 && lexemes[index].is(',')
            })
            .unwrap_or(lexemes.len());
        let after = |keyword: &str| {
            let index = (tail..lexemes.len()).find(|&index| lexemes[index].is_word(keyword))?;
            Some(lexemes.get(index + 1)?.token)
        };
        let section = match after("section") {
            Some(Token::String(section)) => Some(section),
            _ => None,
        };
        let alignment = match after("align") {
            Some(Token::Word(alignment)) => Some(alignment.parse().map_err(|_| error())?),
            _ => None,
        };
        let is_alias = matches!(lexemes[kind].token, Token::Word("alias" | "ifunc"));
        Ok(Self {
            name: name(spelling),
            is_constant: lexemes[kind].is_word("constant"),
            is_thread_local: has_word("thread_local"),
            is_alias,
            has_unnamed_address: has_word("unnamed_addr"),
            ty: &text[lexemes[kind + 1].start..lexemes[type_end - 1].end],
            initializer: (type_end < tail)
                .then(|| &text[lexemes[type_end].start..lexemes[tail - 1].end]),
            section,
            alignment,
        })
    }
}

/// Words before the result of a function that concern linking only.
const LINKAGE: &[&str] = &[
    "private",
    "internal",
    "available_externally",
    "linkonce",
    "weak",
    "common",
    "extern_weak",
    "linkonce_odr",
    "weak_odr",
    "external",
    "dso_local",
    "dso_preemptable",
    "default",
    "hidden",
    "protected",
    "fastcc",
    "coldcc",
    "ccc",
];

impl<'a> Function<'a> {
    /// `define|declare [linkage …] [attributes] TYPE @name(PARAMETERS) SUFFIX [{]`
    fn parse_header(text: &'a str, keyword: &str) -> Result<Self> {
        let error = || format!("unknown form of a function: {}", shorten(text));
        let lexemes = lex(text);
        if !lexemes
            .first()
            .is_some_and(|lexeme| lexeme.is_word(keyword))
        {
            return Err(error());
        }
        let at = lexemes
            .iter()
            .position(|lexeme| matches!(lexeme.token, Token::Global(_)))
            .ok_or_else(error)?;
        let Token::Global(spelling) = lexemes[at].token else {
            return Err(error());
        };
        let mut start = 1;
        while matches!(lexemes[start].token, Token::Word(word) if LINKAGE.contains(&word)) {
            start += 1;
        }
        // The type of the result begins at the first index from which a type reaches to the name.
        let result_start = (start..at)
            .find(|&index| type_end(&lexemes, index) == Some(at))
            .ok_or_else(error)?;
        if !lexemes.get(at + 1).is_some_and(|lexeme| lexeme.is('(')) {
            return Err(error());
        }
        let end = close(&lexemes, at + 1).ok_or_else(error)?;
        let suffix_end = lexemes.len() - usize::from(keyword == "define");
        let suffix = if end < suffix_end {
            &text[lexemes[end].start..lexemes[suffix_end - 1].end]
        } else {
            ""
        };
        Ok(Self {
            name: name(spelling),
            result: &text[lexemes[start].start..lexemes[at].start],
            result_type: text[lexemes[result_start].start..lexemes[at].start].trim_end(),
            parameters: split(text, &lexemes, at + 2, end - 1),
            suffix,
            body: None,
        })
    }

    /// Returns the types of the parameters, without attributes and names.
    pub(crate) fn parameter_types(&self) -> Vec<&'a str> {
        self.parameters
            .iter()
            .map(|parameter| {
                let lexemes = lex(parameter);
                match type_end(&lexemes, 0) {
                    Some(end) => &parameter[..lexemes[end - 1].end],
                    None => parameter,
                }
            })
            .collect()
    }
}

/// The beginning of `core::hint::black_box`: inline assembly without instructions. Other inline
/// assembly is unknown.
const BLACK_BOX: &str = "call void asm sideeffect \"\", \"r,~{memory}\"(ptr ";

impl<'a> Instruction<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let lexemes = lex(text);
        let error = || format!("unknown form of an instruction: {}", shorten(text));
        let text = &text[..lexemes.last().ok_or_else(error)?.end];
        let mut at = 0;
        if matches!(lexemes[0].token, Token::Local(_)) {
            if !lexemes.get(1).is_some_and(|lexeme| lexeme.is('=')) {
                return Err(error());
            }
            at = 2;
        }
        let word = |index: usize| match lexemes.get(index).map(|lexeme| lexeme.token) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        };
        while matches!(word(at), Some("tail" | "musttail" | "notail")) {
            at += 1;
        }
        let opcode = word(at).ok_or_else(error)?;
        let call = if opcode == "call" && !text[lexemes[at].start..].starts_with(BLACK_BOX) {
            Some(Call::parse(text, &lexemes, at + 1).ok_or_else(error)?)
        } else {
            None
        };
        Ok(Self {
            text,
            opcode,
            modifier: word(at + 1),
            call,
        })
    }
}

impl<'a> Call<'a> {
    /// `[attributes] TYPE CALLEE(ARGUMENTS) [attributes]`: the callee is the first name directly
    /// before a parenthesis.
    fn parse(text: &'a str, lexemes: &[Lexeme<'a>], start: usize) -> Option<Self> {
        let at = (start..lexemes.len() - 1).find(|&index| {
            let is_name = matches!(lexemes[index].token, Token::Global(_) | Token::Local(_));
            let next = &lexemes[index + 1];
            is_name && next.is('(') && next.start == lexemes[index].end
        })?;
        if lexemes[start..at]
            .iter()
            .any(|lexeme| lexeme.is_word("asm"))
        {
            return None;
        }
        let end = close(lexemes, at + 1)?;
        Some(Self {
            callee: match lexemes[at].token {
                Token::Global(spelling) => Callee::Direct(name(spelling)),
                _ => Callee::Indirect,
            },
            arguments: split(text, lexemes, at + 2, end - 1),
            arguments_end: lexemes[end - 1].end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result = std::result::Result<(), String>;

    #[test]
    fn globals_are_read() -> Result {
        let text = concat!(
            "@anon.1 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @anon.0, [16 x i8] c\"\\04,\\22}\\00\" }>, align 8\n",
            "@S = internal global [256 x i8] undef, section \".curium.shared\", align 4, !dbg !3\n",
            "@E = external thread_local global i32, align 4\n",
        );
        let module = Module::parse(text)?;
        let [constant, shared, external] = &module.globals[..] else {
            return Err("three globals".to_owned());
        };
        assert_eq!(constant.ty, "<{ ptr, [16 x i8] }>");
        assert!(constant.is_constant && constant.has_unnamed_address);
        assert!(
            constant
                .initializer
                .is_some_and(|text| text.ends_with("\" }>"))
        );
        assert_eq!(shared.initializer, Some("undef"));
        assert_eq!(shared.section, Some(".curium.shared"));
        assert_eq!(shared.alignment, Some(4));
        assert!(!shared.is_constant);
        assert!(external.is_thread_local && external.initializer.is_none());
        Ok(())
    }

    #[test]
    fn functions_and_calls_are_read() -> Result {
        let text = concat!(
            "define internal noundef range(i32 0, 5) { i32, i1 } @\"f|x\"(ptr noalias dereferenceable(24) %0, i64 noundef %1) unnamed_addr #4 !dbg !1 {\n",
            "  %3 = call noundef float %38(ptr noundef %1) #16, !dbg !1450\n",
            "  call void @g(ptr captures(address, read_provenance) @c, [2 x i64] [i64 1, i64 2]) #14\n",
            "  switch i64 %27, label %30 [\n    i64 0, label %33\n  ], !dbg !1444\n",
            "\n30:                                               ; preds = %24\n",
            "  ret void\n}\n",
            "declare void @g(ptr, [2 x i64]) unnamed_addr #1\n",
        );
        let module = Module::parse(text)?;
        let function = &module.functions[0];
        assert_eq!(function.name, "f|x");
        assert_eq!(function.result_type, "{ i32, i1 }");
        assert_eq!(function.parameter_types(), ["ptr", "i64"]);
        assert_eq!(function.suffix, "unnamed_addr #4 !dbg !1");
        let instructions: Vec<_> = function
            .body
            .iter()
            .flatten()
            .filter_map(|line| match line {
                Line::Instruction(instruction) => Some(instruction),
                Line::Other(_) => None,
            })
            .collect();
        let opcodes: Vec<_> = instructions
            .iter()
            .map(|instruction| instruction.opcode)
            .collect();
        assert_eq!(opcodes, ["call", "call", "switch", "ret"]);
        let call = instructions[0].call.as_ref().ok_or("no call")?;
        assert_eq!(call.callee, Callee::Indirect);
        let call = instructions[1].call.as_ref().ok_or("no call")?;
        assert_eq!(call.callee, Callee::Direct("g".to_owned()));
        assert_eq!(call.arguments.len(), 2);
        assert_eq!(module.functions[1].result_type, "void");
        assert!(module.functions[1].body.is_none());
        Ok(())
    }

    #[test]
    fn inline_assembly_is_unknown() {
        let text = "define void @f() {\n  call void asm sideeffect \"bar.sync 0;\", \"\"()\n  ret void\n}\n";
        assert!(Module::parse(text).is_err());
    }

    /// Inline assembly without instructions is `core::hint::black_box`.
    #[test]
    fn black_boxes_are_instructions() -> Result {
        let text = "define void @f(ptr %x) {\n  call void asm sideeffect \"\", \"r,~{memory}\"(ptr %x), !dbg !7\n  ret void\n}\n";
        let module = Module::parse(text)?;
        let Some([Line::Instruction(instruction), _]) = module.functions[0].body.as_deref() else {
            return Err("two instructions".to_owned());
        };
        assert!(instruction.opcode == "call" && instruction.call.is_none());
        Ok(())
    }

    #[test]
    fn unknown_entities_are_errors() {
        assert!(Module::parse("module asm \"x\"\n").is_err());
    }
}
