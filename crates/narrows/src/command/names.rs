//! Short names for arms, from what differs between them.
//!
//! An arm is called by its program, or by the script that a runner runs. Where that does not tell arms apart, or where the
//! commands differ in one word only, the names are the words that differ: `gunicorn -k sync app:a` beside
//! `gunicorn -k gthread app:a` is `sync` beside `gthread`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::arms::{is_url, split_path};

/// Programs whose first argument says what runs.
const RUNNERS: [&str; 18] = [
    "python", "python3", "pypy3", "node", "ruby", "java", "sh", "bash", "go", "npx", "uv", "deno", "bun",
    "php", "perl", "erl", "elixir", "env",
];

/// Options of `java` whose value is no name.
const CLASSPATH: [&str; 5] = ["-cp", "-classpath", "--class-path", "-p", "--module-path"];

/// No longer part of a command is a name.
const LONGEST: usize = 32;

/// A name for each arm, which is a URL or the words of a command, in order. All differ from each other and from `taken`.
pub fn names(arms: &[Vec<String>], taken: &[String]) -> Vec<String> {
    let own: Vec<Vec<String>> = arms.iter().map(|arm| parts(arm)).collect();
    let one_word = own.len() > 1 && differing(&own).len() == 1;
    let usual: Vec<String> = own.iter().map(|words| plain(&usual(words))).collect();
    let found = if one_word {
        told_apart(&own, &usual)
    } else {
        // Each name with what tells apart those that share it.
        let mut groups: BTreeMap<&String, Vec<Vec<String>>> = BTreeMap::new();
        for (words, name) in own.iter().zip(&usual) {
            groups.entry(name).or_default().push(words.clone());
        }
        let apart = |(name, group): (_, Vec<Vec<String>>)| {
            let names = vec![String::clone(name); group.len()];
            (name, if group.len() > 1 { told_apart(&group, &names) } else { names }.into_iter())
        };
        let mut apart: BTreeMap<&String, std::vec::IntoIter<String>> =
            groups.into_iter().map(apart).collect();
        usual.iter().filter_map(|name| apart.get_mut(name)?.next()).collect()
    };
    let mut taken = Taken::new(taken);
    found.iter().map(|name| taken.unique(name)).collect()
}

/// The words of an arm. What a shell gets is split, and a URL is divided.
fn parts(arm: &[String]) -> Vec<String> {
    match arm {
        [url] if is_url(url) => {
            let (address, path) = split_path(url);
            let address = address.split_once("://").map_or(address, |(_, address)| address);
            let (host, port) = address.rsplit_once(':').unwrap_or((address, "80"));
            [format!("port-{port}"), host.to_owned(), path.to_owned()].into()
        }
        [shell, option, script] if shell == "sh" && option == "-c" => {
            shlex::split(script).unwrap_or_else(|| arm.to_vec())
        }
        _ => arm.to_vec(),
    }
}

/// The positions at which commands of equal length differ. All positions if their lengths differ.
fn differing(arms: &[Vec<String>]) -> Vec<usize> {
    let length = arms.iter().map(Vec::len).max().unwrap_or(0);
    let equal = arms.iter().all(|arm| arm.len() == length);
    let differs = |at: &usize| arms.windows(2).any(|pair| matches!(pair, [a, b] if a.get(*at) != b.get(*at)));
    (0..length).filter(|at| !equal || differs(at)).collect()
}

/// A name of the words that differ. Arms that they do not tell apart keep the name that they have.
fn told_apart(arms: &[Vec<String>], usual: &[String]) -> Vec<String> {
    let at = differing(arms);
    let length = arms.iter().map(Vec::len).max().unwrap_or(0);
    if at.len() < length {
        // One position that says it all: words rather than numbers.
        let by = |position: usize| words_at(arms, position, usual);
        let whole = |names: &Vec<String>| are_names(names);
        let numeric =
            |names: &Vec<String>| names.iter().any(|name| name.ends_with(|c: char| c.is_ascii_digit()));
        let mut single: Vec<Vec<String>> = at.iter().map(|position| by(*position)).filter(whole).collect();
        single.sort_by_key(numeric);
        if let Some(names) = single.into_iter().next() {
            return names;
        }
        let mut joined = vec![String::new(); arms.len()];
        for words in at.iter().map(|position| by(*position)) {
            for (name, word) in joined.iter_mut().zip(words) {
                *name = if name.is_empty() { word } else { format!("{name}-{word}") };
            }
        }
        return if are_names(&joined) { joined } else { usual.to_vec() };
    }
    // The words that the others lack.
    let mut having: HashMap<&String, usize> = HashMap::new();
    for arm in arms {
        let words: BTreeSet<&String> = arm.iter().collect();
        words.into_iter().for_each(|word| *having.entry(word).or_default() += 1);
    }
    let lacking = |word: &String| having.get(word).is_some_and(|count| *count < arms.len());
    let named = |word_alone: bool| -> Vec<String> {
        let named = arms.iter().zip(usual).map(|(arm, usual)| {
            let own = (0..arm.len()).filter(|at| arm.get(*at).is_some_and(&lacking));
            let own: Vec<usize> = own.collect();
            let says_it_all = |at: &&usize| word_alone && arm.get(**at).is_some_and(|word| is_word(word));
            if let Some(at) = own.iter().find(says_it_all) {
                return word_name(arm, *at, usual);
            }
            let own: Vec<String> = own.iter().map(|at| word_name(arm, *at, usual)).collect();
            if own.is_empty() { usual.clone() } else { own.join("-") }
        });
        named.collect()
    };
    let mut named = [named(true), named(false)].into_iter();
    named.find(|names| are_names(names)).unwrap_or_else(|| usual.to_vec())
}

