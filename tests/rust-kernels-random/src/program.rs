//! The syntax of programs. The printer writes it as a kernel in Rust, and the interpreter executes
//! it.

use crate::value::{Binary, Type, Unary, Value};

/// A variable of a program.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Var(pub(crate) usize);

/// What a variable is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VarKind {
    /// A parameter that is passed by value.
    Scalar,
    /// A variable of code of the block.
    Uniform,
    /// A value of each thread.
    Register,
    /// A value of each warp.
    PerWarp,
    /// A variable of code of a thread, of a lane, or of a function.
    Local,
    /// The variable of a loop, or a number that a closure receives.
    Number,
    /// An element of memory that a thread owns.
    Element,
    /// A variable of code of a warp.
    WarpUniform,
    /// A value of each lane, in code of a warp.
    Lanes,
    /// The constant of a generic function.
    Constant,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VarInfo {
    pub(crate) kind: VarKind,
    pub(crate) ty: Type,
}

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The dimensions of the block; `None` for an element-wise kernel.
    pub(crate) block: Option<[u32; 3]>,
    pub(crate) vars: Vec<VarInfo>,
    pub(crate) params: Vec<Param>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) functions: Vec<Function>,
    pub(crate) stages: Vec<Stage>,
    /// The body of a kernel of blocks.
    pub(crate) body: Body,
    /// The variables and the body of an element-wise kernel.
    pub(crate) locals: Vec<(Var, Expr)>,
    pub(crate) thread_body: Vec<ThreadStmt>,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param {
    Scalar(Var),
    Slice(Type),
    Matrix(Type),
    Atomics {
        ty: Type,
        update: Binary,
        is_system: bool,
    },
    PerThread(Type),
    Chunk(Type, usize),
    PerBlock(Type),
    Row(Type),
    Tile {
        ty: Type,
        rows: usize,
        columns: usize,
    },
    Memory(usize),
    Scratch(Type),
}

/// Memory of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) ty: Type,
    pub(crate) kind: MemoryKind,
    /// A parameter of a stage, behind a reference.
    pub(crate) is_reference: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryKind {
    Array(usize),
    Tile {
        rows: usize,
        columns: usize,
        padding: usize,
    },
    Dynamic,
    /// Atomic numbers, all of which are updated by one operation.
    Atomics {
        len: usize,
        update: Binary,
    },
    /// The row of an output.
    Row,
}

/// The variables and the code of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) uniforms: Vec<(Var, Expr)>,
    pub(crate) registers: Vec<Var>,
    pub(crate) per_warp: Vec<Var>,
    pub(crate) stmts: Vec<Stmt>,
}

/// A function of numbers, with a constant as its generic parameter.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) constant: Var,
    pub(crate) params: Vec<Var>,
    pub(crate) locals: Vec<(Var, Expr)>,
    pub(crate) body: Vec<ThreadStmt>,
    pub(crate) result: Expr,
    pub(crate) is_inlined: bool,
}

/// A function of code of a block. With two bodies, one is chosen at run time by a table of function
/// pointers.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) memory: usize,
    pub(crate) scratch: Option<Type>,
    pub(crate) input: Var,
    pub(crate) register: Var,
    pub(crate) is_inlined: bool,
    pub(crate) is_generic: bool,
    pub(crate) bodies: Vec<(Body, Expr)>,
}

