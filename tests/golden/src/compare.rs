//! Projects an answer onto its expectation. They are equal exactly when the case passes; their difference is printed,
//! and `--update` writes the projection.

use serde_json::{Map, Value};

use super::case::{Asked, Expected, Match};

/// How a field of an answer is compared.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// Equal as a whole.
    Whole,
    /// A list; each item is compared in its written fields. With `true`, an exact match compares the list even if it
    /// is absent.
    Items(bool),
    /// A map; all entries, or with a partial match the written ones.
    Names,
    /// A map of the given depth; only written keys are compared.
    Chosen(usize, Depth),
    /// A tree; `count`, `first` and `last` may replace a list.
    Tree,
}

/// The comparison below the keys of [`Field::Chosen`].
#[derive(Clone, Copy, Debug)]
enum Depth {
    Tree,
    /// A list; with a partial match, only the written beginning.
    Beginning,
    /// Equal as a whole.
    Whole,
}

const VERDICT: (&str, Field) = ("allowed", Field::Whole);

/// Returns the fields of a command's answer, in the order of output.
const fn fields(asked: Asked) -> &'static [(&'static str, Field)] {
    match asked {
        Asked::Check => &[
            VERDICT,
            ("violations", Field::Items(true)),
            ("warnings", Field::Items(true)),
            ("notes", Field::Items(false)),
        ],
        Asked::Mutate => &[
            VERDICT,
            ("names", Field::Whole),
            ("patches", Field::Names),
            ("objects", Field::Chosen(1, Depth::Tree)),
            ("labels", Field::Chosen(1, Depth::Whole)),
            ("env", Field::Chosen(2, Depth::Beginning)),
            ("warnings", Field::Items(true)),
            ("refused", Field::Items(true)),
        ],
        Asked::Plan | Asked::Fit => &[("exit", Field::Whole), ("groups", Field::Tree)],
    }
}

/// Returns the fields that `--update` writes for an empty expectation.
const fn at_first(asked: Asked) -> &'static [&'static str] {
    match asked {
        Asked::Check => &["allowed"],
        Asked::Mutate => &["patches"],
        Asked::Plan | Asked::Fit => &["exit", "groups"],
    }
}

/// Projects an answer onto the fields of the expectation.
pub(crate) fn in_words_of(expected: &Expected, found: &Map<String, Value>) -> Map<String, Value> {
    let is_partial = expected.matching == Match::Partial;
    let mut all = Map::new();
    for (name, field) in fields(expected.asked) {
        let Some(found) = found.get(*name) else { continue };
        let value = match &expected.written {
            None if at_first(expected.asked).contains(name) => Some(found.clone()),
            Some(written) => written.get(*name).map(|written| said(*field, is_partial, written, found)),
            None => None,
        };
        let is_silent = |found: &Value| found.as_array().is_some_and(Vec::is_empty);
        let also = (matches!(field, Field::Items(true)) && !is_partial && !is_silent(found)).then(|| found.clone());
        all.extend(value.or(also).map(|value| ((*name).to_owned(), value)));
    }
    all
}

fn said(field: Field, is_partial: bool, written: &Value, found: &Value) -> Value {
    match field {
        Field::Items(_) => items(is_partial, written, found),
        Field::Names if is_partial => chosen(1, written, found, &|_, found| found.clone()),
        Field::Whole | Field::Names => found.clone(),
        Field::Tree => tree(is_partial, written, found),
        Field::Chosen(levels, Depth::Tree) => {
            chosen(levels, written, found, &|written, found| tree(is_partial, written, found))
        }
        Field::Chosen(levels, Depth::Whole) => chosen(levels, written, found, &|_, found| found.clone()),
        Field::Chosen(levels, Depth::Beginning) => chosen(levels, written, found, &|written, found| {
            let count = written.as_array().map_or(0, Vec::len);
            match found {
                Value::Array(found) if is_partial && count > 0 => found.iter().take(count).cloned().collect(),
                _ => found.clone(),
            }
        }),
    }
}

/// Projects a map onto the written keys, `levels` deep.
fn chosen(levels: usize, written: &Value, found: &Value, then: &dyn Fn(&Value, &Value) -> Value) -> Value {
    match (levels, written, found) {
        (1.., Value::Object(written), Value::Object(found)) => {
            let both = written.iter().filter_map(|(key, written)| Some((key, written, found.get(key)?)));
            both.map(|(key, written, found)| (key.clone(), chosen(levels - 1, written, found, then)))
                .collect::<Map<_, _>>()
                .into()
        }
        (0, ..) => then(written, found),
        _ => found.clone(),
    }
}

