import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;

/**
 * A receiver of frames: Netty's LengthFieldBasedFrameDecoder splits the stream.
 *
 * <p>Contract: reads frames (4-byte big-endian length, then the payload) until the sender half-closes, answers one frame with the
 * number of frames and of payload bytes, and closes. Usage: FrameReceiver ADDRESS PORT CORES BUFFER
 */
final class FrameReceiver extends SimpleChannelInboundHandler<ByteBuf> {
    private long frames;
    private long bytes;

    @Override
    protected void channelRead0(ChannelHandlerContext context, ByteBuf frame) {
        frames++;
        bytes += frame.readableBytes();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof ChannelInputShutdownEvent) {
            ByteBuf answer = context.alloc().buffer(20).writeInt(16).writeLong(frames).writeLong(bytes);
            context.writeAndFlush(answer).addListener(ChannelFutureListener.CLOSE);
        }
    }

    /** If a peer disconnects, only its own connection ends. */
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }

    public static void main(String[] words) throws InterruptedException {
        int buffer = Integer.parseInt(words[3]);
        var server = new ServerBootstrap()
                .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
                .childOption(ChannelOption.RECVBUF_ALLOCATOR,
                        new AdaptiveRecvByteBufAllocator(Math.min(64, buffer), Math.min(2048, buffer), buffer));
        Listener.serve(Listener.address(words[0], words[1]), Integer.parseInt(words[2]), server, new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                channel.pipeline().addLast(new LengthFieldBasedFrameDecoder(Integer.MAX_VALUE, 0, 4, 0, 4), new FrameReceiver());
            }
        });
    }
}
