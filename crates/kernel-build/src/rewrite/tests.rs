//! The rewrite of the output of several releases of rustc. The script `tests/corpus/write` writes
//! the files.

use super::*;

type TestResult = Result<(), String>;

/// The output of a release for each source of `tests/corpus`.
struct Corpus {
    release: &'static str,
    kernel: &'static str,
    panics: &'static str,
    calls: &'static str,
    refused: &'static str,
}

macro_rules! corpus {
    ($($release:literal)*) => {
        &[$(Corpus {
            release: $release,
            kernel: include_str!(concat!("../../tests/corpus/", $release, "/kernel.ll")),
            panics: include_str!(concat!("../../tests/corpus/", $release, "/panics.ll")),
            calls: include_str!(concat!("../../tests/corpus/", $release, "/calls.ll")),
            refused: include_str!(concat!("../../tests/corpus/", $release, "/refused.ll")),
        }),*]
    };
}

const RELEASES: &[Corpus] = corpus!("1.97" "1.98" "beta");

fn rewrite_with(text: &str, panics: Panics) -> Result<Rewritten, Vec<String>> {
    rewrite_for(text, panics, &[])
}

fn rewrite_for(text: &str, panics: Panics, targets: &[Target]) -> Result<Rewritten, Vec<String>> {
    // The mangled functions that the crates only declare are those of `core`. Those that format are
    // defined in it.
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("declare ") {
            Some(rest) if rest.contains("_R") && rest.contains("3fmt") => {
                format!("define {rest} {{\n  ret i1 false\n}}\n")
            }
            _ => format!("{line}\n"),
        });
    let text: String = lines.collect();
    let module = Module::parse(&text).map_err(|error| vec![error])?;
    let declared = module
        .functions
        .iter()
        .filter(|function| function.body.is_none() && function.name.starts_with("_R"));
    let library_symbols = declared.map(|function| function.name.clone()).collect();
    rewrite(
        &text,
        &Options {
            panics,
            targets,
            library_symbols: &library_symbols,
        },
    )
}

/// Rewrites a text for each release, and passes the result to a test.
fn for_each(text: fn(&Corpus) -> &str, test: fn(&str) -> TestResult) -> TestResult {
    for corpus in RELEASES {
        let rewritten = rewrite_with(text(corpus), Panics::Message);
        let result = rewritten
            .map_err(|errors| errors.join("\n"))
            .and_then(|rewritten| test(&rewritten.ir));
        result.map_err(|error| format!("Rust {}: {error}", corpus.release))?;
    }
    Ok(())
}

/// Requires that a text contains another.
fn require(text: &str, part: &str) -> TestResult {
    if text.contains(part) {
        return Ok(());
    }
    Err(format!("`{part}` is missing in:\n{text}"))
}

#[test]
fn kernels_become_entries() -> TestResult {
    for_each(
        |corpus| corpus.kernel,
        |ir| {
            require(
                ir,
                "define ptx_kernel void @reverse(ptr noalias nonnull readonly noundef",
            )?;
            require(ir, ", ptr noalias nonnull noundef")?;
            require(ir, "\"nvvm.reqntid\"=\"64,1,1\" \"nvvm.minctasm\"=\"2\"")?;
            require(ir, "call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()")?;
            if ir.contains("curium.") || ir.contains("target-cpu") {
                return Err(format!("a reserved name or a processor is left:\n{ir}"));
            }
            Ok(())
        },
    )
}

#[test]
fn statics_move_to_shared_memory() -> TestResult {
    for_each(
        |corpus| corpus.kernel,
        |ir| {
            require(
                ir,
                "@kernel_entry_TILE = addrspace(3) global [256 x i8] undef, align 16",
            )?;
            require(
                ir,
                "ptr addrspacecast (ptr addrspace(3) @kernel_entry_TILE to ptr)",
            )
        },
    )
}

