//! The differences between the ABI of one release and the bindings.

use std::collections::BTreeMap;
use std::fmt;

use quote::ToTokens;
use serde::Deserialize;

use super::structure::Structure;
use super::surface::{Record, Surface, Versions};
use crate::version::Release;

/// The kind of difference.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A function is missing or has another signature.
    Function,
    /// A struct or union is missing.
    Record,
    /// The size of a record.
    Size,
    /// The alignment of a record.
    Alignment,
    /// A field is missing, or has another offset or type. It is named `record::field`.
    Field,
    /// A constant is missing or has another value.
    Constant,
    /// The version that introduced a function, or the last one that has it.
    Since,
}

/// A difference between a release and the bindings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    pub(crate) release: Release,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The declarations of the release and of the bindings.
    pub(crate) detail: String,
}

/// Collects the differences of one release.
struct Comparison<'a> {
    release: Release,
    theirs: &'a Surface,
    ours: &'a Surface,
    differences: Vec<Difference>,
}

/// Returns every difference of `theirs`, the declarations of `release`, from `ours`. Additional items of `ours` are not differences.
pub(crate) fn compare(
    release: Release,
    theirs: &Surface,
    ours: &Surface,
    versions: &BTreeMap<String, Versions>,
) -> Vec<Difference> {
    let mut comparison = Comparison {
        release,
        theirs,
        ours,
        differences: Vec::new(),
    };
    comparison.functions();
    comparison.records();
    comparison.constants();
    comparison.dates(versions);
    comparison.differences
}

impl Comparison<'_> {
    fn functions(&mut self) {
        let structure = Structure::new(self.theirs, self.ours);
        for (name, theirs) in &self.theirs.functions {
            let declaration = text(theirs);
            match self.ours.functions.get(name) {
                None => {
                    self.report(
                        Kind::Function,
                        name,
                        format!(
                            "`{declaration}` in {}, missing in the bindings",
                            self.release.product
                        ),
                    );
                }
                Some(ours) if !structure.same_signature(theirs, ours) => {
                    self.report(
                        Kind::Function,
                        name,
                        format!(
                            "`{declaration}` in {}, `{}` in the bindings",
                            self.release.product,
                            text(ours)
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn records(&mut self) {
        for (name, theirs) in &self.theirs.records {
            match self.ours.records.get(name) {
                None => self.report(Kind::Record, name, "missing in the bindings".to_owned()),
                Some(ours) => self.layout(name, theirs, ours),
            }
        }
    }

    fn layout(&mut self, name: &str, theirs: &Record, ours: &Record) {
        for (kind, theirs, ours) in [
            (Kind::Size, theirs.size, ours.size),
            (Kind::Alignment, theirs.alignment, ours.alignment),
        ] {
            if theirs != ours {
                self.report(
                    kind,
                    name,
                    format!(
                        "{theirs} bytes in {}, {ours} in the bindings",
                        self.release.product
                    ),
                );
            }
        }
        let product = self.release.product;
        let structure = Structure::new(self.theirs, self.ours);
        for (field, theirs) in &theirs.fields {
            let described = format!("`{}` at offset {}", text(&theirs.ty), theirs.offset);
            let detail = match ours.fields.get(field) {
                None => format!("{described} in {product}, missing in the bindings"),
                Some(ours)
                    if theirs.offset != ours.offset
                        || !structure.same_type(&theirs.ty, &ours.ty) =>
                {
                    format!(
                        "{described} in {product}, `{}` at offset {} in the bindings",
                        text(&ours.ty),
                        ours.offset
                    )
                }
                Some(_) => continue,
            };
            self.report(Kind::Field, &format!("{name}::{field}"), detail);
        }
    }

    fn constants(&mut self) {
        let product = self.release.product;
        for (name, theirs) in &self.theirs.constants {
            match self.ours.constants.get(name) {
                None => {
                    self.report(
                        Kind::Constant,
                        name,
                        format!("{} in {product}, missing in the bindings", theirs.value),
                    );
                }
                Some(ours) if theirs.value != ours.value => {
                    self.report(
                        Kind::Constant,
                        name,
                        format!(
                            "{} in {product}, {} in the bindings",
                            theirs.value, ours.value
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn dates(&mut self, versions: &BTreeMap<String, Versions>) {
        for (name, dated) in versions {
            let present = self.theirs.functions.contains_key(name);
            if present && !dated.contain(self.release.version) {
                self.report(
                    Kind::Since,
                    name,
                    format!("dated to {}, but {} has it", dated.in_words(), self.release),
                );
            }
            if !present && dated.contain(self.release.version) {
                self.report(
                    Kind::Since,
                    name,
                    format!(
                        "dated to {}, but {} lacks it",
                        dated.in_words(),
                        self.release
                    ),
                );
            }
        }
    }

    fn report(&mut self, kind: Kind, name: &str, detail: String) {
        self.differences.push(Difference {
            release: self.release,
            kind,
            name: name.to_owned(),
            detail,
        });
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Function => "function",
            Self::Record => "record",
            Self::Size => "size",
            Self::Alignment => "alignment",
            Self::Field => "field",
            Self::Constant => "constant",
            Self::Since => "since",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            release,
            kind,
            name,
            detail,
        } = self;
        write!(formatter, "{release}: {kind} {name}: {detail}")
    }
}

/// Formats tokens with the usual spacing.
fn text(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    [
        (" :: ", "::"),
        (":: ", "::"),
        (" : ", ": "),
        (" ,", ","),
        ("* mut ", "*mut "),
        ("* const ", "*const "),
    ]
    .iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}
