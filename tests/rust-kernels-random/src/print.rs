//! Writes programs as Rust.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::program::{
    Body, Builtin, Expr, Loop, Memory, MemoryKind, Operand, PairStmt, Param, Place, Position,
    Program, Shuffle, Stmt, ThreadStmt, Var, VarKind, Vote, WarpStmt, WarpVote,
};
use crate::value::{Binary, Type, Unary, Value};

/// The beginning of a crate of programs.
pub(crate) const HEADER: &str = "\
#![no_std]
#![allow(warnings)]

use curium_kernel::prelude::*;

fn digest_f32(x: f32) -> u64 { if x.is_nan() { 1 } else { x.to_bits() as u64 } }
fn digest_f64(x: f64) -> u64 { if x.is_nan() { 1 } else { x.to_bits() } }
";

/// Returns a module with the kernel `name`.
pub(crate) fn module(program: &Program, name: &str) -> String {
    let mut printer = Printer {
        program,
        out: format!("pub mod module_{name} {{\n"),
        indent: 1,
        written: HashSet::new(),
        block: "&block",
    };
    printer.line("use super::*;");
    printer.functions();
    printer.stages();
    printer.kernel(name);
    printer.out += "}\n";
    printer.out
}

struct Printer<'a> {
    program: &'a Program,
    out: String,
    indent: usize,
    /// Operands that a closure has as `&mut`.
    written: HashSet<Var>,
    /// The expression of type `&Block`.
    block: &'static str,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 4 * self.indent);
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    fn name(&self, var: Var) -> String {
        let prefix = match self.program.var(var).kind {
            VarKind::Scalar => "c",
            VarKind::Uniform => "u",
            VarKind::Register => "r",
            VarKind::PerWarp => "p",
            VarKind::Local => "l",
            VarKind::Number => "k",
            VarKind::Element => "e",
            VarKind::WarpUniform => "v",
            VarKind::Lanes => "w",
            VarKind::Constant => "K",
        };
        format!("{prefix}{}", var.0)
    }

    fn ty(&self, var: Var) -> Type {
        self.program.var(var).ty
    }

    /// Returns an expression of type `&mut` for the memory.
    fn memory_mut(&self, memory: usize) -> String {
        if self.program.memories[memory].is_reference {
            format!("&mut *m{memory}")
        } else {
            format!("&mut m{memory}")
        }
    }

    fn memory_type(memory: &Memory) -> String {
        let ty = memory.ty.name();
        match memory.kind {
            MemoryKind::Array(len) => format!("Shared<[{ty}; {len}]>"),
            MemoryKind::Tile {
                rows,
                columns,
                padding,
            } => format!("Shared<Tile<{ty}, {rows}, {columns}, {padding}>>"),
            MemoryKind::Dynamic => format!("DynamicShared<{ty}>"),
            MemoryKind::Atomics { len, .. } if memory.ty == Type::U32 && len % 2 == 0 => {
                format!("Counters<{len}>")
            }
            MemoryKind::Atomics { len, .. } => {
                format!("Shared<[Atomic<{ty}, BlockScope>; {len}]>")
            }
            MemoryKind::Row => panic!("a row is no parameter"),
        }
    }

    fn functions(&mut self) {
        for (index, function) in self.program.functions.iter().enumerate() {
            let parameters: Vec<String> = function
                .params
                .iter()
                .map(|var| format!("mut {}: {}", self.name(*var), self.ty(*var).name()))
                .collect();
            if !function.is_inlined {
                self.line("#[inline(never)]");
            }
            self.open(&format!(
                "fn f{index}<const {}: u32>({}) -> {} {{",
                self.name(function.constant),
                parameters.join(", "),
                self.expr_type(&function.result).name()
            ));
            self.locals(&function.locals);
            self.thread_body(&function.body);
            let result = self.expr(&function.result);
            self.line(&result);
            self.close("}");
        }
    }

    fn stages(&mut self) {
        let program = self.program;
        for (index, stage) in program.stages.iter().enumerate() {
            for (variant, (body, result)) in stage.bodies.iter().enumerate() {
                let [x, y, z] = program.block.unwrap_or([1; 3]);
                let (generics, block) = if stage.is_generic {
                    (
                        "<const X: u32, const Y: u32, const Z: u32>",
                        "Block<X, Y, Z>".to_owned(),
                    )
                } else {
                    ("", format!("Block<{x}, {y}, {z}>"))
                };
                if !stage.is_inlined {
                    self.line("#[inline(never)]");
                }
                let memory = Self::memory_type(&program.memories[stage.memory]);
                let scratch = match stage.scratch {
                    Some(ty) => {
                        format!("s_{}: &mut Scratch<{}>, ", ty.name(), ty.name())
                    }
                    None => String::new(),
                };
                self.open(&format!(
                    "fn g{index}_{variant}{generics}(block: &{block}, m{}: &mut {memory}, {scratch}{}: {}, mut {}: Registers<{}>) -> ({}, Registers<{}>) {{",
                    stage.memory,
                    self.name(stage.input),
                    self.ty(stage.input).name(),
                    self.name(stage.register),
                    self.ty(stage.register).name(),
                    self.expr_type(result).name(),
                    self.ty(stage.register).name(),
                ));
                self.block = "block";
                self.body(body);
                self.block = "&block";
                let result = self.expr(result);
                let register = self.name(stage.register);
                self.line(&format!("({result}, {register})"));
                self.close("}");
            }
        }
    }

    fn kernel(&mut self, name: &str) {
        let program = self.program;
        let mut parameters = vec![match program.block {
            Some([x, y, z]) => format!("block: Block<{x}, {y}, {z}>"),
            None => "t: Thread".to_owned(),
        }];
        for (index, param) in program.params.iter().enumerate() {
            parameters.push(match param {
                Param::Scalar(var) => format!("{}: {}", self.name(*var), self.ty(*var).name()),
                Param::Slice(ty) => format!("x{index}: &[{}]", ty.name()),
                Param::Matrix(ty) => format!("x{index}: Matrix<{}>", ty.name()),
                Param::Atomics { ty, is_system, .. } => {
                    let scope = if *is_system { ", SystemScope" } else { "" };
                    format!("x{index}: &[Atomic<{}{scope}>]", ty.name())
                }
                Param::PerThread(ty) => format!("mut x{index}: PerThread<{}>", ty.name()),
                Param::Chunk(ty, len) => {
                    format!("mut x{index}: PerThreadChunk<{}, {len}>", ty.name())
                }
                Param::PerBlock(ty) => format!("mut x{index}: PerBlock<{}>", ty.name()),
                Param::Row(ty) => format!("mut x{index}: PerBlockRow<{}>", ty.name()),
                Param::Tile { ty, rows, columns } => format!(
                    "mut x{index}: PerBlockTile<{}, {rows}, {columns}>",
                    ty.name()
                ),
                Param::Memory(memory) => format!(
                    "mut m{memory}: {}",
                    Self::memory_type(&program.memories[*memory])
                ),
                Param::Scratch(ty) => format!("mut s_{}: Scratch<{}>", ty.name(), ty.name()),
            });
        }
        self.line("#[kernel]");
        self.open(&format!("pub fn {name}("));
        for parameter in parameters {
            self.line(&format!("{parameter},"));
        }
        self.close(") {");
        self.indent += 1;
        if program.block.is_some() {
            self.body(&program.body);
        } else {
            self.locals(&program.locals);
            self.thread_body(&program.thread_body);
        }
        self.close("}");
    }

    fn locals(&mut self, locals: &[(Var, Expr)]) {
        for (var, value) in locals {
            let value = self.expr(value);
            self.line(&format!(
                "let mut {}: {} = {value};",
                self.name(*var),
                self.ty(*var).name()
            ));
        }
    }

    fn body(&mut self, body: &Body) {
        self.locals(&body.uniforms);
        for var in &body.registers {
            self.line(&format!(
                "let mut {} = Registers::new({});",
                self.name(*var),
                Value::zero(self.ty(*var)).source()
            ));
        }
        for var in &body.per_warp {
            self.line(&format!(
                "let mut {} = block.warps(|_| {});",
                self.name(*var),
                Value::zero(self.ty(*var)).source()
            ));
        }
        self.stmts(&body.stmts);
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    /// Opens a loop.
    fn open_loop<S>(&mut self, repeat: &Loop<S>) {
        let count = self.expr(&repeat.count);
        let name = self.name(repeat.var);
        let limit = repeat.limit;
        if repeat.is_while {
            self.line(&format!("let mut {name} = {count} % {limit};"));
            self.open(&format!("while {name} > 0 {{"));
            self.line(&format!("{name} -= 1;"));
        } else {
            self.open(&format!("for {name} in 0..{count} % {limit} {{"));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let block = self.block;
        match stmt {
            Stmt::Assign(var, value) => {
                let value = self.expr(value);
                self.line(&format!("{} = {value};", self.name(*var)));
            }
            Stmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                self.open(&format!("if {condition} {{"));
                self.stmts(then);
                if !otherwise.is_empty() {
                    self.indent -= 1;
                    self.open("} else {");
                    self.stmts(otherwise);
                }
                self.close("}");
            }
            Stmt::For(repeat) => {
                self.open_loop(repeat);
                self.stmts(&repeat.body);
                self.close("}");
            }
            Stmt::BreakIf(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{ break; }}"));
            }
            Stmt::ContinueIf(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{ continue; }}"));
            }
            Stmt::ReturnIf(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{ return; }}"));
            }
            Stmt::Fill {
                memory,
                position,
                value,
            } => {
                let pattern = match position {
                    Position::Index(index) => self.name(*index),
                    Position::RowColumn(row, column) => {
                        format!("({}, {})", self.name(*row), self.name(*column))
                    }
                };
                self.open(&format!("m{memory}.fill({block}, |t, {pattern}| {{"));
                self.position(*position);
                let value = self.expr(value);
                self.line(&value);
                self.close("});");
            }
            Stmt::Threads {
                operands,
                locals,
                body,
                result,
            } => self.threads(operands, locals, body, result.as_ref()),
            Stmt::Synced { memories, body } => {
                let names: Vec<String> =
                    memories.iter().map(|memory| format!("m{memory}")).collect();
                if let [memory] = &memories[..] {
                    self.open(&format!("m{memory}.synced({block}, |m{memory}| {{"));
                } else {
                    let operands: Vec<String> = memories
                        .iter()
                        .map(|memory| self.memory_mut(*memory))
                        .collect();
                    self.open(&format!(
                        "({}).synced({block}, |({})| {{",
                        operands.join(", "),
                        names.join(", ")
                    ));
                }
                self.stmts(body);
                self.close("});");
            }
            Stmt::Reduce {
                target,
                source,
                operator,
            } => {
                let ty = self.ty(*source);
                let closure = combination(*operator, ty);
                let scratch = self.scratch(ty);
                let call = if *operator == Binary::Add {
                    format!("block.sum(&{}, {scratch})", self.name(*source))
                } else {
                    format!(
                        "block.reduce(&{}, {scratch}, {closure})",
                        self.name(*source)
                    )
                };
                self.line(&format!("{} = {call};", self.name(*target)));
            }
            Stmt::Scan {
                target,
                total,
                source,
                identity,
                operator,
            } => {
                let ty = self.ty(*source);
                let scratch = self.scratch(ty);
                let identity = self.expr(identity);
                self.line(&format!(
                    "({}, {}) = block.exclusive_scan(&{}, {identity}, {scratch}, {});",
                    self.name(*target),
                    self.name(*total),
                    self.name(*source),
                    combination(*operator, ty)
                ));
            }
            Stmt::Vote {
                target,
                source,
                vote,
            } => {
                let method = match vote {
                    Vote::Any => "any",
                    Vote::All => "all",
                    Vote::Count => "count",
                };
                self.line(&format!(
                    "{} = (block.{method}(&{}) as u32);",
                    self.name(*target),
                    self.name(*source)
                ));
            }
            Stmt::Pairs { memory, body } => {
                self.open(&format!("m{memory}.pairs({block}, |pairs| {{"));
                self.pairs(body);
                self.close("});");
            }
            Stmt::SetPerBlock { param, value } => {
                let value = self.expr(value);
                self.line(&format!("x{param}.set({block}, {value});"));
            }
            Stmt::Row {
                param,
                memory,
                body,
            } => {
                self.open(&format!(
                    "if let Some(mut m{memory}) = x{param}.row({block}) {{"
                ));
                self.stmts(body);
                self.close("}");
            }
            Stmt::TileOutput {
                param,
                position,
                element,
                operands,
                value,
            } => {
                let element = self.name(*element);
                let (arguments, patterns) = self.operands(operands);
                let call = match &arguments[..] {
                    [] => format!("x{param}.for_each({block}, |position, {element}| {{"),
                    // The part of the operands is passed by `&mut`.
                    [one] => format!(
                        "x{param}.for_each_with({block}, {one}, |position, {element}, {}| {{",
                        patterns[0].replacen('&', "&mut &", 1)
                    ),
                    _ => format!(
                        "x{param}.for_each_with({block}, ({}), |position, {element}, &mut ({})| {{",
                        arguments.join(", "),
                        patterns.join(", ")
                    ),
                };
                self.open(&call);
                for (var, field) in position.iter().zip([
                    "row",
                    "column",
                    "row_in_tile",
                    "column_in_tile",
                    "i",
                    "j",
                ]) {
                    self.line(&format!(
                        "let {} = position.{field} as u32;",
                        self.name(*var)
                    ));
                }
                let value = self.expr(value);
                self.line(&format!("*{element} = {value};"));
                self.close("});");
                self.written.clear();
            }
            Stmt::Warps {
                operands,
                body,
                locals,
                result,
            } => {
                let arguments: Vec<String> = operands
                    .iter()
                    .map(|operand| {
                        let mutable = if operand.is_written { "mut " } else { "" };
                        format!("&{mutable}{}", self.name(operand.source))
                    })
                    .collect();
                let patterns: Vec<String> = operands
                    .iter()
                    .map(|operand| {
                        let name = self.name(operand.inside);
                        if operand.is_written {
                            format!("part_{name}")
                        } else {
                            format!("&{name}")
                        }
                    })
                    .collect();
                let target = match result {
                    Some((target, _)) => format!("{} = ", self.name(*target)),
                    None => String::new(),
                };
                self.open(&match &arguments[..] {
                    [] => format!("{target}block.warps(|warp| {{"),
                    [one] => {
                        format!("{target}block.warps_with({one}, |warp, {}| {{", patterns[0])
                    }
                    _ => format!(
                        "{target}block.warps_with(({}), |warp, ({})| {{",
                        arguments.join(", "),
                        patterns.join(", ")
                    ),
                });
                for operand in operands.iter().filter(|operand| operand.is_written) {
                    let name = self.name(operand.inside);
                    self.line(&format!("let mut {name} = *part_{name};"));
                }
                for (var, value) in locals {
                    let value = value.source();
                    let value = if self.program.var(*var).kind == VarKind::Lanes {
                        format!("Lanes::new({value})")
                    } else {
                        value
                    };
                    self.line(&format!("let mut {} = {value};", self.name(*var)));
                }
                self.warp_body(body);
                for operand in operands.iter().filter(|operand| operand.is_written) {
                    let name = self.name(operand.inside);
                    self.line(&format!("*part_{name} = {name};"));
                }
                match result {
                    Some((target, value)) => {
                        let value = self.name(*value);
                        self.line(&value);
                        if self.program.var(*target).kind == VarKind::Register {
                            self.close("}).into_registers();");
                        } else {
                            self.close("});");
                        }
                    }
                    None => self.close("});"),
                }
            }
            Stmt::CopyDuring {
                memory,
                param,
                row,
                column,
                body,
            } => {
                let row = self.expr(row);
                let column = self.expr(column);
                self.open(&format!(
                    "m{memory}.copy_during({block}, &x{param}, ({row} as usize, {column} as usize), || {{"
                ));
                self.stmts(body);
                self.close("});");
            }
            Stmt::Call {
                stage: index,
                memory,
                input,
                register,
                selector,
                target,
            } => {
                let program = self.program;
                let stage = &program.stages[*index];
                let function = if stage.bodies.len() == 1 {
                    format!("g{index}_0")
                } else {
                    let [x, y, z] = program.block.unwrap_or([1; 3]);
                    let memory = Self::memory_type(&program.memories[stage.memory]);
                    let scratch = match stage.scratch {
                        Some(ty) => format!("&mut Scratch<{}>, ", ty.name()),
                        None => String::new(),
                    };
                    let register = self.ty(*register).name();
                    self.line(&format!(
                        "let functions: [fn(&Block<{x}, {y}, {z}>, &mut {memory}, {scratch}{}, Registers<{register}>) -> ({}, Registers<{register}>); 2] = [g{index}_0, g{index}_1];",
                        self.ty(stage.input).name(),
                        self.expr_type(&stage.bodies[0].1).name()
                    ));
                    format!("functions[{} as usize % 2]", self.expr(selector))
                };
                let scratch = match stage.scratch {
                    Some(ty) => format!("{}, ", self.scratch(ty)),
                    None => String::new(),
                };
                let input = self.expr(input);
                let register = self.name(*register);
                self.line(&format!(
                    "({}, {register}) = {function}({block}, {}, {scratch}{input}, {register});",
                    self.name(*target),
                    self.memory_mut(*memory)
                ));
            }
            Stmt::Inexact { source, body } => {
                let ty = self.ty(*source);
                let scratch = self.scratch(ty);
                self.line(&format!(
                    "let sum = block.sum(&{}, {scratch});",
                    self.name(*source)
                ));
                self.open("if sum.to_bits() & 1 == 0 {");
                self.stmts(body);
                self.indent -= 1;
                self.open("} else {");
                self.line("let _ = block.count(&block.threads(|t| t.x() == 0));");
                self.stmts(body);
                self.close("}");
            }
            Stmt::Wrong(text) => self.line(text),
        }
    }

    /// Converts the indices that a closure receives to `u32`.
    fn position(&mut self, position: Position) {
        let vars = match position {
            Position::Index(index) => vec![index],
            Position::RowColumn(row, column) => vec![row, column],
        };
        for var in vars {
            let name = self.name(var);
            self.line(&format!("let {name} = {name} as u32;"));
        }
    }

    fn scratch(&self, ty: Type) -> String {
        let name = ty.name();
        if self.block == "block" {
            format!("&mut *s_{name}")
        } else {
            format!("&mut s_{name}")
        }
    }

    /// Returns the operands and their patterns, and remembers what is behind `&mut`.
    fn operands(&mut self, operands: &[Operand]) -> (Vec<String>, Vec<String>) {
        self.written.clear();
        let mut arguments = Vec::new();
        let mut patterns = Vec::new();
        for operand in operands {
            match operand {
                Operand::Read(var) => {
                    arguments.push(format!("&{}", self.name(*var)));
                    patterns.push(format!("&{}", self.name(*var)));
                }
                Operand::Write(var) => {
                    arguments.push(format!("&mut {}", self.name(*var)));
                    patterns.push(self.name(*var));
                    self.written.insert(*var);
                }
                Operand::Own(Place::Memory(memory)) => {
                    arguments.push(self.memory_mut(*memory));
                    patterns.push(format!("mut m{memory}"));
                }
                Operand::Own(Place::Param(param)) => {
                    arguments.push(format!("&mut x{param}"));
                    patterns.push(format!("mut x{param}"));
                }
            }
        }
        (arguments, patterns)
    }

    fn threads(
        &mut self,
        operands: &[Operand],
        locals: &[(Var, Expr)],
        body: &[ThreadStmt],
        result: Option<&(Var, Expr)>,
    ) {
        let (arguments, patterns) = self.operands(operands);
        let target = match result {
            Some((var, _)) => format!("{} = ", self.name(*var)),
            None => String::new(),
        };
        self.open(&match &arguments[..] {
            [] => format!("{target}block.threads(|t| {{"),
            [one] => format!("{target}block.threads_with({one}, |t, {}| {{", patterns[0]),
            _ => format!(
                "{target}block.threads_with(({}), |t, ({})| {{",
                arguments.join(", "),
                patterns.join(", ")
            ),
        });
        self.locals(locals);
        self.thread_body(body);
        if let Some((_, value)) = result {
            let value = self.expr(value);
            self.line(&value);
        }
        self.close("});");
        self.written.clear();
    }

    fn thread_body(&mut self, stmts: &[ThreadStmt]) {
        for stmt in stmts {
            self.thread_stmt(stmt);
        }
    }

    fn thread_stmt(&mut self, stmt: &ThreadStmt) {
        match stmt {
            ThreadStmt::Assign(var, value) => {
                let value = self.expr(value);
                let star = if self.written.contains(var) { "*" } else { "" };
                self.line(&format!("{star}{} = {value};", self.name(*var)));
            }
            ThreadStmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                self.open(&format!("if {condition} {{"));
                self.thread_body(then);
                if !otherwise.is_empty() {
                    self.indent -= 1;
                    self.open("} else {");
                    self.thread_body(otherwise);
                }
                self.close("}");
            }
            ThreadStmt::For(repeat) => {
                self.open_loop(repeat);
                self.thread_body(&repeat.body);
                self.close("}");
            }
            ThreadStmt::BreakIf(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{ break; }}"));
            }
            ThreadStmt::ContinueIf(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{ continue; }}"));
            }
            ThreadStmt::ReturnIf(condition, value) => {
                let condition = self.expr(condition);
                let value = match value {
                    Some(value) => format!(" {}", self.expr(value)),
                    None => String::new(),
                };
                self.line(&format!("if {condition} {{ return{value}; }}"));
            }
            ThreadStmt::Elements {
                place,
                position,
                element,
                body,
                value,
            } => {
                let element = self.name(*element);
                let is_atomic = self.is_atomic(*place);
                let (start, end) = match position {
                    Position::RowColumn(row, column) => {
                        let (row, column) = (self.name(*row), self.name(*column));
                        let name = self.place(*place);
                        (
                            format!("{name}.for_each(|({row}, {column}), {element}| {{"),
                            "});",
                        )
                    }
                    Position::Index(index) => (
                        format!(
                            "for ({}, {element}) in {} {{",
                            self.name(*index),
                            self.elements(*place)
                        ),
                        "}",
                    ),
                };
                self.open(&start);
                self.position(*position);
                if is_atomic {
                    self.line(&format!("let {element} = {element}.get_mut();"));
                }
                self.thread_body(body);
                let value = self.expr(value);
                self.line(&format!("*{element} = {value};"));
                self.close(end);
            }
            ThreadStmt::First {
                place,
                element,
                value,
            } => {
                let element = self.name(*element);
                let first = match place {
                    Place::Param(param) if self.program.block.is_none() => {
                        format!("x{param}.get(&t)")
                    }
                    _ => format!("{}.first()", self.place(*place)),
                };
                self.open(&format!("if let Some({element}) = {first} {{"));
                if self.is_atomic(*place) {
                    self.line(&format!("let {element} = {element}.get_mut();"));
                }
                let value = self.expr(value);
                self.line(&format!("*{element} = {value};"));
                self.close("}");
            }
            ThreadStmt::Stride {
                is_grid,
                var,
                len,
                limit,
                body,
            } => {
                let name = self.name(*var);
                let method = if *is_grid {
                    "grid_stride"
                } else {
                    "block_stride"
                };
                let len = self.expr(len);
                self.open(&format!(
                    "for {name} in t.{method}(({len} % {limit}) as usize) {{"
                ));
                self.line(&format!("let {name} = {name} as u32;"));
                self.thread_body(body);
                self.close("}");
            }
            ThreadStmt::Atomic {
                place,
                index,
                value,
                ordering,
                is_exchange,
            } => self.atomic(*place, index, value, ordering, *is_exchange),
        }
    }

    fn is_atomic(&self, place: Place) -> bool {
        match place {
            Place::Memory(memory) => matches!(
                self.program.memories[memory].kind,
                MemoryKind::Atomics { .. }
            ),
            Place::Param(_) => false,
        }
    }

    fn place(&self, place: Place) -> String {
        match place {
            Place::Memory(memory) => format!("m{memory}"),
            Place::Param(param) => format!("x{param}"),
        }
    }

    /// Returns an iterator over indices and elements.
    fn elements(&self, place: Place) -> String {
        let is_element_wise = self.program.block.is_none();
        match place {
            Place::Memory(memory) => format!("m{memory}"),
            Place::Param(param) => match self.program.params[param] {
                Param::Chunk(..) if is_element_wise => {
                    format!("x{param}.get(&t).iter_mut().enumerate()")
                }
                Param::Chunk(..) => format!("x{param}.iter_mut().enumerate()"),
                _ if is_element_wise => format!("x{param}.iter_mut(&t)"),
                // The two forms take turns.
                _ if param % 2 == 0 => format!("x{param}.iter_mut()"),
                _ => format!("x{param}"),
            },
        }
    }

    fn atomic(
        &mut self,
        place: Place,
        index: &Expr,
        value: &Expr,
        ordering: &str,
        is_exchange: bool,
    ) {
        let update = match place {
            Place::Memory(memory) => match self.program.memories[memory].kind {
                MemoryKind::Atomics { update, .. } => update,
                _ => panic!("memory {memory} is not atomic"),
            },
            Place::Param(param) => match self.program.params[param] {
                Param::Atomics { update, .. } => update,
                _ => panic!("parameter {param} is not atomic"),
            },
        };
        let name = self.place(place);
        let index = self.expr(index);
        let value = self.expr(value);
        let thread = match () {
            () if self.program.block.is_none() => "&t",
            () => "t",
        };
        let place = format!("{name}[{index} as usize % {name}.len()]");
        if is_exchange {
            let combined = apply(update, "current", "value", None);
            self.open("{");
            self.line(&format!("let value = {value};"));
            self.line(&format!("let place = &{place};"));
            self.line(&format!("let mut current = place.load({thread}, Relaxed);"));
            self.line(&format!(
                "while let Err(previous) = place.compare_exchange({thread}, current, {combined}, {ordering}) {{ current = previous; }}"
            ));
            self.close("}");
            return;
        }
        let method = match update {
            Binary::Add => "fetch_add",
            Binary::And => "fetch_and",
            Binary::Or => "fetch_or",
            Binary::Xor => "fetch_xor",
            Binary::Min => "fetch_min",
            Binary::Max => "fetch_max",
            _ => panic!("{update:?} is no atomic operation"),
        };
        self.line(&format!("{place}.{method}({thread}, {value}, {ordering});"));
    }

    fn pairs(&mut self, stmts: &[PairStmt]) {
        for stmt in stmts {
            match stmt {
                PairStmt::For(repeat) => {
                    self.open_loop(repeat);
                    self.pairs(&repeat.body);
                    self.close("}");
                }
                PairStmt::Step {
                    exponent,
                    bits,
                    index,
                    low,
                    high,
                    low_value,
                    high_value,
                } => {
                    let exponent = self.expr(exponent);
                    let index = self.name(*index);
                    let low = self.name(*low);
                    let high = self.name(*high);
                    self.open(&format!(
                        "pairs.step(1 << ({exponent} % {bits}), |{index}, {low}, {high}| {{"
                    ));
                    self.line(&format!("let {index} = {index} as u32;"));
                    let low_value = self.expr(low_value);
                    let high_value = self.expr(high_value);
                    self.line(&format!("(*{low}, *{high}) = ({low_value}, {high_value});"));
                    self.close("});");
                }
            }
        }
    }

    fn warp_body(&mut self, stmts: &[WarpStmt]) {
        for stmt in stmts {
            self.warp_stmt(stmt);
        }
    }

    fn warp_stmt(&mut self, stmt: &WarpStmt) {
        match stmt {
            WarpStmt::Assign(var, value) => {
                let value = self.expr(value);
                self.line(&format!("{} = {value};", self.name(*var)));
            }
            WarpStmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                self.open(&format!("if {condition} {{"));
                self.warp_body(then);
                if !otherwise.is_empty() {
                    self.indent -= 1;
                    self.open("} else {");
                    self.warp_body(otherwise);
                }
                self.close("}");
            }
            WarpStmt::For(repeat) => {
                self.open_loop(repeat);
                self.warp_body(&repeat.body);
                self.close("}");
            }
            WarpStmt::Lanes {
                target,
                read,
                written,
                locals,
                body,
                result,
            } => {
                let mut arguments = Vec::new();
                let mut patterns = Vec::new();
                for var in read {
                    arguments.push(format!("&{}", self.name(*var)));
                    patterns.push(format!("&{}", self.name(*var)));
                }
                self.written.clear();
                for var in written {
                    arguments.push(format!("&mut {}", self.name(*var)));
                    patterns.push(self.name(*var));
                    self.written.insert(*var);
                }
                let target = self.name(*target);
                self.open(&match &arguments[..] {
                    [] => format!("{target} = warp.lanes(|t| {{"),
                    [one] => format!("{target} = warp.lanes_with({one}, |t, {}| {{", patterns[0]),
                    _ => format!(
                        "{target} = warp.lanes_with(({}), |t, ({})| {{",
                        arguments.join(", "),
                        patterns.join(", ")
                    ),
                });
                self.locals(locals);
                self.thread_body(body);
                let result = self.expr(result);
                self.line(&result);
                self.close("});");
                self.written.clear();
            }
            WarpStmt::Reduce {
                target,
                source,
                operator,
            } => {
                let call = if *operator == Binary::Add {
                    format!("warp.sum(&{})", self.name(*source))
                } else {
                    format!(
                        "warp.reduce(&{}, {})",
                        self.name(*source),
                        combination(*operator, self.ty(*source))
                    )
                };
                self.line(&format!("{} = {call};", self.name(*target)));
            }
            WarpStmt::Broadcast {
                target,
                source,
                lane,
            } => {
                let lane = self.expr(lane);
                self.line(&format!(
                    "{} = warp.broadcast(&{}, {lane} as usize);",
                    self.name(*target),
                    self.name(*source)
                ));
            }
            WarpStmt::Vote {
                target,
                source,
                vote,
            } => {
                let method = match vote {
                    WarpVote::Any => "any",
                    WarpVote::All => "all",
                    WarpVote::Ballot => "ballot",
                };
                self.line(&format!(
                    "{} = (warp.{method}(&{}) as u32);",
                    self.name(*target),
                    self.name(*source)
                ));
            }
            WarpStmt::Shuffle {
                target,
                source,
                shuffle,
            } => {
                let source = self.name(*source);
                let call = match shuffle {
                    Shuffle::Index(lane) => format!(
                        "warp.shuffle(&{source}, &warp.lanes_with(&{}, |_, lane| *lane as usize))",
                        self.name(*lane)
                    ),
                    Shuffle::Xor(mask) => {
                        format!("warp.shuffle_xor(&{source}, {} as usize)", self.expr(mask))
                    }
                    Shuffle::Up(delta) => format!(
                        "warp.shuffle_up(&{source}, {} as usize % 32)",
                        self.expr(delta)
                    ),
                    Shuffle::Down(delta) => format!(
                        "warp.shuffle_down(&{source}, {} as usize % 32)",
                        self.expr(delta)
                    ),
                };
                self.line(&format!("{} = {call};", self.name(*target)));
            }
            WarpStmt::Scan {
                target,
                source,
                operator,
            } => {
                self.line(&format!(
                    "{} = warp.inclusive_scan(&{}, {});",
                    self.name(*target),
                    self.name(*source),
                    combination(*operator, self.ty(*source))
                ));
            }
        }
    }

    fn expr_type(&self, expr: &Expr) -> Type {
        expr_type(self.program, expr)
    }

    /// Returns an expression in parentheses, if it needs them.
    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Literal(value) => value.source(),
            Expr::Var(var) => {
                let name = self.name(*var);
                let is_element = self.program.var(*var).kind == VarKind::Element;
                if is_element || self.written.contains(var) {
                    format!("(*{name})")
                } else {
                    name
                }
            }
            Expr::Builtin(builtin) => {
                let axis = |axis: &usize| ["x", "y", "z"][*axis];
                match builtin {
                    Builtin::BlockIndex(index) => format!("(block.index_{}() as u32)", axis(index)),
                    Builtin::Grid(index) => format!("(block.grid()[{index}] as u32)"),
                    Builtin::ThreadIndex(index) => format!("(t.{}() as u32)", axis(index)),
                    Builtin::IndexInBlock => "(t.index_in_block() as u32)".to_owned(),
                    Builtin::IndexInGrid => "(t.index_in_grid() as u32)".to_owned(),
                    Builtin::ThreadsInGrid => "(t.threads_in_grid() as u32)".to_owned(),
                    Builtin::Lane => "(t.index() as u32)".to_owned(),
                    Builtin::Warp => "(warp.index() as u32)".to_owned(),
                }
            }
            Expr::Len(param) => match self.program.params[*param] {
                Param::Matrix(_) | Param::Row(_) | Param::Tile { .. } => {
                    format!("(x{param}.rows() as u32)")
                }
                _ => format!("(x{param}.len() as u32)"),
            },
            Expr::Unary(operator, operand) => {
                let ty = self.expr_type(operand);
                let x = self.expr(operand);
                let name = ty.name();
                match operator {
                    Unary::Neg if ty.is_float() => format!("(-{x})"),
                    Unary::Neg => format!("{x}.wrapping_neg()"),
                    Unary::Not => format!("(!{x})"),
                    Unary::CountOnes => format!("({x}.count_ones() as {name})"),
                    Unary::LeadingZeros => format!("({x}.leading_zeros() as {name})"),
                    Unary::TrailingZeros => format!("({x}.trailing_zeros() as {name})"),
                    Unary::ReverseBits => format!("{x}.reverse_bits()"),
                    Unary::SwapBytes => format!("{x}.swap_bytes()"),
                    Unary::Abs => format!("{x}.abs()"),
                    Unary::Sqrt => format!("Float::sqrt({x})"),
                    Unary::Floor => format!("Float::floor({x})"),
                    Unary::Ceil => format!("Float::ceil({x})"),
                    Unary::Trunc => format!("Float::trunc({x})"),
                    Unary::RoundTiesEven => format!("Float::round_ties_even({x})"),
                    Unary::Digest => match ty {
                        Type::F32 => format!("digest_f32({x})"),
                        Type::F64 => format!("digest_f64({x})"),
                        Type::I32 => format!("({x} as u32 as u64)"),
                        _ => format!("({x} as u64)"),
                    },
                }
            }
            Expr::Binary(operator, left, right) => apply(
                *operator,
                &self.expr(left),
                &self.expr(right),
                Some(self.expr_type(left)),
            ),
            Expr::MulAdd(operands) => {
                let [x, a, b] = operands.each_ref().map(|operand| self.expr(operand));
                format!("Float::mul_add({x}, {a}, {b})")
            }
            Expr::Select(operands) => {
                let [condition, then, otherwise] =
                    operands.each_ref().map(|operand| self.expr(operand));
                format!("(if {condition} {{ {then} }} else {{ {otherwise} }})")
            }
            Expr::Cast(ty, operand) => {
                format!("({} as {})", self.cast_operand(operand, *ty), ty.name())
            }
            Expr::Slice(param, index, default) => format!(
                "x{param}.get({} as usize).copied().unwrap_or({})",
                self.expr(index),
                default.source()
            ),
            Expr::Matrix(param, position) => {
                let [row, column] = position.each_ref().map(|index| self.expr(index));
                format!(
                    "x{param}.get({row} as usize, {column} as usize).copied().unwrap_or_default()"
                )
            }
            Expr::View(memory, position) => {
                let [first, second] = position.each_ref().map(|index| self.expr(index));
                match self.program.memories[*memory].kind {
                    MemoryKind::Tile { rows, columns, .. } => format!(
                        "m{memory}[{first} as usize % {rows}][{second} as usize % {columns}]"
                    ),
                    MemoryKind::Array(len) => format!("m{memory}[{first} as usize % {len}]"),
                    _ => format!("m{memory}[{first} as usize % m{memory}.len()]"),
                }
            }
            Expr::Load(memory, index) => {
                let MemoryKind::Atomics { len, .. } = self.program.memories[*memory].kind else {
                    panic!("memory {memory} is not atomic");
                };
                format!(
                    "m{memory}[{} as usize % {len}].load(t, Relaxed)",
                    self.expr(index)
                )
            }
            Expr::Call {
                function,
                constant,
                arguments,
            } => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|argument| self.expr(argument))
                    .collect();
                format!("f{function}::<{constant}>({})", arguments.join(", "))
            }
        }
    }

    /// A condition is cast to a float by way of an integer.
    fn cast_operand(&self, operand: &Expr, ty: Type) -> String {
        let text = self.expr(operand);
        if self.expr_type(operand) == Type::Bool && ty.is_float() {
            format!("({text} as u32)")
        } else {
            text
        }
    }
}

