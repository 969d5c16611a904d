//! The table of facts: engine × name, how the value is computed, and where the name was read. What another version changes is a
//! row of its own.

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

/// All facts, in the order in which variables stand in a container.
pub const FACTS: &[Fact] = &[
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "MASTER_ADDR",
        computed: Computed::Leader,
        read_by: "`env://` of PyTorch",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/rendezvous.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "MASTER_PORT",
        computed: Computed::Port,
        read_by: "`env://` of PyTorch",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/rendezvous.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "WORLD_SIZE",
        computed: Computed::WorldSize,
        read_by: "`env://` of PyTorch",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/rendezvous.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "RANK",
        computed: Computed::FirstRank,
        read_by: "`env://` of PyTorch; torchrun sets it for each process",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/rendezvous.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "NNODES",
        computed: Computed::Nodes,
        read_by: "`torchrun --nnodes=$(NNODES)`",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/run.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "NODE_RANK",
        computed: Computed::NodeRank,
        read_by: "`torchrun --node-rank=$(NODE_RANK)`",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/run.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "LOCAL_WORLD_SIZE",
        computed: Computed::Processes,
        read_by: "`torchrun --nproc-per-node=$(LOCAL_WORLD_SIZE)`",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/run.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "PET_NNODES",
        computed: Computed::Nodes,
        read_by: "torchrun, where `--nnodes` is absent",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "PET_NODE_RANK",
        computed: Computed::NodeRank,
        read_by: "torchrun, where `--node-rank` is absent",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "PET_NPROC_PER_NODE",
        computed: Computed::Processes,
        read_by: "torchrun, where `--nproc-per-node` is absent",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "PET_MASTER_ADDR",
        computed: Computed::Leader,
        read_by: "torchrun, where `--master-addr` is absent",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py",
    },
    Fact {
        kind: EngineKind::Torch,
        target: Target::Variable,
        name: "PET_MASTER_PORT",
        computed: Computed::Port,
        read_by: "torchrun, where `--master-port` is absent",
        version: TORCH,
        source: "pytorch/pytorch@d0f2af8b torch/distributed/argparse_util.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "MASTER_ADDR",
        computed: Computed::Leader,
        read_by: "`--master-addr=$(MASTER_ADDR)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "MASTER_PORT",
        computed: Computed::Port,
        read_by: "`--master-port=$(MASTER_PORT)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "NNODES",
        computed: Computed::Nodes,
        read_by: "`--nnodes=$(NNODES)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "NODE_RANK",
        computed: Computed::NodeRank,
        read_by: "`--node-rank=$(NODE_RANK)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "DP_ADDRESS",
        computed: Computed::Leader,
        read_by: "`--data-parallel-address=$(DP_ADDRESS)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "DP_RPC_PORT",
        computed: Computed::Fixed("29550"),
        read_by: "`--data-parallel-rpc-port=$(DP_RPC_PORT)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/config/parallel.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "DP_SIZE",
        computed: Computed::WorldSize,
        read_by: "`--data-parallel-size=$(DP_SIZE)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "DP_SIZE_LOCAL",
        computed: Computed::Processes,
        read_by: "`--data-parallel-size-local=$(DP_SIZE_LOCAL)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "DP_START_RANK",
        computed: Computed::FirstRank,
        read_by: "`--data-parallel-start-rank=$(DP_START_RANK)`",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/engine/arg_utils.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "VLLM_DP_MASTER_IP",
        computed: Computed::Leader,
        read_by: "vLLM, where no flag asks for data parallelism",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/envs.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "VLLM_NIXL_SIDE_CHANNEL_HOST",
        computed: Computed::Field("status.podIP"),
        read_by: "vLLM with the NIXL connector",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/envs.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "VLLM_NIXL_SIDE_CHANNEL_PORT",
        computed: Computed::Fixed("5600"),
        read_by: "vLLM with the NIXL connector",
        version: VLLM,
        source: "vllm-project/vllm@ffd46bfa vllm/envs.py",
    },
    Fact {
        kind: EngineKind::Vllm,
        target: Target::Variable,
        name: "<ROLE>_ADDRS",
        computed: Computed::Peers,
        read_by: "command lines of proxies and routers",
        version: VLLM,
        source: "no engine: a name of this table",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Variable,
        name: "DIST_INIT_ADDR",
        computed: Computed::Endpoint,
        read_by: "`--dist-init-addr=$(DIST_INIT_ADDR)`",
        version: SGLANG,
        source: "package sglang, sglang/srt/server_args.py",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Variable,
        name: "NNODES",
        computed: Computed::Nodes,
        read_by: "`--nnodes=$(NNODES)`",
        version: SGLANG,
        source: "package sglang, sglang/srt/server_args.py",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Variable,
        name: "NODE_RANK",
        computed: Computed::NodeRank,
        read_by: "`--node-rank=$(NODE_RANK)`",
        version: SGLANG,
        source: "package sglang, sglang/srt/server_args.py",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Label,
        name: names::SERVES,
        computed: Computed::Serves,
        read_by: "`--prefill-selector` and `--decode-selector` of the router",
        version: SGLANG_ROUTER,
        source: "package sglang-router, sglang_router/router_args.py",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Label,
        name: names::NODE_RANK,
        computed: Computed::NodeRank,
        read_by: "`--prefill-selector` and `--decode-selector` of the router",
        version: SGLANG_ROUTER,
        source: "package sglang-router, sglang_router/router_args.py",
    },
    Fact {
        kind: EngineKind::Sglang,
        target: Target::Annotation,
        name: names::SGLANG_BOOTSTRAP_PORT,
        computed: Computed::BootstrapPort,
        read_by: "the router, of prefills",
        version: SGLANG_ROUTER,
        source: "package sglang-router, sglang_router/router_args.py",
    },
    Fact {
        kind: EngineKind::Dynamo,
        target: Target::Variable,
        name: "DYN_DISCOVERY_BACKEND",
        computed: Computed::Fixed("kubernetes"),
        read_by: "all processes of Dynamo",
        version: DYNAMO,
        source: "package ai-dynamo, dynamo/common/configuration/groups/runtime_args.py",
    },
    Fact {
        kind: EngineKind::Dynamo,
        target: Target::Variable,
        name: "POD_NAME",
        computed: Computed::Field("metadata.name"),
        read_by: "discovery by the API server",
        version: DYNAMO_MAIN,
        source: "ai-dynamo/dynamo@005cae78 lib/runtime/src/discovery/kube/utils.rs",
    },
    Fact {
        kind: EngineKind::Dynamo,
        target: Target::Variable,
        name: "POD_NAMESPACE",
        computed: Computed::Field("metadata.namespace"),
        read_by: "discovery by the API server",
        version: DYNAMO_MAIN,
        source: "ai-dynamo/dynamo@005cae78 lib/runtime/src/discovery/kube/utils.rs",
    },
    Fact {
        kind: EngineKind::Dynamo,
        target: Target::Variable,
        name: "POD_UID",
        computed: Computed::Field("metadata.uid"),
        read_by: "discovery by the API server",
        version: DYNAMO_MAIN,
        source: "ai-dynamo/dynamo@005cae78 lib/runtime/src/discovery/kube/utils.rs",
    },
    Fact {
        kind: EngineKind::LlmD,
        target: Target::Label,
        name: names::LLM_D_ROLE,
        computed: Computed::Serves,
        read_by: "filters of the endpoint picker",
        version: LLM_D,
        source: "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/scheduling/filter/bylabel/roles.go",
    },
    Fact {
        kind: EngineKind::LlmD,
        target: Target::Label,
        name: names::DISAGGREGATED_ROLE,
        computed: Computed::Role,
        read_by: "the screener of rollouts",
        version: LLM_D,
        source: "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/config.go",
    },
    Fact {
        kind: EngineKind::LlmD,
        target: Target::Label,
        name: names::DISAGGREGATED_REVISION,
        computed: Computed::Cohort,
        read_by: "the screener of rollouts",
        version: LLM_D,
        source: "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/config.go",
    },
    Fact {
        kind: EngineKind::LlmD,
        target: Target::Label,
        name: names::DISAGGREGATED_SLICE,
        computed: Computed::Segment,
        read_by: "the scorer of affinity, as its page configures it",
        version: LLM_D,
        source: "llm-d/llm-d-router@ebab6879 pkg/epp/framework/plugins/scheduling/scorer/headerlabelaffinity/README.md",
    },
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
            assert!(!fact.version.is_empty() && !fact.source.is_empty() && !fact.read_by.is_empty(), "{}", fact.name);
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
