//! Random forms, from the grammar of the PTX ISA.
//!
//! A template is text with choices: `{a,b}` is one of both, `{a,}` may be empty, and `$` begins an
//! operand with its kind. Choices are independent, so the assembler refuses many forms.

use super::Form;

/// The targets of the forms.
pub(super) const TARGETS: [&str; 10] = [
    "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f",
];

/// A small generator (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }
}

/// Returns a random form, usually of instructions.
pub(super) fn form(random: &mut Random) -> Form {
    let name = format!("n{:x}", random.next() & 0xff_ffff_ffff);
    let (declared, body) = match random.next() % 8 {
        0 => (expand(random.pick(DECLARATIONS), random), String::new()),
        1 => (String::new(), expand(random.pick(DECLARED_IN_BODY), random)),
        2 => {
            let (declared, body) = random.pick(CALLS);
            (expand(declared, random), expand(body, random))
        }
        3 => (ARRAYS.into(), expand(random.pick(ADDRESSES), random)),
        _ => {
            let guard = if random.next().is_multiple_of(8) {
                "@{,!}%p3 "
            } else {
                ""
            };
            (
                String::new(),
                expand(&format!("{guard}{};", random.pick(INSTRUCTIONS)), random),
            )
        }
    };
    Form {
        declared: declared.replace('@', &name).replace("?name", &name),
        body: body.replace("?name", &name),
    }
}

const DECLARATIONS: &[&str] = &[
    "{.visible,,.weak,.extern,.common} {.global,.const,.shared} {.align $align,} {,.v2,.v4} .$type ?name{,[4],[2][3],[]}{, ?name_b,};",
    "{.global,.const} {.align $align,} .$type ?name = $constant;",
    "{.global,.const} .$type ?name[3] = \\{$constant\\, $constant\\};",
    "{.global,.const} .$type ?name{[3],[],[2]} = \\{$constant\\, $constant{\\, $constant,}\\};",
    "{.global,.const} {.v2,.v4} .$type ?name = \\{$constant\\, $constant\\};",
    ".global .u32 ?name_t[4]; .global .u64 ?name = {,generic(}?name_t{,)}{,+4,+4*2,-4,+(2+2)};",
    ".global .u32 ?name_t; .global .u64 ?name[2] = \\{{0,?name_t}\\, ?name_t{,+4}\\};",
    ".global .{texref,surfref,samplerref} ?name;",
    ".{visible,extern,weak} .func ?name({.param,.reg} .$type a{,[2]});",
    ".func ({.param,.reg} .$type o) ?name({.param,.reg} .$type a) \\{ ret; \\}",
    ".{visible,weak} .entry ?name({.param .$type a{,[4]},}) {.maxntid 32,.reqntid 32\\, 2,.minnctapersm 2,.maxnreg 32,} \\{ ret; \\}",
];

const DECLARED_IN_BODY: &[&str] = &[
    "{,.visible,.extern} {.global,.const,.shared,.local,.param} {.align $align,} {,.v2,.v4} .$type ?name{,[4],[2][2],[]};",
    "{.global,.const} .$type ?name{,[2]} = {$constant,\\{$constant\\}};",
    ".reg {.v2,.v4,} .$type ?name{,<4>}{,\\, u};",
    ".reg .$type ?name; \\{ .reg .$type ?name; \\}",
    ".global .u32 ?name{,[4]}; ld.global.u32 %r1\\, [?name{,+4}];",
    ".const .u32 ?name[2] = \\{1\\, 2\\}; ld.const.u32 %r1\\, [?name{,+4}];",
    ".{shared,local} .u32 ?name[4]; \\{ .{shared,local} .u32 ?name; st.{shared,local}.u32 [?name]\\, %r1; \\}",
];

const ARRAYS: &str = ".global .align 16 .u32 ?name_g[8]; .shared .align 16 .u32 ?name_s[8];";

