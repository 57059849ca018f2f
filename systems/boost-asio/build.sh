# Compiles the server into the build folder: build.sh OUT
set -eu
c++ -std=c++17 -O2 -Wall -Wextra -Werror -pthread -o "$1/server" server.cpp
echo BOOST_LIB_VERSION | c++ -E -P -include boost/version.hpp -x c++ - | sed -n 's/^"\(.*\)"$/Boost \1/p' | tr _ . > "$1/VERSION"
