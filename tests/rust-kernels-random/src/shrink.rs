//! Reduces programs that fail: statements and expressions are left out for as long as the program
//! still fails in the same way.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::compile::Compiler;
use crate::interpret::{self, Input};
use crate::launch::Outcome;
use crate::print::expr_type;
use crate::program::{Body, Expr, Loop, PairStmt, Program, Shuffle, Stmt, ThreadStmt, WarpStmt};
use crate::search;
use crate::value::Value;

/// The number of candidates that are compiled together.
const BATCH: usize = 48;

/// The time after which a program is small enough.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the smallest program that fails in the same way, and how.
pub(crate) fn reduce(
    compiler: &Compiler,
    mut program: Program,
    input: &Input,
    mut outcome: Outcome,
) -> Result<(Program, Outcome)> {
    let mut first = 0;
    let mut is_reduced = false;
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        let mut candidates = Vec::new();
        let mut edit = first;
        let mut is_last = false;
        while candidates.len() < BATCH {
            let mut candidate = program.clone();
            if !apply(&mut candidate, edit) {
                is_last = true;
                break;
            }
            edit += 1;
            if interpret::run(&candidate, input).is_ok() {
                candidates.push(candidate);
            }
        }
        if candidates.is_empty() {
            if !is_reduced {
                break;
            }
            first = 0;
            is_reduced = false;
            continue;
        }
        let mut best: Option<(usize, Program, Outcome)> = None;
        for (candidate, result) in
            candidates
                .iter()
                .zip(search::outcomes(compiler, &candidates, input)?)
        {
            let Some(result) = result.filter(|result| result.is_like(&outcome)) else {
                continue;
            };
            let size = size(candidate);
            if best.as_ref().is_none_or(|(smallest, ..)| size < *smallest) {
                best = Some((size, candidate.clone(), result));
            }
        }
        match best {
            Some((_, candidate, result)) => {
                program = candidate;
                outcome = result;
                is_reduced = true;
            }
            None if is_last && !is_reduced => break,
            None if is_last => {
                first = 0;
                is_reduced = false;
            }
            None => first = edit,
        }
    }
    Ok((program, outcome))
}

/// The size of the source.
fn size(program: &Program) -> usize {
    crate::print::module(program, "kernel").len()
}

/// Makes one change. Returns `false` if there are fewer changes.
fn apply(program: &mut Program, number: usize) -> bool {
    let types = program.clone();
    let mut editor = Editor {
        types: &types,
        remaining: number,
        is_done: false,
    };
    editor.body(&mut program.body);
    editor.thread_list(&mut program.thread_body);
    for stage in &mut program.stages {
        for (body, result) in &mut stage.bodies {
            editor.body(body);
            editor.expr(result);
        }
    }
    for function in &mut program.functions {
        editor.thread_list(&mut function.body);
        editor.expr(&mut function.result);
        for (_, value) in &mut function.locals {
            editor.expr(value);
        }
    }
    for (_, value) in &mut program.locals {
        editor.expr(value);
    }
    editor.is_done
}

/// Walks through a program, and makes the change with a number.
struct Editor<'a> {
    types: &'a Program,
    remaining: usize,
    is_done: bool,
}

