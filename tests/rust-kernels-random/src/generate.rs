//! Generates programs and their inputs.

use fastrand::Rng;

use crate::interpret::{Argument, Input};
use crate::program::{
    Body, Builtin, Expr, Function, Loop, Memory, MemoryKind, Operand, PairStmt, Param, Place,
    Position, Program, Shuffle, Stage, Stmt, ThreadStmt, Var, VarInfo, VarKind, Vote, WarpOperand,
    WarpStmt, WarpVote,
};
use crate::value::{Binary, Type, Unary, Value};

/// Blocks with whole warps.
const BLOCKS: &[[u32; 3]] = &[
    [32, 1, 1],
    [32, 1, 1],
    [64, 1, 1],
    [64, 1, 1],
    [96, 1, 1],
    [128, 1, 1],
    [160, 1, 1],
    [256, 1, 1],
    [32, 2, 1],
    [16, 4, 1],
    [8, 8, 1],
    [16, 6, 1],
    [4, 4, 4],
    [8, 4, 2],
    [2, 16, 3],
    [1, 64, 1],
];

/// Blocks whose last warp is not full.
const PARTIAL_BLOCKS: &[[u32; 3]] = &[
    [1, 1, 1],
    [7, 1, 1],
    [33, 1, 1],
    [100, 1, 1],
    [5, 3, 1],
    [3, 3, 3],
    [10, 10, 1],
];

/// Operations whose result does not depend on the order of the operands.
const COMMUTATIVE: &[Binary] = &[
    Binary::Add,
    Binary::Add,
    Binary::Mul,
    Binary::Min,
    Binary::Max,
    Binary::And,
    Binary::Or,
    Binary::Xor,
];

/// Operations whose result does not depend on the grouping of the operands.
const ASSOCIATIVE: &[Binary] = &[
    Binary::Add,
    Binary::Mul,
    Binary::Min,
    Binary::Xor,
    // The order of the operands matters to these.
    Binary::Last,
    Binary::Last,
    Binary::First,
    Binary::First,
];

/// Operations of atomic integers.
const UPDATES: &[Binary] = &[
    Binary::Add,
    Binary::Min,
    Binary::Min,
    Binary::Max,
    Binary::Max,
    Binary::And,
    Binary::Or,
    Binary::Xor,
];

const ORDERINGS: &[&str] = &[
    "Relaxed", "Relaxed", "Acquire", "Release", "AcqRel", "SeqCst",
];

/// Generates the program of a seed.
pub(crate) fn program(seed: u64) -> Program {
    let mut generator = Generator::new(Rng::with_seed(seed));
    if generator.rng.u32(0..10) == 0 {
        generator.element_wise();
    } else {
        generator.kernel();
    }
    generator.program
}

/// Generates arguments for a program.
pub(crate) fn input(program: &Program, seed: u64) -> Input {
    let mut rng = Rng::with_seed(seed ^ 0x5eed_0000_0000_0000);
    let mut grid = [rng.u32(1..4), 1, 1];
    let is_line = program.block.is_none()
        || program.params.iter().any(|param| {
            matches!(
                param,
                Param::PerThread(_) | Param::Chunk(..) | Param::PerBlock(_) | Param::Row(_)
            )
        });
    if !is_line {
        grid = [rng.u32(1..3), rng.u32(1..3), 1];
        if !program
            .params
            .iter()
            .any(|param| matches!(param, Param::Tile { .. }))
        {
            grid[2] = rng.u32(1..3);
        }
    }
    let blocks = grid.iter().product::<u32>() as usize;
    let threads = program.threads() * grid[0] as usize;
    let mut arguments = Vec::new();
    for param in &program.params {
        arguments.push(match param {
            Param::Scalar(var) => Argument::Value(random_value(&mut rng, program.var(*var).ty)),
            Param::Slice(ty) => {
                let len = rng.usize(0..300);
                Argument::Buffer(random_values(&mut rng, *ty, len))
            }
            Param::Matrix(ty) => matrix(&mut rng, *ty, 40, 40),
            Param::Atomics { ty, .. } => {
                let len = if *ty == Type::U64 {
                    blocks * program.threads()
                } else {
                    rng.usize(1..20)
                };
                let values = (0..len).map(|_| small_value(&mut rng, *ty)).collect();
                Argument::Buffer(values)
            }
            Param::PerThread(ty) => {
                let len = match rng.u32(0..4) {
                    0 => rng.usize(1..=threads),
                    1 => rng.usize(1..3 * threads),
                    _ => threads,
                };
                Argument::Buffer(random_values(&mut rng, *ty, len))
            }
            Param::Chunk(ty, size) => {
                let len = match rng.u32(0..3) {
                    0 => rng.usize(1..=threads * size),
                    1 => threads * size + 3,
                    _ => threads * size,
                };
                Argument::Buffer(random_values(&mut rng, *ty, len))
            }
            Param::PerBlock(ty) => {
                let len = rng.usize(1..=blocks + 1);
                Argument::Buffer(random_values(&mut rng, *ty, len))
            }
            Param::Row(ty) => matrix(&mut rng, *ty, blocks + 1, 150),
            Param::Tile { ty, rows, columns } => {
                let rows = rows * grid[1] as usize;
                let columns = columns * grid[0] as usize;
                if rng.bool() {
                    matrix(&mut rng, *ty, rows + 3, columns + 3)
                } else {
                    Argument::Matrix {
                        rows: rows as u32,
                        columns: columns as u32,
                        elements: random_values(&mut rng, *ty, rows * columns),
                    }
                }
            }
            Param::Memory(memory) => match program.memories[*memory].kind {
                MemoryKind::Dynamic => Argument::Dynamic(rng.usize(1..200)),
                _ => Argument::None,
            },
            Param::Scratch(_) => Argument::None,
        });
    }
    Input { grid, arguments }
}

fn matrix(rng: &mut Rng, ty: Type, max_rows: usize, max_columns: usize) -> Argument {
    let rows = rng.usize(1..=max_rows);
    let columns = rng.usize(1..=max_columns);
    Argument::Matrix {
        rows: rows as u32,
        columns: columns as u32,
        elements: random_values(rng, ty, rows * columns),
    }
}

fn random_values(rng: &mut Rng, ty: Type, len: usize) -> Vec<Value> {
    (0..len).map(|_| random_value(rng, ty)).collect()
}

fn small_value(rng: &mut Rng, ty: Type) -> Value {
    Value::U32(rng.u32(0..8)).cast(ty)
}

fn random_value(rng: &mut Rng, ty: Type) -> Value {
    if ty.is_float() {
        let value = match rng.u32(0..8) {
            0 => return small_value(rng, ty),
            1 => rng.f64() * 1e6 - 5e5,
            2 => f64::from_bits(rng.u64(0x3f00_0000_0000_0000..0x4100_0000_0000_0000)),
            3 => -f64::from_bits(rng.u64(0x3f00_0000_0000_0000..0x4100_0000_0000_0000)),
            _ => rng.f64() * 2.0 - 1.0,
        };
        return Value::F64(value).cast(ty);
    }
    match rng.u32(0..4) {
        0 => Value::from_bits(ty, rng.u64(..)),
        1 if ty == Type::Bool => Value::Bool(rng.bool()),
        1 => {
            let edges = [0, 1, u64::MAX, 1 << 31, 1 << 63, 0x7fff_ffff, 0x8000_0000];
            Value::from_bits(ty, edges[rng.usize(..edges.len())])
        }
        _ => Value::from_bits(ty, rng.u64(0..100)),
    }
}

/// Which code an expression or a statement is a part of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Level {
    Block,
    Thread,
    Warp,
    Lane,
    /// Code without a token, such as that of functions.
    Plain,
}

/// What atomic numbers are used for between two barriers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Read,
    Update,
}

/// What code can use.
#[derive(Clone, Debug)]
struct Scope {
    level: Level,
    /// Variables of numbers.
    readable: Vec<Var>,
    /// Variables to which statements assign.
    assignable: Vec<Var>,
    registers: Vec<Var>,
    per_warp: Vec<Var>,
    /// Memories that the code owns, and whether they are initialized.
    memories: Vec<(usize, bool)>,
    /// Memories that all threads read.
    views: Vec<(usize, Mode)>,
    scratch: Vec<Type>,
    /// `true` if the parameters of the kernel are visible.
    has_params: bool,
    /// The output of which the code has a row.
    open_row: Option<usize>,
    can_return: bool,
    is_in_loop: bool,
    /// Warps are whole.
    has_warps: bool,
    depth: u32,
}

