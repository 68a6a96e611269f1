#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What stands beside a file and is not to be trusted: it is neither used, nor followed, nor waited for.

    tests/neighbours/run.py                  all
    tests/neighbours/run.py --only PATTERN   cases whose name matches (a regular expression)
    tests/neighbours/run.py --list           their names
    tests/neighbours/run.py --parts LIST     of table, lives; --quick leaves out the table

The table: every kind of file under the name of the journal, and of the copy, x every way to use the
file beside it x both formats. Then users: a group with its own folder, one that all may write, a
crash, copies of folders, plugins, programs that run with more rights than their caller.

Each case is a process of its own, with a time limit. Those with several users need root and are
skipped without. tests/rig/places.py has the settings.
"""
import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import journals

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import LIBDIR, ZONDA, Wrong  # noqa: E402

# One that other users can run, too: root's own may be in root's folder.
PYTHON = next((path for path in ("/usr/bin/python3", sys.executable) if os.path.exists(path)), sys.executable)

# Users without names, and their group.
ANNA, BERT, CARL, GROUP = 61001, 61002, 61003, 61000
IS_ROOT = os.geteuid() == 0
EPERM = 1
EEXIST = -35
# Seconds after which a case hangs.
PATIENCE = 20
FORMATS = {"classic": 0, "netcdf4": 0x1000}
TEXT = 9000
# Elements of the variable: most of the file, so that a redefinition that moves them goes by a copy.
N = 16384

# The library, once `load` was called.
NC = None


def load():
    """Loads the library: here, and in programs that run a part of this file."""
    global NC
    NC = rig.loaded()
    NC.nc_zonda_last_error.restype = ctypes.c_char_p


def want(got, expected, what):
    if got != expected:
        raise Wrong("%s: %r, not %r" % (what, got, expected))


def call(name, *args):
    code = getattr(NC, name)(*args)
    if code:
        raise OSError(code, "%s: %s" % (name, (NC.nc_zonda_last_error() or b"").decode()))


def number(name, *args):
    """A call whose last argument is an int to be set."""
    value = ctypes.c_int()
    call(name, *args, ctypes.byref(value))
    return value.value


# -- what is done to a file ------------------------------------------------------------------------

def title(ncid):
    text = ctypes.create_string_buffer(TEXT + 1)
    call("nc_get_att_text", ncid, -1, b"title", text)
    return text.value[:1].decode()


def make(path, letter, how=0, form="classic"):
    ncid = number("nc_create", os.fsencode(path), how | FORMATS[form])
    dim = number("nc_def_dim", ncid, b"x", ctypes.c_size_t(N))
    var = number("nc_def_var", ncid, b"v", 4, 1, ctypes.byref(ctypes.c_int(dim)))
    call("nc_put_att_text", ncid, -1, b"title", ctypes.c_size_t(TEXT), letter.encode() * TEXT)
    call("nc_put_att_text", ncid, var, b"units", ctypes.c_size_t(1), letter.encode())
    call("nc_enddef", ncid)
    call("nc_put_var_int", ncid, var, (ctypes.c_int * N)(*range(N)))
    call("nc_close", ncid)


def read(path, mode=0):
    ncid = number("nc_open", os.fsencode(path), mode)
    found = title(ncid)
    call("nc_close", ncid)
    return found


def write(path):
    return read(path, 1)


def values(path):
    ncid = number("nc_open", os.fsencode(path), 0)
    found = (ctypes.c_int * N)()
    call("nc_get_var_int", ncid, 0, found)
    call("nc_close", ncid)
    return list(found)


def grow(path, attribute=b"more"):
    """A redefinition that moves data, by a copy where that can be made."""
    ncid = number("nc_open", os.fsencode(path), 1)
    call("nc_redef", ncid)
    call("nc_put_att_text", ncid, -1, attribute, ctypes.c_size_t(40000), b"m" * 40000)
    call("nc_enddef", ncid)
    call("nc_close", ncid)
    return read(path)


def rename_title(path, letter):
    """A redefinition of more than a page of the header, by the journal in a classic file."""
    ncid = number("nc_open", os.fsencode(path), 1)
    call("nc_redef", ncid)
    call("nc_put_att_text", ncid, -1, b"title", ctypes.c_size_t(TEXT), letter.encode() * TEXT)
    call("nc_put_att_text", ncid, 0, b"units", ctypes.c_size_t(1), letter.encode())
    call("nc_enddef", ncid)
    call("nc_close", ncid)


def recover(path, *options):
    """(exit status, what it said)"""
    done = subprocess.run([ZONDA, "recover", *options, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def copied(source, target):
    return subprocess.run([ZONDA, "copy", "-f", source, target], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).returncode


def as_user(user, work):
    """What `work` gives, or the error of the library as (code, text), in a process of that user."""
    ours, its = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        os.setpgid(0, 0)
        answer = ("wrong", "nothing came back")
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 2)
            if user is not None and IS_ROOT:
                os.setgroups([GROUP])
                os.setgid(GROUP)
                os.setuid(user)
            answer = ("ok", work())
        except OSError as error:
            answer = ("error", (error.errno, error.strerror))
        except BaseException as error:  # noqa: it is told by the parent
            answer = ("wrong", repr(error))
        os.write(its, repr(answer).encode())
        os._exit(0)
    os.close(its)
    try:
        os.setpgid(process, process)
    except OSError:
        pass
    signal.alarm(PATIENCE)
    try:
        with os.fdopen(ours, "rb") as pipe:
            text = pipe.read()
    except TimeoutError:
        raise Wrong("hangs") from None
    finally:
        signal.alarm(0)
        try:
            os.killpg(process, signal.SIGKILL)
        except OSError:
            pass
        os.waitpid(process, 0)
    if not text:
        raise Wrong("died")
    kind, value = eval(text)  # noqa: written by repr above
    if kind == "wrong":
        raise Wrong(value)
    return value


def tired(*_):
    raise TimeoutError


# -- states of files, and their journals ---------------------------------------------------------------

class States:
    """The bytes of a file before and after a change, and of another file likewise."""

    def __init__(self, folder, form):
        self.form = form
        made = {letter: folder / ("%s-%s" % (form, letter)) for letter in "gEhFk"}
        for letter, path in made.items():
            make(path, letter, form=form)
        self.bytes = {letter: path.read_bytes() for letter, path in made.items()}

    def journal(self, old="g", new="E", version=2):
        old, new = self.bytes[old], self.bytes[new]
        if self.form == "classic":
            # Up to the data, which are the end of the file.
            return journals.classic(old, new, version, header_bytes=len(new) - 4 * N)
        return journals.hdf5(old, new, version)


# Kinds of what stands there: name, needs root, whether it is the other user's.
KINDS = {}


def kind(needs_root=False):
    def add(function):
        KINDS[function.__name__.replace("_", "-")] = (function, needs_root)
        return function
    return add


def put(path, data, user=None, mode=0o644):
    path.write_bytes(data)
    path.chmod(mode)
    if IS_ROOT:
        os.chown(path, ANNA if user is None else user, GROUP)


@kind()
def nothing(case):
    pass


@kind()
def own_matching(case):
    put(case.beside, case.states.journal())


@kind()
def own_matching_former(case):
    put(case.beside, case.states.journal(version=1))


@kind()
def own_mismatching(case):
    put(case.beside, case.states.journal("h", "F"))


@kind()
def own_empty(case):
    put(case.beside, b"")


@kind()
def own_garbage(case):
    put(case.beside, b"\x89garbage" * 999)


@kind()
def own_but_all_may_write(case):
    put(case.beside, case.states.journal(), mode=0o646)


@kind()
def link_in_folder(case):
    put(case.folder / "a.journal", case.states.journal())
    case.beside.symlink_to("a.journal")


@kind()
def link_out_of_folder(case):
    case.beside.symlink_to(case.outside)


@kind()
def link_to_nothing(case):
    case.beside.symlink_to(case.folder / "nothing")


@kind()
def link_to_itself(case):
    case.beside.symlink_to(case.beside)


@kind()
def fifo(case):
    os.mkfifo(case.beside)


@kind()
def socket_there(case):
    one = socket.socket(socket.AF_UNIX)
    # The name of a socket may be about 100 bytes long.
    here = os.getcwd()
    os.chdir(case.folder)
    one.bind(case.beside.name)
    os.chdir(here)


@kind(needs_root=True)
def device(case):
    os.mknod(case.beside, stat.S_IFCHR | 0o666, os.makedev(1, 5))


@kind(needs_root=True)
def terminal(case):
    os.mknod(case.beside, stat.S_IFCHR | 0o666, os.makedev(5, 2))


@kind()
def folder(case):
    case.beside.mkdir()


@kind()
def two_names(case):
    put(case.beside, case.states.journal())
    os.link(case.beside, case.folder / "a.journal")


@kind(needs_root=True)
def roots_matching(case):
    put(case.beside, case.states.journal(), user=0)


@kind(needs_root=True)
def other_matching(case):
    put(case.beside, case.states.journal(), user=BERT)


@kind(needs_root=True)
def other_matching_former(case):
    put(case.beside, case.states.journal(version=1), user=BERT)


@kind(needs_root=True)
def other_mismatching(case):
    put(case.beside, case.states.journal("h", "F"), user=BERT)


@kind(needs_root=True)
def other_empty(case):
    put(case.beside, b"", user=BERT)


@kind(needs_root=True)
def other_garbage(case):
    put(case.beside, b"\x89garbage" * 999, user=BERT)


@kind(needs_root=True)
def other_huge(case):
    put(case.beside, case.states.journal()[:16] + (1 << 40).to_bytes(8, "little"), user=BERT)
    os.truncate(case.beside, 1 << 40)


@kind(needs_root=True)
def other_unreadable(case):
    put(case.beside, case.states.journal(), user=BERT, mode=0o600)


APPLIED = {"own-matching", "own-matching-former", "roots-matching"}
HARMLESS = {"nothing", "own-empty", "own-garbage"}
# What a reader cannot read past: nobody may complete it, and it may be needed.
STOPS_READERS = {"other-matching", "other-matching-former", "other-unreadable"}


class Case:
    """A folder with a file of Anna's, and something beside it."""

    def __init__(self, world, form, what, suffix, sticky, there=True):
        self.states = world.states[form]
        self.folder = Path(tempfile.mkdtemp(dir=world.scratch))
        self.file = self.folder / "x.nc"
        self.beside = self.folder / ("x.nc" + suffix)
        self.outside = world.outside
        self.what = what
        self.is_journal = suffix == ".zonda-journal"
        self.sticky = sticky
        if there:
            put(self.file, self.states.bytes["g"])
        if IS_ROOT:
            os.chown(self.folder, 0 if sticky else ANNA, GROUP)
        self.folder.chmod(0o1777 if sticky else 0o755)
        KINDS[what][0](self)
        if IS_ROOT and os.path.lexists(self.beside) and not what.startswith(("own", "other", "roots", "two")):
            os.chown(self.beside, BERT if sticky else ANNA, GROUP, follow_symlinks=False)
        self.was = self.look()

    def look(self):
        """What stands beside the file."""
        if not os.path.lexists(self.beside):
            return None
        found = os.lstat(self.beside)
        # Of a socket or a pipe there is no more to be seen.
        small = stat.S_ISREG(found.st_mode) and found.st_size < 1 << 30
        return found.st_ino, found.st_mode, found.st_uid, self.beside.read_bytes() if small else b""

    def can_be_removed(self):
        """By Anna."""
        if self.what == "folder":
            return False
        return not self.sticky or self.was is None or not IS_ROOT or self.was[2] == ANNA

    def unchanged(self):
        want(self.look(), self.was, "what stands beside it")

    def gone(self):
        want(os.path.lexists(self.beside), False, "something stands beside it")


