//! The `rolegate` command.

use std::process::ExitCode;

/// A review is a thousand small allocations; and the allocator of musl, which the image is built with, is slow and has one
/// lock for all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rolegate::cli::run()
}
