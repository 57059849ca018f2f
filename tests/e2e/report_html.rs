//! The HTML report in a real browser: of a real run, and of large and hostile made-up runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support;
use crate::support::browser::{Browser, CHROMIUM};
use crate::support::home::Home;
use crate::support::made_up::{MadeUp, failed, in_json};
use lab::observation::Trial;
use serde_json::Value;
use tempfile::TempDir;

/// The widths to check: a phone, a small window, a large one.
const WIDTHS: [u32; 3] = [360, 800, 1600];

/// The figure of all scenarios.
const RANKING: &str = "Every scenario: requests a second";

/// The figure of the comparisons.
const COMPARISONS: &str = "Comparisons: how many times faster";

/// The figures that explain an answer for requests or clients. `over` is the title of those over the window.
fn explaining(over: &'static str) -> [&'static str; 5] {
    ["CPU time", "Peak memory", "Latency spectrum", over, ROUNDS]
}

/// The same if the reference ran at every point.
fn explaining_with_ceiling(over: &'static str) -> [&'static str; 6] {
    ["CPU time", "Peak memory", "Share of the ceiling", "Latency spectrum", over, ROUNDS]
}

/// The same for uploads and frames, whose operations are long.
const EXPLAINING_STREAMS: [&str; 4] = ["CPU time", "Peak memory", "Memory over the window", ROUNDS];

const ROUNDS: &str = "Round by round";

/// The title of the figures over the window for made-up trials.
const BOTH: &str = "Throughput and memory over the window";

/// Writes the report of the home's last run as a page in the home.
fn page(home: &Home) -> PathBuf {
    let path = home.path("report.html");
    home.run(["report", "last", "--format", "html", "-o", path.to_str().expect("a path")]).code(0);
    path
}

/// Asserts at every width, light and dark, that the page is sound: it has no errors and makes no requests, nothing is
/// wider than the screen, it has exactly these figures, and each shows exactly one drawing with its names, its text
/// inside it, and its data.
fn assert_sound(browser: &mut Browser, page: &Path, figures: &[&str]) {
    for width in WIDTHS {
        browser.open(page, width, false);
        for dark in [false, true] {
            browser.shade(dark);
            let seen = browser.eval(LOOK);
            assert_eq!(browser.complaints(), Vec::<Value>::new(), "at {width}");
            assert_eq!(seen["inner"], width);
            assert!(seen["wide"].as_u64() <= seen["inner"].as_u64(), "wider than {width}: {}", seen["wider"]);
            let all = seen["figures"].as_array().expect("figures");
            let titles: Vec<&str> = all.iter().filter_map(|figure| figure["title"].as_str()).collect();
            assert_eq!(titles, figures, "at {width}");
            for figure in all {
                let fine =
                    figure["shown"] == 1 && figure["named"] == true && figure["rows"].as_u64() > Some(0);
                assert!(fine && figure["outside"] == Value::Array(Vec::new()), "at {width}: {figure}");
            }
        }
    }
}

/// JavaScript that returns what a person would see of the page's layout.
const LOOK: &str = "(() => {
    const all = (root, what) => [...root.querySelectorAll(what)];
    const visible = (e) => e.getBoundingClientRect().width > 0;
    const inner = window.innerWidth;
    return {
        inner,
        wide: document.documentElement.scrollWidth,
        wider: all(document, 'body *').filter((e) => !e.closest('.scroll') && e.getBoundingClientRect().right > inner + 1)
            .map((e) => e.outerHTML.slice(0, 80)).slice(0, 5),
        figures: all(document, 'figure').map((figure) => {
            const shown = all(figure, 'svg.figure').filter(visible);
            const svg = shown[0];
            const texts = svg.getAttribute('aria-labelledby').split(' ').map((id) => document.getElementById(id));
            const box = svg.viewBox.baseVal;
            const inside = (b) => b.x >= -1 && b.y >= -1 && b.x + b.width <= box.width + 1 && b.y + b.height <= box.height + 1;
            return {
                id: figure.id,
                title: figure.querySelector('figcaption').textContent,
                shown: shown.length,
                named: svg.getAttribute('role') === 'img' && texts.every((e) => svg.contains(e) && e.textContent.length > 3),
                rows: figure.querySelectorAll('details.data tbody tr').length,
                outside: all(svg, 'text').filter((e) => !inside(e.getBBox())).map((e) => e.textContent),
            };
        }),
    };
})()";

