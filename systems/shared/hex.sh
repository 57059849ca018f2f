#!/bin/sh
# Fetches and compiles packages from hex for systems on the BEAM, with rebar3 (rebar.config) or mix (mix.exs). Runs in the system's
# folder. Its rebar.config or mix.exs names each package on a separate line with its exact version: {name, "1.2.3"} or
# {:name, "1.2.3"}.
#
# usage: hex.sh have               checks whether the packages are here or the registry has the first of them, in a second or two
#        hex.sh build OUT FILE...  fetches and compiles them into OUT/lib, an ERL_LIBS folder, and adds the system's FILEs to it as
#                                  another library; writes the version of the first package to OUT/VERSION
#
# The output of `have` is an input of the build, so it must be the same before and after the packages are fetched.
#
# The packages are where rebar3 and mix put them: in _checkouts and _build for rebar3; in MIX_DEPS_PATH, if set, or _build/deps for
# mix.
set -eu

if [ -f mix.exs ]; then
    tool=mix
    theirs=${MIX_DEPS_PATH:+yes}
    folders=${MIX_DEPS_PATH:=_build/deps}
else
    tool=rebar3
    folders="_checkouts _build/default/lib"
fi
packages=$(sed -n 's/^[^%#]*{:\{0,1\}\([a-z_0-9]*\), *"\([0-9][^"]*\)".*/\1 \2/p' rebar.config mix.exs 2>/dev/null || true)
first=$(echo "$packages" | head -n 1)

# Whether all packages are in the folders. mix also needs its Hex archive to read them.
here() {
    if [ $tool = mix ]; then
        set -- "${MIX_ARCHIVES:-${MIX_HOME:-${HOME:-}/.mix}/archives}"/hex*
        [ -e "$1" ] || return 1
    fi
    echo "$packages" | while read -r name _; do
        found=
        for folder in $folders; do [ ! -d "$folder/$name" ] || found=yes; done
        [ "$found" ] || exit 1
    done
}

# Whether the registry answers and has the version. If it does not answer, that is remembered for a minute, so that not every system
# waits for it.
offered() {
    name=${first% *} version=${first#* }
    if ! command -v rebar3 >/dev/null; then
        echo "rebar3 is missing, so the registry cannot be asked"
        return 1
    fi
    silence=../../target/systems/hex-is-silent
    if [ -n "$(find "$silence" -mmin -1 2>/dev/null)" ]; then
        echo "the registry did not answer a moment ago"
        return 1
    fi
    answer=$(rebar3 pkgs "$name" 2>&1 </dev/null) || true
    case $answer in
        *"Error fetching"*)
            mkdir -p "${silence%/*}" && touch "$silence" || true
            echo "the registry does not answer"
            return 1 ;;
        *[!0-9.]"$version"[!0-9.-]* | *[!0-9.]"$version") return 0 ;;
        *) echo "the registry has no $name $version"; return 1 ;;
    esac
}

compile() {
    if [ $tool = mix ]; then
        export MIX_ENV=prod MIX_DEPS_PATH MIX_REBAR3="$(command -v rebar3)"
        # Never fetch into the user's own folder. If fetching fails, packages from an earlier fetch will do.
        [ "$theirs" ] || { mix local.hex --force --if-missing && mix deps.get; } || here
        # mix compares the times of files. For sources from another folder, or older ones, it would keep the old compiled files.
        rm -rf _build/prod
        mix deps.compile
        set -- _build/prod/lib/*
    else
        # Work in a separate folder, because rebar3 would leave its lock file among the sources.
        mkdir "$out/rebar3"
        cp rebar.config "$out/rebar3"
        [ ! -d _checkouts ] || ln -s "$PWD/_checkouts" "$out/rebar3/_checkouts"
        base=$PWD/_build
        # A variant compiles the same packages for its own runtime.
        case ${out##*/} in *@*) base=$out/rebar3/_build ;; esac
        # rebar3 would keep files that an earlier runtime compiled, and libraries that are no longer in _checkouts.
        rm -rf "$base/default/checkouts" "$base"/default/lib/*/ebin/*.beam
        (cd "$out/rebar3" && REBAR_BASE_DIR=$base rebar3 compile)
        set -- "$base"/default/lib/* "$base"/default/checkouts/*
    fi
    mkdir "$out/lib"
    for library; do
        [ -d "$library/ebin" ] || continue
        name=${library##*/}
        rm -rf "${out:?}/lib/$name" # a library in _checkouts replaces the fetched one
        mkdir "$out/lib/$name"
        for part in ebin include priv; do
            for from in "$library" "_checkouts/$name"; do
                [ ! -d "$from/$part" ] || { cp -RL "$from/$part" "$out/lib/$name"; break; }
            done
        done
    done
}

case $1 in
    have)
        if here || offered; then echo "available"; else exit 1; fi ;;
    build)
        out=$2
        shift 2
        compile >&2
        # Do not put them into OUT itself: it may have the name of a package, and the code server searches by name.
        ours=$out/lib/narrows/ebin
        mkdir -p "$ours"
        ERL_LIBS=$out/lib
        export ERL_LIBS
        for file; do
            case $file in
                *.erl) erlc -Werror -o "$ours" "$file" ;;
                *.ex) elixirc --warnings-as-errors -o "$ours" "$file" ;;
            esac
        done
        name=${first% *}
        erl -noshell -eval "ok = application:load($name), {ok, V} = application:get_key($name, vsn), io:put_chars([\"$name \", V, \$\\n]), halt()." > "$out/VERSION" ;;
esac
