//! Changes of JSON that is read by its fields: one is replaced, removed, doubled, renamed or taken from elsewhere.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// A small generator: what it draws depends on the seed alone.
struct Draw(u64);

impl Draw {
    fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 1 | 1)
    }

    /// A number below this one, 0 below 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as usize).checked_rem(end).unwrap_or_default()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Words and numbers that mean something somewhere.
fn odd(draw: &mut Draw) -> Value {
    const WORDS: &[&str] = &[
        "",
        "0",
        "-1",
        "1e999",
        "1e-999",
        "9223372036854775807",
        "18446744073709551616",
        "1.5Gi",
        "100%",
        "-10%",
        "0.5",
        "4294967295",
        "2147483647",
        "enabled",
        "disabled",
        "Parallel",
        "Ordered",
        "OrderedReady",
        "soft",
        "hard",
        "True",
        "False",
        "True ",
        "é",
        "a/b",
        "../..",
        "A_b",
        "-",
        "2026-01-01T00:00:00Z",
        "9999-12-31T23:59:60Z",
        "rack",
        "kubernetes.io/hostname",
        "prefill",
        "decode",
        "rolegate.dev/hold",
        "c0-0",
        "OnDelete",
        "RollingUpdate",
        "RequireSegmentAffinity",
        "DoNotSchedule",
        "Exists",
        "NotIn",
        "Gt",
        "default",
        "StatefulSet",
        "LeaderWorkerSet",
    ];
    const NUMBERS: &[i64] = &[
        0,
        1,
        2,
        3,
        7,
        64,
        65,
        100,
        -1,
        i32::MAX as i64,
        i32::MIN as i64,
        u32::MAX as i64,
        i64::MAX,
        i64::MIN,
        1 << 32,
    ];
    match draw.below(10) {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!(draw.below(2) == 0),
        6 | 7 => json!(draw.of(NUMBERS)),
        _ => json!(draw.of(WORDS)),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value of this number, counted from the root down.
fn nth<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| nth(value, number)),
        Value::Object(fields) => fields.values_mut().find_map(|value| nth(value, number)),
        _ => None,
    }
}

fn any<'a>(draw: &mut Draw, value: &'a mut Value) -> &'a mut Value {
    let mut number = draw.below(count(value));
    // The borrow of the search does not end where it finds nothing; it always finds.
    nth(value, &mut number).expect("as many as were counted")
}

/// The input with one to four changes; `None` where it is no JSON, and now and then.
pub fn changed(data: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut draw = Draw::new(seed);
    if draw.below(8) == 0 {
        return None;
    }
    let mut root: Value = serde_json::from_slice(data).ok().filter(|root: &Value| root.is_object())?;
    for _ in 0..=draw.below(4) {
        let donor = any(&mut draw, &mut root.clone()).clone();
        let at = any(&mut draw, &mut root);
        change(&mut draw, at, donor);
    }
    serde_json::to_vec(&root).ok()
}

/// The first input with something of the other in the place of something of its own.
pub fn crossed(one: &[u8], other: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut draw = Draw::new(seed);
    let [mut one, mut other] = [one, other].map(|data| serde_json::from_slice::<Value>(data).unwrap_or_default());
    if !one.is_object() || !other.is_object() {
        return None;
    }
    let donor = any(&mut draw, &mut other).clone();
    let at = any(&mut draw, &mut one);
    match (at, donor) {
        (Value::Object(fields), Value::Object(others)) if draw.below(2) == 0 => fields.extend(others),
        (Value::Array(list), donor) => list.push(donor),
        (at, donor) => *at = donor,
    }
    serde_json::to_vec(&one).ok()
}

fn change(draw: &mut Draw, at: &mut Value, donor: Value) {
    match (draw.below(6), at) {
        (0, at) => *at = odd(draw),
        (1, at) => *at = donor,
        (_, Value::Object(fields)) => change_fields(draw, fields, donor),
        (_, Value::Array(list)) => {
            let position = draw.below(list.len());
            match draw.below(4) {
                0 if !list.is_empty() => _ = list.remove(position),
                1 if !list.is_empty() => list.push(list[position].clone()),
                2 => list.push(donor),
                _ => list.reverse(),
            }
        }
        (_, Value::String(text)) => {
            let (mut bytes, length) = (text.clone().into_bytes(), text.len());
            bytes.resize(length + 16, 0);
            let length = fuzzer_mutate(&mut bytes, length, length + 16);
            *text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        }
        (kind, Value::Number(number)) => {
            let value = number.as_i64().unwrap_or_default();
            let next = if kind == 2 { value.wrapping_neg() } else { value.wrapping_add(draw.below(5) as i64 - 2) };
            *number = next.into();
        }
        (_, at) => *at = odd(draw),
    }
}

fn change_fields(draw: &mut Draw, fields: &mut Map<String, Value>, donor: Value) {
    let keys: Vec<_> = fields.keys().cloned().collect();
    if keys.is_empty() {
        if let Value::Object(donor) = donor {
            *fields = donor;
        }
        return;
    }
    let key = draw.of(&keys).clone();
    match draw.below(4) {
        0 => _ = fields.remove(&key),
        1 => _ = fields.insert(draw.of(&keys).clone(), fields[&key].clone()),
        2 => {
            if let Value::Object(donor) = donor {
                fields.extend(donor);
            }
        }
        _ => {
            let value = odd(draw);
            fields.insert(key, value);
        }
    }
}
