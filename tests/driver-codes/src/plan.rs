//! Random sequences of calls, which depend on their seed only: no result of a call changes what
//! follows.

use std::collections::BTreeSet;

use curium_sys::{CudaVersion, Function};
use fastrand::Rng;

use crate::bindings::{self, Leaf, Meaning, Parameter, Signature, Type};
use crate::images;
use crate::knowledge::{self, Untyped};
use crate::records::{self, Rule};
use crate::value::{Member, PAGES, Value};

/// A call of a sequence.
pub(crate) struct Call {
    pub(crate) signature: &'static Signature,
    pub(crate) arguments: Vec<Value>,
    /// The unusual arguments of the call, and the unusual states in which it happens.
    pub(crate) notes: Vec<String>,
    pub(crate) created: Option<CreatedObject>,
}

/// An object that a call creates.
pub(crate) struct CreatedObject {
    pub(crate) index: usize,
    /// The parameter that points to the object, or is it.
    pub(crate) parameter: usize,
    /// The size of the object behind the pointer; `None` if the parameter itself is the object.
    pub(crate) size: Option<usize>,
}

/// Returns the calls of a sequence.
pub(crate) fn sequence(seed: u64, number: u64, length: usize) -> Vec<Call> {
    let mut planner = Planner::new(seed, number);
    planner.open();
    while planner.calls.len() < length {
        planner.step();
    }
    planner.calls
}

/// The most calls that create objects for a call, and for those.
const MAX_DEPTH: usize = 5;

/// An object that a call creates if it succeeds.
struct Object {
    kind: &'static str,
    creator: Function,
    /// The context that is current at the call.
    context: Option<usize>,
    /// The object that contains it: the graph of a node, the module of a function.
    parent: Option<usize>,
    state: State,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    Live,
    Destroyed,
    /// A call with an invalid argument may have destroyed it.
    Uncertain,
}

struct Planner {
    random: Rng,
    calls: Vec<Call>,
    objects: Vec<Object>,
    /// The functions that are called more often, by the beginnings of their names.
    families: [&'static str; 2],
    is_initialized: bool,
    /// The contexts that are current, the last one on top.
    stack: Vec<usize>,
    main_context: Option<usize>,
    /// The number of times that the primary context is retained.
    retained: usize,
    capturing: BTreeSet<usize>,
    next_page: usize,
}

/// The arguments of a call while they are chosen.
struct Draft {
    function: &'static str,
    notes: Vec<String>,
    /// The number of notes about arguments that are unusual, but valid.
    specials: usize,
    /// The graph to which the nodes of the call belong.
    graph: Option<usize>,
    node: Option<usize>,
    exec: Option<usize>,
    /// The number of elements of the last row.
    row: Option<usize>,
    depth: usize,
}

impl Planner {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let families = [any_family(&mut random), any_family(&mut random)];
        Self {
            random,
            calls: Vec::new(),
            objects: Vec::new(),
            families,
            is_initialized: false,
            stack: Vec::new(),
            main_context: None,
            retained: 0,
            capturing: BTreeSet::new(),
            next_page: 0,
        }
    }

    /// Initializes the driver and makes a context current, except in a few sequences.
    fn open(&mut self) {
        if self.random.u32(..40) == 0 {
            return;
        }
        self.plan(Function::cuInit, 0, 0);
        self.is_initialized = true;
        match self.random.u32(..24) {
            0 => {}
            1..=10 => self.plan(Function::cuCtxCreate_v2, 0, 0),
            _ => {
                self.plan(Function::cuDevicePrimaryCtxRetain, 0, 0);
                self.plan(Function::cuCtxSetCurrent, 0, 0);
            }
        }
        self.main_context = self.stack.last().copied();
    }

    /// Plans one call, after those that create its objects.
    fn step(&mut self) {
        let is_lost = self.stack.is_empty() && self.main_context.is_some();
        if is_lost && self.random.bool() {
            self.plan(Function::cuCtxSetCurrent, 0, 0);
            return;
        }
        let function = self.any_function();
        let faults = match self.random.u32(..20) {
            0..=6 => 0,
            7..=17 => 1,
            _ => 2,
        };
        self.plan(function, faults, 0);
    }

    fn any_function(&mut self) -> Function {
        loop {
            let signature = self.any(bindings::signatures());
            let name = signature.function.name();
            let is_focus = self.families.contains(&family(name));
            let is_rare = knowledge::is_other_interface(name)
                || is_superseded(signature.function)
                || name.starts_with("cuDevicePrimaryCtxRelease")
                || name.starts_with("cuInit")
                || name.starts_with("cuParam")
                || name.contains("TexRef")
                || name.contains("CtxDestroy")
                || name.contains("CtxDetach")
                || name.contains("CtxPop");
            let chance = match (is_focus, is_rare) {
                (true, false) => 100,
                (true, true) => 20,
                (false, false) => 12,
                (false, true) => 2,
            };
            if !knowledge::is_excluded(name) && self.random.u32(..100) < chance {
                return signature.function;
            }
        }
    }

