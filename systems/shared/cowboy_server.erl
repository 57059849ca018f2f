%% A server for uploads and requests with Cowboy 1 or any 2.x, and for streams with 2.x. In Cowboy 1 the connection process itself reads an upload. In
%% Cowboy 2 the upload passes through it in messages of at most one socket buffer each.
%%
%% Contract: GET / answers "ok"; POST /upload reads the body in pieces, keeps none of them, and answers its length;
%% GET /events/N?gap=10ms&size=100 sends N server-sent events.
%% Timeouts are off and limits on connections are high, so that only the knobs have an effect. Cowboy decides knobs that are not given.
%%
%% With tls=1.2 or tls=1.3, cert=FILE and key=FILE, Cowboy 2 offers both versions of TLS.
%%
%% usage: erl -noshell ... -run cowboy_server main ADDRESS PORT [KNOB=NUMBER ...] [tls=off|1.2|1.3 cert=FILE key=FILE tickets=true|false]
-module(cowboy_server).
-export([main/1]).
-export([init/2]).                         % Cowboy 2
-export([init/3, handle/2, terminate/3]).  % Cowboy 1

main([Address, Port | Words]) ->
    Knobs = maps:from_list([knob(Word) || Word <- Words]),
    ok = os:set_signal(sigterm, default),
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, Ip} = inet:parse_address(Address),
    Listen = [inet6 || tuple_size(Ip) =:= 8] ++ [{ip, Ip}, {port, list_to_integer(Port)}, {backlog, 4096}] ++ buffer(Knobs),
    {module, cowboy} = code:ensure_loaded(cowboy),
    case start(erlang:function_exported(cowboy, start_clear, 3), Listen, Knobs) of
        {ok, _} -> ok;
        {error, Reason} ->
            io:format(standard_error, "cannot listen on port ~s of ~s: ~0p~n", [Port, Address, Reason]),
            halt(1)
    end.

knob(Word) ->
    [Name, Value] = string:split(Word, "="),
    {list_to_atom(Name), value(Name, Value)}.

value(Name, Value) when Name =:= "tls"; Name =:= "cert"; Name =:= "key" -> Value;
value("tickets", Value) -> list_to_atom(Value);
value(_, Value) -> list_to_integer(Value).

start(true, Listen, Knobs) ->
    Routes = routes(maps:merge(#{timeout => infinity}, maps:with([length], Knobs))),
    Secured = secured(Knobs),
    Transport = #{max_connections => infinity, num_acceptors => maps:get(acceptors, Knobs, 10), socket_opts => Listen ++ Secured},
    Protocol = maps:with([active_n, max_keepalive, initial_stream_flow_size], Knobs),
    Patience = #{request_timeout => infinity, idle_timeout => infinity, inactivity_timeout => infinity},
    %% By default a connection of HTTP/2 ends after 10,000 frames in ten seconds.
    Frames = #{max_received_frame_rate => {1000000000, 10000}, max_concurrent_streams => 10000},
    Options = maps:merge(maps:merge(maps:merge(Protocol, Patience), Frames), dynamic_buffer(Knobs)),
    Start = case Secured of [] -> fun cowboy:start_clear/3; _ -> fun cowboy:start_tls/3 end,
    Start(?MODULE, Transport, Options#{env => #{dispatch => Routes}});
start(false, Listen, Knobs) ->
    Routes = routes([{read_timeout, infinity} | maps:to_list(maps:with([length, read_length], Knobs))]),
    Options = [{env, [{dispatch, Routes}]}, {timeout, infinity}, {max_keepalive, maps:get(max_keepalive, Knobs, 100)}],
    cowboy:start_http(?MODULE, maps:get(acceptors, Knobs, 8), [{max_connections, infinity} | Listen], Options).

routes(BodyOptions) ->
    cowboy_router:compile([{'_', [{"/", ?MODULE, hello}, {"/upload", ?MODULE, BodyOptions}, {"/events/:count", ?MODULE, events}]}]).

%% The options of TLS; none if it is plain. By default Erlang gives no tickets for sessions of TLS 1.3, but remembers those of 1.2.
secured(#{tls := Version, cert := Cert, key := Key, tickets := Tickets}) when Version =/= "off" ->
    {ok, _} = application:ensure_all_started(ssl),
    Sessions = case Tickets of true -> stateless; false -> disabled end,
    [{certfile, Cert}, {keyfile, Key}, {versions, ['tlsv1.3', 'tlsv1.2']}, {session_tickets, Sessions} | schemes()];
secured(_) -> [].

%% Erlang/OTP 23 signs with a scheme of another curve than the key's, which TLS 1.3 forbids, unless it may use no other.
schemes() ->
    case list_to_integer(erlang:system_info(otp_release)) < 24 of
        true -> [{signature_algs, [ecdsa_secp256r1_sha256, rsa_pss_rsae_sha256, {sha256, ecdsa}, {sha256, rsa}]}];
        false -> []
    end.

%% If buffer is 0 or not given, Cowboy decides the size of the socket's buffer.
buffer(#{buffer := Size}) when Size > 0 -> [{buffer, Size}];
buffer(_) -> [].

%% From 2.13 on Cowboy grows the buffer up to a limit, unless its size is given.
dynamic_buffer(#{buffer := Size}) when Size > 0 -> #{};
dynamic_buffer(#{dynamic_buffer := 0}) -> #{dynamic_buffer => false};
dynamic_buffer(#{dynamic_buffer := Most}) -> #{dynamic_buffer => {min(512, Most), Most}};
dynamic_buffer(_) -> #{}.

init(Req, hello) ->
    {ok, cowboy_req:reply(200, #{}, <<"ok">>, Req), hello};
init(Req0, events) ->
    Count = binary_to_integer(cowboy_req:binding(count, Req0)),
    #{gap := Gap, size := Size} = cowboy_req:match_qs([gap, size], Req0),
    Data = binary:copy(<<"x">>, binary_to_integer(Size)),
    Headers = #{<<"content-type">> => <<"text/event-stream">>, <<"cache-control">> => <<"no-cache">>},
    Req = cowboy_req:stream_reply(200, Headers, Req0),
    events(1, Count, binary_to_integer(hd(binary:split(Gap, <<"ms">>))), Data, Req),
    {ok, Req, events};
init(Req0, Options) ->
    {Count, Req} = count(fun cowboy_req:read_body/2, Req0, Options, 0),
    {ok, cowboy_req:reply(200, #{}, integer_to_binary(Count), Req), Options}.

events(Count, Count, _Gap, Data, Req) ->
    cowboy_req:stream_events(#{id => integer_to_binary(Count), data => Data}, fin, Req);
events(Id, Count, Gap, Data, Req) ->
    cowboy_req:stream_events(#{id => integer_to_binary(Id), data => Data}, nofin, Req),
    timer:sleep(Gap),
    events(Id + 1, Count, Gap, Data, Req).

init(_Transport, Req, Options) -> {ok, Req, Options}.

handle(Req0, hello) ->
    {ok, Req} = cowboy_req:reply(200, [], <<"ok">>, Req0),
    {ok, Req, hello};
handle(Req0, Options) ->
    {Count, Req1} = count(fun cowboy_req:body/2, Req0, Options, 0),
    {ok, Req} = cowboy_req:reply(200, [], integer_to_binary(Count), Req1),
    {ok, Req, Options}.

terminate(_Reason, _Req, _Options) -> ok.

count(Read, Req0, Options, Count) ->
    case Read(Req0, Options) of
        {more, Data, Req} -> count(Read, Req, Options, Count + byte_size(Data));
        {ok, Data, Req} -> {Count + byte_size(Data), Req}
    end.