def table_read(case):
    got = as_user(ANNA, lambda: read(case.file))
    if case.what in STOPS_READERS:
        want(got[0], EPERM, "reading")
        want("zonda-journal" in got[1] and str(BERT) in got[1], True, got[1])
    else:
        overlaid = case.what in APPLIED and case.states.form == "classic"
        want(got, "E" if overlaid else "g", "reading")
    case.unchanged()


def table_write(case):
    got = as_user(ANNA, lambda: write(case.file))
    if case.what in APPLIED and not case.can_be_removed():
        # It was completed; that it stays is told each time, and that it is not needed any more.
        want((got[0], "x.nc.zonda-journal: remove" in got[1]), (EPERM, True), "writing: %r" % (got,))
        want(as_user(ANNA, lambda: read(case.file)), "E", "reading")
    elif case.what in APPLIED:
        want(got, "E", "writing")
        case.gone()
    elif case.what in HARMLESS:
        want(got, "g", "writing")
        case.gone()
    else:
        want(got[0], EPERM, "writing: %r" % (got,))
        want("x.nc.zonda-journal: refused" in got[1], True, got[1])
        case.unchanged()
        want(case.file.read_bytes(), case.states.bytes["g"], "the file")


def table_recover(case):
    status, said = as_user(ANNA, lambda: recover(case.file))
    right = case.what in APPLIED | HARMLESS and case.can_be_removed()
    want(status, 0 if right else 1, "recover: " + said)
    if right:
        case.gone()
        want(as_user(ANNA, lambda: write(case.file)), "E" if case.what in APPLIED else "g", "after it")
        return
    case.unchanged()
    if case.what not in APPLIED:
        want(case.file.read_bytes(), case.states.bytes["g"], "the file")
    if case.what == "other-matching":
        want("--trust %d" % BERT in said, True, said)


