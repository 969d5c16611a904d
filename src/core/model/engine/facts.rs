//! The table of facts: engine × name, how the value is computed, and where the name was read. What another version changes is a
//! row of its own.

use super::Computed::{
    BootstrapPort, Cohort, Endpoint, Field, FirstRank, Fixed, Leader, NodeRank, Nodes, Peers, Port, Processes, Role,
    Segment, Serves, WorldSize,
};
use super::EngineKind::{Dynamo, LlmD, Sglang, Torch, Vllm};
use super::Target::{Annotation, Label, Variable};
use super::fact::Read;
use super::{Computed, EngineKind, Fact, Target};
use crate::model::names;

const TORCH: &str = "2.15.0";
const VLLM: &str = "0.26.0";
const SGLANG: &str = "0.5.18";
const SGLANG_ROUTER: &str = "0.3.2";
const DYNAMO: &str = "1.6.1";
/// Read between two releases.
const DYNAMO_MAIN: &str = "1.x, main";
const LLM_D: &str = "0.10.0-rc.1 and 62 commits";

const fn read(version: &'static str, source: &'static str) -> Read {
    Read { version, source }
}

const RENDEZVOUS: &Read = &read(TORCH, "pytorch/pytorch@d0f2af8b torch/distributed/rendezvous.py");
const TORCHRUN: &Read = &read(TORCH, "pytorch/pytorch@d0f2af8b torch/distributed/run.py");
const ARGPARSE: &Read = &read(TORCH, "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py");
const ARG_UTILS: &Read = &read(VLLM, "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py");
const PARALLEL: &Read = &read(VLLM, "vllm-project/vllm@ffd46bfa vllm/config/parallel.py");
const ENVS: &Read = &read(VLLM, "vllm-project/vllm@ffd46bfa vllm/envs.py");
const THIS_TABLE: &Read = &read(VLLM, "no engine: a name of this table");
const SERVER_ARGS: &Read = &read(SGLANG, "package sglang, sglang/srt/server_args.py");
const ROUTER_ARGS: &Read = &read(SGLANG_ROUTER, "package sglang-router, sglang_router/router_args.py");
const RUNTIME_ARGS: &Read = &read(DYNAMO, "package ai-dynamo, dynamo/common/configuration/groups/runtime_args.py");
const KUBE_UTILS: &Read = &read(DYNAMO_MAIN, "ai-dynamo/dynamo@005cae78 lib/runtime/src/discovery/kube/utils.rs");
const ROLES: &Read =
    &read(LLM_D, "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/scheduling/filter/bylabel/roles.go");
const SCREENER: &Read = &read(
    LLM_D,
    "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/config.go",
);
const SCORER: &Read = &read(
    LLM_D,
    "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/scheduling/scorer/headerlabelaffinity/README.md",
);

const fn row(
    kind: EngineKind,
    target: Target,
    name: &'static str,
    computed: Computed,
    read_by: &'static str,
    read: &'static Read,
) -> Fact {
    Fact { kind, target, name, computed, read_by, read }
}

const SELECTORS: &str = "`--prefill-selector` and `--decode-selector` of the router";