/// The texts of one column in the visible rows of a table.
fn column(browser: &mut Browser, table: &str, index: usize) -> Vec<String> {
    let texts = browser.eval(&format!(
        "[...document.querySelector('{table}').tBodies[0].rows].filter((row) => !row.hidden)
            .map((row) => row.cells[{index}].dataset.v ?? row.cells[{index}].textContent)"
    ));
    texts.as_array().expect("rows").iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

fn numbers(texts: &[String]) -> Vec<f64> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Sorts by the column `index` with mouse and keyboard, and filters.
fn assert_sorts_and_filters(browser: &mut Browser, table: &str, index: usize, filter: &str) {
    let sort_of = |browser: &mut Browser| {
        let sorts = browser.eval(&format!(
            "[...document.querySelectorAll('{table} thead th')].map((th) => th.getAttribute('aria-sort'))"
        ));
        let sorts = sorts.as_array().expect("headings").clone();
        assert!(sorts.iter().enumerate().all(|(i, sort)| i == index || sort == "none"), "{sorts:?}");
        sorts[index].as_str().unwrap_or_default().to_owned()
    };
    let button = format!("{table} thead th:nth-child({}) button", index + 1);
    let original = column(browser, table, index);
    assert_eq!(sort_of(browser), "none");
    browser.click(&button);
    assert_eq!(sort_of(browser), "ascending");
    let ascending = numbers(&column(browser, table, index));
    assert!(ascending.len() > 2 && ascending.is_sorted(), "{ascending:?}");
    // The button has the focus after the click, so the keyboard continues from there.
    browser.press("Enter", "\r");
    assert_eq!(sort_of(browser), "descending");
    let descending = numbers(&column(browser, table, index));
    assert!(descending.iter().rev().is_sorted() && descending.len() == ascending.len(), "{descending:?}");
    browser.press(" ", " ");
    assert_eq!(sort_of(browser), "none");
    assert_eq!(column(browser, table, index), original);

    browser.click(&format!("{table}-filter"));
    browser.write(filter);
    let shown = browser.eval(&format!(
        "[...document.querySelector('{table}').tBodies[0].rows].map((row) => [row.hidden, row.textContent])"
    ));
    let shown = shown.as_array().expect("rows");
    let hides = |row: &Value| row[0] == !row[1].as_str().is_some_and(|text| text.contains(filter));
    assert!(shown.iter().all(hides), "{shown:?}");
    let left = shown.iter().filter(|row| row[0] == false).count();
    assert!(left > 0 && left < shown.len());
    let status = browser.eval("document.querySelector('.filter [role=status]').textContent");
    assert_eq!(status, format!("{left} of {} rows", shown.len()));
}

#[test]
#[ignore = "long; `make test-long` runs it"]
fn the_page_of_a_run_is_complete_and_its_tables_can_be_sorted_and_filtered() {
    if !support::has(CHROMIUM) {
        return;
    }
    let home = Home::new();
    home.twin("twin");
    home.twin("other");
    home.timed_experiment("requests", "[\"twin\", \"other\"]", 3, 0.3, "[[grid]]\nconnections = [1, 2, 4]\n");
    home.run(["run", "e", "--rounds", "3", "--seed", "5"]).code(0);
    let page = page(&home);
    let mut browser = Browser::start();
    let mut figures = vec!["connections against requests a second", COMPARISONS];
    // It depends on the machine whether memory is sampled twice in so short a window.
    let memory = fs::read_to_string(&page).expect("a page").contains(BOTH);
    figures.extend(explaining(if memory { BOTH } else { "Throughput over the window" }));
    assert_sound(&mut browser, &page, &figures);
    let text = browser.eval("document.body.innerText");
    let text = text.as_str().expect("text");
    assert!(text.contains("narrows run e --rounds 3 --seed 5"), "{text}");
    let table = first_table(&mut browser);
    let index = heading(&mut browser, &table, "req/s");
    assert_sorts_and_filters(&mut browser, &table, index, "twin");
}

/// The selector of the first table that can be filtered.
fn first_table(browser: &mut Browser) -> String {
    let id = browser.eval("document.querySelector('table[data-filter]').id");
    format!("#{}", id.as_str().expect("a table"))
}

/// The index of a heading.
fn heading(browser: &mut Browser, table: &str, name: &str) -> usize {
    let index = browser.eval(&format!(
        "[...document.querySelectorAll('{table} thead th')].findIndex((th) => th.textContent === '{name}')"
    ));
    usize::try_from(index.as_i64().expect("a number")).unwrap_or_else(|_| panic!("no column {name}"))
}

#[test]
fn a_browser_can_show_the_page_of_a_large_run() {
    if !support::has(CHROMIUM) {
        return;
    }
    let home = Home::new();
    let large = MadeUp {
        systems: &["alpha", "beta", "gamma", "delta"],
        threads: 5,
        buffers: 10,
        rounds: 20,
        latencies: 40,
    };
    large.store(&home, |plan| plan, |_| None);
    let page = page(&home);
    let bytes = fs::metadata(&page).expect("a page").len();
    assert!(bytes < 5_000_000, "{bytes}");
    let mut browser = Browser::start();
    let grid = |system| format!("{system}: requests a second by buffer and threads");
    let grids = ["alpha", "beta", "gamma", "delta"].map(grid);
    let mut figures = vec!["buffer against requests a second", "threads against requests a second"];
    figures.extend(grids.iter().map(String::as_str));
    figures.push(COMPARISONS);
    figures.extend(explaining_with_ceiling(BOTH));
    assert_sound(&mut browser, &page, &figures);
    let over_time = browser.eval(
        "[...[...document.querySelectorAll('figure')]
            .find((figure) => figure.innerText.startsWith('Throughput and memory over the window'))
            .querySelectorAll('details.data th')].map((th) => th.textContent)",
    );
    let columns = ["series", "seconds into the window", "requests a second", "memory"];
    assert_eq!(over_time, serde_json::json!(columns));
    let table = first_table(&mut browser);
    assert!(column(&mut browser, &table, 0).len() > 200);
    let index = heading(&mut browser, &table, "req/s");
    assert_sorts_and_filters(&mut browser, &table, index, "gamma");
}