/// Projects a list: a matching item is returned as written. With a partial match, other items are returned only when a
/// written item is missing.
fn items(is_partial: bool, written: &Value, found: &Value) -> Value {
    let (Some(written), Some(found)) = (written.as_array(), found.as_array()) else { return found.clone() };
    let mut left: Vec<&Value> = written.iter().collect();
    let mut take = |suits: &dyn Fn(&Value) -> bool| {
        let at = left.iter().position(|item| suits(item))?;
        Some(left.remove(at))
    };
    // Matching items first, so that none of them is assigned to another item.
    let mut told: Vec<(Option<Value>, bool)> =
        found.iter().map(|found| (take(&|item| agrees(item, found)).cloned(), true)).collect();
    for ((told, is_right), found) in told.iter_mut().zip(found).filter(|((told, _), _)| told.is_none()) {
        *is_right = false;
        // An item that differs about the same field is returned with the written keys.
        *told = take(&|item| is_about_the_same(item, found)).map(|item| in_keys_of(item, found));
    }
    let all_are_there = told.iter().filter(|(_, is_right)| *is_right).count() == written.len();
    if is_partial && all_are_there && !written.is_empty() {
        return written.iter().cloned().collect();
    }
    let told = told.into_iter().zip(found);
    told.map(|((told, _), found)| told.unwrap_or_else(|| found.clone())).collect()
}

fn agrees(written: &Value, found: &Value) -> bool {
    match (written, found) {
        (Value::Object(written), Value::Object(found)) => {
            written.iter().all(|(key, value)| found.get(key).is_some_and(|found| found == value))
        }
        (written, found) => written == found,
    }
}

fn is_about_the_same(written: &Value, found: &Value) -> bool {
    ["rule", "field"].iter().all(|key| written.get(*key).is_some_and(|written| found.get(*key) == Some(written)))
}