impl Editor<'_> {
    /// Returns `true` for the change that is made.
    fn is_next(&mut self) -> bool {
        if self.is_done {
            return false;
        }
        if self.remaining == 0 {
            self.is_done = true;
            return true;
        }
        self.remaining -= 1;
        false
    }

    /// Removes the second half, the first half, or a single element.
    fn shorten<S>(&mut self, list: &mut Vec<S>) {
        let half = list.len() / 2;
        if half > 1 {
            if self.is_next() {
                list.truncate(half);
                return;
            }
            if self.is_next() {
                list.drain(..half);
                return;
            }
        }
        for index in 0..list.len() {
            if self.is_next() {
                list.remove(index);
                return;
            }
        }
    }

    fn body(&mut self, body: &mut Body) {
        self.list(&mut body.stmts);
        for (_, value) in &mut body.uniforms {
            self.expr(value);
        }
    }

    fn list(&mut self, list: &mut Vec<Stmt>) {
        self.shorten(list);
        let mut index = 0;
        while index < list.len() && !self.is_done {
            if let Stmt::If(_, then, otherwise) = &mut list[index] {
                let branches = [std::mem::take(then), std::mem::take(otherwise)];
                for branch in &branches {
                    if self.is_next() {
                        list.splice(index..=index, branch.iter().cloned());
                        return;
                    }
                }
                let [first, second] = branches;
                if let Stmt::If(_, then, otherwise) = &mut list[index] {
                    *then = first;
                    *otherwise = second;
                }
            }
            self.stmt(&mut list[index]);
            index += 1;
        }
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Assign(_, value)
            | Stmt::BreakIf(value)
            | Stmt::ContinueIf(value)
            | Stmt::ReturnIf(value)
            | Stmt::Fill { value, .. }
            | Stmt::SetPerBlock { value, .. }
            | Stmt::TileOutput { value, .. }
            | Stmt::Scan {
                identity: value, ..
            } => self.expr(value),
            Stmt::If(condition, then, otherwise) => {
                self.list(then);
                self.list(otherwise);
                self.expr(condition);
            }
            Stmt::For(repeat) => {
                self.list(&mut repeat.body);
                self.expr(&mut repeat.count);
            }
            Stmt::Threads {
                locals,
                body,
                result,
                ..
            } => {
                self.thread_list(body);
                if let Some((_, value)) = result {
                    self.expr(value);
                }
                for (_, value) in locals {
                    self.expr(value);
                }
            }
            Stmt::Synced { body, .. } | Stmt::Row { body, .. } | Stmt::Inexact { body, .. } => {
                self.list(body);
            }
            Stmt::CopyDuring {
                row, column, body, ..
            } => {
                self.list(body);
                self.expr(row);
                self.expr(column);
            }
            Stmt::Pairs { body, .. } => self.pair_list(body),
            Stmt::Warps { body, .. } => self.warp_list(body),
            Stmt::Call {
                input, selector, ..
            } => {
                self.expr(input);
                self.expr(selector);
            }
            Stmt::Reduce { .. } | Stmt::Vote { .. } | Stmt::Wrong(_) => {}
        }
    }

    fn repeat<S>(&mut self, repeat: &mut Loop<S>) {
        self.expr(&mut repeat.count);
    }

    fn thread_list(&mut self, list: &mut Vec<ThreadStmt>) {
        self.shorten(list);
        for stmt in list {
            match stmt {
                ThreadStmt::Assign(_, value)
                | ThreadStmt::BreakIf(value)
                | ThreadStmt::ContinueIf(value)
                | ThreadStmt::First { value, .. } => self.expr(value),
                ThreadStmt::ReturnIf(condition, value) => {
                    self.expr(condition);
                    if let Some(value) = value {
                        self.expr(value);
                    }
                }
                ThreadStmt::If(condition, then, otherwise) => {
                    self.thread_list(then);
                    self.thread_list(otherwise);
                    self.expr(condition);
                }
                ThreadStmt::For(repeat) => {
                    self.thread_list(&mut repeat.body);
                    self.repeat(repeat);
                }
                ThreadStmt::Elements { body, value, .. } => {
                    self.thread_list(body);
                    self.expr(value);
                }
                ThreadStmt::Stride { len, body, .. } => {
                    self.thread_list(body);
                    self.expr(len);
                }
                ThreadStmt::Atomic { index, value, .. } => {
                    self.expr(index);
                    self.expr(value);
                }
            }
        }
    }

    fn pair_list(&mut self, list: &mut Vec<PairStmt>) {
        self.shorten(list);
        for stmt in list {
            match stmt {
                PairStmt::For(repeat) => {
                    self.pair_list(&mut repeat.body);
                    self.repeat(repeat);
                }
                PairStmt::Step {
                    exponent,
                    low_value,
                    high_value,
                    ..
                } => {
                    self.expr(exponent);
                    self.expr(low_value);
                    self.expr(high_value);
                }
            }
        }
    }

    fn warp_list(&mut self, list: &mut Vec<WarpStmt>) {
        self.shorten(list);
        for stmt in list {
            match stmt {
                WarpStmt::Assign(_, value) | WarpStmt::Broadcast { lane: value, .. } => {
                    self.expr(value);
                }
                WarpStmt::If(condition, then, otherwise) => {
                    self.warp_list(then);
                    self.warp_list(otherwise);
                    self.expr(condition);
                }
                WarpStmt::For(repeat) => {
                    self.warp_list(&mut repeat.body);
                    self.repeat(repeat);
                }
                WarpStmt::Lanes {
                    locals,
                    body,
                    result,
                    ..
                } => {
                    self.thread_list(body);
                    self.expr(result);
                    for (_, value) in locals {
                        self.expr(value);
                    }
                }
                WarpStmt::Shuffle { shuffle, .. } => match shuffle {
                    Shuffle::Index(_) => {}
                    Shuffle::Xor(value) | Shuffle::Up(value) | Shuffle::Down(value) => {
                        self.expr(value);
                    }
                },
                WarpStmt::Reduce { .. } | WarpStmt::Vote { .. } | WarpStmt::Scan { .. } => {}
            }
        }
    }

    /// Replaces an expression by zero or by a part of the same type. The terms of floating-point
    /// sums remain exact.
    fn expr(&mut self, expr: &mut Expr) {
        if self.is_done || matches!(expr, Expr::Literal(_)) {
            return;
        }
        let ty = expr_type(self.types, expr);
        if self.is_next() {
            *expr = Expr::Literal(Value::zero(ty));
            return;
        }
        let keeps_range = ty.is_float();
        if !keeps_range {
            for child in children(expr) {
                if expr_type(self.types, child) == ty && self.is_next() {
                    *expr = child.clone();
                    return;
                }
            }
        }
        for child in children_mut(expr) {
            // A mask is what makes a number small.
            self.expr(child);
        }
    }
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Literal(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => Vec::new(),
        Expr::Unary(_, operand)
        | Expr::Cast(_, operand)
        | Expr::Slice(_, operand, _)
        | Expr::Load(_, operand) => vec![operand],
        Expr::Binary(_, left, right) => vec![left, right],
        Expr::MulAdd(operands) | Expr::Select(operands) => operands.iter().collect(),
        Expr::Matrix(_, operands) | Expr::View(_, operands) => operands.iter().collect(),
        Expr::Call { arguments, .. } => arguments.iter().collect(),
    }
}

fn children_mut(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Literal(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => Vec::new(),
        Expr::Unary(_, operand)
        | Expr::Cast(_, operand)
        | Expr::Slice(_, operand, _)
        | Expr::Load(_, operand) => vec![operand],
        Expr::Binary(_, left, right) => vec![left, right],
        Expr::MulAdd(operands) | Expr::Select(operands) => operands.iter_mut().collect(),
        Expr::Matrix(_, operands) | Expr::View(_, operands) => operands.iter_mut().collect(),
        Expr::Call { arguments, .. } => arguments.iter_mut().collect(),
    }
}