def table_copy_from(case):
    status = as_user(ANNA, lambda: copied(case.file, case.folder / "y.nc"))
    want(status != 0, case.what in STOPS_READERS, "copying it: status %d" % status)
    case.unchanged()


def table_copy_to(case):
    put(case.folder / "source.nc", case.states.bytes["k"])
    want(as_user(ANNA, lambda: copied(case.folder / "source.nc", case.file)), 0, "copying over it")
    after_making(case, "k")


def table_clobber(case):
    want(as_user(ANNA, lambda: make(case.file, "n", 0, case.states.form)), None, "creating")
    after_making(case, "n")


def table_noclobber(case):
    if case.file.exists():
        case.file.unlink()
    want(as_user(ANNA, lambda: make(case.file, "n", 4, case.states.form)), None, "creating")
    after_making(case, "n")


def after_making(case, letter):
    """The new file is whole, and what could not be removed does it no harm."""
    hides = case.is_journal and case.what == "other-unreadable" and not case.can_be_removed()
    got = as_user(ANNA, lambda: read(case.file))
    want(got[0] if hides else got, EPERM if hides else letter, "the new file")
    if case.can_be_removed():
        case.gone()
    else:
        case.unchanged()
    got = as_user(ANNA, lambda: write(case.file))
    is_stopped = case.is_journal and not case.can_be_removed()
    want(got[0] if is_stopped else got, EPERM if is_stopped else letter, "the new file, written")


