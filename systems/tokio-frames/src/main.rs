//! A receiver of frames on tokio's single-threaded runtime: `LengthDelimitedCodec` splits the stream.
//!
//! Contract: reads frames (4-byte big-endian length, then the payload) until the sender half-closes, answers one frame
//! with the number of frames and of payload bytes, and closes. A task per connection; every frame becomes one buffer.
//!
//! usage: program ADDRESS PORT BUFFER

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};

async fn receive(stream: TcpStream, buffer: usize) -> std::io::Result<()> {
    // By default the codec refuses frames of more than 8 MB.
    let codec = LengthDelimitedCodec::builder()
        .length_field_length(4)
        .max_frame_length(u32::MAX as usize)
        .new_codec();
    let mut frames = FramedRead::with_capacity(stream, codec, buffer);
    let (mut count, mut bytes) = (0_u64, 0_u64);
    while let Some(frame) = frames.next().await {
        match frame {
            Ok(frame) => {
                count += 1;
                bytes += frame.len() as u64;
            }
            // A frame that the half-close cut short is not counted, and the stream ends.
            Err(_) => break,
        }
    }
    let mut answer = [0, 0, 0, 16].to_vec();
    answer.extend(count.to_be_bytes());
    answer.extend(bytes.to_be_bytes());
    frames.get_mut().write_all(&answer).await
}

async fn serve(address: SocketAddr, buffer: usize) -> std::io::Result<Infallible> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(4096)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(receive(stream, buffer))),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await, // no files are left, or a similar error
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, buffer] = &words[..] else { return Err("usage: program ADDRESS PORT BUFFER".into()) };
    let address = SocketAddr::new(address.parse::<IpAddr>()?, port.parse()?);
    let buffer = buffer.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(serve(address, buffer)) {
        Ok(never) => match never {},
        Err(error) => Err(format!("cannot serve on port {port}: {error}").into()),
    }
}
