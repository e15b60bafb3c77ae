//! Executes programs on the host, thread after thread. It knows what the documentation of the model
//! says, and nothing of warps, barriers or caches.

use crate::program::{
    Body, Builtin, Expr, Loop, MemoryKind, PairStmt, Param, Place, Position, Program, Shuffle,
    Stmt, ThreadStmt, Var, VarKind, Vote, WarpStmt, WarpVote,
};
use crate::value::{Binary, Type, Value};

/// The arguments of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) grid: [u32; 3],
    /// An argument for each parameter.
    pub(crate) arguments: Vec<Argument>,
}

/// The argument for a parameter.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Value(Value),
    Buffer(Vec<Value>),
    Matrix {
        rows: u32,
        columns: u32,
        elements: Vec<Value>,
    },
    /// The length of dynamic shared memory.
    Dynamic(usize),
    /// Static shared memory.
    None,
}

impl Argument {
    pub(crate) fn elements(&self) -> &[Value] {
        match self {
            Self::Buffer(elements) | Self::Matrix { elements, .. } => elements,
            _ => &[],
        }
    }

    fn elements_mut(&mut self) -> &mut Vec<Value> {
        match self {
            Self::Buffer(elements) | Self::Matrix { elements, .. } => elements,
            _ => panic!("the argument is no buffer"),
        }
    }
}

/// A program without a defined result, or with too many steps. The generator makes none, but a part
/// of a program can be one.
#[derive(Debug)]
pub(crate) struct Undefined(pub(crate) &'static str);

type Result<T> = std::result::Result<T, Undefined>;

/// The number of expressions and statements after which a program is given up.
const MAX_STEPS: u64 = 50_000_000;

/// Executes a program, and returns the arguments after the launch.
pub(crate) fn run(program: &Program, input: &Input) -> Result<Vec<Argument>> {
    let mut machine = Machine {
        program,
        grid: input.grid,
        arguments: input.arguments.clone(),
        values: vec![None; program.vars.len()],
        threads: vec![Vec::new(); program.vars.len()],
        memories: vec![Vec::new(); program.memories.len()],
        rows: vec![None; program.memories.len()],
        block: [0; 3],
        thread: 0,
        lane: 0,
        warp: 0,
        is_lane: false,
        steps: 0,
    };
    for (param, argument) in program.params.iter().zip(&input.arguments) {
        if let (Param::Scalar(var), Argument::Value(value)) = (param, argument) {
            machine.values[var.0] = Some(*value);
        }
    }
    for z in 0..input.grid[2] {
        for y in 0..input.grid[1] {
            for x in 0..input.grid[0] {
                machine.block = [x, y, z];
                machine.run_block()?;
            }
        }
    }
    Ok(machine.arguments)
}

/// The end of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

struct Machine<'a> {
    program: &'a Program,
    grid: [u32; 3],
    arguments: Vec<Argument>,
    /// Variables with one value at a time.
    values: Vec<Option<Value>>,
    /// Variables with a value for each thread, warp or lane.
    threads: Vec<Vec<Option<Value>>>,
    memories: Vec<Vec<Option<Value>>>,
    /// The start in the argument of a row that a block has.
    rows: Vec<Option<(usize, usize)>>,
    block: [u32; 3],
    /// The running thread in its block.
    thread: usize,
    lane: usize,
    warp: usize,
    /// `true` in code of a warp and of its lanes.
    is_lane: bool,
    steps: u64,
}

/// The result of the code of a thread.
type ThreadFlow = (Flow, Option<Value>);