/// Returns an operation on two expressions. `None` is an integer type.
fn apply(operator: Binary, a: &str, b: &str, ty: Option<Type>) -> String {
    let is_float = ty.is_some_and(Type::is_float);
    let is_bool = ty == Some(Type::Bool);
    match operator {
        Binary::Add if is_float => format!("({a} + {b})"),
        Binary::Sub if is_float => format!("({a} - {b})"),
        Binary::Mul if is_float => format!("({a} * {b})"),
        Binary::Div if is_float => format!("({a} / {b})"),
        Binary::Min if is_float => format!("({a}.min({b}) + 0.0)"),
        Binary::Max if is_float => format!("({a}.max({b}) + 0.0)"),
        // Overflow wraps in kernels.
        Binary::Add => format!("({a} + {b})"),
        Binary::Sub => format!("({a} - {b})"),
        Binary::Mul => format!("{a}.wrapping_mul({b})"),
        Binary::Div => format!("{a}.wrapping_div({b} | 1)"),
        Binary::Rem => format!("{a}.wrapping_rem({b} | 1)"),
        Binary::And if is_bool => format!("({a} && {b})"),
        Binary::Or if is_bool => format!("({a} || {b})"),
        Binary::And => format!("({a} & {b})"),
        Binary::Or => format!("({a} | {b})"),
        Binary::Xor => format!("({a} ^ {b})"),
        Binary::Min => format!("{a}.min({b})"),
        Binary::Max => format!("{a}.max({b})"),
        Binary::Shl => format!("{a}.wrapping_shl({b} as u32)"),
        Binary::Shr => format!("{a}.wrapping_shr({b} as u32)"),
        Binary::RotateLeft => format!("{a}.rotate_left({b} as u32 % 64)"),
        Binary::SaturatingAdd => format!("{a}.saturating_add({b})"),
        Binary::SaturatingSub => format!("{a}.saturating_sub({b})"),
        Binary::Last => format!("(if {b} != 0 {{ {b} }} else {{ {a} }})"),
        Binary::First => format!("(if {a} != 0 {{ {a} }} else {{ {b} }})"),
        Binary::Equal => format!("({a} == {b})"),
        Binary::NotEqual => format!("({a} != {b})"),
        Binary::Less => format!("({a} < {b})"),
        Binary::LessEqual => format!("({a} <= {b})"),
    }
}

