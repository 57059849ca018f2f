%% A receiver of frames on OTP's `socket` module, which has no {packet,4}. The program either reads each frame's length and then its
%% bytes (`exact`), or reads what has arrived and splits it (`chunks`). Every frame becomes one binary.
%%
%% Contract: reads frames (4-byte big-endian length, then the payload) until the sender half-closes, answers one frame
%% with the number of frames and of payload bytes, and closes. A process per connection.
-module(socket_server).
-export([main/1]).

main([AddressArg, PortArg, Read, BufferArg]) ->
    {ok, Address} = inet:parse_address(AddressArg),
    ok = os:set_signal(sigterm, default),
    %% Runs in its own process, because a socket closes when its owner ends.
    spawn(fun() -> listen(Address, list_to_integer(PortArg), list_to_atom(Read), list_to_integer(BufferArg)) end).

listen(Address, Port, Read, Buffer) ->
    Family = case tuple_size(Address) of 4 -> inet; 8 -> inet6 end,
    {ok, Listener} = socket:open(Family, stream, tcp),
    ok = socket:setopt(Listener, {socket, reuseaddr}, true),
    case socket:bind(Listener, #{family => Family, addr => Address, port => Port}) of
        ok -> ok = socket:listen(Listener, 4096), accept(Listener, Read, Buffer);
        {error, Reason} ->
            io:format(standard_error, "cannot listen on port ~b: ~0p~n", [Port, Reason]),
            halt(1)
    end.

accept(Listener, Read, Buffer) ->
    case socket:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> receive start -> serve(Socket, Read, Buffer) end end),
            ok = socket:setopt(Socket, {otp, controlling_process}, Pid),
            Pid ! start;
        {error, _OutOfFiles} -> timer:sleep(10)
    end,
    accept(Listener, Read, Buffer).

serve(Socket, Read, Buffer) ->
    ok = socket:setopt(Socket, {otp, rcvbuf}, Buffer),
    {Frames, Bytes} = case Read of
                          exact -> exact(Socket, 0, 0);
                          chunks -> chunks(Socket, <<>>, 0, 0)
                      end,
    _ = socket:send(Socket, <<16:32, Frames:64, Bytes:64>>),
    socket:close(Socket).

%% One call for the length, and one for the frame. A frame that the half-close cut short is not counted.
exact(Socket, Frames, Bytes) ->
    case socket:recv(Socket, 4) of
        {ok, <<0:32>>} -> exact(Socket, Frames + 1, Bytes); % reading 0 bytes would mean reading any number
        {ok, <<Length:32>>} ->
            case socket:recv(Socket, Length) of
                {ok, Frame} -> exact(Socket, Frames + 1, Bytes + byte_size(Frame));
                {error, _} -> {Frames, Bytes}
            end;
        {error, _} -> {Frames, Bytes}
    end.

%% Reads what has arrived: many frames, or a part of one.
chunks(Socket, Pending, Frames, Bytes) ->
    case socket:recv(Socket, 0) of
        {ok, Data} ->
            {Left, MoreFrames, MoreBytes} = narrows_frames:cut(Data, Pending, Frames, Bytes),
            chunks(Socket, Left, MoreFrames, MoreBytes);
        {error, _} -> {Frames, Bytes}
    end.
