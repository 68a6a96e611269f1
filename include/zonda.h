/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * zonda.h - what Zonda offers beyond the netCDF interface. Nothing here is needed to use it.
 *
 * A program that must also run on other libraries can look these functions up with dlsym().
 */
#ifndef ZONDA_H
#define ZONDA_H 1

#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* What went wrong, in one line: path, object, position, cause. It explains the last failure of a
 * netCDF function on the calling thread, and is "" if there was none. It also says what a call that
 * succeeded had to leave out: the first inquiry of a file with external links that are refused names
 * them. Never NULL; valid until the thread's next call of another function of the library. With
 * ZONDA_EXPLAIN=1 in the environment each call that fails prints this line on standard error. */
extern const char *nc_zonda_last_error(void);

/* Version of Zonda, such as "0.2.0". Static. (nc_inq_libvers() gives the interface's.) */
extern const char *nc_zonda_version(void);

/* The layer stack a file is read and written through, from the application down, as a spec that
 * the environment variable ZONDA_IO accepts, such as "cache:29:141,event,file".
 *
 * lenp gets the length in bytes without the NUL; spec gets the text with it. Either may be NULL,
 * so that one call can ask how much room the next one needs.
 *
 * Returns NC_NOERR, or NC_EBADID. */
extern int nc_zonda_inq_stack(int ncid, size_t *lenp, char *spec);

/* Write-behind: whether nc_put_* return when the values are copied ("on", "mem=512M,threads=2", or
 * "helper": then they also survive if the program is killed), or
 * when they are stored ("off"), from now on. What was accepted before is carried out first. The
 * environment variable ZONDA_ASYNC says the same for all files, a path like "out.nc#zonda.async=on"
 * for one.
 *
 * With write-behind, NC_NOERR of a put means that it was accepted. What goes wrong later is returned
 * by the next put, nc_sync() and nc_close(). Where the device refused, what was accepted stays, and
 * nc_sync() and nc_close() try again. nc_sync() returns when all is stored.
 *
 * Of a file that several MPI processes have open each process says it for itself, "helper" counts as "on",
 * and what goes wrong later is returned by the next collective call, the same on all of them.
 *
 * Returns NC_NOERR, NC_EBADID, NC_EINVAL for another text, or what went wrong before. */
extern int nc_zonda_set_async(int ncid, const char *how);

/* Bytes of puts that were accepted and wait, and the code of what went wrong with any of them or
 * NC_NOERR. Never waits. Either pointer may be NULL.
 *
 * Returns NC_NOERR, or NC_EBADID. */
extern int nc_zonda_async_status(int ncid, size_t *pending_bytes, int *err);

/* What the library holds in this process, in bytes: one answer for each kind of memory, and one for all
 * together. The limit is the environment variable ZONDA_MEMORY's, or a part of what the machine or the
 * control group has, divided by the ranks on the node.
 *
 * kind is 0, 1, ... up to the first that gives NC_EINVAL, or NC_ZONDA_MEMORY_ALL. namep gets a word, static:
 *   "pages"       pages of files in the default layer; the longest unused clean ones go first
 *   "chunks"      decoded chunks, kept for later reads; the longest unused go first
 *   "queues"      puts that write-behind accepted and that wait; they stay, and puts wait
 *   "incomplete"  chunks of netCDF-4 files that wait for more data; above the limit they go to a file
 *                 without a name beside the data
 *   "spare"       memory that is kept to be used again; it goes before all other
 *   "trace"       events of ZONDA_TRACE that are not written yet; they stay
 *   "all"         the sum of these
 * bytes gets what is held now, most the most that was held at any time; for NC_ZONDA_MEMORY_ALL most gets
 * the limit. Any pointer may be NULL. It never waits, and costs no file. Caches whose size was asked for by
 * name (ZONDA_IO) are as large as that and not counted.
 *
 * Returns NC_NOERR, or NC_EINVAL for another kind. */
#define NC_ZONDA_MEMORY_ALL (-1)
extern int nc_zonda_memory(int kind, const char **namep, size_t *bytes, size_t *most);

#if defined(__cplusplus)
}
#endif

#endif /* ZONDA_H */
