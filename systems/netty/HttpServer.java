import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
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
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolConfig.Protocol;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectedListenerFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectorFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.File;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLException;

/**
 * A server for requests and uploads with Netty's codecs of HTTP/1.1 and HTTP/2, plain or over the JDK's TLS.
 *
 * <p>Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers
 * the count. Usage: HttpServer ADDRESS PORT CORES TLS CERT KEY HTTP (TLS is off, or anything else; HTTP is 1.1 or 2)
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

    private static SslContext secured(String cert, String key, boolean http2) throws SSLException {
        SslContextBuilder builder = SslContextBuilder.forServer(new File(cert), new File(key))
                .sslProvider(SslProvider.JDK)
                .protocols("TLSv1.3", "TLSv1.2");
        if (http2) {
            // These are the only behaviours that the JDK's TLS supports.
            builder.applicationProtocolConfig(new ApplicationProtocolConfig(
                    Protocol.ALPN,
                    SelectorFailureBehavior.NO_ADVERTISE,
                    SelectedListenerFailureBehavior.ACCEPT,
                    ApplicationProtocolNames.HTTP_2));
        }
        return builder.build();
    }

    /** Each stream is a channel of its own, whose messages are those of HTTP/1.1. */
    private static void speakHttp2(Channel connection) {
        var streams = new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel stream) {
                stream.pipeline().addLast(
                        new Http2StreamFrameToHttpObjectCodec(true), new HttpServerExpectContinueHandler(), new HttpServer());
            }
        };
        connection.pipeline().addLast(Http2FrameCodecBuilder.forServer().build(), new Http2MultiplexHandler(streams));
    }

    public static void main(String[] words) throws InterruptedException, SSLException {
        boolean http2 = words[6].equals("2");
        SslContext tls = words[3].equals("off") ? null : secured(words[4], words[5], http2);
        Listener.serve(Listener.address(words[0], words[1]), Integer.parseInt(words[2]), new ServerBootstrap(), new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                if (tls != null) {
                    channel.pipeline().addLast(tls.newHandler(channel.alloc()));
                }
                if (http2) {
                    speakHttp2(channel);
                    return;
                }
                channel.pipeline().addLast(
                        new HttpServerCodec(), new HttpServerKeepAliveHandler(), new HttpServerExpectContinueHandler(), new HttpServer());
            }
        });
    }
}
