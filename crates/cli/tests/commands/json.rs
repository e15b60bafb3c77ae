//! The JSON output of the program, validated against its schemas.

use serde_json::Value;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn curium(arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = program::curium();
    let output = command
        .args(arguments)
        .env("CURIUM_SIM_DEVICES", "3")
        .output()
        .expect("the program was built");
    let error = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|bad| panic!("{arguments:?}: {bad}: {error}"));
    (output.status.code(), value)
}

/// Returns the differences between `value` and `schema`. Schema keywords that are not implemented
/// here count as differences.
fn faults(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let Some(words) = schema.as_object() else {
        return vec![format!("{path}: the schema is no object")];
    };
    let faults = words
        .iter()
        .flat_map(|(word, expected)| match word.as_str() {
            "$schema" | "title" | "description" => Vec::new(),
            "const" if expected == value => Vec::new(),
            "enum" if expected.as_array().is_some_and(|all| all.contains(value)) => Vec::new(),
            "const" | "enum" => vec![format!("{path}: {value} is not {expected}")],
            "type" => {
                if has_type(expected, value) {
                    Vec::new()
                } else {
                    vec![format!("{path}: {value} is no {expected}")]
                }
            }
            "required" => absent(expected, value)
                .into_iter()
                .map(|name| format!("{path}: {name} is absent"))
                .collect(),
            "properties" => properties(expected, value, path),
            "additionalProperties" => additional(schema, expected, value, path),
            "items" => elements(value)
                .flat_map(|(index, item)| faults(expected, item, &format!("{path}/{index}")))
                .collect(),
            other => vec![format!("{path}: the word {other} is not known")],
        });
    faults.collect()
}

fn has_type(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::Array(names) => names.iter().any(|name| has_type(name, value)),
        name => match name.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some("integer") => value.is_i64() || value.is_u64(),
            _ => false,
        },
    }
}

fn absent(required: &Value, value: &Value) -> Vec<String> {
    let names = required
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    names
        .filter(|name| value.get(name).is_none())
        .map(str::to_owned)
        .collect()
}

fn properties(expected: &Value, value: &Value, path: &str) -> Vec<String> {
    let properties = expected.as_object().into_iter().flatten();
    properties
        .filter_map(|(name, schema)| {
            Some(faults(schema, value.get(name)?, &format!("{path}/{name}")))
        })
        .flatten()
        .collect()
}

/// Checks properties that the schema does not name: they are either forbidden or must match
/// `expected`.
fn additional(schema: &Value, expected: &Value, value: &Value, path: &str) -> Vec<String> {
    let named = schema.get("properties").and_then(Value::as_object);
    let mut additional = Vec::new();
    for (name, item) in value.as_object().into_iter().flatten() {
        if named.is_some_and(|named| named.contains_key(name)) {
            continue;
        }
        match expected {
            Value::Bool(false) => additional.push(format!("{path}: {name} is not known")),
            schema => additional.extend(faults(schema, item, &format!("{path}/{name}"))),
        }
    }
    additional
}

fn elements(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

#[test]
fn info_matches_its_schema() {
    let (code, info) = curium(&["info", "--device", "sim", "--json"]);
    assert_eq!(code, Some(0));
    let (_, schema) = curium(&["info", "--schema"]);
    assert_eq!(faults(&schema, &info, ""), Vec::<String>::new());
    assert_eq!(info["devices"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        info["links"].as_array().map(Vec::len),
        Some(6),
        "each of three devices to each other"
    );
    assert!(info["simulated"].is_string());
    assert!(info["devices"][0]["attributes"]["WARP_SIZE"] == 32);
}

#[test]
fn doctor_matches_its_schema() {
    let (code, doctor) = curium(&["doctor", "--device", "sim", "--json"]);
    assert_eq!(code, Some(0));
    let (_, schema) = curium(&["doctor", "--schema"]);
    assert_eq!(faults(&schema, &doctor, ""), Vec::<String>::new());
    assert_eq!(doctor["works"], true);
    let of_devices =
        |finding: &&Value| finding["check"] == "device" && finding["severity"] == "good";
    assert_eq!(
        doctor["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(of_devices)
            .count(),
        3
    );
}

#[test]
fn schema_violation_is_detected() {
    let (_, schema) = curium(&["info", "--schema"]);
    let (_, right) = curium(&["info", "--device", "sim", "--json"]);
    let alterations: [fn(&mut Value); 5] = [
        |info| info["schema"] = 2.into(),
        |info| info["devices"][1]["name"] = Value::Null,
        |info| info["devices"][0]["attributes"]["WARP_SIZE"] = "wide".into(),
        |info| info["links"][0]["atomics"] = "many".into(),
        |info| drop(info.as_object_mut().and_then(|info| info.remove("driver"))),
    ];
    for (number, alter) in alterations.into_iter().enumerate() {
        let mut altered = right.clone();
        alter(&mut altered);
        assert_eq!(
            faults(&schema, &altered, "").len(),
            1,
            "alteration {number}"
        );
    }
}

#[test]
fn bench_matches_its_schema() -> TestResult {
    let (code, bench) = curium(&["bench", "--device", "sim", "--json", "--rounds", "2"]);
    assert_eq!(code, Some(0));
    let (_, schema) = curium(&["bench", "--schema"]);
    assert_eq!(faults(&schema, &bench, ""), Vec::<String>::new());
    let measured = bench["comparisons"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["id"].as_str());
    let list = program::curium()
        .args(["bench", "--device", "sim", "--list"])
        .output();
    let list = String::from_utf8(list?.stdout)?;
    assert_eq!(
        measured.collect::<Vec<_>>(),
        list.lines().collect::<Vec<_>>()
    );
    assert!(
        list.lines().any(|id| id == "launch/threads/2")
            && list.lines().any(|id| id.starts_with("allocate/live/"))
    );
    assert_eq!(bench["simulated"], true);
    Ok(())
}