const ADDRESSES: &[&str] = &[
    "ld.{global,shared,local,const,}{.v2,.v4,}.$type {$r32,v,w,vd,\\{%r1\\, %r2\\}}\\, [$base{,+$offset}];",
    "st.{global,shared,local,}{.v2,.v4,}.$type [$base{,+$offset}]\\, {$r32,v,w,vd,\\{%r1\\, %r2\\},5};",
    "{atom,red}.{global,shared,}.{add,min,exch,cas}.{u32,s32,b32,u64,f32} {%r1\\,,} [$base{,+$offset}]\\, $s32{\\, $s32,};",
    "mov.{u32,u64,b64,s64} {%r1,%d1}\\, {?name_g,?name_s,main,P}{,+$offset,[2]};",
    "cvta{.to,}.{global,shared,local,const}.{u32,u64} {%r1,%d1}\\, {?name_g,?name_s,%d2,%r2}{,+$offset};",
];

const CALLS: &[(&str, &str)] = &[
    (
        ".func ?name({.param,.reg} .$type a) \\{ ret; \\}",
        "call{.uni,} ?name\\, ({$r32,%f1,%d1,%h1,%e1,p,v,w,5,1.5});",
    ),
    (
        ".func ({.param,.reg} .$type o) ?name() \\{ ret; \\}",
        "call{.uni,} ({%r1,%f1,%d1,%h1,_,v})\\, ?name{,\\, ()};",
    ),
    (
        ".func ?name(.param {.align 8,} .b8 a[8]) \\{ ret; \\}",
        "\\{ .param {.align 8,.align 4,} .b8 x[{8,4}]; st.param.{b32,b64,v2.b32} [x{,+4}]\\, {%r1,%d1,v}; call ?name\\, (x); \\}",
    ),
    (
        ".func ({.param,.reg} .u32 o) ?name({.param,.reg} .u32 a)\\{ ret; \\}",
        "\\{ .reg .u64 f; mov.u64 f\\, ?name; t: .callprototype ({.param,.reg} .u32 _) _ ({.param,.reg} .u32 _); \
         call (%r1)\\, f\\, (%r2)\\, t; \\}",
    ),
];

