#!/usr/bin/env bash
# npm: the install of one package asks the registry for some forty others, because they are its optional peers.
#
# npm 11 never installs an optional peer, but it fetches the description of every package in `peerDependencies`, and of the
# peers of those. drizzle-orm 0.45.2 has drivers of databases and of Expo as optional peers: its install adds one package, and
# reads the descriptions of react-native and of @types/node, tens of megabytes. debug 4.4.3 names its optional peer in
# `peerDependenciesMeta` alone, and npm asks for none; pnpm and Yarn give the package its peer all the same.
# Remedy: a package that adapts to frameworks has no `peerDependencies` that are all optional.
. "$(dirname "$0")/begin.sh"
export npm_config_cache=$work/cache
npm_packages npm@11.6.4
for package in drizzle-orm@0.45.2 debug@4.4.3; do
    mkdir "$package" && cd "$package"
    echo '{}' > package.json
    ../node_modules/.bin/npm install --ignore-scripts --no-audit --no-fund --loglevel=http "$package" > log 2>&1
    asked=$(grep "http fetch GET 200" log | grep -vc "\.tgz ")
    echo "$package: $(sed -n 's/^added \([0-9]*\) package.*/\1/p' log) added," "$([ "$asked" -gt 20 ] && echo more than twenty asked for || echo "$asked asked for")"
    grep -q react-native log && echo "  react-native is one of them"
    cd ..
done > seen
expect seen <<'SEEN'
drizzle-orm@0.45.2: 1 added, more than twenty asked for
  react-native is one of them
debug@4.4.3: 2 added, 2 asked for
SEEN
