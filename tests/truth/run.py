# SPDX-License-Identifier: GPL-2.0-only
"""Runs a scenario under memprov record, stops it, and keeps what it said of itself."""
import json
import os
import re
import select
import signal
import subprocess
import threading
import time

SHMEM = re.compile(r"/(memfd:|SYSV|dev/zero|dev/shm/)")
PATIENCE = 120
SLACK = 0.3  # seconds, in which an event comes out of the ring


class Trouble(Exception):
    """The run went wrong: neither the profiler's truth nor its error."""


def smaps(pid):
    """What the kernel says of a process: a line of the oracle file."""
    vmas, classes = [], dict.fromkeys(("file", "shmem", "stack", "special", "anonymous"), 0)
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if re.match("[0-9a-f]+-", line):
                start, end = (int(x, 16) for x in words[0].split("-"))
                name = line.split(None, 5)[5].strip() if len(words) > 5 else ""
                what = ("shmem" if SHMEM.match(name) else "file" if name.startswith("/")
                        else "stack" if name == "[stack]"
                        else "anonymous" if name in ("", "[heap]") else "special")
                vmas.append({"start": start, "end": end, "name": name, "rss": 0})
            elif words[0] == "Rss:":
                vmas[-1]["rss"] = int(words[1]) << 10
                classes[what] += int(words[1]) << 10
    totals = {}
    for path in (f"/proc/{pid}/smaps_rollup", f"/proc/{pid}/status"):
        with open(path, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if words[-1] == "kB":
                    totals[words[0].rstrip(":")] = int(words[1]) << 10
    return {"kernel": pid, "by": "smaps", "resident": totals["Rss"], "swapped": totals["Swap"],
            "reserved": totals["VmSize"], "classes": classes, "vmas": [v for v in vmas if v["rss"]]}


def is_stopped(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as f:
            if f.read().rpartition(")")[2].split()[0] not in ("T", "t", "Z"):
                return False
    return True


def await_true(test, what):
    until = time.monotonic() + PATIENCE
    while not test():
        if time.monotonic() > until:
            raise Trouble(f"{what}: not within {PATIENCE} s")
        time.sleep(0.002)


class Process:
    """A child with lines on its stdout."""

    def __init__(self, argv, **kwargs):
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, **kwargs)
        self.rest = b""

    def line(self):
        until = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                raise Trouble(f"{self.child.args[1]}: says nothing for {PATIENCE} s")
            got = os.read(self.child.stdout.fileno(), 65536)
            if not got:
                raise Trouble(f"{self.child.args[1]}: {self.child.stderr.read().decode().strip()}")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def lines(self):
        """The oracle, up to done."""
        found = []
        while (line := self.line()) != "done":
            found.append(json.loads(line))
        return found

    def go(self):
        self.child.stdin.write(b"go\n")
        self.child.stdin.flush()


class Recorder:
    """memprov record, until it is told to end."""

    def __init__(self, memprov, trace, arguments, env=None):
        self.trace = trace
        self.log = open(f"{trace}.log", "w+", encoding="utf-8")
        self.child = subprocess.Popen([memprov, "record", "-o", trace, *arguments],
                                      stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      env={**os.environ, **(env or {})})
        await_true(self.is_armed, "memprov record")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def is_armed(self):
        if self.child.poll() is not None:
            raise Trouble(f"memprov record ended at once: {self.said()}")
        return "memprov: recording" in self.said()

    def stop(self, how=signal.SIGINT):
        self.child.send_signal(how)
        status = self.child.wait(timeout=PATIENCE)
        self.log.close()
        return status


def stop_all(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    await_true(lambda: all(is_stopped(pid) for pid in pids), "stopping the processes")


def remove_groups(lines):
    """A cgroup goes when the last of its processes is reaped."""
    for line in lines:
        if "cgroup" in line:
            await_true(lambda: not os.path.exists(line["cgroup"]) or try_rmdir(line["cgroup"]),
                       f"rmdir {line['cgroup']}")


def try_rmdir(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


def end_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def code_of(program, pid):
    """Where its functions lie: a recorder that was killed leaves no names."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        base = next(int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(program))
    named = subprocess.run(["nm", "-CS", "--defined-only", program], capture_output=True, check=True)
    lines = []
    for line in named.stdout.decode().splitlines():
        words = line.split(None, 3)
        if len(words) == 4 and words[2] in "tT":
            start = base + int(words[0], 16)
            lines.append({"code": words[3], "start": hex(start),
                          "end": hex(start + int(words[1], 16))})
    return lines


def finish(work, recorder, killer):
    """The oracle, and what the kernel says of the processes, stopped. Returns (lines, status)."""
    lines = work.lines()
    acted = time.time()
    alive = sorted({line["process"] for line in lines if "process" in line})
    stop_all(alive)
    kernel = [smaps(pid) for pid in alive]
    if killer:
        killer.join()
        recorder.child.wait()
        # What it had written last has all that was done, or may lack some.
        complete = os.path.getmtime(recorder.trace) > acted + SLACK
        lines += code_of(work.child.args[0], work.child.pid)
        lines.append({"killed": "after" if complete else "before"})
        return lines, recorder.child.returncode
    status = recorder.stop()
    if [smaps(pid) for pid in alive] != kernel:
        lines.append({"not_scored": "smaps of the stopped processes changed"})
    return lines + kernel, status


def record(memprov, argv, trace, kill=None, env=None):
    """Records argv, a program that speaks the protocol. Returns the oracle lines, what the kernel
    says of the stopped processes among them, and record's exit status. kill: so many seconds after
    the program begins to act, the recorder is killed."""
    work = Process(argv)
    pids, lines, recorder = [work.child.pid], [], None
    try:
        word = work.line().split()
        if word[0] != "ready":
            raise Trouble(f"{argv}: says {word}")
        recorder = Recorder(memprov, trace, ["-p", word[1], "--tree"], env)
        work.go()
        killer = threading.Timer(kill, recorder.child.kill) if kill else None
        if killer:
            killer.start()
        lines, status = finish(work, recorder, killer)
        pids += [line["process"] for line in lines if "process" in line]
        return lines, status
    finally:
        if recorder and recorder.child.poll() is None:
            recorder.child.kill()
            recorder.child.wait()
        end_all(pids)
        work.child.wait()
        remove_groups(lines)
        for stream in (work.child.stdin, work.child.stdout, work.child.stderr):
            stream.close()


def report(memprov, trace, view):
    """The report by owner; a Trouble with what it said when there is none."""
    done = subprocess.run([memprov, "report", trace, "--owner", view, "--format", "json", "--rows",
                           "0"], capture_output=True, check=False, timeout=120)
    if done.returncode not in (0, 3):
        raise Trouble(f"memprov report: exit {done.returncode}: {done.stderr.decode().strip()}")
    return json.loads(done.stdout)