const INSTRUCTIONS: &[&str] = &[
    "{add,sub}{.sat,.cc,}.{u16,s16,u32,s32,u64,s64,u16x2} $d, $s, $s",
    "{add,sub}{.rn,.rz,.rm,}{.ftz,}{.sat,}.{f32,f64,f16,f16x2,bf16,bf16x2} $d, $s, $s",
    "{addc,subc}{.cc,}.{u32,s32,u64} $d, $s, $s",
    "mul.{lo,hi,wide}.{u16,s16,u32,s32,u64} $x, $s, $s",
    "mad.{lo,hi,wide}{.cc,.sat,}.{u16,s16,u32,s32,u64} $x, $s, $s, $x",
    "madc.{lo,hi}{.cc,}.{u32,s32,u64} $d, $s, $s, $s",
    "{mul24,mad24}.{lo,hi}{.sat,}.{u32,s32} $d, $s, $s{, $s,}",
    "mul{.rn,.rz,.rp,}{.ftz,}{.sat,}.{f32,f64,f16,bf16} $d, $s, $s",
    "fma.{rn,rz,rm}{.ftz,}{.sat,.relu,}.{f32,f64,f16,f16x2,bf16,bf16x2} $d, $s, $s, $s",
    "{div,rem}.{u16,s16,u32,s32,u64} $d, $s, $s",
    "div{.approx,.full,.rn,.rz}{.ftz,}.{f32,f64} $d, $s, $s",
    "{abs,neg}{.ftz,}.{s16,s32,s64,u32,f32,f64,f16,bf16,f16x2} $d, $s",
    "{min,max}{.ftz,}{.NaN,}{.xorsign.abs,}.{u16,s16,u32,s32,u64,f32,f64,f16,bf16,s16x2} $d, $s, $s",
    "{min,max}.f32 $d, $s, $s, $s",
    "{rcp,sqrt}{.approx,.rn,.rz}{.ftz,}.{f32,f64} $d, $s",
    "{rsqrt,sin,cos,lg2,ex2,tanh}{.approx,}{.ftz,}.{f32,f64,f16,f16x2,bf16} $d, $s",
    "{sad,bfind,clz,popc,brev}{.shiftamt,}.{u16,u32,s32,b32,b64,u64} $d, $s{, $s, $s,}",
    "{popc,clz}.{b32,b64} $r32, $s",
    "bfe.{u32,s32,u64,s64,b32} $d, $s, $s32, $s32",
    "bfi.{b32,b64,u32} $d, $s, $s, $s32, $s32",
    "{dp4a,dp2a}{.lo,.hi,}.{u32,s32}.{u32,s32} $d, $s32, $s32, $s32",
    "szext.{clamp,wrap}.{u32,s32} $d, $s, $s32",
    "bmsk.{clamp,wrap}.b32 $d, $s32, $s32",
    "copysign.{f32,f64} $d, $s, $s",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} $p, $s",
    "setp.{eq,ne,lt,le,gt,ge,lo,hs,equ,num,nan}{.ftz,}.{u16,s16,u32,s32,u64,b32,b64,f32,f64,f16,bf16} $p{|$p,}, $s, $s",
    "setp.{eq,lt}.{and,or,xor}.{u32,f32} $p{|$p,}, $s, $s, {!,}$p",
    "setp.{eq,lt}.{f16x2,bf16x2} $p|$p, $s, $s",
    "set.{eq,ltu,gt}{.and,}{.ftz,}.{u32,s32,f32}.{u32,s32,f32,b64} $r32, $s, $s{, $p,}",
    "selp.{b16,u16,b32,s32,u64,f32,f64,f16,pred} $d, $s, $s, $p",
    "slct{.ftz,}.{b32,u32,f32,b64}.{s32,f32} $d, $s, $s, $s32",
    "{and,or,xor}.{pred,b16,b32,b64,u32} $d, $s, $s",
    "{not,cnot}.{pred,b16,b32,b64,u32} $d, $s",
    "lop3.b32 $d, $s, $s, $s, {0x1e,255,256,-1}",
    "lop3.{or,and}.b32 $r32|$p, $s32, $s32, $s32, 0x80, $p",
    "{shl,shr}.{b16,b32,b64,u32,s32,u16,s64} $d, $s, $s32",
    "shf.{l,r}.{clamp,wrap}.b32 $d, $s, $s, $s32",
    "prmt.b32{.f4e,.b4e,.rc8,.ecl,.rc16,} $d, $s, $s, $s32",
    "mov.{b16,u16,b32,u32,s32,f32,b64,u64,f64,pred,b128} $d, $s",
    "mov.{b32,b64} $d, \\{$h16, $h16\\}",
    "mov.{b16,b32} $d, \\{$c8\\, {$c8\\, $c8\\, ,}{$c8,0}\\}",
    "mov.{b16,b32} \\{$c8\\, {$c8\\, $c8\\, ,}{$c8,_}\\}, $s",
    "mov.b64 \\{$r32, {$r32,_}\\}, $d",
    "mov.{v2,v4}.{u32,f32,b32,u64,b16} {v,w,vf,\\{%r1\\, %r2\\}}, {v,w,vf,%tid,\\{%r1\\, 3\\}}",
    "mov.u32 $r32, %{tid.x,ntid.y,ctaid.z,laneid,warpid,clock,smid,lanemask_lt,clock64,gridid,nsmid,tid}",
    "mov.u64 %d1, %{clock64,globaltimer,gridid,tid.x}",
    "cvt{.rn,.rz,.rni,.rzi,}{.ftz,}{.sat,}.{u8,s8,s16,u32,s32,u64,f16,f32,f64,bf16}.{u8,s8,u16,s32,u32,s64,f16,f32,f64,bf16} $y, $s",
    "cvt.{rn,rz}{.relu,.satfinite,}.{f16x2,bf16x2,tf32,e4m3x2}.f32 $r32, %f1{, %f2,}",
    "cvt.pack.sat.{u16,s16,u8,s8}.s32{.b32,} $r32, $s32, $s32{, $s32,}",
    "ld{.volatile,.relaxed.gpu,.acquire.sys,.weak,}{.global,.shared,}{.ca,.cg,.cs,.lu,.cv,}{.nc,}.{u8,s16,u32,f32,b64,f16} $y, [%d1]",
    "ld.global{.nc,}{.L1::evict_last,.L1::no_allocate,}{.L2::128B,.L2::cache_hint,}{.v2,.v4,.v8,}.{b32,f32,u64} {$r32,\\{$r32\\, $r32\\}}, [%d1]{, %d2,}",
    "st{.volatile,.relaxed.gpu,.release.sys,.weak,}{.global,.shared,}{.wb,.cg,.cs,.wt,}.{u8,s16,u32,f32,b64,f16} [%d1], $y",
    "prefetch.{global.L1,global.L2,local.L1,L2,global.L2::evict_last} [%d1]",
    "isspacep.{global,shared,local,const,shared::cluster} $p, %d1",
    "atom{.relaxed,.acquire,}{.gpu,.cta,.sys,}{.global,.shared,}.{add,min,max,inc,dec,and,or,xor,exch}.{u32,s32,u64,b32,b64,f32,f64,f16,f16x2} $d, [%d1], $s",
    "atom{.global,}{.cas,}.{b16,b32,b64,u32} $d, [%d1], $s, $s",
    "red{.relaxed,.release,}{.gpu,}{.global,.shared,}.{add,min,and,inc}.{u32,s32,u64,b32,f32,f64} [%d1], $s",
    "vote.sync.{all,any,uni}.pred $p, {!,}$p, $s32",
    "vote.sync.ballot.b32 $r32, {!,}$p, $s32",
    "match.{any,all}.sync.{b32,b64} $r32{|$p,}, $s, $s32",
    "shfl.sync.{up,down,bfly,idx}.b32 $r32{|$p,}, $s32, $s32, $s32, $s32",
    "redux.sync.{add,min,max,and,or}.{u32,s32,b32,f32} $d, $s, $s32",
    "activemask.b32 $r32",
    "elect.sync {$r32,_}|$p, $s32",
    "{bar.sync,barrier.sync,barrier.sync.aligned,bar.arrive} $s32{, $s32,}",
    "bar.red.{popc.u32,and.pred,or.pred} {$r32,$p}, $s32, {!,}$p",
    "bar.warp.sync $s32",
    "{membar.{gl,cta,sys},fence.{sc,acq_rel}.{gpu,cta,sys,cluster},fence.proxy.{async,alias}}",
    "barrier.cluster.{arrive,wait}{.aligned,}{.release,.acquire,.relaxed,}",
    "cp.async.{ca,cg}.shared.global{.L2::128B,} [%r1], [%d1], {4,8,16,5}{, {4,%r2},}",
    "cp.async.{commit_group,wait_group 1,wait_all,wait_group %r1}",
    "{vadd,vsub,vmin,vmax,vabsdiff}{.u32,.s32}{.u32,.s32}{.s32,.u32}{.sat,} $r32, $r32{.b0,.h1,}, $r32{.b3,.h0,}{, $r32,}",
    "vset.{s32,u32}.u32.{lt,eq} $r32, $r32, $r32",
    "mma.sync.aligned.m16n8k8.row.col.f32.{f16,bf16,tf32}.{f16,bf16}.f32 \\{%f1\\,%f2\\,%f3\\,%f4\\}, \\{%r1\\,%r2\\}, \\{%r3\\}, \\{%f1\\,%f2\\,%f3\\,%f4\\}",
    "ldmatrix.sync.aligned.m8n8.{x1,x2}{.trans,}.shared.b16 {\\{%r1\\},\\{%r1\\,%r2\\}}, [%r5]",
    "tcgen05.alloc{.cta_group::1,.cta_group::2,}.sync.aligned{.shared::cta,.shared::cluster,}{.b32,.u32} [{%r1,%d1,%r1+4}], {32,64,96,512,1024,%r2,%f1,%d1}",
    "tcgen05.dealloc.cta_group::{1,2}.sync{.aligned,}.b32 {%r1,%d1,%f1,5}, {32,48,%r2,%h1}",
    "tcgen05.{relinquish_alloc_permit{.cta_group::1,},wait::ld,wait::st}{.sync,}.aligned",
    "tcgen05.fence::{before,after}_thread_sync{.sync.aligned,}",
    "tcgen05.ld.sync.aligned.{32x32b,16x64b,16x128b,16x256b,64x128b}.{x1,x2,x4}{.pack::16b,}.b32 {\\{%r1\\},\\{%r1\\,%r2\\},\\{%r1\\,%r2\\,%r3\\,%r4\\},\\{%f1\\},\\{%d1\\},%r1}, [{%r5,%d1,%r5+4,%f1}]",
    "tcgen05.st.sync.aligned.{32x32b,16x64b,16x128b,16x256b}.{x1,x2,x4}{.unpack::16b,}.b32 [{%r5,%d1,%r5+4}], {\\{%r1\\},\\{%r1\\,0\\},\\{%r1\\,%r2\\,%f3\\,%r4\\},\\{5\\},%r1}",
    "tcgen05.ld.sync.aligned.16x32bx2.{x1,x2}{.pack::16b,}.b32 {\\{%r1\\},\\{%r1\\,%r2\\}}, [%r5]{\\, 1,\\, %r6,}",
    "tcgen05.st.sync.aligned.16x32bx2.{x1,x2}.b32 [%r5]{\\, 1,\\, %r6,}, {\\{%r1\\},\\{%r1\\,%r2\\}}",
    "tcgen05.mma{.cta_group::1,.cta_group::2}.kind::{f16,tf32,f8f6f4,i8}{.collector::a::fill,.collector::a::lastuse,.ashift,} [{%r1,%d1}], {%d1,[%r2],[%d2],%r3}, {%d2,%r2}, {%r3,5,%d3}, {%p1,!%p1,1,%r8}{\\, 3,\\, 16,}",
    "tcgen05.mma.cta_group::{1,2}.kind::{f16,tf32} [%r1], %d1, %d2, %r3, \\{%r4, %r5, {%r6,0}, %r7{\\,%r4\\,%r5\\,%r6\\,%r7,}\\}, %p1{\\, 3,}",
    "tcgen05.commit{.cta_group::1,.cta_group::2,}.mbarrier::arrive::one{.shared::cluster,.shared::cta,}{.multicast::cluster,}.b64 [{%r1,%d1}]{\\, %h1,\\, %r1,}",
    "tcgen05.cp{.cta_group::1,.cta_group::2,}.{128x256b,4x256b,128x128b,64x128b,32x128b}{.warpx4,.warpx2::02_13,}{.b8x16.b6x16_p32,.b8x16,} [{%r1,%d1}], {%d1,%r1,5}",
    "tcgen05.shift{.cta_group::1,.cta_group::2,}{.down,} [{%r1,%d1}]",
    "multimem.ld_reduce{.weak,.relaxed.gpu,.acquire.sys,.relaxed,}{.global,.shared,}.{add,min,and,inc}{.acc::f32,.acc::f16,}{.v2,.v4,}.{u32,s64,b32,f32,f64,f16x2,bf16,e4m3x4} {$d,\\{$d\\, $d\\}}, [%d1]",
    "multimem.st{.weak,.release.sys,.relaxed.cta,}{.global,}{.v2,.v4,}.{u32,b64,f32,f64,f16,bf16x2,e5m2x4} [%d1], {$s,\\{$d\\, $s\\}}",
    "multimem.red{.relaxed.gpu,.release,}{.global,}.{add,max,xor}{.v2,}.{u32,s32,b64,f32,f16x2,bf16} [%d1], {$s,\\{$d\\, $d\\}}",
    "multimem.cp{.reduce,}.async.bulk.global.shared::{cta,cluster}{.bulk_group,}{.cp_mask,.add,.min,}{.noftz,}{.u32,.f16,} [%d1], [{%r1,%d2}], {%r2,32,8}{, %h1,}",
    "tex.{1d,2d,3d,a1d}.v4.{f32,s32,u32}.{f32,s32} {wf,w,\\{%r1\\,%r2\\,%r3\\,%r4\\}}, [%d1, {vf,wf,\\{%f1\\},\\{%f1\\,%f2\\},%f1}]",
    "suld.b.{1d,2d}.{b32,v2.b32,b8}.{trap,clamp,zero} {%r1,v,\\{%r1\\,%r2\\}}, [%d1, {v,\\{%r1\\},\\{%r1\\,%r2\\},%r1}]",
    "sust.{b,p}.{1d,2d}.{b32,v2.b32}.{trap,clamp} [%d1, {v,\\{%r1\\,%r2\\},%r1}], {%r1,v,\\{%r1\\,%r2\\}}",
    "{txq.width,txq.height,suq.width,txq.depth}.b32 $r32, [%d1]",
    "{exit,trap,brkpt,ret,ret.uni,nanosleep.u32 $s32,pmevent 1,pmevent.mask 3}",
    "bra{.uni,} L?name; L?name: mov.u32 %r1\\, 1",
    "istypep.{texref,surfref} $p, %d1",
    "griddepcontrol.{wait,launch_dependents}",
    "mbarrier.{init,inval}.shared{::cta,}.b64 [%r1]{, %r2,}",
    "mbarrier.arrive{.expect_tx,.noComplete,}.shared.b64 {%d1,_}, [%r1]{, %r2,}",
    "mbarrier.test_wait{.parity,}.shared.b64 $p, [%r1], {%d1,%r2}",
    "mapa{.shared::cluster,}.{u32,u64} {%r1,%d1}, {%r2,%d2}, %r3",
    "createpolicy.fractional.L2::evict_last.b64 %d1{, 1.0,}",
    "applypriority.global.L2::evict_normal [%d1], 128",
    "discard.global.L2 [%d1], 128",
    "fns.b32 $r32, $s32, $s32, $s32",
];