impl Scope {
    fn new(level: Level) -> Self {
        Self {
            level,
            readable: Vec::new(),
            assignable: Vec::new(),
            registers: Vec::new(),
            per_warp: Vec::new(),
            memories: Vec::new(),
            views: Vec::new(),
            scratch: Vec::new(),
            has_params: true,
            open_row: None,
            can_return: false,
            is_in_loop: false,
            has_warps: false,
            depth: 0,
        }
    }

    /// The scope of a closure within this one.
    fn closure(&self, level: Level) -> Self {
        Self {
            level,
            assignable: Vec::new(),
            registers: Vec::new(),
            per_warp: Vec::new(),
            memories: Vec::new(),
            can_return: false,
            is_in_loop: false,
            ..self.clone()
        }
    }
}

struct Generator {
    rng: Rng,
    program: Program,
    /// The number of statements that may still be generated.
    budget: i32,
}

impl Generator {
    fn new(rng: Rng) -> Self {
        Self {
            rng,
            program: Program {
                block: None,
                vars: Vec::new(),
                params: Vec::new(),
                memories: Vec::new(),
                functions: Vec::new(),
                stages: Vec::new(),
                body: Body::default(),
                locals: Vec::new(),
                thread_body: Vec::new(),
            },
            budget: 0,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.rng.usize(..items.len())]
    }

    fn number_type(&mut self) -> Type {
        // Integers of 32 bits are the most common.
        match self.rng.u32(0..10) {
            0..3 => Type::U32,
            3..5 => Type::I32,
            5 => Type::U64,
            6 => Type::I64,
            7..9 => Type::F32,
            _ => Type::F64,
        }
    }

    fn var(&mut self, kind: VarKind, ty: Type) -> Var {
        self.program.vars.push(VarInfo { kind, ty });
        Var(self.program.vars.len() - 1)
    }

    fn param(&mut self, param: Param) -> usize {
        self.program.params.push(param);
        self.program.params.len() - 1
    }

    fn inputs(&mut self, scope: &mut Scope) {
        for _ in 0..self.rng.u32(0..3) {
            let ty = self.number_type();
            let var = self.var(VarKind::Scalar, ty);
            self.param(Param::Scalar(var));
            scope.readable.push(var);
        }
        for _ in 0..self.rng.u32(0..3) {
            let ty = self.number_type();
            self.param(Param::Slice(ty));
        }
        for _ in 0..self.rng.u32(0..3) {
            let ty = self.number_type();
            self.param(Param::Matrix(ty));
        }
        if self.chance(60) {
            let ty = self.choose(&[Type::U32, Type::I32, Type::I64, Type::F32, Type::F64]);
            let update = if ty.is_float() {
                Binary::Add
            } else {
                self.choose(UPDATES)
            };
            let is_system = self.chance(20);
            self.param(Param::Atomics {
                ty,
                update,
                is_system,
            });
        }
    }

    fn element_wise(&mut self) {
        let mut scope = Scope::new(Level::Thread);
        self.inputs(&mut scope);
        let mut outputs = Vec::new();
        for _ in 0..self.rng.u32(1..4) {
            let ty = self.number_type();
            let param = if self.chance(30) {
                let size = self.rng.usize(1..5);
                Param::Chunk(ty, size)
            } else {
                Param::PerThread(ty)
            };
            outputs.push(self.param(param));
        }
        self.make_functions();
        self.budget = self.rng.i32(3..14);
        self.program.locals = self.new_locals(&mut scope, 3);
        scope.can_return = true;
        let mut body = self.thread_stmts(&scope, None);
        for output in outputs {
            let stmt = self.own_stmt(&scope, Place::Param(output), true, None);
            let position = self.rng.usize(..=body.len());
            body.insert(position, stmt);
        }
        self.program.thread_body = body;
    }

    fn kernel(&mut self) {
        let has_warps = self.chance(85);
        let block = self.choose(if has_warps { BLOCKS } else { PARTIAL_BLOCKS });
        self.program.block = Some(block);
        let mut scope = Scope::new(Level::Block);
        scope.has_warps = has_warps;
        scope.can_return = true;
        self.inputs(&mut scope);
        // Outputs for grids of any shape, along x and y, or along x.
        let is_line = self.chance(75);
        if is_line {
            for _ in 0..self.rng.u32(1..3) {
                let ty = self.number_type();
                let param = match self.rng.u32(0..5) {
                    0 => Param::Chunk(ty, self.rng.usize(1..5)),
                    1 => Param::PerBlock(ty),
                    2 => Param::Row(ty),
                    _ => Param::PerThread(ty),
                };
                self.param(param);
            }
        }
        if block[2] == 1 && self.chance(if is_line { 15 } else { 60 }) {
            let ty = self.number_type();
            let rows = block[1] as usize * self.rng.usize(1..3);
            let columns = block[0] as usize * self.rng.usize(1..3);
            self.param(Param::Tile { ty, rows, columns });
        }
        let digest = if is_line {
            self.param(Param::PerThread(Type::U64))
        } else {
            self.param(Param::Atomics {
                ty: Type::U64,
                update: Binary::Xor,
                is_system: false,
            })
        };
        self.shared(&mut scope);
        self.make_functions();
        self.make_stages(&scope);
        let mut body = Body::default();
        self.variables(&mut scope, &mut body);
        self.budget = self.rng.i32(4..24);
        let mut fills = Vec::new();
        for index in 0..scope.memories.len() {
            // Some are initialized later, or not at all.
            if self.chance(85) {
                fills.push(self.fill(&mut scope, index));
            }
        }
        body.stmts = fills;
        let stmts = self.stmts(&mut scope);
        body.stmts.extend(stmts);
        body.stmts.extend(self.digest(&scope, digest, is_line));
        self.program.body = body;
    }

    fn shared(&mut self, scope: &mut Scope) {
        for _ in 0..self.rng.u32(0..4) {
            let kind = match self.rng.u32(0..10) {
                0..5 => {
                    let len = self.choose(&[1, 7, 32, 64, 100, 128, 130, 256, 300]);
                    MemoryKind::Array(len)
                }
                5..7 => {
                    let rows = self.choose(&[1, 4, 8, 16, 17]);
                    let columns = self.choose(&[1, 8, 16, 31, 32]);
                    let padding = self.choose(&[0, 1, 3]);
                    MemoryKind::Tile {
                        rows,
                        columns,
                        padding,
                    }
                }
                7..9 => {
                    let len = self.choose(&[1, 5, 16, 64]);
                    let update = self.choose(UPDATES);
                    MemoryKind::Atomics { len, update }
                }
                _ => MemoryKind::Dynamic,
            };
            let has_dynamic = self
                .program
                .memories
                .iter()
                .any(|memory| matches!(memory.kind, MemoryKind::Dynamic));
            if matches!(kind, MemoryKind::Dynamic) && has_dynamic {
                continue;
            }
            let mut ty = self.number_type();
            let matrix = self.program.params.iter().find_map(|param| match param {
                Param::Matrix(ty) => Some(*ty),
                _ => None,
            });
            if let (MemoryKind::Tile { .. }, Some(matrix)) = (kind, matrix)
                && self.chance(60)
            {
                // A matrix can be copied to the tile.
                ty = matrix;
            }
            let mut kind = kind;
            if let MemoryKind::Atomics { update, .. } = &mut kind
                && ty.is_float()
            {
                *update = Binary::Add;
            }
            if matches!(kind, MemoryKind::Atomics { .. }) && self.chance(50) {
                ty = Type::U32;
            }
            let memory = self.memory(ty, kind, false);
            self.param(Param::Memory(memory));
            scope.memories.push((memory, false));
        }
        if scope.has_warps {
            for ty in Type::NUMBERS {
                if self.chance(40) {
                    self.param(Param::Scratch(ty));
                    scope.scratch.push(ty);
                }
            }
        }
    }

    fn memory(&mut self, ty: Type, kind: MemoryKind, is_reference: bool) -> usize {
        self.program.memories.push(Memory {
            ty,
            kind,
            is_reference,
        });
        self.program.memories.len() - 1
    }

