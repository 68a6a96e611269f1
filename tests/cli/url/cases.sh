# Cases of commands that are given URLs, read by ../run.sh. A small server of ranges serves the folder `served`; what is said
# of a URL is compared with what is said of the path.

# serve OPTIONS...: starts a server, whose port is in $port; it is in $servers, to be ended
serve() {
    python3 "$root/tests/rig/ranges.py" served "$@" >port 2>/dev/null &
    servers+=($!)
    for _ in $(seq 100); do
        [ -s port ] && break
        sleep 0.1
    done
    port=$(cat port)
    rm -f port
}

# without_port COMMAND...: the same with ports that do not change
without_port() {
    "$@" > >(sed "s/:$port/:PORT/g") 2> >(sed "s/:$port/:PORT/g" >&2)
    local status=$?
    # Until both have written all.
    sleep 0.2
    return $status
}

# same_words LABEL COMMAND PATH URL: whether a command says the same of both
same_words() {
    local label=$1 path=$3 url=$4
    local -a command
    read -r -a command <<<"$2"
    "${command[@]}" "$path" >expected 2>expected.err
    "${command[@]}" "$url" >got 2>got.err
    if [ -s expected ] && cmp -s expected got && [ ! -s got.err ]; then pass "$label"; else
        fail "$label: $(head -n 1 got.err)"
        diff expected got | head -n 10 | cut -c 1-200 | sed 's/^/        /'
    fi
}

# ends LABEL STATUS COMMAND...: whether it ends with that status, and says no secret
ends() {
    local label=$1 wanted=$2
    shift 2
    "$@" >got 2>&1
    local status=$?
    if [ $status = "$wanted" ] && ! grep -q s3cret got; then pass "$label"; else
        fail "$label: exit status $status"
        head -n 5 got | sed 's/^/        /'
    fi
}

test_url() {
    if [ -z "$ncgen" ] || ! python3 -c 'import http.server' 2>/dev/null; then
        skip "url: there is no ncgen to make files with, or no Python"
        return
    fi
    local servers=() port url name kept_home=${HOME-}
    # Nothing of the user's own settings counts.
    mkdir -p served/bucket home
    export HOME=$scratch/home
    unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NETRC AWS_PROFILE AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3
    cp "$here/dump/types.cdl" .
    "$ncgen" -k nc3 -o served/types.nc types.cdl
    "$ncgen" -k cdf5 -o served/cdf5.nc "$here/dump/cdf5_types.cdl"
    "$ncgen" -k nc4 -o served/storage.nc "$here/dump/nc4_storage.cdl"
    "$ncgen" -k nc4 -o served/groups.nc "$here/dump/nc4_groups.cdl"
    head -c -3000 served/storage.nc >served/broken.nc
    printf 'no netCDF at all\n' >served/text.nc
    serve
    url=http://127.0.0.1:$port
    for name in types cdf5 storage groups; do
        same_words "zonda dump $name" "$zonda dump" "served/$name.nc" "$url/$name.nc"
        same_words "ncdump $name" "$prefix/bin/ncdump" "served/$name.nc" "$url/$name.nc#mode=bytes"
        same_words "ncdump -k $name" "$prefix/bin/ncdump -k" "served/$name.nc" "[bytes]$url/$name.nc"
        ends "zonda check $name" 0 "$zonda" check "$url/$name.nc"
        ends "zonda info $name" 0 "$zonda" info "$url/$name.nc?signature=s3cret"
        ends "zonda info --json $name" 0 "$zonda" info --json "$url/$name.nc?signature=s3cret"
        ends "zonda diff $name" 0 "$zonda" diff "served/$name.nc" "$url/$name.nc"
        rm -f copy.nc
        ends "zonda copy $name" 0 "$zonda" copy "$url/$name.nc?signature=s3cret" copy.nc
        ends "zonda copy $name: the same" 0 "$zonda" diff "served/$name.nc" copy.nc
        ends "nccopy $name" 0 "$prefix/bin/nccopy" "$url/$name.nc" copy.nc
        ends "nccopy $name: the same" 0 "$zonda" diff "served/$name.nc" copy.nc
    done
    golden "check of a damaged file" "$here/url/check-broken.txt" without_port "$zonda" check -q "$url/broken.nc"
    golden "dump of a missing file" "$here/url/dump-missing.txt" without_port "$zonda" dump "$url/none.nc?signature=s3cret"
    golden "dump where nobody answers" "$here/url/dump-nobody.txt" "$zonda" dump http://127.0.0.1:1/a.nc
    golden "ncdump of a missing file" "$here/url/ncdump-missing.txt" without_port "$prefix/bin/ncdump" "$url/none.nc?signature=s3cret#mode=bytes"
    golden "dump of what is no netCDF" "$here/url/dump-text.txt" without_port "$zonda" dump "$url/text.nc"
    golden "copy to HTTP" "$here/url/copy-http.txt" without_port "$zonda" copy served/types.nc "$url/new.nc?signature=s3cret"
    golden "nccopy to HTTP" "$here/url/nccopy-http.txt" without_port "$prefix/bin/nccopy" served/types.nc "$url/new.nc?signature=s3cret"
    golden "ncgen to HTTP" "$here/url/ncgen-http.txt" without_port "$prefix/bin/ncgen" -o "$url/new.nc?signature=s3cret" types.cdl
    golden "recover" "$here/url/recover.txt" without_port "$zonda" recover "$url/types.nc?signature=s3cret"
    [ ! -e served/new.nc ] || fail "a file was made behind HTTP"

    serve me:s3cret
    url=127.0.0.1:$port
    ends "info with a password" 0 "$zonda" info "http://me:s3cret@$url/types.nc"
    golden "info without a password" "$here/url/info-denied.txt" without_port "$zonda" info "http://$url/types.nc"
    ends "copy with a wrong password" 1 "$zonda" copy "http://me:wrong-s3cret@$url/types.nc" new.nc
    [ ! -e new.nc ] || fail "a copy that failed left a file"

    serve s3:AKID
    export AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=s3cret AWS_ENDPOINT_URL=http://127.0.0.1:$port TMPDIR=$scratch/home
    for name in types groups; do
        ends "copy $name to S3" 0 "$zonda" copy "served/$name.nc" "s3://bucket/new/$name.nc"
        ends "copy $name to S3: the same" 0 "$zonda" diff "served/$name.nc" "s3://bucket/new/$name.nc"
    done
    golden "copy to S3, where a file is" "$here/url/copy-s3-existing.txt" "$zonda" copy served/types.nc s3://bucket/new/groups.nc
    ends "copy -f to S3" 0 "$zonda" copy -f served/types.nc s3://bucket/new/groups.nc
    ends "copy -f to S3: the new one" 0 "$zonda" diff served/types.nc served/bucket/new/groups.nc
    ends "nccopy to S3" 0 "$prefix/bin/nccopy" served/storage.nc s3://bucket/new/storage.nc
    ends "nccopy to S3: the same" 0 "$zonda" diff served/storage.nc served/bucket/new/storage.nc
    AWS_ACCESS_KEY_ID=OTHER ends "copy to S3 with another key" 1 "$zonda" copy served/types.nc s3://bucket/denied.nc
    if [ -z "$(ls "$scratch/home")" ] && [ ! -e served/bucket/denied.nc ]; then pass "copies to S3 leave nothing"; else
        fail "copies to S3 leave $(ls "$scratch/home" served/bucket)"
    fi
    unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL TMPDIR
    export HOME=$kept_home
    kill "${servers[@]}"
    wait "${servers[@]}" 2>/dev/null
}