/// Whether this is neither an option nor a number.
fn is_word(word: &str) -> bool {
    word.trim_start_matches(['.', '/']).starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Whether these tell all arms apart, and are short.
fn are_names(names: &[String]) -> bool {
    let different: BTreeSet<&String> = names.iter().collect();
    different.len() == names.len() && names.iter().all(|name| !name.is_empty() && name.len() <= LONGEST)
}

/// The words of all arms at a position as names, without what all of them begin with: an option or a folder.
fn words_at(arms: &[Vec<String>], at: usize, usual: &[String]) -> Vec<String> {
    let words: Vec<&str> = arms.iter().map(|arm| arm.get(at).map_or("", String::as_str)).collect();
    // Code is no name.
    if words.iter().any(|word| word.contains(char::is_whitespace)) {
        return vec![String::new(); words.len()];
    }
    let common = common_start(&words);
    let rests: Vec<&str> = words.iter().map(|word| word.get(common..).unwrap_or("")).collect();
    let tells = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    if common > 0 && rests.iter().all(tells) {
        return rests.into_iter().map(plain).collect();
    }
    arms.iter().zip(usual).map(|(arm, usual)| word_name(arm, at, usual)).collect()
}

/// How many bytes of options or of folders words have in common at their start.
fn common_start(words: &[&str]) -> usize {
    let [first, rest @ ..] = words else { return 0 };
    let alike = |word: &&str| first.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
    let common = first.get(..rest.iter().map(alike).min().unwrap_or(0)).unwrap_or("");
    let ends: &[char] = if first.starts_with('-') { &['=', ':', '+', '-', '/'] } else { &['/'] };
    common.rfind(ends).map_or(0, |at| at + 1)
}

/// A word as a name. A number has what it is for in front: the option before it, or else the program.
fn word_name(arm: &[String], at: usize, usual: &str) -> String {
    let word = plain(arm.get(at).map_or("", String::as_str).trim_start_matches("./"));
    let number = word.starts_with(|c: char| c.is_ascii_digit()) && word.matches('.').count() < 2;
    let option =
        at.checked_sub(1).and_then(|before| arm.get(before)).filter(|before| before.starts_with('-'));
    match option {
        Some(option) if number => format!("{}-{word}", plain(option)),
        None if number => format!("{usual}-{word}"),
        _ => word,
    }
}

/// A short name for a command: the program's, or that of the script that it runs.
fn usual(words: &[String]) -> String {
    let assigns = |word: &&String| word.contains('=') && !word.starts_with('-');
    let words = words.get(words.iter().take_while(assigns).count()..).unwrap_or_default();
    let program = words.first().map_or("", String::as_str);
    let base = |word: &str| Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The class that `java -cp PATH Class` runs needs no dot. A classpath is no name.
    let of_java = base(program) == "java";
    let is_path =
        |at: usize| at > 0 && words.get(at - 1).is_some_and(|word| CLASSPATH.contains(&word.as_str()));
    let is_script = |(at, word): &(usize, &String)| {
        !word.starts_with('-')
            && !word.contains(['=', ' '])
            && word.contains(|c: char| c.is_ascii_alphanumeric())
            && if of_java { !is_path(*at) } else { word.contains(['.', '/']) }
    };
    let script = words.iter().enumerate().skip(1).find(is_script).map(|(_, word)| word);
    match script.filter(|word| RUNNERS.contains(&base(program).as_str()) && !word.contains('{')) {
        Some(script) if script.starts_with('/') => base(script),
        Some(script) => script.trim_start_matches("./").to_owned(),
        None if program.starts_with('/') => base(program),
        None => program.trim_start_matches("./").to_owned(),
    }
}

/// The name with only the characters that names of systems may have.
pub fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_start_matches(['.', '-']).trim_end_matches('-');
    if name.is_empty() { "arm".to_owned() } else { name.to_owned() }
}

/// The names that are taken.
pub struct Taken {
    names: HashSet<String>,
    /// The last number that stands behind a name.
    numbers: HashMap<String, u32>,
}