def copy_grow(case):
    """What stands under the name of the copy is never used: at worst there is none."""
    want(as_user(ANNA, lambda: grow(case.file)), "g", "redefining")
    if case.can_be_removed() and case.states.form == "classic":
        case.gone()
    elif not case.can_be_removed():
        case.unchanged()
    got = as_user(ANNA, lambda: values(case.file))
    want(got, list(range(N)), "values")


def copy_recover(case):
    status, said = as_user(ANNA, lambda: recover(case.file))
    want(status, 0, "recover: " + said)


TABLE = [
    (".zonda-journal", [table_read, table_write, table_recover, table_copy_from, table_copy_to,
                        table_clobber, table_noclobber]),
    (".zonda-copy", [copy_grow, copy_recover, table_clobber]),
]


def table(world):
    """(name, needs root, function) of the table."""
    for suffix, actions in TABLE:
        for form in FORMATS:
            for what, (_, needs_root) in KINDS.items():
                for action in actions:
                    # A folder of Anna's, and one where anybody may make files and only owners remove.
                    for sticky in (False, True):
                        where = "sticky" if sticky else "own"
                        name = "%s/%s/%s/%s/%s" % (suffix[7:], form, what, action.__name__, where)

                        def run(form=form, what=what, action=action, sticky=sticky, suffix=suffix):
                            case = Case(world, form, what, suffix, sticky,
                                        there=action is not table_noclobber)
                            action(case)
                            want(world.outside.read_bytes(), b"not yours", "a file elsewhere")
                            shutil.rmtree(case.folder)

                        yield name, needs_root or sticky, run


