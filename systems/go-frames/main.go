// A receiver of frames in Go: bufio.Reader reads the stream.
//
// Contract: reads frames (4-byte big-endian length, then the payload) until the sender half-closes, answers one frame
// with the number of frames and of payload bytes, and closes. A goroutine per connection. Every frame is read completely into
// one buffer, which the connection's next frame reuses.
//
// usage: program ADDRESS PORT BUFFER
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

func receive(connection net.Conn, buffer int) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, buffer)
	var frames, bytes uint64
	var prefix [4]byte
	var frame []byte
	for {
		if _, err := io.ReadFull(reader, prefix[:]); err != nil {
			break
		}
		length := int(binary.BigEndian.Uint32(prefix[:]))
		if length > cap(frame) {
			frame = make([]byte, length)
		}
		if _, err := io.ReadFull(reader, frame[:length]); err != nil {
			break // cut short by the half-close: not counted
		}
		frames++
		bytes += uint64(length)
	}
	var answer [20]byte
	binary.BigEndian.PutUint32(answer[:], 16)
	binary.BigEndian.PutUint64(answer[4:], frames)
	binary.BigEndian.PutUint64(answer[12:], bytes)
	connection.Write(answer[:])
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: program ADDRESS PORT BUFFER")
	}
	buffer, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		fail(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no files are left, or a similar error
			continue
		}
		go receive(connection, buffer)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