    /// Declares the variables of code of a block.
    fn variables(&mut self, scope: &mut Scope, body: &mut Body) {
        for _ in 0..self.rng.u32(2..5) {
            let ty = self.number_type();
            let value = self.expr(scope, ty, 2);
            let var = self.var(VarKind::Uniform, ty);
            body.uniforms.push((var, value));
            scope.readable.push(var);
            scope.assignable.push(var);
        }
        if scope.has_params {
            // Closures cannot use the block.
            let var = self.var(VarKind::Uniform, Type::U32);
            body.uniforms
                .push((var, Expr::Builtin(Builtin::BlockIndex(0))));
            scope.readable.push(var);
            scope.assignable.push(var);
        }
        for _ in 0..self.rng.u32(2..6) {
            let ty = if self.chance(20) {
                Type::Bool
            } else if !scope.scratch.is_empty() && self.chance(50) {
                let scratch = scope.scratch.clone();
                self.choose(&scratch)
            } else {
                self.number_type()
            };
            let var = self.var(VarKind::Register, ty);
            body.registers.push(var);
            scope.registers.push(var);
        }
        if scope.has_warps && self.chance(25) {
            let ty = self.number_type();
            let var = self.var(VarKind::PerWarp, ty);
            body.per_warp.push(var);
            scope.per_warp.push(var);
        }
    }