#[test]
fn names_and_errors_cannot_become_part_of_the_page() {
    if !support::has(CHROMIUM) {
        return;
    }
    const NAME: &str = "<script>alert(1)</script>";
    const OUTPUT: &str = "\u{1b}[2J\u{0}\u{7}\u{202e}reversed</pre><img src=x onerror=alert(4)>\u{9b}31m";
    let home = Home::new();
    let small = MadeUp { systems: &["alpha", "beta"], threads: 3, buffers: 4, rounds: 3, latencies: 20 };
    let edit = |plan: String| {
        let plan = plan.replace("\"alpha\"", &format!("\"{}\"", in_json(NAME)));
        plan.replace("Of a test", &in_json("A title </title><script>alert(5)</script> \"' `x"))
    };
    let fails = |trial: &Trial| {
        let second = trial.scenario.system == "beta" && trial.round == 1;
        second.then(|| failed("it said <b onclick=\"alert(6)\">no</b>\u{1b}[0m", OUTPUT))
    };
    small.store(&home, edit, fails);
    let page = page(&home);
    let text = fs::read_to_string(&page).expect("a page");
    let stray = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}');
    assert_eq!(stray, None);
    let mut browser = Browser::start();
    let grids = [NAME, "beta"].map(|system| format!("{system}: requests a second by buffer and threads"));
    let mut figures = vec!["threads against requests a second", "buffer against requests a second"];
    figures.extend(grids.iter().map(String::as_str));
    figures.push(COMPARISONS);
    figures.extend(explaining_with_ceiling(BOTH));
    assert_sound(&mut browser, &page, &figures);
    let made = browser.eval(
        "[document.scripts.length, document.querySelectorAll('img, iframe, link, object, [onclick], [onerror]').length]",
    );
    assert_eq!(made, serde_json::json!([1, 0]));
    let seen = browser.eval("document.body.innerText");
    // Escapes were made blanks when the failure was saved.
    for words in [NAME, "[2J", "</pre><img src=x onerror=alert(4)>", "</script><script>alert(2)"] {
        assert!(seen.as_str().is_some_and(|seen| seen.contains(words)), "{words} is not in {seen}");
    }
}

/// Renames the experiment `e`, to make room for another.
fn rename(home: &Home, name: &str) {
    let text = fs::read_to_string(home.path("experiments/e.toml")).expect("an experiment");
    home.write(&format!("experiments/{name}.toml"), &text.replacen("\"e\"", &format!("{name:?}"), 1));
}

