%% A client with pools: Hackney. A pool is a named pool of max_connections, which one process hands out.
%%
%% Contract: systems/shared/narrows_client.erl. In Hackney the wait for the pool, the connect and each read have separate
%% timeouts. Each gets the whole time, and the driver bounds the request as a whole. Hackney 1.15.1 calls the first two
%% checkout_timeout and connect_timeout, so its plain timeout is a read's, after the request was sent. A request that the driver ends
%% may still be waiting for the pool, so its class is timeout.
-module(hackney_client).
-behaviour(narrows_client).
-export([start_pool/4, get/4, version/0]).

start_pool(Number, Size, _Url, [IdleTimeout]) ->
    {ok, _} = application:ensure_all_started(hackney),
    Pool = list_to_atom("pool_" ++ integer_to_list(Number)),
    ok = hackney_pool:start_pool(Pool, [{max_connections, Size}, {timeout, list_to_integer(IdleTimeout)}]),
    Pool.

get(Pool, #{text := Url}, Id, Timeout) ->
    Options = [{pool, Pool}, {checkout_timeout, Timeout}, {connect_timeout, Timeout}, {recv_timeout, Timeout}, with_body],
    Headers = [{<<"x-request-id">>, Id}],
    narrows_client:bounded(Timeout, fun() -> answer(hackney:request(get, Url, Headers, <<>>, Options)) end).

answer({ok, Status, Headers, Body}) -> narrows_client:answer(Status, Headers, Body);
answer({error, timeout = R}) -> {error, request_timeout, R};
answer({error, R}) -> {error, narrows_client:class(R), R}.

version() -> narrows_client:versions([hackney]).
