%% A receiver of frames on gen_tcp. Either the runtime splits the stream into frames ({packet,4}), or Erlang code does
%% ({packet,0}). Every frame becomes one binary.
%%
%% Contract: reads frames (4-byte big-endian length, then the payload) until the sender half-closes, answers one frame
%% with the number of frames and of payload bytes, and closes. A process per connection.
-module(packet_server).
-export([main/1]).

main([AddressArg, PortArg, FramingArg, ActiveArg, BufferArg]) ->
    {ok, Ip} = inet:parse_address(AddressArg),
    Port = list_to_integer(PortArg),
    Framing = list_to_integer(FramingArg),
    Active = case ActiveArg of
                 "once" -> once;
                 "true" -> true;
                 N -> list_to_integer(N)
             end,
    ok = os:set_signal(sigterm, default),
    Options = [inet6 || tuple_size(Ip) =:= 8] ++
              [binary, {packet, Framing}, {active, false}, {exit_on_close, false}, {ip, Ip},
               {reuseaddr, true}, {backlog, 4096}, {buffer, list_to_integer(BufferArg)}],
    spawn(fun() -> listen(Port, Options, Framing, Active) end).

%% Runs in its own process, because a socket closes when its owner ends.
listen(Port, Options, Framing, Active) ->
    case gen_tcp:listen(Port, Options) of
        {ok, Listener} -> accept(Listener, Framing, Active);
        {error, Reason} ->
            io:format(standard_error, "cannot listen on port ~b: ~0p~n", [Port, Reason]),
            halt(1)
    end.

accept(Listener, Framing, Active) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> receive start -> receive_frames(Socket, Framing, Active) end end),
            ok = gen_tcp:controlling_process(Socket, Pid),
            Pid ! start;
        {error, _OutOfFiles} -> timer:sleep(10)
    end,
    accept(Listener, Framing, Active).

receive_frames(Socket, Framing, Active) ->
    ok = inet:setopts(Socket, [{active, Active}]),
    case Framing of
        0 -> raw(Socket, Active, <<>>, 0, 0);
        4 -> whole(Socket, Active, 0, 0)
    end.

%% {packet,4}: each message is one frame.
whole(Socket, Active, Frames, Bytes) ->
    case next(Socket, Active) of
        closed -> gen_tcp:send(Socket, <<Frames:64, Bytes:64>>), gen_tcp:close(Socket);
        Frame -> whole(Socket, Active, Frames + 1, Bytes + byte_size(Frame))
    end.

%% {packet,0}: a message may contain many frames, or a part of one.
raw(Socket, Active, Pending, Frames, Bytes) ->
    case next(Socket, Active) of
        closed -> gen_tcp:send(Socket, <<16:32, Frames:64, Bytes:64>>), gen_tcp:close(Socket);
        Data ->
            {Left, MoreFrames, MoreBytes} = narrows_frames:cut(Data, Pending, Frames, Bytes),
            raw(Socket, Active, Left, MoreFrames, MoreBytes)
    end.

%% The next message of the socket. With `once` and N the socket must be reactivated.
next(Socket, Active) ->
    receive
        {tcp, Socket, Data} when Active =:= once ->
            ok = inet:setopts(Socket, [{active, once}]),
            Data;
        {tcp, Socket, Data} -> Data;
        {tcp_passive, Socket} ->
            ok = inet:setopts(Socket, [{active, Active}]),
            next(Socket, Active);
        {tcp_closed, Socket} -> closed;
        {tcp_error, Socket, Reason} ->
            io:format(standard_error, "connection: ~0p~n", [Reason]),
            exit(normal)
    end.