    fn any<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.random.usize(..choices.len())]
    }

    /// Plans a call with up to `faults` invalid arguments.
    fn plan(&mut self, function: Function, faults: usize, depth: usize) {
        let signature = bindings::signature(function);
        let name = function.name();
        let mut draft = Draft {
            function: name,
            notes: Vec::new(),
            specials: 0,
            graph: None,
            node: None,
            exec: None,
            row: None,
            depth,
        };
        self.choose_graph(signature, &mut draft);
        let count = signature.parameters.len();
        let faulty: Vec<usize> = (0..faults.min(count))
            .map(|_| self.random.usize(..count))
            .collect();
        let creation = self.creation(signature);
        let mut arguments = Vec::with_capacity(count);
        for (index, parameter) in signature.parameters.iter().enumerate() {
            let is_faulty = faulty.contains(&index);
            let value = match creation {
                Some((created, kind, Some(_))) if created == index && !is_faulty => {
                    Value::Created {
                        kind,
                        index: self.objects.len(),
                    }
                }
                _ if is_faulty => self.faulty(&parameter.ty, parameter.name, &mut draft),
                _ => self.valid(&parameter.ty, parameter.name, &mut draft),
            };
            arguments.push(value);
        }
        let state = self.state_notes(&arguments);
        let is_valid = draft.notes.len() == draft.specials;
        // Calls for other arguments may have created objects meanwhile.
        let next = self.objects.len();
        for argument in &mut arguments {
            if let Value::Created { kind, .. } = argument {
                let kind = *kind;
                *argument = if is_valid {
                    Value::Created { kind, index: next }
                } else {
                    Value::Output
                };
            }
        }
        let parent = parent(&arguments, &draft);
        let mut created = None;
        if let Some((parameter, kind, size)) = creation
            && is_valid
        {
            created = Some(CreatedObject {
                index: next,
                parameter,
                size,
            });
            self.objects.push(Object {
                kind,
                creator: function,
                context: self.stack.last().copied(),
                parent,
                state: State::Live,
            });
        }
        if is_valid {
            self.follow_contexts(function, &arguments, created.as_ref());
            self.follow_captures(name, &arguments);
        }
        if knowledge::destroys(name) {
            self.destroy(&arguments, is_valid);
        }
        let mut notes = draft.notes;
        notes.extend(state);
        self.calls.push(Call {
            signature,
            arguments,
            notes,
            created,
        });
    }

    /// Returns the parameter at which the function stores an object that it creates, the object's
    /// kind and its size, which is `None` if the parameter itself is the object.
    fn creation(
        &self,
        signature: &'static Signature,
    ) -> Option<(usize, &'static str, Option<usize>)> {
        let name = signature.function.name();
        if name.starts_with("cuMemHostRegister") {
            return Some((0, "registered", None));
        }
        if !knowledge::creates(name) {
            return None;
        }
        signature
            .parameters
            .iter()
            .enumerate()
            .find_map(|(index, parameter)| {
                created_object(name, parameter).map(|(kind, size)| (index, kind, Some(size)))
            })
    }

    /// Chooses the graph, executable graph and node of a call so that they belong together.
    fn choose_graph(&mut self, signature: &'static Signature, draft: &mut Draft) {
        let takes_node = takes(signature, "CUgraphNode");
        let instantiates = signature.function.name().contains("GraphInstantiate");
        if takes_node || instantiates && self.random.u32(..4) > 0 {
            draft.node = self.node(draft);
            draft.graph = draft.node.and_then(|node| self.objects[node].parent);
        }
        if takes(signature, "CUgraphExec") && takes_node {
            let graph = draft.graph;
            draft.exec =
                self.existing(|object| object.kind == "CUgraphExec" && object.parent == graph);
        }
    }

    /// Returns a node of the type that the function's name contains.
    fn node(&mut self, draft: &mut Draft) -> Option<usize> {
        let creators: Vec<Function> = bindings::signatures()
            .iter()
            .map(|signature| signature.function)
            .filter(|function| {
                let name = function.name();
                let node = name.strip_prefix("cuGraphAdd").unwrap_or_default();
                let node = node.trim_end_matches("_v2");
                node.ends_with("Node")
                    && node != "Node"
                    && draft.function.contains(node)
                    && !name.contains("External")
            })
            .collect();
        let suitable = |object: &Object| {
            object.kind == "CUgraphNode"
                && (creators.is_empty() || creators.contains(&object.creator))
        };
        if let Some(node) = self.existing(suitable) {
            return Some(node);
        }
        if draft.depth >= MAX_DEPTH {
            return None;
        }
        let creator = match creators.as_slice() {
            [] => *self.any(&[
                Function::cuGraphAddEmptyNode,
                Function::cuGraphAddMemsetNode,
                Function::cuGraphAddKernelNode_v2,
                Function::cuGraphAddHostNode,
                Function::cuGraphAddNode_v2,
                Function::cuGraphAddEventRecordNode,
            ]),
            creators => *self.any(creators),
        };
        self.plan(creator, 0, draft.depth.saturating_add(1));
        self.existing(suitable)
    }

    /// Returns an object that satisfies the condition and is live.
    fn existing(&mut self, is_suitable: impl Fn(&Object) -> bool) -> Option<usize> {
        let suitable: Vec<usize> = (0..self.objects.len())
            .filter(|index| {
                let object = &self.objects[*index];
                object.state == State::Live && is_suitable(object)
            })
            .collect();
        if suitable.is_empty() {
            None
        } else {
            Some(*self.any(&suitable))
        }
    }

    /// Returns a live object of one of the kinds, which another call creates if there is none.
    fn object(&mut self, kinds: &[&'static str], draft: &Draft) -> Option<usize> {
        if kinds.is_empty() {
            return None;
        }
        let kind = *self.any(kinds);
        let current = self.stack.last().copied();
        let graph = draft.graph;
        let existing = self.existing(|object| {
            let is_near = match kind {
                "CUcontext" => true,
                "CUgraphNode" if graph.is_some() => object.parent == graph,
                _ => current.is_none() || object.context == current,
            };
            object.kind == kind && is_near
        });
        if existing.is_some() && self.random.u32(..10) > 0 || draft.depth >= MAX_DEPTH {
            return existing;
        }
        let creators = knowledge::creators(kind);
        if creators.is_empty() {
            return existing;
        }
        let creator = *self.any(creators);
        let signature = bindings::signatures()
            .iter()
            .find(|signature| signature.function.name() == creator);
        if let Some(signature) = signature {
            self.plan(signature.function, 0, draft.depth.saturating_add(1));
        }
        let created = self.existing(|object| object.kind == kind && object.context == current);
        if created.is_some() && self.random.bool() {
            // Most functions of these objects need another call before.
            match kind {
                "CUevent" => self.plan(Function::cuEventRecord, 0, draft.depth.saturating_add(1)),
                "reserved" if draft.function != "cuMemMap" => {
                    self.plan(Function::cuMemMap, 0, draft.depth.saturating_add(1));
                }
                _ => {}
            }
        }
        created.or(existing)
    }

    /// Returns a graph that is not the call's.
    fn other_graph(&mut self, draft: &Draft) -> Option<usize> {
        let graph = draft.graph;
        if let Some(other) =
            self.existing(|object| object.kind == "CUgraph" && object.parent.is_none())
            && Some(other) != graph
        {
            return Some(other);
        }
        if draft.depth < MAX_DEPTH {
            self.plan(Function::cuGraphCreate, 0, draft.depth.saturating_add(1));
        }
        let last = self.objects.len().checked_sub(1)?;
        (self.objects[last].kind == "CUgraph").then_some(last)
    }

    fn object_value(&self, index: usize) -> Value {
        Value::Object {
            kind: self.objects[index].kind,
            index,
            offset: 0,
        }
    }

    /// Returns a valid argument.
    fn valid(&mut self, ty: &'static Type, name: &str, draft: &mut Draft) -> Value {
        match ty.meaning() {
            Meaning::Integer { .. } | Meaning::Character => self.valid_integer(name, draft),
            Meaning::Float => Value::Float(0.5),
            Meaning::Void | Meaning::Array { .. } => Value::Null,
            Meaning::Callback => Value::Callback,
            Meaning::Enumeration { enumerators, .. } => {
                let known: Vec<_> = enumerators
                    .iter()
                    .filter(|(name, _)| !knowledge::is_waiting(name) && !name.ends_with("_MAX"))
                    .collect();
                if known.is_empty() {
                    return Value::Bits(0);
                }
                let (name, bits) = **self.any(&known);
                Value::Named(name, bits)
            }
            Meaning::Handle { kind, .. } => self.valid_handle(kind, name, draft),
            Meaning::Record {
                name: record,
                definition,
            } => {
                if knowledge::is_record_object(record)
                    && let Some(object) = self.object(&[record], draft)
                {
                    return self.object_value(object);
                }
                let members = self.members(record, &definition.leaves(), draft);
                Value::Record {
                    size: definition.size,
                    members,
                }
            }
            Meaning::Pointer { target, constant } => {
                self.valid_pointer(target, constant, name, draft)
            }
        }
    }

    fn valid_integer(&mut self, name: &str, draft: &mut Draft) -> Value {
        if knowledge::is_count(draft.function, name) {
            let count = draft.row.take().map_or(1, |row| row as u64);
            let is_without_row = name.ends_with("Options") || name.ends_with("Params");
            return Value::Bits(if is_without_row { 0 } else { count });
        }
        Value::Bits(knowledge::valid_integer(draft.function, name))
    }

    fn valid_handle(&mut self, kind: &'static str, name: &str, draft: &mut Draft) -> Value {
        match kind {
            "CUdevice" | "CUdevice_v1" => return Value::Bits(0),
            "CUstream" => {
                let ends_capture = draft.function.contains("EndCapture")
                    || draft.function.contains("CaptureDependencies");
                if ends_capture
                    && self.capturing.is_empty()
                    && draft.depth == 0
                    && self.random.u32(..4) > 0
                {
                    self.plan(Function::cuStreamBeginCapture_v2, 0, 1);
                }
                if let Some(captured) = self.capturing.first().copied()
                    && (ends_capture || self.random.u32(..4) == 0)
                {
                    return self.object_value(captured);
                }
                // Other streams than created ones are valid, but not for every function.
                let special = match self.random.u32(..16) {
                    0 => Some((Value::Null, "default")),
                    1 => Some((Value::Bits(1), "legacy")),
                    2 => Some((Value::Bits(2), "per-thread")),
                    _ => None,
                };
                if let Some((value, stream)) = special
                    && draft.depth == 0
                {
                    draft.notes.push(format!("{name}: {stream} stream"));
                    draft.specials = draft.specials.saturating_add(1);
                    return value;
                }
            }
            "CUgraphNode" => {
                if let Some(node) = draft.node {
                    return self.object_value(node);
                }
            }
            "CUgraphExec" => {
                if let Some(exec) = draft.exec {
                    return self.object_value(exec);
                }
            }
            "CUgraph" => {
                if let Some(graph) = draft.graph
                    && !is_other_graph(name)
                {
                    return self.object_value(graph);
                }
            }
            "CUcontext" => {
                // The current context, mostly.
                if let Some(context) = self.main_context
                    && self.objects[context].state == State::Live
                    && self.random.u32(..4) > 0
                    && !knowledge::destroys(draft.function)
                {
                    return self.object_value(context);
                }
            }
            _ => {}
        }
        let kinds = knowledge::accepted_kinds(draft.function, name, kind);
        let object = if kind == "CUgraph" && is_other_graph(name) {
            self.other_graph(draft)
        } else {
            self.object(&kinds, draft)
        };
        if kind == "CUgraph" && !is_other_graph(name) {
            draft.graph = object;
        }
        match object {
            Some(object) => self.object_value(object),
            None => Value::Null,
        }
    }

    fn valid_pointer(
        &mut self,
        target: &'static Type,
        constant: bool,
        name: &str,
        draft: &mut Draft,
    ) -> Value {
        if knowledge::is_null_by_default(name) {
            return Value::Null;
        }
        match target.meaning() {
            Meaning::Character if constant => {
                let texts = knowledge::texts(draft.function, name);
                // Two kernels have different parameters.
                let is_kernel = name == "name" && texts[0] == "empty";
                Value::Text(texts[usize::from(is_kernel && self.random.bool())])
            }
            Meaning::Character | Meaning::Callback | Meaning::Array { .. } => Value::Output,
            Meaning::Void => self.untyped(name, draft),
            Meaning::Pointer { .. } => {
                if name == "kernelParams" || !knowledge::creates(draft.function) {
                    Value::Pointers
                } else {
                    Value::Output
                }
            }
            Meaning::Integer { .. }
                if name.starts_with("num") || name.starts_with("nb") || name == "size" =>
            {
                Value::Row {
                    elements: vec![Value::Bits(8)],
                    size: target.size(),
                }
            }
            Meaning::Integer { .. } | Meaning::Float => {
                if constant || knowledge::is_row(name) {
                    self.row(target, name, draft)
                } else {
                    Value::Output
                }
            }
            Meaning::Enumeration { .. } => {
                if constant || name.ends_with('s') {
                    self.row(target, name, draft)
                } else {
                    Value::Output
                }
            }
            Meaning::Handle { kind, .. } => {
                let is_input = constant || name.ends_with('s') && !name.starts_with('p');
                if kind == "CUgraphNode" && is_input {
                    return self.dependencies(draft);
                }
                if is_input && kind != "CUdevice" {
                    self.row(target, name, draft)
                } else {
                    Value::Output
                }
            }
            Meaning::Record { .. } => {
                let is_output = !constant
                    && (name.ends_with("out")
                        || draft.function.contains("Get") && name != "location");
                if is_output {
                    return Value::Output;
                }
                self.row(target, name, draft)
            }
        }
    }

    /// Returns a row of one valid element.
    fn row(&mut self, target: &'static Type, name: &str, draft: &mut Draft) -> Value {
        let element = self.valid(target, name, draft);
        draft.row = Some(1);
        Value::Row {
            elements: vec![element],
            size: target.size(),
        }
    }

    /// Returns a row of up to two nodes of the call's graph.
    fn dependencies(&mut self, draft: &mut Draft) -> Value {
        let graph = draft.graph;
        let nodes: Vec<usize> = (0..self.objects.len())
            .filter(|index| {
                let object = &self.objects[*index];
                object.kind == "CUgraphNode"
                    && object.state == State::Live
                    && object.parent == graph
                    && graph.is_some()
            })
            .take(self.random.usize(..3))
            .collect();
        draft.row = Some(nodes.len());
        if nodes.is_empty() {
            return Value::Null;
        }
        Value::Row {
            elements: nodes
                .into_iter()
                .map(|node| self.object_value(node))
                .collect(),
            size: size_of::<usize>(),
        }
    }

    fn untyped(&mut self, name: &str, draft: &mut Draft) -> Value {
        match knowledge::untyped(draft.function, name) {
            Untyped::Host => Value::Host,
            Untyped::Image => Value::Image("valid", images::VALID),
            Untyped::Page => {
                self.next_page = self.next_page.saturating_add(1) % PAGES;
                Value::Page(self.next_page)
            }
            Untyped::Object(kind) => match self.object(&[kind], draft) {
                Some(object) => self.object_value(object),
                None => Value::Host,
            },
        }
    }

    /// Returns the members of a valid struct.
    fn members(&mut self, record: &str, leaves: &[Leaf], draft: &mut Draft) -> Vec<Member> {
        let alternatives = records::alternatives(record);
        if alternatives.is_empty() {
            return Vec::new();
        }
        let members = *self.any(alternatives);
        let mut values = Vec::with_capacity(members.len());
        for (path, rule) in members {
            let Some(leaf) = leaves.iter().find(|leaf| leaf.path == *path) else {
                continue;
            };
            let value = self.member(leaf, *rule, draft);
            values.push(member(leaf, value));
        }
        values
    }

    fn member(&mut self, leaf: &Leaf, rule: Rule, draft: &mut Draft) -> Value {
        match rule {
            Rule::Bits(bits) => Value::Bits(bits),
            Rule::Named(name) => match leaf.ty.meaning() {
                Meaning::Enumeration { enumerators, .. } => enumerators
                    .iter()
                    .find(|(enumerator, _)| *enumerator == name)
                    .map_or(Value::Bits(0), |(name, bits)| Value::Named(name, *bits)),
                _ => Value::Bits(0),
            },
            Rule::Valid => self.valid(leaf.ty, last_name(&leaf.path), draft),
            Rule::Host => Value::Host,
            Rule::Pointers => Value::Pointers,
            Rule::Operation => match leaf.ty.meaning() {
                Meaning::Pointer { target, .. } => self.row(target, "", draft),
                _ => Value::Null,
            },
        }
    }

    /// Returns an invalid or unusual argument, and adds a note about it.
    fn faulty(&mut self, ty: &'static Type, name: &str, draft: &mut Draft) -> Value {
        if knowledge::is_fixed(draft.function, name) {
            return self.valid(ty, name, draft);
        }
        let (value, note) = match ty.meaning() {
            Meaning::Integer { size } => self.faulty_integer(size, name, draft),
            Meaning::Character => (Value::Bits(1), "1".to_owned()),
            Meaning::Float => {
                let value = *self.any(&[f32::NAN, -1.0, f32::INFINITY]);
                (Value::Float(value), value.to_string())
            }
            Meaning::Void | Meaning::Array { .. } | Meaning::Callback => {
                (Value::Null, "null".to_owned())
            }
            Meaning::Enumeration { enumerators, .. } => self.faulty_enumerator(enumerators),
            Meaning::Handle { kind, size } => self.faulty_handle(kind, size, name, draft),
            Meaning::Record {
                name: record,
                definition,
            } => {
                return self.faulty_record(record, definition, name, draft);
            }
            Meaning::Pointer { target, constant } => {
                return self.faulty_pointer(target, constant, name, draft);
            }
        };
        draft.notes.push(format!("{name}: {note}"));
        value
    }

    fn faulty_integer(&mut self, size: usize, name: &str, draft: &Draft) -> (Value, String) {
        let lower = name.to_ascii_lowercase();
        let mask = if size >= 8 {
            u64::MAX
        } else {
            (1 << (8 * size)) - 1
        };
        let is_small = draft.function.contains("Alloc") && size < 8;
        let choices: &[u64] = if lower.contains("flags") {
            knowledge::flags(draft.function)
        } else if knowledge::is_count(draft.function, name) {
            &[0, 0, 3]
        } else if lower.starts_with("griddim") || lower.starts_with("grid_") {
            &[0, 0xffff_ffff]
        } else if lower.starts_with("blockdim") || lower == "blocksize" {
            &[0, 1025, 33, 0xffff_ffff]
        } else if lower.starts_with("shared") || lower.contains("smem") {
            &[1024, 49_156, 0x0100_0000]
        } else if is_small {
            &[0, 1, 3]
        } else if size == 8 && lower.contains("version") {
            &[0]
        } else if size == 8 {
            &[0, 1, 3, 4097, 1 << 48, u64::MAX]
        } else {
            &[0, 1, 3, 100, 0x7fff_ffff, 0xffff_ffff]
        };
        let bits = *self.any(choices) & mask;
        (Value::Bits(bits), Value::Bits(bits).to_string())
    }

    fn faulty_enumerator(
        &mut self,
        enumerators: &'static [(&'static str, u64)],
    ) -> (Value, String) {
        let known: Vec<_> = enumerators
            .iter()
            .filter(|(name, _)| !knowledge::is_waiting(name))
            .collect();
        let largest = known
            .iter()
            .map(|(_, bits)| *bits)
            .filter(|bits| *bits < 0x1000_0000)
            .max()
            .unwrap_or_default();
        let value = match self.random.u32(..4) {
            0 => Value::Bits(largest.saturating_add(1)),
            1 => Value::Bits(0x7fff_ffff),
            2 => Value::Bits(0xffff_ffff),
            _ if known.is_empty() => Value::Bits(1),
            _ => {
                let (name, bits) = **self.any(&known);
                Value::Named(name, bits)
            }
        };
        let note = match &value {
            Value::Bits(bits) if *bits == largest.saturating_add(1) => "next enumerator".to_owned(),
            value => value.to_string(),
        };
        (value, note)
    }

    fn faulty_handle(
        &mut self,
        kind: &'static str,
        size: usize,
        name: &str,
        draft: &Draft,
    ) -> (Value, String) {
        if kind.starts_with("CUdevice") && size == 4 {
            let ordinal = *self.any(&[1_u64, 99, 0xffff_ffff]);
            return (Value::Bits(ordinal), Value::Bits(ordinal).to_string());
        }
        let kinds = knowledge::accepted_kinds(draft.function, name, kind);
        let current = self.stack.last().copied();
        let choice = self.random.u32(..100);
        let is_address = kind == "CUdeviceptr";
        if is_address
            && choice < 55
            && !kinds.is_empty()
            && let Some(index) = self.object(&kinds, draft)
        {
            let offset = *self.any(&[1, 2, 4, 8, 4096 - 8, 4096, 2 << 20]);
            let value = Value::Object {
                kind: self.objects[index].kind,
                index,
                offset,
            };
            return (value, format!("{}{offset:+}", self.objects[index].kind));
        }
        if is_address && choice < 70 {
            // A copy reads any address that is not the device's as the host's.
            let is_copy =
                draft.function.contains("Memcpy") || name.contains("Device") || name == "ptr";
            if is_copy || self.random.bool() {
                return (Value::Host, "pageable".to_owned());
            }
            let wild = *self.any(&[0x1000_u64, 0x7000_0000_0000, u64::MAX]);
            return (Value::Bits(wild), Value::Bits(wild).to_string());
        }
        if choice < 20 {
            let foreign =
                self.existing(|object| kinds.contains(&object.kind) && object.context != current);
            if let Some(foreign) = foreign {
                return (self.object_value(foreign), "of another context".to_owned());
            }
        }
        if kind == "CUgraphNode" && choice < 50 {
            let graph = draft.graph;
            let other = self.existing(|object| object.kind == kind && object.parent != graph);
            if let Some(other) = other {
                return (self.object_value(other), "of another graph".to_owned());
            }
        }
        if choice >= 97 && !is_address {
            let other = self.existing(|object| {
                object.kind.starts_with("CU")
                    && !kinds.contains(&object.kind)
                    && object.kind != "CUdevResource"
                    && size == 8
            });
            if let Some(other) = other {
                let note = format!("a {}", self.objects[other].kind);
                return (self.object_value(other), note);
            }
        }
        if (93..97).contains(&choice) {
            let destroyed = (0..self.objects.len()).find(|index| {
                let object = &self.objects[*index];
                kinds.contains(&object.kind) && object.state == State::Destroyed
            });
            if let Some(destroyed) = destroyed {
                return (self.object_value(destroyed), "destroyed".to_owned());
            }
        }
        if size == 4 {
            let number = *self.any(&[0_u64, 1, 0xffff_ffff]);
            return (Value::Bits(number), Value::Bits(number).to_string());
        }
        (Value::Null, "null".to_owned())
    }

    fn faulty_record(
        &mut self,
        record: &'static str,
        definition: &'static bindings::Definition,
        name: &str,
        draft: &mut Draft,
    ) -> Value {
        let leaves = definition.leaves();
        let mut members = self.members(record, &leaves, draft);
        let candidates: Vec<&Leaf> = leaves
            .iter()
            .filter(|leaf| {
                !knowledge::is_fixed(draft.function, &leaf.path) && !leaf.path.contains("asBytes")
            })
            .collect();
        if candidates.is_empty() {
            return Value::Record {
                size: definition.size,
                members,
            };
        }
        let used: Vec<&Leaf> = candidates
            .iter()
            .copied()
            .filter(|leaf| members.iter().any(|member| member.path == leaf.path))
            .collect();
        let leaf = if !used.is_empty() && self.random.u32(..10) < 7 {
            *self.any(&used)
        } else {
            *self.any(&candidates)
        };
        let notes = draft.notes.len();
        let value = match leaf.ty.meaning() {
            // The member is a pointer to nothing that the struct describes.
            Meaning::Pointer { .. } => {
                let value = if self.random.bool() {
                    Value::Null
                } else {
                    Value::Host
                };
                draft.notes.push(format!("{}: {value}", leaf.path));
                value
            }
            _ => self.faulty(leaf.ty, last_name(&leaf.path), draft),
        };
        for note in &mut draft.notes[notes..] {
            let (_, fault) = note.split_once(": ").unwrap_or(("", note));
            *note = format!("{name}.{}: {fault}", leaf.path);
        }
        members.retain(|member| member.path != leaf.path);
        members.push(member(leaf, value));
        Value::Record {
            size: definition.size,
            members,
        }
    }

    fn faulty_pointer(
        &mut self,
        target: &'static Type,
        constant: bool,
        name: &str,
        draft: &mut Draft,
    ) -> Value {
        let meaning = target.meaning();
        let choice = self.random.u32(..4);
        let value = match meaning {
            Meaning::Character if constant && choice > 0 => {
                let texts = knowledge::texts(draft.function, name);
                Value::Text(self.any(texts))
            }
            Meaning::Void
                if knowledge::untyped(draft.function, name) == Untyped::Image && choice > 0 =>
            {
                let (what, text) = *self.any(images::INVALID);
                Value::Image(what, text)
            }
            Meaning::Void => match knowledge::untyped(draft.function, name) {
                Untyped::Host if choice == 0 && draft.function.contains("Memcpy") => {
                    match self.object(&["device"], draft) {
                        Some(device) => {
                            draft.notes.push(format!("{name}: device memory"));
                            return self.object_value(device);
                        }
                        None => Value::Null,
                    }
                }
                Untyped::Object(_) if choice > 1 => Value::Host,
                _ => Value::Null,
            },
            Meaning::Record { .. } | Meaning::Enumeration { .. } | Meaning::Handle { .. }
                if choice > 0 =>
            {
                let valid = self.valid_pointer(target, constant, name, draft);
                if let Value::Row { elements, size } = valid {
                    let mut elements = elements;
                    if let Some(first) = elements.first_mut() {
                        *first = self.faulty(target, name, draft);
                    }
                    return Value::Row { elements, size };
                }
                if knowledge::is_null_by_default(name) && matches!(meaning, Meaning::Record { .. })
                {
                    draft.notes.push(format!("{name}: zeros"));
                    return Value::Output;
                }
                Value::Null
            }
            _ if knowledge::is_null_by_default(name) => Value::Pointers,
            _ => Value::Null,
        };
        draft.notes.push(format!("{name}: {value}"));
        value
    }

    /// Returns notes about the state in which the call is made.
    fn state_notes(&self, arguments: &[Value]) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.is_initialized {
            notes.push("before initialization".to_owned());
            return notes;
        }
        if self.stack.is_empty() {
            notes.push("no context".to_owned());
        } else if self
            .stack
            .last()
            .is_some_and(|context| self.objects[*context].state != State::Live)
        {
            notes.push("destroyed context".to_owned());
        }
        let captures = arguments
            .iter()
            .any(|argument| matches!(argument, Value::Object { index, .. } if self.capturing.contains(index)));
        if captures {
            notes.push("captured stream".to_owned());
        } else if !self.capturing.is_empty() {
            notes.push("during a capture".to_owned());
        }
        notes
    }

    /// Follows the contexts that are current.
    fn follow_contexts(
        &mut self,
        function: Function,
        arguments: &[Value],
        created: Option<&CreatedObject>,
    ) {
        let name = function.name();
        let argument = arguments.iter().find_map(|argument| match argument {
            Value::Object {
                kind: "CUcontext",
                index,
                ..
            } => Some(self.canonical(*index)),
            _ => None,
        });
        let created = created.map(|created| created.index);
        match name {
            _ if name.starts_with("cuCtxCreate") => self.stack.extend(created),
            _ if name.starts_with("cuCtxPushCurrent") => self.stack.extend(argument),
            _ if name.starts_with("cuCtxPopCurrent") => {
                self.stack.pop();
            }
            "cuCtxSetCurrent" => {
                self.stack.pop();
                self.stack.extend(argument);
            }
            "cuDevicePrimaryCtxRetain" => self.retained = self.retained.saturating_add(1),
            "cuDevicePrimaryCtxRelease" | "cuDevicePrimaryCtxRelease_v2" => {
                self.retained = self.retained.saturating_sub(1);
                if self.retained == 0 {
                    for index in 0..self.objects.len() {
                        if self.objects[index].creator == Function::cuDevicePrimaryCtxRetain {
                            self.end(index, State::Destroyed);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the first object that stands for the same context: the primary context can be
    /// retained repeatedly.
    fn canonical(&self, context: usize) -> usize {
        if self.objects[context].creator != Function::cuDevicePrimaryCtxRetain {
            return context;
        }
        self.objects
            .iter()
            .position(|object| {
                object.creator == Function::cuDevicePrimaryCtxRetain && object.state == State::Live
            })
            .unwrap_or(context)
    }

    fn follow_captures(&mut self, name: &str, arguments: &[Value]) {
        let stream = arguments.iter().find_map(|argument| match argument {
            Value::Object {
                kind: "CUstream",
                index,
                ..
            } => Some(*index),
            _ => None,
        });
        if name.starts_with("cuStreamBegin") {
            self.capturing.extend(stream);
        } else if name.starts_with("cuStreamEndCapture")
            && let Some(stream) = stream
        {
            self.capturing.remove(&stream);
        }
    }

    /// Records that the call destroys the object of its first handle.
    fn destroy(&mut self, arguments: &[Value], is_valid: bool) {
        let object = arguments.iter().find_map(|argument| match argument {
            Value::Object { index, .. } => Some(*index),
            _ => None,
        });
        let Some(object) = object else { return };
        let state = if is_valid {
            State::Destroyed
        } else {
            State::Uncertain
        };
        self.end(object, state);
        if is_valid && self.stack.last() == Some(&object) {
            self.stack.pop();
        }
    }

    /// Records the end of an object and of those that it contains.
    fn end(&mut self, object: usize, state: State) {
        if self.objects[object].state == State::Destroyed {
            return;
        }
        self.objects[object].state = state;
        self.capturing.remove(&object);
        let kind = self.objects[object].kind;
        for index in 0..self.objects.len() {
            let contained = &self.objects[index];
            let is_part = match kind {
                "CUcontext" => contained.context == Some(object) && contained.kind != "CUcontext",
                // An executable graph and memory outlive what they were made from.
                "CUgraph" => contained.parent == Some(object) && contained.kind != "CUgraphExec",
                "CUmodule" | "CUlibrary" | "CUkernel" | "CUmipmappedArray" | "CUgreenCtx" => {
                    contained.parent == Some(object)
                }
                _ => false,
            };
            if is_part && contained.state == State::Live {
                self.end(index, state);
            }
        }
    }
}

/// Returns `true` if a function has a parameter that is a handle of this kind.
fn takes(signature: &'static Signature, kind: &str) -> bool {
    signature
        .parameters
        .iter()
        .any(|parameter| matches!(parameter.ty.meaning(), Meaning::Handle { kind: handle, .. } if handle == kind))
}

/// Returns the object that contains the one that a call creates.
fn parent(arguments: &[Value], draft: &Draft) -> Option<usize> {
    let is_graph = draft.function.starts_with("cuGraph");
    arguments.iter().find_map(|argument| match argument {
        Value::Object { kind, index, .. } if !is_graph || *kind == "CUgraph" => Some(*index),
        _ => None,
    })
}

fn member(leaf: &Leaf, value: Value) -> Member {
    Member {
        path: leaf.path.clone(),
        offset: leaf.offset,
        size: leaf.ty.size(),
        value,
    }
}

/// Returns `true` for graphs that become a part of the call's graph.
fn is_other_graph(parameter: &str) -> bool {
    ["childGraph", "hClonedGraph", "graph"].contains(&parameter)
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the kind and size of the object that a function stores at a parameter.
fn created_object(function: &str, parameter: &'static Parameter) -> Option<(&'static str, usize)> {
    let Meaning::Pointer {
        target,
        constant: false,
    } = parameter.ty.meaning()
    else {
        return None;
    };
    match target.meaning() {
        Meaning::Handle { kind, size } if kind != "CUdevice" => {
            Some((knowledge::created_kind(function, kind), size))
        }
        Meaning::Pointer { .. } if parameter.name == "pp" => Some(("pinned", size_of::<usize>())),
        Meaning::Record { name, definition } if knowledge::is_record_object(name) => {
            Some((name, definition.size))
        }
        _ => None,
    }
}

/// Returns `true` if a function is an old version of another, or newer than the drivers on which
/// logs are recorded.
fn is_superseded(function: Function) -> bool {
    let is_new = function.since() > CudaVersion::new(13, 0);
    is_new
        || function.since() < CudaVersion::new(3, 2)
            && Function::all()
                .any(|other| other != function && other.base_name() == function.base_name())
}

/// Returns the first word of a function's name.
fn family(function: &'static str) -> &'static str {
    let word = function.strip_prefix("cu").unwrap_or(function);
    let end = word
        .char_indices()
        .skip(1)
        .find(|(_, letter)| letter.is_ascii_uppercase())
        .map_or(word.len(), |(end, _)| end);
    &word[..end]
}

fn any_family(random: &mut Rng) -> &'static str {
    let signatures = bindings::signatures();
    family(signatures[random.usize(..signatures.len())].function.name())
}
