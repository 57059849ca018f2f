%% A client with a pool: Ibrowse. It keeps up to max_sessions connections to a server, with up to max_pipeline_size requests on each.
%%
%% Contract: systems/shared/narrows_client.erl. There is one pool per server: several pools become one of their total size.
%% In Ibrowse the wait for a connection has no timeout, so the driver bounds the request as a whole. Its req_timedout is the timeout of
%% a call to the connection's process, which may be connecting or busy. It does not say whether the request was sent.
-module(ibrowse_client).
-behaviour(narrows_client).
-export([start_pools/4, get/4, version/0]).

start_pools(Pools, Size, #{host := Host, port := Port}, [Pipelining]) ->
    {ok, _} = application:ensure_all_started(ibrowse),
    ok = ibrowse:set_max_sessions(binary_to_list(Host), Port, Pools * Size),
    ok = ibrowse:set_max_pipeline_size(binary_to_list(Host), Port, list_to_integer(Pipelining)).

get(ok, #{text := Url}, Id, Timeout) ->
    Headers = [{"x-request-id", binary_to_list(Id)}],
    Options = [{response_format, binary}, {connect_timeout, Timeout}],
    narrows_client:bounded(Timeout, fun() -> answer(ibrowse:send_req(binary_to_list(Url), Headers, get, [], Options, Timeout)) end).

answer({ok, Status, Headers, Body}) -> narrows_client:answer(list_to_integer(Status), Headers, Body);
answer({error, retry_later = R}) -> {error, busy, R};
answer({error, req_timedout = R}) -> {error, timeout, R};
answer({error, {conn_failed, {error, timeout}} = R}) -> {error, connect_timeout, R};
answer({error, {conn_failed, {error, Why}} = R}) -> {error, narrows_client:class(Why), R};
answer({error, {send_failed, {error, Why}} = R}) -> {error, narrows_client:class(Why), R};
answer({error, R}) when R =:= connection_closing; R =:= sel_conn_closed -> {error, closed_early, R};
answer({error, R}) -> {error, narrows_client:class(R), R}.

version() -> narrows_client:versions([ibrowse]).
