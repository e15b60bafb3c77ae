//! The report of the findings.

use std::io;

use crate::doctor::finding::{Finding, Severity};
use crate::terminal::{Color, Colors};

/// The findings, and whether CUDA works.
pub(super) struct Report {
    works: bool,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        let works = findings
            .iter()
            .all(|finding| finding.severity != Severity::Failure);
        Self { works, findings }
    }

    /// Returns `true` if CUDA works.
    pub(super) fn works(&self) -> bool {
        self.works
    }

    /// Returns the findings.
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Writes a line for each finding, and below it one for each fix.
    pub(super) fn print(&self, out: &mut impl io::Write, colors: Colors) -> io::Result<()> {
        for finding in &self.findings {
            let (word, color) = label(finding.severity);
            writeln!(
                out,
                "{} {}",
                colors.paint(color, &format!("{word:>8}")),
                indented(&finding.what)
            )?;
            for fix in &finding.fixes {
                writeln!(out, "           - {}", indented(fix))?;
            }
        }
        let verdict = if self.works {
            ("CUDA works here", Color::Green)
        } else {
            ("CUDA does not work here", Color::Red)
        };
        writeln!(out, "\n{}", colors.paint(verdict.1, verdict.0))
    }
}

fn label(severity: Severity) -> (&'static str, Color) {
    match severity {
        Severity::Good => ("ok", Color::Green),
        Severity::Note => ("note", Color::Blue),
        Severity::Warning => ("warning", Color::Yellow),
        Severity::Failure => ("failure", Color::Red),
    }
}

/// Indents further lines below the first.
fn indented(text: &str) -> String {
    text.replace('\n', "\n             ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(findings: Vec<Finding>) -> String {
        let mut out = Vec::new();
        Report::new(findings)
            .print(&mut out, Colors::NONE)
            .expect("print failed");
        String::from_utf8(out).expect("not UTF-8")
    }

    #[test]
    fn failure_decides_and_its_fixes_follow_it() {
        let text = shown(vec![
            Finding::good("a", "fine"),
            Finding::failure("b", "broken\nbadly", ["fix it", "or not"]),
        ]);
        let expected = "      ok fine
 failure broken
             badly
           - fix it
           - or not

CUDA does not work here
";
        assert_eq!(text, expected);
    }

    #[test]
    fn warnings_do_not_keep_cuda_from_working() {
        assert!(shown(vec![Finding::warning("a", "odd", ["fix it"])]).contains("CUDA works here"));
    }
}
