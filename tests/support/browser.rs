//! A headless Chromium, driven by the DevTools protocol over a pair of pipes. It needs no port and no other crate.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PATIENCE, until};

/// The program that Debian's package `chromium` installs.
pub const CHROMIUM: &str = "chromium";

/// The protocol uses the descriptors 3 and 4. The shell redirects standard input and output to them.
const START: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// The messages that were not answers.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let profile = TempDir::new().expect("a temporary folder");
        let mut child = Command::new("sh")
            .args(["-c", START, CHROMIUM, "--headless", "--remote-debugging-pipe"])
            // The sandbox cannot start if tests run as root in a container.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-extensions", "--disable-background-networking", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("its standard input");
        let from = messages(child.stdout.take().expect("its standard output"));
        let mut browser =
            Self { child, to, from, sent: 0, session: None, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let wanted = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", wanted);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and waits for the answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let said = self.next(method);
            if said["id"] == self.sent {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].clone();
            }
            self.events.push(said);
        }
    }

    fn next(&self, waiting: &str) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{waiting}: the browser is silent: {e}"))
    }

    /// Opens a file at this width, light or dark, and waits until it has loaded.
    pub fn open(&mut self, file: &Path, width: u32, dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.shade(dark);
        self.events.clear();
        let url = format!("file://{}", file.display());
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{answer}");
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let said = self.next("the page's load");
            self.events.push(said);
        }
    }

    /// Switches the open page to light or dark.
    pub fn shade(&mut self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Evaluates an expression in the page. Waits for a promise.
    pub fn eval(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Scrolls the element into view and clicks its middle with the left button.
    pub fn click(&mut self, selector: &str) {
        let middle = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }});
               const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let (x, y) = (&middle[0], &middle[1]);
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key with this name in the DOM, such as `Enter` or `Tab`. `text` is what it types.
    pub fn press(&mut self, key: &str, text: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            " " => 32,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text letter by letter.
    pub fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(&letter.to_string(), &letter.to_string());
        }
    }

    /// The errors of the page since it was opened, and its requests for other resources.
    pub fn complaints(&mut self) -> Vec<Value> {
        self.eval("0"); // pending events arrive before this answer
        let bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                matches!(event["params"]["type"].as_str(), Some("error" | "warning" | "assert"))
            }
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "verbose",
            Some("Page.javascriptDialogOpening") => true,
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                event["params"]["type"] != "Document" && !url.starts_with("data:")
            }
            _ => false,
        };
        self.events.iter().filter(bad).cloned().collect()
    }

    /// A PNG of the page from its top, `height` pixels high or whole.
    pub fn screenshot(&mut self, width: u32, height: Option<u32>) -> Vec<u8> {
        let whole = self.eval("document.documentElement.scrollHeight").as_u64().unwrap_or(900);
        let height = height.map_or(whole, u64::from).min(whole).min(16_000);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wanted = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.call("Page.captureScreenshot", wanted);
        BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This command makes it also end its helper processes.
        let close = format!("{}\0", json!({ "id": 0, "method": "Browser.close" }));
        let asked = self.to.write_all(close.as_bytes()).is_ok();
        let mut patience = if asked { 500 } else { 0 };
        while patience > 0 && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            patience -= 1;
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its folder is removed next, so wait until no process writes to it any more.
        until(|| self.from.try_recv().is_err());
    }
}

/// Reads JSON objects, each terminated by a zero byte.
fn messages(pipe: impl std::io::Read + Send + 'static) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for bytes in BufReader::new(pipe).split(0).map_while(Result::ok) {
            let Ok(message) = serde_json::from_slice(&bytes) else { break };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}
