# SPDX-License-Identifier: GPL-2.0-only
"""compare.py STOPPED PID COUNT [SEED]: stops the process at COUNT random moments, picks a random
thread, and compares what memprov's unwinder makes of its stack with what eu-stack does, address by
address. Stacks that eu-stack itself gives up on are counted apart."""
import os
import random
import re
import signal
import subprocess
import sys
import time

stopped, pid, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)


def threads():
    return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))


def state(tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def stop():
    os.kill(pid, signal.SIGSTOP)
    for _ in range(1000):
        if all(state(t) in "Tt" for t in threads()):
            return
        time.sleep(0.001)
    sys.exit("compare: the process does not stop")


class Unwinder:
    def __init__(self):
        self.start()

    def start(self):
        self.p = subprocess.Popen([stopped, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def walk(self, tid):
        """Where the stack does not fit into this process another one may have room there."""
        for _ in range(20):
            self.p.stdin.write(f"{tid}\n")
            self.p.stdin.flush()
            line = self.p.stdout.readline().split()
            if not line:
                sys.exit("compare: stopped ended")
            if line != ["again"]:
                return int(line[0]), int(line[1]), [int(a, 16) for a in line[2:]]
            self.p.kill()
            self.p.wait()
            self.start()
        sys.exit("compare: no room for the stack")


def other(tid):
    p = subprocess.run(["eu-stack", "-1", "-r", "-n", "0", "-p", str(tid)], capture_output=True, text=True, timeout=60)
    return [int(a, 16) for a in re.findall(r"^#\d+ +0x([0-9a-f]+)", p.stdout, re.M)], p.stderr.strip()


unwinder = Unwinder()
equal = different = unjudged = 0
ends = [0, 0, 0]
frames = deepest = 0
for i in range(count):
    time.sleep(rng.random() * 0.02)
    stop()
    tid = rng.choice(threads())
    method, end, mine = unwinder.walk(tid)
    theirs, error = other(tid)
    ends[end] += 1
    frames += len(mine)
    deepest = max(deepest, len(mine))
    if mine == theirs[:127]:
        equal += 1
    elif len(theirs) < len(mine) and mine[: len(theirs)] == theirs:
        unjudged += 1
        if unjudged < 3:
            print(f"eu-stack gives up: {error}: {len(theirs)} of our {len(mine)} frames")
    else:
        different += 1
        if different < 4:
            print(f"DIFFERENT thread {tid} method {method} end {end}")
            print("  memprov ", *[f"{a:x}" for a in mine])
            print("  eu-stack", *[f"{a:x}" for a in theirs], error)
            subprocess.run(["eu-stack", "-1", "-n", "0", "-p", str(tid)], check=False)
    os.kill(pid, signal.SIGCONT)
print(f"{equal} equal, {different} different, {unjudged} that eu-stack gives up on; "
      f"{ends[0]} whole, {ends[1]} too deep, {ends[2]} cut; {frames / count:.1f} frames, {deepest} at most")
sys.exit(different != 0 or equal < count * 0.9)
