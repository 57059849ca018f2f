import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import java.net.InetSocketAddress;

/** The common part of the Netty systems: one group of NIO event loops that accepts and serves connections. */
final class Listener {
    private Listener() {}

    /** The address and the port in these words. */
    static InetSocketAddress address(String address, String port) {
        return new InetSocketAddress(address, Integer.parseInt(port));
    }

    /** Listens there, with one event loop per core of the system. */
    static void serve(InetSocketAddress address, int cores, ServerBootstrap server, ChannelInitializer<SocketChannel> connections)
            throws InterruptedException {
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(cores, NioIoHandler.newFactory());
        ChannelFuture bound = server.group(group)
                .channel(NioServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 4096)
                .childHandler(connections)
                .bind(address)
                .await();
        if (!bound.isSuccess()) {
            System.err.println("cannot listen on " + address + ": " + bound.cause());
            System.exit(1);
        }
    }
}