/// Expands the choices of a template, then its operands.
fn expand(template: &str, random: &mut Random) -> String {
    let mut text = template
        .replace("\\{", "\u{1}")
        .replace("\\}", "\u{2}")
        .replace("\\,", "\u{3}");
    while let Some(close) = text.find('}') {
        let open = text[..close].rfind('{').expect("choices have both braces");
        let choices: Vec<&str> = text[open + 1..close].split(',').collect();
        let chosen = random.pick(&choices).to_owned();
        text.replace_range(open..=close, &chosen);
    }
    let text = operands(&text, random);
    text.replace('\u{1}', "{")
        .replace('\u{2}', "}")
        .replace('\u{3}', ",")
}

const TYPES: [&str; 17] = [
    "u8", "s8", "b8", "u16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "f16", "f32", "f64",
    "b128", "pred", "f16x2",
];

/// Replaces the operands that begin with `$`.
fn operands(template: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut remaining = template;
    while let Some(start) = remaining.find('$') {
        text += &remaining[..start];
        let word: String = remaining[start + 1..]
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        remaining = &remaining[start + 1 + word.len()..];
        text += &operand(&word, template, random);
    }
    text + remaining
}

/// Returns an operand of a kind. `d` and `s` are a destination and a source of the instruction's
/// last type, `x` is one of twice its width after `.wide`, and `y` is one of the first type.
fn operand(kind: &str, template: &str, random: &mut Random) -> String {
    let types: Vec<&str> = template
        .split([' ', '.'])
        .filter(|word| is_type(word))
        .collect();
    let first = types.first().copied().unwrap_or("b32");
    let last = types.last().copied().unwrap_or("b32");
    match kind {
        "d" => register(last, random),
        "s" => source(last, random),
        "x" if template.contains(".wide") => {
            register(if last.ends_with("16") { "u32" } else { "u64" }, random)
        }
        "x" => register(last, random),
        "y" => register(first, random),
        "r32" => register("u32", random),
        "s32" => source("u32", random),
        "c8" => register("b8", random),
        "h16" => register("b16", random),
        "p" => register("pred", random),
        "align" => random.pick(&["1", "2", "4", "8", "16", "128", "3"]).into(),
        "type" => random.pick(&TYPES).into(),
        "constant" => random.pick(CONSTANTS).into(),
        "base" => random
            .pick(&["%d1", "%r1", "?name_g", "?name_s", "16", "%d2"])
            .into(),
        "offset" => random
            .pick(&[
                "4", "-4", "4*2", "(2+2)", "8-4", "0x10", "1<<4", "WARP_SZ", "%r1", "4.0",
            ])
            .into(),
        other => format!("${other}"),
    }
}

