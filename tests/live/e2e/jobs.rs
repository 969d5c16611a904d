//! Work that is done stays done when it is cleaned up.

use crate::common::prelude::*;

const COMPLETION: &str = "batch.kubernetes.io/job-completion-index";

fn index(pod: &Pod) -> Option<u32> {
    pod.annotations.get(COMPLETION)?.parse().ok()
}

fn job(group: &Group, stage: &Stage, name: &str, spec: &Value) -> Value {
    let mut template = group.set(group.find("work"), &stage.namespace)["spec"]["template"].clone();
    template["spec"]["restartPolicy"] = json!("Never");
    let mut job = object("batch/v1", "Job", name)
        .spec(json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": template }));
    json_patch::merge(&mut job["spec"], spec);
    job
}

/// The pod of this index does its work.
async fn succeed(stage: &Stage, number: u32) {
    let is_it = |pod: &Pod| index(pod) == Some(number) && pod.is_scheduled();
    stage.pods.until("it runs", |now| now.all().any(is_it)).await;
    let name = stage.pods.now(|now| now.all().find(|pod| is_it(pod)).unwrap().name.clone());
    let ended = json!({ "name": "main", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } });
    let ready = json!({ "type": "Ready", "status": "False", "reason": "PodCompleted" });
    let status = json!({ "status": { "phase": "Succeeded", "conditions": [ready], "containerStatuses": [ended] } });
    stage.api::<ApiPod>().patch_status(&name, &PatchParams::default(), &Patch::Strategic(status)).await.unwrap();
}

#[tokio::test]
async fn what_a_job_has_done_counts_when_the_job_is_cleaned_up() {
    let (stage, rolegate) = Stage::new("job-cleaned").await.with_room(8).await.serve().await;
    let group = Group::new("llm").role("work", 4, 2).held_back();
    let statuses = stage.create_watched(&group).await;
    let spec = json!({ "ttlSecondsAfterFinished": 0 });
    stage.create(job(&group, &stage, "first", &spec)).await;
    for number in 0..4 {
        succeed(&stage, number).await;
    }
    stage.pods.until("all is cleaned up", |now| now.count_all(|_| true) == 0).await;
    let done = "True AllReplicasReady: 4/4 pods ready";
    statuses.until("all done", |status| status.ready() == done).await;
    let stays = async || if statuses.now().ready() == done { Ok(()) } else { Err(statuses.now()) };
    always(Duration::from_secs(2), "it stays done", stays).await;
    // Another leader knows it from the status.
    drop(rolegate);
    let _rolegate = stage.launch().start().await;
    always(Duration::from_secs(2), "it stays done", stays).await;
    assert_eq!(statuses.now().0["succeeded"]["work"][0]["replicas"], "0-3");

    // Another Job is other work.
    stage.create(job(&group, &stage, "second", &json!({}))).await;
    statuses.until("it begins anew", |status| status.ready().contains("0/4 pods ready")).await;
}

#[tokio::test]
async fn a_job_whose_deadline_ends_while_its_pods_are_held_is_named() {
    let (stage, _rolegate) = Stage::new("job-late").await.serve().await;
    let group = Group::new("llm").role("work", 4, 2).held_back();
    let statuses = stage.create_watched(&group).await;
    stage.create(job(&group, &stage, "batch", &json!({ "activeDeadlineSeconds": 3 }))).await;
    stage.pods.until("its pods are held", |now| now.count_all(|pod| !pod.is_released()) >= 2).await;
    let why = "role \"work\" lacks 2 of 2 replicas: Job job-late/batch has exceeded its activeDeadlineSeconds, which also runs \
               while its pods are held";
    let told = statuses.until("it is named", |status| status.progressing().contains("activeDeadlineSeconds")).await;
    assert!(told.progressing().contains(why), "{}", told.progressing());
    stage.until_event("JobDeadlineExceeded", &[why]).await;
    // A command has seen no pod of it, and reads the Job.
    let explained = stage.said(&["explain", "group", "llm"]).await;
    assert!(explained.contains(why), "{explained}");
}
