//! Groups that refer to a ClusterTopology.

use crate::common::prelude::*;
use crate::rules::desk::{causes, put, refused, warned};
use crate::rules::turn::{KEP75, OURS, Turn, group_in, topology};

const AT: &str = "spec.coordination[0].strategy.rollingDeploy.deployTopologyConstraint";

#[tokio::test]
async fn one_that_is_missing_warns_and_a_layer_that_is_missing_is_refused() {
    let turn = Turn::new("references").await;
    let absent = format!(
        r#"{AT}.clusterTopologyName: Not found: "later": no ClusterTopology has this name: the batches are held until there is one"#
    );
    warned(&turn, &group_in("early", "later", "rack"), &[&absent]);
    for (path, name) in [(OURS, "references-ours"), (KEP75, "references-kep75")] {
        put(&turn, &topology(path, name, &["host", "racks"]));
        let unknown = format!(
            r#"{AT}.topologyLayerName: Not found: "rack": must name a layer of ClusterTopology "{name}": host, racks; did you mean "racks"?"#
        );
        refused(&turn, &group_in(name, name, "rack"), &unknown);
        put(&turn, &group_in(name, name, "racks"));
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn one_that_breaks_a_rule_cannot_be_relied_on() {
        let mut turn = Turn::alone("invalid-reference").await;
        let mut wrong = topology(OURS, "invalid-reference", &["rack"]);
        wrong["spec"]["layers"] =
            json!([{ "name": "rack", "key": "a.example.com" }, { "name": "block", "key": "a.example.com" }]);
        put(&turn, &wrong);
        turn.start().await;
        let answer = turn.post(GROUPS, "rolebasedgroups", &group_in("llm", "invalid-reference", "rack")).await;
        let invalid = format!(
            r#"{AT}.clusterTopologyName: Invalid value: "invalid-reference": must name a ClusterTopology that is valid"#
        );
        assert_eq!((answer.code, causes(&answer)), (422, vec![invalid]));
    }
}
