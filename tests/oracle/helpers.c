/* SPDX-License-Identifier: MIT OR Apache-2.0
 * ncaux_* helpers, and the symbols that the distribution's own tools import. */
#include "harness.h"
#include <netcdf_aux.h>

extern int NCpathcanonical(const char *, char **), nc__testurl(const char *, char **);
extern char *NC_shellUnescape(const char *);
extern int nc_utf8_to_utf16(const unsigned char *, unsigned short **, size_t *);
typedef struct NClist {
    size_t alloc, length;
    void **content;
} NClist;
extern NClist *nclistnew(void);
extern int nclistfree(NClist *), nclistpush(NClist *, const void *);
extern void *nclistremove(NClist *, size_t);
typedef struct NCURI {
    char *uri, *protocol, *user, *password, *host, *port, *path, *query, *fragment, **fraglist, **querylist;
} NCURI;
extern int ncuriparse(const char *, NCURI **), ncuriappendfragmentkey(NCURI *, const char *, const char *);
extern char *ncuribuild(NCURI *, const char *, const char *, int);
extern void ncurifree(NCURI *);

static const char *shown(const char *s) { return s ? s : "(null)"; }

static void urls(void) {
    static const char *const urls[] = {
        "http://h/", "http://h/a", "http://h/a/b.nc", "https://h:80/a.b.c?x=1&y#z=2&w", "[a=b]http://h/p#c",
        "[a][b=c]dods://h/p", "http://u:p@h/q", "http://u:%70%zz@h:1-2/q", "file:///a/b", "file:/a", "file://a/b",
        "file:d:/x", "file:a", "file:////a", "a/b", "/a:b", ":x", "", "http:/h", "http://@h/", "http://u@h/",
        "http://h:x/", "http://h:/", "http://:80/", "http://:p@h/", "http://u:@h/", "http://h/a?q?r#s#t",
        "http://h/\\#a", "http://h/a\tb", "s3://bucket/key", "http:///p", "[bad"};
    for (size_t i = 0; i < COUNT(urls); i++) {
        NCURI *uri = NULL;
        char *base = NULL;
        text("url", urls[i], 99);
        if (R(ncuriparse(urls[i], &uri)) == NC_NOERR) {
            note("%s %s %s %s %s %s", shown(uri->protocol), shown(uri->user), shown(uri->password),
                 shown(uri->host), shown(uri->port), shown(uri->path));
            for (char **p = uri->fraglist; p && *p; p += 2) note("fragment %s = %s", p[0], p[1]);
            for (char **p = uri->querylist; p && *p; p += 2) note("query %s = %s", p[0], p[1]);
            for (int flags = 0; flags < 64; flags += 5) {
                char *built = ncuribuild(uri, flags & 1 ? "pre" : NULL, flags & 2 ? ".dds" : NULL, flags);
                note("flags %d: %s", flags, built);
                free(built);
            }
            int had_path = uri->path != NULL;
            ncurifree(uri);
            if (!had_path) continue; /* the reference crashes on these */
        }
        printf("   testurl %d", nc__testurl(urls[i], &base));
        printf(" %s\n", shown(base));
        free(base);
    }
}

static void paths(void) {
    static const char *const paths[] = {"a/b", "/a/b", "//a/b", "//", "/", "", "/cygdrive/d/x", "/cygdrive/d",
                                        "d:/x", "D:", "c:\\x\\y", "a\\b", "d:x", "1:/x", "\\\\host\\x", "a b/c"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        char *canonical = NULL;
        R(NCpathcanonical(paths[i], &canonical));
        note("%s", shown(canonical));
        free(canonical);
    }
    R(NCpathcanonical(NULL, NULL));
    static const char *const texts[] = {"a\\#b", "\\#", "a\\b", "\\\\#", "", "#", "a\\"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        char *plain = NC_shellUnescape(texts[i]);
        printf("%d: unescape -> 0\n", __LINE__);
        text("plain", plain, 99);
        free(plain);
    }
    static const char *const utf8[] = {"abc", "\xc3\xa9", "\xe6\xb8\xa9", "\xf0\x9f\x8c\x8a", "\xff", "", "a\xc3"};
    for (size_t i = 0; i < COUNT(utf8); i++) {
        unsigned short *units = NULL;
        size_t n = 77;
        if (R(nc_utf8_to_utf16((const unsigned char *)utf8[i], &units, &n)) == NC_NOERR) {
            bytes("units", units, 2 * n + 2);
            free(units);
        }
    }
}

