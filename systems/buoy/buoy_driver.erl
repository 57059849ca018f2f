%% A client with a pool: Buoy. Shackle sends each request on a random connection, after the requests that are already on it, up to
%% backlog_size of them. A lost connection is missing until it is reopened, reconnect_ms later at the earliest.
%%
%% Contract: systems/shared/narrows_client.erl. There is one pool per server: several pools become one of their total size.
-module(buoy_driver).
-behaviour(narrows_client).
-export([start_pools/4, get/4, version/0]).
-include_lib("buoy/include/buoy.hrl").

start_pools(Pools, Size, #{text := Text, host := Host, port := Port}, [Backlog, Strategy, Reconnect]) ->
    {ok, _} = application:ensure_all_started(buoy),
    Url = buoy_utils:parse_url(Text),
    ok = buoy_pool:start(Url, [{pool_size, Pools * Size}, {backlog_size, list_to_integer(Backlog)},
                               {pool_strategy, list_to_atom(Strategy)}, {reconnect_time_min, list_to_integer(Reconnect)}]),
    {ok, Pool} = buoy_pool:lookup(http, Host, Port),
    await([{Pool, N} || N <- lists:seq(1, Pools * Size)], narrows_client:deadline(8000)),
    Url.

%% The pool opens its connections concurrently with its caller. A caller that is refused and retries at once may prevent that.
await(Connections, Deadline) ->
    case [C || C <- Connections, not shackle_status:active(C)] of
        Missing when Missing =/= [] -> timer:sleep(10), narrows_client:left(Deadline) > 0 andalso await(Missing, Deadline);
        [] -> ok
    end.

get(Url, _, Id, Timeout) ->
    case buoy:get(Url, #{headers => [{<<"x-request-id">>, Id}], timeout => Timeout}) of
        {ok, #buoy_resp{status_code = Status, body = Body} = Response} ->
            {ok, Headers} = buoy_protocol:headers(Response),
            narrows_client:answer(Status, Headers, case Body of undefined -> <<>>; _ -> Body end);
        {error, R} when R =:= no_server; R =:= no_socket -> {error, busy, R}; % full, or lost and not reopened yet
        {error, socket_closed = R} -> {error, closed_early, R};
        {error, timeout = R} -> {error, request_timeout, R}; % Shackle starts its timer when it has sent the request
        {error, R} -> {error, narrows_client:class(R), R}
    end.

version() -> narrows_client:versions([buoy, shackle]).