impl Machine<'_> {
    fn threads_in_block(&self) -> usize {
        self.program.threads()
    }

    fn index_in_grid(&self) -> usize {
        self.block[0] as usize * self.threads_in_block() + self.thread
    }

    fn threads_in_grid(&self) -> usize {
        self.grid[0] as usize * self.threads_in_block()
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Undefined("too many steps"));
        }
        Ok(())
    }

    fn run_block(&mut self) -> Result<()> {
        let program = self.program;
        for memory in &mut self.memories {
            memory.clear();
        }
        for (param, argument) in program.params.iter().zip(&self.arguments) {
            if let Param::Memory(memory) = param {
                let len = match (program.memories[*memory].kind, argument) {
                    (_, Argument::Dynamic(len)) => *len,
                    (kind, _) => memory_len(kind),
                };
                self.memories[*memory] = vec![None; len];
            }
        }
        if program.block.is_some() {
            self.enter(&program.body)?;
            self.stmts(&program.body.stmts)?;
            return Ok(());
        }
        for thread in 0..self.threads_in_block() {
            self.thread = thread;
            self.locals(&program.locals)?;
            self.thread_body(&program.thread_body)?;
        }
        Ok(())
    }

    /// Initializes the variables of a body.
    fn enter(&mut self, body: &Body) -> Result<()> {
        let threads = self.threads_in_block();
        for (var, value) in &body.uniforms {
            self.values[var.0] = Some(self.eval(value)?);
        }
        for var in &body.registers {
            self.threads[var.0] = vec![Some(Value::zero(self.ty(*var))); threads];
        }
        for var in &body.per_warp {
            self.threads[var.0] = vec![Some(Value::zero(self.ty(*var))); threads / 32];
        }
        Ok(())
    }

    fn ty(&self, var: Var) -> Type {
        self.program.var(var).ty
    }

    fn locals(&mut self, locals: &[(Var, Expr)]) -> Result<()> {
        for (var, value) in locals {
            self.values[var.0] = Some(self.eval(value)?);
        }
        Ok(())
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Result<Flow> {
        for stmt in stmts {
            let flow = self.stmt(stmt)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        self.step()?;
        match stmt {
            Stmt::Assign(var, value) => {
                self.values[var.0] = Some(self.eval(value)?);
            }
            Stmt::If(condition, then, otherwise) => {
                let branch = if self.condition(condition)? {
                    then
                } else {
                    otherwise
                };
                return self.stmts(branch);
            }
            Stmt::For(repeat) => {
                return self.repeat(repeat, Self::stmts, |flow| *flow);
            }
            Stmt::BreakIf(condition) => {
                if self.condition(condition)? {
                    return Ok(Flow::Break);
                }
            }
            Stmt::ContinueIf(condition) => {
                if self.condition(condition)? {
                    return Ok(Flow::Continue);
                }
            }
            Stmt::ReturnIf(condition) => {
                if self.condition(condition)? {
                    return Ok(Flow::Return);
                }
            }
            Stmt::Fill {
                memory,
                position,
                value,
            } => {
                for index in 0..self.memory_len(*memory) {
                    self.thread = index % self.threads_in_block();
                    self.bind(*position, *memory, index);
                    let value = self.eval(value)?;
                    self.set_memory(*memory, index, value);
                }
            }
            Stmt::Threads {
                locals,
                body,
                result,
                ..
            } => {
                // A result replaces the register after all threads have run, because they may also
                // read it.
                let mut results = Vec::new();
                for thread in 0..self.threads_in_block() {
                    self.thread = thread;
                    self.locals(locals)?;
                    let (flow, returned) = self.thread_body(body)?;
                    if let Some((_, value)) = result {
                        let value = match returned {
                            Some(value) if flow == Flow::Return => value,
                            _ => self.eval(value)?,
                        };
                        results.push(Some(value));
                    }
                }
                if let Some((target, _)) = result {
                    self.threads[target.0] = results;
                }
            }
            Stmt::Synced { body, .. } => {
                self.stmts(body)?;
            }
            Stmt::Reduce {
                target,
                source,
                operator,
            } => {
                let values = self.all_threads(*source)?;
                self.values[target.0] = combine(&values, *operator)?;
            }
            Stmt::Scan {
                target,
                total,
                source,
                identity,
                operator,
            } => {
                let mut sum = self.eval(identity)?;
                let mut exclusive = Vec::new();
                for value in self.all_threads(*source)? {
                    check_exact(value, *operator)?;
                    exclusive.push(Some(sum));
                    sum = sum.binary(*operator, value);
                }
                self.threads[target.0] = exclusive;
                self.values[total.0] = Some(sum);
            }
            Stmt::Vote {
                target,
                source,
                vote,
            } => {
                let values = self.all_threads(*source)?;
                let count = values.iter().filter(|value| value.as_bool()).count();
                let result = match vote {
                    Vote::Any => u32::from(count > 0),
                    Vote::All => u32::from(count == values.len()),
                    Vote::Count => count as u32,
                };
                self.values[target.0] = Some(Value::U32(result));
            }
            Stmt::Pairs { memory, body } => {
                self.pairs(*memory, body)?;
            }
            Stmt::SetPerBlock { param, value } => {
                let value = self.eval(value)?;
                let index = self.block[0] as usize;
                if let Some(element) = self.arguments[*param].elements_mut().get_mut(index) {
                    *element = value;
                }
            }
            Stmt::Row {
                param,
                memory,
                body,
            } => {
                let Argument::Matrix { rows, columns, .. } = self.arguments[*param] else {
                    panic!("the argument is no matrix");
                };
                if self.block[0] < rows {
                    let start = (self.block[0] * columns) as usize;
                    self.memories[*memory] = self.arguments[*param].elements()
                        [start..start + columns as usize]
                        .iter()
                        .map(|value| Some(*value))
                        .collect();
                    self.rows[*memory] = Some((*param, start));
                    let flow = self.stmts(body)?;
                    self.rows[*memory] = None;
                    return Ok(flow);
                }
            }
            Stmt::TileOutput {
                param,
                position,
                element,
                operands: _,
                value,
            } => self.tile_output(*param, position, *element, value)?,
            Stmt::Warps {
                operands,
                body,
                locals,
                result,
            } => {
                let warps = self.threads_in_block() / 32;
                let mut results = Vec::new();
                self.is_lane = true;
                for warp in 0..warps {
                    self.warp = warp;
                    for operand in operands {
                        if self.is_register(operand.source) {
                            self.threads[operand.inside.0] =
                                self.threads[operand.source.0][32 * warp..32 * warp + 32].to_vec();
                        } else {
                            self.values[operand.inside.0] = self.threads[operand.source.0][warp];
                        }
                    }
                    for (var, value) in locals {
                        if self.program.var(*var).kind == VarKind::Lanes {
                            self.threads[var.0] = vec![Some(*value); 32];
                        } else {
                            self.values[var.0] = Some(*value);
                        }
                    }
                    self.warp_body(body)?;
                    for operand in operands.iter().filter(|operand| operand.is_written) {
                        if self.is_register(operand.source) {
                            let lanes = self.threads[operand.inside.0].clone();
                            self.threads[operand.source.0][32 * warp..32 * warp + 32]
                                .copy_from_slice(&lanes);
                        } else {
                            self.threads[operand.source.0][warp] = self.values[operand.inside.0];
                        }
                    }
                    if let Some((_, value)) = result {
                        if self.program.var(*value).kind == VarKind::Lanes {
                            results.extend_from_slice(&self.threads[value.0]);
                        } else {
                            results.push(self.values[value.0]);
                        }
                    }
                }
                self.is_lane = false;
                if let Some((target, _)) = result {
                    self.threads[target.0] = results;
                }
            }
            Stmt::CopyDuring {
                memory,
                param,
                row,
                column,
                body,
            } => {
                // The copies read memory that nobody writes, so they can come first.
                let first_row = self.eval(row)?.as_u32() as usize;
                let first_column = self.eval(column)?.as_u32() as usize;
                let MemoryKind::Tile { columns, .. } = self.program.memories[*memory].kind else {
                    panic!("memory {memory} is no tile");
                };
                for index in 0..self.memory_len(*memory) {
                    let value = self.matrix(
                        *param,
                        first_row + index / columns,
                        first_column + index % columns,
                    );
                    self.set_memory(*memory, index, value);
                }
                self.stmts(body)?;
            }
            Stmt::Call {
                stage,
                memory,
                input,
                register,
                selector,
                target,
            } => {
                let input = self.eval(input)?;
                let selector = self.eval(selector)?.as_u32() as usize;
                let stage = &self.program.stages[*stage];
                let (body, result) = &stage.bodies[selector % stage.bodies.len()];
                self.memories[stage.memory] = self.memories[*memory].clone();
                self.threads[stage.register.0] = self.threads[register.0].clone();
                self.values[stage.input.0] = Some(input);
                self.enter(body)?;
                self.stmts(&body.stmts)?;
                let result = self.eval(result)?;
                self.memories[*memory] = self.memories[stage.memory].clone();
                self.threads[register.0] = self.threads[stage.register.0].clone();
                self.values[target.0] = Some(result);
            }
            Stmt::Inexact { source, body } => {
                self.all_threads(*source)?;
                return self.stmts(body);
            }
            Stmt::Wrong(_) => return Err(Undefined("a wrong program")),
        }
        Ok(Flow::Next)
    }

    fn is_register(&self, var: Var) -> bool {
        self.program.var(var).kind == VarKind::Register
    }

    /// Runs a loop. `flow` returns the flow of a result.
    fn repeat<S, R: From<Flow>>(
        &mut self,
        repeat: &Loop<S>,
        mut run: impl FnMut(&mut Self, &[S]) -> Result<R>,
        flow: impl Fn(&R) -> Flow,
    ) -> Result<R> {
        let count = self.eval(&repeat.count)?.as_u32() % repeat.limit;
        for round in 0..count {
            let number = if repeat.is_while {
                count - 1 - round
            } else {
                round
            };
            self.values[repeat.var.0] = Some(Value::U32(number));
            let result = run(self, &repeat.body)?;
            match flow(&result) {
                Flow::Break => break,
                Flow::Return => return Ok(result),
                Flow::Next | Flow::Continue => {}
            }
        }
        Ok(Flow::Next.into())
    }

    /// Returns the values of all threads.
    fn all_threads(&self, var: Var) -> Result<Vec<Value>> {
        let values: Option<Vec<Value>> = self.threads[var.0].iter().copied().collect();
        values.ok_or(Undefined("a register without a value"))
    }

    fn tile_output(
        &mut self,
        param: usize,
        position: &[Var; 6],
        element: Var,
        value: &Expr,
    ) -> Result<()> {
        let Param::Tile {
            rows: tile_rows,
            columns: tile_columns,
            ..
        } = self.program.params[param]
        else {
            panic!("parameter {param} is not divided into tiles");
        };
        let Argument::Matrix { rows, columns, .. } = self.arguments[param] else {
            panic!("the argument is no matrix");
        };
        let [threads_x, threads_y, _] = self.program.block.unwrap_or([1; 3]).map(|n| n as usize);
        for row_in_tile in 0..tile_rows {
            for column_in_tile in 0..tile_columns {
                let row = self.block[1] as usize * tile_rows + row_in_tile;
                let column = self.block[0] as usize * tile_columns + column_in_tile;
                if row >= rows as usize || column >= columns as usize {
                    continue;
                }
                self.thread = row_in_tile % threads_y * threads_x + column_in_tile % threads_x;
                let numbers = [
                    row,
                    column,
                    row_in_tile,
                    column_in_tile,
                    row_in_tile / threads_y,
                    column_in_tile / threads_x,
                ];
                for (var, number) in position.iter().zip(numbers) {
                    self.values[var.0] = Some(Value::U32(number as u32));
                }
                let index = row * columns as usize + column;
                self.values[element.0] = Some(self.arguments[param].elements()[index]);
                let value = self.eval(value)?;
                self.arguments[param].elements_mut()[index] = value;
            }
        }
        Ok(())
    }

    fn pairs(&mut self, memory: usize, stmts: &[PairStmt]) -> Result<Flow> {
        for stmt in stmts {
            self.step()?;
            match stmt {
                PairStmt::For(repeat) => {
                    self.repeat(
                        repeat,
                        |machine, body| machine.pairs(memory, body),
                        |flow| *flow,
                    )?;
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
                    let stride = 1_usize << (self.eval(exponent)?.as_u32() % bits);
                    let len = self.memory_len(memory);
                    for first in (0..len).filter(|first| first & stride == 0) {
                        let second = first + stride;
                        if second >= len {
                            continue;
                        }
                        self.values[index.0] = Some(Value::U32(first as u32));
                        self.values[low.0] = self.memories[memory][first];
                        self.values[high.0] = self.memories[memory][second];
                        let low_value = self.eval(low_value)?;
                        let high_value = self.eval(high_value)?;
                        self.set_memory(memory, first, low_value);
                        self.set_memory(memory, second, high_value);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    fn memory_len(&self, memory: usize) -> usize {
        self.memories[memory].len()
    }

    /// Writes an element of memory, also in the output of which it is a row.
    fn set_memory(&mut self, memory: usize, index: usize, value: Value) {
        self.memories[memory][index] = Some(value);
        if let Some((param, start)) = self.rows[memory] {
            self.arguments[param].elements_mut()[start + index] = value;
        }
    }

    fn bind(&mut self, position: Position, memory: usize, index: usize) {
        match position {
            Position::Index(var) => self.values[var.0] = Some(Value::U32(index as u32)),
            Position::RowColumn(row, column) => {
                let MemoryKind::Tile { columns, .. } = self.program.memories[memory].kind else {
                    panic!("memory {memory} is no tile");
                };
                self.values[row.0] = Some(Value::U32((index / columns) as u32));
                self.values[column.0] = Some(Value::U32((index % columns) as u32));
            }
        }
    }

    fn thread_body(&mut self, stmts: &[ThreadStmt]) -> Result<ThreadFlow> {
        for stmt in stmts {
            let result = self.thread_stmt(stmt)?;
            if result.0 != Flow::Next {
                return Ok(result);
            }
        }
        Ok((Flow::Next, None))
    }

    fn thread_stmt(&mut self, stmt: &ThreadStmt) -> Result<ThreadFlow> {
        self.step()?;
        let mut flow = Flow::Next;
        match stmt {
            ThreadStmt::Assign(var, value) => {
                let value = self.eval(value)?;
                self.set_var(*var, value);
            }
            ThreadStmt::If(condition, then, otherwise) => {
                let branch = if self.condition(condition)? {
                    then
                } else {
                    otherwise
                };
                return self.thread_body(branch);
            }
            ThreadStmt::For(repeat) => {
                return self.repeat(repeat, Self::thread_body, |result: &ThreadFlow| result.0);
            }
            ThreadStmt::BreakIf(condition) => {
                if self.condition(condition)? {
                    flow = Flow::Break;
                }
            }
            ThreadStmt::ContinueIf(condition) => {
                if self.condition(condition)? {
                    flow = Flow::Continue;
                }
            }
            ThreadStmt::ReturnIf(condition, value) => {
                if self.condition(condition)? {
                    let value = match value {
                        Some(value) => Some(self.eval(value)?),
                        None => None,
                    };
                    return Ok((Flow::Return, value));
                }
            }
            ThreadStmt::Elements {
                place,
                position,
                element,
                body,
                value,
            } => {
                for (number, index) in self.owned(*place).into_iter().enumerate() {
                    let shown = match self.place_param(*place) {
                        Some(Param::Chunk(..)) => number,
                        _ => index,
                    };
                    match (place, position) {
                        (Place::Memory(memory), _) => self.bind(*position, *memory, index),
                        (_, Position::Index(var)) => {
                            self.values[var.0] = Some(Value::U32(shown as u32));
                        }
                        _ => panic!("only tiles have rows"),
                    }
                    self.values[element.0] = self.load(*place, index);
                    let result = self.thread_body(body)?;
                    match result.0 {
                        Flow::Next => {}
                        Flow::Break => break,
                        Flow::Continue => continue,
                        Flow::Return => return Ok(result),
                    }
                    let value = self.eval(value)?;
                    self.store(*place, index, value);
                }
            }
            ThreadStmt::First {
                place,
                element,
                value,
            } => {
                if let Some(index) = self.owned(*place).first().copied() {
                    self.values[element.0] = self.load(*place, index);
                    let value = self.eval(value)?;
                    self.store(*place, index, value);
                }
            }
            ThreadStmt::Stride {
                is_grid,
                var,
                len,
                limit,
                body,
            } => {
                let len = (self.eval(len)?.as_u32() % limit) as usize;
                let (first, step) = if *is_grid {
                    (self.index_in_grid(), self.threads_in_grid())
                } else {
                    (self.thread, self.threads_in_block())
                };
                for index in (first..len).step_by(step) {
                    self.values[var.0] = Some(Value::U32(index as u32));
                    let result = self.thread_body(body)?;
                    match result.0 {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return => return Ok(result),
                    }
                }
            }
            ThreadStmt::Atomic {
                place,
                index,
                value,
                ..
            } => {
                let index = self.eval(index)?.as_u32() as usize;
                let value = self.eval(value)?;
                let update = match (place, self.place_param(*place)) {
                    (_, Some(Param::Atomics { update, .. })) => update,
                    (Place::Memory(memory), _) => match self.program.memories[*memory].kind {
                        MemoryKind::Atomics { update, .. } => update,
                        _ => panic!("memory {memory} is not atomic"),
                    },
                    _ => panic!("{place:?} is not atomic"),
                };
                let len = match place {
                    Place::Memory(memory) => self.memory_len(*memory),
                    Place::Param(param) => self.arguments[*param].elements().len(),
                };
                check_exact(value, update)?;
                let index = index % len;
                let previous = self
                    .load(*place, index)
                    .ok_or(Undefined("an update of uninitialized memory"))?;
                self.store(*place, index, previous.binary(update, value));
            }
        }
        Ok((flow, None))
    }

    fn place_param(&self, place: Place) -> Option<Param> {
        match place {
            Place::Memory(_) => None,
            Place::Param(param) => Some(self.program.params[param]),
        }
    }

    /// Returns the indices of the elements that the thread owns.
    fn owned(&self, place: Place) -> Vec<usize> {
        match place {
            Place::Memory(memory) => (self.thread..self.memory_len(memory))
                .step_by(self.threads_in_block())
                .collect(),
            Place::Param(param) => {
                let len = self.arguments[param].elements().len();
                match self.program.params[param] {
                    Param::Chunk(_, size) => {
                        let first = self.index_in_grid() * size;
                        (first..(first + size).min(len)).collect()
                    }
                    _ => (self.index_in_grid()..len)
                        .step_by(self.threads_in_grid())
                        .collect(),
                }
            }
        }
    }

    fn load(&self, place: Place, index: usize) -> Option<Value> {
        match place {
            Place::Memory(memory) => self.memories[memory][index],
            Place::Param(param) => Some(self.arguments[param].elements()[index]),
        }
    }

    fn store(&mut self, place: Place, index: usize, value: Value) {
        match place {
            Place::Memory(memory) => self.set_memory(memory, index, value),
            Place::Param(param) => self.arguments[param].elements_mut()[index] = value,
        }
    }

    fn warp_body(&mut self, stmts: &[WarpStmt]) -> Result<Flow> {
        for stmt in stmts {
            self.warp_stmt(stmt)?;
        }
        Ok(Flow::Next)
    }

    fn warp_stmt(&mut self, stmt: &WarpStmt) -> Result<()> {
        self.step()?;
        match stmt {
            WarpStmt::Assign(var, value) => self.values[var.0] = Some(self.eval(value)?),
            WarpStmt::If(condition, then, otherwise) => {
                let branch = if self.condition(condition)? {
                    then
                } else {
                    otherwise
                };
                self.warp_body(branch)?;
            }
            WarpStmt::For(repeat) => {
                self.repeat(repeat, Self::warp_body, |flow| *flow)?;
            }
            WarpStmt::Lanes {
                target,
                locals,
                body,
                result,
                ..
            } => {
                let mut results = Vec::new();
                for lane in 0..32 {
                    self.lane = lane;
                    self.locals(locals)?;
                    let (flow, returned) = self.thread_body(body)?;
                    results.push(Some(match returned {
                        Some(value) if flow == Flow::Return => value,
                        _ => self.eval(result)?,
                    }));
                }
                self.threads[target.0] = results;
            }
            WarpStmt::Reduce {
                target,
                source,
                operator,
            } => {
                let values = self.all_threads(*source)?;
                self.values[target.0] = combine(&values, *operator)?;
            }
            WarpStmt::Broadcast {
                target,
                source,
                lane,
            } => {
                let lane = self.eval(lane)?.as_u32() as usize % 32;
                self.values[target.0] = self.threads[source.0][lane];
            }
            WarpStmt::Vote {
                target,
                source,
                vote,
            } => {
                let mut ballot = 0_u32;
                for (lane, value) in self.all_threads(*source)?.into_iter().enumerate() {
                    ballot |= u32::from(value.as_bool()) << lane;
                }
                self.values[target.0] = Some(Value::U32(match vote {
                    WarpVote::Any => u32::from(ballot != 0),
                    WarpVote::All => u32::from(ballot == u32::MAX),
                    WarpVote::Ballot => ballot,
                }));
            }
            WarpStmt::Shuffle {
                target,
                source,
                shuffle,
            } => {
                let values = self.all_threads(*source)?;
                let lanes: Vec<usize> = match shuffle {
                    Shuffle::Index(var) => self
                        .all_threads(*var)?
                        .into_iter()
                        .map(|lane| lane.as_u32() as usize % 32)
                        .collect(),
                    Shuffle::Xor(mask) => {
                        let mask = self.eval(mask)?.as_u32() as usize % 32;
                        (0..32).map(|lane| lane ^ mask).collect()
                    }
                    Shuffle::Up(delta) => {
                        let delta = self.eval(delta)?.as_u32() as usize % 32;
                        (0..32)
                            .map(|lane: usize| lane.checked_sub(delta).unwrap_or(lane))
                            .collect()
                    }
                    Shuffle::Down(delta) => {
                        let delta = self.eval(delta)?.as_u32() as usize % 32;
                        (0..32)
                            .map(|lane| {
                                if lane + delta < 32 {
                                    lane + delta
                                } else {
                                    lane
                                }
                            })
                            .collect()
                    }
                };
                self.threads[target.0] = lanes.into_iter().map(|lane| Some(values[lane])).collect();
            }
            WarpStmt::Scan {
                target,
                source,
                operator,
            } => {
                let mut sum: Option<Value> = None;
                let mut inclusive = Vec::new();
                for value in self.all_threads(*source)? {
                    check_exact(value, *operator)?;
                    sum = Some(match sum {
                        Some(sum) => sum.binary(*operator, value),
                        None => value,
                    });
                    inclusive.push(sum);
                }
                self.threads[target.0] = inclusive;
            }
        }
        Ok(())
    }

    fn set_var(&mut self, var: Var, value: Value) {
        match self.program.var(var).kind {
            VarKind::Register => self.threads[var.0][self.thread] = Some(value),
            VarKind::Lanes => self.threads[var.0][self.lane] = Some(value),
            _ => self.values[var.0] = Some(value),
        }
    }

    fn matrix(&self, param: usize, row: usize, column: usize) -> Value {
        let (
            Argument::Matrix {
                rows,
                columns,
                elements,
            },
            Param::Matrix(ty),
        ) = (&self.arguments[param], self.program.params[param])
        else {
            panic!("parameter {param} is no matrix");
        };
        if row >= *rows as usize || column >= *columns as usize {
            return Value::zero(ty);
        }
        elements[row * *columns as usize + column]
    }

    fn condition(&mut self, expr: &Expr) -> Result<bool> {
        Ok(self.eval(expr)?.as_bool())
    }

    fn eval(&mut self, expr: &Expr) -> Result<Value> {
        self.step()?;
        Ok(match expr {
            Expr::Literal(value) => *value,
            Expr::Var(var) => {
                let value = match self.program.var(*var).kind {
                    VarKind::Register => self.threads[var.0].get(self.thread).copied().flatten(),
                    VarKind::Lanes => self.threads[var.0].get(self.lane).copied().flatten(),
                    _ => self.values[var.0],
                };
                value.ok_or(Undefined("a variable without a value"))?
            }
            Expr::Builtin(builtin) => {
                let [x, y, _] = self
                    .program
                    .block
                    .unwrap_or([256, 1, 1])
                    .map(|n| n as usize);
                let number = match builtin {
                    Builtin::BlockIndex(axis) => self.block[*axis] as usize,
                    Builtin::Grid(axis) => self.grid[*axis] as usize,
                    Builtin::ThreadIndex(0) => self.thread % x,
                    Builtin::ThreadIndex(1) => self.thread / x % y,
                    Builtin::ThreadIndex(_) => self.thread / (x * y),
                    Builtin::IndexInBlock => self.thread,
                    Builtin::IndexInGrid => self.index_in_grid(),
                    Builtin::ThreadsInGrid => self.threads_in_grid(),
                    Builtin::Lane => self.lane,
                    Builtin::Warp => self.warp,
                };
                Value::U32(number as u32)
            }
            Expr::Len(param) => Value::U32(match &self.arguments[*param] {
                Argument::Matrix { rows, .. } => *rows,
                argument => argument.elements().len() as u32,
            }),
            Expr::Unary(operator, operand) => self.eval(operand)?.unary(*operator),
            Expr::Binary(operator, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                left.binary(*operator, right)
            }
            Expr::MulAdd(operands) => {
                let x = self.eval(&operands[0])?;
                let a = self.eval(&operands[1])?;
                let b = self.eval(&operands[2])?;
                x.mul_add(a, b)
            }
            Expr::Select(operands) => {
                if self.condition(&operands[0])? {
                    self.eval(&operands[1])?
                } else {
                    self.eval(&operands[2])?
                }
            }
            Expr::Cast(ty, operand) => self.eval(operand)?.cast(*ty),
            Expr::Slice(param, index, default) => {
                let index = self.eval(index)?.as_u32() as usize;
                let elements = self.arguments[*param].elements();
                elements.get(index).copied().unwrap_or(*default)
            }
            Expr::Matrix(param, position) => {
                let row = self.eval(&position[0])?.as_u32() as usize;
                let column = self.eval(&position[1])?.as_u32() as usize;
                self.matrix(*param, row, column)
            }
            Expr::View(memory, position) => {
                let first = self.eval(&position[0])?.as_u32() as usize;
                let second = self.eval(&position[1])?.as_u32() as usize;
                let index = match self.program.memories[*memory].kind {
                    MemoryKind::Tile { rows, columns, .. } => {
                        first % rows * columns + second % columns
                    }
                    _ => first % self.memory_len(*memory),
                };
                self.memories[*memory][index].ok_or(Undefined("a read of uninitialized memory"))?
            }
            Expr::Load(memory, index) => {
                let index = self.eval(index)?.as_u32() as usize % self.memory_len(*memory);
                self.memories[*memory][index].ok_or(Undefined("a load of uninitialized memory"))?
            }
            Expr::Call {
                function,
                constant,
                arguments,
            } => {
                let function = &self.program.functions[*function];
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.eval(argument)?);
                }
                for (var, value) in function.params.iter().zip(values) {
                    self.values[var.0] = Some(value);
                }
                self.values[function.constant.0] = Some(Value::U32(*constant));
                self.locals(&function.locals)?;
                let (flow, returned) = self.thread_body(&function.body)?;
                match returned {
                    Some(value) if flow == Flow::Return => value,
                    _ => self.eval(&function.result)?,
                }
            }
        })
    }
}

impl From<Flow> for ThreadFlow {
    fn from(flow: Flow) -> Self {
        (flow, None)
    }
}

/// Returns the number of elements of static memory.
fn memory_len(kind: MemoryKind) -> usize {
    match kind {
        MemoryKind::Array(len) | MemoryKind::Atomics { len, .. } => len,
        MemoryKind::Tile { rows, columns, .. } => rows * columns,
        MemoryKind::Dynamic | MemoryKind::Row => 0,
    }
}

/// Sums of floats have a defined result only if they are exact in every order.
fn check_exact(value: Value, operator: Binary) -> Result<()> {
    let number = match value {
        Value::F32(x) => f64::from(x),
        Value::F64(x) => x,
        _ => return Ok(()),
    };
    if operator == Binary::Add && !(number.fract() == 0.0 && number.abs() <= 16.0) {
        return Err(Undefined("a sum that depends on the order of its terms"));
    }
    Ok(())
}

fn combine(values: &[Value], operator: Binary) -> Result<Option<Value>> {
    let mut combined: Option<Value> = None;
    for value in values {
        check_exact(*value, operator)?;
        combined = Some(match combined {
            Some(combined) => combined.binary(operator, *value),
            None => *value,
        });
    }
    Ok(combined)
}
