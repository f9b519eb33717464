#!/usr/bin/env bash
# JSON on the command line: jo writes an ID as a float with 16 digits, and jp rounds the one that it selects.
#
# jo 1.9 takes a value of digits for a number, and keeps it as a double: the ID that a script sends is another one, in exponent form.
# jp 0.2.1, the command of JMESPath in Go, prints a number of a document rounded. gron 0.7.1 and jshon 20131010 keep every digit.
# Remedy: `jo -- -s id=...` makes a string, which jp prints as it is.
. "$(dirname "$0")/begin.sh"
debian_packages jo=1.9-1 jp=0.2.1+ds1-1+b5 gron=0.7.1-1+b6 jshon=20131010-3+b1 libjansson4=2.14-2
export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu PATH=$unpacked/usr/bin:$PATH
{
    echo "jo: $(jo id=1765646837124341761)"
    echo "jo -- -s: $(jo -- -s id=1765646837124341761)"
    echo "jp: $(echo '{"id": 1765646837124341761}' | jp id)"
    echo "jp, a string: $(echo '{"id": "1765646837124341761"}' | jp id)"
    echo "gron: $(echo '{"id": 1765646837124341761}' | gron | sed -n 2p)"
    echo "jshon: $(echo '{"id": 1765646837124341761}' | jshon -e id)"
} > seen
expect seen <<'SEEN'
jo: {"id":1.765646837124342e+18}
jo -- -s: {"id":"1765646837124341761"}
jp: 1765646837124341800
jp, a string: "1765646837124341761"
gron: json.id = 1765646837124341761;
jshon: 1765646837124341761
SEEN