/// Also through pointers. Without it, LLVM duplicates barriers into branches.
#[test]
fn every_call_is_convergent() -> TestResult {
    for_each(
        |corpus| corpus.calls,
        |ir| {
            let mut indirect = 0;
            for line in ir.lines().filter(|line| line.contains(" call ")) {
                let is_of_rustc = line.contains("@__assertfail")
                    || line.contains("@llvm.") && !line.contains("@llvm.nvvm.");
                let is_pure = line.contains("memory(none)");
                if !is_of_rustc && !is_pure && !line.contains("convergent") {
                    return Err(format!("not convergent: {line}"));
                }
                indirect += u32::from(
                    line.contains(" %") && !line.contains('@') && !line.contains(" asm "),
                );
            }
            for line in ir
                .lines()
                .filter(|line| line.starts_with("define ") && !line.contains("memory(none)"))
            {
                // Instructions of the GPU are inlined, and panics load nothing that others write.
                let is_without_loads = line.contains("alwaysinline") || line.contains("cold");
                if !line.contains("sanitize_thread") && !is_without_loads {
                    return Err(format!("loads early: {line}"));
                }
                if !line.contains("convergent") && !line.contains("i64 %2) alwaysinline nounwind") {
                    return Err(format!("not convergent: {line}"));
                }
            }
            if indirect != 2 {
                return Err(format!("{indirect} calls through pointers:\n{ir}"));
            }
            Ok(())
        },
    )
}

#[test]
fn instructions_are_defined() -> TestResult {
    for_each(
        |corpus| corpus.calls,
        |ir| {
            require(
                ir,
                "%r = atomicrmw add ptr %0, i32 %1 syncscope(\"device\") monotonic",
            )?;
            require(
                ir,
                "call { i32, i32 } asm \"mov.b64 {$0, $1}, $2;\", \"=r,=r,l\"(i64 %2) nounwind memory(none)",
            )?;
            require(
                ir,
                "call void asm sideeffect \"bar.warp.sync $0;\", \"r,~{memory}\"(i32 %0) convergent nounwind",
            )
        },
    )
}

/// Literals are printed, and of other messages only the kind of panic: they may not end with a
/// zero.
#[test]
fn panics_print_messages_and_lines() -> TestResult {
    for_each(
        |corpus| corpus.panics,
        |ir| {
            for message in [
                "seven is wrong\\00",
                "too large\\00",
                "index out of bounds\\00",
                "attempt to divide by zero\\00",
                "`Option::expect()` on a `None` value\\00",
            ] {
                require(ir, message)?;
            }
            require(
                ir,
                "call void @__assertfail(ptr %message, ptr %file, i32 %line",
            )?;
            require(ir, "c\"panics.rs\\00\"")?;
            require(
                ir,
                "call void @panic_with_index(i64 1, i64 %n, ptr @panic_message_",
            )?;
            if ir.contains("two or more\\00") {
                return Err("a message that is no literal is printed".to_owned());
            }
            Ok(())
        },
    )
}

#[test]
fn panics_trap() -> TestResult {
    for corpus in RELEASES {
        let ir = rewrite_with(corpus.panics, Panics::Trap)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        require(&ir, "call void @llvm.trap()")?;
        if ir.contains("__assertfail") || ir.contains("seven") {
            return Err(format!("Rust {}: a message is left:\n{ir}", corpus.release));
        }
    }
    Ok(())
}

#[test]
fn refused_items_are_named() -> TestResult {
    for corpus in RELEASES {
        let Err(errors) = rewrite_with(corpus.refused, Panics::Message) else {
            return Err(format!("Rust {}: accepted", corpus.release));
        };
        let errors = errors.join("\n");
        for text in [
            "uses an atomic of `core`; use the atomics of `curium_kernel` (kernel refused → refused::exchange → ",
            "uses an atomic of `core`; use the atomics of `curium_kernel` (kernel refused → refused::load → ",
            "static `refused::COUNTER`: the threads of a launch would share it",
            "function `foreign`: it has no definition for the device",
        ] {
            require(&errors, text)?;
        }
    }
    Ok(())
}

/// The text does not depend on hashes of crates, and so neither on the folder of a package.
#[test]
fn crate_hashes_do_not_matter() -> TestResult {
    for corpus in RELEASES {
        let module = corpus.calls;
        let start = module.find("Cs").ok_or("no mangled name")?;
        let end = start + module[start..].find("_5calls").ok_or("no mangled name")?;
        let other = module.replace(&module[start..end], "Cs000000000000");
        let left = rewrite_with(module, Panics::Message)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        let right = rewrite_with(&other, Panics::Message)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        if left != right {
            return Err(format!("Rust {}:\n{left}\n{right}", corpus.release));
        }
    }
    Ok(())
}