/// All facts, in the order in which variables stand in a container.
pub const FACTS: &[Fact] = &[
    row(Torch, Variable, "MASTER_ADDR", Leader, "`env://` of PyTorch", RENDEZVOUS),
    row(Torch, Variable, "MASTER_PORT", Port, "`env://` of PyTorch", RENDEZVOUS),
    row(Torch, Variable, "WORLD_SIZE", WorldSize, "`env://` of PyTorch", RENDEZVOUS),
    row(Torch, Variable, "RANK", FirstRank, "`env://` of PyTorch; torchrun sets it for each process", RENDEZVOUS),
    row(Torch, Variable, "NNODES", Nodes, "`torchrun --nnodes=$(NNODES)`", TORCHRUN),
    row(Torch, Variable, "NODE_RANK", NodeRank, "`torchrun --node-rank=$(NODE_RANK)`", TORCHRUN),
    row(Torch, Variable, "LOCAL_WORLD_SIZE", Processes, "`torchrun --nproc-per-node=$(LOCAL_WORLD_SIZE)`", TORCHRUN),
    row(Torch, Variable, "PET_NNODES", Nodes, "torchrun, where `--nnodes` is absent", ARGPARSE),
    row(Torch, Variable, "PET_NODE_RANK", NodeRank, "torchrun, where `--node-rank` is absent", ARGPARSE),
    row(Torch, Variable, "PET_NPROC_PER_NODE", Processes, "torchrun, where `--nproc-per-node` is absent", ARGPARSE),
    row(Torch, Variable, "PET_MASTER_ADDR", Leader, "torchrun, where `--master-addr` is absent", ARGPARSE),
    row(Torch, Variable, "PET_MASTER_PORT", Port, "torchrun, where `--master-port` is absent", ARGPARSE),
    row(Vllm, Variable, "MASTER_ADDR", Leader, "`--master-addr=$(MASTER_ADDR)`", ARG_UTILS),
    row(Vllm, Variable, "MASTER_PORT", Port, "`--master-port=$(MASTER_PORT)`", ARG_UTILS),
    row(Vllm, Variable, "NNODES", Nodes, "`--nnodes=$(NNODES)`", ARG_UTILS),
    row(Vllm, Variable, "NODE_RANK", NodeRank, "`--node-rank=$(NODE_RANK)`", ARG_UTILS),
    row(Vllm, Variable, "DP_ADDRESS", Leader, "`--data-parallel-address=$(DP_ADDRESS)`", ARG_UTILS),
    row(Vllm, Variable, "DP_RPC_PORT", Fixed("29550"), "`--data-parallel-rpc-port=$(DP_RPC_PORT)`", PARALLEL),
    row(Vllm, Variable, "DP_SIZE", WorldSize, "`--data-parallel-size=$(DP_SIZE)`", ARG_UTILS),
    row(Vllm, Variable, "DP_SIZE_LOCAL", Processes, "`--data-parallel-size-local=$(DP_SIZE_LOCAL)`", ARG_UTILS),
    row(Vllm, Variable, "DP_START_RANK", FirstRank, "`--data-parallel-start-rank=$(DP_START_RANK)`", ARG_UTILS),
    row(Vllm, Variable, "VLLM_DP_MASTER_IP", Leader, "vLLM, where no flag asks for data parallelism", ENVS),
    row(Vllm, Variable, "VLLM_NIXL_SIDE_CHANNEL_HOST", Field("status.podIP"), "vLLM with the NIXL connector", ENVS),
    row(Vllm, Variable, "VLLM_NIXL_SIDE_CHANNEL_PORT", Fixed("5600"), "vLLM with the NIXL connector", ENVS),
    row(Vllm, Variable, "<ROLE>_ADDRS", Peers, "command lines of proxies and routers", THIS_TABLE),
    row(Sglang, Variable, "DIST_INIT_ADDR", Endpoint, "`--dist-init-addr=$(DIST_INIT_ADDR)`", SERVER_ARGS),
    row(Sglang, Variable, "NNODES", Nodes, "`--nnodes=$(NNODES)`", SERVER_ARGS),
    row(Sglang, Variable, "NODE_RANK", NodeRank, "`--node-rank=$(NODE_RANK)`", SERVER_ARGS),
    row(Sglang, Label, names::SERVES, Serves, SELECTORS, ROUTER_ARGS),
    row(Sglang, Label, names::NODE_RANK, NodeRank, SELECTORS, ROUTER_ARGS),
    row(Sglang, Annotation, names::SGLANG_BOOTSTRAP_PORT, BootstrapPort, "the router, of prefills", ROUTER_ARGS),
    row(Dynamo, Variable, "DYN_DISCOVERY_BACKEND", Fixed("kubernetes"), "all processes of Dynamo", RUNTIME_ARGS),
    row(Dynamo, Variable, "POD_NAME", Field("metadata.name"), "discovery by the API server", KUBE_UTILS),
    row(Dynamo, Variable, "POD_NAMESPACE", Field("metadata.namespace"), "discovery by the API server", KUBE_UTILS),
    row(Dynamo, Variable, "POD_UID", Field("metadata.uid"), "discovery by the API server", KUBE_UTILS),
    row(LlmD, Label, names::LLM_D_ROLE, Serves, "filters of the endpoint picker", ROLES),
    row(LlmD, Label, names::DISAGGREGATED_ROLE, Role, "the screener of rollouts", SCREENER),
    row(LlmD, Label, names::DISAGGREGATED_REVISION, Cohort, "the screener of rollouts", SCREENER),
    row(LlmD, Label, names::DISAGGREGATED_SLICE, Segment, "the scorer of affinity, as its page configures it", SCORER),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::engine::KINDS;

    #[test]
    fn a_kind_has_facts_each_name_once_and_each_row_its_source() {
        for (word, kind, _) in KINDS {
            let mut names = BTreeSet::new();
            assert!(kind.facts().all(|fact| names.insert((fact.target, fact.name))), "{word}");
            assert!(!names.is_empty(), "{word}");
        }
        for fact in FACTS {
            assert!(
                !fact.read.version.is_empty() && !fact.read.source.is_empty() && !fact.read_by.is_empty(),
                "{}",
                fact.name
            );
        }
    }

    #[test]
    fn one_name_has_one_value_whichever_engines_ask_for_it() {
        for fact in FACTS {
            let others = FACTS.iter().filter(|other| (other.target, other.name) == (fact.target, fact.name));
            assert!(others.into_iter().all(|other| other.computed == fact.computed), "{}", fact.name);
        }
    }
}
