// SPDX-License-Identifier: GPL-2.0-only
#include "child.h"

bool Child::fork()
{
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
		die("pipe");
	pid = ::fork();
	if (pid < 0)
		die("fork");
	in = pid ? up[0] : down[0];
	out = pid ? down[1] : up[1];
	close(pid ? up[1] : down[1]);
	close(pid ? down[0] : up[0]);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	book.settle();
	book.forked(!pid);
	return !pid;
}

void Child::pass()
{
	if (::write(out, "", 1) != 1)
		die("write to the other side");
}

void Child::await()
{
	char c;

	if (::read(in, &c, 1) != 1)
		_exit(1);
}

void Child::hold()
{
	book.say();
	pass();
	for (;;)
		pause();
}

void Child::join()
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("a child failed");
}
