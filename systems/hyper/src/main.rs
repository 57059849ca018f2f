//! A server for requests and uploads with hyper, on tokio's single-threaded runtime.
//!
//! Contract: `GET /` answers "ok"; `POST /upload` counts the bytes of the body as they arrive, keeps none of them, and
//! answers the count.
//!
//! usage: program PORT PIPELINE_FLUSH

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;

async fn answer(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let mut count = 0;
    while let Some(frame) = request.body_mut().frame().await {
        count += frame?.data_ref().map_or(0, Bytes::len);
    }
    let body = if request.uri().path() == "/upload" {
        Bytes::from(count.to_string())
    } else {
        Bytes::from_static(b"ok")
    };
    Ok(Response::new(Full::new(body)))
}

async fn serve(port: u16, pipeline_flush: bool) -> std::io::Result<Infallible> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let listener = socket.listen(4096)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await; // no files are left, or a similar error
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.pipeline_flush(pipeline_flush);
            // If a peer disconnects, only its own connection ends.
            let _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, pipeline_flush] = &words[..] else { return Err("usage: program PORT PIPELINE_FLUSH".into()) };
    let (port, pipeline_flush) = (port.parse()?, pipeline_flush.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(serve(port, pipeline_flush)) {
        Ok(never) => match never {},
        Err(error) => Err(format!("cannot serve on port {port}: {error}").into()),
    }
}
