//! A client with pools: reqwest. A pool is a `Client` that keeps `pool_size` idle connections.
//!
//! Contract: systems/shared/rust. reqwest has no cap on connections: it opens further ones if no idle one is free, so nobody
//! waits for the pool. It does not tell when a connection became a request's own.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use narrows_client::{Answer, Client, Failure, run};

struct Reqwest(reqwest::Client);

impl Client for Reqwest {
    fn start_pool(size: usize, timeout: Duration) -> Self {
        let builder = reqwest::Client::builder().pool_max_idle_per_host(size).timeout(timeout).no_proxy();
        Self(builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client without TLS"))
    }

    async fn get(&self, url: &str, id: &str) -> Result<Answer, Failure> {
        let answer = self.0.get(url).header("x-request-id", id).send().await.map_err(failure)?;
        let told =
            answer.headers().get("x-request-id").and_then(|told| told.to_str().ok()).map(str::to_owned);
        Ok((answer.status().as_u16(), told, answer.bytes().await.map_err(failure)?.to_vec()))
    }
}

fn failure(error: reqwest::Error) -> Failure {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let kind =
        causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind).last();
    let reason = format!("{error:?}");
    let class = match kind {
        _ if error.is_timeout() => {
            if error.is_connect() {
                "connect_timeout"
            } else {
                "request_timeout"
            }
        }
        Some(ErrorKind::ConnectionRefused) => "connect_refused",
        Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => "reset",
        Some(ErrorKind::UnexpectedEof) => "closed_early",
        _ if reason.contains("IncompleteMessage") || reason.contains("Canceled") => "closed_early",
        _ if reason.contains("Parse(") => "protocol",
        _ => "other",
    };
    Failure { class, reason }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run::<Reqwest>());
}
