# Two commands matter: `make demo` shows it, `make test` runs everything that CI runs.
# They need Rust, Go, make and a C compiler; whatever else they use, they build themselves, under target/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CONTROLPLANE := $(CURDIR)/target/controlplane/bin
# Subcommands of cargo, installed into target/tools when something needs them.
TOOLS := target/tools/bin
deny_VERSION := 0.20.2
auditable_VERSION := 0.7.7
cyclonedx_VERSION := 0.5.9
about_VERSION := 0.8.4
# A target of its own, so that build scripts and macros are not linked statically as well.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
IMAGE ?= rolegate:$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Test threads: most tests wait for the control plane, not for the processor.
THREADS ?= 4

.PHONY: help demo demo-programs test test-all unit-programs build image sbom release release-twice docs rig addons tools fmt lint deny long chaos neighbours engines versions soak fuzz bench bench-review bench-scale bench-create bench-ungate bench-restart bench-plan bench-instructions clean

help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 16

demo: ## KEP-32's Story 1 on a real control plane: builds, shows, cleans up. Exit code 0 only if all was observed.
	@$(MAKE) --no-print-directory -j2 rig demo-programs
	target/debug/demo

# One after the other they are built beside the rig; the add-ons last: beside it, both would compile what they share.
test: ## Everything that CI runs; at its end the dearest tests, and minutes of processors.
	@tests/all.sh $(THREADS)

test-all: ## All tests, the second tier too; can be called again, and goes on with the suites that have not passed. Writes tests/all-green.
	@$(MAKE) --no-print-directory lint deny
	@tests/all.sh --all $(THREADS)

build: ## The release binary, target/release/rolegate.
	cargo build --locked --release --bin rolegate

image: $(TOOLS)/cargo-auditable ## The image rolegate:VERSION: one static binary that lists its dependencies. Takes buildah, podman or docker.
	RUSTFLAGS="-C target-feature=+crt-static" $< auditable build --locked --release --bin rolegate --target $(HOST)
	deploy/image/build.sh target/$(HOST)/release/rolegate $(IMAGE)

sbom: $(TOOLS)/cargo-cyclonedx ## What the binary is made of, as CycloneDX: target/rolegate.cdx.json.
	$< cyclonedx --format json --spec-version 1.5 --no-build-deps --target $(HOST) --override-filename rolegate.cdx
	rm -f src/core/rolegate.cdx.json
	mv rolegate.cdx.json target/

RELEASE_PROGRAMS := $(addprefix $(TOOLS)/cargo-,auditable cyclonedx about)
# Architectures of a release.
ARCHS ?= amd64 arm64

release: deny $(RELEASE_PROGRAMS) ## What a release consists of, in target/dist: binaries, manifests, chart, licences, bills of materials, checksums.
	deploy/release/build.sh target/dist $(ARCHS)

release-twice: $(RELEASE_PROGRAMS) ## The same, built twice at two paths: fails where a byte differs.
	deploy/release/twice.sh $(ARCHS)

docs: tools ## Write what is generated: definitions, manifests, the Helm chart, the pages of rules, of the API and of the command line, the alerts of prometheus-operator.
	deploy/render.sh $(CONTROLPLANE)/helm >target/rendered.yaml
	cmp -s target/rendered.yaml deploy/rendered.yaml || cp target/rendered.yaml deploy/rendered.yaml
	UPDATE_DOCS=1 cargo test --locked --quiet --test offline generated

# Built beside the control plane: each has stretches that keep only one core busy.
demo-programs:
	cargo build --locked --bin rolegate --bin demo

# Lints and code in one pass: the deeper half of the compiler's work is done once, and for all of these together.
LINTED := unit-programs demo-programs docs
$(LINTED): export RUSTC_WORKSPACE_WRAPPER := clippy-driver
$(LINTED): export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
unit-programs:
	cargo test --locked --lib --tests --no-run

rig: ## Build the control plane for tests: etcd, API server, scheduler, controllers, kubectl, kwok.
	tests/controlplane/build.sh rig $(CONTROLPLANE)

addons: ## Build cert-manager and LeaderWorkerSet for tests, and copy the definition of cluster-autoscaler.
	tests/controlplane/build.sh addons $(CONTROLPLANE)
	tests/controlplane/build.sh neighbours/cluster-autoscaler $(CONTROLPLANE)

tools: ## Build Helm for tests.
	tests/controlplane/build.sh tools $(CONTROLPLANE)

fmt:
	cargo fmt --check

lint:
	cargo clippy --locked --all-targets -- -D warnings

deny: $(TOOLS)/cargo-deny
	$< --locked check bans licenses sources

# To optimise them takes longer than they run.
$(TOOLS)/cargo-%:
	@echo "installing cargo-$* $($*_VERSION) into target/tools"
	cargo install cargo-$* --version $($*_VERSION) --locked --debug --root target/tools

