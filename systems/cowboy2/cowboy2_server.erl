%% Cowboy 2 as a server for uploads and requests: what an upload costs when it crosses Cowboy's
%% connection process in messages of at most one socket buffer each.
%%
%% Contract: GET / answers "ok"; POST /upload reads the body in pieces, keeps none of them, and answers its length.
%% Timeouts are off and limits on connections are high, so that only the knobs decide.
-module(cowboy2_server).
-export([main/1, init/2]).

main(Args) ->
    [Port, ActiveN, Length, Buffer, MaxKeepalive, FlowSize] = [list_to_integer(A) || A <- Args],
    ok = os:set_signal(sigterm, default),
    {ok, _} = application:ensure_all_started(cowboy),
    Routes = [{'_', [{"/", ?MODULE, hello}, {"/upload", ?MODULE, Length}]}],
    Transport = #{max_connections => infinity,
                  num_acceptors => 10,
                  socket_opts => [{ip, {127, 0, 0, 1}}, {port, Port}, {backlog, 4096}, {buffer, Buffer}]},
    Protocol = #{env => #{dispatch => cowboy_router:compile(Routes)},
                 active_n => ActiveN,
                 max_keepalive => MaxKeepalive,
                 initial_stream_flow_size => FlowSize,
                 request_timeout => infinity,
                 idle_timeout => infinity,
                 inactivity_timeout => infinity},
    case cowboy:start_clear(?MODULE, Transport, Protocol) of
        {ok, _} -> ok;
        {error, Reason} ->
            io:format(standard_error, "cannot listen on port ~b: ~0p~n", [Port, Reason]),
            halt(1)
    end.

init(Req, hello) ->
    {ok, cowboy_req:reply(200, #{}, <<"ok">>, Req), hello};
init(Req0, Length) ->
    {Count, Req} = count(Req0, #{length => Length, timeout => infinity}, 0),
    {ok, cowboy_req:reply(200, #{}, integer_to_binary(Count), Req), Length}.

count(Req0, Opts, Count) ->
    case cowboy_req:read_body(Req0, Opts) of
        {more, Data, Req} -> count(Req, Opts, Count + byte_size(Data));
        {ok, Data, Req} -> {Count + byte_size(Data), Req}
    end.