const CONSTANTS: &[&str] = &[
    "1",
    "-1",
    "1+2",
    "(1+2)*3",
    "~0",
    "1<<3|1",
    "3>2?1:0",
    "0x10",
    "0xFFU",
    "1.0",
    "-1.5",
    "0f3F800000",
    "0d3FF0000000000000",
    "WARP_SZ",
    "!1",
    "7/2",
    "7%4",
    "1==1",
    "-(-3)",
    "1.0+2.0",
    "010",
    "0b11",
];

fn is_type(word: &str) -> bool {
    matches!(word.as_bytes().first(), Some(b'u' | b's' | b'b' | b'f'))
        && word[1..].starts_with(|it: char| it.is_ascii_digit())
        || matches!(word, "pred" | "bf16" | "bf16x2")
}

/// Returns a register of a type or, rarely, of another type.
fn register(of: &str, random: &mut Random) -> String {
    if random.next().is_multiple_of(24) {
        return random
            .pick(&["%r1", "%d1", "%f1", "%h1", "%c1", "p", "v", "_"])
            .into();
    }
    let all: &[&str] = match of {
        "pred" => &["%p1", "%p2", "p", "q"],
        "f32" => &["%f1", "%f2", "vf.x", "wf.w"],
        "f64" => &["%e1", "%e2"],
        "u8" | "s8" | "b8" => &["%c1", "%c2", "%h1"],
        "u16" | "s16" | "b16" | "f16" | "bf16" => &["%h1", "%h2", "vh.x"],
        "u64" | "s64" | "b64" => &["%d1", "%d2", "vd.x", "vd.y"],
        _ => &["%r1", "%r2", "v.x", "w.y", "v.r", "w.a"],
    };
    random.pick(all).into()
}

/// Returns a register or an immediate of a type.
fn source(of: &str, random: &mut Random) -> String {
    if of == "pred" || !random.next().is_multiple_of(4) {
        return register(of, random);
    }
    let all: &[&str] = match of {
        "f32" | "f64" => &["1.5", "0f3F800000", "-2.0", "1", "0d3FF0000000000000"],
        _ => &["1", "-1", "31", "0x1f", "1+2", "WARP_SZ-1", "1.5"],
    };
    random.pick(all).into()
}