long: rig ## 100,000 random histories of the loop in a simulated cluster (`cargo test` tries 2,000), 20,000 cases of each property, 1,000 placements and 1,000 allocations of devices on the real scheduler.
	ROLEGATE_HISTORIES=100000 PROPTEST_CASES=20000 cargo test --locked --profile quick --test histories --test properties
	ROLEGATE_PLACEMENTS=1000 ROLEGATE_DEVICES=1000 cargo test --locked --test live -- placement:: devices::the_scheduler

chaos: rig addons ## Attacks and faults on the real control plane, the long ones too. UPDATE_DOCS=1 writes tests/live/chaos/README.md.
	cargo test --locked --profile quick --test live -- chaos:: --include-ignored --skip soak:: --skip fuzz:: --test-threads=1 --nocapture

fuzz: ## Fuzz with coverage (libFuzzer, needs a C++ compiler), an hour of each target. ROLEGATE_FUZZ sets the seconds; UPDATE_DOCS=1 writes tests/live/chaos/README.md.
	cargo test --locked --test live -- --ignored chaos::fuzz:: --test-threads=1 --nocapture

neighbours: rig addons ## Builds Kueue, Volcano, KAI, coscheduling, JobSet and Karpenter, and runs rolegate beside each. UPDATE_DOCS=1 writes tests/neighbours/README.md.
	tests/controlplane/build.sh neighbours $(CONTROLPLANE)
	tests/controlplane/build.sh versions/1.36 $(CONTROLPLANE)
	cargo test --locked --test neighbours -- --ignored --test-threads=1 --nocapture

# PyTorch and the parsers of the engines: 2 GB with PyTorch's index for processors alone, 7 GB with CUDA.
ENGINES := target/engines

engines: ## Processes with the variables of four pods form a process group of PyTorch, and the engines' own parsers take the command lines of the examples. Needs Python 3.11 and user namespaces.
	cargo build --locked --bin rolegate
	tests/engines/install.sh $(ENGINES)
	tests/engines/run.sh $(ENGINES) target/debug/rolegate

# Versions of Kubernetes that are tried.
VERSIONS ?= 1.30 1.31 1.32 1.33 1.34 1.35 1.36 1.37

versions: rig tools ## Builds API server, scheduler and controllers of other versions of Kubernetes, and runs the main tests on each. VERSIONS names them; UPDATE_DOCS=1 writes docs/compatibility.md.
	tests/versions.sh $(VERSIONS)

soak: rig ## An hour of churn: what grows, and does not shrink again. ROLEGATE_SOAK sets the minutes.
	cargo test --locked --test live -- --ignored chaos::soak:: --test-threads=1 --nocapture

bench: bench-review bench-plan bench-scale bench-create bench-ungate bench-restart ## All that follows, one after the other, and one table of what is to be reached. Half an hour with ROLEGATE_SCALE=1500.
	@sed -n '/^<!-- targets -->/,/^<!-- end of targets -->/p' benches/README.md | grep '^|'

bench-review: rig ## What a pod's review costs: rolegate between a constant answer and a webhook on controller-runtime.
	cargo build --locked --release --bin rolegate --example bench --example bench-floor
	cd benches/peer && CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" \
		-o $(CURDIR)/target/bench/peer .
	target/release/examples/bench

bench-scale: rig ## Groups of thousands of pods on a real API server: ungated, by a bare loop, by rolegate. Twenty minutes with ROLEGATE_SCALE=1500.
	cargo build --locked --profile quick --bin rolegate --example bench-scale
	target/quick/examples/bench-scale

bench-create: rig ## What the creation of a pod costs through a real API server, at so many at a time: with no webhook, one that answers a constant, and rolegate.
	cargo build --locked --profile quick --bin rolegate --example bench-create
	target/quick/examples/bench-create

bench-ungate: rig ## How many gates a second are lifted, beside a bare loop, on a real API server. Ten minutes; ROLEGATE_UNGATE sets the numbers of pods.
	cargo build --locked --profile quick --bin rolegate --example bench-ungate
	target/quick/examples/bench-ungate

bench-restart: rig ## From its start to knowing 1,000 groups of 100 held pods on a real API server. About five minutes.
	cargo build --locked --profile quick --bin rolegate --example bench-restart
	target/quick/examples/bench-restart

bench-instructions: ## Instructions of a review's and a pass's parts, counted by valgrind (which this one needs).
	cargo test --locked --quiet --profile quick --test instructions -- print

bench-plan: ## What planning costs: the loop over groups of 300 to 30,000 pods, and `plan` of up to 150,000, without an API server.
	cargo run --locked --quiet --profile quick --example bench-plan

clean: ## Remove everything that was built.
	rm -rf target