/// A statement of code of a block.
#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Assign(Var, Expr),
    If(Expr, Vec<Self>, Vec<Self>),
    For(Loop<Self>),
    BreakIf(Expr),
    ContinueIf(Expr),
    ReturnIf(Expr),
    Fill {
        memory: usize,
        position: Position,
        value: Expr,
    },
    Threads {
        operands: Vec<Operand>,
        locals: Vec<(Var, Expr)>,
        body: Vec<ThreadStmt>,
        result: Option<(Var, Expr)>,
    },
    Synced {
        memories: Vec<usize>,
        body: Vec<Self>,
    },
    Reduce {
        target: Var,
        source: Var,
        operator: Binary,
    },
    Scan {
        target: Var,
        total: Var,
        source: Var,
        identity: Expr,
        operator: Binary,
    },
    Vote {
        target: Var,
        source: Var,
        vote: Vote,
    },
    Pairs {
        memory: usize,
        body: Vec<PairStmt>,
    },
    SetPerBlock {
        param: usize,
        value: Expr,
    },
    Row {
        param: usize,
        memory: usize,
        body: Vec<Self>,
    },
    TileOutput {
        param: usize,
        /// The row, the column, the row and the column in the tile, and the indices `i` and `j`
        /// among those of the thread.
        position: [Var; 6],
        element: Var,
        operands: Vec<Operand>,
        value: Expr,
    },
    Warps {
        operands: Vec<WarpOperand>,
        body: Vec<WarpStmt>,
        locals: Vec<(Var, Value)>,
        result: Option<(Var, Var)>,
    },
    CopyDuring {
        memory: usize,
        param: usize,
        row: Expr,
        column: Expr,
        body: Vec<Self>,
    },
    Call {
        stage: usize,
        memory: usize,
        input: Expr,
        register: Var,
        selector: Expr,
        target: Var,
    },
    /// Branches on the bits of a sum that depends on the order of its terms. The code of both
    /// branches is the same, except that one of them has another barrier.
    Inexact {
        source: Var,
        body: Vec<Self>,
    },
    /// Text that violates a rule.
    Wrong(String),
}

/// A loop with a bound: the variable counts from 0 up, or down to 0, below `count % limit`.
#[derive(Clone, Debug)]
pub(crate) struct Loop<S> {
    pub(crate) var: Var,
    pub(crate) count: Expr,
    pub(crate) limit: u32,
    pub(crate) is_while: bool,
    pub(crate) body: Vec<S>,
}

/// The index of an element, or its row and column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    Index(Var),
    RowColumn(Var, Var),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Vote {
    Any,
    All,
    Count,
}

/// Memory of which a thread owns a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Memory(usize),
    Param(usize),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operand {
    Read(Var),
    Write(Var),
    Own(Place),
}

/// A register, or a value of a warp, and the variable of code of the warp that it becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpOperand {
    pub(crate) source: Var,
    pub(crate) inside: Var,
    pub(crate) is_written: bool,
}

/// A statement of code of a thread or a lane.
#[derive(Clone, Debug)]
pub(crate) enum ThreadStmt {
    Assign(Var, Expr),
    If(Expr, Vec<Self>, Vec<Self>),
    For(Loop<Self>),
    BreakIf(Expr),
    ContinueIf(Expr),
    /// Ends the code of the thread, with a value if the closure has one.
    ReturnIf(Expr, Option<Expr>),
    /// Runs code for each element that the thread owns, and then assigns the value to the element.
    Elements {
        place: Place,
        position: Position,
        element: Var,
        body: Vec<Self>,
        value: Expr,
    },
    /// Assigns to the first element that the thread owns.
    First {
        place: Place,
        element: Var,
        value: Expr,
    },
    /// Runs code for the indices of the thread below `len % limit`.
    Stride {
        is_grid: bool,
        var: Var,
        len: Expr,
        limit: u32,
        body: Vec<Self>,
    },
    Atomic {
        place: Place,
        index: Expr,
        value: Expr,
        ordering: &'static str,
        is_exchange: bool,
    },
}

/// A step on pairs.
#[derive(Clone, Debug)]
pub(crate) enum PairStmt {
    For(Loop<Self>),
    Step {
        /// The stride is 2 to the power of `exponent % bits`.
        exponent: Expr,
        bits: u32,
        index: Var,
        low: Var,
        high: Var,
        low_value: Expr,
        high_value: Expr,
    },
}