static void lists(void) {
    NClist *list = nclistnew();
    for (uintptr_t i = 1; i < 100; i++) R(nclistpush(list, (void *)i));
    note("length %zu last %d", list->length, (int)(uintptr_t)list->content[98]);
    for (size_t i = 0; list->length; i = (i + 7) % (list->length ? list->length : 1))
        printf("   removed %d\n", (int)(uintptr_t)nclistremove(list, i));
    note("none %d", nclistremove(list, 0) == NULL);
    R(nclistfree(list));
    R(nclistpush(NULL, NULL));
    R(nclistfree(NULL));
}

static void filters(void) {
    static const char *const specs[] = {"1", "307,4", "1, 2b,-3,300b,70000s", "5,1.5,2.5f,1.5d", "5,77L,77UL,-1L",
                                        "1,", "", ",1", "x", "1,x", "1,2u", "1,99ub", "1,-1b", "1,1e3", "1,1.",
                                        "1, ", "1,5 ", "1,0x10", "1,-", "1,18446744073709551615UL", " 1", "-1", "1,1D",
                                        "1,-2.5F", "1,65536S", "1,7U", "32015,3,4,5"};
    for (size_t i = 0; i < COUNT(specs); i++) {
        unsigned id = 77, *params = NULL, two[4];
        size_t n = 77;
        note("spec '%s'", specs[i]);
        if (R(ncaux_h5filterspec_parse(specs[i], &id, &n, &params)) == NC_NOERR) {
            note("id %u", id);
            bytes("params", params, 4 * n);
            free(params);
        }
        const char *one = strchr(specs[i], ',');
        poison(two);
        if (one) {
            R(ncaux_h5filterspec_parse_parameter(one + 1, &n, two));
            bytes("two", two, 8);
        }
    }
    R(ncaux_h5filterspec_parse(NULL, NULL, NULL, NULL));
    R(ncaux_h5filterspec_parse_parameter(NULL, NULL, NULL));
    static const char *const lists[] = {"1,2|3,4|5", "1|", "", "1||2", "x|1"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        int format = 77;
        size_t n = 77;
        NC_H5_Filterspec **found = NULL;
        note("list '%s'", lists[i]);
        if (R(ncaux_h5filterspec_parselist(lists[i], &format, &n, &found)) == NC_NOERR) {
            note("format %d n %zu", format, n);
            for (size_t k = 0; k < n; k++) {
                note("id %u", found[k]->filterid);
                bytes("params", found[k]->params, 4 * found[k]->nparams);
                ncaux_h5filterspec_free(found[k]);
            }
            free(found);
        }
    }
    R(ncaux_h5filterspec_parselist(NULL, NULL, NULL, NULL));
    unsigned char eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ncaux_h5filterspec_fix8(eight, 0);
    ncaux_h5filterspec_fix8(eight, 1);
    bytes("eight", eight, 8);
}

int main(void) {
    urls();
    paths();
    lists();
    filters();
    for (int class = 1; class < 15; class++) {
        size_t align = 77;
        R(ncaux_class_alignment(class, &align));
        sizes("align", &align, 1);
    }
    size_t size = 77;
    void *content = NULL;
    R(ncaux_writefile("content.bin", 5, "hello"));
    R(ncaux_readfile("content.bin", &size, &content));
    sizes("size", &size, 1);
    bytes("content", content, 5);
    free(content);
    R(ncaux_readfile("missing.bin", &size, &content));
    R(ncaux_writefile("no/folder/x", 5, "hello"));
    R(ncaux_writefile("content.bin", 0, NULL));
    R(ncaux_readfile("content.bin", &size, NULL));
    sizes("size", &size, 1);
    int x = 5;
    R(ncaux_reclaim_data(-1, NC_INT, &x, 1));
    R(ncaux_reclaim_data(0, NC_INT, &x, 1));
    return 0;
}
