// A server for requests with Boost.Asio, on one io_context and one thread. Shows the cost of an event loop with a heap-allocated
// session per connection.
//
// Contract: reads each request up to its blank line (in any pieces, also several requests at once) and answers "ok"; keeps
// the connection unless the request says Connection: close. Requests have no body.
#include <array>
#include <boost/asio.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <strings.h>
#include <string>
#include <string_view>

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t longest_head = 64 * 1024;

// Whether the head (request line and headers) has a line "Connection: close".
bool asks_to_close(std::string_view head) {
    constexpr std::string_view name = "\r\nconnection:";
    for (std::size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
        std::string_view value = head.substr(at);
        if (value.size() < name.size() || strncasecmp(value.data(), name.data(), name.size()) != 0) continue;
        value.remove_prefix(name.size());
        value = value.substr(0, value.find("\r\n"));
        value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
        return value.size() >= 5 && strncasecmp(value.data(), "close", 5) == 0;
    }
    return false;
}

class Session : public std::enable_shared_from_this<Session> {
public:
    explicit Session(tcp::socket socket) : socket_(std::move(socket)) {}

    void read() {
        socket_.async_read_some(boost::asio::buffer(chunk_), [self = shared_from_this()](error_code error, std::size_t size) {
            if (error) return;
            self->received_.append(self->chunk_.data(), size);
            self->answer();
        });
    }

private:
    // Answers all requests that have arrived completely, in one write.
    void answer() {
        std::size_t start = 0;
        for (std::size_t end; !closing_ && (end = received_.find("\r\n\r\n", start)) != received_.npos; start = end + 4) {
            closing_ = asks_to_close(std::string_view(received_).substr(start, end + 2 - start));
            answers_ += closing_ ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
                                 : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        }
        received_.erase(0, start);
        if (answers_.empty()) {
            if (received_.size() < longest_head) read();
            return;
        }
        boost::asio::async_write(socket_, boost::asio::buffer(answers_), [self = shared_from_this()](error_code error, std::size_t) {
            if (error) return;
            self->answers_.clear();
            if (!self->closing_) return self->read();
            self->socket_.shutdown(tcp::socket::shutdown_both, error);
        });
    }

    tcp::socket socket_;
    std::array<char, 1024> chunk_;
    std::string received_, answers_;
    bool closing_ = false;
};

class Listener {
public:
    Listener(boost::asio::io_context& context, const char* address, unsigned short port)
        : acceptor_(context), retry_(context) {
        tcp::endpoint endpoint(boost::asio::ip::make_address(address), port);
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(endpoint);
        acceptor_.listen(4096);
        accept();
    }

private:
    void accept() {
        acceptor_.async_accept([this](error_code error, tcp::socket socket) {
            if (!error) {
                std::make_shared<Session>(std::move(socket))->read();
                return accept();
            }
            // No files are left, or a similar error: try again later.
            retry_.expires_after(std::chrono::milliseconds(10));
            retry_.async_wait([this](error_code) { accept(); });
        });
    }

    tcp::acceptor acceptor_;
    boost::asio::steady_timer retry_;
};

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: server ADDRESS PORT\n";
        return 1;
    }
    try {
        boost::asio::io_context context(1);
        Listener listener(context, argv[1], static_cast<unsigned short>(std::atoi(argv[2])));
        context.run();
    } catch (const std::exception& error) {
        std::cerr << "cannot serve on port " << argv[2] << " of " << argv[1] << ": " << error.what() << '\n';
        return 1;
    }
}
