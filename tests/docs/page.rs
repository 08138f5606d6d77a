//! A page: its fenced blocks, and what their first lines say of them.

/// What a test does with a block.
#[derive(Debug, Eq, PartialEq)]
pub enum Run {
    /// Nothing: it is no shell's.
    Never,
    /// It needs what a test does not have. The text says what.
    Skip(String),
    /// Each command has to exit 0, and each `curl` to get a status of success.
    Succeeds,
    /// Each `curl` has to get this status.
    Status(u16),
    /// The last command has to exit with this code, all others with 0.
    Exit(u8),
    /// It is written into this file, before the blocks that follow.
    Write(String),
    /// It is written behind this file.
    Append(String),
    /// This command prints it, among other things. How far lines are indented does not count.
    PrintedBy(String),
}

/// A fenced block, or a comment `<!-- run: COMMAND -->`.
#[derive(Debug)]
pub struct Block {
    /// The number of its first line.
    pub line: usize,
    pub language: String,
    pub run: Run,
    pub text: String,
}

/// A page.
#[derive(Debug)]
pub struct Page {
    /// Its path from the root of the repository.
    pub path: String,
    pub blocks: Vec<Block>,
}

/// Languages of commands. Of `console` the lines behind `$ ` are commands, and the others what they print.
const SHELLS: [&str; 2] = ["sh", "console"];

/// Languages of programs with the client libraries of `make clients`.
const PROGRAMS: [&str; 2] = ["python", "js"];

/// A command that readers of the page need not see.
const HIDDEN: &str = "<!-- run: ";

impl Block {
    /// Returns whether the block is one of commands.
    pub fn is_shell(&self) -> bool {
        SHELLS.contains(&self.language.as_str())
    }

    /// Returns whether a test runs it.
    pub fn runs(&self) -> bool {
        use Run::{Exit, PrintedBy, Status, Succeeds};
        matches!(self.run, Succeeds | Status(_) | Exit(_) | PrintedBy(_))
    }

    /// Returns its commands.
    pub fn commands(&self) -> String {
        if self.language != "console" {
            return self.text.clone();
        }
        let (mut commands, mut goes_on) = (String::new(), false);
        for line in self.text.lines() {
            let command = match line.strip_prefix("$ ") {
                Some(command) => command,
                None if goes_on => line,
                None => continue,
            };
            goes_on = command.ends_with('\\');
            commands.push_str(command);
            commands.push('\n');
        }
        commands
    }
}

impl Page {
    /// Reads the blocks of a page.
    ///
    /// Errors: a fence that is not closed, or a mark that is not known, with the place.
    pub fn parse(path: &str, text: &str) -> Result<Page, String> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut open: Option<(usize, Block)> = None;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let inner = line.trim_start();
            let indent = line.len() - inner.len();
            match (open.take(), inner.strip_prefix("```")) {
                (Some((_, block)), Some("")) => blocks.push(block),
                (Some((before, mut block)), _) => {
                    // A block of a list is indented by as much as its fence.
                    let start = before.min(indent);
                    block.text.push_str(&line[start..]);
                    block.text.push('\n');
                    open = Some((before, block));
                }
                (None, Some(info)) => {
                    let block = Block::of(number, info)
                        .map_err(|problem| format!("{path}:{number}: {problem}"))?;
                    open = Some((indent, block));
                }
                (None, None) => blocks.extend(hidden(number, inner)),
            }
        }
        match open {
            Some((_, block)) => Err(format!("{path}:{}: the block does not end", block.line)),
            None => Ok(Page {
                path: path.to_owned(),
                blocks,
            }),
        }
    }
}

