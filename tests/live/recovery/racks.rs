//! A segment that is made anew is placed anew.

use super::scene::{Scene, group, launch, object, recovery, recreate};
use crate::common::prelude::*;
use crate::pods::support::{RACK, add_rack, rack_of};

fn rack(status: &Status, segment: &str) -> String {
    status.0["coordinationState"][0]["domains"][segment].as_str().unwrap_or_default().to_owned()
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_segment_whose_rack_takes_no_pods_any_more_comes_back_as_a_whole_in_another() {
        let stage = Stage::new("recovery-racks").await;
        add_rack(&stage, "r1", &["a", "b"], 3).await;
        let _rolegate = launch(&stage).start().await;
        let group = group(4, 2);
        let mut object = object(&group, &recreate());
        let placement = &mut object["spec"]["coordination"][0]["strategy"]["segmentPlacement"];
        placement["topologyAffinity"] = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": RACK });
        let scene = Scene::deployed(stage, group, object).await;
        assert_eq!(["0", "1"].map(|segment| rack(&scene.statuses.now(), segment)), ["r1", "r1"]);
        add_rack(&scene.stage, "r2", &["a"], 6).await;
        for host in ["a", "b"] {
            scene.stage.plane.must(&["cordon", &format!("recovery-racks-r1-{host}")], "");
        }
        let status = scene.loses("llm-decode-0", 0).await;
        assert_eq!(["0", "1"].map(|segment| rack(&status, segment)), ["r2", "r1"]);
        assert_eq!(recovery(&status, 0).unwrap()["lost"]["pod"], json!("llm-decode-0"));
        scene.stage.pods.now(|now| {
            let of = |pod: &Pod| rack_of(&scene.stage, pod).unwrap();
            let anew = now.all().filter(|pod| of(pod) == "r2").map(|pod| pod.name.as_str());
            let mut anew: Vec<_> = anew.collect();
            anew.sort_unstable();
            assert_eq!(anew, ["llm-decode-0", "llm-prefill-0", "llm-prefill-1"], "{now}");
        });
    }
}
