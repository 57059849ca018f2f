//! The documents: output in them is what is printed, links lead somewhere, prose is wrapped, and the README is short.
//! CONTRIBUTING.md says how a page names the command of a block.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::fake::Lab;
use crate::support::{Guarded, NARROWS, checkout, plain, run};

/// The last column of prose.
const COLUMNS: usize = 100;
/// The longest README.
const WORDS: usize = 1300;
/// The languages of blocks that show no output.
const LANGUAGES: [&str; 9] = ["sh", "toml", "python", "json", "rust", "yaml", "http", "sql", "text"];

/// In the folder of a made-up run, runs take their figures from a file.
const MADE_UP: &str = "narrows() { if [ \"$1\" = run ]; then shift; set -- run --fake truth.toml --seed 1 \"$@\"; fi; \
                       command narrows \"$@\"; }\n";

/// A page of the documents.
struct Page {
    /// Its path in the checkout.
    name: PathBuf,
    lines: Vec<String>,
}

/// A fenced block of a page.
struct Block {
    /// The lines between its fences.
    first: usize,
    end: usize,
    language: String,
    /// What the comment above it says: a kind and the rest.
    mark: Option<(String, String)>,
}

impl Page {
    fn read(name: &Path) -> Self {
        let text = fs::read_to_string(checkout().join(name)).expect("a page");
        Self { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() }
    }

    /// All pages that people write.
    fn all() -> Vec<Self> {
        let mut names: Vec<PathBuf> =
            ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "llms.txt", "fuzz/README.md"]
                .map(PathBuf::from)
                .to_vec();
        let mut folders = vec![PathBuf::from("docs")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(checkout().join(&folder)).expect("a folder") {
                let name = folder.join(entry.expect("an entry").file_name());
                match checkout().join(&name).is_dir() {
                    true => folders.push(name),
                    false if name.extension().is_some_and(|end| end == "md") => names.push(name),
                    false => {}
                }
            }
        }
        names.sort();
        names.iter().map(|name| Self::read(name)).collect()
    }

    /// Its path, as links are resolved.
    fn path(&self) -> PathBuf {
        checkout().join(&self.name).canonicalize().expect("a page")
    }

    /// The place of a line, for messages.
    fn at(&self, line: usize) -> String {
        format!("{}:{}", self.name.display(), line + 1)
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut opened: Option<usize> = None;
        for (number, line) in self.lines.iter().enumerate() {
            let Some(language) = line.trim_start().strip_prefix("```") else { continue };
            match opened.take() {
                None => {
                    opened = Some(number);
                    let above = number.checked_sub(1).map_or("", |above| &*self.lines[above]);
                    let mark = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                    let mark = mark.and_then(|mark| mark.split_once(": "));
                    blocks.push(Block {
                        first: number + 1,
                        end: number + 1,
                        language: language.to_owned(),
                        mark: mark.map(|(kind, rest)| (kind.to_owned(), rest.to_owned())),
                    });
                }
                Some(_) => blocks.last_mut().expect("an open block").end = number,
            }
        }
        assert!(opened.is_none(), "{}: a block does not end", self.name.display());
        blocks
    }

    /// The blocks whose comment is of this kind, with the rest of it. The last one comes first, so that blocks can be replaced.
    fn marked(&self, wanted: &str) -> Vec<(Block, String)> {
        let blocks = self.blocks().into_iter().rev();
        blocks
            .filter_map(|mut block| {
                block.mark.take_if(|(kind, _)| kind == wanted).map(|(_, rest)| (block, rest))
            })
            .collect()
    }

    fn text(&self, block: &Block) -> String {
        self.lines[block.first..block.end].iter().map(|line| format!("{line}\n")).collect()
    }

    fn replace(&mut self, block: &Block, text: &str) {
        self.lines.splice(block.first..block.end, text.lines().map(str::to_owned));
    }

    fn write(&self) {
        fs::write(checkout().join(&self.name), self.lines.join("\n") + "\n").expect("a page");
    }

    /// The lines outside blocks, with their numbers.
    fn outside(&self) -> impl Iterator<Item = (usize, &str)> {
        let blocks = self.blocks();
        let inside = move |number: usize| blocks.iter().any(|b| (b.first - 1..=b.end).contains(&number));
        self.lines
            .iter()
            .enumerate()
            .filter(move |(number, _)| !inside(*number))
            .map(|(n, line)| (n, &**line))
    }

    /// The anchors of its headings, as GitHub makes them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.outside().filter(|(_, line)| line.starts_with('#'));
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        headings
            .map(|(_, line)| line.trim_start_matches('#').trim().to_lowercase())
            .map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-"))
            .collect()
    }
}

