//! `make demo`: KEP-32's Story 1 on a real control plane, then a rollout in lockstep (KEP-30), a batch that must share
//! a rack, and segments that scale as one number and are recreated as a whole. The exit code is 0 when everything was
//! observed.

mod elastic;
mod racks;
mod rollout;
mod scene;
mod screen;
mod stage;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rollout::Rollout;
use scene::Scene;
use stage::{Stage, StageError};

/// Time limit of the demo.
const PATIENCE: Duration = Duration::from_secs(300);

/// The message for a conflict, as quoted in KEP-32.
const CONFLICT: &str =
    r#"segment size conflict for role "prefill": coordination has segment size 10, but another coordination has 5"#;

#[tokio::main]
async fn main() -> ExitCode {
    let started = Instant::now();
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(PATIENCE, play()) => {
            outcome.unwrap_or_else(|_| Err(StageError::NotObserved(format!("the demo did not end within {PATIENCE:?}"))))
        }
        _ = tokio::signal::ctrl_c() => Err(StageError::NotObserved("interrupted".to_owned())),
    };
    match outcome {
        Ok(()) => {
            println!(
                "\nAll of it was observed, in {:.1} s. Everything is stopped and removed.",
                started.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("\ndemo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play() -> Result<(), StageError> {
    screen::title("A control plane: etcd, API server, scheduler, controllers, and fake nodes with room for 140 pods");
    let mut stage = Stage::build().await?;
    stage.nodes(0..14).await?;

    screen::title("100 prefills and 50 decodes, in segments of 10 + 5 (examples/story-1.yaml)");
    println!("{}", stage.kubectl(&["apply", "-f", "examples/story-1.yaml"])?);
    let mut scene = Scene::watch(&stage.client, 10, 5);
    scene
        .until("nine segments serve", |scene| {
            scene.condition("Ready") == Some(("False", "PartialDeployment", "135/150 pods ready"))
                && scene.condition("MinimumSegmentsAvailable")
                    == Some(("True", "MinimumSegmentReady", "9/10 segments ready (135/150 pods)"))
        })
        .await?;
    scene.only_last_segment_is_pending()?;
    println!("\n   Nine segments serve with 135 pods; the tenth waits as a whole and leaves its places to others.");
    println!("{}", stage.kubectl(&["get", "rolebasedgroup", "llm-service"])?);

    screen::title("A node is added: room for ten more");
    stage.nodes(14..15).await?;
    scene
        .until("all segments are ready", |scene| {
            scene.condition("Ready") == Some(("True", "AllReplicasReady", "150/150 pods ready"))
                && scene.condition("MinimumSegmentsAvailable")
                    == Some(("True", "AllSegmentsReady", "10/10 segments ready (150/150 pods)"))
        })
        .await?;
    println!("\n{}", stage.kubectl(&["get", "rolebasedgroup", "llm-service"])?);

    screen::title("Both roles get a new image; the shares that are updated stay within 10 % of each other");
    let mut rollout = Rollout::watch(&stage.client);
    for role in ["prefill", "decode"] {
        let image = format!("{role}=registry.invalid/{role}:2");
        println!("{}", stage.kubectl(&["set", "image", &format!("statefulset/{role}"), &image])?);
    }
    let widest = rollout.until_done().await?;
    println!("\n   All 150 pods are updated. At no event were the shares more than {widest:.0} % apart.");
    println!(
        "{}",
        stage.kubectl(&["get", "events", "--field-selector=reason=RolloutAdvanced", "--sort-by=.eventTime"])?
    );

    racks::play(&mut stage).await?;
    elastic::play(&mut stage).await?;

    screen::title("Two coordinations that disagree about prefill (examples/conflict.yaml)");
    let refused = stage.refused(&["apply", "-f", "examples/conflict.yaml"])?;
    println!("{refused}");
    if !refused.contains(CONFLICT) {
        return Err(StageError::NotObserved(format!("the refusal does not say: {CONFLICT}")));
    }
    stage.strike()
}