/// A statement of code of a warp.
#[derive(Clone, Debug)]
pub(crate) enum WarpStmt {
    Assign(Var, Expr),
    If(Expr, Vec<Self>, Vec<Self>),
    For(Loop<Self>),
    Lanes {
        target: Var,
        /// The lanes that code of the lane reads, and those that it changes.
        read: Vec<Var>,
        written: Vec<Var>,
        locals: Vec<(Var, Expr)>,
        body: Vec<ThreadStmt>,
        result: Expr,
    },
    Reduce {
        target: Var,
        source: Var,
        operator: Binary,
    },
    Broadcast {
        target: Var,
        source: Var,
        lane: Expr,
    },
    Vote {
        target: Var,
        source: Var,
        vote: WarpVote,
    },
    Shuffle {
        target: Var,
        source: Var,
        shuffle: Shuffle,
    },
    Scan {
        target: Var,
        source: Var,
        operator: Binary,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WarpVote {
    Any,
    All,
    Ballot,
}

#[derive(Clone, Debug)]
pub(crate) enum Shuffle {
    /// The lane in a value of each lane.
    Index(Var),
    Xor(Expr),
    Up(Expr),
    Down(Expr),
}

/// A number that the position of a thread determines, as `u32`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Builtin {
    BlockIndex(usize),
    Grid(usize),
    ThreadIndex(usize),
    IndexInBlock,
    IndexInGrid,
    ThreadsInGrid,
    Lane,
    Warp,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    Var(Var),
    Builtin(Builtin),
    /// The length of a slice, or the number of rows of a matrix.
    Len(usize),
    Unary(Unary, Box<Self>),
    Binary(Binary, Box<Self>, Box<Self>),
    MulAdd(Box<[Self; 3]>),
    Select(Box<[Self; 3]>),
    Cast(Type, Box<Self>),
    /// An element of a slice, or the literal.
    Slice(usize, Box<Self>, Value),
    /// An element of a matrix, or zero.
    Matrix(usize, Box<[Self; 2]>),
    /// An element of memory that all threads read; the second index is for tiles.
    View(usize, Box<[Self; 2]>),
    /// A load of an atomic number of shared memory.
    Load(usize, Box<Self>),
    Call {
        function: usize,
        constant: u32,
        arguments: Vec<Self>,
    },
}

impl Program {
    pub(crate) fn var(&self, var: Var) -> VarInfo {
        self.vars[var.0]
    }

    /// Returns the number of threads in a block.
    pub(crate) fn threads(&self) -> usize {
        self.block.unwrap_or([256, 1, 1]).iter().product::<u32>() as usize
    }

    /// Returns the number of statements.
    pub(crate) fn statements(&self) -> usize {
        let mut count = count_stmts(&self.body.stmts) + count_thread(&self.thread_body);
        for function in &self.functions {
            count += 1 + count_thread(&function.body);
        }
        for stage in &self.stages {
            for (body, _) in &stage.bodies {
                count += 1 + count_stmts(&body.stmts);
            }
        }
        count
    }
}

fn count_stmts(stmts: &[Stmt]) -> usize {
    let mut count = stmts.len();
    for stmt in stmts {
        count += match stmt {
            Stmt::If(_, then, otherwise) => count_stmts(then) + count_stmts(otherwise),
            Stmt::For(repeat) => count_stmts(&repeat.body),
            Stmt::Threads { body, .. } => count_thread(body),
            Stmt::Synced { body, .. }
            | Stmt::Row { body, .. }
            | Stmt::CopyDuring { body, .. }
            | Stmt::Inexact { body, .. } => count_stmts(body),
            Stmt::Warps { body, .. } => count_warp(body),
            Stmt::Pairs { body, .. } => count_pairs(body),
            _ => 0,
        };
    }
    count
}

fn count_pairs(stmts: &[PairStmt]) -> usize {
    let mut count = stmts.len();
    for stmt in stmts {
        if let PairStmt::For(repeat) = stmt {
            count += count_pairs(&repeat.body);
        }
    }
    count
}

fn count_thread(stmts: &[ThreadStmt]) -> usize {
    let mut count = stmts.len();
    for stmt in stmts {
        count += match stmt {
            ThreadStmt::If(_, then, otherwise) => count_thread(then) + count_thread(otherwise),
            ThreadStmt::For(repeat) => count_thread(&repeat.body),
            ThreadStmt::Elements { body, .. } | ThreadStmt::Stride { body, .. } => {
                count_thread(body)
            }
            _ => 0,
        };
    }
    count
}

fn count_warp(stmts: &[WarpStmt]) -> usize {
    let mut count = stmts.len();
    for stmt in stmts {
        count += match stmt {
            WarpStmt::If(_, then, otherwise) => count_warp(then) + count_warp(otherwise),
            WarpStmt::For(repeat) => count_warp(&repeat.body),
            WarpStmt::Lanes { body, .. } => count_thread(body),
            _ => 0,
        };
    }
    count
}
