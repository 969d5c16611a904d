//! Creates the objects by which nodes are requested.

use serde_json::{Value, json};

use crate::api::pod::POD;
use crate::cluster::objects;
use crate::cluster::read::pod_groups::{TAKEN, stays};
use crate::cluster::write::writer::Writer;
use crate::model::{Group, names};
use crate::plan::provision::entry::{Content, RequestObject, Sample};
use crate::plan::provision::template::template;

/// Reason for a template whose pod is gone, or was created anew.
const NO_SAMPLE: &str = "the pod or workload that it is made from is not there";

impl Writer {
    /// Creates an object of a request; returns why not. The sample of a template is read live.
    pub async fn create_request(&self, group: &Group, object: &RequestObject) -> kube::Result<Option<&'static str>> {
        let refs = || object.templates.iter().map(|name| json!({ "name": name }));
        let data = match &object.content {
            Content::Template { sample, domains } => {
                let Some(sample) = self.sample(group, sample).await? else { return Ok(Some(NO_SAMPLE)) };
                json!({ "template": template(&sample, &object.request, domains) })
            }
            Content::Buffer { replicas } => {
                json!({ "spec": { "podTemplateRef": refs().next(), "replicas": replicas } })
            }
            Content::Request { class, counts } => {
                let set = |(template, count): (Value, &u32)| json!({ "podTemplateRef": template, "count": count });
                let sets: Vec<_> = refs().zip(counts).map(set).collect();
                json!({ "spec": { "provisioningClassName": class, "podSets": sets } })
            }
        };
        let labels = [(names::REQUEST, object.request.as_str())];
        if self.create_owned(group, (object.kind, &object.name), &labels, data).await? {
            return Ok(None);
        }
        let api = self.dynamic(object.kind, Some(&group.key.namespace));
        let present = api.get_opt(&object.name).await?;
        let is_ours = present.is_some_and(|present| stays(&present.metadata, &group.carrier.uid));
        Ok((!is_ours).then_some(TAKEN))
    }

    async fn sample(&self, group: &Group, sample: &Sample) -> kube::Result<Option<Value>> {
        let namespace = &group.key.namespace;
        match sample {
            Sample::Pod(pod) => {
                let read = objects::read(&self.client, POD, namespace, &pod.name).await?;
                let is_it = |read: &Value| read.pointer("/metadata/uid").and_then(Value::as_str) == Some(&*pod.uid);
                Ok(read.filter(is_it))
            }
            Sample::Workload(key, part, added) => {
                let read = objects::read(&self.client, key.kind.object_kind(), namespace, &key.name).await?;
                let paths = key.kind.row().templates.iter().skip(*part);
                let template = |path: &&[&str]| read.as_ref()?.pointer(&format!("/{}", path.join("/"))).cloned();
                let mut found = paths.copied().find_map(|path| template(&path));
                let spec = found.as_mut().and_then(|found| found.get_mut("spec")).and_then(Value::as_object_mut);
                spec.into_iter().for_each(|spec| added.add_to_template(spec));
                Ok(found)
            }
        }
    }
}