/// How many elements that match the selector are visible in the figure with this title.
fn shown_in(browser: &mut Browser, title: &str, selector: &str) -> u64 {
    let script = format!(
        "[...[...document.querySelectorAll('figure')].find((figure) => figure.innerText.startsWith('{title}'))
            .querySelectorAll('{selector}')].filter((e) => e.getBoundingClientRect().width > 0).length"
    );
    browser.eval(&script).as_u64().expect("a number")
}

#[test]
fn each_client_has_a_grid_and_cells_that_are_not_ranked_are_outlines() {
    if !support::has(CHROMIUM) {
        return;
    }
    let home = Home::new();
    home.client("one", r#"["true"]"#, "");
    home.client("two", r#"["true"]"#, "");
    home.experiment("clients", r#"["one", "two"]"#, 3, "[[grid]]\npool_size = 128\n");
    rename(&home, "ranking");
    let grid =
        "[[grid]]\npool_size = [32, 128]\nconcurrency = [64, 256]\nmax_keepalive = [0, 10, 100, 1000]\n";
    home.experiment("clients", r#"["one", "two"]"#, 3, grid);
    home.write(
        "truth.toml",
        r#"
noise = { spread = 0.01 }
rule = [
    { point = { concurrency = 256 }, better = 1.5 },
    { system = "one", point = { max_keepalive = 100 }, better = 1.2 },
    { system = "two", point = { max_keepalive = 10 }, better = 1.1 },
    { system = "two", point = { pool_size = 128 }, better = 2.0, measured = { server = { peak_connections = 9999 } } },
]
"#,
    );
    home.run(["run", "e", "ranking", "--fake", "truth.toml", "--rounds", "4", "--seed", "5"]).code(0);
    let page = page(&home);
    let mut browser = Browser::start();
    let grid = |client: &str| format!("{client}: requests a second by concurrency and pool_size");
    let grids = [("one", 100), ("two", 10), ("one", 0), ("two", 100), ("one", 1000), ("two", 0)]
        .map(|(client, keepalive)| grid(&format!("{client}: max_keepalive {keepalive}")));
    let mut figures = vec!["max_keepalive against requests a second"];
    figures.extend(grids.iter().map(String::as_str));
    figures.push(COMPARISONS);
    figures.extend(explaining("Memory over the window"));
    // Rows that are not ranked are not compared.
    figures.push(RANKING);
    figures.extend(explaining_with_ceiling("Memory over the window"));
    assert_sound(&mut browser, &page, &figures);
    for (grid, hollow) in grids.iter().zip([0, 2, 0, 2, 0, 2]) {
        let seen =
            [".cell", ".cell.best", ".cell.hollow"].map(|selector| shown_in(&mut browser, grid, selector));
        assert_eq!(seen, [4, 1, hollow], "{grid}");
    }
    assert_eq!(shown_in(&mut browser, RANKING, "svg.figure .mark"), 3);
    assert_eq!(shown_in(&mut browser, RANKING, "svg.figure .mark.hollow"), 1);
    assert_eq!(shown_in(&mut browser, RANKING, ".legend .mark.hollow"), 1);
    let seen = browser.eval(
        "(([filled, hollow]) => [filled.fill === hollow.stroke, filled.fill === hollow.fill])(
            ['.mark:not(.hollow)', '.mark.hollow']
                .map((what) => getComputedStyle(document.querySelector(`svg.figure .h1 ${what}`))))",
    );
    assert_eq!(seen, serde_json::json!([true, false]));
}

#[test]
fn a_cliff_of_frames_and_uploads_by_size_are_drawn() {
    if !support::has(CHROMIUM) {
        return;
    }
    let home = Home::new();
    let framing =
        "[knobs.framing]\ntype = \"choice\"\ndefault = \"4\"\nvalues = [\"0\", \"4\"]\nabout = \"a way\"\n";
    home.server_of("cutter", r#"["frames", "upload"]"#, r#"["true", "{port}", "{framing}"]"#, framing);
    home.experiment("upload", r#"["cutter"]"#, 3, "[[grid]]\nsize = [\"1M\", \"4M\", \"16M\"]\n");
    rename(&home, "uploads");
    let grid = "[[grid]]\nframe_size = [1000, 1400, 1500]\nframing = [\"0\", \"4\"]\n";
    home.experiment("frames", r#"["cutter"]"#, 3, grid);
    home.write(
        "truth.toml",
        r#"
noise = { spread = 0.01 }
rule = [
    { point = { size = 4194304 }, better = 0.25 },
    { point = { size = 16777216 }, better = 0.0625 },
    { point = { framing = "4", frame_size = 1500 }, better = 0.2 },
]
"#,
    );
    home.run(["run", "e", "uploads", "--fake", "truth.toml", "--rounds", "4", "--seed", "5"]).code(0);
    let page = page(&home);
    let mut browser = Browser::start();
    let (frames, uploads) = ("frame_size against frames a second", "size against time per upload");
    let mut figures = vec![frames, "cutter: frames a second by frame_size and framing", COMPARISONS];
    figures.extend(EXPLAINING_STREAMS);
    figures.extend([uploads, COMPARISONS]);
    figures.extend(EXPLAINING_STREAMS);
    assert_sound(&mut browser, &page, &figures);
    let cliffs = [frames, uploads].map(|title| shown_in(&mut browser, title, "rect.cliff"));
    assert_eq!(cliffs, [1, 0]);
}

/// Not a test: makes a store with 10,000 observations, for measurements of `narrows report`.
/// `NARROWS_STORE=FILE cargo test -p narrows --test e2e -- --ignored ten_thousand`
#[test]
#[ignore = "writes a large store; for people"]
fn ten_thousand() {
    let Ok(path) = std::env::var("NARROWS_STORE") else { return };
    let home = Home::new();
    let systems = ["alpha", "beta", "gamma", "delta", "epsilon"];
    let large = MadeUp { systems: &systems, threads: 5, buffers: 10, rounds: 40, latencies: 400 };
    let store = large.store(&home, |plan| plan, |_| None);
    fs::copy(store, path).expect("the store is copied");
}

/// Not a test: makes the pictures in docs/pictures from the last run of a store. See `make pictures`.
/// `NARROWS_PICTURES=STORE:FOLDER cargo test -p narrows --test e2e -- --ignored pictures`
#[test]
#[ignore = "writes pictures; for people"]
fn pictures() {
    let Some(mut studio) = Studio::open("NARROWS_PICTURES") else { return };
    // The answer and the sweep that shows it, and on larger screens the comparisons.
    studio.picture("report", 1000, Some("#e0-f1"), false);
    studio.picture("report-dark", 1000, Some("#e0-f1"), true);
    studio.picture("report-phone", 360, Some("#e0-f0"), false);
}

/// Not a test: makes pictures of the whole page at every width, light and dark. As `pictures`, with `NARROWS_LOOK`.
#[test]
#[ignore = "writes pictures; for people"]
fn look() {
    let Some(mut studio) = Studio::open("NARROWS_LOOK") else { return };
    for width in WIDTHS {
        for dark in [false, true] {
            studio.picture(&format!("{width}-{}", if dark { "dark" } else { "light" }), width, None, dark);
        }
    }
}

/// A page, a browser and a folder for pictures.
struct Studio {
    folder: PathBuf,
    page: TempDir,
    browser: Browser,
}

impl Studio {
    /// Opens what the variable names as STORE:FOLDER. `None` if it is not set.
    fn open(variable: &str) -> Option<Self> {
        let wanted = std::env::var(variable).ok()?;
        let (store, folder) = wanted.split_once(':').expect("STORE:FOLDER");
        let (folder, page) = (PathBuf::from(folder), TempDir::new().expect("a temporary folder"));
        fs::create_dir_all(&folder).expect("a folder");
        let words = ["report", "last", "--format", "html", "--store", store, "-o"];
        support::run(support::narrows(words).arg(page.path().join("page.html"))).code(0);
        Some(Self { folder, page, browser: Browser::start() })
    }

    /// Makes a picture of the page down to the end of an element, or of the whole page.
    fn picture(&mut self, name: &str, width: u32, last: Option<&str>, dark: bool) {
        self.browser.open(&self.page.path().join("page.html"), width, dark);
        let height = last.map(|element| {
            let end =
                format!("Math.ceil(document.querySelector('{element}').getBoundingClientRect().bottom)");
            let end = self.browser.eval(&end).as_u64().expect("a height");
            u32::try_from(end).expect("a height in pixels")
        });
        let path = self.folder.join(format!("{name}.png"));
        fs::write(path, self.browser.screenshot(width, height)).expect("a picture");
    }
}
