//! Parses large JSON inputs such as cluster dumps, without positions of values.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// An object of the input.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    /// `apiVersion`, `""` when absent.
    pub api_version: String,
    /// `kind`, `""` when absent.
    pub kind: String,
    /// `metadata.namespace`, `""` when absent.
    pub namespace: String,
    /// `metadata.name`, or `metadata.generateName`, or `""`.
    pub name: String,
    pub json: &'a str,
}

/// The parsed head of an object, or of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<HeadMeta<'a>>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    generate_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
}

/// Returns the objects of a text of JSON values, lists expanded: items of a typed list get its version, and its kind
/// without `List`.
///
/// # Errors
///
/// When the text is not JSON, or a value is not an object.
pub(super) fn listed(text: &str) -> Result<Vec<Listed<'_>>, serde_json::Error> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        expand(value?, None, &mut all)?;
    }
    Ok(all)
}

fn expand<'a>(
    value: &'a RawValue,
    of: Option<(&str, &str)>,
    all: &mut Vec<Listed<'a>>,
) -> Result<(), serde_json::Error> {
    let head: Head<'a> = serde_json::from_str(value.get())?;
    let (mut api_version, mut kind) = (head.api_version.as_ref(), head.kind.as_ref());
    if let Some((list_version, item_kind)) = of
        && kind.is_empty()
    {
        (api_version, kind) = (list_version, item_kind);
    }
    if let (Some(item_kind), Some(items)) = (kind.strip_suffix("List"), &head.items) {
        return items.iter().try_for_each(|item| expand(item, Some((api_version, item_kind)), all));
    }
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
    let metadata = head.metadata.unwrap_or_default();
    let (name, generated) = (text(&metadata.name), text(&metadata.generate_name));
    all.push(Listed {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: text(&metadata.namespace),
        name: if name.is_empty() { generated } else { name },
        json: value.get(),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, String, String)> {
        let listed = listed(text).unwrap().into_iter();
        listed.map(|object| (object.api_version, object.kind, object.name)).collect()
    }

    #[test]
    fn lists_are_expanded_and_their_items_have_their_kind() {
        let own = |kind: &str, name: &str| ("v1".to_owned(), kind.to_owned(), name.to_owned());
        let text = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}]}
            {"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"generateName":"b-","labels":null}}]}"#;
        assert_eq!(names(text), [own("Node", "a"), own("Pod", "b-")]);
        assert_eq!(names(r#"{"kind":"NodeList"}"#), [(String::new(), "NodeList".to_owned(), String::new())]);
        assert_eq!(names(r#"{"kind":"Pod","metadata":null}"#), [(String::new(), "Pod".to_owned(), String::new())]);
        assert_eq!(names(""), []);
        for broken in ["{", "[1]", "7", r#"{"kind":3}"#] {
            assert!(listed(broken).is_err(), "{broken}");
        }
    }
}