fn in_keys_of(written: &Value, found: &Value) -> Value {
    let (Some(written), Some(found)) = (written.as_object(), found.as_object()) else { return found.clone() };
    let kept = found.iter().filter(|(key, _)| written.contains_key(*key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
}

fn tree(is_partial: bool, written: &Value, found: &Value) -> Value {
    match (written, found) {
        (Value::Object(written), Value::Array(found)) if is_summary(written) => {
            let part = |key: &String, written: &Value| {
                let part = match key.as_str() {
                    "count" => Some(Value::from(found.len())),
                    "first" => found.first().map(|found| tree(is_partial, written, found)),
                    _ => found.last().map(|found| tree(is_partial, written, found)),
                };
                Some((key.clone(), part?))
            };
            written.iter().filter_map(|(key, written)| part(key, written)).collect::<Map<_, _>>().into()
        }
        (Value::Array(written), Value::Array(found)) => {
            let told = found.iter().enumerate().map(|(index, found)| match written.get(index) {
                Some(written) => tree(is_partial, written, found),
                None => found.clone(),
            });
            told.collect()
        }
        (Value::Object(written), Value::Object(found)) => {
            let told = found.iter().filter_map(|(key, found)| match written.get(key) {
                Some(written) => Some((key.clone(), tree(is_partial, written, found))),
                None if is_partial => None,
                None => Some((key.clone(), found.clone())),
            });
            told.collect::<Map<_, _>>().into()
        }
        (_, found) => found.clone(),
    }
}

/// Reports whether a map replaces a list.
fn is_summary(written: &Map<String, Value>) -> bool {
    !written.is_empty() && written.keys().all(|key| ["count", "first", "last"].contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(asked: Asked, matching: Match, written: &Value, found: &Value) -> Value {
        let written = written.as_object().cloned();
        in_words_of(&Expected { asked, matching, written }, found.as_object().unwrap()).into()
    }

    /// Asserts which expectations an answer meets, and which it misses.
    fn holds(asked: Asked, matching: Match, found: &Value, met: &[Value], missed: &[Value]) {
        for written in met {
            assert_eq!(told(asked, matching, written, found), *written, "{matching:?}");
        }
        for written in missed {
            assert_ne!(told(asked, matching, written, found), *written, "{matching:?}");
        }
    }

    #[test]
    fn findings_are_all_of_them_in_order_or_some_among_others() {
        let one = json!({ "rule": "a", "field": "x", "reason": "R", "message": "m" });
        let two = json!({ "rule": "b", "field": "y", "reason": "R", "message": "n" });
        let found = json!({ "allowed": false, "violations": [one, two], "warnings": [], "notes": [one] });
        let (a, b) = (json!({ "rule": "a", "field": "x" }), json!({ "rule": "b", "field": "y", "message": "n" }));
        let both = json!({ "violations": [a, b] });
        let met = [both.clone(), json!({ "violations": [one, b], "warnings": [], "notes": [a], "allowed": false })];
        let none = json!({ "violations": [] });
        let swapped = json!({ "violations": [b, a] });
        let alone = json!({ "violations": [b] });
        let other = json!({ "violations": [a, { "rule": "b", "field": "y", "message": "o" }] });
        let twice = json!({ "violations": [a, a] });
        let missed = [json!({ "allowed": false }), none, swapped.clone(), alone.clone(), other.clone(), twice.clone()];
        holds(Asked::Check, Match::Exact, &found, &met, &missed);
        let met = [both, swapped, alone, json!({ "allowed": false }), json!({ "notes": [a] })];
        let missed = [other.clone(), twice, json!({ "warnings": [a] }), json!({ "allowed": true })];
        holds(Asked::Check, Match::Partial, &found, &met, &missed);
        let shown = told(Asked::Check, Match::Exact, &other, &found);
        let expected = json!({ "violations": [a, { "rule": "b", "field": "y", "message": "n" }] });
        assert_eq!(shown, expected, "no more is shown than is asked for");
    }

    #[test]
    fn patches_are_all_of_them_or_those_that_are_named() {
        let patch = json!([{ "op": "add", "path": "/a", "value": 1 }]);
        let found = json!({ "patches": { "p": patch, "q": [] }, "warnings": ["w", "v"], "refused": [] });
        let met = [json!({ "patches": { "p": patch, "q": [] }, "warnings": ["w", "v"] })];
        let named = json!({ "patches": { "p": patch } });
        let part = json!({ "patches": { "p": [{ "op": "add", "path": "/a" }] } });
        let missed = [
            json!({ "patches": { "p": patch, "q": [] } }),
            json!({ "patches": { "p": patch }, "warnings": ["w", "v"] }),
        ];
        holds(Asked::Mutate, Match::Exact, &found, &met, &missed);
        let met = [named, json!({ "warnings": ["v"] })];
        holds(Asked::Mutate, Match::Partial, &found, &met, &[part, json!({ "patches": { "r": [] } })]);
    }

    #[test]
    fn objects_and_environments_are_those_that_are_named() {
        let object = json!({ "metadata": { "name": "p", "labels": { "a": "b" } }, "list": [{ "x": 1, "y": 2 }] });
        let found = json!({ "objects": { "p": object, "q": {} }, "env": { "p": { "main": ["A=1", "B=2"], "side": [] } },
            "labels": { "a": { "b": ["p"] } } });
        let labels = json!({ "labels": { "a": { "b": ["p"] } } });
        let part = json!({ "objects": { "p": { "metadata": { "labels": { "a": "b" } }, "list": [{ "y": 2 }] } } });
        let env = json!({ "env": { "p": { "main": ["A=1", "B=2"] } } });
        let beginning = json!({ "env": { "p": { "main": ["A=1"] } } });
        let met = [json!({ "objects": { "p": object } }), env.clone(), labels.clone()];
        let none = json!({ "labels": { "a": {} } });
        holds(Asked::Mutate, Match::Exact, &found, &met, &[part.clone(), beginning.clone(), none.clone()]);
        let wrong = json!({ "objects": { "p": { "list": [{ "y": 3 }] } } });
        let missed = [wrong, none, json!({ "env": { "p": { "main": ["B=2"] } } }), json!({ "env": { "r": {} } })];
        holds(Asked::Mutate, Match::Partial, &found, &[part, env, beginning, labels], &missed);
    }

    #[test]
    fn of_an_answer_lists_may_be_summed_up_and_groups_told_in_part() {
        let found = json!({ "exit": 0, "groups": [{ "name": "g", "steps": [1, 2, 3], "complete": true }] });
        let whole =
            json!({ "exit": 0, "groups": [{ "name": "g", "complete": true, "steps": { "count": 3, "last": 3 } }] });
        let part = json!({ "groups": [{ "steps": { "first": 1 } }] });
        let wrong = [
            json!({ "groups": { "count": 2 } }),
            json!({ "groups": [] }),
            json!({ "exit": 1 }),
            json!({ "groups": [{ "steps": { "count": 4 } }] }),
            json!({ "groups": [{ "redy": true }] }),
        ];
        holds(
            Asked::Plan,
            Match::Exact,
            &found,
            &[whole.clone(), json!({ "exit": 0 }), found.clone()],
            std::slice::from_ref(&part),
        );
        holds(Asked::Plan, Match::Partial, &found, &[whole, part], &wrong);
        holds(Asked::Fit, Match::Exact, &found, &[], &wrong);
    }

    #[test]
    fn what_is_not_written_yet_is_told_in_full() {
        let found =
            json!({ "allowed": true, "violations": [], "warnings": [{ "rule": "a", "field": "x" }], "notes": [] });
        let told = told(Asked::Check, Match::Exact, &Value::Null, &found);
        assert_eq!(told, json!({ "allowed": true, "warnings": [{ "rule": "a", "field": "x" }] }));
    }
}