    /// Writes a digest of all variables, so that each of them is compared.
    fn digest(&mut self, scope: &Scope, param: usize, is_line: bool) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let mut mix = Expr::Literal(Value::U64(0));
        for var in &scope.readable {
            mix = mixed(mix, Expr::Var(*var));
        }
        for registers in scope.registers.chunks(4) {
            let mut operands: Vec<Operand> =
                registers.iter().map(|var| Operand::Read(*var)).collect();
            let mut mix = std::mem::replace(&mut mix, Expr::Literal(Value::U64(0)));
            for var in registers {
                mix = mixed(mix, Expr::Var(*var));
            }
            let body = if is_line {
                operands.push(Operand::Own(Place::Param(param)));
                let element = self.var(VarKind::Element, Type::U64);
                vec![ThreadStmt::First {
                    place: Place::Param(param),
                    element,
                    value: mixed(mix, Expr::Var(element)),
                }]
            } else {
                vec![ThreadStmt::Atomic {
                    place: Place::Param(param),
                    index: Expr::Builtin(Builtin::IndexInBlock),
                    value: mix,
                    ordering: "Relaxed",
                    is_exchange: false,
                }]
            };
            stmts.push(Stmt::Threads {
                operands,
                locals: Vec::new(),
                body,
                result: None,
            });
        }
        stmts
    }

    // Expressions

    fn literal(&mut self, ty: Type) -> Expr {
        Expr::Literal(random_value(&mut self.rng, ty))
    }

    fn small_literal(&mut self, ty: Type) -> Expr {
        Expr::Literal(small_value(&mut self.rng, ty))
    }

    fn leaf(&mut self, scope: &Scope, ty: Type) -> Expr {
        let mut vars: Vec<Var> = Vec::new();
        for var in &scope.readable {
            if self.program.var(*var).ty == ty {
                vars.push(*var);
            }
        }
        if !vars.is_empty() && self.chance(70) {
            return Expr::Var(self.choose(&vars));
        }
        if ty == Type::U32 && self.chance(60) {
            let is_blocks = self.program.block.is_some();
            let builtins: &[Builtin] = match scope.level {
                Level::Block => &[
                    Builtin::BlockIndex(0),
                    Builtin::BlockIndex(0),
                    Builtin::BlockIndex(1),
                    Builtin::BlockIndex(2),
                    Builtin::Grid(0),
                    Builtin::Grid(1),
                    Builtin::Grid(2),
                ],
                Level::Thread if is_blocks => &[
                    Builtin::IndexInBlock,
                    Builtin::IndexInBlock,
                    Builtin::IndexInGrid,
                    Builtin::ThreadsInGrid,
                    Builtin::ThreadIndex(0),
                    Builtin::ThreadIndex(1),
                    Builtin::ThreadIndex(2),
                ],
                Level::Thread => &[
                    Builtin::IndexInGrid,
                    Builtin::IndexInGrid,
                    Builtin::IndexInBlock,
                    Builtin::ThreadsInGrid,
                ],
                Level::Warp => &[Builtin::Warp],
                Level::Lane => &[Builtin::Lane],
                Level::Plain => &[],
            };
            if !builtins.is_empty() {
                return Expr::Builtin(self.choose(builtins));
            }
            let params = self.params_of(scope, |param| {
                matches!(param, Param::Slice(_) | Param::Matrix(_))
            });
            if !params.is_empty() {
                return Expr::Len(self.choose(&params));
            }
        }
        if self.chance(40) && !scope.readable.is_empty() && ty != Type::Bool {
            let var = self.choose(&scope.readable);
            let from = self.program.var(var).ty;
            if from != ty {
                return Expr::Cast(ty, Box::new(Expr::Var(var)));
            }
        }
        if ty != Type::Bool && self.chance(30) {
            return self.small_literal(ty);
        }
        self.literal(ty)
    }

    fn params_of(&self, scope: &Scope, is_wanted: impl Fn(&Param) -> bool) -> Vec<usize> {
        if !scope.has_params {
            return Vec::new();
        }
        let params = self.program.params.iter().enumerate();
        params
            .filter(|(_, param)| is_wanted(param))
            .map(|(index, _)| index)
            .collect()
    }

    fn condition(&mut self, scope: &Scope) -> Expr {
        self.expr(scope, Type::Bool, 2)
    }

    fn boxed(&mut self, scope: &Scope, ty: Type, depth: u32) -> Box<Expr> {
        Box::new(self.expr(scope, ty, depth))
    }

    fn expr(&mut self, scope: &Scope, ty: Type, depth: u32) -> Expr {
        if depth == 0 || self.chance(20) {
            return self.leaf(scope, ty);
        }
        if ty == Type::Bool {
            return self.boolean(scope, depth);
        }
        match self.rng.u32(0..100) {
            0..45 => {
                let operators: &[Binary] = if ty.is_float() {
                    &[
                        Binary::Add,
                        Binary::Add,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::Mul,
                        Binary::Div,
                        Binary::Min,
                        Binary::Max,
                    ]
                } else {
                    &[
                        Binary::Add,
                        Binary::Add,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::Mul,
                        Binary::Div,
                        Binary::Rem,
                        Binary::And,
                        Binary::Or,
                        Binary::Xor,
                        Binary::Min,
                        Binary::Max,
                        Binary::Shl,
                        Binary::Shr,
                        Binary::RotateLeft,
                        Binary::SaturatingAdd,
                        Binary::SaturatingSub,
                    ]
                };
                let operator = self.choose(operators);
                let left = self.boxed(scope, ty, depth - 1);
                let right = self.boxed(scope, ty, depth - 1);
                Expr::Binary(operator, left, right)
            }
            45..55 => {
                let operators: &[Unary] = if ty.is_float() {
                    &[
                        Unary::Neg,
                        Unary::Abs,
                        Unary::Sqrt,
                        Unary::Floor,
                        Unary::Ceil,
                        Unary::Trunc,
                        Unary::RoundTiesEven,
                    ]
                } else {
                    &[
                        Unary::Neg,
                        Unary::Not,
                        Unary::CountOnes,
                        Unary::LeadingZeros,
                        Unary::TrailingZeros,
                        Unary::ReverseBits,
                        Unary::SwapBytes,
                    ]
                };
                let operator = self.choose(operators);
                Expr::Unary(operator, self.boxed(scope, ty, depth - 1))
            }
            55..62 => {
                let from = self.number_type();
                let operand = self.boxed(scope, from, depth - 1);
                Expr::Cast(ty, operand)
            }
            62..68 => Expr::Select(Box::new([
                self.expr(scope, Type::Bool, depth - 1),
                self.expr(scope, ty, depth - 1),
                self.expr(scope, ty, depth - 1),
            ])),
            68..72 if ty.is_float() => Expr::MulAdd(Box::new([
                self.expr(scope, ty, depth - 1),
                self.expr(scope, ty, depth - 1),
                self.expr(scope, ty, depth - 1),
            ])),
            72..94 => self.read(scope, ty, depth),
            _ => self.call(scope, ty, depth),
        }
    }

    fn boolean(&mut self, scope: &Scope, depth: u32) -> Expr {
        match self.rng.u32(0..10) {
            0 => {
                let operator = self.choose(&[Binary::And, Binary::Or, Binary::Xor]);
                let left = self.boxed(scope, Type::Bool, depth - 1);
                let right = self.boxed(scope, Type::Bool, depth - 1);
                Expr::Binary(operator, left, right)
            }
            1 => Expr::Unary(Unary::Not, self.boxed(scope, Type::Bool, depth - 1)),
            2..5 => {
                // One of a few numbers, so that both values are common.
                let ty = self.choose(&Type::INTEGERS);
                let number = self.boxed(scope, ty, depth - 1);
                let modulus = Expr::Literal(Value::U32(self.rng.u32(1..4)).cast(ty));
                let remainder = Expr::Binary(Binary::And, number, Box::new(modulus));
                let zero = Expr::Literal(Value::zero(ty));
                Expr::Binary(Binary::Equal, Box::new(remainder), Box::new(zero))
            }
            _ => {
                let operator = self.choose(&[
                    Binary::Equal,
                    Binary::NotEqual,
                    Binary::Less,
                    Binary::LessEqual,
                    Binary::Less,
                ]);
                let ty = self.number_type();
                let left = self.boxed(scope, ty, depth - 1);
                let right = self.boxed(scope, ty, depth - 1);
                Expr::Binary(operator, left, right)
            }
        }
    }

    /// A read of memory, of any type.
    fn read(&mut self, scope: &Scope, ty: Type, depth: u32) -> Expr {
        let mut reads = Vec::new();
        let has_thread = matches!(scope.level, Level::Thread | Level::Lane);
        for (memory, mode) in &scope.views {
            let is_atomic = matches!(
                self.program.memories[*memory].kind,
                MemoryKind::Atomics { .. }
            );
            if *mode == Mode::Read && (!is_atomic || has_thread) {
                // Views are the most interesting.
                for _ in 0..3 {
                    reads.push(Place::Memory(*memory));
                }
            }
        }
        for param in self.params_of(scope, |param| {
            matches!(param, Param::Slice(_) | Param::Matrix(_))
        }) {
            reads.push(Place::Param(param));
        }
        if reads.is_empty() {
            return self.leaf(scope, ty);
        }
        let index = self.expr(scope, Type::U32, depth - 1);
        let (read, from) = match self.choose(&reads) {
            Place::Memory(memory) => {
                let Memory { ty, kind, .. } = self.program.memories[memory];
                let read = match kind {
                    MemoryKind::Atomics { .. } => Expr::Load(memory, Box::new(index)),
                    MemoryKind::Tile { .. } => {
                        let second = self.expr(scope, Type::U32, depth - 1);
                        Expr::View(memory, Box::new([index, second]))
                    }
                    _ => {
                        let zero = Expr::Literal(Value::U32(0));
                        Expr::View(memory, Box::new([index, zero]))
                    }
                };
                (read, ty)
            }
            Place::Param(param) => match self.program.params[param] {
                Param::Slice(ty) => {
                    let modulus = self.choose(&[8, 64, 320]);
                    let index = Expr::Binary(
                        Binary::And,
                        Box::new(index),
                        Box::new(Expr::Literal(Value::U32(modulus - 1))),
                    );
                    let default = random_value(&mut self.rng, ty);
                    (Expr::Slice(param, Box::new(index), default), ty)
                }
                Param::Matrix(ty) => {
                    let mask = Expr::Literal(Value::U32(31));
                    let row = Expr::Binary(Binary::And, Box::new(index), Box::new(mask.clone()));
                    let column = self.boxed(scope, Type::U32, depth - 1);
                    let column = Expr::Binary(Binary::And, column, Box::new(mask));
                    (Expr::Matrix(param, Box::new([row, column])), ty)
                }
                _ => return self.leaf(scope, ty),
            },
        };
        if from == ty {
            read
        } else {
            Expr::Cast(ty, Box::new(read))
        }
    }

    fn call(&mut self, scope: &Scope, ty: Type, depth: u32) -> Expr {
        if self.program.functions.is_empty() {
            return self.leaf(scope, ty);
        }
        let function = self.rng.usize(..self.program.functions.len());
        let mut arguments = Vec::new();
        for var in self.program.functions[function].params.clone() {
            arguments.push(self.expr(scope, self.program.var(var).ty, depth - 1));
        }
        let call = Expr::Call {
            function,
            constant: self.rng.u32(0..9),
            arguments,
        };
        let from = crate::print::expr_type(&self.program, &call);
        if from == ty {
            call
        } else {
            Expr::Cast(ty, Box::new(call))
        }
    }

    /// A small integer, with which sums of floats are exact.
    fn exact(&mut self, scope: &Scope, ty: Type) -> Expr {
        if !ty.is_float() {
            return self.expr(scope, ty, 2);
        }
        let number = self.boxed(scope, Type::U32, 2);
        let mask = Box::new(Expr::Literal(Value::U32(15)));
        Expr::Cast(ty, Box::new(Expr::Binary(Binary::And, number, mask)))
    }

    // Functions

    fn make_functions(&mut self) {
        for _ in 0..self.rng.u32(0..3) {
            let mut scope = Scope::new(Level::Plain);
            scope.has_params = false;
            let constant = self.var(VarKind::Constant, Type::U32);
            scope.readable.push(constant);
            let mut params = Vec::new();
            for _ in 0..self.rng.u32(1..4) {
                let ty = self.number_type();
                let var = self.var(VarKind::Local, ty);
                params.push(var);
                scope.readable.push(var);
                scope.assignable.push(var);
            }
            let locals = self.new_locals(&mut scope, 2);
            self.budget = self.rng.i32(0..5);
            scope.can_return = true;
            let ty = self.number_type();
            let body = self.thread_stmts(&scope, Some(ty));
            let result = self.typed(&scope, ty);
            let is_inlined = self.chance(60);
            self.program.functions.push(Function {
                constant,
                params,
                locals,
                body,
                result,
                is_inlined,
            });
        }
    }

    /// An expression of a type. A leaf could be a literal, of which the type is known too.
    fn typed(&mut self, scope: &Scope, ty: Type) -> Expr {
        self.expr(scope, ty, 3)
    }

    fn make_stages(&mut self, kernel: &Scope) {
        for _ in 0..2 {
            let memories: Vec<usize> = kernel.memories.iter().map(|(memory, _)| *memory).collect();
            if memories.is_empty() || !self.chance(30) {
                continue;
            }
            let like = self.choose(&memories);
            let Memory { ty, kind, .. } = self.program.memories[like];
            let memory = self.memory(ty, kind, true);
            let scratch = if kernel.scratch.is_empty() {
                None
            } else {
                Some(self.choose(&kernel.scratch))
            };
            let input_type = self.number_type();
            let input = self.var(VarKind::Local, input_type);
            let register_type = scratch.unwrap_or(Type::U32);
            let register = self.var(VarKind::Register, register_type);
            let result_type = self.number_type();
            let variants = if self.chance(40) { 2 } else { 1 };
            let mut bodies = Vec::new();
            for _ in 0..variants {
                let mut scope = Scope::new(Level::Block);
                scope.has_params = false;
                scope.has_warps = kernel.has_warps;
                scope.readable.push(input);
                scope.memories.push((memory, true));
                scope.scratch.extend(scratch);
                let mut body = Body::default();
                self.variables(&mut scope, &mut body);
                scope.registers.push(register);
                self.budget = self.rng.i32(2..9);
                body.stmts = self.stmts(&mut scope);
                let result = self.typed(&scope, result_type);
                bodies.push((body, result));
            }
            let is_inlined = self.chance(50);
            // A table of function pointers has one type.
            let is_generic = variants == 1 && self.chance(40);
            self.program.stages.push(Stage {
                memory,
                scratch,
                input,
                register,
                is_inlined,
                is_generic,
                bodies,
            });
        }
    }

    // Code of the block

    fn stmts(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let count = self.rng.u32(1..=if scope.depth == 0 { 14 } else { 5 });
        for _ in 0..count {
            if self.budget <= 0 {
                break;
            }
            self.budget -= 1;
            self.stmt(scope, &mut stmts);
        }
        stmts
    }

    /// A nested list of statements. Memory that is initialized there only counts as uninitialized
    /// afterwards.
    fn nested(&mut self, scope: &Scope, change: impl FnOnce(&mut Scope)) -> Vec<Stmt> {
        let mut inner = scope.clone();
        inner.depth += 1;
        change(&mut inner);
        self.stmts(&mut inner)
    }

    fn stmt(&mut self, scope: &mut Scope, stmts: &mut Vec<Stmt>) {
        let is_shallow = scope.depth < 3;
        match self.rng.u32(0..100) {
            0..10 => {
                if let Some(var) = self.pick(&scope.assignable) {
                    let ty = self.program.var(var).ty;
                    let value = self.expr(scope, ty, 3);
                    stmts.push(Stmt::Assign(var, value));
                }
            }
            10..17 if is_shallow => {
                let condition = self.condition(scope);
                let then = self.nested(scope, |_| ());
                let otherwise = if self.chance(50) {
                    self.nested(scope, |_| ())
                } else {
                    Vec::new()
                };
                stmts.push(Stmt::If(condition, then, otherwise));
            }
            17..24 if is_shallow => {
                let (var, count) = self.loop_header(scope);
                let body = self.nested(scope, |inner| {
                    inner.readable.push(var);
                    inner.is_in_loop = true;
                });
                stmts.push(Stmt::For(Loop {
                    var,
                    count,
                    limit: self.rng.u32(2..5),
                    is_while: self.chance(30),
                    body,
                }));
            }
            24..27 => {
                if scope.is_in_loop {
                    let condition = self.condition(scope);
                    stmts.push(if self.chance(50) {
                        Stmt::BreakIf(condition)
                    } else {
                        Stmt::ContinueIf(condition)
                    });
                } else if scope.can_return && self.chance(25) {
                    let condition = self.condition(scope);
                    stmts.push(Stmt::ReturnIf(condition));
                }
            }
            27..33 => {
                if !scope.memories.is_empty() {
                    let index = self.rng.usize(..scope.memories.len());
                    let fill = self.fill(scope, index);
                    stmts.push(fill);
                }
            }
            33..55 => stmts.push(self.threads(scope)),
            55..70 if is_shallow => self.synced(scope, stmts),
            70..75 => self.reduce(scope, stmts),
            75..80 => self.scan(scope, stmts),
            80..83 => {
                let sources = self.registers_of(scope, Type::Bool);
                let targets = self.vars_of(&scope.assignable, Type::U32);
                if let (Some(source), Some(target)) = (self.pick(&sources), self.pick(&targets)) {
                    let vote = self.choose(&[Vote::Any, Vote::All, Vote::Count]);
                    stmts.push(Stmt::Vote {
                        target,
                        source,
                        vote,
                    });
                }
            }
            83..86 => self.pairs(scope, stmts),
            86..89 => self.output(scope, stmts, is_shallow),
            89..93 if scope.has_warps => stmts.push(self.warps(scope)),
            93..96 if is_shallow => self.copy(scope, stmts),
            96..98 => self.call_stage(scope, stmts),
            98.. if is_shallow => self.inexact(scope, stmts),
            _ => stmts.push(self.threads(scope)),
        }
    }

    fn pick(&mut self, vars: &[Var]) -> Option<Var> {
        if vars.is_empty() {
            return None;
        }
        Some(self.choose(vars))
    }

    fn vars_of(&self, vars: &[Var], ty: Type) -> Vec<Var> {
        let vars = vars.iter().copied();
        vars.filter(|var| self.program.var(*var).ty == ty).collect()
    }

    fn registers_of(&self, scope: &Scope, ty: Type) -> Vec<Var> {
        self.vars_of(&scope.registers, ty)
    }

    fn loop_header(&mut self, scope: &Scope) -> (Var, Expr) {
        let count = if self.chance(50) {
            Expr::Literal(Value::U32(self.rng.u32(1..8)))
        } else {
            self.expr(scope, Type::U32, 2)
        };
        (self.var(VarKind::Number, Type::U32), count)
    }

    /// Fills the memory with an index among those of the scope.
    fn fill(&mut self, scope: &mut Scope, index: usize) -> Stmt {
        let (memory, _) = scope.memories[index];
        let Memory { ty, kind, .. } = self.program.memories[memory];
        let mut inner = scope.closure(Level::Thread);
        let position = self.position(&mut inner, kind);
        let value = if matches!(kind, MemoryKind::Atomics { .. }) {
            self.exact(&inner, ty)
        } else {
            self.expr(&inner, ty, 3)
        };
        scope.memories[index].1 = true;
        Stmt::Fill {
            memory,
            position,
            value,
        }
    }

    fn position(&mut self, scope: &mut Scope, kind: MemoryKind) -> Position {
        let first = self.var(VarKind::Number, Type::U32);
        scope.readable.push(first);
        if matches!(kind, MemoryKind::Tile { .. }) {
            let second = self.var(VarKind::Number, Type::U32);
            scope.readable.push(second);
            Position::RowColumn(first, second)
        } else {
            Position::Index(first)
        }
    }

    fn threads(&mut self, scope: &Scope) -> Stmt {
        let mut inner = scope.closure(Level::Thread);
        let mut operands = Vec::new();
        for var in &scope.registers {
            if operands.len() < 4 && self.chance(35) {
                inner.readable.push(*var);
                if self.chance(35) {
                    inner.assignable.push(*var);
                    operands.push(Operand::Write(*var));
                } else {
                    operands.push(Operand::Read(*var));
                }
            }
        }
        let mut owned = Vec::new();
        for (memory, is_initialized) in &scope.memories {
            if *is_initialized && owned.is_empty() && self.chance(40) {
                owned.push((Place::Memory(*memory), true));
            }
        }
        let outputs = self.params_of(scope, |param| {
            matches!(param, Param::PerThread(_) | Param::Chunk(..))
        });
        if !outputs.is_empty() && self.chance(25) {
            owned.push((Place::Param(self.choose(&outputs)), true));
        }
        let locals = self.new_locals(&mut inner, 2);
        let result = if self.chance(70) {
            self.pick(&scope.registers)
        } else {
            None
        };
        let result_type = result.map(|var| self.program.var(var).ty);
        inner.can_return = true;
        let budget = self.budget;
        self.budget = self.rng.i32(0..4);
        let mut body = self.thread_stmts(&inner, result_type);
        for (place, is_initialized) in owned {
            operands.push(Operand::Own(place));
            let stmt = self.own_stmt(&inner, place, is_initialized, result_type);
            let position = self.rng.usize(..=body.len());
            body.insert(position, stmt);
        }
        self.budget = budget;
        let result = result.map(|var| {
            let ty = self.program.var(var).ty;
            (var, self.expr(&inner, ty, 3))
        });
        Stmt::Threads {
            operands,
            locals,
            body,
            result,
        }
    }

    fn new_locals(&mut self, scope: &mut Scope, max: u32) -> Vec<(Var, Expr)> {
        let mut locals = Vec::new();
        for _ in 0..self.rng.u32(0..=max) {
            let ty = self.number_type();
            let value = self.expr(scope, ty, 2);
            let var = self.var(VarKind::Local, ty);
            scope.readable.push(var);
            scope.assignable.push(var);
            locals.push((var, value));
        }
        locals
    }

    fn synced(&mut self, scope: &mut Scope, stmts: &mut Vec<Stmt>) {
        let ready: Vec<usize> = scope
            .memories
            .iter()
            .filter(|(_, is_initialized)| *is_initialized)
            .map(|(memory, _)| *memory)
            .collect();
        if ready.is_empty() {
            return;
        }
        let mut memories = Vec::new();
        for memory in ready {
            if memories.len() < 4 && (memories.is_empty() || self.chance(40)) {
                memories.push(memory);
            }
        }
        let mut modes = Vec::new();
        for memory in &memories {
            let is_atomic = matches!(
                self.program.memories[*memory].kind,
                MemoryKind::Atomics { .. }
            );
            modes.push(if is_atomic && self.chance(60) {
                Mode::Update
            } else {
                Mode::Read
            });
        }
        let names = memories.clone();
        let mut inner = scope.clone();
        inner.depth += 1;
        inner.memories.retain(|(memory, _)| !names.contains(memory));
        inner.views.extend(names.into_iter().zip(modes));
        inner.can_return = false;
        inner.is_in_loop = false;
        let mut body = self.stmts(&mut inner);
        if self.chance(70) {
            // Something that uses the views.
            body.push(self.threads(&inner));
        }
        stmts.push(Stmt::Synced { memories, body });
    }

    /// Returns a register for an operation, after a statement that makes the operation exact.
    fn source(
        &mut self,
        scope: &Scope,
        stmts: &mut Vec<Stmt>,
        ty: Type,
        operator: Binary,
    ) -> Option<Var> {
        let sources = self.registers_of(scope, ty);
        let source = self.pick(&sources)?;
        if ty.is_float() && operator == Binary::Add {
            let inner = scope.closure(Level::Thread);
            let value = self.exact(&inner, ty);
            stmts.push(Stmt::Threads {
                operands: Vec::new(),
                locals: Vec::new(),
                body: Vec::new(),
                result: Some((source, value)),
            });
        }
        Some(source)
    }

    fn operator(&mut self, ty: Type, operators: &[Binary]) -> Binary {
        if ty.is_float() {
            self.choose(&[Binary::Add, Binary::Min, Binary::Max])
        } else {
            self.choose(operators)
        }
    }

    fn reduce(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>) {
        if scope.scratch.is_empty() {
            return;
        }
        let ty = self.choose(&scope.scratch);
        let operator = self.operator(ty, COMMUTATIVE);
        let targets = self.vars_of(&scope.assignable, ty);
        let Some(target) = self.pick(&targets) else {
            return;
        };
        if let Some(source) = self.source(scope, stmts, ty, operator) {
            stmts.push(Stmt::Reduce {
                target,
                source,
                operator,
            });
        }
    }

    fn scan(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>) {
        if scope.scratch.is_empty() {
            return;
        }
        let ty = self.choose(&scope.scratch);
        let operator = self.operator(ty, ASSOCIATIVE);
        let totals = self.vars_of(&scope.assignable, ty);
        let targets = self.registers_of(scope, ty);
        let (Some(total), Some(target)) = (self.pick(&totals), self.pick(&targets)) else {
            return;
        };
        if let Some(source) = self.source(scope, stmts, ty, operator) {
            let identity = if ty.is_float() {
                self.small_literal(ty)
            } else {
                self.expr(scope, ty, 2)
            };
            stmts.push(Stmt::Scan {
                target,
                total,
                source,
                identity,
                operator,
            });
        }
    }

    fn pairs(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>) {
        let mut candidates = Vec::new();
        for (memory, is_initialized) in &scope.memories {
            if let MemoryKind::Array(len) = self.program.memories[*memory].kind
                && *is_initialized
                && len > 1
            {
                candidates.push((*memory, len));
            }
        }
        if candidates.is_empty() {
            return;
        }
        let (memory, len) = self.choose(&candidates);
        let body = self.pair_stmts(scope, memory, len.ilog2() + 1, 2);
        stmts.push(Stmt::Pairs { memory, body });
    }

    fn pair_stmts(&mut self, scope: &Scope, memory: usize, bits: u32, depth: u32) -> Vec<PairStmt> {
        let mut stmts = Vec::new();
        for _ in 0..self.rng.u32(1..4) {
            if depth > 0 && self.chance(30) {
                let (var, count) = self.loop_header(scope);
                let mut inner = scope.clone();
                inner.readable.push(var);
                let body = self.pair_stmts(&inner, memory, bits, depth - 1);
                stmts.push(PairStmt::For(Loop {
                    var,
                    count,
                    limit: bits + 1,
                    is_while: self.chance(50),
                    body,
                }));
                continue;
            }
            let exponent = self.expr(scope, Type::U32, 2);
            let ty = self.program.memories[memory].ty;
            let mut inner = scope.closure(Level::Plain);
            let index = self.var(VarKind::Number, Type::U32);
            let low = self.var(VarKind::Element, ty);
            let high = self.var(VarKind::Element, ty);
            inner.readable.extend([index, low, high]);
            let (low_value, high_value) = if self.chance(40) {
                let low = Box::new(Expr::Var(low));
                let high = Box::new(Expr::Var(high));
                let minimum = Expr::Binary(Binary::Min, low.clone(), high.clone());
                (minimum, Expr::Binary(Binary::Max, low, high))
            } else {
                (self.expr(&inner, ty, 2), self.expr(&inner, ty, 2))
            };
            stmts.push(PairStmt::Step {
                exponent,
                bits,
                index,
                low,
                high,
                low_value,
                high_value,
            });
        }
        stmts
    }

    /// A statement that writes an output of the block.
    fn output(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>, is_shallow: bool) {
        let params = self.params_of(scope, |param| {
            matches!(
                param,
                Param::PerBlock(_) | Param::Row(_) | Param::Tile { .. }
            )
        });
        if params.is_empty() {
            return;
        }
        let param = self.choose(&params);
        match self.program.params[param] {
            Param::PerBlock(ty) => {
                let value = self.expr(scope, ty, 3);
                stmts.push(Stmt::SetPerBlock { param, value });
            }
            Param::Row(ty) if is_shallow && scope.open_row.is_none() => {
                let memory = self.memory(ty, MemoryKind::Row, false);
                let body = self.nested(scope, |inner| {
                    inner.memories.push((memory, true));
                    inner.open_row = Some(param);
                });
                stmts.push(Stmt::Row {
                    param,
                    memory,
                    body,
                });
            }
            Param::Tile { ty, .. } => {
                let mut inner = scope.closure(Level::Plain);
                let position = [(); 6].map(|()| self.var(VarKind::Number, Type::U32));
                inner.readable.extend(position);
                let element = self.var(VarKind::Element, ty);
                inner.readable.push(element);
                let mut operands = Vec::new();
                for var in &scope.registers {
                    if operands.len() < 3 && self.chance(30) {
                        operands.push(Operand::Read(*var));
                        inner.readable.push(*var);
                    }
                }
                let value = self.expr(&inner, ty, 3);
                stmts.push(Stmt::TileOutput {
                    param,
                    position,
                    element,
                    operands,
                    value,
                });
            }
            _ => {}
        }
    }

    fn copy(&mut self, scope: &mut Scope, stmts: &mut Vec<Stmt>) {
        let mut candidates = Vec::new();
        for (memory, _) in &scope.memories {
            let Memory { ty, kind, .. } = self.program.memories[*memory];
            if !matches!(kind, MemoryKind::Tile { .. }) {
                continue;
            }
            for param in self.params_of(
                scope,
                |param| matches!(param, Param::Matrix(of) if *of == ty),
            ) {
                candidates.push((*memory, param));
            }
        }
        if candidates.is_empty() {
            return;
        }
        let (memory, param) = self.choose(&candidates);
        let mask = Box::new(Expr::Literal(Value::U32(31)));
        let row = self.boxed(scope, Type::U32, 2);
        let row = Expr::Binary(Binary::And, row, mask.clone());
        let column = self.boxed(scope, Type::U32, 2);
        let column = Expr::Binary(Binary::And, column, mask);
        let body = self.nested(scope, |inner| {
            inner.memories.retain(|(other, _)| *other != memory);
            inner.can_return = false;
            inner.is_in_loop = false;
        });
        for (other, is_initialized) in &mut scope.memories {
            *is_initialized |= *other == memory;
        }
        stmts.push(Stmt::CopyDuring {
            memory,
            param,
            row,
            column,
            body,
        });
    }

    fn call_stage(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>) {
        if self.program.stages.is_empty() || !scope.has_params {
            return;
        }
        let index = self.rng.usize(..self.program.stages.len());
        let stage = &self.program.stages[index];
        let like = self.program.memories[stage.memory];
        let input_type = self.program.var(stage.input).ty;
        let register_type = self.program.var(stage.register).ty;
        let result_type = crate::print::expr_type(&self.program, &stage.bodies[0].1);
        let mut memories = Vec::new();
        for (memory, is_initialized) in &scope.memories {
            let candidate = self.program.memories[*memory];
            if *is_initialized && candidate.ty == like.ty && same_kind(candidate.kind, like.kind) {
                memories.push(*memory);
            }
        }
        let registers = self.registers_of(scope, register_type);
        let targets = self.vars_of(&scope.assignable, result_type);
        let (Some(register), Some(target)) = (self.pick(&registers), self.pick(&targets)) else {
            return;
        };
        if memories.is_empty() {
            return;
        }
        let memory = self.choose(&memories);
        let input = self.expr(scope, input_type, 2);
        let selector = self.expr(scope, Type::U32, 2);
        stmts.push(Stmt::Call {
            stage: index,
            memory,
            input,
            register,
            selector,
            target,
        });
    }

    fn inexact(&mut self, scope: &Scope, stmts: &mut Vec<Stmt>) {
        for ty in [Type::F32, Type::F64] {
            let registers = self.registers_of(scope, ty);
            let (true, Some(source)) = (scope.scratch.contains(&ty), self.pick(&registers)) else {
                continue;
            };
            let inner = scope.closure(Level::Thread);
            let number = self.boxed(&inner, ty, 1);
            let index = Box::new(Expr::Cast(
                ty,
                Box::new(Expr::Builtin(Builtin::IndexInBlock)),
            ));
            let third = Box::new(Expr::Literal(Value::F64(1.0 / 3.0).cast(ty)));
            let index = Box::new(Expr::Binary(Binary::Mul, index, third));
            let value = Expr::Binary(Binary::Add, number, index);
            stmts.push(Stmt::Threads {
                operands: Vec::new(),
                locals: Vec::new(),
                body: Vec::new(),
                result: Some((source, value)),
            });
            let body = self.nested(scope, |_| ());
            stmts.push(Stmt::Inexact { source, body });
            return;
        }
    }

    // Code of threads

    fn thread_stmts(&mut self, scope: &Scope, result: Option<Type>) -> Vec<ThreadStmt> {
        let mut stmts = Vec::new();
        for _ in 0..self.rng.u32(0..5) {
            if self.budget <= 0 {
                break;
            }
            self.budget -= 1;
            if let Some(stmt) = self.thread_stmt(scope, result) {
                stmts.push(stmt);
            }
        }
        stmts
    }

    fn thread_nested(
        &mut self,
        scope: &Scope,
        result: Option<Type>,
        change: impl FnOnce(&mut Scope),
    ) -> Vec<ThreadStmt> {
        let mut inner = scope.clone();
        inner.depth += 1;
        change(&mut inner);
        self.thread_stmts(&inner, result)
    }

    fn thread_stmt(&mut self, scope: &Scope, result: Option<Type>) -> Option<ThreadStmt> {
        let is_shallow = scope.depth < 4;
        Some(match self.rng.u32(0..100) {
            0..40 => {
                let var = self.pick(&scope.assignable)?;
                let ty = self.program.var(var).ty;
                let value = self.expr(scope, ty, 3);
                ThreadStmt::Assign(var, value)
            }
            40..52 if is_shallow => {
                let condition = self.condition(scope);
                let then = self.thread_nested(scope, result, |_| ());
                let otherwise = self.thread_nested(scope, result, |_| ());
                ThreadStmt::If(condition, then, otherwise)
            }
            52..62 if is_shallow => {
                let (var, count) = self.loop_header(scope);
                let body = self.thread_nested(scope, result, |inner| {
                    inner.readable.push(var);
                    inner.is_in_loop = true;
                });
                ThreadStmt::For(Loop {
                    var,
                    count,
                    limit: self.rng.u32(2..6),
                    is_while: self.chance(30),
                    body,
                })
            }
            62..68 if scope.is_in_loop => {
                let condition = self.condition(scope);
                if self.chance(50) {
                    ThreadStmt::BreakIf(condition)
                } else {
                    ThreadStmt::ContinueIf(condition)
                }
            }
            68..72 if scope.can_return => {
                let condition = self.condition(scope);
                let value = result.map(|ty| self.expr(scope, ty, 2));
                ThreadStmt::ReturnIf(condition, value)
            }
            72..80 if is_shallow && scope.level == Level::Thread => {
                let len = self.expr(scope, Type::U32, 2);
                let var = self.var(VarKind::Number, Type::U32);
                let is_grid = self.chance(50);
                // A thread has few indices, also in a small block.
                let limit = self.rng.u32(2..2 * self.program.threads() as u32 + 8);
                let body = self.thread_nested(scope, result, |inner| {
                    inner.readable.push(var);
                    inner.is_in_loop = true;
                });
                ThreadStmt::Stride {
                    is_grid,
                    var,
                    len,
                    limit,
                    body,
                }
            }
            _ => self.atomic(scope)?,
        })
    }

    fn atomic(&mut self, scope: &Scope) -> Option<ThreadStmt> {
        if !matches!(scope.level, Level::Thread | Level::Lane) {
            return None;
        }
        let mut places = Vec::new();
        for (memory, mode) in &scope.views {
            if *mode == Mode::Update {
                places.push((Place::Memory(*memory), self.program.memories[*memory].ty));
            }
        }
        for param in self.params_of(
            scope,
            |param| matches!(param, Param::Atomics { ty, .. } if *ty != Type::U64),
        ) {
            if let Param::Atomics { ty, .. } = self.program.params[param] {
                places.push((Place::Param(param), ty));
            }
        }
        if places.is_empty() {
            return None;
        }
        let (place, ty) = self.choose(&places);
        Some(ThreadStmt::Atomic {
            place,
            index: self.expr(scope, Type::U32, 2),
            value: self.exact(scope, ty),
            ordering: self.choose(ORDERINGS),
            is_exchange: !ty.is_float() && self.chance(25),
        })
    }

    /// The statement that uses what a thread owns of a memory or an output.
    fn own_stmt(
        &mut self,
        scope: &Scope,
        place: Place,
        is_initialized: bool,
        result: Option<Type>,
    ) -> ThreadStmt {
        let (ty, kind, is_chunk) = match place {
            Place::Memory(memory) => {
                let Memory { ty, kind, .. } = self.program.memories[memory];
                (ty, kind, false)
            }
            Place::Param(param) => match self.program.params[param] {
                Param::Chunk(ty, _) => (ty, MemoryKind::Dynamic, true),
                Param::PerThread(ty) => (ty, MemoryKind::Dynamic, false),
                _ => panic!("parameter {param} is not divided between threads"),
            },
        };
        let is_tile = matches!(kind, MemoryKind::Tile { .. });
        let is_atomic = matches!(kind, MemoryKind::Atomics { .. });
        let mut inner = scope.clone();
        let element = self.var(VarKind::Element, ty);
        let stmt = if !is_tile && !is_chunk && self.chance(50) {
            if is_initialized {
                inner.readable.push(element);
            }
            let value = self.element_value(&inner, ty, is_atomic);
            ThreadStmt::First {
                place,
                element,
                value,
            }
        } else {
            let position = self.position(&mut inner, kind);
            if is_initialized {
                inner.readable.push(element);
            }
            // The code for tiles is a closure.
            inner.is_in_loop = !is_tile;
            inner.can_return &= !is_tile;
            inner.depth += 1;
            let budget = std::mem::replace(&mut self.budget, 2);
            let body = self.thread_stmts(&inner, result);
            self.budget = budget;
            let value = self.element_value(&inner, ty, is_atomic);
            ThreadStmt::Elements {
                place,
                position,
                element,
                body,
                value,
            }
        };
        if self.chance(20) {
            let condition = self.condition(scope);
            return ThreadStmt::If(condition, vec![stmt], Vec::new());
        }
        stmt
    }

    /// Atomic floats remain small, so that their sums are exact.
    fn element_value(&mut self, scope: &Scope, ty: Type, is_atomic: bool) -> Expr {
        if is_atomic {
            self.exact(scope, ty)
        } else {
            self.expr(scope, ty, 3)
        }
    }

    // Code of warps

    fn warps(&mut self, scope: &Scope) -> Stmt {
        let mut inner = scope.closure(Level::Warp);
        // Lanes are `registers` of code of a warp.
        let mut operands = Vec::new();
        for source in scope.registers.iter().chain(&scope.per_warp) {
            if operands.len() < 4 && self.chance(40) {
                let info = self.program.var(*source);
                let is_written = self.chance(30);
                let inside = if info.kind == VarKind::Register {
                    let inside = self.var(VarKind::Lanes, info.ty);
                    inner.registers.push(inside);
                    inside
                } else {
                    let inside = self.var(VarKind::WarpUniform, info.ty);
                    inner.readable.push(inside);
                    inside
                };
                operands.push(WarpOperand {
                    source: *source,
                    inside,
                    is_written,
                });
            }
        }
        let mut locals = Vec::new();
        for _ in 0..self.rng.u32(1..4) {
            let ty = self.number_type();
            let var = self.var(VarKind::Lanes, ty);
            locals.push((var, Value::zero(ty)));
            inner.registers.push(var);
        }
        if self.chance(50) {
            let var = self.var(VarKind::Lanes, Type::Bool);
            locals.push((var, Value::Bool(false)));
            inner.registers.push(var);
        }
        for _ in 0..self.rng.u32(1..4) {
            let ty = self.number_type();
            let var = self.var(VarKind::WarpUniform, ty);
            locals.push((var, Value::zero(ty)));
            inner.readable.push(var);
            inner.assignable.push(var);
        }
        // What is not declared in the closure is written only if it is an operand by `&mut`.
        let fixed: Vec<Var> = operands
            .iter()
            .filter(|operand| !operand.is_written)
            .map(|operand| operand.inside)
            .collect();
        for operand in &operands {
            if operand.is_written && self.program.var(operand.inside).kind == VarKind::WarpUniform {
                inner.assignable.push(operand.inside);
            }
        }
        let budget = std::mem::replace(&mut self.budget, 8);
        let body = self.warp_stmts(&inner, &fixed);
        self.budget = budget;
        let mut targets: Vec<(Var, Var)> = Vec::new();
        for target in &scope.registers {
            for value in &inner.registers {
                if self.program.var(*target).ty == self.program.var(*value).ty {
                    targets.push((*target, *value));
                }
            }
        }
        for target in &scope.per_warp {
            for value in &inner.assignable {
                if self.program.var(*target).ty == self.program.var(*value).ty {
                    targets.push((*target, *value));
                }
            }
        }
        let result = if targets.is_empty() || self.chance(20) {
            None
        } else {
            Some(self.choose(&targets))
        };
        Stmt::Warps {
            operands,
            body,
            locals,
            result,
        }
    }

    fn warp_stmts(&mut self, scope: &Scope, fixed: &[Var]) -> Vec<WarpStmt> {
        let mut stmts = Vec::new();
        for _ in 0..self.rng.u32(2..8) {
            if self.budget <= 0 {
                break;
            }
            self.budget -= 1;
            self.warp_stmt(scope, fixed, &mut stmts);
        }
        stmts
    }

    fn warp_stmt(&mut self, scope: &Scope, fixed: &[Var], stmts: &mut Vec<WarpStmt>) {
        let is_shallow = scope.depth < 4;
        let numbers: Vec<Var> = scope
            .registers
            .iter()
            .copied()
            .filter(|var| self.program.var(*var).ty != Type::Bool)
            .collect();
        let conditions = self.registers_of(scope, Type::Bool);
        match self.rng.u32(0..100) {
            0..25 => {
                if let Some(stmt) = self.lanes(scope, fixed) {
                    stmts.push(stmt);
                }
            }
            25..30 => {
                if let Some(var) = self.pick(&scope.assignable) {
                    let ty = self.program.var(var).ty;
                    let value = self.expr(scope, ty, 2);
                    stmts.push(WarpStmt::Assign(var, value));
                }
            }
            30..38 if is_shallow => {
                let condition = self.condition(scope);
                let mut inner = scope.clone();
                inner.depth += 1;
                let then = self.warp_stmts(&inner, fixed);
                let otherwise = if self.chance(50) {
                    self.warp_stmts(&inner, fixed)
                } else {
                    Vec::new()
                };
                stmts.push(WarpStmt::If(condition, then, otherwise));
            }
            38..44 if is_shallow => {
                let (var, count) = self.loop_header(scope);
                let mut inner = scope.clone();
                inner.depth += 1;
                inner.readable.push(var);
                let body = self.warp_stmts(&inner, fixed);
                stmts.push(WarpStmt::For(Loop {
                    var,
                    count,
                    limit: self.rng.u32(2..4),
                    is_while: self.chance(30),
                    body,
                }));
            }
            44..56 => {
                let Some(source) = self.pick(&numbers) else {
                    return;
                };
                let ty = self.program.var(source).ty;
                let targets = self.vars_of(&scope.assignable, ty);
                let Some(target) = self.pick(&targets) else {
                    return;
                };
                let operator = self.operator(ty, COMMUTATIVE);
                if self.make_exact(scope, fixed, source, operator, stmts) {
                    stmts.push(WarpStmt::Reduce {
                        target,
                        source,
                        operator,
                    });
                }
            }
            56..64 => {
                let Some(source) = self.pick(&numbers) else {
                    return;
                };
                let targets = self.vars_of(&scope.assignable, self.program.var(source).ty);
                if let Some(target) = self.pick(&targets) {
                    let lane = self.expr(scope, Type::U32, 2);
                    stmts.push(WarpStmt::Broadcast {
                        target,
                        source,
                        lane,
                    });
                }
            }
            64..72 => {
                let targets = self.vars_of(&scope.assignable, Type::U32);
                if let (Some(source), Some(target)) = (self.pick(&conditions), self.pick(&targets))
                {
                    let vote = self.choose(&[WarpVote::Any, WarpVote::All, WarpVote::Ballot]);
                    stmts.push(WarpStmt::Vote {
                        target,
                        source,
                        vote,
                    });
                }
            }
            72..88 => {
                let Some(source) = self.pick(&numbers) else {
                    return;
                };
                let Some(target) = self.same_lanes(scope, fixed, source) else {
                    return;
                };
                let lanes = self.registers_of(scope, Type::U32);
                let shuffle = match self.rng.u32(0..4) {
                    0 => match self.pick(&lanes) {
                        Some(lane) => Shuffle::Index(lane),
                        None => return,
                    },
                    1 => Shuffle::Xor(self.expr(scope, Type::U32, 2)),
                    2 => Shuffle::Up(self.expr(scope, Type::U32, 2)),
                    _ => Shuffle::Down(self.expr(scope, Type::U32, 2)),
                };
                stmts.push(WarpStmt::Shuffle {
                    target,
                    source,
                    shuffle,
                });
            }
            _ => {
                let Some(source) = self.pick(&numbers) else {
                    return;
                };
                let Some(target) = self.same_lanes(scope, fixed, source) else {
                    return;
                };
                let ty = self.program.var(source).ty;
                let operator = self.operator(ty, ASSOCIATIVE);
                if self.make_exact(scope, fixed, source, operator, stmts) {
                    stmts.push(WarpStmt::Scan {
                        target,
                        source,
                        operator,
                    });
                }
            }
        }
    }

    /// Returns lanes of the same type, to which code can assign.
    fn same_lanes(&mut self, scope: &Scope, fixed: &[Var], source: Var) -> Option<Var> {
        let mut targets = self.registers_of(scope, self.program.var(source).ty);
        targets.retain(|var| !fixed.contains(var));
        self.pick(&targets)
    }

    /// Makes sums of lanes exact. Returns `false` if code cannot assign to them.
    fn make_exact(
        &mut self,
        scope: &Scope,
        fixed: &[Var],
        source: Var,
        operator: Binary,
        stmts: &mut Vec<WarpStmt>,
    ) -> bool {
        let ty = self.program.var(source).ty;
        if !ty.is_float() || operator != Binary::Add {
            return true;
        }
        if fixed.contains(&source) {
            return false;
        }
        let inner = scope.closure(Level::Lane);
        let result = self.exact(&inner, ty);
        stmts.push(WarpStmt::Lanes {
            target: source,
            read: Vec::new(),
            written: Vec::new(),
            locals: Vec::new(),
            body: Vec::new(),
            result,
        });
        true
    }

    fn lanes(&mut self, scope: &Scope, fixed: &[Var]) -> Option<WarpStmt> {
        let mut targets = scope.registers.clone();
        targets.retain(|var| !fixed.contains(var));
        let target = self.pick(&targets)?;
        let mut inner = scope.closure(Level::Lane);
        let mut read = Vec::new();
        let mut written = Vec::new();
        for var in &scope.registers {
            if read.len() + written.len() < 5 && self.chance(40) {
                inner.readable.push(*var);
                if !fixed.contains(var) && self.chance(25) {
                    inner.assignable.push(*var);
                    written.push(*var);
                } else {
                    read.push(*var);
                }
            }
        }
        let locals = self.new_locals(&mut inner, 1);
        let ty = self.program.var(target).ty;
        inner.can_return = true;
        let budget = std::mem::replace(&mut self.budget, 2);
        let body = self.thread_stmts(&inner, Some(ty));
        self.budget = budget;
        let result = self.expr(&inner, ty, 3);
        Some(WarpStmt::Lanes {
            target,
            read,
            written,
            locals,
            body,
            result,
        })
    }
}

/// Mixes the bits of a value into a digest.
fn mixed(mix: Expr, value: Expr) -> Expr {
    let rotated = Expr::Binary(
        Binary::RotateLeft,
        Box::new(mix),
        Box::new(Expr::Literal(Value::U64(7))),
    );
    Expr::Binary(
        Binary::Xor,
        Box::new(rotated),
        Box::new(Expr::Unary(Unary::Digest, Box::new(value))),
    )
}

/// Returns `true` if memories of these kinds have the same type.
fn same_kind(a: MemoryKind, b: MemoryKind) -> bool {
    match (a, b) {
        (MemoryKind::Array(a), MemoryKind::Array(b)) => a == b,
        (
            MemoryKind::Tile {
                rows,
                columns,
                padding,
            },
            MemoryKind::Tile {
                rows: other_rows,
                columns: other_columns,
                padding: other_padding,
            },
        ) => (rows, columns, padding) == (other_rows, other_columns, other_padding),
        (MemoryKind::Dynamic, MemoryKind::Dynamic) => true,
        (
            MemoryKind::Atomics { len, update },
            MemoryKind::Atomics {
                len: other_len,
                update: other_update,
            },
        ) => len == other_len && update == other_update,
        _ => false,
    }
}