impl Block {
    /// Reads the first line of a block, behind its quotes.
    fn of(line: usize, info: &str) -> Result<Block, String> {
        let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
        let is_shell = SHELLS.contains(&language);
        let number = |text: &str| text.parse::<u16>().map_err(|_| unknown(mark));
        let run = match mark.split_once(['=', ':']) {
            None if mark == "run" && PROGRAMS.contains(&language) => Run::Succeeds,
            None if !mark.is_empty() => return Err(unknown(mark)),
            None if is_shell => Run::Succeeds,
            None => Run::Never,
            Some(("skip", reason)) if is_shell => Run::Skip(reason.trim().to_owned()),
            Some(("status", status)) if is_shell => Run::Status(number(status)?),
            Some(("exit", code)) if is_shell => {
                Run::Exit(u8::try_from(number(code)?).map_err(|_| unknown(mark))?)
            }
            Some(("printed-by", command)) => Run::PrintedBy(command.trim().to_owned()),
            Some(("file", name)) if !is_shell => Run::Write(inside(name)?),
            Some(("append", name)) if !is_shell => Run::Append(inside(name)?),
            Some(_) => return Err(unknown(mark)),
        };
        Ok(Block {
            line,
            language: language.to_owned(),
            run,
            text: String::new(),
        })
    }
}

fn unknown(mark: &str) -> String {
    format!(
        "the mark of the block is `{mark}`; commands take `skip: REASON`, `status=CODE` and `exit=CODE`, programs in \
         python and js take `run`, other texts `file=NAME`, `append=NAME` and `printed-by: COMMAND`"
    )
}

/// Checks that a file is in the folder of the test.
fn inside(name: &str) -> Result<String, String> {
    match name.is_empty() || name.starts_with('/') || name.contains("..") {
        true => Err(format!(
            "the file is `{name}`; accepted is one below the folder in which the page runs"
        )),
        false => Ok(name.to_owned()),
    }
}

/// The command of a comment.
fn hidden(line: usize, text: &str) -> Option<Block> {
    let command = text.strip_prefix(HIDDEN)?.strip_suffix(" -->")?;
    Some(Block {
        line,
        language: SHELLS[0].to_owned(),
        run: Run::Succeeds,
        text: format!("{command}\n"),
    })
}

/// Returns whether a line is a command of the product or a request to it.
pub fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let program = line.split_whitespace().next().unwrap_or_default();
    let has_more = line.len() > program.len();
    has_more && matches!(program.rsplit('/').next(), Some("weirgate" | "curl"))
}

#[test]
fn blocks_say_what_is_done_with_them() {
    let text = "a\n```sh\nweirgate check\n```\n- b\n  ```sh skip: needs a cloud\n  c\n    d\n  ```\n```toml\nx = 1\n```\n\
                ```toml file=a/b.toml\n```\n<!-- run: touch a -->\n```console exit=1\n$ a \\\n  b\nc\n$ d\n```\n";
    let page = Page::parse("p.md", text).unwrap();
    let runs: Vec<&Run> = page.blocks.iter().map(|block| &block.run).collect();
    let expected = [
        &Run::Succeeds,
        &Run::Skip("needs a cloud".to_owned()),
        &Run::Never,
        &Run::Write("a/b.toml".to_owned()),
        &Run::Succeeds,
        &Run::Exit(1),
    ];
    assert_eq!(runs, expected);
    assert_eq!(page.blocks[0].line, 2);
    assert_eq!(page.blocks[1].text, "c\n  d\n");
    assert_eq!(page.blocks[4].commands(), "touch a\n");
    assert_eq!(page.blocks[5].commands(), "a \\\n  b\nd\n");
}

#[test]
fn a_mark_that_is_not_known_is_refused_with_its_place() {
    for text in [
        "```sh skp: it\n```",
        "```sh file=a\n```",
        "```toml status=200\n```",
        "```toml run\n```",
        "```sh exit=1000\n```",
        "```toml file=../a\n```",
        "```toml file=/a\n```",
        "```sh\n",
    ] {
        let problem = Page::parse("p.md", text).unwrap_err();
        assert!(problem.starts_with("p.md:1: "), "{problem}");
    }
}

#[test]
fn commands_are_found_by_their_program() {
    for line in [
        "weirgate check",
        "  $ weirgate check",
        "curl -s x",
        "./target/quick/weirgate check",
    ] {
        assert!(is_command(line), "{line}");
    }
    for line in ["weirgate", "weirgated x", "the weirgate check", ""] {
        assert!(!is_command(line), "{line}");
    }
}
