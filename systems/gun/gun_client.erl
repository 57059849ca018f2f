%% A client with pools: Gun 2 with its own pool. Connections are kept open, each with one request at a time (HTTP/1.1). If none is free, a
%% request is refused at once, or retries every retry_ms until its time is up.
%%
%% Contract: systems/shared/narrows_client.erl. A pool is a scope of gun_pool. It gives requests only to connections that are up, and
%% those send at once, so a request that times out after that was sent.
-module(gun_client).
-behaviour(narrows_client).
-export([start_pool/4, get/4, version/0]).

start_pool(Number, Size, #{host := Host, port := Port}, [Retry]) ->
    {ok, _} = application:ensure_all_started(gun),
    ConnOpts = #{protocols => [http], http_opts => #{keepalive => infinity}, retry_timeout => 10},
    {ok, Pid} = gun_pool:start_pool(binary_to_list(Host), Port, #{scope => Number, size => Size, conn_opts => ConnOpts}),
    ok = gun_pool:await_up(Pid),
    {Number, list_to_integer(Retry), [Host, $:, integer_to_binary(Port)]}.

get({Scope, Retry, Host}, #{path := Path}, Id, Timeout) ->
    Deadline = narrows_client:deadline(Timeout),
    Retries = [Retry || Retry > 0, _ <- lists:seq(1, Timeout div Retry)],
    case gun_pool:get(Path, [{<<"host">>, Host}, {<<"x-request-id">>, Id}], #{scope => Scope, checkout_retry => Retries}) of
        {async, Stream} -> answer(Stream, Deadline);
        {error, R, _} -> {error, case Retries of [] -> busy; _ -> pool_wait end, R}
    end.

answer(Stream, Deadline) ->
    case gun_pool:await(Stream, narrows_client:left(Deadline)) of
        {response, nofin, Status, Headers} ->
            case gun_pool:await_body(Stream, narrows_client:left(Deadline)) of
                {ok, Body} -> narrows_client:answer(Status, Headers, Body);
                {error, R} -> failed(Stream, R)
            end;
        {response, fin, Status, Headers} -> narrows_client:answer(Status, Headers, <<>>);
        {error, R} -> failed(Stream, R)
    end.

failed(Stream, R) ->
    gun_pool:cancel(Stream),
    gun_pool:flush(Stream),
    {error, case R of timeout -> request_timeout; _ -> narrows_client:class(R) end, R}.

version() -> narrows_client:versions([gun]).
