# SPDX-License-Identifier: MIT OR Apache-2.0
"""The shell and the Python in which the examples of a page run: folder, variables and names stay from one to the next."""
import contextlib
import json
import os
import signal
import subprocess

import blocks
from rig import Wrong

SECONDS = 120
# Reads {"kind", "text", "name"} by lines, and answers with what is wrong, or "".
DRIVER = r"""
import contextlib, doctest, io, json, sys, traceback
names, answers = {"__name__": "__main__"}, sys.stdout
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
for line in sys.stdin:
    asked, said, wrong = json.loads(line), io.StringIO(), ""
    with contextlib.redirect_stdout(said):
        try:
            if asked["kind"] == "pycon":
                test = doctest.DocTestParser().get_doctest(asked["text"], names, asked["name"], asked["name"], 0)
                out = io.StringIO()
                result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.write, clear_globs=False)
                names.update(test.globs)
                wrong = out.getvalue() if result.failed else "" if result.attempted else "no >>> in it"
            else:
                exec(compile(asked["text"], asked["name"], "exec"), names)
        except BaseException:
            wrong = traceback.format_exc()
    answers.write(json.dumps(wrong) + "\n")
    answers.flush()
"""


class Session:
    """One page's."""

    def __init__(self, folder, env, python, state):
        self.folder, self.env, self.interpreter, self.child = folder, env, python, None
        # The shell's variables and folder, between blocks.
        self.state = state
        self.state.write_text(f"cd '{folder}'\n")

    def console(self, block):
        listed = blocks.commands(block.text)
        if not listed:
            raise Wrong("no command in it")
        for (command, shown), (said, status) in zip(listed, self._bash([command for command, _ in listed]), strict=True):
            if status:
                raise Wrong(f"`{command}` ends with {status}:\n{said[-1500:]}")
            if shown is not None and not blocks.alike(shown, said):
                raise Wrong(f"`{command}` says something else:\n{said[-3000:]}")

    def shell(self, block):
        said, status = self._bash(["set -e\n" + block.text + "\nset +e"])[0]
        if status:
            raise Wrong(f"it ends with {status}: {said[-1500:]}")

    def _bash(self, commands):
        """(output, status) of each; the shell's variables and folder are kept."""
        mark = "--docs-test--"
        script = [f". '{self.state}'"]
        for command in commands:
            script.append(f"{{ {command}\n}} 2>&1; printf '\\n{mark}%s\\n' $?")
        script.append(f"{{ export -p; printf \"cd '%s'\\n\" \"$PWD\"; }} >'{self.state}'")
        with subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="backslashreplace", start_new_session=True) as child:
            try:
                said = child.communicate(timeout=SECONDS)[0]
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                raise
        pieces = said.split("\n" + mark)
        if len(pieces) != len(commands) + 1:
            # `set -e` ended the shell.
            return [(said, child.returncode or 1)]
        found = []
        for at, piece in enumerate(pieces[:-1]):
            text = piece if at == 0 else piece.partition("\n")[2]
            found.append((text, int(pieces[at + 1].partition("\n")[0])))
        return found

    def python(self, block, name):
        if not self.child:
            self.child = subprocess.Popen([self.interpreter, "-c", DRIVER], cwd=self.folder, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdin.write(json.dumps({"kind": block.language, "text": block.text, "name": name}) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            raise Wrong("Python has ended")
        if wrong := json.loads(answer):
            raise Wrong(wrong[-3000:])

    def close(self):
        if self.child:
            self.child.stdin.close()
            self.child.stdout.close()
            self.child.wait(timeout=SECONDS)