/// The user's state folder while a command of a document runs, in its folder.
const STATE: &str = ".state";

/// What a shell command prints in a folder, where `narrows` is the program in the folder `programs`. Spaces at the ends of lines are
/// left out.
fn printed(folder: &Path, programs: &Path, command: &str) -> String {
    let mut shell = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-c", command]).current_dir(folder);
    plain(&mut shell);
    shell
        .env("NARROWS_HOME", folder)
        .env("XDG_STATE_HOME", folder.join(STATE))
        .env("CHECKOUT", checkout())
        .env("PATH", format!("{}:{path}", programs.display()));
    let ended = run(&mut shell);
    assert!(!ended.stdout.is_empty(), "`{command}` prints nothing: {ended:#?}");
    let text = ended.stdout.replace(&*folder.to_string_lossy(), "/home/me/project");
    let text = text.replace(STATE, "~/.local/state");
    assert!(
        !text.contains(&*checkout().to_string_lossy()),
        "`{command}` prints a path of this machine: {text}"
    );
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

#[test]
fn output_is_what_is_printed() {
    let lab = Lab::new();
    lab.run(&["--rounds", "6"]).code(0);
    let programs = Path::new(NARROWS).parent().expect("its folder");
    let write = std::env::var_os("NARROWS_WRITE_DOCS").is_some();
    let mut count = 0;
    for mut page in Page::all() {
        for (block, command) in page.marked("output of") {
            let text = printed(&lab.home.path(""), programs, &format!("{MADE_UP}{command}"));
            count += 1;
            if write {
                page.replace(&block, &text);
            } else {
                assert_eq!(
                    page.text(&block),
                    text,
                    "{}: run NARROWS_WRITE_DOCS=1 cargo test --workspace --locked --test check documents to write it",
                    page.at(block.first)
                );
            }
        }
        if write {
            page.write();
        }
    }
    assert!(count > 0, "no block was found");
}

#[test]
fn every_block_has_a_language_or_says_where_it_comes_from() {
    let mut wrong = Vec::new();
    for page in Page::all() {
        for block in page.blocks() {
            let kind = block.mark.as_ref().map(|(kind, _)| &**kind);
            let known = match kind {
                Some("output of" | "run" | "recorded") => block.language.is_empty(),
                None | Some("file") => LANGUAGES.contains(&&*block.language),
                Some(_) => false,
            };
            if !known {
                wrong.push(page.at(block.first - 1));
            }
            if kind == Some("run") && block.first == block.end {
                wrong.push(format!("{}: `make pictures` has not run", page.at(block.first - 1)));
            }
        }
        let mut in_list = false;
        let mut above = "";
        for (number, line) in page.outside() {
            let begun = line.trim_start();
            let item = begun.starts_with("- ") || begun.starts_with(|c: char| c.is_ascii_digit());
            in_list = item || in_list && (line.is_empty() || line.starts_with(' '));
            if line.starts_with("    ") && above.is_empty() && !in_list {
                wrong.push(format!("{}: use ``` instead of indentation", page.at(number)));
            }
            above = line;
        }
    }
    assert!(wrong.is_empty(), "see \"Documents\" in CONTRIBUTING.md: {wrong:#?}");
}

#[test]
fn prose_is_wrapped() {
    let mut long = Vec::new();
    for page in Page::all() {
        for (number, line) in page.outside() {
            // What cannot be broken: tables, comments, pictures, and lines of one word or link.
            let whole = ["|", "<!--", "!["].iter().any(|begin| line.trim_start().starts_with(begin));
            let words = line.trim_start_matches([' ', '-']);
            if line.chars().count() > COLUMNS && !whole && words.contains(' ') {
                long.push(page.at(number));
            }
        }
    }
    assert!(long.is_empty(), "longer than {COLUMNS} columns: {long:#?}");
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(checkout().join("README.md")).expect("the README");
    let words = text.split_whitespace().count();
    assert!(words <= WORDS, "README.md has {words} words; move some of them to docs/, at most {WORDS} stay");
}

#[test]
fn every_fuzz_target_has_two_seeds() {
    let folder = checkout().join("fuzz");
    for target in fs::read_dir(folder.join("fuzz_targets")).expect("a folder") {
        let name = target.expect("an entry").path().file_stem().map(PathBuf::from).expect("a name");
        let seeds = folder.join("seeds").join(&name);
        let count = fs::read_dir(&seeds).map_or(0, Iterator::count);
        // The fuzzer combines inputs, and a minute is too short to find from nothing what reaches deep code.
        assert!(count >= 2, "fuzz/seeds/{} has {count} inputs: at least two are needed", name.display());
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = Page::all();
    pages.extend(["bench/RESULTS.md", "bench/COUNTS.md"].map(|name| Page::read(Path::new(name))));
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> =
        pages.iter().map(|page| (page.path(), page.anchors())).collect();
    let mut wrong = Vec::new();
    for page in &pages {
        let path = page.path();
        for (number, line) in page.outside() {
            // What is between `` ` `` is no link.
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
            let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for link in links.filter(|link| !link.contains("://")) {
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if file.is_empty() {
                    Ok(path.clone())
                } else {
                    path.parent().expect("a folder").join(file).canonicalize()
                };
                let known = target.as_ref().ok().and_then(|target| anchors.get(target));
                if target.is_err() || !anchor.is_empty() && known.is_none_or(|known| !known.contains(anchor))
                {
                    wrong.push(format!("{}: {link}", page.at(number)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "they lead nowhere: {wrong:#?}");
}

/// Not a test: runs the commands of the documents on this machine, and writes what they print. See `make pictures`.
/// `NARROWS_RUN_DOCS=FOLDER cargo test --test check -- --ignored real_runs`, with the folder of the program.
/// `NARROWS_RUN_PAGE` names a single page.
#[test]
#[ignore = "runs for minutes and writes documents; for people"]
fn real_runs() {
    let Some(programs) = std::env::var_os("NARROWS_RUN_DOCS").map(PathBuf::from) else { return };
    let mut serve = Command::new(programs.join("narrows"));
    serve.args(["serve", "-p", "18080"]);
    plain(&mut serve);
    let _target = Guarded::spawn(&mut serve);
    let only = std::env::var_os("NARROWS_RUN_PAGE").filter(|name| !name.is_empty()).map(PathBuf::from);
    let wanted = |page: &Page| only.as_ref().is_none_or(|name| page.name == *name);
    for mut page in Page::all().into_iter().filter(|page| wanted(page) && !page.marked("run").is_empty()) {
        let folder = tempfile::TempDir::new().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
            fs::write(path, bytes).expect("a file");
        };
        fs::create_dir(folder.path().join("systems")).expect("a home");
        for sample in fs::read_dir(checkout().join("docs/samples")).expect("docs/samples") {
            let path = sample.expect("a sample").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            write(&name, &fs::read(&path).expect("a sample"));
        }
        for (block, name) in page.marked("file") {
            write(&name, page.text(&block).as_bytes());
        }
        // In the order of the page, because a command may need what an earlier one has left.
        let marked = page.marked("run");
        let found: Vec<String> = marked
            .iter()
            .rev()
            .map(|(_, command)| {
                eprintln!("{}: {command}", page.name.display());
                printed(folder.path(), &programs, command)
            })
            .collect();
        for ((block, _), text) in marked.iter().zip(found.iter().rev()) {
            page.replace(block, text);
        }
        page.write();
    }
}
