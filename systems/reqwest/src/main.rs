//! A client with pools: reqwest. A pool is a `Client` that keeps `pool_size` idle connections.
//!
//! Contract: systems/shared/rust. reqwest has no cap on connections: it opens further ones if no idle one is free, so nobody
//! waits for the pool. It does not tell when a connection became a request's own: if the time is over before there is an answer,
//! the error is the same whether the request was sent or its connection was still being made.

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
        let answer = self
            .0
            .get(url)
            .header("x-request-id", id)
            .send()
            .await
            .map_err(|error| failure(error, "timeout"))?;
        let told =
            answer.headers().get("x-request-id").and_then(|told| told.to_str().ok()).map(str::to_owned);
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map_err(|error| failure(error, "request_timeout"))?;
        Ok((status, told, body.to_vec()))
    }
}

fn failure(error: reqwest::Error, timeout: &'static str) -> Failure {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let kind =
        causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind).last();
    let reason = format!("{error:?}");
    let class = match kind {
        _ if error.is_timeout() => {
            if error.is_connect() {
                "connect_timeout"
            } else {
                timeout
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
