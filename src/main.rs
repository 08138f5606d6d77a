//! The program: arguments in, exit code out. Everything else is in the library, where tests reach it.

/// Measured on pass-through: a quarter more requests per second than with the system's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    weirgate::cli::main()
}