fn combination(operator: Binary, ty: Type) -> String {
    format!("|a, b| {}", apply(operator, "a", "b", Some(ty)))
}

/// Returns the type of an expression.
pub(crate) fn expr_type(program: &Program, expr: &Expr) -> Type {
    match expr {
        Expr::Literal(value) => value.ty(),
        Expr::Var(var) => program.var(*var).ty,
        Expr::Builtin(_) | Expr::Len(_) => Type::U32,
        Expr::Unary(Unary::Digest, _) => Type::U64,
        Expr::Unary(_, operand) => expr_type(program, operand),
        Expr::Binary(operator, left, _) => match operator {
            Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessEqual => Type::Bool,
            _ => expr_type(program, left),
        },
        Expr::MulAdd(operands) => expr_type(program, &operands[0]),
        Expr::Select(operands) => expr_type(program, &operands[1]),
        Expr::Cast(ty, _) => *ty,
        Expr::Slice(_, _, default) => default.ty(),
        Expr::Matrix(param, _) => match program.params[*param] {
            Param::Matrix(ty) => ty,
            _ => panic!("parameter {param} is no matrix"),
        },
        Expr::View(memory, _) | Expr::Load(memory, _) => program.memories[*memory].ty,
        Expr::Call { function, .. } => expr_type(program, &program.functions[*function].result),
    }
}