impl Taken {
    /// These are taken.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.iter().cloned().collect(), numbers: HashMap::new() }
    }

    /// The name, with a number behind it if it is taken.
    pub fn unique(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let number = self.numbers.entry(free.clone()).or_insert(1);
        while !self.names.insert(free.clone()) {
            *number += 1;
            free = format!("{name}-{number}");
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(commands: &[&str]) -> Vec<String> {
        let words = |text: &&str| match is_url(text) {
            true => vec![(*text).to_owned()],
            false => shlex::split(text).expect("words"),
        };
        names(&commands.iter().map(words).collect::<Vec<_>>(), &["http1".to_owned()])
    }

    #[test]
    fn arms_are_called_by_their_programs_or_by_what_differs() {
        for (commands, expected) in [
            (&["./server --port {port}"][..], &["server"][..]),
            (&["python3 -m http.server {port}"], &["http.server"]),
            (&["./http1 {port}"], &["http1-2"]),
            (&["/usr/sbin/nginx -p .", "node dist/main.js"], &["nginx", "dist-main.js"]),
            (&["python3 app.py {port}", "node app.js {port}"], &["app.py", "app.js"]),
            (&["./main {port}", "./branch {port}"], &["main", "branch"]),
            (&["./old/server {port}", "./new/server {port}"], &["old-server", "new-server"]),
            (&["/srv/old/server {port}", "/srv/new/server {port}"], &["old-server", "new-server"]),
            (&["/a/server -x {port}", "/b/server -y {port}"], &["a-server", "b-server"]),
            (&["python3 app.py {port}", "pypy3 app.py {port}"], &["python3", "pypy3"]),
            (&["gunicorn -k sync app:a", "gunicorn -k gthread app:a"], &["sync", "gthread"]),
            (&["gunicorn -w 1 -k sync a:a", "gunicorn -w 4 -k gthread a:a"], &["sync", "gthread"]),
            (&["./a.out --lib a.Und {port}", "./a.out --lib b.Jav {port}"], &["a.Und", "b.Jav"]),
            (&["uvicorn -w 2 app:a", "uvicorn -w 4 app:a", "hypercorn app:a"], &["w-2", "w-4", "hypercorn"]),
            (&["server --workers=2", "server --workers=16"], &["workers-2", "workers-16"]),
            (&["java -XX:+UseG1GC -jar a.jar", "java -XX:+UseZGC -jar a.jar"], &["UseG1GC", "UseZGC"]),
            (&["./server {port}", "./server {port} --fast"], &["server", "fast"]),
            (&["./server 2 {port}", "./server 4 {port}"], &["server-2", "server-4"]),
            (&["env GOGC=50 ./server", "env GOGC=off ./server"], &["GOGC-50", "GOGC-off"]),
            (&["sh -c 'FOO=1 exec ./a {port}'", "sh -c 'FOO=2 exec ./a {port}'"], &["FOO-1", "FOO-2"]),
            (&["sh -c 'cd x && node a.js'", "sh -c 'cd y && node a.js'"], &["x", "y"]),
            (
                &["python3 -c 'import a; a.run()'", "python3 -c 'import b; b.run()'"],
                &["python3", "python3-2"],
            ),
            (&["./server {port}", "./server {port}"], &["server", "server-2"]),
            (&["http://127.0.0.1:80", "http://127.0.0.1:8080"], &["port-80", "port-8080"]),
            (&["http://127.0.0.1:80/a", "http://127.0.0.2:80/a"], &["127.0.0.1", "127.0.0.2"]),
            (&["http://h:80", "./server {port}"], &["port-80", "server"]),
            (&["php -S 127.0.0.1:{port} a.php", "php -S 127.0.0.1:{port} b.php"], &["a.php", "b.php"]),
            (&["go run . {port}"], &["go"]),
            (&["go run ./old {port}", "go run ./new {port}"], &["old", "new"]),
            (
                &[
                    "java -cp a/b/app.jar:a/b/lib/* Hello {port}",
                    "java -cp u/b/app.jar:u/b/lib/* Server {port}",
                ],
                &["Hello", "Server"],
            ),
            (&["java -cp a/b.jar:a/lib/* Hello {port}"], &["Hello"]),
            (
                &["gunicorn -k sync -b h:{port} a:a", "gunicorn -k gthread --threads 4 -b h:{port} a:a"],
                &["sync", "gthread"],
            ),
            (&["./s --cache 64K -t 1", "./s --cache 1M -t 2"], &["cache-64K", "cache-1M"]),
        ] {
            assert_eq!(named(commands), expected, "{commands:?}");
        }
    }

    #[test]
    fn names_have_only_characters_that_names_of_systems_may_have() {
        for (commands, expected) in [
            (["./größe {port}", "./ok"], ["gr--e", "ok"]),
            (["./s 'a/ü'", "./s 'a/ö'"], ["s", "s-2"]),
            (["", "--"], ["arm", "arm-2"]),
        ] {
            assert_eq!(named(&commands), expected, "{commands:?}");
        }
    }

    #[test]
    fn names_take_as_long_as_there_are_arms() {
        let arms: [fn(usize) -> String; 3] = [
            |_| "./s {port}".to_owned(),
            |at| format!("./s {{port}} w{at}"),
            |at| format!("./s{at} -w {at} {}", "x ".repeat(at % 3)),
        ];
        for arm in arms {
            cost::is_near_linear(100, |count| {
                let arms: Vec<Vec<String>> =
                    (0..count).map(|at| arm(at).split(' ').map(str::to_owned).collect()).collect();
                move || assert_eq!(names(&arms, &[]).len(), count)
            });
        }
    }
}
