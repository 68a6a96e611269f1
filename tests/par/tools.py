# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands under mpiexec: rank 0 alone does the work, and says so; what a script starts in each rank works for itself."""
import launch
import rig

RANKS, SECONDS = 3, 60
ALONE = "zonda: %d ranks were started, but the command does not divide its work: rank 0 does all of it" % RANKS
CDL = "netcdf a { dimensions: x = 1000 ; variables: int v(x) ; data: v = %s ; }" % ", ".join(map(str, range(1000)))


def started(mpi, folder, words):
    """Runs a command in ranks: the exit status, and what they say."""
    log = folder / "said"
    log.unlink(missing_ok=True)
    status = launch.ends_with(launch.command(mpi, RANKS, words), launch.environment(mpi), folder, SECONDS, log)
    if status is None:
        raise rig.Wrong("it hangs")
    return status, log.read_text(errors="backslashreplace")


def alone(mpi, scratch):
    folder = scratch / ("tools-" + mpi.name)
    folder.mkdir()
    (folder / "a.cdl").write_text(CDL)
    rig.must([rig.BIN / "ncgen", "-b", "-4", "-o", folder / "a.nc", folder / "a.cdl"])
    rig.must([rig.ZONDA, "copy", "-q", "-d", "1", folder / "a.nc", folder / "serial.nc"])
    for words in (["copy", "-q", "-d", "1", "a.nc", "ranks.nc"], ["nccopy", "-d", "1", "a.nc", "ranks.nc"]):
        program = [rig.ZONDA] if words[0] == "copy" else [rig.BIN / words.pop(0)]
        status, said = started(mpi, folder, [*program, *words])
        if status != 0 or said.count(ALONE) != 1:
            raise rig.Wrong("%s ends with %s: %s" % (words, status, said[-600:]))
        if (folder / "ranks.nc").read_bytes() != (folder / "serial.nc").read_bytes() and words[0] == "copy":
            raise rig.Wrong("the copy is another one than that of one process")
        rig.must([rig.ZONDA, "diff", folder / "a.nc", folder / "ranks.nc"])
        (folder / "ranks.nc").unlink()
    status, said = started(mpi, folder, [rig.ZONDA, "check", "a.nc"])
    if status != 0 or said.count("sound") != 1:
        raise rig.Wrong("check ends with %s: %s" % (status, said[-600:]))
    with open(folder / "a.nc", "r+b") as file:
        file.truncate(200)
    if started(mpi, folder, [rig.ZONDA, "check", "a.nc"])[0] == 0:
        raise rig.Wrong("check finds a file sound that is cut off")


def by_scripts(mpi, scratch):
    """Each rank copies a file of its own."""
    folder = scratch / ("scripts-" + mpi.name)
    folder.mkdir()
    (folder / "a.cdl").write_text(CDL)
    rig.must([rig.BIN / "ncgen", "-b", "-o", folder / "a.nc", folder / "a.cdl"])
    rank = "${PMI_RANK-$OMPI_COMM_WORLD_RANK}"
    # Not the last command: a shell becomes that.
    status, said = started(mpi, folder, ["sh", "-c", '%s copy -q a.nc "b%s.nc"; echo done' % (rig.ZONDA, rank)])
    if status != 0 or len(list(folder.glob("b[0-9].nc"))) != RANKS or "ranks were started" in said:
        raise rig.Wrong("ends with %s: %s" % (status, said[-600:]))


def cases(mpi, options):
    """Names, tests and their arguments."""
    yield "commands", alone, mpi, options.scratch
    yield "commands of scripts", by_scripts, mpi, options.scratch