def lives(world):
    """The same of what happens between users."""
    for function in (group_folder, reader_beside_a_living_writer, crash_and_copy, plugins,
                     more_rights_than_caller, temporary_files):
        for form in FORMATS if "form" in function.__code__.co_varnames[:2] else [None]:
            name = function.__name__ + ("/" + form if form else "")
            yield name, function is not temporary_files, (
                lambda function=function, form=form: function(world, form) if form else function(world))


# -- lives ---------------------------------------------------------------------------------------------

def shared_folder(world, mode=0o2775):
    folder = Path(tempfile.mkdtemp(dir=world.scratch))
    os.chown(folder, ANNA, GROUP)
    folder.chmod(mode)
    return folder


def group_folder(world, form):
    """Bert dies while he changes Anna's file, in a folder of their group."""
    states = world.states[form]
    for trusting in (str(BERT), None):
        folder = shared_folder(world)
        file, journal = folder / "x.nc", folder / "x.nc.zonda-journal"
        put(file, states.bytes["g"], mode=0o664)
        put(journal, states.journal(), user=BERT, mode=0o664)
        for user in (ANNA, CARL):
            got = as_user(user, lambda: write(file))
            want((got[0], str(BERT) in got[1], "x.nc.zonda-journal" in got[1]), (EPERM, True, True), got)
            want(as_user(user, lambda: read(file))[0], EPERM, "reading")
            status, said = as_user(user, lambda: recover(file))
            want(status, 1, said)
            want("would change" in said, True, said)
            if form == "classic":
                want("attribute v:units: \"g\" becomes \"E\"" in said, True, said)
            status, said = as_user(user, lambda: recover(file, "--trust", str(CARL + 1)))
            want(status, 1, "trusting somebody else: " + said)
        want((file.read_bytes(), journal.exists()), (states.bytes["g"], True), "both")
        if trusting:
            status, said = as_user(CARL, lambda: recover(file, "--trust", trusting))
        else:
            status, said = as_user(BERT, lambda: recover(file))
        want((status, journal.exists()), (0, False), said)
        want(as_user(ANNA, lambda: write(file)), "E", "after it")
        # Anna's own is anybody's who may write her file.
        put(file, states.bytes["g"], mode=0o664)
        put(journal, states.journal(), mode=0o664)
        want(as_user(CARL, lambda: write(file)), "E", "Anna's journal, completed by Carl")


def reader_beside_a_living_writer(world, form):
    """A journal that a living colleague holds is no reason for a netCDF-4 reader to stop."""
    import fcntl
    folder = shared_folder(world)
    file, journal = folder / "x.nc", folder / "x.nc.zonda-journal"
    put(file, world.states[form].bytes["g"], mode=0o664)
    put(journal, world.states[form].journal(), user=BERT)
    with open(journal) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        got = as_user(ANNA, lambda: read(file))
        want(got if form == "netcdf4" else got[0], "g" if form == "netcdf4" else EPERM, "reading")


def crash_and_copy(world):
    """A real writer dies with a real journal; the folder is copied; each copy is recovered."""
    shim = world.compiled("die_at_unlink.c", "-shared", "-fPIC")
    folder = shared_folder(world, 0o755)
    file = folder / "x.nc"
    as_user(ANNA, lambda: make(file, "g"))
    program = "import sys; sys.path.insert(0, %r); import run; run.load(); run.rename_title(sys.argv[1], 'E')" % str(HERE)

    def die():
        env = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([PYTHON, "-c", program, file], env=env).returncode

    want(as_user(ANNA, die), 7, "the writer's death")
    journal = folder / "x.nc.zonda-journal"
    want(journal.read_bytes()[:8], b"ZNDJRNL\x02", "its journal")
    whole = file.read_bytes()
    # The header as a power cut can leave it: every second sector is old.
    torn = bytearray(whole)
    old = world.states["classic"].bytes["g"]
    for at in range(512, len(old) - 1024, 1024):
        torn[at:at + 512] = old[at:at + 512]
    file.write_bytes(torn)
    kept, carls = folder.with_name(folder.name + "-kept"), folder.with_name(folder.name + "-carls")
    subprocess.run(["cp", "-a", folder, kept], check=True)
    subprocess.run(["cp", "-r", folder, carls], check=True)
    for path in (carls, *carls.iterdir()):
        os.chown(path, CARL, GROUP)
    for user, place in ((ANNA, folder), (ANNA, kept), (CARL, carls)):
        want(as_user(user, lambda: read(place / "x.nc")), "E", "read in %s" % place)
        status, said = as_user(user, lambda: recover(place / "x.nc"))
        want(status, 0, said)
        want((place / "x.nc").read_bytes(), whole, "what was recovered in %s" % place)
        want(as_user(user, lambda: write(place / "x.nc")), "E", "written in %s" % place)
    # A backup of another time is not what the journal was written for.
    for name, data in (("x.nc", old[:-1] + b"\x09"), ("y.nc", world.states["classic"].bytes["h"])):
        put(folder / name, data)
    want(as_user(ANNA, lambda: write(folder / "x.nc")), "g", "without a journal")