/// An expression has one value in all copies, on the device and in the compiler.
#[test]
fn arithmetic_is_exact() -> TestResult {
    let code = "%m = call nsz contract float @llvm.maximumnum.f32(float %a, float 0.0)\n  %n = fmul fast float %a, %a\n  \
                %o = frem nsz float %a, 3.0\n  ret void";
    for corpus in RELEASES {
        let text = corpus.calls.replacen("ret void", code, 1)
            + "declare float @llvm.maximumnum.f32(float, float)\n";
        let ir = rewrite_with(&text, Panics::Message)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        require(
            &ir,
            "%m = call float @llvm.maximumnum.f32(float %a, float 0.0)\n",
        )?;
        require(&ir, "%n = fmul float %a, %a\n")?;
        require(
            &ir,
            "%o = call float @curium_remainder_f32(float %a, float 3.0)\n",
        )?;
        require(&ir, "define internal float @curium_remainder_f32(")?;
    }
    Ok(())
}

/// Metadata lists functions that may not be kept, since Rust 1.100.
#[test]
fn metadata_that_mentions_functions_is_left_out() -> TestResult {
    let metadata = "!97 = !{ptr @nothing}\n!98 = !{!\"a @b\"}\n";
    for corpus in RELEASES {
        let text = corpus
            .calls
            .replacen("ret void", "ret void, !callees !97, !kept !98", 1)
            + metadata;
        let ir = rewrite_with(&text, Panics::Message)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        require(&ir, "ret void, !kept !98")?;
        require(&ir, "!98 = !{!\"a @b\"}")?;
        if ir.contains("!97") {
            return Err(format!("Rust {}:\n{ir}", corpus.release));
        }
    }
    Ok(())
}

/// `core` of rustup has line tables, and PTX with those is compiled without optimizations.
#[test]
fn debug_information_is_source_lines_only() -> TestResult {
    let unit = |kind: &str| {
        format!(
            "!97 = distinct !DICompileUnit(language: DW_LANG_Rust, emissionKind: {kind}, nameTableKind: None)\n"
        )
    };
    for kind in ["LineTablesOnly", "FullDebug", "DebugDirectivesOnly"] {
        let text = RELEASES[0].kernel.to_owned() + &unit(kind);
        let ir = rewrite_with(&text, Panics::Message)
            .map_err(|errors| errors.join("\n"))?
            .ir;
        require(&ir, &unit("DebugDirectivesOnly"))?;
    }
    Ok(())
}

/// An operand that an instruction reads and writes is in one register.
#[test]
fn read_outputs_are_tied() -> TestResult {
    let text = "declare void @\"curium.asm|add.f32 $0, $0, $2; add.f32 $1, $0, $2;|+f,=f,f|\"(ptr, ptr, float)\n";
    let module = Module::parse(text)?;
    let definition = instruction::define(&module.functions[0], "add")?;
    require(&definition, "%t0 = load float, ptr %0\n")?;
    require(
        &definition,
        "\"=f,=f,f,0,~{memory}\"(float %2, float %t0) convergent nounwind",
    )?;
    require(&definition, "store float %v0, ptr %0\n")
}

/// An instruction that the oldest target lacks is an error that names both.
#[test]
fn instructions_need_targets() -> TestResult {
    let sm_80 = Target::new("sm_80").map_err(|error| error.to_string())?;
    let sm_90 = Target::new("sm_90").map_err(|error| error.to_string())?;
    for corpus in RELEASES {
        let text = corpus.calls.replace("|=r,=r,l|pure", "|=r,=r,l|pure,sm_89");
        let rewritten = rewrite_for(&text, Panics::Message, std::slice::from_ref(&sm_90));
        let rewritten = rewritten.map_err(|errors| errors.join("\n"))?;
        require(&rewritten.ir, "asm \"mov.b64 {$0, $1}, $2;\", \"=r,=r,l\"")?;
        let targets = [sm_90.clone(), sm_80.clone()];
        let Err(errors) = rewrite_for(&text, Panics::Message, &targets) else {
            return Err("an instruction for sm_89 is accepted for sm_80".to_owned());
        };
        let errors = errors.join("\n");
        require(
            &errors,
            "inline PTX `mov.b64 {$0, $1}, $2;`: it needs sm_89, and the kernels are compiled for sm_80",
        )?;
        require(&errors, "kernel ")?;
    }
    Ok(())
}
