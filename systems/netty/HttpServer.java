import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerExpectContinueHandler;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.File;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLException;

/**
 * A server for requests and uploads with Netty's HTTP codec, plain or over the JDK's TLS.
 *
 * <p>Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers
 * the count. Usage: HttpServer ADDRESS PORT CORES TLS CERT KEY (TLS is off, or anything else)
 */
final class HttpServer extends SimpleChannelInboundHandler<HttpObject> {
    private static final byte[] OK = "ok".getBytes(StandardCharsets.US_ASCII);
    private boolean upload;
    private long count;

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject part) {
        if (part instanceof HttpRequest request) {
            upload = request.uri().equals("/upload");
            count = 0;
        }
        if (part instanceof HttpContent content) {
            count += content.content().readableBytes();
        }
        if (part instanceof LastHttpContent) {
            byte[] body = upload ? Long.toString(count).getBytes(StandardCharsets.US_ASCII) : OK;
            ByteBuf content = Unpooled.wrappedBuffer(body);
            var answer = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, content);
            answer.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.length);
            context.write(answer);
        }
    }

    /** Requests that were read together are answered together. */
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
    }

    /** If a peer disconnects, only its own connection ends. */
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }

    private static SslContext secured(String cert, String key) throws SSLException {
        return SslContextBuilder.forServer(new File(cert), new File(key))
                .sslProvider(SslProvider.JDK)
                .protocols("TLSv1.3", "TLSv1.2")
                .build();
    }

    public static void main(String[] words) throws InterruptedException, SSLException {
        SslContext tls = words[3].equals("off") ? null : secured(words[4], words[5]);
        Listener.serve(Listener.address(words[0], words[1]), Integer.parseInt(words[2]), new ServerBootstrap(), new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                if (tls != null) {
                    channel.pipeline().addLast(tls.newHandler(channel.alloc()));
                }
                channel.pipeline().addLast(
                        new HttpServerCodec(), new HttpServerKeepAliveHandler(), new HttpServerExpectContinueHandler(), new HttpServer());
            }
        });
    }
}
