//! Reads the output of the tools.

use std::path::Path;

use serde_json::Value;

use super::peer::CLOSED;

/// The bytes and seconds that the tool reports.
pub fn told(tool: &str, output: &str) -> Option<(f64, f64)> {
    match tool {
        "narrows" => {
            let json: Value = serde_json::from_str(output).ok()?;
            Some((json["bytes_sent"].as_f64()?, json["elapsed_s"].as_f64()?))
        }
        "iperf3" => {
            let json: Value = serde_json::from_str(output).ok()?;
            let received = &json["end"]["sum_received"];
            Some((received["bytes"].as_f64()?, received["seconds"].as_f64()?))
        }
        _ => {
            let (bytes, seconds) = output.trim().split_once([' ', ':'])?;
            Some((bytes.parse().ok()?, seconds.parse().ok()?))
        }
    }
}

/// The processor time that Narrows needed from when its window opened until it closed.
pub fn cpu_in_window(output: &str) -> Option<f64> {
    serde_json::from_str::<Value>(output).ok()?["generator"]["cpu_s"].as_f64()
}

/// The number of calls in the last line of `strace -c`: share, seconds, per call, calls, errors, "total".
pub fn strace_total(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().rev().find(|line| line.ends_with("total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// Errors that a tool reports although it exits successfully.
pub fn complaint(tool: &str, output: &str) -> Option<String> {
    let line =
        |mark: &str| output.lines().find(|line| line.contains(mark)).map(|line| line.trim().to_owned());
    match tool {
        "narrows" | CLOSED => {
            let json: Value = serde_json::from_str(output).ok()?;
            let errors = json["errors"].as_object()?;
            (!errors.is_empty()).then(|| json["errors"].to_string())
        }
        "wrk" | "wrk2" | "zrk" => line("Socket errors:").or_else(|| line("Non-2xx")),
        "h2load" => line("requests:").filter(|line| !line.contains(" 0 failed, 0 errored, 0 timeout")),
        "ab" => line("Failed requests:").filter(|line| !line.ends_with(" 0")),
        "aiperf" => line("Error Request Count").or_else(|| line("ERROR")),
        "hey" => line("Error distribution").map(|_| "errors".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_tools_report() {
        assert_eq!(told("send-loop", "1000 0.5\n"), Some((1000.0, 0.5)));
        assert_eq!(told("curl", "1000:0.5"), Some((1000.0, 0.5)));
        assert_eq!(told("narrows", r#"{"bytes_sent": 7, "elapsed_s": 2.0}"#), Some((7.0, 2.0)));
        let iperf3 = r#"{"end": {"sum_received": {"bytes": 9, "seconds": 3}}}"#;
        assert_eq!(told("iperf3", iperf3), Some((9.0, 3.0)));
        assert_eq!(told("curl", "no such host"), None);
    }

    #[test]
    fn reads_complaints_and_only_those() {
        assert_eq!(complaint("narrows", r#"{"errors": {}}"#), None);
        assert!(complaint("narrows", r#"{"errors": {"reset": 2}}"#).unwrap().contains("reset"));
        let wrk = "  Socket errors: connect 0, read 9, write 0, timeout 0\n";
        assert!(complaint("wrk", wrk).unwrap().contains("read 9"));
        let fine = "requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, 0 errored, 0 timeout";
        assert_eq!(complaint("h2load", fine), None);
    }
}