def plugins(world):
    """A plugin is run if nobody else can change it; if not, that is the error, not that it is missing."""
    source = rig.ROOT / "crates/zonda-plugin/tests/plugins/inplace.c"
    folder = shared_folder(world, 0o755)
    plugin = folder / "libinplace.so"
    shutil.copy(world.compiled(source, "-shared", "-fPIC"), plugin)
    put(plugin, plugin.read_bytes(), mode=0o755)
    file = folder / "f.nc"
    program = "import sys; sys.path.insert(0, %r); import run; run.load(); run.filtered(*sys.argv[1:])" % str(HERE)

    def use(path, how, user=ANNA, file=file):
        def work():
            env = {**os.environ, "HDF5_PLUGIN_PATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([PYTHON, "-c", program, file, how], env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return done.stdout
        return as_user(user, work)

    want(use(folder, "make"), "0 0\n", "writing")
    link = folder / "link"
    link.mkdir()
    (link / "libinplace.so").symlink_to(plugin)
    os.chown(link, ANNA, GROUP)
    want(use(link, "read"), "0 0\n", "by a link")
    want(use(folder / "nowhere", "read").split()[:2], ["-136", "-136"], "missing")
    folder.chmod(0o777)
    for path in (folder, link):
        got = use(path, "read")
        want((got.split()[:2], "refused" in got), (["1", "1"], True), "folder that all may write: " + got)
    folder.chmod(0o775)
    want(use(folder, "read").split()[:2], ["1", "1"], "folder that the group may write")
    folder.chmod(0o755)
    plugin.chmod(0o757)
    want(use(folder, "read").split()[:2], ["1", "1"], "file that all may write")
    plugin.chmod(0o755)
    os.chown(plugin, BERT, GROUP)
    got = use(folder, "read")
    want((got.split()[:2], str(BERT) in got), (["1", "1"], True), "Bert's: " + got)
    got = use(folder, "make", file=folder / "other.nc")
    want(got.split()[0], "1", "Bert's, for writing: " + got)
    os.chown(plugin, 0, 0)
    want(use(folder, "read"), "0 0\n", "root's, in Anna's folder")
    got = use(folder, "read", BERT)
    want((got.split()[:2], str(ANNA) in got), (["1", "1"], True), "in Anna's folder, for Bert: " + got)


def filtered(path, how):
    """Prints the codes of asking for filter 300 and of the values, and the error's text."""
    path = os.fsencode(path)
    ncid = ctypes.c_int()
    codes, text = [], b""
    values = (ctypes.c_int * 64)(*range(64))
    if how == "make":
        NC.nc_create(path, FORMATS["netcdf4"], ctypes.byref(ncid))
        dim = number("nc_def_dim", ncid, b"x", ctypes.c_size_t(64))
        var = number("nc_def_var", ncid, b"v", 4, 1, ctypes.byref(ctypes.c_int(dim)))
        param = ctypes.c_uint(15)
        codes.append(NC.nc_def_var_filter(ncid, var, 300, ctypes.c_size_t(1), ctypes.byref(param)))
        codes.append(NC.nc_put_var_int(ncid, var, values))
        NC.nc_close(ncid)
    else:
        NC.nc_open(path, 0, ctypes.byref(ncid))
        codes.append(NC.nc_inq_filter_avail(ncid, 300))
        codes.append(NC.nc_get_var_int(ncid, 0, values))
        text = NC.nc_zonda_last_error() or b"" if codes[-1] else b""
        if not codes[-1]:
            want(list(values), list(range(64)), "values")
    print(*codes, *([text.decode()] if text else []))


def more_rights_than_caller(world):
    """The environment names neither code nor settings nor files to a set-user-id program."""
    program = rig.compile_c(world.scratch / "setuid", HERE / "setuid.c", libraries=["-Wl,-rpath," + str(LIBDIR)])
    folder = shared_folder(world, 0o755)
    file = folder / "x.nc"
    put(file, world.states["classic"].bytes["g"])
    (folder / "rc").write_text("ZONDA.TEST=taken\n")
    for is_set in (False, True):
        mine = folder / ("with" if is_set else "without")
        shutil.copy(program, mine)
        os.chown(mine, ANNA, GROUP)
        mine.chmod(0o4755 if is_set else 0o755)
        traces = Path(tempfile.mkdtemp(dir=world.scratch))
        traces.chmod(0o777)
        env = {"HDF5_PLUGIN_PATH": "/plugins", "NCRCENV_RC": str(folder / "rc"),
               "ZONDA_TRACE": str(traces / "trace"), "ZONDA_IO": "event:%s,file" % (traces / "events")}
        said = as_user(BERT, lambda: subprocess.run([mine, file], env=env, text=True,
                                                    stdout=subprocess.PIPE).stdout)
        if is_set:
            want(said, "path /usr/local/hdf5/lib/plugin\nrc none\nopen 0\n", "with more rights")
            want(os.listdir(traces), [], "files that the environment named")
        else:
            want(said, "path /plugins\nrc taken\nopen 0\n", "with the caller's rights")


def temporary_files(world):
    """The names of temporary files are no way to have something written elsewhere."""
    case = Case(world, "classic", "nothing", ".zonda-journal", False)
    program = "import os, sys; [os.symlink(%r, '%%s.zonda-new-%%d-%%d' %% (sys.argv[2], os.getpid(), n)) " \
        "for n in range(3)]; os.execv(%r, ['zonda', 'copy', sys.argv[1], sys.argv[2]])" % (
            str(world.outside), str(ZONDA))
    target = case.folder / "y.nc"

    def work():
        return subprocess.run([PYTHON, "-c", program, case.file, target]).returncode
    want(as_user(ANNA, work), 0, "copying")
    want(as_user(ANNA, lambda: read(target)), "g", "the copy")
    want(world.outside.read_bytes(), b"not yours", "a file elsewhere")
    want(len([name for name in os.listdir(case.folder) if "zonda-new" in name]), 3, "links")


class World:
    def __init__(self, scratch):
        self.scratch = scratch
        self.scratch.chmod(0o755)
        self.outside = self.scratch / "outside"
        self.outside.write_bytes(b"not yours")
        if IS_ROOT:
            # What Anna may write, so that nothing but Zonda keeps it from being written.
            os.chown(self.outside, ANNA, GROUP)
        made = self.scratch / "states"
        made.mkdir()
        self.states = {form: States(made, form) for form in FORMATS}

    def compiled(self, source, *options):
        source = HERE / source
        return rig.compile_c(self.scratch / (source.stem + ".bin"), source, link=None, flags=options)


def others_can_use_it():
    """Whether the library can be loaded by users who are not root."""
    return all(os.stat(folder).st_mode & 0o005 == 0o005 for folder in [LIBDIR, *LIBDIR.parents])


def main():
    parser = rig.parser(__doc__, parts={"table": rig.FULL, "lives": rig.QUICK})
    parser.add_argument("--list", action="store_true")
    options = rig.arguments(parser)
    # Before there are other users, who may not be able to.
    load()
    signal.signal(signal.SIGALRM, tired)
    os.environ.pop("HDF5_PLUGIN_PATH", None)
    counts, left_out = rig.Counts(), 0
    with rig.scratch() as scratch:
        world = World(scratch)
        cases = [case for part in options.chosen() for case in {"table": table, "lives": lives}[part](world) if options.wants(case[0])]
        if options.list:
            print("\n".join(name for name, *_ in cases))
            return 0
        several_users = IS_ROOT and others_can_use_it()
        for name, needs_root, run in cases:
            if needs_root and not several_users:
                left_out += 1
            else:
                counts.attempt(name, run)
        if left_out:
            counts.skip("cases with several users", "not root, or its files are root's alone", left_out)
    return counts


if __name__ == "__main__":
    rig.main(main)
